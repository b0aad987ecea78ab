# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# lib.sh - what the tests of the command share. Sourced with the build folder as $1; runs in a fresh folder.
set -u
build=$1
mimus=$build/mimus
json=$build/tests/cli/json-get
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0

fail() {
    echo "FAILED: $*"
    bad=1
}

# run CODE ARGUMENT...: mimus with these arguments has to end with this exit code; leaves the files out and err.
run() {
    expected=$1
    shift
    code=0
    ran="mimus $*"
    "$mimus" "$@" >out 2>err </dev/null || code=$?
    if [ "$code" -ne "$expected" ]; then
        fail "$ran: exit code $code, not $expected"
        sed 's/^/    /' err
    fi
}

says() { # FILE TEXT: the file that the latest run left holds the text
    grep -qF -- "$2" "$1" || {
        fail "$ran: \"$2\" is not in its $1:"
        sed 's/^/    /' "$1"
    }
}

silent() { # FILE: it is empty
    [ ! -s "$1" ] || {
        fail "$ran: nothing belongs into its $1, but there is:"
        sed 's/^/    /' "$1"
    }
}

# refused CODE TEXT ARGUMENT...: fails with this code, nothing on standard output, and one line that holds TEXT.
refused() {
    wanted=$1 text=$2
    shift 2
    run "$wanted" "$@"
    silent out
    says err "$text"
    [ "$(wc -l <err)" -eq 1 ] || fail "$ran: an error is one line, not $(wc -l <err)"
    grep -q '^mimus\( [a-z]*\)\?: ' err || fail "$ran: an error begins with mimus VERB:"
}
