# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Importing and describing recordings, with the readers' options as the command's own.
. "$(dirname "$0")/lib.sh"
data=$here/../data/npz
"$build/tests/cli/make-rec" play.rec 3000 || exit 1

# -------------------------------------------------------------------- usage
refused 2 "no file is named" import
refused 2 "-o OUT.rec is missing" import play.rec
refused 2 "no file is named" info
refused 2 'no format "npy"' import "$data/odd.npz" -o out.rec --format npy
refused 1 "no-such.npz" import no-such.npz -o out.rec
refused 1 "no-such.npz" info no-such.npz
echo "hello" >hello.txt
refused 1 "hello.txt: looks like text" import hello.txt -o out.rec
refused 2 "npz files have no option" import "$data/odd.npz" -o out.rec --set sences=obs
refused 2 "given twice" import "$data/odd.npz" -o out.rec --senses obs --set senses=obs
refused 1 "no/such/folder/out.rec" import play.rec -o no/such/folder/out.rec -q
[ ! -e out.rec ] || fail "nothing was imported, and there is a file"

# Every format explains its options in the help, and no option of the others hides one.
run 0 help import
cp out help
"$mimus" help train | sed -n 's/^ *\(-., \)\?--\([a-z0-9-]*\).*/\2/p' | sort >settings
sed -n '/^Options for/,/^Examples/s/^ *--\([a-z0-9-]*\).*/\1/p' help | sort -u >readers
[ -s readers ] || fail "$ran: no options of the readers"
[ -z "$(comm -12 settings readers)" ] || fail "settings and readers share: $(comm -12 settings readers)"

# A file that only looks like HDF5, and one that is none at all, whatever it is called.
printf '\211HDF\r\n\032\n' >bad.h5
refused 1 "bad.h5: cannot be opened as HDF5" import bad.h5 -o out.rec
refused 1 "hello.txt: cannot be opened as HDF5" import hello.txt -o out.rec --format hdf5
refused 2 "hdf5 files have no option" import bad.h5 -o out.rec --set indices=obs
mkdir folder
refused 1 "folder: Is a directory" import folder -o out.rec

# ------------------------------------------------------------------- import
run 0 import "$data/odd.npz" -o odd.rec --heads move:5 --actions=column
says out "5 samples in 1 episode"
run 0 info odd.rec --json
[ "$("$json" schema heads 0 name <out)" = move ] || fail "$ran: --heads did not reach the reader"
[ "$("$json" schema heads 0 actions <out)" = 5 ] || fail "$ran: --heads did not reach the reader"
run 0 import --json --set heads=7 -o seven.rec -- "$data/odd.npz"
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" schema heads 0 actions <out)" = 7 ] || fail "$ran: --set did not reach the reader"
[ "$("$json" samples <out)" = 5 ] || fail "$ran: not 5 samples"
run 0 import odd.rec odd.rec -o twice.rec -q
says out "10 samples in 2 episodes"
silent err
run 1 import odd.rec play.rec -o mixed.rec -q
[ ! -e mixed.rec ] || fail "$ran: leaves a file behind"

# Two of the five samples have a sense that is not finite.
bad_senses="$data/types.npz --senses half --actions a_i1"
run 1 import $bad_senses -o bad.rec -q
says err "--illegal drop"
[ ! -e bad.rec ] || fail "$ran: leaves a file behind"
run 0 import $bad_senses -o good.rec --illegal drop
says out "3 samples in 1 episode; 2 were left out"
says out "2 samples with a sense that is not finite (the first is row 2, sense 2)"
run 0 info good.rec --json
[ "$("$json" samples <out)" = 3 ] || fail "$ran: not 3 samples"

# What cannot be written leaves what was there, and nothing else. A limit on the size of files stands for a full disk.
mkdir full
cp good.rec full/out.rec
cp play.rec full/in.rec
(ulimit -f 8 && "$mimus" import full/in.rec -o full/out.rec -q >out 2>err) && fail "8 blocks hold all of it"
ran="mimus import, on a full disk"
says err "mimus import: full/out.rec: cannot write: File too large"
[ "$(wc -l <err)" -eq 1 ] || fail "$ran: an error is one line"
silent out
(ulimit -f 8 && "$mimus" import full/in.rec -o full/new.rec -q >out 2>err) && fail "8 blocks hold all of it"
says err "mimus import: full/new.rec: cannot write: File too large"
cmp -s full/out.rec good.rec || fail "$ran: the old file is not what it was"
cmp -s full/in.rec play.rec || fail "$ran: the input is not what it was"
[ "$(ls full)" = "$(printf 'in.rec\nout.rec')" ] || fail "$ran: leaves $(ls full)"
refused 2 "play.rec: is read by this import" import odd.rec play.rec -o ./play.rec

# --------------------------------------------------------------------- info
run 0 info play.rec --quiet
silent err
says out "3,000 samples in 60 episodes of 50"
says out "  move: 5 actions, "
says out "    right  "
says out "samples without a label"
says out "speed"
says out "  none"
run 0 info $bad_senses
says out "with a sense that is not finite"
run 0 info play.rec --json
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" samples <out)" = 3000 ] || fail "$ran: not 3000 samples"

# Names that are hard to show: escaped as text, kept in JSON, whole where no terminal's line ends.
"$build/tests/cli/make-names" names.rec || exit 1
LC_ALL=C.UTF-8 run 0 info names.rec
! LC_ALL=C grep -q "[$(printf '\001-\011\013-\037\177')]" out || fail "$ran: control characters"
for text in 'tab\there' 'new\nline' '\x1b[31mred' 'Höhe 高' 'bell\x07 head: 2 actions' 'a\r' 'del\x7f'; do
    says out "$text"
done
grep -q "x\{200\}" out || fail "$ran: cuts a name"
run 0 info names.rec --json
[ "$("$json" schema senses 1 <out)" = "$(printf 'new\nline')" ] || fail "$ran: changes a name"
[ "$("$json" schema senses 3 <out)" = 'Höhe 高' ] || fail "$ran: changes a name"
run 0 import names.rec -o same.rec -q
run 0 info same.rec --json
[ "$("$json" schema senses 2 <out)" = "$(printf '\033[31mred')" ] || fail "$ran: changes a name"

# Nothing to speak of, and no NaN spoken.
"$build/tests/cli/make-rec" empty.rec 0 || exit 1
for recording in empty.rec "$data/types.npz --senses half --actions a_i1 --illegal drop"; do
    run 0 info $recording
    ! grep -qi 'nan\|inf\b' out || fail "$ran: $(grep -i 'nan\|inf\b' out)"
    run 0 info $recording --json
    ! grep -qi ' nan\| inf\b' out || fail "$ran: NaN in JSON"
done
run 0 info empty.rec
says out "0 samples in 0 episodes"
[ "$(grep -c '^  speed  *-  *-  *-  *-' out)" -eq 1 ] || fail "$ran: no dashes"

LC_ALL=C run 0 info play.rec
! LC_ALL=C grep -q '[^ -~]' out || fail "$ran: more than ASCII in the C locale"
exit $bad
