"""Reads which versions of glibc's symbols programs and libraries need, and fails on one that is newer than we promise.

    symbol_versions_test.py OBJDUMP FILE...

The packages run wherever glibc is 2.36 or later: docs/install.md says where that is. They are built on Debian 12, which
has that version; what a newer system builds may need more.
"""

import re
import subprocess
import sys

NEWEST_GLIBC = (2, 36)


def needed_versions(objdump, path):
    """{library: [symbol version]} of a file: {"libc.so.6": ["GLIBC_2.34", …]}."""
    listing = subprocess.run([objdump, "-p", path], check=True, capture_output=True, text=True).stdout
    needed, library = {}, None
    for line in listing.partition("Version References:")[2].splitlines():
        begins = re.match(r"\s+required from (\S+):$", line)
        version = re.match(r"\s+0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)$", line)
        if begins:
            library = begins[1]
        elif version and library:
            needed.setdefault(library, []).append(version[1])
    return needed


def glibc_version(symbol):
    """(2, 36) for GLIBC_2.36; nothing for what is no version of glibc."""
    if symbol == "GLIBC_ABI_DT_RELR":  # packed relocations
        return (2, 36)
    found = re.match(r"GLIBC_(\d+(?:\.\d+)*)$", symbol)
    return tuple(map(int, found[1].split("."))) if found else None


def too_new(symbols):
    """What is newer, or private to one version of glibc."""
    return [symbol for symbol in symbols if symbol.startswith("GLIBC_") and
            not (glibc_version(symbol) and glibc_version(symbol) <= NEWEST_GLIBC)]


def main(objdump, *paths):
    failed = not paths
    for path in paths:
        needed = needed_versions(objdump, path)
        versions = [glibc_version(symbol) for symbols in needed.values() for symbol in symbols if glibc_version(symbol)]
        if not versions:
            print(f"{path} needs no version of glibc: is it a program?")
            failed = True
            continue
        print(f"{path} needs glibc {'.'.join(map(str, max(versions)))}")
        for library, symbols in needed.items():
            for symbol in too_new(symbols):
                print(f"  {library} must have {symbol}, but glibc {'.'.join(map(str, NEWEST_GLIBC))} does not: build the "
                      "packages on Debian 12, or leave out the call")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
