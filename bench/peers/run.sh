#!/bin/sh
# The same training on the same recording with mimus and with others, one after another on the same cores.
set -eu
cd "$(dirname "$0")/../.."

usage() {
    cat <<'TEXT'
usage: bench/peers/run.sh [--samples N] [--epochs E] [--batch B] [--hidden N,N,...]
                          [--workload NAME] [--device SELECTOR] [--markdown]
  --samples N        of the arena's recording; default 262144
  --epochs E         the first is not settled; default 5
  --batch, --hidden  in place of the workload's
  --workload NAME    as `mimus bench` has them, with their batch, widths and learning rate; default reference
  --device SELECTOR  that mimus uses; default cpu. tinygrad takes the first platform's first device
  --markdown         print the table as Markdown
Needs Python 3.11 with venv, and pip's registry the first time: the versions of requirements.txt go into build-ci/peers/.
Each program's output is in build-ci/peers/NAME.log. Exits with 1 when one of them failed.
TEXT
}

samples=262144 workload=reference device=cpu markdown=''
set_options='--epochs 5'
while [ $# -gt 0 ]; do
    case $1 in
    --samples | --epochs | --batch | --hidden | --workload | --device)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --samples) samples=$2 ;;
        --workload) workload=$2 ;;
        --device) device=$2 ;;
        *) set_options="$set_options $1 $2" ;;
        esac
        shift
        ;;
    --markdown) markdown=--markdown ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

peers=$PWD/bench/peers
out=$PWD/build-ci/peers
python=$out/venv/bin/python
mkdir -p "$out"
export TORCHINDUCTOR_CACHE_DIR="$out/inductor" CACHEDB="$out/tinygrad.db"

say() {
    echo "== $*" >&2
}

# attempt NAME command...: runs it into its log; tells when it fails.
attempt() {
    name=$1
    shift
    say "$name"
    "$@" >"$out/$name.log" 2>&1 || {
        tail -n 5 "$out/$name.log" >&2
        echo "$name failed: $out/$name.log" >&2
        return 1
    }
}

install() {
    [ -x "$python" ] || python3 -m venv "$out/venv"
    "$python" -m pip install -q -r "$peers/requirements.txt"
}

build() {
    cmake -G Ninja -B "$out/mimus" -DCMAKE_BUILD_TYPE=Release -DMIMUS_TESTS=OFF
    ninja -C "$out/mimus"
}

attempt install install
attempt build build
rm -f "$out/play.rec"
attempt record "$out/mimus/mimus-arena" record --samples "$samples" --seed 1 -o "$out/play.rec"
say mimus
# shellcheck disable=SC2086 # a list of options
"$out/mimus/mimus" bench "$workload" --recording "$out/play.rec" --device "$device" $set_options --json -q \
    >"$out/mimus.json"
attempt prepare "$python" "$peers/recording.py" "$out/play.rec" "$out/mimus.json" -o "$out/play.npz"

# peer NAME SCRIPT [OPTION]: its result's path goes to `results`.
results='' failed=0
peer() {
    title=$1 script=$peers/$2
    shift 2
    rm -f "$out/$title.json"
    if attempt "$title" "$python" "$script" "$@" "$out/play.npz" "$out/mimus.json" -o "$out/$title.json"; then
        results="$results $out/$title.json"
    else
        failed=1
    fi
}
peer torch-eager torch_peer.py
peer torch-compile torch_peer.py --compile
peer jax jax_peer.py
peer tinygrad tinygrad_peer.py

# shellcheck disable=SC2086 # a list of files
"$python" "$peers/table.py" $markdown "$out/mimus.json" $results
exit $failed
