#!/bin/sh
# What mimus does on a machine that has a GPU and its driver, and perhaps nothing else: no network, no compiler, no OpenCL
# loader, no Python. One folder, packed elsewhere, holds all that it takes.
set -u

usage() {
    cat <<'TEXT'
usage: ci/device-check.sh --pack DIR
       sh DIR/device-check.sh [--device SELECTOR] [--out FOLDER] [--samples N] [--quick]
  --pack DIR         build mimus and put it into DIR, with the tests that use a device, CLBlast, the OpenCL loader and the
                     libraries that they need (about 40 MB). The other machine needs as new a C library as this one
  --device SELECTOR  as mimus takes it; default the first GPU, else the first CPU
  --out FOLDER       for results.json, the documents of the benches and all logs; default device-check.out, must be new
  --samples N        of the benches' recordings; default 2490000, the reference workload in full
  --quick            the self-test and two benches on 65,536 samples
Prints a table. Exits with 1 when something failed, with 3 when there is no device.
TEXT
}

here=$(cd "$(dirname "$0")" && pwd)
pack='' device='' out=device-check.out samples=2490000 quick=no
while [ $# -gt 0 ]; do
    case $1 in
    --pack | --device | --out | --samples)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --pack) pack=$2 ;;
        --device) device=$2 ;;
        --out) out=$2 ;;
        --samples) samples=$2 ;;
        esac
        shift
        ;;
    --quick) quick=yes samples=65536 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

complain() {
    echo "device-check.sh: $*" >&2
}

# ------------------------------------------------------------------ packing

# The C library is the machine's own.
keep_libraries() { # folder, files...
    folder=$1
    shift
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | while read -r library; do
        case ${library##*/} in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
        *) cp -L "$library" "$folder/" ;;
        esac
    done
}

PATH=$PATH:/usr/sbin:/sbin # ldconfig's
library_path() { # name: where it is on this machine
    ldconfig -p 2>/dev/null | sed -n "s,^[[:space:]]*$1 .*=> ,,p" | head -n 1 | grep . && return
    for folder in /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib /usr/local/nvidia/lib64 /usr/lib/wsl/lib /opt/rocm/lib \
        /usr/lib/x86_64-linux-gnu/intel-opencl; do
        [ ! -f "$folder/$1" ] || { echo "$folder/$1"; return; }
    done
}

make_pack() {
    cd "$here/.." || return 1
    build=$PWD/build-ci/device-check
    cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DMIMUS_TESTS=ON -DMIMUS_TEST_FOLDER=tests &&
        ninja -C "$build" || return 1
    loader=$(library_path libOpenCL.so.1) clblast=$(library_path libclblast.so.1)
    [ -n "$loader" ] && [ -n "$clblast" ] || { complain "no OpenCL loader or no CLBlast here (ci/deps.sh)"; return 1; }
    mkdir -p "$pack/lib" "$pack/tests/cli" "$pack/tests/data" || return 1
    cp "$build/mimus" "$build/mimus-arena" "$pack/" && cp -r tests/data "$pack/tests/" &&
        cp "$build/tests/libopencl_shim.so" "$pack/tests/" &&
        cp tests/cli/lib.sh tests/cli/test_*.sh "$build/tests/cli/json-get" "$build/tests/cli/make-rec" \
            "$build/tests/cli/make-names" "$pack/tests/cli/" &&
        cp "$here/device-check.sh" LICENSE "$pack/" && cp -L "$loader" "$clblast" "$pack/lib/" || return 1
    # Of the command's own tests those that need neither Python nor the source tree.
    ctest --test-dir "$build" -N -L '^device$' | sed -n 's/^ *Test *#[0-9]*: //p' |
        grep -v -e '_as_gpu$' -e cli-store -e cli-usage >"$pack/tests/list"
    while read -r name; do
        [ ! -x "$build/tests/test_$name" ] || cp "$build/tests/test_$name" "$pack/tests/"
    done <"$pack/tests/list"
    strip "$pack/mimus" "$pack/mimus-arena" "$pack"/tests/test_*
    keep_libraries "$pack/lib" "$pack/mimus" "$pack/mimus-arena" "$pack"/tests/test_* "$pack/tests/cli/json-get" "$loader" "$clblast"
    getconf GNU_LIBC_VERSION >"$pack/glibc"
    du -sh "$pack" | awk '{print "packed " $1 " into " $2}'
}

if [ -n "$pack" ]; then
    [ -f "$here/../CMakeLists.txt" ] || { complain "--pack is for mimus' source tree"; exit 2; }
    mkdir -p "$pack" && pack=$(cd "$pack" && pwd) && [ -z "$(ls -A "$pack")" ] ||
        { complain "$pack: not a new or empty folder"; exit 1; }
    make_pack
    exit
fi
[ -x "$here/mimus" ] || { usage >&2; exit 2; }

# ------------------------------------------------------------------ the machine

mkdir "$out" && out=$(cd "$out" && pwd) || { complain "$out: has to be a new folder (--out)"; exit 1; }
mkdir -p "$out/logs" "$out/bench" "$out/cache/pocl" "$out/vendors" "$out/lib"

# What the machine lacks. What it has is its own, as its driver may need a newer one than was packed.
for library in "$here"/lib/*; do
    [ -n "$(library_path "${library##*/}")" ] || ln -s "$library" "$out/lib/"
done
packed() { # command...
    LD_LIBRARY_PATH=$out/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}
mimus() {
    packed "$here/mimus" "$@"
}
get() { # members...: of the JSON on standard input
    packed "$here/tests/cli/json-get" "$@" 2>/dev/null
}

# A driver in a container may come without the file that leads the loader to it.
find_drivers() {
    [ -z "${OCL_ICD_VENDORS-}" ] || return 0
    for file in /etc/OpenCL/vendors/*.icd; do
        [ ! -f "$file" ] || return 0
    done
    for library in libnvidia-opencl.so.1 libamdocl64.so libigdrcl.so libpocl.so.2; do
        path=$(library_path $library)
        [ -z "$path" ] || echo "$path" >"$out/vendors/${library%%.*}.icd"
    done
    export OCL_ICD_VENDORS="$out/vendors"
}

plain() { # a text that JSON can hold
    tr -d '"\\' | tr '\n\t' '  ' | sed 's/ *$//'
}

export XDG_CACHE_HOME="$out/cache" POCL_CACHE_DIR="$out/cache/pocl" CK_DEFAULT_TIMEOUT=900
[ -z "$device" ] || export MIMUS_DEVICE="$device"
find_drivers
if ! mimus --version >"$out/logs/version" 2>&1; then
    cat "$out/logs/version" >&2
    complain "packed with $(cat "$here/glibc"), and here is $(getconf GNU_LIBC_VERSION 2>/dev/null || echo another): pack on a machine as old"
    exit 1
fi
if ! mimus devices --json >"$out/devices.json" 2>"$out/logs/devices"; then
    cat "$out/logs/devices" >&2
    exit 3
fi
chosen=$(get chosen <"$out/devices.json")
MIMUS_DEVICE=$(get devices "$chosen" id <"$out/devices.json") || { complain "no device matches (see: mimus devices)"; exit 3; }
export MIMUS_DEVICE # by its place, which tests that rename devices do not change
name=$(get devices "$chosen" name <"$out/devices.json")
type=$(get devices "$chosen" type <"$out/devices.json")
system=$(uname -srm | plain)
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | plain)
echo "$(cat "$out/logs/version") on $name ($MIMUS_DEVICE, $type); $system, $processor, $(nproc) cores"

# ------------------------------------------------------------------ what is run

failed=0
checks='' benches='' table=''

check() { # name, command...
    check_name=$1 check_began=$(date +%s) check_outcome=ok
    shift
    "$@" >"$out/logs/$check_name.log" 2>&1 </dev/null || { check_outcome=FAILED failed=1; }
    check_took=$(($(date +%s) - check_began))
    printf '%-16s %-6s %5d s\n' "$check_name" $check_outcome $check_took
    [ $check_outcome = ok ] || tail -n 20 "$out/logs/$check_name.log"
    checks="$checks${checks:+, }{\"name\": \"$check_name\", \"outcome\": \"$check_outcome\", \"seconds\": $check_took}"
}

within() { # seconds, command...: a device that hangs costs no more
    if command -v timeout >/dev/null; then
        packed timeout "$@"
    else
        shift
        packed "$@"
    fi
}

one_test() { # name: as ctest has it
    case $1 in
    cli-*) within 900 sh "$here/tests/cli/test_${1#cli-}.sh" "$here" ;;
    *) within 1200 "$here/tests/test_$1" ;;
    esac
}

# Times to three digits, in the unit that people read.
seconds() {
    awk -v t="$1" 'BEGIN {if (t >= 1) printf "%.2f s", t; else if (t >= 1e-3) printf "%.2f ms", 1e3 * t; else printf "%.1f us", 1e6 * t}'
}

bench() { # name, arguments of mimus bench...
    bench_name=$1
    shift
    file=$out/bench/$bench_name.json
    if ! within 900 "$here/mimus" bench "$@" --json -q >"$file" 2>"$out/logs/bench-$bench_name.log"; then
        failed=1
        rm -f "$file"
        table="$table$(printf '%-22s %s' "$bench_name" "FAILED: $(tail -n 1 "$out/logs/bench-$bench_name.log")")
"
        return
    fi
    of() { get devices 0 "$@" <"$file"; }
    share=$(awk -v s="$(of step enqueue_share)" 'BEGIN {printf "%.1f%%", 100 * s}')
    agreement=$(awk -v s="$(of held_out_agreement)" 'BEGIN {printf "%.1f%%", 100 * s}')
    table="$table$(printf '%-22s %10s %10s %10s %6.2f %9s %8s %9s' "$bench_name" "$(seconds "$(of epoch settled median)")" \
        "$(seconds "$(of epoch first)")" "$(seconds "$(of epoch floor)")" "$(of epoch over_floor)" "$(of step launches)" "$share" "$agreement")
"
    benches="$benches${benches:+, }\"$bench_name\": $(cat "$file")"
}

check selftest mimus devices --selftest
if [ $quick = no ]; then
    cd "$here" || exit 1 # where the tests look for their data
    while read -r test; do
        check "$test" one_test "$test"
    done <"$here/tests/list"
fi
bench reference-tile reference --samples "$samples" --plan phased --gemm tile
bench reference-clblast reference --samples "$samples" --plan phased --gemm clblast
[ "$type" != cpu ] || bench reference-block reference --samples "$samples" --plan block
if [ $quick = no ]; then
    bench reference-f16 reference --samples "$samples" --store f16
    bench reference-bf16 reference --samples "$samples" --store bf16
    bench reference-32k reference-32k --samples "$samples"
    bench wide-tile wide --samples "$samples" --plan phased --gemm tile
    bench wide-clblast wide --samples "$samples" --plan phased --gemm clblast
    bench small small --samples "$samples"
    check ablation within 900 "$here/mimus" bench --ablate --samples "$samples" -q
    mimus bench reference --samples "$samples" -q -o "$out/reference.html" >"$out/logs/bench.log" 2>&1
    cat "$out/logs/ablation.log" "$out/logs/bench.log"
fi
printf '\n%-22s %10s %10s %10s %6s %9s %8s %9s\n%s' bench epoch first floor over launches enqueue agreement "$table"
echo "over: the epoch over its floor; launches: of a step; enqueue: the host's share of it."
cat >"$out/results.json" <<TEXT
{"version": "$(plain <"$out/logs/version")", "system": "$system", "processor": "$processor", "quick": $([ $quick = yes ] && echo true || echo false),
 "device": $(get devices "$chosen" <"$out/devices.json"),
 "checks": [$checks],
 "benches": {$benches}}
TEXT
get <"$out/results.json" || { complain "results.json came out broken"; failed=1; }
(cd "$out" && rm -rf cache lib vendors)
echo "$out has results.json and the logs"
exit $failed
