# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# mimus bench on a tiny workload: what it says, not how fast anything is.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
"$make_rec" play.rec 2000 || exit 1
small="--hidden 8 --batch 100 --gemm tile"

# ---------------------------------------------------------------------- usage
refused 2 'no workload "huge"; there are: reference, reference-32k, wide, small' bench huge
refused 2 'no workload "play.rec"; there are' bench small play.rec
refused 2 'samples: expected an integer from 1 to' bench --samples 0
refused 2 'samples: expected an integer from 1 to' bench --samples 12k
refused 2 'samples: expected 2 to' bench --samples 1
refused 2 '2 or more' bench --epochs 1
refused 2 'measured whole' bench --samples 100 --recording play.rec
refused 2 'all devices are asked for' bench --device cpu --all-devices
refused 2 'ablate: goes with one device' bench --ablate --all-devices
refused 2 'hidden: expected' bench --hidden 12,x
refused 1 'no-such.rec' bench --recording no-such.rec
refused 2 'gemm: the block plan has matrix products of its own' bench --plan block --gemm tile
refused 2 'store: expected f32, f16 or bf16' bench --store auto
refused 2 'ablate: its slow stages build batches of senses in 32 bits' bench --ablate --store f16
refused 1 'no/such' bench small -o no/such/report.html # before anything is measured
refused 3 'no-such-device' bench --samples 100 --device no-such-device -q

# --------------------------------------------------------------------- a table
run 0 bench small --samples 2000 $small
says out "small: 2,000 samples (600 held out), 143 senses, 47 actions in 7 heads; hidden 8, batch 100, senses in f32"
says out "launches and 1 blocking read an epoch"
for word in multiply-adds upload gather forward loss backward optimizer "whole step" "over floor" agreement; do
    says out "$word"
done
says err "measure: "

# ---------------------------------------------------------------- every device, a recording
run 0 bench --recording play.rec $small --epochs 2 --all-devices --json -q
silent err
"$json" <out || fail "$ran: not a JSON object"
member() { "$json" "$@" <out; }
[ "$(member workload samples)" = 2000 ] || fail "$ran: another recording"
[ "$(member workload files 0)" = play.rec ] || fail "$ran: the file is not named"
[ "$(member workload title)" = "play.rec, trained as reference is" ] || fail "$ran: another title"
[ "$(member devices 0 epoch reads)" = 1 ] || fail "$ran: not one read an epoch"
[ "$(member devices 0 step launches)" = "$(member devices 0 step expected_launches)" ] ||
    fail "$ran: other launches than expected"
for path in "limits flops" "limits triad" "limits upload" "epoch first" "epoch settled median" "epoch floor" \
    "epoch over_floor" "step seconds" "step enqueue_share" "step phases 4 seconds" held_out_agreement loss_difference; do
    member devices 0 $path | grep -q '^[0-9]' || fail "$ran: $path is no number"
done
member devices 0 loss_difference | awk '{exit !($1 < 1e-4)}' || fail "$ran: the losses are off"
member reference_losses 9 | grep -q '^[0-9]' || fail "$ran: not ten losses"

run 0 bench --recording play.rec $small --epochs 2 --all-devices -q
for word in "over floor" agreement "loss off" "those in double precision"; do
    says out "$word"
done

# ---------------------------------------------------------------- the change, step by step
run 0 bench --recording play.rec $small --epochs 2 --ablate -q
for word in uploaded resident "one loss" "one read" "chosen plan" "large batch" "The fast way agrees with the slow one" points; do
    says out "$word"
done
run 0 bench --recording play.rec $small --epochs 2 --ablate --json -q
[ "$(member ablation agrees)" = true ] || fail "$ran: the ways of training do not agree"
[ "$(member ablation stages 3 epoch reads)" = 1 ] || fail "$ran: more than one read an epoch"
for path in "tolerance" "difference" "stages 0 uploaded_bytes" "stages 0 losses" "stages 5 batch" "stages 5 lr" \
    "stages 5 epoch settled median" "stages 5 epoch first" "stages 2 held_out_agreement" "stages 1 difference"; do
    member ablation $path | grep -q '^-\{0,1\}[0-9]' || fail "$ran: $path is no number"
done

# ---------------------------------------------------------------- workloads together
run 0 bench small wide --samples 1000 $small --epochs 2 --json -q -o report.html
[ "$(member workloads 0 workload name)" = small ] || fail "$ran: the first is another workload"
[ "$(member workloads 1 workload name)" = wide ] || fail "$ran: the second is another workload"
for text in '<title>mimus bench</title>' '<h2>small</h2>' '<h2>wide</h2>' 'x floor' '</html>'; do
    says report.html "$text"
done
exit $bad
