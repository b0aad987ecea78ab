#!/bin/sh
# From a fresh clone to a trained policy that plays: installs, builds, records a game, trains, judges, plays.
set -eu
cd "$(dirname "$0")/.."

case ${1-} in
'') ;;
*)
    cat <<'TEXT'
usage: ci/quickstart.sh
Works in build/ and build/quickstart/. In the environment:
  MIMUS_QUICKSTART_SAMPLES   how many samples to record and train on (200000)
  MIMUS_DEVICE               the device to train on: gpu, cpu, 0:1 or part of a name
TEXT
    case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
    ;;
esac

samples=${MIMUS_QUICKSTART_SAMPLES:-200000}
work=build/quickstart
started=$(date +%s)

# step TEXT command...: says what is done and with which command, then how long it took.
step() {
    printf '\n== %s\n' "$1"
    shift
    echo "   $*" | sed 's/^   quietly /   /'
    began=$(date +%s)
    "$@"
    printf '   %d s\n' $(($(date +%s) - began))
}

quietly() {
    log=build/quickstart.log
    mkdir -p build
    "$@" >$log 2>&1 && return 0
    tail -n 30 $log >&2
    echo "quickstart.sh: failed: $*; the whole of its output: $log" >&2
    return 1
}

step "Installing what it needs" sh ci/deps.sh --run
step "Configuring build/" quietly cmake --preset release
step "Building" quietly cmake --build build --target mimus-cli mimus-arena
rm -rf $work
mkdir -p $work
step "The devices here" build/mimus devices
step "Recording two scripted players" \
    build/mimus-arena record --samples "$samples" --seed 1 -o $work/play.rec
step "Training a policy on them" build/mimus train $work/play.rec -o $work/run
step "Judging it on the episodes held out" build/mimus eval $work/run $work/play.rec --part held-out
step "Letting it play against the expert and against chance" build/mimus-arena play --policy $work/run --episodes 20
printf '\nDone in %d s. The recording and the run are in %s/.\n' $(($(date +%s) - started)) $work
