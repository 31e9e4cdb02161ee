"""adapter merge and adapter from-diff, from outside."""

import json
import random
import unittest

from support import *


def matrix(rng, rows, columns):
    return [[rng.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]


def tensor(rows):
    return ("F32", [len(rows), len(rows[0])], [value for row in rows for value in row])


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


class Merge(TestCase):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        self.weight, self.other = matrix(rng, 6, 8), matrix(rng, 8, 6)
        self.a, self.b = matrix(rng, 2, 8), matrix(rng, 6, 2)
        self.write("base.safetensors", {"m.q.weight": tensor(self.weight), "m.o.weight": tensor(self.other)})
        self.write_adapter("lora", "m.q", self.a, self.b, alpha=3)

    def write_adapter(self, folder, module, a, b, alpha, **more):
        stem = f"base_model.model.{module}.lora_"
        self.write(f"{folder}/adapter_model.safetensors", {stem + "A.weight": tensor(a), stem + "B.weight": tensor(b)},
                   {"format": "pt"})
        config = {"peft_type": "LORA", "r": len(a), "lora_alpha": alpha, "target_modules": [module.split(".")[-1]], **more}
        (self.folder / folder / "adapter_config.json").write_text(json.dumps(config))

    def assert_values(self, path, name, rows):
        flat = [value for row in self.ballast("cat", path, name, "--json").json()["values"] for value in row]
        self.assertEqual(len(flat), len(rows) * len(rows[0]))
        for x, y in zip(flat, (value for row in rows for value in row)):
            self.assertLess(abs(x - y), 1e-5)

    def with_change(self, weight, scale):
        change = product(self.b, self.a)
        return [[w + scale * c for w, c in zip(*rows)] for rows in zip(weight, change)]

    def test_adds_what_the_adapter_says(self):
        self.ballast("adapter", "merge", "base.safetensors", "lora", "-o", "out.safetensors")
        self.assert_values("out.safetensors", "m.q.weight", self.with_change(self.weight, 1.5))
        self.assert_values("out.safetensors", "m.o.weight", self.other)

    def test_takes_weights_and_several_adapters(self):
        self.ballast("adapter", "merge", "base.safetensors", "lora", "lora", "--weight", "0.5", "--weight", "-2", "-o",
                     "out.safetensors")
        self.assert_values("out.safetensors", "m.q.weight", self.with_change(self.weight, -1.5 * 1.5))
        self.refused("adapter", "merge", "base.safetensors", "lora", "lora", "--weight", "1", "-o", "x.safetensors",
                     code=USAGE, says="1 weight for 2 adapters", hint="once for each")

    def test_can_be_undone(self):
        self.ballast("adapter", "merge", "base.safetensors", "lora", "-o", "in.safetensors")
        result = self.ballast("adapter", "merge", "in.safetensors", "lora", "--unmerge", "-o", "out.safetensors")
        self.assertIn("within rounding", result.err)
        self.assert_values("out.safetensors", "m.q.weight", self.weight)

    def test_reaches_every_format_and_shards(self):
        self.ballast("convert", "base.safetensors", "base.pt")
        self.ballast("adapter", "merge", "base.safetensors", "lora", "-o", "one.safetensors")
        (self.folder / "shards").mkdir()
        self.ballast("adapter", "merge", "base.pt", "lora", "--max-shard-size", "200", "-o", "shards")
        self.ballast("diff", "one.safetensors", "shards")
        self.ballast("adapter", "merge", "base.pt", "lora", "-o", "one.gguf")
        self.ballast("diff", "one.safetensors", "one.gguf")
        self.ballast("adapter", "merge", "base.pt", "lora", "--dtype", "BF16", "-o", "half.pt")
        self.assertEqual({row[1] for row in self.ballast("ls", "half.pt").rows()}, {"BF16"})

    def test_reaches_a_quantized_gguf_with_names_of_its_own(self):
        rng = random.Random(4)
        names = [f"model.layers.0.self_attn.{x}_proj.weight" for x in "qkvo"]
        weights = {name: matrix(rng, 64, 64) for name in names}
        self.write("llama.safetensors", {name: tensor(rows) for name, rows in weights.items()})
        a, b = matrix(rng, 2, 64), matrix(rng, 64, 2)
        self.write_adapter("big", "model.layers.0.self_attn.q_proj", a, b, alpha=2)
        self.ballast("convert", "llama.safetensors", "llama.gguf", "--names", "gguf", "--architecture", "llama",
                     "--heads", "4", "--kv-heads", "4", "--dtype", "Q8_0")
        self.ballast("adapter", "merge", "llama.gguf", "big", "-o", "merged.gguf")
        rows = {row[0]: row[1] for row in self.ballast("ls", "merged.gguf").rows()}
        self.assertEqual(set(rows.values()), {"Q8_0"})
        self.assertIn("blk.0.attn_q.weight", rows)
        self.ballast("convert", "merged.gguf", "back.safetensors", "--names", "hf", "--dtype", "F32")
        got = self.ballast("cat", "back.safetensors", names[0], "--json").json()["values"]
        change = product(b, a)
        for got_row, row, more in zip(got, weights[names[0]], change):
            for x, y, d in zip(got_row, row, more):
                self.assertLess(abs(x - y - d), 0.05)
        self.ballast("convert", "base.safetensors", "odd.gguf")  # names that llama.cpp does not know
        self.ballast("adapter", "merge", "odd.gguf", "lora", "-o", "odd-merged.gguf")
        self.assert_values("odd-merged.gguf", "m.q.weight", self.with_change(self.weight, 1.5))

    def llama_gguf(self, name, weights):
        """Writes a GGUF with the names of llama.cpp, with 4 heads of queries and 2 of keys."""
        self.write("hf.safetensors", {name: tensor(rows) for name, rows in weights.items()})
        self.ballast("convert", "hf.safetensors", name, "--names", "gguf", "--architecture", "llama", "--heads", "4",
                     "--kv-heads", "2", "--force")

    def test_two_ggufs_give_a_lora_that_merge_and_inject_take(self):
        rng = random.Random(5)
        at = "model.layers.0.self_attn."
        before = {at + "q_proj.weight": matrix(rng, 16, 32), at + "k_proj.weight": matrix(rng, 8, 32)}
        self.llama_gguf("before.gguf", before)
        more = product(matrix(rng, 8, 2), matrix(rng, 2, 32))
        after = dict(before) | {at + "k_proj.weight": [[x + d for x, d in zip(*rows)]
                                                       for rows in zip(before[at + "k_proj.weight"], more)]}
        self.llama_gguf("after.gguf", after)
        self.ballast("adapter", "from-diff", "before.gguf", "after.gguf", "--rank", "2", "-o", "found")
        names, _ = read_safetensors(self.folder / "found/adapter_model.safetensors")
        self.assertIn(f"base_model.model.{at}k_proj.lora_A.weight", names)
        self.ballast("adapter", "merge", "before.gguf", "found", "-o", "again.gguf")
        self.ballast("diff", "after.gguf", "again.gguf", "--tolerance", "1e-4")

        # The LoRA is injected into the base as it is, with the names of a PeftModel.
        self.ballast("adapter", "inject", "before.gguf", "found", "-o", "adapted.safetensors")
        tensors, _ = read_safetensors(self.folder / "adapted.safetensors")
        self.assertEqual(tensors[f"base_model.model.{at}k_proj.base_layer.weight"],
                         ("F32", [8, 32], pack("F32", [x for row in before[at + "k_proj.weight"] for x in row])))
        self.ballast("convert", "before.gguf", "q8.gguf", "--dtype", "Q8_0")
        self.ballast("adapter", "inject", "q8.gguf", "found", "--dtype", "BF16", "-o", "half.safetensors")
        self.assertEqual(read_safetensors(self.folder / "half.safetensors")[0][f"base_model.model.{at}q_proj.weight"][0], "BF16")

        # Converted to the form of llama.cpp, which needs the heads: the base knows them, and keys alone do not tell
        # them.
        command = ["adapter", "convert", "found", "--to", "gguf", "--architecture", "llama", "--heads", "4", "-o", "lora.gguf"]
        self.refused(*command, code=USAGE, says="nothing says llama.attention.head_count_kv", hint="--kv-heads")
        self.ballast(*command, "--kv-heads", "2")
        for key in "llama.attention.head_count", "llama.attention.head_count_kv":
            self.ballast("meta", "unset", "lora.gguf", key)
        self.assertEqual(self.ballast("adapter", "info", "lora.gguf", "--json").json()["modules"], {"k_proj": 1})
        self.assertIn("llama.attention.head_count", self.ballast("adapter", "info", "lora.gguf").out)
        self.ballast("adapter", "merge", "before.gguf", "lora.gguf", "-o", "third.gguf")
        self.ballast("diff", "after.gguf", "third.gguf", "--tolerance", "1e-4")
        self.refused("adapter", "convert", "lora.gguf", "--to", "peft", "-o", "x", code=USAGE, says="nothing says llama.att")

    def test_resolves_flat_names_by_the_base(self):
        self.write("base.safetensors", {"m.out_q.weight": tensor(self.weight)})
        self.write_adapter("named", "m.out_q", self.a, self.b, alpha=3)
        self.ballast("adapter", "convert", "named", "--to", "kohya", "-o", "flat.safetensors")
        self.ballast("adapter", "merge", "base.safetensors", "flat.safetensors", "-o", "out.safetensors")
        self.assert_values("out.safetensors", "m.out_q.weight", self.with_change(self.weight, 1.5))

    def test_an_adapter_for_another_model_is_refused(self):
        self.write_adapter("stranger", "m.qq", self.a, self.b, alpha=3)
        self.refused("adapter", "merge", "base.safetensors", "stranger", "-o", "x.safetensors", code=IO, says="m.qq")
        self.write_adapter("wide", "m.o", matrix(random.Random(5), 2, 7), self.b, alpha=3)
        result = self.ballast("adapter", "merge", "base.safetensors", "wide", "-o", "x.safetensors", code=NO)
        self.assertIn("m.o", result.err)
        self.assertFalse((self.folder / "x.safetensors").exists())

    def test_a_dry_run_writes_nothing(self):
        plan = self.ballast("adapter", "merge", "base.safetensors", "lora", "-o", "x.safetensors", "--dry-run", "--json").json()
        self.assertTrue(plan["dry_run"])
        self.assertFalse((self.folder / "x.safetensors").exists())
        steps = {item["name"]: item["steps"] for item in plan["plan"]}
        self.assertGreater(plan["memory_bytes"], (6 * 2 + 2 * 8) * 4)  # the two factors as floats, and buffers
        self.assertEqual(steps["m.o.weight"], [])
        self.assertNotEqual(steps["m.q.weight"], [])

    def test_from_diff_finds_the_adapter_again(self):
        self.ballast("adapter", "merge", "base.safetensors", "lora", "-o", "tuned.safetensors")
        report = self.ballast("adapter", "from-diff", "base.safetensors", "tuned.safetensors", "--rank", "2", "-o", "found",
                              "--json").json()
        self.assertEqual([layer["name"] for layer in report["layers"]], ["m.q.weight"])
        self.assertLess(report["layers"][0]["error"], 1e-4)
        self.assertEqual(report["unchanged"], 1)
        self.ballast("adapter", "merge", "base.safetensors", "found", "-o", "again.safetensors")
        self.assert_values("again.safetensors", "m.q.weight", self.with_change(self.weight, 1.5))
        self.refused("adapter", "from-diff", "base.safetensors", "tuned.safetensors", "-o", "found", code=USAGE,
                     says="already exists", hint="--force")
        self.refused("adapter", "from-diff", "base.safetensors", "base.safetensors", "-o", "none", code=NO,
                     says="no matrix differs")

    def test_numbers_below_zero_are_not_ranks(self):
        self.refused("adapter", "from-diff", "base.safetensors", "base.safetensors", "--rank", "-1", "-o", "x", code=USAGE,
                     says="--rank", hint="--help")
        self.refused("adapter", "convert", "lora", "--to", "gguf", "--heads", "-4", "-o", "x.gguf", code=USAGE, says="--heads")

    def test_weights_are_one_for_each_adapter_or_none(self):
        merge = ["adapter", "merge", "base.safetensors", "lora", "lora", "-o", "x.safetensors"]
        self.refused(*merge, "--weight", "0.5", code=USAGE, says="1 weight for 2 adapters")
        self.assertIn("one for each", self.ballast("adapter", "merge", "--help").out)
        self.ballast(*merge)


if __name__ == "__main__":
    unittest.main()
