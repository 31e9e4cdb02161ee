"""What happens to values, and what is said about it: casts that lose some, quantized weights, flags without effect."""

import json
import math
import struct
import unittest

from support import IO, NO, UNSUPPORTED, USAGE, TestCase, read_safetensors


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


class LostValues(TestCase):
    def setUp(self):
        super().setUp()
        self.write("in.safetensors", {
            "model.a": ("F32", [2, 32], f32(*[0.5] * 31, 70000, *[1.0] * 31, -1e30)),
            "model.b": ("F32", [2, 32], f32(*[0.25] * 64)),
            "model.c": ("F32", [1, 32], f32(*[3e38] * 2, math.inf, *[1.0] * 29)),
        })

    def test_are_counted_and_reported_at_the_end(self):
        run = self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", "fp16")
        self.assertIn('note: 4 values of 2 tensors are beyond F16 and were written as infinite, the largest 3e+38: '
                      '"model.a" (2, -1e+30), "model.c" (2, 3e+38)', run.err)
        run = self.ballast("convert", "in.safetensors", "out2.safetensors", "--dtype", "f8_e4m3", "--json")
        found = {o["name"]: o["values"] for o in run.json()["overflows"]}
        self.assertEqual(found, {"model.a": 2, "model.c": 2})
        codes = read_safetensors(self.folder / "out2.safetensors")[0]["model.a"][2]
        self.assertEqual((codes[31], codes[63]), (0x7E, 0xFE), "F8 saturates")

    def test_are_not_mentioned_if_nothing_is_lost(self):
        run = self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", "BF16", "--exclude", "*c")
        self.assertNotIn("note", run.err)

    def test_are_an_error_on_request_and_nothing_is_written(self):
        for more in ([], ["--max-shard-size", "200"], ["--compress"], ["--threads", "1"]):
            self.refused("convert", "in.safetensors", "out.safetensors", "--dtype", "F16", "--strict", *more,
                         code=NO, says="4 values of 2 tensors are beyond F16")
            self.assertEqual(self.names_in_folder(), ["in.safetensors"])
        self.ballast("convert", "in.safetensors", "out.safetensors", "--dtype", "BF16", "--strict")

    def test_of_blocks_are_counted(self):
        for dtype in ("Q4_0", "Q8_0", "Q5_1", "IQ4_NL"):
            run = self.ballast("convert", "in.safetensors", "out.gguf", "--exclude", "*c", "--dtype", dtype, "--force")
            self.assertIn(f"32 values of 1 tensor are beyond {dtype} and were lost in blocks", run.err)
            self.refused("convert", "in.safetensors", "o.gguf", "--exclude", "*c", "--dtype", dtype, "--strict",
                         code=NO, says=f"beyond {dtype}")

    def test_are_reported_by_cat(self):
        says = "2 values of 1 tensor are beyond F16"
        for out in ("x.npy", "x.raw", "-"):
            self.assertIn(says, self.ballast("cat", "in.safetensors", "model.a", "--dtype", "half", "-o", out).err)
        for out in ("y.npy", "y.raw", "-"):
            run = self.ballast("cat", "in.safetensors", "model.a", "--dtype", "half", "-o", out, "--strict", code=NO)
            self.assertIn(says, run.err)
            self.assertEqual(run.raw, b"")
        self.assertEqual(self.names_in_folder(), ["in.safetensors", "x.npy", "x.raw"])

    def test_are_reported_by_cat_that_shows_them(self):
        says = "2 values of 1 tensor are beyond F8_E4M3"
        for more in ([], ["--json"], ["--full"], ["--slice", ":, -1:"]):
            cat = ["cat", "in.safetensors", "model.a", "--dtype", "f8_e4m3", *more]
            self.assertIn(says, self.ballast(*cat).err)
            run = self.ballast(*cat, "--strict", code=NO)
            self.assertIn(says, run.err)
            self.assertEqual(run.raw, b"", "nothing is shown")
        self.assertNotIn("note", self.ballast("cat", "in.safetensors", "model.b", "--dtype", "f8_e4m3", "--strict").err)

    def test_of_a_merge_do_not_pass_through_the_dtype_of_the_base(self):
        folder = self.folder / "lora"
        folder.mkdir()
        (folder / "adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q"]}))
        self.write("lora/adapter_model.safetensors",
                   {"base_model.model.q.lora_A.weight": ("F32", [1, 2], f32(10000, 0)),
                    "base_model.model.q.lora_B.weight": ("F32", [2, 1], f32(1, 0))})
        self.write("base.safetensors", {"q.weight": ("F16", [2, 2], struct.pack("<4e", 60000, 1, 1, 1))})
        merge = ["adapter", "merge", "base.safetensors", "lora", "--force", "-o"]
        self.assertNotIn("beyond", self.ballast(*merge, "m.safetensors", "--dtype", "F32", "--strict").err)
        self.assertEqual(read_safetensors(self.folder / "m.safetensors")[0]["q.weight"][2], f32(70000, 1, 1, 1))
        self.assertIn("beyond F16", self.ballast(*merge, "n.safetensors").err)
        run = self.ballast(*merge, "n.safetensors", "--dtype", "F32", "--peft-exact")
        self.assertIn("1 value of 1 tensor is beyond F16 and was written as infinite", run.err)
        run = self.ballast(*merge, "n.safetensors", "--strict", code=NO)
        self.assertIn("keep the values wider with --dtype F32, or those tensors alone with --dtype 'NAME=F32' of ballast convert",
                      run.err)

    def test_that_blocks_cannot_hold_are_named(self):
        self.write("nan.safetensors", {"w": ("F32", [2, 32], f32(*[1.0] * 37, math.nan, *[1.0] * 26))})
        self.refused("convert", "nan.safetensors", "o.gguf", "--dtype", "Q4_0", code=UNSUPPORTED,
                     says='nan.safetensors: tensor "w": the value at [1, 5] is NaN')


class Quantized(TestCase):
    def setUp(self):
        super().setUp()
        self.write("gptq.safetensors", {
            "m.q.qweight": ("I32", [4, 8], bytes(128)), "m.q.qzeros": ("I32", [1, 1], bytes(4)),
            "m.q.scales": ("F16", [1, 8], bytes(16)), "m.q.g_idx": ("I32", [32], bytes(128)),
            "m.norm.weight": ("F16", [8], bytes(16)),
        })

    def test_weights_are_reported_by_info(self):
        self.assertIn("gptq: 1 weight in 4 parts (names and dtypes)", self.ballast("info", "gptq.safetensors").out)
        config = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}
        self.write("config.json", json.dumps(config).encode())
        self.assertIn("gptq, 4 bits, groups of 32: 1 weight in 4 parts (config.json)",
                      self.ballast("info", "gptq.safetensors").out)
        found = self.ballast("info", "gptq.safetensors", "--json").json()["quantization"]
        self.assertEqual((found["scheme"], found["bits"], found["modules"], found["parts"]), ("gptq", 4, 1, 4))

    def test_weights_are_only_copied(self):
        self.ballast("convert", "gptq.safetensors", "copy.safetensors")
        self.ballast("convert", "gptq.safetensors", "copy.pt")
        for more in (["o.safetensors", "--dtype", "F32"], ["o.gguf", "--dtype", "Q8_0"],
                     ["o.safetensors", "--dtype", "F32", "--rename", "scales=other"],
                     ["o.safetensors", "--dtype", "*scales=F32"]):
            self.refused("convert", "gptq.safetensors", *more, code=UNSUPPORTED, says="quantized with gptq")
        self.refused("cat", "gptq.safetensors", "m.q.scales", "--dtype", "F32", code=UNSUPPORTED, says="quantized with gptq")
        self.ballast("convert", "gptq.safetensors", "o.safetensors", "--dtype", "*norm*=F32")
        self.ballast("convert", "gptq.safetensors", "p.safetensors", "--dtype", "F32", "--include", "*norm*")


class Flags(TestCase):
    def setUp(self):
        super().setUp()
        self.write("in.safetensors", {"a.x": ("F32", [2], f32(1, 2)), "a.y": ("F32", [2], f32(1, 2))},
                   {"author": "somebody"})

    def test_that_match_nothing_are_reported(self):
        def notes(*arguments):
            return [line for line in self.ballast(*arguments).err.splitlines() if line.startswith("note:")]
        self.assertEqual(notes("convert", "in.safetensors", "o.safetensors", "--exclude", "*.bias", "--force"),
                         ['note: --exclude: no tensor matches "*.bias"'])
        self.assertEqual(notes("convert", "in.safetensors", "o.safetensors", "--rename", "^model=", "--force"),
                         ['note: the expression "^model" matches no name: nothing is renamed'])
        self.assertEqual(notes("convert", "in.safetensors", "o.safetensors", "--include", "*x", "--include", "*z", "--force"),
                         ['note: no tensor matches "*z"'])
        for verb in ("ls", "stats", "hash"):
            self.assertEqual(notes(verb, "in.safetensors", "*x", "*z"), ['note: no tensor matches "*z"'])
        self.assertEqual(notes("diff", "in.safetensors", "in.safetensors", "--exclude", "*z"),
                         ['note: --exclude: no tensor matches "*z"'])
        self.assertEqual(notes("diff", "in.safetensors", "in.safetensors", "--include", "*x"), [])
        self.refused("ls", "in.safetensors", "*z", code=IO, says="no tensor matches")
        self.write("integers.safetensors", {"a.i": ("I32", [1], bytes(4)), "a.x": ("F32", [1], f32(1))})
        self.assertEqual(notes("convert", "integers.safetensors", "o.safetensors", "--dtype", "*.i=F32", "--force"),
                         ['note: the rule "*.i" matches no tensor of floats: nothing becomes F32'])
        rules = {"rules": [{"match": "*.nosuch", "split": "rows"}, {"match": "a.*", "split": "replicated"}]}
        (self.folder / "rules.json").write_text(json.dumps(rules))
        self.assertEqual(notes("plan", "in.safetensors", "--ranks", "2", "--rules", "rules.json"),
                         ['note: the rule "*.nosuch" cuts nothing: no tensor matches it, or an earlier rule comes first'])
        self.assertEqual(notes("ls", "in.safetensors", "--variant", "fp16"),
                         ['note: in.safetensors: a file is opened as it is: only a folder is looked through for the variant "fp16"'])
        (self.folder / "s.pkl").write_bytes(b"cunknown.module\nThing\n(tR.")
        self.assertEqual(notes("scan", "s.pkl", "--trust", "unknown.*"), [])
        self.ballast("scan", "s.pkl", "--trust", "unknown.*")
        run = self.ballast("scan", "s.pkl", "--trust", "other.*", code=NO)
        self.assertIn('note: --trust "other.*" trusts nothing: it matches no name that is unknown without it', run.err)

    def test_for_names_are_refused_where_names_stay(self):
        for more in (["--heads", "3"], ["--kv-heads", "1"], ["--architecture", "llama"], ["--names", "keep", "--heads", "3"]):
            self.refused("convert", "in.safetensors", "o.safetensors", *more, code=USAGE,
                         says="are for names, which stay as they are", hint="--names hf")

    def test_for_metadata_serve_every_format(self):
        self.ballast("convert", "in.safetensors", "o.safetensors", "--meta", "author=me", "--metadata", "n:string=3")
        self.assertEqual(read_safetensors(self.folder / "o.safetensors")[1], {"author": "me", "n": "3"})
        self.ballast("convert", "in.safetensors", "o.gguf", "--metadata", "author=you")
        self.assertEqual(self.ballast("meta", "get", "o.gguf", "author").out.strip(), "you")
        self.ballast("convert", "o.gguf", "p.gguf", "--metadata", "author=they")
        self.assertEqual(self.ballast("meta", "get", "p.gguf", "author").out.strip(), "they")
        self.refused("convert", "in.safetensors", "q.safetensors", "--metadata", "n:u32=3", code=USAGE, says='"n" cannot be u32',
                     hint="--metadata n=3")
        self.ballast("convert", "in.safetensors", "q.gguf", "--metadata", "n:u64=3", "--metadata", "a:word=b")
        self.assertEqual(self.ballast("meta", "get", "q.gguf", "--json").json()["metadata"]["n"], 3)
        self.assertEqual(self.ballast("meta", "get", "q.gguf", "a:word").out.strip(), "b")
        self.ballast("convert", "o.safetensors", "p.safetensors", "--remove-metadata", "n")
        self.assertEqual(read_safetensors(self.folder / "p.safetensors")[1], {"author": "me"})
        self.refused("convert", "in.safetensors", "q.safetensors", "--remove-meta", "none", code=IO, says="no metadata")
        self.assertIn("no place for metadata", self.ballast("convert", "in.safetensors", "q.pt", "--meta", "k=v").err)

    def test_for_dtypes_take_the_usual_spellings(self):
        for typed, dtype in {"float32": "F32", "fp16": "F16", "bfloat16": "BF16", "half": "F16", "torch.float16": "F16",
                             "double": "F64", "<f2": "F16", "e5m2": "F8_E5M2"}.items():
            self.ballast("convert", "in.safetensors", "o.safetensors", "--dtype", f"*={typed}", "--force")
            self.assertEqual(read_safetensors(self.folder / "o.safetensors")[0]["a.x"][0], dtype)
        for typed, near in {"flaot32": "float32", "BF17": "BF16", "Q4K": "Q4_K"}.items():
            self.refused("cat", "in.safetensors", "a.x", "--dtype", typed, code=USAGE, says=f"did you mean {near}")

    def test_formats_are_named_for_transformers(self):
        self.ballast("convert", "in.safetensors", "m.pt")
        self.ballast("convert", "in.safetensors", "m.gguf")

        def named(*arguments):
            self.ballast("convert", *arguments, "o.safetensors", "--force")
            return (read_safetensors(self.folder / "o.safetensors")[1] or {}).get("format")
        self.assertEqual(named("m.pt"), "pt")
        self.assertEqual(named("m.gguf"), "pt")
        self.assertEqual(named("in.safetensors"), None, "a copy stays one")
        self.assertEqual(named("m.pt", "--meta", "format=mlx"), "mlx")
        self.assertEqual(named("m.pt", "--metadata", "format=np"), "np")
        self.assertEqual(named("m.pt", "--remove-meta", "format"), None)
        self.ballast("convert", "m.pt", "shards/", "--max-shard-size", "8")
        for shard in self.names_in_folder():
            if shard.startswith("shards/") and shard.endswith(".safetensors"):
                self.assertEqual(read_safetensors(self.folder / shard)[1], {"format": "pt"})


if __name__ == "__main__":
    unittest.main()
