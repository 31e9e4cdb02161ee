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
