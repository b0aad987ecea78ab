#!/bin/sh
# Does cost grow as the work does? Settled epochs of the reference workload over the number of samples, and over the
# batch, and what a first start costs with cold and with warm caches.
set -eu

usage() {
    cat <<'TEXT'
usage: bench/scaling.sh [--build DIR] [--epochs E] [--most N]
  --build DIR   where mimus is built (default build)
  --epochs E    epochs a measurement, of which the first does not count (default 4)
  --most N      the largest number of samples (default 2490000: about 1.5 GB of memory)
TEXT
}

build=build epochs=4 most=2490000
while [ $# -gt 0 ]; do
    case $1 in
    --build | --epochs | --most)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in --build) build=$2 ;; --epochs) epochs=$2 ;; --most) most=$2 ;; esac
        shift
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
mimus=$build/mimus
[ -x "$mimus" ] || { echo "bench/scaling.sh: $mimus is not there; build mimus, or name its folder with --build" >&2; exit 1; }

# measure NAME options...: a line of the median epoch and its figure over the floor, behind NAME.
measure() {
    name=$1
    shift
    "$mimus" bench reference --epochs "$epochs" --quiet --json "$@" | python3 -c '
import json, sys
name, document = sys.argv[1], json.load(sys.stdin)
work, device = document["workload"], document["devices"][0]
epoch = device["epoch"]
settled = epoch["settled"]["median"]
print("%-10s %9.3f s %9.1f ns a sample   %5.2f x floor   first epoch %8.3f s, prepared in %6.2f s   %d launches a step"
      % (name, settled, 1e9 * settled / work["samples"], epoch["over_floor"], epoch["first"],
         device["before"]["prepare"], device["step"]["launches"]))' "$name"
}

echo "caches, at 262,144 samples"
caches=$(mktemp -d)
trap 'rm -rf "$caches"' EXIT
mkdir "$caches/pocl"
for name in cold warm; do
    (
        export XDG_CACHE_HOME="$caches" POCL_CACHE_DIR="$caches/pocl"
        measure $name
    )
done
echo "samples, in batches of 4,096"
for share in 10 20 40 100; do
    samples=$((most * share / 100))
    measure $samples --samples $samples
done
echo "batches, at 262,144 samples"
for batch in 1024 4096 16384 65536; do
    measure $batch --batch $batch
done
