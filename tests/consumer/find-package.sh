#!/bin/sh
# find-package.sh CMAKE CC FLAGS SOURCE PREFIX
# Builds the consumer by find_package(mimus) against the tree installed at PREFIX, and runs it.
set -eu
cmake=$1 cc=$2 flags=$3 source=$4 prefix=$5
build=$prefix/consumer-build
"$cmake" -S "$source" -B "$build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$build"
for target in mimus policy; do
    "$build/with-$target"
done
