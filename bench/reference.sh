#!/bin/sh
# The bench on real play in place of what it makes up: records the arena, and measures training on that.
set -eu
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: bench/reference.sh [--samples N] [--build DIR] [WORKLOAD...] [OPTION...]
  --samples N    of the arena's recording; default 2490000, all of the reference workload: 1.5 GB of disk
  --build DIR    where mimus and mimus-arena are; default build
  WORKLOAD, OPTION   for mimus bench: reference-32k, --ablate, --epochs 6, -o report.html, ...
The recording stays in build-ci/arena-N.rec for the next time; the same seed gives the same bytes on every machine.
TEXT
}

samples=2490000 build=build
while [ $# -gt 0 ]; do
    case $1 in
    --samples | --build)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in --samples) samples=$2 ;; --build) build=$2 ;; esac
        shift 2
        ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
    esac
done
[ -x "$build/mimus-arena" ] || { echo "bench/reference.sh: $build/mimus-arena is not there; build mimus, or name its folder with --build" >&2; exit 1; }
mkdir -p build-ci
recording=build-ci/arena-$samples.rec
if [ ! -f "$recording" ]; then
    trap 'rm -f "$recording.new"' EXIT
    rm -f "$recording.new"
    "$build/mimus-arena" record --samples "$samples" --seed 1 -o "$recording.new"
    mv "$recording.new" "$recording"
fi
"$build/mimus" bench "$@" --recording "$recording"
