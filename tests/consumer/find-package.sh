#!/bin/sh
# find-package.sh CMAKE GENERATOR CC FLAGS SOURCE PREFIX
# Builds the consumer by find_package(mimus) against the tree installed at PREFIX, and runs it.
set -eu
cmake=$1 generator=$2 cc=$3 flags=$4 source=$5 prefix=$6
build=$prefix/consumer-build
"$cmake" -G "$generator" -S "$source" -B "$build" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$build"
for target in mimus policy; do
    "$build/with-$target"
done
