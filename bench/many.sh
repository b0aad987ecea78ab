#!/bin/sh
# Many runs at once beside as many processes, and beside JAX under vmap: time, and memory of the host.
set -eu
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: bench/many.sh [--samples N] [--epochs E] [--runs R] [--build FOLDER] [--recording FILE] [--no-jax] [-- SETTING...]
  --samples N        of the arena's recording; default 262144
  --epochs E         default 3; the first one of each program is left out of its seconds an epoch
  --runs R           at once; default 16
  --build FOLDER     where mimus and mimus-arena are; default build
  --recording FILE   in place of the arena's
  --no-jax           leave JAX out, which else is taken from build-ci/peers (bench/peers/run.sh puts it there)
  SETTING...         for mimus train, as --hidden 64,64 (default) or --plan phased
Prints seconds an epoch of all runs, of each run, the whole time, and the largest resident memory: for processes, the
sum of all of them. A device that is the processor has the recording in that memory; it is in each process once.
TEXT
}

samples=262144 epochs=3 runs=16 build=build recording='' jax=1
while [ $# -gt 0 ]; do
    case $1 in
    --samples | --epochs | --runs | --build | --recording)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --samples) samples=$2 ;;
        --epochs) epochs=$2 ;;
        --runs) runs=$2 ;;
        --build) build=$2 ;;
        --recording) recording=$2 ;;
        esac
        shift
        ;;
    --no-jax) jax=0 ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
[ $# -gt 0 ] || set -- --hidden 64,64

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM
[ -n "$recording" ] || {
    recording=$out/play.rec
    "$build/mimus-arena" record --samples "$samples" --seed 1 -o "$recording" >"$out/log"
}

# measure NAME command...: seconds and KiB of the largest resident set into NAME.cost
measure() {
    cost=$out/$1.cost
    shift
    /usr/bin/time -f '%e %M' -o "$cost" "$@" >"$out/log" 2>&1 || {
        tail -n 5 "$out/log" >&2
        exit 1
    }
}

# settled FILE...: the mean of the epochs' seconds but the first one's
settled() {
    awk '/"epoch":1,/ { next } match($0, /"seconds":[0-9.e+-]+/) {
        sum += substr($0, RSTART + 10, RLENGTH - 10); count++
    } END { if (count) printf "%.4f", sum / count; else print "nan" }' "$@"
}

# row NAME seconds-an-epoch whole-seconds KiB
row() {
    awk -v name="$1" -v epoch="$2" -v whole="$3" -v memory="$4" -v runs="$runs" 'BEGIN {
        printf "%-28s %9.3f %9.3f %9.1f %9.0f\n", name, epoch, epoch / runs, whole, memory / 1024 }'
}


# kernels are compiled, and tiles timed, before anybody is measured
"$build/mimus" train "$recording" -o "$out/warm" --epochs 1 -q --seed 1 "$@" >"$out/log"
"$build/mimus" train "$recording" -o "$out/warm-own" --epochs 1 -q --runs "$runs" "$@" >"$out/log"
"$build/mimus" train "$recording" -o "$out/warm-shared" --epochs 1 -q --runs "$runs" --share-batches "$@" >"$out/log"

printf '%-28s %9s %9s %9s %9s\n' "$runs runs" "epoch, s" "a run, s" "whole, s" "MiB"
for batches in own shared; do
    option=--no-share-batches
    [ $batches = own ] || option=--share-batches
    measure $batches "$build/mimus" train "$recording" -o "$out/$batches" --epochs "$epochs" --no-tensorboard -q \
        --runs "$runs" $option "$@"
    read -r whole memory <"$out/$batches.cost"
    row "one pass, $batches batches" "$(settled "$out/$batches/metrics.jsonl")" "$whole" "$memory"
done

began=$(date +%s.%N)
run=0
while [ "$run" -lt "$runs" ]; do
    (measure "process-$run" "$build/mimus" train "$recording" -o "$out/process-$run" --epochs "$epochs" \
        --no-tensorboard -q --seed "$run" --split-seed 0 "$@") &
    run=$((run + 1))
done
wait
whole=$(awk -v began="$began" -v ended="$(date +%s.%N)" 'BEGIN { print ended - began }')
memory=$(cat "$out"/process-*.cost | awk '{ sum += $2 } END { print sum }')
# all of them run at once: an epoch of all is the mean of theirs
row "$runs processes" "$(settled "$out"/process-*/metrics.jsonl)" "$whole" "$memory"

python="build-ci/peers/venv/bin/python"
if [ $jax = 1 ] && [ -x $python ]; then
    "$build/mimus" bench small --recording "$recording" --epochs "$epochs" --json -q >"$out/ours.json"
    $python bench/peers/recording.py "$recording" "$out/ours.json" -o "$out/play.npz" >"$out/log"
    for batches in own shared; do
        option=''
        [ $batches = own ] || option=--shared
        measure "jax-$batches" $python bench/peers/jax_many_peer.py --runs "$runs" $option "$out/play.npz" \
            "$out/ours.json" -o "$out/jax-$batches.json"
        read -r whole memory <"$out/jax-$batches.cost"
        epoch=$($python -c 'import json, sys; s = json.load(open(sys.argv[1]))["settled"]; print(sum(s) / len(s))' \
            "$out/jax-$batches.json")
        row "JAX vmap, $batches batches" "$epoch" "$whole" "$memory"
    done
elif [ $jax = 1 ]; then
    echo "JAX is not there: bench/peers/run.sh installs it" >&2
fi
