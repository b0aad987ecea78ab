#!/bin/sh
# pkg-config.sh CC FLAGS SOURCE PREFIX
# Builds the consumer with what pkg-config says of the tree installed at PREFIX, and runs it.
set -eu
cc=$1 flags=$2 source=$3 prefix=$4
pc=$(dirname "$(find "$prefix" -name mimus.pc)")
export PKG_CONFIG_PATH="$pc" LD_LIBRARY_PATH="$pc/.."
for name in mimus mimus-policy; do
    # shellcheck disable=SC2046,SC2086 # words are meant
    $cc $flags -std=c11 "$source" -o "$prefix/consumer-$name" $(pkg-config --cflags --libs $name)
    "$prefix/consumer-$name"
done
