"""Importance matrices, from outside: what `imatrix info` says about both formats, and what it refuses."""

import struct
import unittest

from support import *


def legacy(entries, end=b""):
    """The older format: a count, then each name with its calls and its values."""
    file = struct.pack("<i", len(entries))
    for name, calls, values in entries:
        file += struct.pack("<i", len(name)) + name + struct.pack(f"<ii{len(values)}f", calls, len(values), *values)
    return file + end


class Imatrix(TestCase):
    def write(self, content):
        (self.folder / "imatrix.dat").write_bytes(content)
        return "imatrix.dat"

    def test_info_says_what_each_tensor_has(self):
        end = struct.pack("<ii", 6, 8) + b"text.txt"
        file = self.write(legacy([(b"blk.10.w", 2, [2, 4]), (b"blk.9.w", 1, [1, 0, 5])], end))
        self.assertEqual(self.ballast("imatrix", "info", file, "--json").json(), {
            "schema": "ballast.imatrix/1", "target": "imatrix.dat", "format": "legacy", "datasets": ["text.txt"],
            "chunks": 6, "chunk_size": 0, "entries": [
                {"name": "blk.10.w", "columns": 2, "matrices": 1, "unseen": 0, "min": 1, "max": 2, "mean": 1.5},
                {"name": "blk.9.w", "columns": 3, "matrices": 1, "unseen": 0, "min": 0, "max": 5, "mean": 2}]})
        lines = self.ballast("imatrix", "info", file).lines()
        self.assertIn("entries     2", lines)
        self.assertEqual(lines[-2:], ["blk.9.w\t3\t1\t0\t0\t5\t2", "blk.10.w\t2\t1\t0\t1\t2\t1.5"])

    def test_names_and_data_sets_command_no_terminal(self):
        file = self.write(legacy([(b"\x1b[31m", 1, [1])], struct.pack("<ii", 1, 5) + b"\x1b[32m"))
        self.assertNotIn("\x1b", self.ballast("imatrix", "info", file).out)

    def test_what_is_no_importance_matrix_is_refused(self):
        self.refused("imatrix", "info", TINY, code=MALFORMED, says="number of entries", hint="llama-imatrix")
        self.refused("imatrix", "info", self.write(legacy([(b"w", 1, [float("nan")])])), code=MALFORMED, says="is nan")
        self.refused("imatrix", "info", "nothing", code=IO, says="nothing")


if __name__ == "__main__":
    unittest.main()
