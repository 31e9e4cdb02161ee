"""Compiles programs that are wrong, and expects the compiler to say so in our own sentences.

    compile_errors_test.py CXX INCLUDE
"""

import subprocess
import sys

# a program, and what the compiler must say about it
PROGRAMS = {
    "struct Plain {}; void f(Plain& p) { (void)ballast::bind(p); }":
        "Ballast does not know what is inside this type. Say it with BALLAST_FIELDS(Type, a, b)",
    "struct Inner {}; struct Outer { std::vector<Inner> all; }; BALLAST_FIELDS(Outer, all)"
    " void f(Outer& o) { (void)ballast::state_dict(o); }":
        "or, if it is a tensor, by specialising ballast::TensorAccess",
    "struct Half { int* rows; }; template <> struct ballast::TensorAccess<Half> {"
    " static ballast::DType dtype(const Half&); };"
    " struct Model { Half half; }; BALLAST_FIELDS(Model, half) void f(Model& m) { (void)ballast::bind(m); }":
        "ballast::TensorAccess is specialised for this type, but does not have all of dtype, shape, prepare and bytes",
    "ballast::Tensor t(); auto f() { return t().as<float>(); }":
        "deleted",
}
RIGHT = "struct Fine { ballast::Tensor a; }; BALLAST_FIELDS(Fine, a) void f(Fine& m) { (void)ballast::bind(m); }"


def compile_program(compiler, include, program):
    text = "#include <ballast/bind.hpp>\n#include <vector>\n" + program + "\n"
    return subprocess.run([compiler, "-std=c++20", f"-I{include}", "-fsyntax-only", "-x", "c++", "-"], input=text,
                          capture_output=True, text=True)


def main(compiler, include):
    done = compile_program(compiler, include, RIGHT)
    if done.returncode != 0:
        sys.exit(f"this should compile: {RIGHT}\n{done.stderr}")
    for program, sentence in PROGRAMS.items():
        done = compile_program(compiler, include, program)
        if done.returncode == 0 or sentence not in done.stderr:
            sys.exit(f"{program}\nshould not compile, and the compiler should say: {sentence}\n{done.stderr}")
        print(f"says: {sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:])
