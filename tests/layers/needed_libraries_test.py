"""Reads which shared libraries a program or a module needs, and fails on one that is not expected.

    needed_libraries_test.py OBJDUMP FILE... [--alone FILE...]

No Python, no torch, no BLAS: whatever is not in this list is a dependency that somebody added without saying so. A file
after --alone needs the system's own libraries only: any other library would slow down each start of the command.
"""

import re
import subprocess
import sys

EXPECTED = {
    "ld-linux-x86-64": "the loader",
    "ld-linux-aarch64": "the loader",
    "libc": "C",
    "libm": "C",
    "libgcc_s": "C++",
    "libstdc++": "C++",
    "libfmt": "text",
    "libhwy": "SIMD",
    "libcrypto": "SHA-256",
    "libxxhash": "fast hashes",
    "libz": "inflate",
    "libdeflate": "CRC-32",
    "libzstd": "compressed tensors",
    "libre2": "regular expressions",
}


SYSTEM = {"ld-linux-x86-64", "ld-linux-aarch64", "libc", "libm"}


def needed(objdump, path):
    listing = subprocess.run([objdump, "-p", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*NEEDED\s+(\S+)", listing, re.MULTILINE)


def main(objdump, *paths):
    failed = False
    expected = set(EXPECTED)
    for path in paths:
        if path == "--alone":
            expected = SYSTEM
            continue
        libraries = needed(objdump, path)
        print(f"{path} needs {' '.join(libraries)}")
        for library in libraries:
            if library.split(".so")[0] not in expected:
                print(f"  {library} is not expected: drop it, load it at first use, or say in {__file__} what it is for")
                failed = True
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
