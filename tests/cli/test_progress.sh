# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# What is shown while it works, and what signals do.
. "$(dirname "$0")/lib.sh"
make_rec=$build/tests/cli/make-rec
"$make_rec" long.rec 40000 || exit 1
escape=$(printf '\033') return=$(printf '\r')

# on_terminal COLUMNS TERM ARGUMENT...: mimus on a terminal; "screen" gets what it wrote, every carriage return as the
# end of a line.
on_terminal() {
    ran="mimus on a $2 terminal of $1 columns"
    columns=$1 kind=$2
    shift 2
    COLUMNS=$columns TERM=$kind LC_ALL=C script -qec "stty cols 0; $mimus $*" /dev/null </dev/null >raw || fail "$ran: failed"
    sed "s/$return\$//" raw | tr '\r' '\n' >screen
}

# ------------------------------------------------------------------------ bar
settings="-o run --hidden 64,64 --batch 100 --gemm tile"
on_terminal 100 xterm train long.rec $settings --epochs 4
[ "$(grep -c "^\($escape\[K\)\? *[1-4]  " screen)" -eq 4 ] || fail "$ran: not a row an epoch"
says screen "agreement per head, on the held-out part"
grep -q '^train  *[0-9]*%  \[#* *\]  epoch [1-4]/4 ' screen || fail "$ran: no bar"
grep -q "ETA" screen || fail "$ran: no time that is left"
grep -q "^$escape\[Krun: finished" screen || fail "$ran: the bar was not erased before the summary"

for columns in 70 40 20; do
    rm -rf run
    on_terminal $columns xterm train long.rec $settings --epochs 2
    grep '^[a-z-]*  *[0-9]*%' screen | sed "s/$escape\[K//" >bars
    [ -s bars ] || fail "$ran: no bar"
    [ "$(awk -v most=$columns 'length >= most' bars | wc -l)" -eq 0 ] || fail "$ran: a bar that wraps"
done

rm -rf run
on_terminal 100 dumb train long.rec $settings --epochs 2
! grep -q "$escape" raw || fail "$ran: escapes"
[ "$(grep -c '^epoch [12]/2  loss' screen)" -eq 2 ] || fail "$ran: not a plain line an epoch"

rm -rf run
on_terminal 100 xterm train long.rec $settings --epochs 2 --quiet
! grep -q "$escape" raw || fail "$ran: --quiet shows escapes"

# -------------------------------------------------------------------- signals
# start NAME ARGUMENT...: mimus in the background, with signals as a user's shell has them.
start() {
    rm -rf "$1"
    ran="mimus train -o $1 $2"
    env --default-signal=INT,TERM "$mimus" train long.rec -o "$1" $2 >out 2>err &
    pid=$!
}
wait_for() { # TEXT in err
    for second in $(seq 300); do
        grep -q -- "$1" err && return
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    fail "$ran: never says $1"
}
ended() { # CODE
    code=0
    wait $pid || code=$?
    [ $code -eq "$1" ] || fail "$ran: exit code $code, not $1"
}

for signal in INT:130 TERM:143; do
    start stopped "--epochs 100000 --hidden 64,64 --batch 100 --gemm tile"
    wait_for '^epoch 1/'
    kill -"${signal%:*}" $pid
    ended "${signal#*:}"
    says err "mimus train: stopping after this epoch (again to quit at once)"
    says err "mimus train: stopped after epoch"
    says out "stopped: stopped on request after epoch"
    grep -qx "To go on:    mimus train --resume stopped" out || fail "$ran: it has epochs left to go on with"
    epochs=$(wc -l <stopped/metrics.jsonl)
    run 0 train --resume stopped --epochs $((epochs + 1)) --json
    [ "$("$json" epochs_run <out)" = 1 ] || fail "$ran: does not go on where it stopped"
done

start stopped "--epochs 100000 --hidden 2048,2048 --batch 64 --gemm tile" # an epoch takes seconds
wait_for '^upload'
sleep 0.5
kill -INT $pid
wait_for 'again to quit at once'
kill -INT $pid
ended 130
! grep -q "stopped after epoch" err || fail "$ran: the second signal did not end it at once"

# A reader that went away is no reason to lose a run.
rm -rf run
"$mimus" train long.rec -o run --hidden 64,64 --batch 100 --gemm tile --epochs 3 2>&1 >out | head -n 1 >first
ran="mimus train with a closed standard error"
[ "$(wc -l <run/metrics.jsonl)" -eq 3 ] || fail "$ran: did not train to its end"
says out "finished"
exit $bad
