#!/usr/bin/env bash
# Runs a load of which the last rank is killed: killed_test.sh MPIRUN... PROGRAM. The others must end within ten seconds
# with a failure, and no shared memory may stay behind.
set -euo pipefail

code=0
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
timeout 10 "$@" --gtest_also_run_disabled_tests --gtest_filter='*KillsTheLastRank' || code=$?
if [[ $code -eq 0 || $code -eq 124 ]]; then
  echo "the job ended with $code"
  exit 1
fi
for name in /dev/shm/ballast-*; do
  [[ -e $name ]] || continue
  pid=${name#/dev/shm/ballast-}
  [[ -d /proc/${pid%-*} ]] || { echo "left behind: $name"; exit 1; }
done
echo "the job ended with $code, and left nothing"
