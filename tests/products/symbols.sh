#!/bin/sh
# symbols.sh HEADER LIBMIMUS LIBMIMUS_POLICY
# The shared libraries export what mimus.h declares and nothing else; the one for games knows no OpenCL.
set -eu
header=$1 mimus=$2 policy=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The function names of the MIMUS_API declarations on standard input.
declared() {
    tr '\n' ' ' | grep -oE 'MIMUS_API [^;(]*\(' | grep -oE 'mimus_[a-z0-9_]+\($' | tr -d '(' | sort
}
declared <"$header" >"$work/mimus"
sed '/libmimus only \*\//,$d' "$header" | declared >"$work/policy"
[ "$(wc -l <"$work/policy")" -gt 0 ]
[ "$(wc -l <"$work/mimus")" -gt "$(wc -l <"$work/policy")" ]

bad=0
compare() { # declared names, library
    nm -D --defined-only "$2" | awk '{print $3}' | sort >"$work/exported"
    if comm -13 "$1" "$work/exported" | grep .; then
        echo "$2: exports what $header does not declare"
        bad=1
    fi
}
compare "$work/mimus" "$mimus"
compare "$work/policy" "$policy"
if readelf -d "$policy" | grep NEEDED | grep -iE 'opencl|clblast|stdc\+\+'; then
    echo "$policy: a game must not need this"
    bad=1
fi
if nm -D --undefined-only "$policy" | grep -E ' (cl[A-Z]|CLBlast|dlopen)'; then
    echo "$policy: a game must not call this"
    bad=1
fi
exit $bad
