# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Recordings of Unity ML-Agents, imported, described and trained on by the command.
. "$(dirname "$0")/lib.sh"
data=$here/../data/demo

run 0 import "$data/recorded.demo" -o recorded.rec
says out "8 samples in 3 episodes"
says err "recorded.demo: 8 records; align=next"
run 0 info recorded.rec --json
[ "$("$json" schema senses 1 <out)" = "Rays[1]" ] || fail "$ran: no name of the sensor"
[ "$("$json" schema heads 1 name <out)" = jump ] || fail "$ran: no name of the branch"
[ "$("$json" heads 0 labels <out)" = 5 ] || fail "$ran: not 5 labels"
run 0 import "$data/recorded.demo" -o same.rec --align same --illegal ignore
says out "8 samples in 3 episodes"
says err "by align=same the masks forbid 1 of the actions taken"
run 0 info "$data/recorded.demo" --align same --json
[ "$("$json" heads 0 labels <out)" = 7 ] || fail "$ran: not 7 labels, one being forbidden"

# An agent that sees nothing.
run 0 import "$data/unseen.demo" -o unseen.rec -q
run 0 info unseen.rec
says out "4 samples in 1 episode"
says out "head0: 5 actions, 4.2 of them legal on average"
[ "$(sed -n '/^Senses/{n;p}' out)" = "  none" ] || fail "$ran: senses that are not there"
run 0 info unseen.rec --json
[ "$("$json" schema senses <out)" = 0 ] || fail "$ran: senses that are not there"
run 0 import unseen.rec unseen.rec -o twice.rec -q
says out "8 samples in 2 episodes"
run 1 train unseen.rec -o unseen -q
says err "the recording has no senses"
[ ! -e unseen ] || fail "$ran: leaves a folder behind"

# One line for what cannot be read, and nothing is left behind.
refused 2 "option align: one of same, next, auto" import "$data/recorded.demo" -o no.rec -q --align before
refused 1 'observation 0 "Eye" is visual' import "$data/camera.demo" -o no.rec -q
refused 1 "--bin all:uniform:11" import "$data/continuous.demo" -o no.rec -q
refused 1 "holds no records" import "$data/nothing.demo" -o no.rec -q
head -c 700 "$data/recorded.demo" >cut.demo
refused 1 "cut.demo: record 7 at byte" import cut.demo -o no.rec -q
refused 1 "3 with a label out of its head's range" import "$data/stray.demo" -o no.rec -q --align next
[ ! -e no.rec ] || fail "nothing was imported, and there is a file"

run 0 import "$data/camera.demo" -o ear.rec --visual skip -q
run 0 import "$data/continuous.demo" -o bins.rec --bin all:quantile:3 -q
run 0 info bins.rec --json
[ "$("$json" schema heads 1 name <out)" = continuous1 ] || fail "$ran: no name of the action"
[ "$("$json" schema heads 1 values 2 <out)" = 2.0 ] || fail "$ran: no values of the bins"
run 0 import "$data/recorded.demo" "$data/recorded.demo" -o both.rec -q
says out "16 samples in 6 episodes"
exit $bad
