#!/usr/bin/env bash
# ballast-mpi on two hosts that share files, and no memory, writes what ballast writes:
# command_hosts_test.sh MPIRUN BALLAST BALLAST_MPI FOLDER
set -euo pipefail
mpirun=$1 alone=$2 together=$3 model=$4
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$alone" convert "$model" "$out/alone.safetensors" --dtype BF16 --max-shard-size 100KB -q
"$here/hosts_test.sh" 2 2 "$mpirun" "$together" convert "$model" "$out/together.safetensors" --dtype BF16 --max-shard-size 100KB
for file in "$out"/alone-*; do cmp "$file" "${file/alone-/together-}"; done
cmp <("$alone" hash "$model") <("$here/hosts_test.sh" 2 2 "$mpirun" "$together" hash "$model")

# An error of one host ends all, with its exit code.
code=0
"$here/hosts_test.sh" 2 2 "$mpirun" "$together" hash "$out/nowhere.safetensors" 2>"$out/errors" || code=$?
[[ $code == 3 && $(grep -c '^ballast: ' "$out/errors") == 1 ]]
