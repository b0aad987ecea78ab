# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Training, resuming and judging from the command line.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
"$make_rec" play.rec 3000 && "$make_rec" long.rec 40000 || exit 1
small="--gemm tile --hidden 16 --epochs 3 --batch 50 --lr 0.01"

# -------------------------------------------------------------------- usage
refused 2 "no recording is named" train -o run
refused 2 "-o RUN is missing" train play.rec
refused 2 "leave --output out" train --resume run -o other
refused 2 'batch: expected' train play.rec -o run --batch 0
refused 2 'tensorboard: expected one of off|on' train play.rec -o run --tensorboard maybe
refused 2 'takes no value' train play.rec -o run --no-tensorboard=1
refused 2 'did you mean --epochs?' train play.rec -o run --epoch-s 3
refused 2 'could be any of' train play.rec -o run --s 3
refused 2 'did you mean drop?' train play.rec -o run --illegal dorp
refused 2 'have no options' train play.rec -o run --set senses
refused 2 'have no options' train play.rec -o run --senses obs
refused 1 'no-such.rec' train no-such.rec -o run
refused 1 'no-such.json' train play.rec -o run --config no-such.json
refused 1 'no-such-run' train --resume no-such-run
refused 1 "folder is empty" train --resume ""
refused 1 "folder is empty" train play.rec -o ""
mkfifo pipe
refused 1 'pipe: not a regular file' train pipe -o run
refused 1 'pipe: not a regular file' eval pipe play.rec
refused 1 'play.rec: not a safetensors file; a run folder or a checkpoint belongs here' eval play.rec play.rec
refused 3 'no-such-device' train play.rec -o run --device no-such-device
refused 1 '/dev/null: ' train play.rec -o /dev/null/run $small -q
[ ! -e run ] || fail "nothing was trained, and there is a folder"
echo '{"epochs": 3, "bacth": 4}' >bad.json
refused 2 'bacth' train play.rec -o run --config bad.json

# ------------------------------------------------------------------ training
run 0 train play.rec -o run $small
says out "run: finished after epoch 3; 3 epochs in "
says out ", 3 reads from the device"
says out "mimus eval run "
says out "move"
[ "$(grep -c '^epoch [123]/3  loss ' err)" -eq 3 ] || fail "$ran: not a line an epoch"
! grep -q "$(printf '\033')" out err || fail "$ran: escapes where there is no terminal"
refused 1 "run" train play.rec -o run $small

ls run/events.out.tfevents.* >out || fail "$ran: no event file"
run 0 train play.rec -o quiet $small --no-tensorboard -q
! ls quiet/events.out.tfevents.* 2>out || fail "$ran: an event file"

# Foreign files, with their reader's options.
foreign="$here/../data/npz/imitation.npz --heads move:4"
run 0 train $foreign -o foreign --gemm tile --hidden 16 --epochs 1 --held-out 0
says out "training loss"
run 0 eval foreign $foreign
says out "7 samples in 3 episodes"
run 1 eval foreign $here/../data/npz/imitation.npz --heads 3 -q

# Options count more than the file, the file more than the defaults; the same settings give the same run.
echo '{"epochs": 9, "gemm": "tile", "hidden": [16], "batch": 50, "lr": 0.01}' >good.json
run 0 train --epochs=3 --config good.json -o same --quiet --json -- play.rec
silent err
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" epochs <out)" = 3 ] || fail "$ran: --epochs does not count more than --config"
cmp -s run/best.safetensors same/best.safetensors || fail "$ran: other settings than those of run"
cmp -s out same/summary.json || fail "$ran: --json is not the run's summary.json"

# --------------------------------------------------------------------- resume
run 0 train --resume same --epochs 5 --json
[ "$("$json" epochs <out)" = 5 ] || fail "$ran: no 5 epochs"
[ "$("$json" epochs_run <out)" = 2 ] || fail "$ran: not 2 more epochs"
[ "$(wc -l <same/metrics.jsonl)" -eq 5 ] || fail "$ran: not 5 rows of metrics"
run 0 train --resume same play.rec --memory 1G --epochs 6
[ "$(grep -c '^epoch 6/6 ' err)" -eq 1 ] || fail "$ran: no sixth epoch"
run 0 train --resume same --patience 9 --json
[ "$("$json" epochs <out)" = 6 ] || fail "$ran: forgot that the run has 6 epochs"
refused 2 'cannot change' train --resume same --batch 7
run 1 train --resume same long.rec --epochs 7 -q
says err "same: was trained on recording"
# A run remembers which parts it was made of, and is judged on them.
parts="--where move!=left --episodes 5: --limit 900"
run 0 train play.rec -o part $small $parts -q
run 0 train --resume part --epochs 4 --json
[ "$("$json" epochs_run <out)" = 1 ] || fail "$ran: not one more epoch"
run 1 train --resume part play.rec --epochs 5 -q
says err "part: was trained on recording"
run 0 eval part play.rec $parts --part held-out
run 2 eval part play.rec --part held-out
says err "judge it whole"
mv same/config.json config.json
refused 1 'same/config.json: ' train --resume same --epochs 8
run 0 train --resume same -q # puts the settings of the checkpoint back
[ -e same/config.json ] || fail "$ran: no config.json"

# A plan that is not for what the device is used as.
MIMUS_GEOMETRY=gpu run 1 train long.rec -o other --plan block -q
says err "; use --plan phased"
[ ! -e other ] || fail "$ran: leaves a folder"

# Few steps an epoch: what to try, until it is too late to.
run 0 train play.rec -o few --gemm tile --hidden 16 --epochs 1
says err "such as --batch 64"
run 0 train --resume few --epochs 2
! grep -q -e --batch err || fail "$ran: a run that goes on cannot change its batch"

# Nothing is left to do: one line says so, and nothing is opened for it.
run 0 train --resume run --device no-such-device
silent err
[ "$(wc -l <out)" -eq 1 ] || fail "$ran: not one line"
says out "run: finished after epoch 3, nothing is left to do; to go on: mimus train --resume run --epochs 6"

# ----------------------------------------------------------------- divergence
run 4 train play.rec -o wild $small --lr 1e6
says err "wild: training diverged: the loss of epoch 3 is "
says err "start again with a smaller --lr than 1e+06 or with --clip 1"
says out "wild: diverged after epoch 3; 3 epochs in "
says out "To start again: mimus train RECORDING... -o NEW --config wild/config.json --lr LESS"
[ "$("$json" ended <wild/summary.json)" = diverged ] || fail "$ran: its summary does not say so"
run 4 train --resume wild

# ----------------------------------------------------------------------- eval
refused 2 "no run or checkpoint is named" eval
refused 2 "no recording is named" eval run
refused 2 'did you mean held-out?' eval run play.rec --part heldout
refused 1 'no-such-run' eval no-such-run play.rec
refused 1 'no-such.rec' eval run no-such.rec
refused 3 'no-such-device' eval run play.rec --device no-such-device -q
run 0 eval run play.rec -q
silent err
says out "run, epoch "
says out "3,000 samples in 60 episodes"
says out "--part held-out is what it has not seen"
says out "all at once"
says out "illegal is how often"
! grep -q "player's action from top" out || fail "$ran: a matrix that nobody asked for"
run 0 eval run/last.safetensors play.rec --confusion
says out "A row below is an action of the player"
says out "move: the player's action from top to bottom"
says out "  right"
run 0 eval run play.rec --json --part held-out
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" part <out)" = held-out ] || fail "$ran: another part"
[ "$("$json" heads 0 name <out)" = move ] || fail "$ran: no heads"
run 0 eval run play.rec --part held-out -q
! grep -q "has not seen" out || fail "$ran: that is the held-out part already"
run 0 eval run long.rec -q
! grep -q "has not seen" out || fail "$ran: it was trained on another recording"

# ---------------------------------------------------------------------- names
# What a file's names would do to a terminal does not reach it, whatever the locale.
"$make_rec" bad.rec 3000 hostile || exit 1
control=$(printf '[\001-\010\013-\037\177]')
introducer=$(printf '\302\233')
for locale in C C.UTF-8; do
    export LC_ALL=$locale
    rm -rf badly
    for arguments in "info bad.rec" "train bad.rec -o badly $small" "eval badly bad.rec --confusion" \
        "eval badly play.rec"; do
        code=0
        ran="LC_ALL=$locale mimus $arguments"
        "$mimus" $arguments >out 2>err </dev/null || code=$?
        [ "$code" -eq 0 ] || [ "$arguments" = "eval badly play.rec" ] || fail "$ran: exit code $code"
        ! LC_ALL=C grep -q "$control" out err || fail "$ran: control characters"
        ! LC_ALL=C grep -q "$introducer" out err || fail "$ran: a control sequence introducer"
    done
done
exit $bad
