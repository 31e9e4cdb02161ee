#!/usr/bin/env bash
# A consumer without CMake: pkg_config.sh COMPILER PREFIX PROGRAM builds PROGRAM against what is installed under PREFIX.
set -euo pipefail
compiler=$1 prefix=$2 program=$3
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name ballast.pc)")
export PKG_CONFIG_PATH

# Word splitting is what pkg-config's output is made for.
# shellcheck disable=SC2046
"$compiler" -std=c++20 $(pkg-config --cflags ballast) "$(dirname "$0")/main.cpp" $(pkg-config --libs ballast) -o "$program"
"$program" "$program.safetensors"

# What the README shows is such a consumer, too.
source=$(cd "$(dirname "$0")/../.." && pwd)
awk '/^```cpp/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" > "$program.readme.cpp"
# shellcheck disable=SC2046
"$compiler" -std=c++20 $(pkg-config --cflags ballast) "$program.readme.cpp" $(pkg-config --libs ballast) -o "$program.readme"
"$program.readme" "$source/examples/tiny.safetensors" | tee "$program.readme.out"
grep -q '^model.layers.1.mlp.up.weight \[32, 16\]$' "$program.readme.out"
grep -q '^1.000000, 8 bytes$' "$program.readme.out"
