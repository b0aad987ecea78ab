#!/bin/sh
# symbols.sh HEADER LIBMIMUS LIBMIMUS_POLICY REFUSED
# The shared libraries export what mimus.h promises of them and nothing that it does not declare; the one for games
# needs no library that REFUSED, a pattern, matches.
set -eu
header=$1 mimus=$2 policy=$3 refused=$4
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
refuse() { # message, names
    [ -z "$2" ] || { printf '%s:\n%s\n' "$1" "$2"; bad=1; }
}
exported() {
    nm -D --defined-only "$1" | awk '{print $3}' | sort
}
exported "$mimus" >"$work/exported"
refuse "$mimus exports what $header does not declare" "$(comm -13 "$work/mimus" "$work/exported")"
refuse "$mimus lacks" "$(comm -23 "$work/mimus" "$work/exported")"
exported "$policy" >"$work/exported"
refuse "$policy exports what $header does not declare" "$(comm -13 "$work/mimus" "$work/exported")"
refuse "$policy lacks" "$(comm -23 "$work/policy" "$work/exported")"
refuse "$policy needs" "$(readelf -d "$policy" | grep NEEDED | grep -iE "$refused" || true)"
refuse "$policy calls" "$(nm -D --undefined-only "$policy" | grep -E ' (cl[A-Z]|CLBlast|dlopen)' || true)"
exit $bad
