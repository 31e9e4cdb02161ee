"""convert between formats: what happens to names, dtypes, tied tensors and values, and how the result is checked."""

import unittest
import zipfile

from support import *

PT = SOURCE / "examples" / "tiny.pt"


class Names(TestCase):
    def setUp(self):
        super().setUp()
        self.write("in.safetensors", {"module.a.weight": ("F32", [2], [1, 2]), "module.b": ("F32", [1], [3]),
                                      "other": ("F32", [1], [4])})

    def names(self, path):
        return [row[0] for row in self.ballast("ls", path).rows()]

    def test_one_prefix_is_removed_and_another_added(self):
        self.ballast("convert", "in.safetensors", "out.safetensors", "--strip-prefix", "module.", "--add-prefix", "m/")
        self.assertEqual(self.names("out.safetensors"), ["m/a.weight", "m/b", "m/other"])

    def test_a_prefix_that_nothing_has_is_refused(self):
        self.refused("convert", "in.safetensors", "out.safetensors", "--strip-prefix", "modul.", code=IO,
                     says='no tensor\'s name begins with "modul."', hint="--strip-prefix module.")
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])


class DTypes(TestCase):
    def test_the_first_pattern_that_matches_counts(self):
        self.write("in.safetensors", {"a.weight": ("F32", [2], [1, 2]), "a.norm": ("F32", [1], [3]),
                                      "ids": ("I64", [1], [4])})
        self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", "*norm*=F16", "--dtype", "BF16")
        self.assertEqual({row[0]: row[1] for row in self.ballast("ls", "out.safetensors").rows()},
                         {"a.weight": "BF16", "a.norm": "F16", "ids": "I64"})
        self.ballast("convert", "in.safetensors", "some.safetensors", "--dtype", "*norm*=F16")
        self.assertEqual(self.ballast("ls", "some.safetensors", "a.weight").rows()[0][1], "F32")
        self.refused("convert", "in.safetensors", "x.safetensors", "--dtype", "*=FLOWT", code=USAGE, says='"FLOWT"')


class Tied(TestCase):
    def test_are_written_for_each_name_or_once(self):
        self.ballast("convert", PT, "each.safetensors", "--root", "state_dict")
        tensors, metadata = read_safetensors(self.folder / "each.safetensors")
        self.assertEqual(tensors["embed.weight"], tensors["head.weight"])

        self.ballast("convert", PT, "once.safetensors", "--root", "state_dict", "--dedupe")
        tensors, metadata = read_safetensors(self.folder / "once.safetensors")
        self.assertNotIn("head.weight", tensors)
        self.assertEqual(metadata["head.weight"], "embed.weight")
        self.assertEqual(self.ballast("hash", "once.safetensors", "--json").json()["digest"],
                         self.ballast("hash", "each.safetensors", "--json").json()["digest"])

    def test_stay_tied_through_a_cast_and_a_renaming(self):
        self.ballast("convert", PT, "once.safetensors", "--root", "state_dict", "--dedupe", "--dtype", "BF16",
                     "--add-prefix", "m.")
        self.assertEqual(self.ballast("info", "once.safetensors", "--json").json()["tied"],
                         [["m.embed.weight", "m.head.weight"]])


class Values(TestCase):
    def test_are_kept_on_request_and_come_back(self):
        self.ballast("convert", PT, "plain.safetensors")
        self.assertNotIn("values", self.ballast("info", "plain.safetensors", "--json").json())
        self.ballast("convert", PT, "kept.safetensors", "--keep-values")
        _, metadata = read_safetensors(self.folder / "kept.safetensors")
        self.assertEqual(json.loads(metadata["ballast.values"])["epoch"], 3)
        self.assertEqual(self.ballast("info", "kept.safetensors", "--json").json()["values"],
                         self.ballast("info", PT, "--json").json()["values"])
        self.ballast("convert", "kept.safetensors", "copy.safetensors")
        self.assertEqual((self.folder / "copy.safetensors").read_bytes(), (self.folder / "kept.safetensors").read_bytes())
        result = self.ballast("convert", PT, "rooted.safetensors", "--root", "state_dict", "--keep-values")
        self.assertIn('nothing stands beside the tensors below "state_dict"', result.err)


class Checked(TestCase):
    def test_a_manifest_says_what_was_written_in_whatever_format(self):
        self.ballast("convert", PT, "out.safetensors", "--verify", "--manifest", "m.json")
        manifest = json.loads((self.folder / "m.json").read_text())
        self.assertEqual(manifest["schema"], "ballast.manifest/1")
        self.assertEqual(len(manifest["tensors"]), 5)
        for target in ("out.safetensors", PT):
            self.assertIn("ok: 5 tensors", self.ballast("verify", target, "--manifest", "m.json").out)
        self.ballast("convert", PT, "half.safetensors", "--dtype", "F16")
        result = self.ballast("verify", "half.safetensors", "--manifest", "m.json", code=NO)
        self.assertIn('tensor "state_dict.embed.weight" is F16 [16, 8], in the manifest F32 [16, 8]', result.out)

    def test_a_manifest_that_is_there_stops_the_job_before_it_begins(self):
        (self.folder / "m.json").write_text("mine")
        self.refused("convert", PT, "out.safetensors", "--manifest", "m.json", "-q", code=USAGE,
                     says="m.json: already exists")
        self.assertEqual(self.names_in_folder(), ["m.json"])

    def test_a_plan_says_where_everything_comes_from_and_goes(self):
        plan = self.ballast("convert", PT, "out.safetensors", "--dtype", "BF16", "--dry-run", "--json").json()["plan"]
        items = {item["name"]: item for item in plan}
        self.assertEqual(items["state_dict.hidden.weight"]["steps"], ["gather", "cast to BF16"])
        weight = items["state_dict.embed.weight"]
        self.assertEqual((weight["steps"], weight["dtype"]), (["cast to BF16"], "BF16"))
        raw = PT.read_bytes()[weight["from"]["offset"]:][:16 * 8 * 4]
        self.ballast("cat", PT, "state_dict.embed.weight", "-o", "raw.bin")
        self.assertEqual(raw, (self.folder / "raw.bin").read_bytes())
        self.assertEqual(self.names_in_folder(), ["raw.bin"])


class Npz(TestCase):
    def test_an_npz_is_a_zip_of_arrays_and_the_same_checkpoint(self):
        self.write("in.safetensors", {"a.weight": ("F32", [2, 2], [1.0, 2, 3, 4]), "b": ("I64", [], [7])})
        self.ballast("convert", "in.safetensors", "out.npz")
        with zipfile.ZipFile(self.folder / "out.npz") as archive:
            self.assertEqual(archive.namelist(), ["a.weight.npy", "b.npy"])
            self.assertIsNone(archive.testzip())
            array = archive.read("a.weight.npy")
        self.assertEqual(array[:6], b"\x93NUMPY")
        self.assertEqual(array[-16:], pack("F32", [1, 2, 3, 4]))
        self.ballast("diff", "in.safetensors", "out.npz")
        self.assertEqual(self.ballast("info", "out.npz", "--json").json()["format"], "npz")
        self.ballast("convert", "out.npz", "again.safetensors")
        self.ballast("diff", "in.safetensors", "again.safetensors")

    def test_what_numpy_cannot_hold_is_refused_with_a_hint(self):
        self.write("in.safetensors", {"w": ("BF16", [2], bytes(4))})
        self.refused("convert", "in.safetensors", "out.npz", code=UNSUPPORTED, says="BF16", hint="--dtype F32")
        self.ballast("convert", "in.safetensors", "out.npz", "--dtype", "F32")
        self.write("up.safetensors", {"../w": ("F32", [1], [1.0])})
        self.refused("convert", "up.safetensors", "up.npz", code=UNSUPPORTED, says="out of its folder", hint="--rename")
        self.assertEqual(self.names_in_folder(), ["in.safetensors", "out.npz", "up.safetensors"])

    def test_the_help_knows_every_ending(self):
        self.assertIn(".npz", self.ballast("convert", "--help").out)


class Compressed(TestCase):
    def setUp(self):
        super().setUp()
        numbers = [((i * 2654435761) % 1000) / 1000 for i in range(100_000)]
        self.write("in.safetensors", {"w": ("F32", [100, 1000], numbers), "small": ("I64", [2], [1, 2])})

    def test_is_valid_safetensors_that_opens_as_what_it_was(self):
        self.ballast("convert", "in.safetensors", "out.safetensors", "--compress", "--verify")
        tensors, metadata = read_safetensors(self.folder / "out.safetensors")
        self.assertEqual(tensors["w"][0], "U8")
        self.assertLess((self.folder / "out.safetensors").stat().st_size, 400_000)
        self.assertIn("ballast.compressed", metadata)
        self.assertEqual(self.ballast("diff", "in.safetensors", "out.safetensors").out, "equal: 2 tensors\n")
        for slice in ("99,:", "0:100:7,3", "50:51,10:20"):
            self.assertEqual(self.ballast("cat", "out.safetensors", "w", "--slice", slice).out,
                             self.ballast("cat", "in.safetensors", "w", "--slice", slice).out)

    def test_goes_on_to_any_format(self):
        self.ballast("convert", "in.safetensors", "packed.safetensors", "--compress")
        for name in ("out.pt", "out.gguf", "again.safetensors"):
            self.ballast("convert", "packed.safetensors", name)
            self.assertEqual(self.ballast("hash", name, "--json").json()["digest"],
                             self.ballast("hash", "in.safetensors", "--json").json()["digest"])
        tensors, metadata = read_safetensors(self.folder / "again.safetensors")
        self.assertEqual((tensors["w"][0], metadata), ("F32", None))


if __name__ == "__main__":
    unittest.main()
