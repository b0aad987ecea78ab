# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Policies that leave: what is refused, what is written, and that C source does what the policy does.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
play_policy=$build/tests/cli/play-policy
"$make_rec" play.rec 3000 && "$make_rec" other.rec 500 || exit 1
small="--gemm tile --epochs 2 --batch 50 --lr 0.01 -q"
run 0 train play.rec -o run --hidden 16,8 $small
run 0 train play.rec -o stacked --hidden 24 --activation gelu --stack 3 $small
run 0 train play.rec -o smooth --hidden 9,9,9 --activation tanh $small
run 0 train play.rec -o linear --hidden none --stack 2 $small

# -------------------------------------------------------------------- usage
refused 2 "no run or checkpoint is named" export -o x.onnx --for unity
refused 2 "one run or checkpoint at a time" export run run -o x.onnx --for unity
refused 2 "-o FILE is missing" export run --for unity
refused 2 "--for TARGET is missing" export run -o x.onnx
refused 2 "onnxruntime, unity, godot, c, safetensors, npz" export run -o x.onnx --for tensorflow
refused 2 "did you mean unity?" export run -o x.onnx --for unitey
refused 2 'not "4,"' export run -o x.onnx --for unity --observations 4,
refused 2 'not "0"' export run -o x.onnx --for unity --observations 0
refused 1 "no-such-run" export no-such-run -o x.onnx --for unity
refused 2 "have 5 senses together, the policy has 6" export run -o x.onnx --for unity --observations 4,1 -q
refused 2 "only Unity takes more than one" export run -o x.onnx --for godot --observations 4,2 -q
refused 2 "the name should end in .c" export run -o x.h --for c -q
refused 1 "no-such.rec" export run -o x.onnx --for unity --check no-such.rec -q
refused 1 "play.rec: not a safetensors file" export play.rec -o x.onnx --for unity
[ ! -e x.onnx ] && [ ! -e x.h ] || fail "something refused was written"

# Nothing that is there is lost.
echo mine >mine.onnx
refused 1 "mine.onnx: is there already; replace it with --force" export run -o mine.onnx --for unity -q
echo mine >mine.h
refused 1 "mine.h: is there already" export run -o mine.c --for c -q
[ ! -e mine.c ] && [ "$(cat mine.h)" = mine ] && [ "$(cat mine.onnx)" = mine ] || fail "$ran: an old file was touched"
refused 2 "is the checkpoint that is exported" export run -o run/best.safetensors --for safetensors --force -q
run 0 export run -o mine.onnx --for unity --force -q
[ "$(head -c 4 mine.onnx)" != mine ] || fail "$ran: --force does not replace"

# A disk that is full: one line, and nothing under the name.
(
    ulimit -f 1 # a block of 512 or 1024 bytes
    refused 1 "full.onnx: cannot write" export run -o full.onnx --for onnxruntime -q
    exit $bad
) || bad=1
for left in full*; do
    [ ! -e "$left" ] || fail "a failed export leaves $left"
done

# A run that has not got far.
cp -r run unfinished && rm unfinished/summary.json
run 0 export unfinished -o early.onnx --for onnxruntime
says err "unfinished: its training has not ended yet: this is the best policy so far, of epoch"
rm unfinished/best.safetensors unfinished/last.safetensors
refused 1 "unfinished" export unfinished -o none.onnx --for onnxruntime

# ------------------------------------------------------------------ written
for target in onnxruntime unity godot; do
    run 0 export stacked -o $target.onnx --for $target
    says out "$target.onnx: "
    says out "tried on 300 samples (held out): it chooses what the policy chooses"
done
run 0 export stacked -o gelu.onnx --for unity
says err "gelu needs ML-Agents 3 or later"
run 0 export stacked -o checked.onnx --for onnxruntime --check other.rec --check play.rec --json -q
silent err
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" check which <out)" = recorded ] || fail "$ran: tried on other samples"
[ "$("$json" check samples <out)" = 3500 ] || fail "$ran: not on all 3,500"
[ "$("$json" files 0 <out)" = checked.onnx ] || fail "$ran: no file"
cmp -s checked.onnx onnxruntime.onnx || fail "the same export twice differs"
mv play.rec moved.rec
run 0 export run -o made.onnx --for godot --json -q
[ "$("$json" check which <out)" = "made up" ] || fail "$ran: its recording is not there any more"
mv moved.rec play.rec
run 0 export run -o plain.safetensors --for safetensors -q
run 0 eval plain.safetensors play.rec -q
run 0 export plain.safetensors -o again.safetensors --for safetensors -q
cmp -s plain.safetensors again.safetensors || fail "an export of an export differs"
run 0 export run -o policy.npz --for npz
says out "policy.npz: "
says out "for npz; read back, its numbers are the policy's"

# ------------------------------------------------------------------------- C
strict="-std=c99 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
for policy in run stacked smooth linear; do
    mkdir "c-$policy" && cd "c-$policy" || exit 1
    cd ..
    run 0 export "$policy" -o "c-$policy/policy.c" --for c
    says out "c-$policy/policy.c, c-$policy/policy.h: "
    "$CC" $strict -ffp-contract=off -I"c-$policy" -I"$here/export" "$here/export/play_export.c" "c-$policy/policy.c" \
        -o "c-$policy/play" -lm || fail "$policy as C does not compile cleanly"
    "$play_policy" "$policy" >policy.txt || fail "play-policy $policy"
    "c-$policy/play" >export.txt || fail "$policy as C: wrong draws"
    [ "$(wc -l <export.txt)" -eq 2000 ] || fail "$policy as C: not 2,000 samples"
    cmp policy.txt export.txt || fail "$policy as C does something else than the policy"
done
# Two policies in one program, whose names cannot meet; and C++ can call them.
run 0 export run -o "2nd-try.c" --for c -q
grep -q "void p_2nd_try_act(" 2nd-try.h || fail "no identifier out of 2nd-try.c"
cat >two.c <<'TEXT'
#include "2nd-try.h"
#include "c-stacked/policy.h"
int main(void) { p_2nd_try_agent a; policy_agent b; p_2nd_try_reset(&a); policy_reset(&b); return a.begun + b.begun; }
TEXT
"$CC" $strict two.c 2nd-try.c c-stacked/policy.c -o two -lm && ./two || fail "two policies in one program"
# Names that would end a comment, a string or a line.
"$make_rec" bad.rec 500 hostile || exit 1
run 0 train bad.rec -o badly --hidden 4 $small
run 0 export badly -o bad.c --for c -q
"$CC" $strict -c bad.c -o bad.o || fail "hostile names as C do not compile"
exit $bad
