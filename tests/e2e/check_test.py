"""verify and diff: questions whose answer may be no."""

import math
import unittest

from support import *


class Verify(TestCase):
    def test_a_good_file(self):
        self.assertEqual(self.ballast("verify", TINY).out, "ok: 12 tensors, 8576 bytes read\n")
        self.assertEqual(self.ballast("verify", TINY, "-q").out, "")
        self.assertEqual(self.ballast("verify", TINY, "--no-data", "--json").json(), {
            "schema": "ballast.verify/1", "target": str(TINY), "ok": True, "findings": [], "tensors": 12, "bytes_read": 0})

    def test_takes_what_hash_printed_whatever_the_names(self):
        self.write("odd.safetensors", {"": ("U8", [1], [1]), "nl\nx": ("U8", [1], [2]), "nl\\x0ax": ("U8", [1], [3]),
                                       "(all 4 tensors)": ("U8", [1], [4])})
        (self.folder / "m").write_bytes(self.ballast("hash", "odd.safetensors").raw)
        self.ballast("verify", "odd.safetensors", "--manifest", "m")
        self.write("other.safetensors", {"": ("U8", [1], [1]), "nl\nx": ("U8", [1], [2]), "nl\\x0ax": ("U8", [1], [9]),
                                         "(all 4 tensors)": ("U8", [1], [4])})
        self.ballast("verify", "other.safetensors", "--manifest", "m", code=NO)

    def test_a_truncated_file_is_a_finding(self):
        self.write("cut.safetensors", TINY.read_bytes()[:-100])
        result = self.ballast("verify", "cut.safetensors", code=NO)
        self.assertTrue(result.out.startswith("cut.safetensors: "), result)
        self.assertEqual(result.err, "1 finding\n")
        report = self.ballast("verify", "cut.safetensors", "--json", code=NO).json()
        self.assertEqual((report["ok"], len(report["findings"])), (False, 1))
        self.assertEqual(list(report["findings"][0]), ["where", "what"])

    def test_what_is_not_there_is_an_error(self):
        self.refused("verify", "nope", code=IO, says="nope")
        self.refused("verify", "-", code=USAGE, says="standard input", hint="file")

    def test_an_index_that_lies(self):
        self.write("m/a.safetensors", {"a": ("U8", [1], [1])})
        self.write("m/b.safetensors", {"b": ("U8", [1], [1])})
        index = {"weight_map": {"a": "b.safetensors", "b": "b.safetensors", "c": "a.safetensors"}}
        (self.folder / "m/model.safetensors.index.json").write_text(json.dumps(index))
        result = self.ballast("verify", "m", code=NO)
        for name in "ac":
            self.assertIn(f'"{name}"', result.out)

    def test_against_a_manifest(self):
        self.write("m.safetensors", {"a": ("U8", [1], [1]), "b\n": ("U8", [1], [2]), "c": ("U8", [1], [3])})
        self.write("n.safetensors", {"a": ("U8", [1], [1]), "b\n": ("U8", [1], [9]), "d": ("U8", [1], [3])})
        (self.folder / "manifest").write_text(self.ballast("hash", "m.safetensors").out)
        self.ballast("verify", "m.safetensors", "--manifest", "manifest")
        findings = self.ballast("verify", "n.safetensors", "--manifest", "manifest", "--json", code=NO).json()["findings"]
        self.assertEqual([finding["what"] for finding in findings], [
            'tensor "b\n" is not what the manifest says', 'tensor "d" is not in the manifest',
            'tensor "c" of the manifest is missing'])
        (self.folder / "manifest").write_text("nonsense\n")
        self.refused("verify", "m.safetensors", "--manifest", "manifest", code=MALFORMED, says="line 1", hint="ballast hash")
        self.refused("verify", "m.safetensors", "--manifest", "nope", code=IO, says="nope", hint="ballast hash")


class Diff(TestCase):
    A = {"same": ("F32", [2], [1, 2]), "values": ("F32", [4], [1, 2, 3, 4]), "shape": ("F32", [4], [1, 2, 3, 4]),
         "dtype": ("I32", [1], [1]), "gone": ("U8", [1], [1])}
    B = {"new": ("U8", [3], [1, 2, 3]), "values": ("F32", [4], [1, 2.5, 3, 3]), "shape": ("F32", [2, 2], [1, 2, 3, 4]),
         "dtype": ("U32", [1], [1]), "same": ("F32", [2], [1, 2])}

    def setUp(self):
        super().setUp()
        self.write("a.safetensors", self.A)
        self.write("b.safetensors", self.B)

    def test_a_selection_that_matches_nothing_is_not_equal(self):
        self.refused("diff", "a.safetensors", "a.safetensors", "--include", "nosuch", code=IO, says="selected")
        self.ballast("diff", "a.safetensors", "b.safetensors", "--include", "gone", code=NO)

    def test_counts_what_is_nan_on_one_side_only(self):
        self.write("c.safetensors", {"w": ("F32", [2], [math.nan, 1])})
        self.write("d.safetensors", {"w": ("F32", [2], [1, 1])})
        self.assertIn("1 NaN on one side only", self.ballast("diff", "c.safetensors", "d.safetensors", code=NO).out)
        changed = self.ballast("diff", "c.safetensors", "d.safetensors", "--json", code=NO).json()["changed"][0]
        self.assertEqual((changed["different"], changed["nan_mismatch"]), (1, 1))

    def test_equal_whatever_the_order_and_the_metadata(self):
        self.write("c.safetensors", dict(reversed(self.A.items())), {"x": "y"})
        self.assertEqual(self.ballast("diff", "a.safetensors", "c.safetensors").out, "equal: 5 tensors\n")
        self.assertEqual(self.ballast("diff", "a.safetensors", "c.safetensors", "-q").out, "")
        self.assertTrue(self.ballast("diff", "a.safetensors", "-", "--json",
                                     stdin=(self.folder / "c.safetensors").read_bytes()).json()["equal"])

    def test_text_says_what_differs(self):
        lines = self.ballast("diff", "a.safetensors", "b.safetensors", code=NO).lines()
        self.assertIn("- gone  U8 [1]", lines)
        self.assertIn("+ new  U8 [3]", lines)
        self.assertIn("~ shape  shape [4] → [2, 2]", lines)
        self.assertIn("~ dtype  dtype I32 → U32", lines)
        self.assertIn("~ values  2 values of 4 differ, by at most 1 (relative 0.25)", lines)
        self.assertEqual(lines[-1], "1 equal, 1 only in A, 1 only in B, 3 changed")

    def test_json(self):
        report = self.ballast("diff", "a.safetensors", "b.safetensors", "--json", code=NO).json()
        self.assertEqual((report["schema"], report["equal"], report["only_in_a"], report["only_in_b"], report["equal_tensors"]),
                         ("ballast.diff/1", False, ["gone"], ["new"], 1))
        changed = {change["name"]: change for change in report["changed"]}
        self.assertEqual({name: change["what"] for name, change in changed.items()},
                         {"values": "values", "shape": "shape", "dtype": "dtype"})
        self.assertEqual((changed["values"]["different"], changed["values"]["max_abs"]), (2, 1))
        self.assertEqual((changed["shape"]["shape_a"], changed["shape"]["shape_b"]), ([4], [2, 2]))
        self.assertEqual((changed["dtype"]["dtype_a"], changed["dtype"]["dtype_b"]), ("I32", "U32"))

    def test_tolerance_selection_and_structure_only(self):
        self.ballast("diff", "a.safetensors", "b.safetensors", "--include", "values", "--tolerance", "1")
        self.ballast("diff", "a.safetensors", "b.safetensors", "--include", "values", "--tolerance", "0.9", code=NO)
        self.ballast("diff", "a.safetensors", "b.safetensors", "--include", "values", "--no-values")
        self.ballast("diff", "a.safetensors", "b.safetensors", "--include", "same")
        self.refused("diff", "a.safetensors", "b.safetensors", "--tolerance", "-1", code=USAGE, says="--tolerance")
        self.refused("diff", "-", "-", code=USAGE, says="both sides", hint="name a file")


if __name__ == "__main__":
    unittest.main()
