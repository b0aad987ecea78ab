# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# Tables and Godot's JSON, continuous actions, and parts of recordings, through the command.
. "$(dirname "$0")/lib.sh"

# A game of 60 rows in six episodes: steer is -1, -0.9, ..., 1 in turn; the gear is a word.
awk 'BEGIN { print "match,x,speed,steer,gear"
    for (i = 0; i < 60; i++)
        printf "%d,%d,%.1f,%.1f,%s\n", i / 10, i, i % 7 / 2, (i % 21 - 10) / 10, i % 3 ? "first" : "second" }' >play.csv
gzip -k play.csv
columns="--episode match --actions steer,gear --senses x,speed"

# --------------------------------------------------------------------- bins
refused 1 "the option bin cuts continuous actions into bins: --bin all:uniform:11" import play.csv.gz -o out.rec $columns -q
[ ! -e out.rec ] || fail "nothing was imported, and there is a file"
refused 2 'bin: "steer:even:4": bins are uniform or quantile' import play.csv -o out.rec $columns --bin steer:even:4 -q
run 0 import play.csv.gz -o play.rec $columns --bin steer:uniform:4
says out "60 samples in 6 episodes"
run 0 info play.rec
says out "steer: 4 bins"
says out "-0.75 (below -0.5)"
says out "0.25 (0 to 0.5)"
says out "0.75 (0.5 and above)"
says out "gear: 2 actions"
run 0 info play.rec --json
[ "$("$json" schema heads 0 edges 2 <out)" = 0.5 ] || fail "$ran: the third edge is not 0.5"
[ "$("$json" schema heads 1 actions 1 <out)" = second ] || fail "$ran: the second gear has no name"

# -------------------------------------------------------------------- parts
run 0 import play.rec -o part.rec --where 'gear=second and x>=30' --limit 7 -q
says out "7 samples in 2 episodes"
run 0 info play.csv $columns --bin steer:uniform:4 --episodes 1:3,5 --json
[ "$("$json" samples <out)" = 30 ] || fail "$ran: not 30 samples"
run 0 info part.rec --where "steer>0" --json
[ "$("$json" heads 0 counts 0 <out)" = 0 ] || fail "$ran: left bins below 0"
refused 2 'no sense or head is called "sped"' info play.rec --where "sped>1" -q
refused 2 'episodes: "x" should be' info play.rec --episodes x -q
refused 2 "--limit 0: expected a number of samples" info play.rec --limit 0 -q
refused 1 "none of 60 samples in 6 episodes" info play.rec --where "x>60" -q

# -------------------------------------------------------------------- godot
echo '[[[[0, 1], [2, 3], [4, 5]], [[1], [4]]]]' >demo.json
refused 2 "names 2 heads" import demo.json -o demo.rec --heads move:5,shoot:2 -q
run 0 import demo.json -o demo.rec --heads move:5
says out "2 samples in 1 episode"

# A format that is known by nothing is read when it is named.
cp play.csv play.log
refused 1 "looks like text" import play.log -o log.rec -q
run 0 import play.log -o log.rec --format csv --episode match --actions gear -q
says out "60 samples in 6 episodes"
exit $bad
