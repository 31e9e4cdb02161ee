"""ls explores: orders, filters, words as parts of names, the tree of prefixes, totals."""

import unittest

from support import *


def model(layers=3):
    tensors = {"model.embed.weight": ("F32", [6, 4], [0.0] * 24)}
    for i in range(layers):
        tensors[f"model.layers.{i}.mlp.up.weight"] = ("F16", [4, 4], [0.0] * 16)
        tensors[f"model.layers.{i}.norm.weight"] = ("F32", [4], [0.0] * 4)
    tensors["head"] = ("I64", [2], [1, 2])
    return tensors


class Orders(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", {
            "w.10": ("F32", [2, 2], [0.0] * 4), "w.9": ("F32", [4], [0.0] * 4), "b": ("F16", [9], [0.0] * 9),
            "a": ("I64", [1], [1]), "c": ("U8", [3, 10], bytes(30))})

    def names(self, *args):
        return [row[0] for row in self.ballast("ls", "m.safetensors", *args).rows()]

    def test_puts_the_largest_first_and_other_keys_ascending(self):
        for key, names in {"name": "a b c w.9 w.10", "bytes": "c b w.9 w.10 a", "numel": "c b w.9 w.10 a",
                           "dtype": "b w.9 w.10 a c", "shape": "a w.10 c w.9 b", "file": "a b c w.9 w.10"}.items():
            self.assertEqual(self.names("--sort", key), names.split(), key)
            listed = self.ballast("ls", "m.safetensors", "--sort", key, "--json").json()["tensors"]
            self.assertEqual([tensor["name"] for tensor in listed], names.split(), key)
        self.assertEqual(self.names("--reverse"), "w.10 w.9 c b a".split())
        self.assertEqual(self.names("--sort", "bytes", "--reverse"), "a w.9 w.10 b c".split())
        self.refused("ls", "m.safetensors", "--sort", "size", code=USAGE, says='--sort: there is no order "size"', hint="bytes")

    def test_shows_the_first_few_of_an_order(self):
        self.assertEqual(self.names("--top", "2"), ["c", "b"])
        self.assertEqual(self.names("--top", "1", "--sort", "name"), ["a"])
        self.assertEqual(len(self.names("--top", "99")), 5)
        self.refused("ls", "m.safetensors", "--top", "-1", code=USAGE, says="--top")

    def test_filters_by_dtype_and_size(self):
        self.assertEqual(self.names("--dtype", "f32,U8"), ["c", "w.9", "w.10"])
        self.assertEqual(self.names("--dtype", "f32", "--dtype", "torch.int64"), ["a", "w.9", "w.10"])
        self.assertEqual(self.names("--min-size", "16", "--max-size", "18B"), ["b", "w.9", "w.10"])
        self.assertEqual(self.names("--dtype", "F32", "--min-size", "16", "--top", "1", "w*"), ["w.9"])
        self.refused("ls", "m.safetensors", "--dtype", "F32,F33", code=USAGE, says='--dtype: there is no dtype "F33"', hint="BF16 I32")
        self.refused("ls", "m.safetensors", "--min-size", "many", code=USAGE, says='--min-size: "many" is no size', hint="5GB")
        self.refused("ls", "m.safetensors", "--dtype", "F64", "--min-size", "512K", code=IO,
                     says="no tensor has dtype F64 and at least 524 kB", hint="5 tensors of F16, F32, I64, U8, from 8 B to 30 B")

    def test_counts_elements_if_asked(self):
        self.assertEqual(self.ballast("ls", "m.safetensors", "c", "--long").rows(), [["c", "U8", "[3, 10]", "30", "30"]])
        self.assertEqual(self.ballast("ls", "m.safetensors", "-l", "w.9").rows(), [["w.9", "F32", "[4]", "4", "16"]])
        self.assertEqual(self.ballast("ls", "m.safetensors", "--json", "c").json()["tensors"][0]["numel"], 30)

    def test_sorts_by_files(self):
        for i in (2, 1):
            self.write(f"s/model-0000{i}-of-00002.safetensors", {f"{'ab'[i - 1]}": ("U8", [1], [1])})
        self.assertEqual([row[0] for row in self.ballast("ls", "s", "--sort", "file", "--reverse").rows()], ["b", "a"])


class Names(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", model())

    def test_globs_have_choices_in_every_verb(self):
        names = lambda *args: [row[0] for row in self.ballast("ls", "m.safetensors", *args).rows()]
        self.assertEqual(names("{head,*.embed.*}"), ["head", "model.embed.weight"])
        self.assertEqual(names("model.layers.{1..2}.{norm,mlp.{up,down}}.weight", "--exclude", "*{mlp,x}*"),
                         ["model.layers.1.norm.weight", "model.layers.2.norm.weight"])
        digests = self.ballast("hash", "m.safetensors", "--include", "{head,none}", "--json").json()["tensors"]
        self.assertEqual(list(digests), ["head"])
        self.ballast("convert", "m.safetensors", "o.safetensors", "--include", "*.{0,2}.norm*", "-q")
        self.assertEqual(sorted(read_safetensors(self.folder / "o.safetensors")[0]),
                         ["model.layers.0.norm.weight", "model.layers.2.norm.weight"])

    def test_hostile_globs_end_at_once(self):
        start = time.monotonic()
        for glob in ("{" * 50_000, "{a,b}" * 20_000, "{" * 10_000 + ",a}" * 10_000, "[" * 50_000, "{0..999999999999999999}" * 100):
            self.ballast("ls", "m.safetensors", glob, code=IO)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_word_that_is_no_name_is_a_part_of_names_with_a_note(self):
        result = self.ballast("ls", "m.safetensors", "norm")
        self.assertEqual(len(result.lines()), 3)
        self.assertIn("note: no tensor is called \"norm\"", result.err)
        self.assertIn("'*norm*'", result.err)
        self.assertEqual(self.ballast("ls", "m.safetensors", "head").err, "")
        self.assertEqual(len(self.ballast("ls", "m.safetensors", "--include", "mlp", "head").lines()), 4)
        self.assertEqual(self.ballast("ls", "m.safetensors", "norm", "-q").err, "")
        self.refused("ls", "m.safetensors", "nrom", code=IO, says='no tensor matches "nrom"')


class Tree(TestCase):
    def test_has_a_line_for_each_prefix_with_layers_folded(self):
        self.write("m.safetensors", model())
        self.assertEqual(self.ballast("ls", "m.safetensors", "--tree").rows(), [
            ["head", "x1", "1", "2", "16", "6.25%", "#"],
            ["model", "x1", "7", "84", "240", "93.75%", "#" * 19],
            ["  embed.weight", "x1", "1", "24", "96", "37.5%", "#" * 8],
            ["  layers.{0..2}", "x3", "6", "60", "144", "56.25%", "#" * 11],
            ["    mlp.up.weight", "x1", "3", "48", "96", "37.5%", "#" * 8],
            ["    norm.weight", "x1", "3", "12", "48", "18.75%", "#" * 4],
        ])
        self.assertEqual([row[0] for row in self.ballast("ls", "m.safetensors", "--depth", "1", "--sort", "bytes").rows()],
                         ["model", "head"])
        self.assertEqual([row[0] for row in self.ballast("ls", "m.safetensors", "--tree", "--dtype", "f16").rows()],
                         ["model.layers.{0..2}.mlp.up.weight"])

    def test_0_is_all_and_columns_of_a_list_are_refused(self):
        self.write("m.safetensors", model())
        self.assertEqual(self.ballast("ls", "m.safetensors", "--depth", "0").out, self.ballast("ls", "m.safetensors", "--tree").out)
        self.assertEqual(self.ballast("ls", "m.safetensors", "--top", "0").out, self.ballast("ls", "m.safetensors").out)
        self.refused("ls", "m.safetensors", "--tree", "--long", code=USAGE, says="--long is for lists")

    def test_json_has_the_tree_as_a_flat_list_beside_the_tensors(self):
        self.write("m.safetensors", model())
        listed = self.ballast("ls", "m.safetensors", "--tree", "--json").json()
        self.assertEqual(len(listed["tensors"]), 8)
        self.assertEqual(listed["total"], {"tensors": 8, "parameters": 86, "bytes": 256})
        self.assertEqual([(node["path"], node["depth"], node["prefixes"]) for node in listed["tree"]], [
            ("head", 0, 1), ("model", 0, 1), ("model.embed.weight", 1, 1), ("model.layers.{0..2}", 1, 3),
            ("model.layers.{0..2}.mlp.up.weight", 2, 1), ("model.layers.{0..2}.norm.weight", 2, 1)])
        self.assertEqual(listed["tree"][4], {
            "path": "model.layers.{0..2}.mlp.up.weight", "name": "mlp.up.weight", "depth": 2, "children": 0, "prefixes": 1,
            "tensors": 3, "parameters": 48, "bytes": 96, "share": 0.375, "dtype": "F16", "shape": [4, 4]})
        self.assertNotIn("tree", self.ballast("ls", "m.safetensors", "--json").json())

    def test_what_has_no_meaning_for_a_tree_is_refused(self):
        self.refused("ls", TINY, "--tree", "--top", "3", code=USAGE, says="--top", hint="--depth")
        self.refused("ls", TINY, "--tree", "--sort", "dtype", code=USAGE, says="no dtype to sort by", hint="bytes")

    def test_takes_odd_names(self):
        names = ["a", "a.b", "a..b", "x" * 300, "evil\x1b[2J\n.b", "evil\x1b[2J\n.c", "", "." * 10_000, "é.1", "é.2"]
        self.write("m.safetensors", {name: ("U8", [1], [1]) for name in names})
        text = self.ballast("ls", "m.safetensors", "--tree").out
        self.assertNotIn("\x1b", text)
        self.assertIn("é.{1..2}\tx2", text)
        _, shown = Terminal("ls", "m.safetensors", "--tree", "--color=never", cwd=self.folder, columns=60).finish()
        self.assertNotIn("\x1b", shown)
        self.assertLessEqual(max(len(line) for line in shown.splitlines()), 60)
        total = self.ballast("ls", "m.safetensors", "--tree", "--json").json()["total"]
        self.assertEqual(total["tensors"], len(names))

    def test_of_a_hundred_thousand_tensors_takes_a_moment(self):
        self.write("m.safetensors", {f"l.{i // 4}.{'wxyz'[i % 4]}": ("U8", [1], b"x") for i in range(100_000)})
        start = time.monotonic()
        self.assertEqual([row[0] for row in self.ballast("ls", "m.safetensors", "--tree").rows()],
                         ["l.{0..24999}", "  w", "  x", "  y", "  z"])
        self.assertLess(time.monotonic() - start, 20)

    def test_of_nothing(self):
        self.write("m.safetensors", {})
        self.assertEqual(self.ballast("ls", "m.safetensors", "--tree").out, "")
        self.assertEqual(self.ballast("ls", "m.safetensors", "--tree", "--json").json()["tree"], [])


class Duplicates(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", {
            "embed": ("F32", [64, 32], [0.5] * 2048), "head": ("F32", [64, 32], [0.5] * 2048), "other": ("F32", [64, 32], [0.25] * 2048),
            **{f"layers.{i}.norm": ("F32", [32], [1.0] * 32) for i in range(3)}})

    def test_are_listed_with_what_they_equal(self):
        self.assertEqual(self.ballast("ls", "m.safetensors", "--duplicates").rows(), [
            ["embed", "F32", "[64, 32]", "8192", "", ""], ["head", "F32", "[64, 32]", "8192", "= embed", "stored again"],
            ["layers.0.norm", "F32", "[32]", "128", "", ""],
            ["layers.1.norm", "F32", "[32]", "128", "= layers.0.norm", "stored again"],
            ["layers.2.norm", "F32", "[32]", "128", "= layers.0.norm", "stored again"]])
        self.assertEqual(len(self.ballast("ls", "m.safetensors", "--duplicates", "--min-size", "4K").lines()), 2)
        self.assertEqual(self.ballast("ls", "m.safetensors", "--duplicates", "{embed,other}").out, "")

    def test_json_has_the_groups(self):
        listed = self.ballast("ls", "m.safetensors", "--duplicates", "--json").json()
        self.assertEqual([tensor["name"] for tensor in listed["tensors"]], ["embed", "head", "layers.0.norm", "layers.1.norm", "layers.2.norm"])
        self.assertEqual(listed["duplicates"], [{"tensors": ["embed", "head"], "bytes": 8192, "copies": 2},
                                                {"tensors": [f"layers.{i}.norm" for i in range(3)], "bytes": 128, "copies": 3}])

    def test_an_alias_shares_its_bytes(self):
        rows = self.ballast("ls", TINY, "--duplicates", "lm_head*", "*embed*").rows()
        self.assertEqual([row[4:] for row in rows], [["", ""], ["= model.embed.weight", "shared"]])

    def test_a_person_sees_groups_with_layers_folded(self):
        show = lambda *args: Terminal("ls", "m.safetensors", "--duplicates", *args, "--color=never", cwd=self.folder).finish()[1].splitlines()
        self.assertEqual(show(), ["8.19 kB stored 2 times: F32 [64, 32]", "  embed", "  head", "128 B stored 3 times: F32 [32]",
                                  "  layers.#.norm  ×3", "5 tensors in 2 groups with equal bytes; 8.45 kB could be saved"])
        self.assertIn("  layers.1.norm", show("-v"))
        self.assertEqual(show("other"), ["no duplicates among 1 tensor"])

    def test_what_has_no_meaning_for_groups_is_refused(self):
        for option in (["--tree"], ["--top", "3"], ["--sort", "name"], ["--reverse"], ["--long"]):
            self.refused("ls", "m.safetensors", "--duplicates", *option, code=USAGE, says="--duplicates", hint="--min-size")


class OnATerminal(TestCase):
    def show(self, *args, **more):
        return Terminal("ls", *args, "--color=never", cwd=self.folder, **more).finish()[1].splitlines()

    def test_the_total_is_for_people(self):
        self.write("m.safetensors", model())
        self.assertEqual(self.show("m.safetensors")[-1], "8 tensors, 86 parameters, 256 B")
        self.assertEqual(self.show("m.safetensors", "*norm*")[-1], "3 of 8 tensors, 12 of 86 parameters, 48 B of 256 B")
        self.assertEqual(len(self.show("m.safetensors", "-q")), 8)
        for args in ([], ["--tree"], ["--json"], ["--top", "2"]):
            self.assertEqual(self.ballast("ls", "m.safetensors", *args).err, "")

    def test_the_bar_is_made_of_blocks_only_in_a_utf8_locale(self):
        for locale, blocks in (("C.UTF-8", True), ("en_US.utf8", True), ("C", False)):
            text = "\n".join(self.show(TINY, "--tree", env=environment(LC_ALL=locale)))
            self.assertEqual("█" in text, blocks, locale)
            self.assertEqual("#" in text, not blocks, locale)

    def test_the_tree_fits_a_narrow_screen(self):
        self.write("m.safetensors", model() | {"x" * 60: ("U8", [1], [1])})
        for columns in (50, 60, 80, 120):
            lines = self.show("m.safetensors", "--tree", columns=columns)
            self.assertLessEqual(max(map(len, lines)), columns)
        self.assertTrue(any("…" in line for line in self.show("m.safetensors", "--tree", columns=50)))
        self.assertFalse(any("…" in line for line in self.show("m.safetensors", "--tree", "-v", columns=50)))


if __name__ == "__main__":
    unittest.main()
