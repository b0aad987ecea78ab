# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Pages about runs, and runs held against one another, from the command line.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
"$make_rec" play.rec 6000 || exit 1
small="--gemm tile --hidden 16 --batch 50 -q"
run 0 train play.rec -o good $small --epochs 3 --lr 0.01
run 0 train play.rec -o same $small --epochs 3 --lr 0.01 --no-tensorboard
run 0 train play.rec -o bad $small --epochs 1 --lr 1e-6
run 0 train play.rec -o unjudged $small --epochs 1 --held-out 0

# -------------------------------------------------------------------- report
refused 2 "no run is named" report
refused 1 "no-such-run: no such folder" report no-such-run
refused 1 "play.rec: no such folder" report play.rec
refused 1 "no-such-folder" report good -o no-such-folder/page.html
run 0 report good
says out "report.html: 1 run; open it in a browser"
silent err
run 0 report good bad unjudged -o all.html
says out "all.html: 3 runs"
for page in report.html all.html; do
    [ "$(grep -c '<script' $page)" -ge 3 ] || fail "$ran: $page has no script"
    ! grep -q "$work" $page || fail "$ran: $page says where the recording lay"
done
run 0 report good -q -o quiet.html
silent out
cmp -s report.html quiet.html || fail "$ran: the same run gives another page"

# -------------------------------------------------------------------- compare
refused 2 "two runs or more" compare good
refused 1 "unjudged: was not judged" compare good unjudged
run 0 compare good same
says out "tensorboard"
says out "paired over"
says out "within noise"
! grep -q "worse" out || fail "$ran: equal runs differ"
run 0 compare good bad
says out "epochs"
says out "worse"
says out "all at once"
run 5 compare good bad --check
run 0 compare bad good --check
says out "better"
run 0 compare good same --check --json
"$json" <out || fail "$ran: not a JSON object"
[ "$("$json" runs 1 test <out)" = paired ] || fail "$ran: another test"
[ "$("$json" metrics 0 against_first 0 verdict <out)" = "within noise" ] || fail "$ran: equal runs differ"
exit $bad
