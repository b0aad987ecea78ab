#!/bin/sh
# Holds what mimus reads and writes against the programs that others read and write it with.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'TEXT'
usage: ci/oracles.sh [--build DIR] [ARGUMENT...]
  --build DIR   where mimus is built with its tests (build-ci/gcc, built where it is not)
  ARGUMENT      for pytest: -k export, -x
Runs the tests of tests/oracles with the packages of its requirements.txt, which come from PyPI into a virtual
environment in build-ci/oracles; nothing is installed.
Exits with 1 when a test failed, with 3 when the packages are not to be had.
TEXT
}

build=$PWD/build-ci/gcc own=yes
case ${1-} in
-h | --help) usage; exit 0 ;;
--build)
    [ $# -gt 1 ] && build=$(cd "$2" && pwd) || { usage >&2; exit 2; }
    own=no
    shift 2
    ;;
esac

tests=tests/oracles
work=$PWD/build-ci/oracles
log=$work/log
mkdir -p "$work"
: >"$log"

# Other requirements get another environment; a half-made one has no stamp.
venv=$work/venv-$(cksum <$tests/requirements.txt | cut -d ' ' -f 1)
if [ ! -e "$venv/complete" ]; then
    rm -rf "$work"/venv-*
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --only-binary=:all: -r $tests/requirements.txt; } >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "oracles.sh: cannot get the packages of $tests/requirements.txt into a virtual environment" >&2
        exit 3
    fi
    : >"$venv/complete"
fi

if [ $own = yes ]; then
    cmake -G Ninja -B "$build" -DMIMUS_TESTS=ON -DMIMUS_WERROR=ON -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS=-g >>"$log" 2>&1 &&
        ninja -C "$build" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "oracles.sh: the build failed" >&2; exit 1; }
fi
MIMUS_BUILD=$build PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest $tests "$@" || exit 1
