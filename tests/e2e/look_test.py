"""info, ls, cat, stats and hash: looking into a checkpoint."""

import hashlib
import math
import os
import struct
import unittest
import zipfile

from support import *


class Info(TestCase):
    def test_says_what_is_in_a_file(self):
        text = self.ballast("info", TINY).out
        for fact in ("safetensors", "12", "4168", "BF16", "toy transformer", "model.embed.weight = lm_head.weight",
                     "model.layers.#.mlp.up.weight", "×2", "[32, 16]"):
            self.assertIn(fact, text)

    def test_json_has_every_promised_field(self):
        info = self.ballast("info", TINY, "--json").json()
        self.assertEqual(info["schema"], "ballast.info/1")
        self.assertEqual(info["format"], "safetensors")
        self.assertEqual(info["files"], [{"file": "tiny.safetensors", "bytes": TINY.stat().st_size}])
        self.assertEqual((info["shards"], info["tensors"], info["parameters"]), (1, 12, 4168))
        self.assertEqual(info["dtypes"]["BF16"], {"tensors": 8, "bytes": 8192})
        self.assertEqual(info["metadata"]["format"], "pt")
        self.assertEqual([sorted(names) for names in info["tied"]], [["lm_head.weight", "model.embed.weight"]])
        self.assertEqual(sorted(info["roots"]), ["lm_head", "model"])
        self.assertIn({"name": "model.layers.#.norm.weight", "dtype": "F32", "shape": [16], "tensors": 2, "bytes": 128},
                      info["patterns"])
        self.assertEqual((info["wasted_bytes"], info["notes"]), (0, []))

    def test_what_a_selection_leaves_out_is_not_wasted(self):
        info = self.ballast("info", TINY, "--json", "--include", "*norm*").json()
        self.assertEqual((info["tensors"], info["wasted_bytes"]), (3, 0))

    def test_of_an_empty_checkpoint(self):
        self.write("empty.safetensors", {})
        self.assertEqual(self.ballast("info", "empty.safetensors", "--json").json()["tensors"], 0)
        self.assertIn("tensors     0", self.ballast("info", "empty.safetensors").out)

    def test_a_pipe_gets_everything_and_exactly(self):
        self.write("m.safetensors", {"w": ("U8", [1_234_567], bytes(1_234_567))}, {"long": "word " * 200})
        text = self.ballast("info", "m.safetensors").out
        self.assertIn("word " * 200, text)
        size = (self.folder / "m.safetensors").stat().st_size
        for line in (f"files       1, {size} bytes", "parameters  1234567", "bytes       1234567",
                     "dtypes      U8    1 tensor, 1234567 bytes"):
            self.assertIn(line + "\n", text)
        self.assertIn("[1234567]  1234567\n", text)
        for rounded in ("…", "MB", " M\n"):
            self.assertNotIn(rounded, text)

    def test_a_pipe_gets_every_value_and_every_root(self):
        import pickle
        (self.folder / "m.pkl").write_bytes(pickle.dumps({f"value_{i}": i for i in range(50)}, protocol=2))
        text = self.ballast("info", "m.pkl").out
        self.assertIn("value_49 = 49\n", text)
        self.assertNotIn("…", text)

    def test_notes_are_part_of_the_answer(self):
        self.write("m.safetensors", with_header('  {"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"))
        notes = self.ballast("info", "m.safetensors", "--json").json()["notes"]
        self.assertEqual(len(notes), 1, notes)
        self.assertIn("notes", self.ballast("info", "m.safetensors").out)
        self.assertEqual(self.ballast("info", "m.safetensors").err, "")


class InfoOfAModel(TestCase):
    LLAMA = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"

    def test_sees_the_files_beside_the_weights(self):
        text = self.ballast("info", self.LLAMA).out
        self.assertIn("LlamaForCausalLM, blocks 2, context 131072, embedding 64, heads 4 (2 of keys), tokens 326, bfloat16, a chat template\n", text)
        self.assertIn("PreTrainedTokenizerFast, in tokenizer.json\n", text)
        self.assertIn("do_sample true, temperature 0.6, top_p 0.9\n", text)
        self.assertIn("214400 bytes for the weights (16.00 bits a weight), and 1048576 bytes of KV cache in F16 for 4096 tokens\n", text)

    def test_says_the_same_of_a_gguf(self):
        self.ballast("convert", self.LLAMA, self.folder / "model.gguf", "--type", "Q8_0")
        model, gguf = (self.ballast("info", target, "--json", "--context", "100").json() for target in (self.LLAMA, self.folder / "model.gguf"))
        for key in ("layers", "hidden_size", "heads", "kv_heads", "head_size", "vocabulary", "context", "experts", "chat_template"):
            self.assertEqual(model["model"][key], gguf["model"][key], key)
        self.assertEqual(model["estimates"]["kv_cache_bytes"], 100 * 2 * 2 * 2 * 16 * 2)
        self.assertEqual(gguf["estimates"]["kv_cache_bytes"], 100 * 2 * 2 * 2 * 16 * 2)
        self.assertEqual(model["model"]["class"], "LlamaForCausalLM")
        self.assertEqual(gguf["model"]["type"], "llama")

    def test_quantized_weights_count_as_the_numbers_that_they_stand_for(self):
        whole = self.ballast("info", self.LLAMA, "--json").json()
        self.ballast("convert", self.LLAMA, "nf4/", "--quantize", "nf4")
        quantized = self.ballast("info", "nf4", "--json").json()
        self.assertEqual(quantized["parameters"], whole["parameters"])
        self.assertLess(quantized["estimates"]["bits_per_weight"], whole["estimates"]["bits_per_weight"])
        self.assertIn("bits a weight)", self.ballast("info", "nf4").out)

    def test_an_encoder_has_no_cache_and_a_context_for_nothing_is_said(self):
        bert = next(path for path in (VECTORS / "hf2gguf" / "modernbert").iterdir() if path.is_dir())
        for target in (bert, TINY):
            result = self.ballast("info", target, "--context", "100")
            self.assertNotIn("KV cache", result.out)
            self.assertIn("--context says nothing here", result.err)

    def test_an_adapter_is_one(self):
        text = self.ballast("info", VECTORS / "peft" / "adalora" / "adapter").out
        self.assertRegex(text, r"adapter +ADALORA, rank 8, alpha 8")
        self.assertNotIn("to run", text)

    def test_a_broken_configuration_is_a_note(self):
        folder = self.folder / "model"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(TINY.read_bytes())
        (folder / "config.json").write_text('{"model_type": ')
        notes = self.ballast("info", folder, "--json").json()["notes"]
        self.assertEqual([note["where"] for note in notes], ["config.json"])

    def test_a_target_that_cannot_be_opened_hides_none_of_the_others(self):
        (self.folder / "web.safetensors").write_text("<!DOCTYPE html><html></html>")
        result = self.ballast("info", TINY, "nothing.safetensors", "web.safetensors", TINY, code=IO)
        self.assertEqual(result.out.count("tiny.safetensors"), 2)
        self.assertRegex(result.err, "(?s)nothing.safetensors.*web.safetensors: .*web page")
        self.assertEqual(self.ballast("info", "web.safetensors", "nothing.safetensors", code=UNSUPPORTED).out.strip(), "")
        self.assertEqual(self.ballast("info", TINY, "nothing.safetensors", "--json", code=IO).out, "")

    def test_several_targets_are_shown_one_after_the_other(self):
        text = self.ballast("info", TINY, TINY.with_name("tiny.pt")).out
        self.assertEqual(re.findall(r"(?m)^target +(.+)$", text), [str(TINY), str(TINY.with_name("tiny.pt"))])
        both = self.ballast("info", TINY, TINY, "--json").json()["targets"]
        self.assertEqual([one["tensors"] for one in both], [12, 12])

    def test_a_folder_with_several_checkpoints_is_listed(self):
        for name in ("a.safetensors", "b.safetensors"):
            (self.folder / name).write_bytes(TINY.read_bytes())
        choices = self.ballast("info", self.folder, "--json").json()["choices"]
        self.assertEqual([choice["target"] for choice in choices], [f"{self.folder}/a.safetensors", f"{self.folder}/b.safetensors"])
        text = self.ballast("info", self.folder).out
        self.assertIn("has 2 checkpoints; give one by its name:", text)
        self.assertIn(f"{self.folder}/b.safetensors", text)
        self.refused("ls", self.folder, code=USAGE, says="several")

    def test_a_broken_checkpoint_hides_none_of_the_others_of_its_folder(self):
        self.write("a.gguf", (VECTORS / "gguf" / "kv_all.gguf").read_bytes())
        self.write("b.gguf", b"GGUF" + bytes(20))
        self.write("c.gguf", (VECTORS / "gguf" / "kv_all.gguf").read_bytes())
        for words in (["info", self.folder], ["info", self.folder, TINY]):
            result = self.ballast(*words, code=UNSUPPORTED)
            rows = [row for row in result.rows() if row[0].endswith(".gguf")]
            self.assertEqual([row[1:3] for row in rows], [["gguf", "1 tensor"], ["", ""], ["gguf", "1 tensor"]])
            self.assertIn("b.gguf: GGUF version 0", rows[1][-1])
        first, bad, last = self.ballast("info", self.folder, "--json", code=UNSUPPORTED).json()["choices"]
        self.assertEqual((first["tensors"], last["tensors"]), (1, 1))
        self.assertIn("version 0", bad["error"])

    def test_of_a_training_checkpoint_a_pipe_gets_exact_numbers(self):
        text = self.ballast("info", VECTORS / "torch2" / "lightning_like.ckpt").out
        self.assertRegex(text, r"\ntraining    224 bytes of \d+ bytes are optimizer state\n")


class WithoutAVerb(TestCase):
    def test_a_target_is_looked_at(self):
        text = self.ballast("info", TINY).out
        self.assertEqual(self.ballast(TINY).out, text)
        self.assertEqual(self.ballast(TINY, "--json").json(), self.ballast("info", TINY, "--json").json())
        (self.folder / "model").write_bytes(TINY.read_bytes())
        self.assertEqual(self.ballast("model").out, self.ballast("info", "model").out)

    def test_options_may_stand_before_a_target(self):
        self.write("m.safetensors", TINY.read_bytes())
        shown = self.ballast("info", "m.safetensors").out
        for words in (["-q", "m.safetensors"], ["-v", "m.safetensors"], ["--threads", "2", "m.safetensors"], ["--threads=2", "-q", "m.safetensors"],
                      ["--context", "8", "m.safetensors"], ["--", "m.safetensors"]):
            self.assertEqual(self.ballast(*words).out, shown, words)
        self.assertEqual(self.ballast("--json", "m.safetensors").json()["tensors"], 12)
        self.refused("--threads", "m.safetensors", code=USAGE, says='--threads: "m.safetensors"')
        self.refused("-q", "lss", code=USAGE, says='there is no verb "lss"')
        self.assertIn("12", self.ballast("-q", "-", stdin=TINY.read_bytes()).out)

    def test_a_place_without_an_ending_may_be_a_folder(self):
        self.refused("convert", TINY, "out", code=UNSUPPORTED, says='in which format "out"', hint='"out/" is a folder of safetensors')

    def test_a_verb_wins(self):
        (self.folder / "info").write_bytes(TINY.read_bytes())
        self.refused("info", code=USAGE, says="TARGET is required")
        self.assertIn("safetensors", self.ballast("./info").out)

    def test_what_looks_like_a_path_is_missing_as_one(self):
        self.refused("models/none.safetensors", code=IO, says="models/none.safetensors")
        self.refused("none.safetensors", code=USAGE, says='there is no verb "none.safetensors"')

    def test_words_of_other_programs_lead_to_ours(self):
        for word, verb in {"inspect": "info", "dump": "ls", "tree": "ls --tree", "quantize": "convert", "split": "convert", "du": "ls --tree"}.items():
            self.refused(word, code=USAGE, says=f'there is no verb "{word}"', hint=f"did you mean {verb}?")


class Ls(TestCase):
    def test_lists_in_natural_order_with_tabs_in_a_pipe(self):
        self.write("m.safetensors", {f"layers.{i}.w": ("F32", [i, 2], [0.0] * 2 * i) for i in (10, 9, 2)})
        self.assertEqual(self.ballast("ls", "m.safetensors").rows(), [
            ["layers.2.w", "F32", "[2, 2]", "16"],
            ["layers.9.w", "F32", "[9, 2]", "72"],
            ["layers.10.w", "F32", "[10, 2]", "80"],
        ])

    def test_json_keeps_the_files_order_and_says_where_the_bytes_lie(self):
        path = self.write("m.safetensors", {"b": ("I16", [3], [1, 2, 3]), "a": ("F32", [], [2.5])})
        listed = self.ballast("ls", "m.safetensors", "--json").json()
        self.assertEqual((listed["schema"], listed["target"], listed["format"], listed["shards"]),
                         ("ballast.ls/1", "m.safetensors", "safetensors", 1))
        b, a = listed["tensors"]
        self.assertEqual(list(b), ["name", "dtype", "shape", "numel", "bytes", "layout", "file", "offset", "contiguous", "data"])
        self.assertEqual((b["name"], b["dtype"], b["shape"], b["bytes"]), ("b", "I16", [3], 6))
        self.assertEqual((b["layout"], b["file"], b["contiguous"], b["data"]), ("strided", "m.safetensors", True, True))
        raw = path.read_bytes()
        self.assertEqual(raw[b["offset"]:b["offset"] + 6], struct.pack("<3h", 1, 2, 3))
        self.assertEqual(raw[a["offset"]:a["offset"] + 4], struct.pack("<f", 2.5))
        self.assertEqual(a["shape"], [])

    def test_names_files_relative_to_the_target(self):
        self.write("sub/m.safetensors", {"w": ("U8", [1], [1])})
        for target in ("sub/m.safetensors", "sub", str(self.folder / "sub")):
            tensor = self.ballast("ls", target, "--json").json()["tensors"][0]
            self.assertEqual(tensor["file"], "m.safetensors", target)

    def test_aliases_say_which_tensor_they_stand_for(self):
        tensors = {t["name"]: t for t in self.ballast("ls", TINY, "--json").json()["tensors"]}
        self.assertEqual(tensors["lm_head.weight"]["alias_of"], "model.embed.weight")
        self.assertNotIn("alias_of", tensors["model.embed.weight"])
        self.assertIn(["lm_head.weight", "BF16", "[32, 16]", "1024", "= model.embed.weight"], self.ballast("ls", TINY).rows())

    def test_selects_by_globs_and_options(self):
        names = lambda *args: [row[0] for row in self.ballast("ls", TINY, *args).rows()]
        self.assertEqual(names("*.norm.*"), ["model.layers.0.norm.weight", "model.layers.1.norm.weight", "model.norm.weight"])
        self.assertEqual(names("*.norm.*", "--exclude", "*.0.*"), ["model.layers.1.norm.weight", "model.norm.weight"])
        self.assertEqual(names("--include", "*ids", "model.norm.weight"), ["model.norm.weight", "model.position_ids"])
        self.assertEqual(names("model.layers.[1].norm*"), ["model.layers.1.norm.weight"])

    def test_a_glob_in_brackets_stays_one_argument(self):
        self.write("m.safetensors", {"a": ("U8", [1], [1]), ",": ("U8", [1], [1]), "b": ("U8", [1], [1])})
        self.assertEqual([row[0] for row in self.ballast("ls", "m.safetensors", "[a,]").rows()], [",", "a"])

    def test_a_selection_without_a_match_is_an_error_that_helps(self):
        self.refused("ls", TINY, "model.nrom.weight", code=IO, says='no tensor matches "model.nrom.weight"',
                     hint="did you mean model.norm.weight?")
        self.refused("ls", TINY, "nothing*", code=IO, says='no tensor matches "nothing*"', hint="full name")

    def test_reads_standard_input(self):
        listed = self.ballast("ls", "-", "--json", stdin=TINY.read_bytes()).json()
        self.assertEqual(len(listed["tensors"]), 12)
        self.assertEqual((listed["tensors"][0]["file"], listed["tensors"][0]["offset"]), (None, None))

    def test_a_file_may_be_called_like_a_verb(self):
        self.write("info", {"w": ("U8", [1], [1])})
        self.assertEqual(self.ballast("ls", "info").rows()[0][0], "w")

    def test_control_characters_in_names_do_not_reach_the_reader(self):
        name = "evil\x1b[2Jname\n\u202eabc\u009b"
        self.write("m.safetensors", {name: ("U8", [1], [1])})
        text = self.ballast("ls", "m.safetensors").out
        self.assertEqual(len(text.splitlines()), 1)
        for character in "\x1b\u202e\u009b":
            self.assertNotIn(character, text)
        json_text = self.ballast("ls", "m.safetensors", "--json").out
        for character in "\x1b\u202e\u009b":
            self.assertNotIn(character, json_text)
        self.assertEqual(json.loads(json_text)["tensors"][0]["name"], name)

    def test_every_name_survives_json(self):
        names = ['quote"', "back\\slash", "tab\t", "\u00e9\u4e2d\U0001f600", "", " ", "\x7f", "\u2028"]
        self.write("m.safetensors", {name: ("U8", [1], [1]) for name in names})
        self.assertEqual([t["name"] for t in self.ballast("ls", "m.safetensors", "--json").json()["tensors"]], names)

    def test_lists_a_hundred_thousand_tensors_in_a_moment(self):
        self.write("many.safetensors", {f"model.layers.{i}.weight": ("U8", [1], b"x") for i in range(100_000)})
        start = time.monotonic()
        self.assertEqual(len(self.ballast("ls", "many.safetensors", "--json").json()["tensors"]), 100_000)
        self.assertEqual(len(self.ballast("ls", "many.safetensors").lines()), 100_000)
        self.assertLess(time.monotonic() - start, 20)

    def test_opens_shards_with_and_without_an_index(self):
        self.write("model/model-00001-of-00002.safetensors", {"a": ("U8", [1], [1])})
        self.write("model/model-00002-of-00002.safetensors", {"b": ("U8", [2], [1, 2])})
        listed = self.ballast("ls", "model", "--json").json()
        self.assertEqual((listed["shards"], [t["name"] for t in listed["tensors"]]), (2, ["a", "b"]))
        index = {"metadata": {"total_size": 3}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                                                               "b": "model-00002-of-00002.safetensors"}}
        (self.folder / "model/model.safetensors.index.json").write_text(json.dumps(index))
        for target in ("model", "model/model.safetensors.index.json"):
            tensors = self.ballast("ls", target, "--json").json()["tensors"]
            self.assertEqual([(t["name"], t["file"]) for t in tensors],
                             [("a", "model-00001-of-00002.safetensors"), ("b", "model-00002-of-00002.safetensors")])


class Cat(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", {
            "matrix": ("F32", [2, 3], [1, 2.5, -3, 0.125, 100, 6]),
            "big": ("I32", [40, 50], list(range(2000))),
            "flags": ("BOOL", [3], [True, False, True]),
            "scalar": ("F64", [], [math.pi]),
            "empty": ("F32", [0, 3], []),
            "hollow": ("F32", [2, 0, 3], []),
            "odd": ("F32", [4], [math.nan, math.inf, -math.inf, 1.5]),
            "complex": ("C64", [2], struct.pack("<4f", 1, 2, -0.5, -1)),
            "half": ("F16", [3], [0.1, 65504, -2]),
            "wide": ("U64", [2], [2**64 - 1, 0]),
            "small": ("F64", [3], [1.5e-10, 1, 2.25]),
            "cube": ("I8", [2, 2, 2], list(range(8))),
        })

    def values(self, *args):
        return self.ballast("cat", "m.safetensors", *args, "--json").json()["values"]

    def test_prints_as_numpy_does(self):
        expected = {
            "matrix": "[[  1.      2.5    -3.   ]\n [  0.125 100.      6.   ]]\n",
            "flags": "[ True False  True]\n",
            "scalar": "3.141592653589793\n",
            "empty": "[]\n",
            "odd": "[nan inf -inf 1.5]\n".replace("[nan inf -inf 1.5]", "[ nan  inf -inf  1.5]"),
            "complex": "[ 1. +2.j -0.5-1.j]\n",
            "wide": "[18446744073709551615                    0]\n",
            "small": "[1.50e-10 1.00e+00 2.25e+00]\n",
            "cube": "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n",
        }
        for name, text in expected.items():
            self.assertEqual(self.ballast("cat", "m.safetensors", name).out, text, name)

    def test_prints_what_numpy_prints_if_numpy_is_installed(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        generator = __import__("random").Random(7)
        shapes = [(), (1,), (5,), (200,), (3, 4), (2, 3, 4), (40, 50), (7, 8, 30), (1001,)]
        number = lambda scale: generator.choice([0, math.nan, math.inf, -5] + 8 * [generator.gauss(0, 10**scale)])
        tensors = {}
        for i, shape in enumerate(shapes):
            count = math.prod(shape)
            tensors[f"f{i}"] = ("F32", shape, [round(generator.gauss(0, 1), 3) + 3 for _ in range(count)])
            tensors[f"d{i}"] = ("F64", shape, [generator.gauss(0, 10 ** generator.randint(-3, 3)) for _ in range(count)])
            tensors[f"b{i}"] = ("BOOL", shape, [generator.random() < 0.8 for _ in range(count)])
            for scale in (-9, -4, 0, 4, 7, 8, 15):
                tensors[f"f{i} {scale}"] = ("F32", shape, [number(scale) for _ in range(count)])
                tensors[f"d{i} {scale}"] = ("F64", shape, [number(scale) for _ in range(count)])
                tensors[f"c{i} {scale}"] = ("C64", shape, [number(scale) for _ in range(2 * count)])
            tensors[f"i{i}"] = ("I64", shape, [generator.randint(-1000, 1000) for _ in range(count)])
        types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "C64": "<c8", "BOOL": "?"}
        raw = lambda dtype, values: pack("F32" if dtype == "C64" else dtype, values)
        self.write("n.safetensors", {name: (dtype, shape, raw(dtype, values)) for name, (dtype, shape, values) in tensors.items()})
        for name, (dtype, shape, values) in tensors.items():
            array = numpy.frombuffer(raw(dtype, values), types[dtype]).reshape(shape)
            self.assertEqual(self.ballast("cat", "n.safetensors", name).out, str(array) + "\n", name)

    def test_abbreviates_what_is_large_unless_asked_for_all_of_it(self):
        text = self.ballast("cat", "m.safetensors", "big").out
        self.assertEqual(text.splitlines()[0], "[[   0    1    2 ...   47   48   49]")
        self.assertEqual(text.splitlines()[3], " ...")
        self.assertEqual(len(text.splitlines()), 7)
        full = self.ballast("cat", "m.safetensors", "big", "--full").out
        self.assertEqual([int(word) for word in re.findall(r"\d+", full)], list(range(2000)))

    def test_json_has_every_value(self):
        self.assertEqual(self.values("matrix"), [[1, 2.5, -3], [0.125, 100, 6]])
        self.assertEqual(self.values("big")[39][49], 1999)
        self.assertEqual(self.values("flags"), [True, False, True])
        self.assertEqual(self.values("scalar"), math.pi)
        self.assertEqual(self.values("empty"), [])
        self.assertEqual(self.values("hollow"), [[], []])
        self.assertEqual(self.values("odd"), ["NaN", "Infinity", "-Infinity", 1.5])
        self.assertEqual(self.values("complex"), [[1, 2], [-0.5, -1]])
        self.assertEqual(self.values("half"), [0.099975586, 65504, -2])
        self.assertEqual(self.values("wide"), [2**64 - 1, 0])
        self.assertEqual(self.values("cube"), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        document = self.ballast("cat", "m.safetensors", "matrix", "--json", "--slice", "1").json()
        self.assertEqual(document, {"schema": "ballast.cat/1", "name": "matrix", "dtype": "F32", "shape": [3],
                                    "values": [0.125, 100, 6]})

    def test_slices_as_python_does(self):
        rows = [list(range(50 * i, 50 * i + 50)) for i in range(40)]
        self.assertEqual(self.values("big", "--slice", "0:2,:3"), [row[:3] for row in rows[:2]])
        self.assertEqual(self.values("big", "--slice", "-1"), rows[-1])
        self.assertEqual(self.values("big", "--slice", "...,-1"), [row[-1] for row in rows])
        self.assertEqual(self.values("big", "--slice", "[::20, 10:0:-5]"), [row[10:0:-5] for row in rows[::20]])
        self.assertEqual(self.values("big", "--slice", "38:100,0"), [row[0] for row in rows[38:100]])
        self.refused("cat", "m.safetensors", "big", "--slice", "nonsense", code=USAGE, says="nonsense")
        self.refused("cat", "m.safetensors", "big", "--slice", "0,0,0", code=USAGE, says="a slice of 3 indices for a tensor of rank 2")

    def test_writes_raw_bytes(self):
        raw = self.ballast("cat", "m.safetensors", "matrix", "-o", "-").raw
        self.assertEqual(raw, pack("F32", [1, 2.5, -3, 0.125, 100, 6]))
        self.ballast("cat", "m.safetensors", "matrix", "-o", "x.bin", "--slice", ":,0")
        self.assertEqual((self.folder / "x.bin").read_bytes(), pack("F32", [1, 0.125]))

    def test_writes_numpy_files(self):
        result = self.ballast("cat", "m.safetensors", "matrix", "-o", "x.npy")
        self.assertEqual((result.out, result.err.startswith("wrote x.npy")), ("", True))
        raw = (self.folder / "x.npy").read_bytes()
        self.assertEqual(raw[:6], b"\x93NUMPY")
        (size,) = struct.unpack_from("<H", raw, 8)
        header = eval(raw[10:10 + size], {}, {})  # a Python literal, by NumPy's own definition of the format
        self.assertEqual(header, {"descr": "<f4", "fortran_order": False, "shape": (2, 3)})
        self.assertEqual(raw[10 + size:], pack("F32", [1, 2.5, -3, 0.125, 100, 6]))

    def test_casts(self):
        self.assertEqual(self.values("half", "--dtype", "f64"), [0.0999755859375, 65504, -2])
        self.ballast("cat", "m.safetensors", "half", "--dtype", "F32", "-o", "x.npy")
        self.write("b.safetensors", {"b": ("BF16", [1], b"\x80\x3f")})
        self.refused("cat", "b.safetensors", "b", "-o", "b.npy", code=UNSUPPORTED, says="BF16", hint="--dtype F32")
        self.refused("cat", "b.safetensors", "b", "--dtype", "F33", code=USAGE, says="F33", hint="F32")

    def test_names_have_the_same_globs_as_in_other_verbs(self):
        self.ballast("cat", TINY, "model.layers.{0..1}.norm.weight", "-o", "x.npz")
        with zipfile.ZipFile(self.folder / "x.npz") as archive:
            self.assertEqual(sorted(archive.namelist()), [f"model.layers.{i}.norm.weight.npy" for i in (0, 1)])
        self.refused("cat", TINY, "model.layers.{7..9}.norm.weight", code=IO, says="no tensor matches")

    def test_overwrites_only_by_force(self):
        for name in ("x.npy", "x.bin"):
            (self.folder / name).write_text("precious")
            self.refused("cat", "m.safetensors", "matrix", "-o", name, code=USAGE, says="exists", hint="--force")
            self.assertEqual((self.folder / name).read_text(), "precious")
            self.ballast("cat", "m.safetensors", "matrix", "-o", name, "--force")
            self.assertNotEqual((self.folder / name).read_bytes(), b"precious")
        self.assertEqual(self.names_in_folder(), ["m.safetensors", "x.bin", "x.npy"])

    def test_does_not_replace_a_pipe_or_a_device(self):
        os.mkfifo(self.folder / "pipe")
        for name in ("pipe", "/dev/null"):
            self.refused("cat", "m.safetensors", "matrix", "-o", name, "--force", code=USAGE, says="not a file", hint="-o -")
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_values_that_share_a_byte_are_sliced_when_they_are_cast(self):
        # The values are 0, 0.5, 1, 1.5 and 2, 3, 4, 6.
        self.write("f4.safetensors", {"w": ("F4", [2, 4], bytes([0x10, 0x32, 0x54, 0x76]))})
        for slice in ("0,:3", ":,0", "0,:3:2", "0,1:3"):
            self.refused("cat", "f4.safetensors", "w", "--slice", slice, code=UNSUPPORTED, says="block", hint="cast first")
        values = lambda slice: self.ballast("cat", "f4.safetensors", "w", "--slice", slice, "--dtype", "F32", "--json").json()
        self.assertEqual(values(":,0")["values"], [0, 2])
        self.assertEqual(values("0,:3:2")["values"], [0, 1])
        self.assertEqual(values("1,1:")["values"], [3, 4, 6])

    def test_refuses_two_outputs_at_once(self):
        self.refused("cat", "m.safetensors", "matrix", "-o", "x", "--json", code=USAGE, says="--json", hint="one of them")

    def test_an_unknown_name_suggests_the_nearest(self):
        self.refused("cat", "m.safetensors", "matirx", code=IO, says='no tensor called "matirx"', hint="did you mean matrix?")
        self.refused("cat", "m.safetensors", "entirely different", code=IO, says="no tensor", hint="ballast ls")

    def test_names_that_look_like_options_come_after_two_dashes(self):
        self.write("n.safetensors", {"--help": ("U8", [1], [7]), "": ("U8", [1], [8])})
        self.assertEqual(self.ballast("cat", "n.safetensors", "--", "--help").out, "[7]\n")
        self.assertEqual(self.ballast("cat", "n.safetensors", "").out, "[8]\n")

    def test_sixteen_bit_floats_show_no_more_digits_than_they_have(self):
        self.write("n.safetensors", {"b": ("BF16", [3], struct.pack("<3H", 0x3DCD, 0x3F80, 0x4049)),
                                     "h": ("F16", [2], [0.1, 0.333])})
        self.assertEqual(self.ballast("cat", "n.safetensors", "b").out, "[0.1  1.   3.14]\n")
        self.assertEqual(self.ballast("cat", "n.safetensors", "h").out, "[0.1   0.333]\n")


class Stats(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", {
            "w": ("F32", [8], [0, 0, 1, 2, 3, -6, math.nan, math.inf]),
            "c": ("C64", [1], struct.pack("<2f", 1, 2)),
            "i": ("I64", [4], [1, 2, 3, 4]),
        })

    def test_json(self):
        document = self.ballast("stats", "m.safetensors", "--json").json()
        self.assertEqual(document["schema"], "ballast.stats/1")
        tensors = {t["name"]: t for t in document["tensors"]}
        w = tensors["w"]
        self.assertEqual((w["count"], w["zeros"], w["nans"], w["infinities"]), (8, 2, 1, 1))
        self.assertEqual((w["min"], w["max"], w["mean"]), (-6, 3, 0))
        self.assertAlmostEqual(w["std"], math.sqrt((1 + 4 + 9 + 36) / 6), 5)
        self.assertEqual((tensors["i"]["mean"], tensors["i"]["supported"]), (2.5, True))
        self.assertEqual((tensors["c"]["supported"], "mean" in tensors["c"]), (False, False))

    def test_table_in_a_pipe(self):
        rows = self.ballast("stats", "m.safetensors").rows()
        self.assertEqual(rows[0], ["name", "dtype", "shape", "min", "max", "mean", "std", "zeros", "nan", "inf"])
        self.assertEqual([row[0] for row in rows[1:]], ["c", "i", "w"])
        self.assertEqual(rows[1][3:], ["-"] * 7)
        self.assertEqual(rows[3][3:], ["-6", "3", "0", "2.886751345948129", "2", "1", "1"])

    def test_one_tensor_gets_a_histogram(self):
        text = self.ballast("stats", "m.safetensors", "i").out
        self.assertIn("█", text)
        self.assertIn("└", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_many_tensors_get_small_histograms_when_asked(self):
        rows = self.ballast("stats", "m.safetensors", "--histogram", "--exclude", "c").rows()
        self.assertEqual(rows[0][-1], "histogram")
        self.assertRegex(rows[1][-1], "^[ ▁▂▃▄▅▆▇█]{24}$")
        document = self.ballast("stats", "m.safetensors", "i", "--bins", "4", "--json").json()
        self.assertEqual(document["tensors"][0]["histogram"], [1, 1, 1, 1])

    def test_one_tensor_without_an_order_is_unsupported(self):
        self.refused("stats", "m.safetensors", "c", code=UNSUPPORTED, says="C64")
        document = self.ballast("stats", "m.safetensors", "c", "--json").json()
        self.assertEqual(document["tensors"][0]["supported"], False)

    def test_there_is_no_number_if_no_value_is_finite(self):
        self.write("n.safetensors", {"nan": ("F32", [1], [math.nan]), "none": ("F32", [0], [])})
        for tensor in self.ballast("stats", "n.safetensors", "--bins", "2", "--json").json()["tensors"]:
            self.assertEqual([tensor[key] for key in ("min", "max", "mean", "std", "histogram")], [None] * 4 + [[0, 0]])
        self.assertEqual(self.ballast("stats", "n.safetensors").rows()[1][3:7], ["-"] * 4)
        self.refused("stats", "n.safetensors", "--bins", "100000000", code=USAGE, says="65536")


class Hash(TestCase):
    TENSORS = {"b": ("F32", [2], [1, 2]), "a": ("I8", [2, 3], [1, 2, 3, 4, 5, 6])}

    def expected(self):
        digests = {name: hashlib.sha256(pack(dtype, values)).hexdigest() for name, (dtype, _, values) in self.TENSORS.items()}
        whole = hashlib.sha256()
        for name in sorted(digests):
            dtype, shape, _ = self.TENSORS[name]
            whole.update(b"\0".join([name.encode(), dtype.encode(), ",".join(map(str, shape)).encode(),
                                     digests[name].encode()]) + b"\n")
        return digests, whole.hexdigest()

    def test_is_what_the_contract_says(self):
        self.write("m.safetensors", self.TENSORS)
        digests, whole = self.expected()
        self.assertEqual(self.ballast("hash", "m.safetensors", "--json").json(), {
            "schema": "ballast.hash/1", "algorithm": "sha256", "tensors": digests, "digest": whole})
        self.assertEqual(self.ballast("hash", "m.safetensors").lines(), [
            f"{digests['a']}  a", f"{digests['b']}  b", f"{whole}  (all 2 tensors)"])
        self.assertEqual(self.ballast("hash", "m.safetensors", "--digest").out, whole + "\n")

    def test_does_not_depend_on_order_or_sharding(self):
        self.write("one.safetensors", self.TENSORS)
        for i, (name, tensor) in enumerate(self.TENSORS.items(), 1):
            self.write(f"many/model-{i:05}-of-00002.safetensors", {name: tensor})
        self.write("other.safetensors", dict(reversed(self.TENSORS.items())), {"some": "metadata"})
        digests = {self.ballast("hash", target, "--digest").out for target in ("one.safetensors", "many", "other.safetensors")}
        self.assertEqual(len(digests), 1)

    def test_only_the_digest(self):
        self.write("m.safetensors", self.TENSORS)
        document = self.ballast("hash", "m.safetensors", "--digest", "--json").json()
        self.assertEqual(sorted(document), ["algorithm", "digest", "schema"])
        self.assertEqual(self.ballast("hash", "m.safetensors", "--digest").out, document["digest"] + "\n")

    def test_of_a_selection(self):
        self.write("m.safetensors", self.TENSORS)
        self.assertEqual(list(self.ballast("hash", "m.safetensors", "a", "--json").json()["tensors"]), ["a"])


if __name__ == "__main__":
    unittest.main()
