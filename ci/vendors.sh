#!/bin/sh
# Runs mimus on the OpenCL of four vendors, all on the CPU: what "any device" can mean without a GPU.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'TEXT'
usage: ci/vendors.sh [--selftest] [VENDOR...]
       ci/vendors.sh --run VENDOR COMMAND...
  (nothing)    on each vendor the self-test and the device tests, then the bench on the first three together
  --selftest   the self-tests alone
  --run        run a command that finds the devices of this vendor and no others
Vendors: pocl, intel (Intel's CPU runtime), rusticl (Mesa's, on llvmpipe), oclgrind (a simulator: it and rusticl are slow,
and run the tests with the label "small"). For --run also all: the first three at once.
What is not installed comes from PyPI and Debian's packages into build-ci/vendors, and is used from there.
Exits with 1 when something failed; with 3 when nothing failed, but a vendor could not be set up.
TEXT
}

action=everything
case ${1-} in
--selftest) action=selftest && shift ;;
--run)
    [ $# -gt 2 ] || { usage >&2; exit 2; }
    action=run
    ;;
-h | --help) usage; exit 0 ;;
-*) usage >&2; exit 2 ;;
esac

build=$PWD/build-ci/gcc
work=$PWD/build-ci/vendors
logs=$work/logs
mkdir -p "$logs"

# ------------------------------------------------------------------ setting them up
# prepare_VENDOR leaves $work/icd/VENDOR with the one file that leads the OpenCL loader there, or says why not.

driver() { # vendor, library
    mkdir -p "$work/icd/$1"
    echo "$2" >"$work/icd/$1/$1.icd"
}

prepare_pocl() {
    [ -f /etc/OpenCL/vendors/pocl.icd ] || { echo "pocl-opencl-icd is not installed (ci/deps.sh)"; return 1; }
    driver pocl "$(cat /etc/OpenCL/vendors/pocl.icd)"
}

prepare_oclgrind() {
    library=/usr/lib/oclgrind/liboclgrind-rt-icd.so
    [ -f $library ] || { echo "oclgrind is not installed (ci/deps.sh, where the distribution has it)"; return 1; }
    driver oclgrind $library
}

# About 800 MB. The loader that comes along would hide the system's.
prepare_intel() {
    venv=$work/intel-2026.2.0
    if [ ! -f "$venv/ready" ]; then
        rm -rf "$venv"
        if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --no-deps intel-opencl-rt==2026.2.0 \
            intel-cmplr-lib-rt==2026.2.0 intel-cmplr-lic-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0; } \
            >"$logs/intel-setup.log" 2>&1; then
            echo "cannot get intel-opencl-rt 2026.2.0 from PyPI into a virtual environment: $(tail -n 1 "$logs/intel-setup.log")"
            return 1
        fi
        rm -f "$venv"/lib/libOpenCL.so*
        touch "$venv/ready"
    fi
    driver intel "$venv/lib/libintelocl.so"
}

# Rusticl looks for libclc under /usr/lib/clc and nowhere else: where the package is not installed, its unpacked files
# are laid over /usr/lib, for the command alone, in a mount namespace.
overlay() { # command...
    if [ ! -d "$work/mesa" ]; then
        "$@"
    elif [ "$(id -u)" -eq 0 ]; then
        unshare -m sh -c 'mount -t overlay overlay -o lowerdir="$0/usr/lib:/usr/lib" /usr/lib && exec "$@"' "$work/mesa" "$@"
    else
        unshare -Urm sh -c 'mount -t overlay overlay -o lowerdir="$0/usr/lib:/usr/lib" /usr/lib && exec "$@"' "$work/mesa" "$@"
    fi
}

prepare_rusticl() {
    packages=$(apt-get -s install --no-install-recommends mesa-opencl-icd 2>"$logs/rusticl-setup.log" |
        sed -n 's/^Inst \([^ ]*\).*/\1/p')
    if [ -n "$packages" ] && [ ! -d "$work/mesa" ]; then
        if ! (
            rm -rf "$work/packages" && mkdir -p "$work/packages" && cd "$work/packages" && apt-get download $packages &&
                for package in ./*.deb; do dpkg -x "$package" "$work/mesa.new"; done
        ) >>"$logs/rusticl-setup.log" 2>&1; then
            echo "cannot get $packages with apt-get: $(tail -n 1 "$logs/rusticl-setup.log")"
            return 1
        fi
        mv "$work/mesa.new" "$work/mesa"
    fi
    if ! overlay test -f /usr/lib/clc/spirv64-mesa3d-.spv 2>>"$logs/rusticl-setup.log"; then
        echo "cannot lay files over /usr/lib in a namespace: $(tail -n 1 "$logs/rusticl-setup.log"); install mesa-opencl-icd"
        return 1
    fi
    driver rusticl libRusticlOpenCL.so.1
}

prepare_all() {
    for one in pocl intel rusticl; do
        "prepare_$one" || return 1
    done
    mkdir -p "$work/icd/all"
    cp "$work"/icd/pocl/*.icd "$work"/icd/intel/*.icd "$work"/icd/rusticl/*.icd "$work/icd/all/"
}

on() { # vendor, command...
    vendor=$1
    shift
    case $vendor in
    rusticl | all) set -- overlay "$@" ;;
    esac
    (
        unset MIMUS_DEVICE MIMUS_GEOMETRY MIMUS_OPENCL_LIBRARY
        export OCL_ICD_VENDORS="$work/icd/$vendor" RUSTICL_ENABLE=llvmpipe
        "$@"
    )
}

# ------------------------------------------------------------------ what is run

table=''
failed=0
absent=0

note() { # vendor, what, outcome, seconds or reason
    table="$table$(printf '%-10s %-10s %-8s %s' "$1" "$2" "$3" "$4")
"
}

stage() { # vendor, what, command...
    stage_vendor=$1 stage_name=$2 stage_began=$(date +%s)
    shift 2
    stage_log=$logs/$stage_vendor-$stage_name.log
    printf '== %s: %s\n' "$stage_vendor" "$stage_name"
    if on "$stage_vendor" "$@" >"$stage_log" 2>&1; then
        note "$stage_vendor" "$stage_name" ok "$(($(date +%s) - stage_began)) s"
    else
        failed=1
        tail -n 100 "$stage_log"
        note "$stage_vendor" "$stage_name" FAILED "$(($(date +%s) - stage_began)) s"
    fi
}

run_vendor() {
    if ! reason=$("prepare_$1"); then
        absent=1
        note "$1" '' 'NOT RUN' "$reason"
        return
    fi
    stage "$1" selftest "$build/mimus" devices --selftest
    stage "$1" as-gpu env MIMUS_GEOMETRY=gpu "$build/mimus" devices --selftest
    [ $action = everything ] || return 0
    case $1 in
    pocl | intel) label=device ;;
    *) label=small ;;
    esac
    stage "$1" suite env MIMUS_DEVICE=0:0 ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -L "^$label\$"
}

if [ $action = run ]; then
    vendor=$2
    shift 2
    "prepare_$vendor" || exit 3
    on "$vendor" "$@"
    exit
fi
cmake -G Ninja -B "$build" -DMIMUS_TESTS=ON -DMIMUS_WERROR=ON -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS=-g >"$logs/build.log" 2>&1 &&
    ninja -C "$build" >>"$logs/build.log" 2>&1 || { tail -n 30 "$logs/build.log"; exit 1; }
[ $# -gt 0 ] || set -- pocl intel rusticl oclgrind
for each in "$@"; do
    case $each in
    pocl | intel | rusticl | oclgrind) run_vendor "$each" ;;
    *) usage >&2; exit 2 ;;
    esac
done
if [ $action = everything ] && [ $# -eq 4 ]; then
    if reason=$(prepare_all); then
        stage all bench "$build/mimus" bench reference --samples 65536 --all-devices
        cat "$logs/all-bench.log"
    else
        note all bench 'NOT RUN' "$reason"
    fi
fi
printf '\n%s' "$table"
[ $failed -eq 0 ] || exit 1
[ $absent -eq 0 ] || exit 3
