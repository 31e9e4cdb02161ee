"""convert and meta: the verbs that write."""

import random
import resource
import struct
import unittest

from support import *


class Convert(TestCase):
    TENSORS = {
        "model.a.weight": ("F32", [2, 3], [1, 2.5, -3, 1e-3, 65504, 3.14159]),
        "model.b.weight": ("F32", [4], [0.1, 0.2, 0.3, 0.4]),
        "model.b.bias": ("I64", [2], [7, -7]),
    }

    def setUp(self):
        super().setUp()
        self.write("in.safetensors", self.TENSORS, {"format": "pt"})

    def read(self, name):
        return read_safetensors(self.folder / name)

    def test_a_reference_file_comes_out_byte_for_byte(self):
        result = self.ballast("convert", TINY, "out.safetensors")
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), TINY.read_bytes())
        self.assertEqual(result.out, "")
        self.assertRegex(result.err, r"^wrote out\.safetensors: 11 tensors, 9\.64 kB in \d+ ms\n$")
        self.assertEqual(self.ballast("convert", TINY, "out.safetensors", "--force", "-q").err, "")

    def test_keeps_values_and_metadata(self):
        self.ballast("convert", "in.safetensors", "out.safetensors")
        tensors, metadata = self.read("out.safetensors")
        self.assertEqual(metadata, {"format": "pt"})
        self.assertEqual({name: (t[0], t[1], t[2]) for name, t in tensors.items()},
                         {name: (dtype, shape, pack(dtype, values)) for name, (dtype, shape, values) in self.TENSORS.items()})

    def test_selects_renames_and_sets_metadata(self):
        self.ballast("convert", "in.safetensors", "out.safetensors", "--exclude", "*.bias", "--rename", r"^model\.=",
                     "--rename", r"(\w)\.weight=layer_\1.w", "--metadata", "author=A=B", "--metadata", "empty=")
        tensors, metadata = self.read("out.safetensors")
        self.assertEqual(sorted(tensors), ["layer_a.w", "layer_b.w"])
        self.assertEqual(metadata, {"format": "pt", "author": "A=B", "empty": ""})

    def test_refuses_names_that_collide(self):
        self.refused("convert", "in.safetensors", "out.safetensors", "--rename", r"model\.[ab]=x", code=USAGE, says="x.weight")
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])

    def test_casts_floats_and_leaves_integers(self):
        for dtype in ("BF16", "bf16"):
            self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", dtype, "--force")
            tensors, _ = self.read("out.safetensors")
            self.assertEqual({name: t[0] for name, t in tensors.items()},
                             {"model.a.weight": "BF16", "model.b.weight": "BF16", "model.b.bias": "I64"})
            self.assertEqual(tensors["model.b.weight"][2], struct.pack("<4H", 0x3DCD, 0x3E4D, 0x3E9A, 0x3ECD))
        self.refused("convert", "in.safetensors", "x.safetensors", "--dtype", "FLOWT", code=USAGE, says='"FLOWT"', hint="BF16")

    def test_shards_and_back(self):
        self.ballast("convert", "in.safetensors", "sharded/", "--max-shard-size", "24B")
        names = sorted(path.name for path in (self.folder / "sharded").iterdir())
        self.assertEqual(names, ["model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                 "model-00003-of-00003.safetensors", "model.safetensors.index.json"])
        index = json.loads((self.folder / "sharded/model.safetensors.index.json").read_text())
        for name, shard in index["weight_map"].items():
            self.assertIn(name, read_safetensors(self.folder / "sharded" / shard)[0])
        self.ballast("convert", "sharded", "back.safetensors")
        self.ballast("diff", "in.safetensors", "back.safetensors")
        self.ballast("verify", "sharded")

    def test_reads_standard_input(self):
        self.ballast("convert", "-", "out.safetensors", stdin=TINY.read_bytes())
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), TINY.read_bytes())

    def test_overwrites_only_by_force(self):
        (self.folder / "out.safetensors").write_text("precious")
        self.refused("convert", "in.safetensors", "out.safetensors", code=USAGE, says="out.safetensors", hint="--force")
        self.assertEqual((self.folder / "out.safetensors").read_text(), "precious")
        self.ballast("convert", "in.safetensors", "out.safetensors", "--force", "--no-sync")
        self.assertEqual(self.names_in_folder(), ["in.safetensors", "out.safetensors"])

    def test_over_itself_is_safe(self):
        before = read_safetensors(self.folder / "in.safetensors")[0]
        self.ballast("convert", "in.safetensors", "in.safetensors", "--force")
        self.assertEqual(read_safetensors(self.folder / "in.safetensors")[0], before)

    def test_dry_run_writes_nothing(self):
        result = self.ballast("convert", "in.safetensors", "out.safetensors", "--dry-run")
        self.assertEqual(result.rows()[0][:2], ["out.safetensors", "3 tensors"])
        self.assertIn("would write 3 tensors in 1 file", result.err)
        plan = self.ballast("convert", "in.safetensors", "out/", "--dry-run", "--json", "--max-shard-size", "24B").json()
        self.assertEqual((plan["schema"], plan["dry_run"], plan["tensors"], plan["data_bytes"]),
                         ("ballast.convert/1", True, 3, 56))
        self.assertEqual(plan["total_bytes"], sum(file["bytes"] for file in plan["files"]))
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])

    def test_json_report_is_what_was_written(self):
        report = self.ballast("convert", "in.safetensors", "out.safetensors", "--json", "-q").json()
        self.assertEqual(report["files"], [{"path": "out.safetensors", "tensors": 3,
                                            "bytes": (self.folder / "out.safetensors").stat().st_size}])
        self.assertFalse(report["dry_run"])
        self.assertGreaterEqual(report["seconds"], 0)

    def test_output_is_the_same_whatever_the_threads_and_the_memory(self):
        generator = random.Random(1)
        self.write("big.safetensors", {f"t{i}": ("F32", [257, 513], generator.randbytes(257 * 513 * 4)) for i in range(8)})
        outputs = set()
        for i, options in enumerate([("--threads", "1"), ("--threads", "4", "--memory", "1MiB"), ("--no-sync",)]):
            self.ballast("convert", "big.safetensors", f"{i}.safetensors", "--dtype", "F16", *options)
            outputs.add((self.folder / f"{i}.safetensors").read_bytes())
        self.assertEqual(len(outputs), 1)

    def test_arguments_that_make_no_sense(self):
        refused = lambda *args, **more: self.refused("convert", "in.safetensors", *args, code=USAGE, **more)
        refused("-", says="standard output", hint="name a file")
        refused("out.safetensors", "--max-shard-size", "many", says='"many" is no size', hint="5GB")
        refused("out.safetensors", "--max-shard-size", "0", says="at least one byte", hint="one file")
        refused("out.safetensors", "--max-shard-size", "", says='"" is no size')
        refused("out.safetensors", "--manifest", "out.safetensors", "--force", says="the same file", hint="name of its own")
        refused("out.safetensors", "--manifest", "./in.safetensors", "--force", says="the same file")
        refused("out.safetensors", "--metadata", "novalue", says='"novalue"', hint="general.name=Tiny")
        refused("out.safetensors", "--rename", "(=x", says="(")
        refused("out.safetensors", "--rename", "no-equals", says="no-equals")
        self.refused("convert", "in.safetensors", "out.pt", "--compress", code=UNSUPPORTED, says="compressed")
        self.refused("convert", "in.safetensors", "out.onnx", code=UNSUPPORTED, says="out.onnx")
        self.refused("convert", "in.safetensors", "no/such/folder/out.safetensors", code=IO, says="no/such/folder")
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])


    def test_an_old_set_of_shards_does_not_outlive_a_new_file(self):
        (self.folder / "d").mkdir()
        self.ballast("convert", "in.safetensors", "d", "--max-shard-size", "20", "-q")
        self.refused("convert", "in.safetensors", "d", "--dtype", "F16", code=USAGE, says="index.json: is there already",
                     hint="--force removes it")
        self.ballast("convert", "in.safetensors", "d", "--dtype", "F16", "--force", "-q")
        self.assertEqual(self.ballast("ls", "d", "model.a.weight", "-q").rows()[0][1], "F16")

    def test_says_that_a_rule_casts_nothing(self):
        result = self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", "nosuch=F16")
        self.assertIn('no tensor is left for the rule "nosuch"', result.err)

    def test_writes_more_shards_than_files_may_usually_be_open(self):
        self.write("many.safetensors", {f"t{i}": ("U8", [1], [i % 256]) for i in range(700)})
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.ballast("convert", "many.safetensors", "out/", "--max-shard-size", "1", "--no-sync", preexec_fn=few)
        self.assertEqual(len(list((self.folder / "out").iterdir())), 701)


class Meta(TestCase):
    def setUp(self):
        super().setUp()
        self.path = self.write("m.safetensors", {"w": ("F32", [2], [1, 2])}, {"format": "pt", "note": "line\nbreak\x1b"})

    def metadata(self):
        tensors, metadata = read_safetensors(self.path)
        self.assertEqual(tensors, {"w": ("F32", [2], pack("F32", [1, 2]))})
        return metadata

    def test_get_all(self):
        self.assertEqual(self.ballast("meta", "get", "m.safetensors").rows()[0], ["format", "pt"])
        self.assertNotIn("\x1b", self.ballast("meta", "get", "m.safetensors").out)
        self.assertEqual(self.ballast("meta", "get", "m.safetensors", "--json").json(), {
            "schema": "ballast.meta/1", "target": "m.safetensors", "metadata": {"format": "pt", "note": "line\nbreak\x1b"}})

    def test_get_one_value_exactly(self):
        self.assertEqual(self.ballast("meta", "get", "m.safetensors", "note").out, "line\nbreak\x1b\n")
        self.assertEqual(self.ballast("meta", "get", "m.safetensors", "format", "--json").json()["metadata"], {"format": "pt"})
        self.refused("meta", "get", "m.safetensors", "fromat", code=IO, says='"fromat"', hint="did you mean format?")

    def test_set_and_unset(self):
        result = self.ballast("meta", "set", "m.safetensors", "license=mit", "equation=a=b", "format=np")
        self.assertRegex(result.err, r"^m\.safetensors: metadata edited")
        self.assertEqual(self.metadata(), {"format": "np", "note": "line\nbreak\x1b", "license": "mit", "equation": "a=b"})
        self.ballast("meta", "unset", "m.safetensors", "note", "license", "-q")
        self.assertEqual(self.metadata(), {"format": "np", "equation": "a=b"})
        self.refused("meta", "unset", "m.safetensors", "nothing", code=IO, says="nothing")
        self.assertEqual(self.names_in_folder(), ["m.safetensors"])

    def test_edits_in_place_if_the_text_fits(self):
        inode = self.path.stat().st_ino
        report = self.ballast("meta", "set", "m.safetensors", "format=tf", "--json", "-q").json()
        self.assertEqual((report["changed"], report["in_place"]), (True, True))
        self.assertEqual(self.path.stat().st_ino, inode)
        report = self.ballast("meta", "set", "m.safetensors", "long=" + "x" * 5000, "--json", "-q").json()
        self.assertEqual((report["changed"], report["in_place"]), (True, False))
        self.assertEqual(self.metadata()["long"], "x" * 5000)
        report = self.ballast("meta", "set", "m.safetensors", "format=tf", "--json").json()
        self.assertFalse(report["changed"])

    def test_usage(self):
        self.refused("meta", code=USAGE, says="needs a verb", hint="ballast meta --help")
        self.refused("meta", "get", code=USAGE, says="TARGET")
        self.refused("meta", "set", "m.safetensors", code=USAGE, says="KEY=VALUE", hint="--help")
        self.refused("meta", "set", "m.safetensors", "novalue", code=USAGE, says="novalue", hint="author=me")
        self.refused("meta", "unset", "m.safetensors", code=USAGE, says="KEY")
        self.refused("meta", "set", "-", "a=b", code=USAGE, says="standard input")
        self.refused("meta", "set", "nope.safetensors", "a=b", code=IO, says="nope.safetensors")


if __name__ == "__main__":
    unittest.main()
