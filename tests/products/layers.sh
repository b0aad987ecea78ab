#!/bin/sh
# layers.sh CC TABLE SOURCE
# A layer sees the headers of the layers below it, and no others. TABLE has a line a layer, written by CMake from
# the real include paths: "name own-folder;... all-folders;...". What each layer should see is said here
# once more, so that an edge added in CMake shows.
set -eu
cc=$1 table=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

seen_by() {
    case $1 in
    base) echo "" ;;
    data) echo "base" ;;
    model) echo "base data" ;;
    reference) echo "base data model" ;;
    report) echo "base" ;;
    host_core) echo "base" ;;
    host_ops) echo "base data model host_core" ;;
    host_net) echo "base data model host_core host_ops" ;;
    host_train) echo "base data model host_core host_ops host_net" ;;
    app) echo "base data model reference report host_core host_ops host_net host_train" ;;
    cli) echo "" ;;
    *) echo "layers.sh: what may the layer $1 see?" >&2; exit 1 ;;
    esac
}

headers_of() { # layer
    folders=$(awk -v layer="$1" '$1 == layer {print $2}' "$table" | tr ';' ' ')
    for folder in $folders; do
        (cd "$folder" && ls) | grep '\.h$' || true
    done
}

layers=$(awk '{print $1}' "$table")
for layer in $layers; do
    seen=" $(seen_by "$layer") $layer "
    probe=$work/$layer.c
    for other in $layers; do
        case $seen in
        *" $other "*) not='!' verb="cannot see" ;;
        *) not='' verb="sees" ;;
        esac
        for header in $(headers_of "$other"); do
            printf '#if %s__has_include("%s")\n#error layer %s %s %s of %s\n#endif\n' \
                "$not" "$header" "$layer" "$verb" "$header" "$other" >>"$probe"
        done
    done
    echo 'typedef int probe;' >>"$probe"
    flags=$(awk -v layer="$layer" '$1 == layer {print $3}' "$table" | tr ';' '\n' | sed -n 's/^./-I&/p')
    if ! $cc -fsyntax-only $flags "$probe" 2>"$work/errors"; then
        sed -n 's/.*error: \(#error \)\{0,1\}//p' "$work/errors" | sort -u
        bad=1
    fi
done

# What include paths cannot keep out.
refuse() { # message, then what grep found
    [ -z "$2" ] || { printf '%s:\n%s\n' "$1" "$2"; bad=1; }
}
cd "$source"
refuse "an include that walks through folders goes around the layers" \
    "$(grep -rnE '^ *# *include "[^"]*/' src host examples tests --include='*.[ch]' || true)"
refuse "only host/ knows OpenCL" \
    "$(grep -rnE '# *include *[<"](CL/|opencl\.h)' src include examples --include='*.[ch]' || true)"
refuse "only gemm_clblast.c knows CLBlast" \
    "$(grep -rniE '# *include.*clblast(_c)?\.h' src host include examples --include='*.[ch]' | grep -v '^host/ops/gemm_clblast\.c' || true)"
refuse "two headers of one name" \
    "$(for layer in $layers; do headers_of "$layer"; done | sort | uniq -d)"
exit $bad
