# shellcheck shell=sh disable=SC2154,SC2034 # what lib.sh and the tests hand each other
# The list of devices; ctest's machine has one at least.
. "$(dirname "$0")/lib.sh"

run 0 devices
says out "platform 0: "
[ "$(grep -c '^\*' out)" -eq 1 ] || fail "one device is the chosen one"
silent err

run 0 devices --json
"$json" <out || fail "$ran: not a JSON object"
silent err
id=$("$json" devices 0 id <out)
run 0 devices --dev "$id"
grep -q "^\* *$id " out || fail "$ran: $id is not the chosen one"
run 0 devices "--device=$id" --json
[ "$("$json" chosen <out)" -eq 0 ] || fail "$ran: the first device is the chosen one"

# Nothing matches: the list all the same, and why that is a failure.
run 3 devices --device no-such-device
says err 'mimus devices: no OpenCL device matches "no-such-device"'
says out "platform 0: "
[ "$(grep -c '^\*' out)" -eq 0 ] || fail "no device is the chosen one"
run 3 devices --device no-such-device --json
[ "$("$json" chosen <out)" = null ] || fail "$ran: chosen is not null"

# Names are shown whole, but where a terminal's line ends.
name=$(printf 'N%0180dE' 0)
export MIMUS_OPENCL_LIBRARY="$build/tests/libopencl_shim.so" MIMUS_SHIM="name=$name"
run 0 devices
says out "$name"
run 0 devices --json
[ "$("$json" devices 0 name <out)" = "$name" ] || fail "$ran: cuts the name"
for columns in 60 100; do
    ran="mimus devices, on a terminal of $columns columns"
    LC_ALL=C script -qec "stty cols $columns; $mimus devices" /dev/null </dev/null >raw || fail "$ran: failed"
    tr -d '\r' <raw >out
    says out 'N0'
    [ "$(awk -v columns=$columns 'length > columns' out | wc -l)" -eq 0 ] || fail "$ran: longer lines"
done
unset MIMUS_OPENCL_LIBRARY MIMUS_SHIM

# The self-test.
run 0 devices --selftest
says out "passed"
! grep -q FAILED out || fail "$ran: a check failed"
run 0 devices --selftest --json --device "$id"
[ "$("$json" passed <out)" = true ] || fail "$ran: not passed"
refused 3 'no-such-device' devices --selftest --device no-such-device

# The variable counts where no option is given.
export MIMUS_DEVICE=no-such-device
run 3 devices
run 0 devices --device "$id"
unset MIMUS_DEVICE

# No driver at all.
export OCL_ICD_VENDORS="$work/none" OCL_ICD_FILENAMES=
run 3 devices
silent out
says err "mimus devices: "
exit $bad
