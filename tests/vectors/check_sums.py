"""Fails if a reference vector is missing, changed or not in SHA256SUMS. `check_sums.py --write` writes that list anew."""

import hashlib
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
LIST = FOLDER / "SHA256SUMS"


def sums_of_files():
    """{path: sum} of every vector: what lies in the folders, but for their documents."""
    files = sorted(path for path in FOLDER.glob("*/**/*") if path.is_file() and path.suffix != ".md")
    return {path.relative_to(FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def sums_of_list():
    return {path: digest for digest, path in (line.split("  ", 1) for line in LIST.read_text().splitlines())}


def main():
    found = sums_of_files()
    if sys.argv[1:] == ["--write"]:
        LIST.write_text("".join(f"{digest}  {path}\n" for path, digest in found.items()))
        return
    listed = sums_of_list()
    wrong = [f"missing: {path}" for path in sorted(listed.keys() - found.keys())]
    wrong += [f"not in SHA256SUMS: {path}" for path in sorted(found.keys() - listed.keys())]
    wrong += [f"changed: {path}" for path in sorted(listed.keys() & found.keys()) if listed[path] != found[path]]
    if wrong or not listed:
        sys.exit("\n".join(wrong) or "SHA256SUMS lists nothing")
    print(f"{len(found)} files are as SHA256SUMS says")


main()
