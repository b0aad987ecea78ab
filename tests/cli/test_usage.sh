# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Help, and what is said to those who need it.
. "$(dirname "$0")/lib.sh"

verbs=$("$mimus" | sed -n '/^Verbs/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$verbs" | wc -l)" -ge 3 ] || fail "the overview lists the verbs"

run 0
cp out overview
for arguments in --help -h help; do
    run 0 $arguments
    cmp -s out overview || fail "mimus $arguments: not the overview"
    silent err
done

for verb in $verbs; do
    run 0 "$verb" --help
    cp out help
    says out "usage: mimus $verb"
    says out "-h, --help"
    silent err
    [ "$(awk 'length > 80' out | wc -l)" -eq 0 ] || fail "$ran: lines of more than 80 characters"
    run 0 help "$verb"
    cmp -s out help || fail "mimus help $verb: not what mimus $verb --help says"
    run 0 "$verb" -h
    cmp -s out help || fail "mimus $verb -h: not what mimus $verb --help says"
    refused 2 "see mimus $verb --help" "$verb" --no-such-option
    refused 2 "unknown option -%" "$verb" -%
    refused 2 "option --help takes no value" "$verb" --help=me
done

run 0 version
grep -qx 'mimus [0-9]*\.[0-9]*\.[0-9]*' out || fail "mimus version prints the version"
cp out version
run 0 --version
cmp -s out version || fail "mimus --version: not what mimus version says"

refused 2 'did you mean devices? See mimus --help' devics
refused 2 'did you mean devices? See mimus --help' help deivces
refused 2 'unknown verb "xyzzy"; see mimus --help' xyzzy
refused 2 'a verb comes first' --json devices
refused 2 'one argument too many' version 2
refused 2 'one verb at a time' help help help

refused 2 'did you mean --json?' devices --jsno
refused 2 'option --json takes no value' devices --json=yes
refused 2 'option --device needs a value' devices --device
refused 2 'one argument too many' devices gpu
refused 2 'one argument too many' devices -- --json

# Every variable that a program looks at is described.
ran="docs/environment.md"
sources=$here/../..
variables=$(cd "$sources" && grep -rhoE '(getenv\(|&word, )"[A-Z_]+"' src host examples | grep -o '"[A-Z_]*"' | tr -d '"' | sort -u)
[ "$(echo "$variables" | wc -l)" -ge 8 ] || fail "$ran: not all variables are found: $variables"
for variable in $variables; do
    says "$sources/docs/environment.md" "\`$variable\`"
done
MIMUS_GEOMETRY=both run 2 devices --selftest
says err 'MIMUS_GEOMETRY is "both": it must be cpu or gpu, or unset'

# Results that nobody got are a failure.
for arguments in --help version devices "devices --json" "help devices"; do
    code=0
    "$mimus" $arguments >/dev/full 2>err || code=$?
    ran="mimus $arguments >/dev/full"
    [ $code -eq 1 ] || fail "$ran: exit code $code, not 1"
    says err "standard output: No space left on device"
done
exit $bad
