#!/bin/sh
# Compiles every kernel as a GPU would get it for GPUs that need not be there, and says what became of it.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'TEXT'
usage: ci/gpu-static.sh [--json FILE] [--update]
  --json FILE   the table as JSON, too
  --update      write the table into docs/performance.md
Lets mimus train on a CPU device that calls itself a GPU, takes what it gives to OpenCL, and compiles that for NVIDIA
sm_61 and sm_86 and for AMD gfx900 and gfx1030. The compilers come from Debian's packages and from PyPI into
build-ci/gpu-static; nothing is installed.
Exits with 1 when a kernel spills registers or leaves more than three quarters of a GPU's warps unused, when there is a
kernel that no training launches, or when docs/performance.md shows another table made by the same compilers; with 3 when
the compilers are not to be had.
TEXT
}

ptxas_version=12.9.86 # of nvidia-cuda-nvcc-cu12; later ones no longer know Pascal
json='' update=''
while [ $# -gt 0 ]; do
    case $1 in
    --json)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        json=$2
        shift
        ;;
    --update) update=--update ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

build=$PWD/build-ci/gcc
work=$PWD/build-ci/gpu-static
log=$work/log
mkdir -p "$work"
: >"$log"

fail() { # status, message
    tail -n 20 "$log" >&2
    echo "gpu-static.sh: $2" >&2
    exit "$1"
}

# ------------------------------------------------------------------ the compilers

# libclc holds OpenCL's built-in functions as bitcode of one version of LLVM: that of the clang here.
find_clc() {
    command -v clang >/dev/null || fail 3 "no clang (ci/deps.sh installs it)"
    version=$(clang -dumpversion | cut -d . -f 1)
    clc=$work/libclc-$version/usr/lib/clc
    [ ! -f "$clc/nvptx64--nvidiacl.bc" ] || return 0
    (
        mkdir -p "$work/packages" && cd "$work/packages" && rm -f ./*.deb &&
            apt-get download "libclc-$version" "libclc-$version-dev" &&
            for package in ./*.deb; do dpkg -x "$package" "$work/libclc-$version"; done
    ) >>"$log" 2>&1
    [ -f "$clc/nvptx64--nvidiacl.bc" ] || fail 3 "cannot get libclc-$version and libclc-$version-dev with apt-get"
}

find_ptxas() {
    venv=$work/venv-$ptxas_version
    ptxas=$(find "$venv" -name ptxas -type f 2>/dev/null)
    [ -z "$ptxas" ] || return 0
    { python3 -m venv "$venv" && "$venv/bin/pip" install "nvidia-cuda-nvcc-cu12==$ptxas_version"; } >>"$log" 2>&1
    ptxas=$(find "$venv" -name ptxas -type f 2>/dev/null)
    [ -n "$ptxas" ] || fail 3 "cannot get nvidia-cuda-nvcc-cu12 $ptxas_version from PyPI into a virtual environment"
}

# ------------------------------------------------------------------ what the host launches

# The test shim stands between mimus and OpenCL, makes the device call itself a GPU, and keeps the sources, build
# options and group sizes of all launches. Sizes that launches alone depend on are small: CPUs are slow at this. What
# was tuned before must not count: kernels that only trials launch would be missing then.
launches() { # folder, arguments of mimus
    folder=$work/launches/$1
    shift
    mkdir -p "$folder"
    env -u MIMUS_DEVICE -u MIMUS_GEOMETRY XDG_CACHE_HOME="$work/cache" MIMUS_OPENCL_LIBRARY="$build/tests/libopencl_shim.so" \
        MIMUS_SHIM="gpu record=$folder" "$build/mimus" "$@" >>"$log" 2>&1 || fail 1 "mimus $1 failed"
}

train() { # folder, settings
    folder=$1
    shift
    rm -rf "$work/run"
    launches "$folder" train "$work/play.rec" -o "$work/run" --quiet --batch 64 --epochs 1 "$@"
}

record() {
    rm -rf "$work/launches" "$work/play.rec" "$work/cache"
    "$build/mimus-arena" record --samples 4096 -o "$work/play.rec" >>"$log" 2>&1 || fail 1 "cannot record play"
    launches 1-reference bench reference --samples 4096 --batch 64 --epochs 2 --gemm tile
    launches 5-ablation bench reference --samples 4096 --batch 64 --epochs 2 --gemm tile --ablate
    train 2-clblast --gemm clblast --dropout 0.1 --store f16
    train 3-adamw --gemm tile --optimizer adamw --stack 4 --shard 256K
    train 4-sgd --gemm tile --optimizer sgd --store bf16
    # What CPUs alone launch need not be compiled.
    env -u MIMUS_DEVICE MIMUS_GEOMETRY=cpu MIMUS_OPENCL_LIBRARY="$build/tests/libopencl_shim.so" \
        MIMUS_SHIM="record=$work/launches/cpu" sh -c 'mkdir -p "$0" && exec "$@"' "$work/launches/cpu" \
        "$build/mimus" devices --selftest >>"$log" 2>&1 || fail 1 "the self-test failed"
}

find_clc
find_ptxas
cmake -G Ninja -B "$build" -DMIMUS_TESTS=ON -DMIMUS_WERROR=ON -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS=-g >>"$log" 2>&1 &&
    ninja -C "$build" mimus-cli mimus-arena opencl_shim >>"$log" 2>&1 || fail 1 "the build failed"
record
exec python3 ci/gpu_static.py --launches "$work/launches" --kernels cl --clang clang --clc "$clc" --ptxas "$ptxas" \
    --document docs/performance.md ${json:+--json "$json"} $update
