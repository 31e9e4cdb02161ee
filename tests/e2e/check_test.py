"""verify and diff: questions whose answer may be no."""

import math
import unittest

from support import *


def zip_of(**members):
    import io
    import zipfile
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


class WhatIsNotACheckpoint(TestCase):
    """Every verb says what the file is, and exits with the same code."""

    STRANGERS = {
        "README.md": (b"# A model\n\nIt is small.\n", 'a text file, not a checkpoint: it begins with "# A model"'),
        "config.json": (b'{"model_type": "llama"}', 'this JSON has no "weight_map"'),
        "list.json": (b"[1, 2, 3, 4]", "this is JSON"),
        "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x051.2.3:\x04\x0a\x02abB\x02\x10\x11", "an ONNX model"),
        "model.tflite": (b"\x1c\0\0\0TFL3" + bytes(32), "a TensorFlow Lite model"),
        "ggml.bin": (b"lmgg" + bytes(64), "a ggml file, older than GGUF"),
        "model.bin": (struct.pack("<7i", 288, 768, 6, 6, 6, 32000, 256) + b"\x3f" * 64, "a model of llama2.c"),
        "yolo.weights": (struct.pack("<3iQ", 0, 2, 5, 32013312) + b"\x3f" * 64, "weights of Darknet"),
        "libm.so": (b"\x7fELF\x02\x01\x01" + bytes(64), "a program or a library"),
        "weights.gz": (b"\x1f\x8b\x08" + bytes(20), "a gzip file"),
        "pointer.safetensors": (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        "page.safetensors": (b"<!doctype html><html>", "a web page"),
        "error.safetensors": (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "an XML file"),
        "noise.safetensors": (bytes(range(200, 256)), r'not a format that Ballast knows: it begins with "\xc8\xc9'),
        "papers.zip": (zip_of(a="some text", b="more of it"), "a zip archive without a checkpoint in it"),
    }

    def test_every_verb_says_what_the_file_is_and_exits_with_6(self):
        for name, (content, says) in self.STRANGERS.items():
            self.write(name, content)
            for verb in ("ls", "info", "hash", "verify", "scan"):
                with self.subTest(verb=verb, name=name):
                    if verb == "scan" and name.endswith(".gz"):  # a gzip may hold anything, and nobody sees what
                        self.assertIn("not looked into", self.ballast(verb, name, code=NO).out)
                    else:
                        self.refused(verb, name, code=UNSUPPORTED, says=says)

    def test_danger_is_reported_whatever_the_file_begins_like(self):
        evil = zip_of(**{"x/data.pkl": b"cos\nsystem\n(S'true'\ntR."})
        for head in (b"\x7fELF", b"\x89HDF\r\n\x1a\n", b"# A readme\n", b"\xc8\xc9\xca"):
            self.write("evil", head + evil)
            self.assertIn("os.system", self.ballast("scan", "evil", code=NO).out, head)

    def test_inside_a_folder_such_a_file_is_not_a_finding(self):
        for name, (content, _) in self.STRANGERS.items():
            if not name.endswith((".safetensors", ".gz")):  # a pointer that has the name of a model counts as a model
                self.write(f"folder/{name}", content)
        self.write("folder/model.safetensors", {"w": ("U8", [1], [1])})
        for verb in ("verify", "scan"):
            self.ballast(verb, "folder")

    def test_a_folder_whose_only_model_is_a_pointer_is_refused(self):
        self.write("folder/model.safetensors", self.STRANGERS["pointer.safetensors"][0])
        self.refused("verify", "folder", code=UNSUPPORTED, says="a Git LFS pointer", hint="git lfs pull")

    def test_a_shard_that_is_something_else_is_damage(self):
        self.write("model/a.safetensors", self.STRANGERS["pointer.safetensors"][0])
        (self.folder / "model/model.safetensors.index.json").write_text('{"weight_map": {"w": "a.safetensors"}}')
        self.assertIn("a Git LFS pointer", self.ballast("verify", "model", code=NO).out)

    def test_a_damaged_checkpoint_is_a_finding_of_verify_and_scan(self):
        good = TINY.read_bytes()
        damaged = {"cut.safetensors": good[:1000], "length.safetensors": good[:6] + b"\x80" + good[7:],
                   "brace.safetensors": good[:8] + b"\xff" + good[9:], "cut.gguf": b"GGUF\3\0\0\0\1",
                   "cut.zip": zip_of(a="some text")[:-30], "empty": b"", "zeros": bytes(64)}
        for name, content in damaged.items():
            self.write(name, content)
            with self.subTest(name=name):
                self.assertEqual(self.run_raw("ls", name).code, MALFORMED)
                for verb in ("verify", "scan"):
                    self.ballast(verb, name, code=NO)


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

    def test_a_missing_file_is_an_error(self):
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
        self.assertIn("~ dtype  dtype I32 → U32, the same values", lines)
        values = next(line for line in lines if line.startswith("~ values  "))
        self.assertRegex(values, r"^~ values  2 values of 4 differ, by at most 1 \(relative 0.25\) at \[3\]; change 20\.41\d* %, cosine 0\.98")
        self.assertEqual(lines[0], "1 equal, 1 only in A, 1 only in B, 3 changed")

    def test_values_within_the_tolerance_are_not_called_the_same(self):
        self.write("c.safetensors", {"w": ("F32", [2], [1, 2])})
        self.write("d.safetensors", {"w": ("F64", [2], [1.5, 2])})
        diff = ["diff", "c.safetensors", "d.safetensors", "--tolerance"]
        self.assertIn("~ w  dtype F32 → F64, equal within the tolerance\n", self.ballast(*diff, "1", code=NO).out)
        self.write("d.safetensors", {"w": ("F64", [2], [1, 2])})
        self.assertIn("~ w  dtype F32 → F64, the same values\n", self.ballast(*diff, "1", code=NO).out)

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
