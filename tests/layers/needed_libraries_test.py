"""Reads which shared libraries a program or a module needs, and fails on one that is not expected.

    needed_libraries_test.py OBJDUMP FILE...

No Python, no torch, no BLAS: whatever is not in this list is a dependency that somebody added without saying so.
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
    "libsimdjson": "JSON",
    "libcrypto": "SHA-256",
    "libxxhash": "fast hashes",
    "libz": "inflate",
    "libdeflate": "CRC-32",
    "libzstd": "compressed tensors",
    "libre2": "regular expressions",
}


def needed(objdump, path):
    listing = subprocess.run([objdump, "-p", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*NEEDED\s+(\S+)", listing, re.MULTILINE)


def main(objdump, *paths):
    failed = False
    for path in paths:
        libraries = needed(objdump, path)
        print(f"{path} needs {' '.join(libraries)}")
        for library in libraries:
            if library.split(".so")[0] not in EXPECTED:
                print(f"  {library} is not expected: drop it, or say in {__file__} what it is for")
                failed = True
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
