#!/bin/sh
# Whether senses in 16 bits learn as well as in 32: the same trainings in every form, seed by seed.
set -eu

usage() {
    cat <<'TEXT'
usage: bench/store.sh [--samples N] [--epochs E] [--seeds K] [--build FOLDER] [--recording FILE] [-- SETTING...]
  --samples N        of the arena's recording; default 100000
  --epochs E         default 6
  --seeds K          trainings a form; a seed draws split, first parameters and order; default 5
  --build FOLDER     where mimus and mimus-arena are; default build
  --recording FILE   in place of the arena's
  SETTING...         for mimus train, as --hidden 64,64 or --plan phased
Prints, for each form, the held-out agreement after the last epoch (mean over heads) as mean and standard error over the
seeds, and how far it is from f32 with the same seed; the least seconds of an epoch.
TEXT
}

samples=100000 epochs=6 seeds=5 build=build recording=''
while [ $# -gt 0 ]; do
    case $1 in
    --samples | --epochs | --seeds | --build | --recording)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --samples) samples=$2 ;;
        --epochs) epochs=$2 ;;
        --seeds) seeds=$2 ;;
        --build) build=$2 ;;
        --recording) recording=$2 ;;
        esac
        shift
        ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM
[ -n "$recording" ] || {
    recording=$out/play.rec
    "$build/mimus-arena" record --samples "$samples" --seed 1 -o "$recording" >"$out/log"
}

# The last epoch's agreement, mean over heads, and the least seconds of an epoch.
result() {
    awk -F'[,{}]' '{
        sum = heads = 0
        for (i = 1; i <= NF; i++) {
            split($i, pair, ":")
            if (pair[1] == "\"held_out_agreement\"") { sum += pair[2]; heads++ }
            if (pair[1] == "\"seconds\"" && (NR == 1 || pair[2] < least)) least = pair[2]
        }
    } END { printf "%.6f %.4f\n", sum / heads, least }' "$1"
}

seed=1
while [ "$seed" -le "$seeds" ]; do
    for form in f32 f16 bf16; do
        echo "== $form, seed $seed" >&2
        "$build/mimus" train "$recording" -o "$out/run" --epochs "$epochs" --seed "$seed" --store "$form" -q "$@" \
            >"$out/log" || { tail -n 5 "$out/log" >&2; exit 1; }
        echo "$form $seed $(result "$out/run/metrics.jsonl")" >>"$out/results"
        rm -r "$out/run"
    done
    seed=$((seed + 1))
done

awk '
function mean(values, form,    s, sum) {
    for (s = 1; s <= seeds; s++) sum += values[form, s]
    return sum / seeds
}
function error(values, form,    s, m, sum) {
    m = mean(values, form)
    for (s = 1; s <= seeds; s++) sum += (values[form, s] - m) ^ 2
    return seeds > 1 ? sqrt(sum / (seeds - 1) / seeds) : 0
}
{
    agreement[$1, $2] = 100 * $3
    if (!($1 in least) || $4 < least[$1]) least[$1] = $4
    if ($2 > seeds) seeds = $2
}
END {
    split("f32 f16 bf16", forms)
    print "| form | held-out agreement | beside f32, seed by seed | an epoch |"
    print "|---|---|---|---|"
    for (f = 1; f <= 3; f++) {
        form = forms[f]
        for (s = 1; s <= seeds; s++) beside[form, s] = agreement[form, s] - agreement["f32", s]
        apart = form == "f32" ? "" : sprintf("%+.3f +- %.3f points", mean(beside, form), error(beside, form))
        printf "| %s | %.2f%% +- %.2f | %s | %.2f s |\n", form, mean(agreement, form), error(agreement, form), apart, least[form]
    }
}' "$out/results"
