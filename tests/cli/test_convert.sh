# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Recordings written for other programs and read back, by the command.
. "$(dirname "$0")/lib.sh"
"$build/tests/cli/make-rec" play.rec 3000 || exit 1

refused 2 "no file is named" convert
refused 2 "-o OUT.npz or -o OUT.h5 is missing" convert play.rec
refused 2 "should end in .npz, .h5 or .hdf5" convert play.rec -o out.rec
refused 1 "no-such.rec" convert no-such.rec -o none.npz
refused 2 "play.rec: .rec files have no options" convert play.rec -o none.npz --senses obs
[ ! -e none.npz ] || fail "nothing was converted, and there is a file"

print() { # of the recording
    "$mimus" info "$1" --json -q | "$json" fingerprint
}
for out in play.npz play.h5 play.hdf5 set-v0/data/main_data.hdf5; do
    run 0 convert play.rec -o $out
    says out "3,000 samples in 60 episodes"
    [ "$(print $out)" = "$(print play.rec)" ] || fail "$ran: reads back as another recording"
    run 0 import $out -o again.rec -q
    silent err
    [ "$(print again.rec)" = "$(print play.rec)" ] || fail "$ran: imports as another recording"
done
run 0 info set-v0 --json
[ "$("$json" samples <out)" = 3000 ] || fail "$ran: not 3000 samples"
run 0 convert play.npz play.h5 -o both.h5 --json -q
[ "$("$json" episodes <out)" = 120 ] || fail "$ran: not 120 episodes"
refused 2 "play.h5: is read here" convert play.rec play.h5 -o ./play.h5

# --episodes takes numbers of episodes, and where an HDF5 file has such numbers.
run 0 info play.h5 --json --senses /episode_1/rewards --actions /episode_1/actions \
    --episodes /episode_1/truncations --heads 5,2
[ "$("$json" samples <out)" = 50 ] || fail "$ran: not 50 samples"
[ "$("$json" episodes count <out)" = 2 ] || fail "$ran: not 2 episodes"
run 0 info play.h5 --json --episodes 3,7
[ "$("$json" episodes count <out)" = 2 ] || fail "$ran: not 2 episodes"

# What cannot be written leaves what was there. A limit on the size of files stands for a full disk.
mkdir full
for out in full/out.npz full/out.h5; do
    cp play.rec $out
    code=0
    (ulimit -f 8 && "$mimus" convert play.rec -o $out -q >out 2>err) || code=$?
    ran="mimus convert -o $out, on a full disk"
    [ $code -eq 1 ] || fail "$ran: exit code $code, not 1"
    says err "mimus convert: $out: cannot write"
    [ "$(wc -l <err)" -eq 1 ] || fail "$ran: an error is one line"
    cmp -s $out play.rec || fail "$ran: the old file is not what it was"
done
[ "$(ls full)" = "$(printf 'out.h5\nout.npz')" ] || fail "leaves $(ls full)"
exit $bad
