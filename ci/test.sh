#!/bin/sh
# Builds mimus in every way it is meant to be built, and tests it in all of them.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'TEXT'
usage: ci/test.sh [--quick] [--device NAME]
  --quick         one compiler, without sanitizers, checkers and style
  --device NAME   run the device tests on this device: gpu, cpu, 0:1 or part of a name (see: mimus devices)
Builds into build-ci/; logs stand in build-ci/logs/. Exits with 1 when any stage failed.
TEXT
}

quick=no
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --device)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        export MIMUS_DEVICE="$2"
        shift
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

out=$PWD/build-ci
logs=$out/logs
rm -rf "$logs"
mkdir -p "$logs"
jobs=$(nproc)
failed=0
table=''

# stage NAME function arguments...: runs it into its log, notes the outcome and the seconds.
stage() {
    stage_name=$1
    stage_began=$(date +%s)
    shift
    printf '== %s\n' "$stage_name"
    if "$@" >"$logs/$stage_name.log" 2>&1; then
        outcome=ok
    else
        outcome=FAILED
        failed=1
        tail -n 150 "$logs/$stage_name.log"
    fi
    note
    [ $outcome = ok ]
}

# The same for a script that ends with 3 where what it runs on cannot be had, as without a network: neither passed
# nor failed.
stage_if_possible() {
    stage_name=$1
    stage_began=$(date +%s)
    shift
    printf '== %s\n' "$stage_name"
    status=0
    "$@" >"$logs/$stage_name.log" 2>&1 || status=$?
    case $status in
    0) outcome=ok ;;
    3) outcome='NOT RUN' ;;
    *) outcome=FAILED failed=1 ;;
    esac
    [ "$outcome" = ok ] || tail -n 150 "$logs/$stage_name.log"
    note
}

note() {
    table="$table$(printf '%-12s %-7s %5d s' "$stage_name" "$outcome" $(($(date +%s) - stage_began)))
"
}

# ------------------------------------------------------------------ what the stages do

sources() { # files of the working tree by pattern, with or without git
    git ls-files -co --exclude-standard -- "$@" 2>/dev/null || find . -path './build*' -prune -o -name "$1" -print
}

style() {
    status=0
    tool=$(command -v clang-format-14 || command -v clang-format) || return 1
    $tool --version | grep -q 'version 14' || echo "(style is that of clang-format 14; other versions may differ)"
    sources '*.[ch]' | xargs "$tool" --dry-run -Werror || status=1
    sources '*.sh' .ci/run | xargs shellcheck -S warning || status=1
    return $status
}

build() { # name, options for cmake
    folder=$out/$1
    shift
    cmake -G Ninja -B "$folder" -DMIMUS_TESTS=ON -DMIMUS_WERROR=ON "$@" && ninja -C "$folder"
}

# The device that --device chose, by its place: a name or a type may mean another one where a test changes what devices
# call themselves.
choose() {
    get=$out/gcc/tests/cli/json-get
    chosen=$("$out/gcc/mimus" devices --json | "$get" chosen) &&
        MIMUS_DEVICE=$("$out/gcc/mimus" devices --json | "$get" devices "$chosen" id) && echo "$MIMUS_DEVICE"
}

suite() { # name
    ctest --test-dir "$out/$1" --output-on-failure -j "$jobs"
}

# The device tests, on a device that passes for a GPU without vector registers: what a suite on a real one would meet.
as_gpu() {
    MIMUS_OPENCL_LIBRARY=$out/gcc/tests/libopencl_shim.so MIMUS_SHIM='gpu width=1' \
        ctest --test-dir "$out/gcc" --output-on-failure -j "$jobs" -L '^device$' -E _as_gpu
}

tidy() {
    tool=$(command -v run-clang-tidy-14 || command -v run-clang-tidy) || return 1
    $tool -quiet -j "$jobs" -p "$out/clang" '/(src|host|examples)/.*\.c$' >"$logs/tidy.txt" 2>&1 && return 0
    grep -A 3 'error:' "$logs/tidy.txt"
    return 1
}

# The tests that open no device; two or more at a time, each with a log of its own.
memory() {
    ctest --test-dir "$out/gcc" -N -LE device | sed -n 's/^ *Test *#[0-9]*: /test_/p' |
        while read -r program; do [ ! -x "$out/gcc/tests/$program" ] || echo "$program"; done |
        CK_DEFAULT_TIMEOUT=600 xargs -P "$jobs" -I '{}' sh -c '
            valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
                --suppressions=tests/valgrind.supp "$0/{}" >"$1/valgrind-{}.log" 2>&1 && exit 0
            echo "-- {}"
            cat "$1/valgrind-{}.log"
            exit 1' "$out/gcc/tests" "$logs"
}

# Every kernel, on tiny shapes, in a simulator that sees accesses out of bounds and races: in the form for CPUs, and in
# that for GPUs, whose groups have more than one item. (Its --uninitialized is of no use: Oclgrind 21.10 takes host
# writes inside of a buffer for uninitialised, and crashes in vector code.)
# It ends with 0 whatever it finds, but names the kernel with every find. Now and then it aborts by itself: one
# more try.
simulate() { # geometry
    for try in 1 2; do
        env -u MIMUS_DEVICE MIMUS_GEOMETRY="$1" oclgrind --data-races "$out/gcc/mimus" devices --selftest \
            >"$logs/selftest-$1.txt" 2>&1
        status=$?
        ! grep -q 'Kernel: ' "$logs/selftest-$1.txt" || return 1
        [ $status -ne 0 ] || return 0
        echo "(attempt $try ended with $status)" >>"$logs/selftest-$1.txt"
    done
    return 1
}

kernels() {
    simulate gpu &
    cpu=0 gpu=0
    simulate cpu || cpu=1
    wait $! || gpu=1
    cat "$logs/selftest-cpu.txt" "$logs/selftest-gpu.txt"
    [ $cpu$gpu = 00 ]
}

# A short walk of every fuzzer from its corpus: long ones are for people.
fuzz() {
    programs=$(cd tests/fuzz && ls fuzz_*.c) && programs=$(echo "$programs" | sed 's/\.c$//')
    cmake -G Ninja -B "$out/fuzz" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug \
        -DMIMUS_TESTS=ON -DMIMUS_WERROR=ON -DMIMUS_FUZZ=ON && ninja -C "$out/fuzz" $programs || return 1
    for program in $programs; do
        found=$(mktemp -d)
        "$out/fuzz/tests/fuzz/$program" -max_total_time=10 -max_len=8192 -artifact_prefix="$logs/$program-" \
            "$found" "tests/fuzz/corpus/${program#fuzz_}" || return 1
        rm -rf "$found"
    done
}

# ------------------------------------------------------------------ the stages

began_all=$(date +%s)
stage deps sh ci/deps.sh
if stage gcc-build build gcc -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS=-g; then
    [ -z "${MIMUS_DEVICE-}" ] || stage device choose
    stage gcc suite gcc
fi
if [ $quick = no ]; then
    stage style style
    # The static libraries have consumers too.
    if stage clang-build build clang -DCMAKE_C_COMPILER=clang -DBUILD_SHARED_LIBS=OFF; then
        stage clang suite clang
        stage tidy tidy
    fi
    if stage asan-build build asan -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DMIMUS_SANITIZE=ON; then
        stage asan suite asan
    fi
    stage as-gpu as_gpu
    stage fuzz fuzz
    stage valgrind memory
    stage oclgrind kernels
    stage_if_possible intel sh ci/vendors.sh --selftest intel
    stage_if_possible rusticl sh ci/vendors.sh --selftest rusticl
    stage_if_possible gpu-static sh ci/gpu-static.sh
    stage_if_possible oracles sh ci/oracles.sh
    stage_if_possible browser sh ci/browser.sh
fi

printf '\n%s' "$table"
printf '%-20s %5d s\n' total $(($(date +%s) - began_all))
for name in gcc clang asan; do
    [ ! -f "$logs/$name.log" ] || { printf '\n%s:\n' "$name"; sed -n '/tests passed/,$p' "$logs/$name.log"; }
done
exit $failed
