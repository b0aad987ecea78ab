# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Senses in 16 bits from the command line, and the script that says whether they learn as well.
. "$(dirname "$0")/lib.sh"
"$build/tests/cli/make-rec" play.rec 3000 || exit 1
small="--gemm tile --hidden 16 --batch 50 --lr 0.01"

refused 2 'store: expected one of auto|f32|f16|bf16' train play.rec -o run --store f8
run 0 train play.rec -o run $small --epochs 1 --store f16
says run/config.json '"store": "f16"'
refused 2 '"store" was "f16"' train --resume run --epochs 2 --store f32
run 0 train --resume run --epochs 2
says out "finished after epoch 2"
run 0 eval run play.rec
run 0 info play.rec
for form in f32 f16 bf16; do
    says out "--store $form"
done

# The table: a row a form with figures, f32 beside itself without any.
sh "$here/../../bench/store.sh" --build "$build" --recording play.rec --epochs 1 --seeds 2 -- $small >table 2>err ||
    fail "bench/store.sh: $(cat err)"
figures='[0-9.]*% +- [0-9.]*'
grep -q "^| f32 | $figures |  | [0-9.]* s |\$" table || fail "no row of f32 in: $(cat table)"
for form in f16 bf16; do
    grep -q "^| $form | $figures | [+-][0-9.]* +- [0-9.]* points | [0-9.]* s |\$" table ||
        fail "no row of $form in: $(cat table)"
done
code=0
sh "$here/../../bench/store.sh" --seed 3 2>err || code=$?
[ "$code" -eq 2 ] || fail "bench/store.sh: exit code $code for an option that it has not"
exit $bad
