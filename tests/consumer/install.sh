#!/bin/sh
# install.sh CMAKE BUILD PREFIX
# Installs the build, then moves what was installed: it must work wherever it lies.
set -eu
rm -rf "$3" "$3.first"
"$1" --install "$2" --prefix "$3.first" >/dev/null
mv "$3.first" "$3"
"$3/bin/mimus" version
for page in environment json performance recording run; do # which help and header name
    [ -s "$3/share/doc/mimus/docs/$page.md" ] || { echo "docs/$page.md is not installed"; exit 1; }
done
