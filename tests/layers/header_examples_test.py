"""Compiles the examples in the comments of the public headers:

    header_examples_test.py COMPILER INCLUDE_FOLDER [--mpi FOLDER...]

The example of mpi.hpp needs MPI's own header, so it is compiled only if --mpi says in which folders that is.

An example is the lines below "// Example:", each behind "//   ". Each becomes a function in which the names of Ballast
are in scope; structs and macros of an example go before its function.
"""

import pathlib
import re
import subprocess
import sys
import unittest

COMPILER, INCLUDE = sys.argv[1], pathlib.Path(sys.argv[2])
HAS_MPI, MPI_FOLDERS = "--mpi" in sys.argv, sys.argv[4:]

# Without an example, since they are used through others, or too small for one: most headers. These must have one.
COMMON = ["adapter", "diff", "hash", "load", "load_state_dict", "merge", "metadata", "names", "open", "save", "scan",
          "stats", "summary", "transform", "verify"]


def example_of(header):
    match = re.search(r"(?m)^// Example:\n((?://(?:   .*)?\n)+)", header.read_text(encoding="utf-8"))
    return match and re.sub(r"(?m)^//(?:   )?", "", match.group(1))


def function_of(name, example):
    *before, last = example.split("\n\n")
    return f"namespace example_{name} {{\n" + "\n".join(before) + f"\nvoid run() {{\n{last}\n}}\n}}\n"


class TheHeaders(unittest.TestCase):
    def test_of_common_functions_have_an_example(self):
        for name in COMMON:
            self.assertTrue(example_of(INCLUDE / "ballast" / f"{name}.hpp"), name)

    def test_have_examples_that_compile(self):
        examples = {path.stem: example_of(path) for path in sorted((INCLUDE / "ballast").glob("*.hpp"))}
        self.assertTrue(examples["mpi"])
        if not HAS_MPI:
            del examples["mpi"]
        program = "#include <ballast/ballast.hpp>\n#include <iostream>\n" + "".join(
            f"#include <ballast/{name}.hpp>\n" for name in examples) + "using namespace ballast;\n" + "".join(
            function_of(name, example) for name, example in examples.items() if example)
        result = subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only",
                                 f"-I{INCLUDE}", *(f"-isystem{folder}" for folder in MPI_FOLDERS),
                                 "-DOMPI_SKIP_MPICXX", "-x", "c++", "-"], input=program, text=True, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
