#!/bin/sh
# Looks at mimus' pages in a browser without a window: nothing in its console, every chart drawn, nothing wider than a phone.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    cat <<'TEXT'
usage: ci/browser.sh [--build DIR] [ARGUMENT...]
  --build DIR   where mimus is built with its tests (build-ci/gcc, built where it is not)
  ARGUMENT      for pytest: -k phone, -x
Runs tests/oracles/test_report.py, with packages from PyPI as ci/oracles.sh does. In the environment:
  MIMUS_BROWSER, MIMUS_CHROMEDRIVER   a Chromium or Chrome, and the chromedriver that goes with it
  MIMUS_PICTURES                      a folder for pictures of the pages
Exits with 1 when a test failed, with 3 when there is no browser, or the packages are not to be had.
TEXT
}

case ${1-} in -h | --help) usage; exit 0 ;; esac

first() { # the first of these commands that there is
    for name in "$@"; do
        command -v "$name" && return 0
    done
    return 1
}

# Debian has both as packages; Ubuntu's chromium is only the way to a snap.
MIMUS_BROWSER=${MIMUS_BROWSER:-$(first chromium google-chrome google-chrome-stable)}
MIMUS_CHROMEDRIVER=${MIMUS_CHROMEDRIVER:-$(first chromedriver "${CHROMEWEBDRIVER:-}/chromedriver" /usr/lib/chromium/chromedriver)}
if [ -z "$MIMUS_BROWSER" ] || [ -z "$MIMUS_CHROMEDRIVER" ] || ! "$MIMUS_BROWSER" --version >/dev/null 2>&1; then
    echo "browser.sh: no chromium with a chromedriver here (Debian: chromium and chromium-driver)" >&2
    exit 3
fi
export MIMUS_BROWSER MIMUS_CHROMEDRIVER
if [ "${1-}" = --build ]; then
    [ $# -gt 1 ] || { usage >&2; exit 2; }
    build=$2
    shift 2
    exec sh ci/oracles.sh --build "$build" -m browser "$@"
fi
exec sh ci/oracles.sh -m browser "$@"
