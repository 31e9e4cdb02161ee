#!/usr/bin/env bash
# Runs a test in which one rank ends in the midst of a load: ended_test.sh TEST EXIT_CODE MPIRUN... PROGRAM. The others
# must end within ten seconds, with that exit code, and no shared memory may stay behind.
set -euo pipefail
test=$1 wanted=$2
shift 2

code=0
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
timeout 10 "$@" --gtest_also_run_disabled_tests --gtest_filter="*.DISABLED_$test" || code=$?
if [[ $code -ne $wanted ]]; then
  echo "the job ended with $code, not with $wanted"
  exit 1
fi
for name in /dev/shm/ballast-*; do
  [[ -e $name ]] || continue
  pid=${name#/dev/shm/ballast-}
  [[ -d /proc/${pid%-*} ]] || { echo "left behind: $name"; exit 1; }
done
echo "the job ended with $code, and left nothing"
