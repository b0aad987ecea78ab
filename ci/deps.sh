#!/bin/sh
# Installs what mimus needs from the packages of Debian 12 and later, Ubuntu 22.04 and later.
set -eu

usage() {
    cat <<'TEXT'
usage: ci/deps.sh [--run | --list]
  (nothing)   everything: to build, run, test and check mimus
  --run       only what building and running it need
  --list      print the packages, install nothing
Does nothing, and needs no rights, where they are all installed; else it needs root or sudo.
TEXT
}

run="gcc libc6-dev cmake ninja-build pkg-config libjs-chart.js
    opencl-headers ocl-icd-libopencl1 pocl-opencl-icd libclblast-dev
    libjansson-dev libzip-dev libxxhash-dev libprotobuf-c-dev protobuf-c-compiler
    libhdf5-dev zlib1g-dev libcsv-dev"
test="g++ clang clang-format clang-tidy shellcheck check valgrind python3-venv"
# Some distributions lack these, or have them inside of another package.
optional="libclang-rt-dev clang-format-14 clang-tidy-14 oclgrind chromium-driver"

packages="$run $test"
action=install
case ${1-} in
'') ;;
--run) packages=$run optional='' ;;
--list) action=list ;;
-h | --help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac
if [ $action = list ]; then
    printf '%s\n' $packages
    [ -z "$optional" ] || printf '%s (where there is one)\n' $optional
    exit 0
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: no Debian or Ubuntu here; install yourself what corresponds to:" $packages >&2
    exit 1
fi

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}
offered() {
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}
missing() {
    for package in $packages; do
        installed "$package" || printf '%s ' "$package"
    done
    for package in $optional; do
        installed "$package" || ! offered "$package" || printf '%s ' "$package"
    done
}

[ -n "$(missing)" ] || exit 0
if [ "$(id -u)" -eq 0 ]; then
    sudo=''
elif command -v sudo >/dev/null; then
    sudo=sudo
else
    echo "deps.sh: neither root nor sudo; have these installed: $(missing)" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1
}
apt update || cat "$log" >&2 # one broken source of many need not matter
wanted=$(missing)
echo "installing $wanted"
if ! apt install -y --no-install-recommends $wanted; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get could not install: $wanted" >&2
    exit 1
fi
