# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Many runs in one pass, from the command line.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
"$make_rec" play.rec 3000 || exit 1
small="--gemm tile --hidden 16 --epochs 3 --batch 50 -q"

# -------------------------------------------------------------------- usage
refused 2 'lr has 2 values and seed has 3: give equally many' train play.rec -o many --lr 1e-3,2e-3 --seed 1,2,3
refused 2 'runs is 2, and the lists have 3 values' train play.rec -o many --runs 2 --seed 1,2,3
refused 2 'lr: expected a number above 0 to 1e+06, found x' train play.rec -o many --lr 1e-3,x
refused 2 'batch: expected an integer' train play.rec -o many --batch 50,100
refused 2 'keep: expected all or best:N' train play.rec -o many --keep worst
refused 2 'takes no value' train play.rec -o many --grid=on
refused 1 'folds need as many episodes' train play.rec -o many --folds 400 -q
[ ! -e many ] || fail "nothing was trained, and there is a folder"
run 0 train --help
says out '--lr X[,...]'
says out '--head-weights X,X,...|none[/...]'
says out '--share-batches '

# ------------------------------------------------------------------ training
# shellcheck disable=SC2086 # a list of options
run 0 train play.rec -o many $small --lr 1e-2,5e-3 --seed 1,2 --grid --share-batches
says out 'many: 4 runs finished; 3 epochs in '
says out ', 3 reads from the device, batches shared'
says out 'mean of the runs, +- its standard error: held-out loss '
for word in run lr seed run-03 0.005 'best: run-0' 'mimus eval many RECORDING'; do
    says out "$word"
done
[ "$(grep -c '^  run-0' out)" -eq 4 ] || fail "$ran: not a row a run"
# each is what its own settings train alone
run 0 train play.rec -o alone --config many/run-02/config.json -q
cmp -s alone/last.safetensors many/run-02/last.safetensors || fail "a run alone is another"
# and the whole is what its settings train again
run 0 train play.rec -o again --config many/config.json -q --json
cmp -s again/run-03/last.safetensors many/run-03/last.safetensors || fail "the same settings give other runs"
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" runs 3 name <out)" = run-03 ] || fail "$ran: no row of run-03"
"$json" standard_error best_loss <out | grep -q '^[0-9]' || fail "$ran: no standard error"

# ------------------------------------------------------------------- progress
# shellcheck disable=SC2086
run 0 train play.rec -o folds --gemm tile --hidden 16 --epochs 2 --batch 50 --folds 3
[ "$(grep -c '^epoch [12]/2  3 runs  loss ' err)" -eq 2 ] || fail "$ran: not a line an epoch"
says out 'fold'

# --------------------------------------------------------------------- judging
run 0 eval many play.rec --part held-out -q
says out 'many, 4 runs as one, on '
says out 'run-03'
says out 'as one'
refused 2 'held out different folds' eval folds play.rec --part held-out -q
run 0 eval folds/run-01 play.rec --part held-out -q
says out 'folds/run-01, epoch '

# -------------------------------------------------------------------- resuming
run 0 train --resume many -q
says out 'many: 4 runs finished; 0 epochs in '
run 0 train --resume many --epochs 4 -q
says out 'many: 4 runs finished; 1 epoch in '
run 0 train --resume many/run-01 --epochs 5 -q
says out 'many/run-01: finished after epoch 5'
refused 2 'many/run-00: "batch" was 50' train --resume many --batch 60 -q

# ------------------------------------------------------------------------- bench
run 0 bench small --samples 2000 --hidden 8 --batch 100 --epochs 2 --runs 1,3 -q
for word in 'beside one' own shared launches; do
    says out "$word"
done
run 0 bench small --samples 2000 --hidden 8 --batch 100 --epochs 2 --runs 2 --json -q -o page.html
for pass in 0 1 2; do
    [ "$("$json" many passes $pass launches <out)" = "$("$json" many passes $pass expected_launches <out)" ] ||
        fail "$ran: other launches than expected in pass $pass"
done
grep -q 'Runs at once' page.html || fail "$ran: nothing of it on the page"
refused 2 'runs: expected up to 15 ascending numbers' bench small --runs 4,1
refused 2 'runs: goes with one device' bench small --runs 4 --ablate

exit $bad
