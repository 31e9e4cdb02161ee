"""Prints what Python's zipfile reads from many archives: the second opinion of zip_differential_test.cpp.

The argument names a file of archives, each after its length in four bytes. For each archive a line is printed:
"refused", or the name and the content of every member, in hexadecimal.
"""

import io
import struct
import sys
import warnings
import zipfile


def opinion(data):
    members = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            name = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
            members.append(f"{name.hex()}={archive.read(info).hex()}")
    return "read " + ";".join(members)


def main(path):
    warnings.simplefilter("ignore")  # zipfile only warns about two members of one name
    with open(path, "rb") as batch:
        while length := batch.read(4):
            data = batch.read(struct.unpack("<I", length)[0])
            try:
                print(opinion(data))
            except Exception:  # zipfile raises a dozen kinds, not all of them its own
                print("refused")


main(sys.argv[1])
