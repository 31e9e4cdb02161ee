"""What convert thinks of by itself: the files beside the weights, and the model in a training checkpoint."""

import os

from support import *

TORCH = VECTORS / "torch2"
CONFIG = '{\n  "torch_dtype": "float32",\n    "eps": 1e-05, "x": 0.10000000000000001\n}\n'


class Sidecars(TestCase):
    def setUp(self):
        super().setUp()
        self.write("model/model.safetensors", {"a.w": ("F32", [4], [1, 2, 3, 4]), "b.w": ("F32", [2], [1, 2])})
        for name, text in {"config.json": CONFIG, "tokenizer.json": "{}", "README.md": "# Hi", "1_Pooling/config.json": "{}",
                           "trainer_state.json": "{}", ".gitattributes": "x"}.items():
            self.write(f"model/{name}", text.encode())

    def files(self, folder):
        return sorted(str(path.relative_to(self.folder / folder)) for path in (self.folder / folder).rglob("*") if path.is_file())

    def text(self, name):
        return (self.folder / name).read_text()

    def test_go_along_from_folder_to_folder(self):
        done = self.ballast("convert", "model", "out/", "--dtype", "BF16")
        self.assertEqual(self.files("out"), ["1_Pooling/config.json", "README.md", "config.json", "model.safetensors", "tokenizer.json"])
        self.assertEqual(self.text("out/config.json"), CONFIG.replace("float32", "bfloat16"))
        self.assertIn('note: taken along: "1_Pooling/config.json", "README.md", "config.json", "tokenizer.json"; in config.json, torch_dtype is bfloat16\n', done.err)
        self.assertIn('note: left in the folder of the source: "trainer_state.json"\n', done.err)
        self.ballast("verify", "out")

    def test_stay_behind_if_they_are_not_wanted(self):
        self.ballast("convert", "model", "out/", "--no-sidecars")
        self.assertEqual(self.files("out"), ["model.safetensors"])
        for source, out in (("model", "one.safetensors"), ("model/model.safetensors", "two/")):
            done = self.ballast("convert", source, out)
            self.assertNotIn("taken along", done.err)
        self.assertEqual(self.files("two"), ["model.safetensors"])

    def test_are_in_the_plan(self):
        rows = self.ballast("convert", "model/", "out/", "--dry-run").rows()
        self.assertEqual([row[:2] for row in rows][1:3], [["out/1_Pooling/config.json", "configuration"], ["out/README.md", "beside the weights"]])
        plan = self.ballast("convert", "model/", "out/", "--dry-run", "--json").json()
        self.assertIn({"path": "out/tokenizer.json", "bytes": 2, "tensors": 0}, plan["files"])
        self.assertEqual([item["name"] for item in plan["plan"]], ["a.w", "b.w"])
        self.assertFalse((self.folder / "out").exists())

    def test_overwrite_nothing(self):
        self.write("out/config.json", b"mine")
        self.refused("convert", "model", "out", code=USAGE, says="out/config.json: already exists", hint="--no-sidecars takes no files along")
        self.assertEqual(self.files("out"), ["config.json"])
        self.ballast("convert", "model", "out", "--no-sidecars")
        self.assertEqual(self.text("out/config.json"), "mine")
        self.ballast("convert", "model", "out", "--force")
        self.assertEqual(self.text("out/config.json"), CONFIG)

    def test_leave_nothing_behind_if_the_job_fails(self):
        self.write("model/model.safetensors", {"w": ("F32", [1], [1e30])})
        self.ballast("convert", "model", "out/", "--dtype", "F16", "--strict", code=NO)
        self.assertFalse((self.folder / "out").exists())

    def test_go_along_with_shards_into_an_empty_folder_only(self):
        (self.folder / "empty").mkdir()
        self.ballast("convert", "model", "empty/m.safetensors", "--max-shard-size", "16")
        self.assertEqual(self.files("empty")[-1], "tokenizer.json")
        self.write("used/other.txt", b"")
        self.ballast("convert", "model", "used/m.safetensors", "--max-shard-size", "16")
        self.assertNotIn("config.json", self.files("used"))
        self.ballast("convert", "model", "m.safetensors", "--max-shard-size", "16")
        self.assertFalse((self.folder / "config.json").exists())

    def test_are_the_same_after_a_second_run(self):
        self.ballast("convert", "model", "a/", "--max-shard-size", "16", "--verify")
        self.ballast("convert", "a", "b/")
        for name in ("config.json", "tokenizer.json", "README.md"):
            self.assertEqual(self.text(f"a/{name}"), self.text(f"b/{name}"))
        self.assertNotIn("model.safetensors.index.json", self.files("b"))

    def test_warn_if_the_names_are_others(self):
        done = self.ballast("convert", "model", "out/", "--rename", "^a=c")
        self.assertIn("config.json describes the names that the model had", done.err)

    def test_never_lead_out_of_the_folder(self):
        secret = self.write("secret", b"secret")
        (self.folder / "model/LICENSE").symlink_to(secret)
        (self.folder / "model/NOTICE").symlink_to("../secret")
        os.mkfifo(self.folder / "model/vocab.json")
        done = self.ballast("convert", "model", "out/")
        self.assertFalse({"LICENSE", "NOTICE", "vocab.json"} & set(self.files("out")))
        self.assertIn("LICENSE: is a link that leads out of the folder, and is not taken along", done.err)

    def test_that_are_broken_or_huge_stop_nothing(self):
        self.write("model/config.json", b"{ not json")
        with open(self.folder / "model/README.md", "wb") as file:
            file.truncate(1 << 30)
        done = self.ballast("convert", "model", "out/", "--dtype", "F16")
        self.assertEqual(self.text("out/config.json"), "{ not json")
        self.assertIn("config.json is copied as it is", done.err)
        self.assertIn("README.md: has 1.07 GB, more than any such file of a model", done.err)
        self.assertNotIn("README.md", self.files("out"))

    def test_go_along_with_a_merged_adapter(self):
        self.write("base/model.safetensors", TINY.read_bytes())
        self.write("base/config.json", b'{"dtype": "bfloat16"}')
        lora = SOURCE / "examples" / "tiny-lora"
        self.ballast("adapter", "merge", "base/", lora, "-o", "merged/", "--dtype", "F32")
        self.assertEqual(self.text("merged/config.json"), '{"dtype": "float32"}')
        self.ballast("adapter", "merge", "base/", lora, "-o", "plain/", "--no-sidecars")
        self.assertEqual(self.files("plain"), ["model.safetensors"])


class TrainingCheckpoints(TestCase):
    def test_are_recognised_by_info_and_convert(self):
        for target in (TORCH / "lightning_like.ckpt", TORCH / "checkpoint_nested.pt"):
            says = "this is a training checkpoint: 224 B of "
            self.assertRegex(self.ballast("info", target).out, r"\ntraining    224 bytes of .* are optimizer state\n            convert --model-only gives just the model \(what is under \"")
            self.assertIn(says, self.ballast("info", target, "--json").json()["notes"][0]["text"])
            done = self.ballast("convert", target, "all.safetensors", "--force")
            self.assertIn(says, done.err)
            self.assertIn(f"ballast convert {target} OUT --model-only", done.err)
        info = self.ballast("info", TORCH / "checkpoint_nested.pt", "--json").json()["training"]
        self.assertEqual(info["model"], {"root": "model", "tensors": 4, "bytes": 104})
        self.assertEqual(info["optimizers"], [{"root": "optimizer", "tensors": 12, "bytes": 224}])

    def test_are_recognised_below_a_key(self):
        sys.path.insert(0, str(SOURCE / "examples"))
        from make_tiny_pt import FloatStorage, Storage, Tensor
        from make_tour import torch_zip
        def tensor():
            return Tensor(Storage(FloatStorage, "f", [1.0] * 4), (2, 2), (2, 1))
        state = {"state": {0: {"step": 1, "exp_avg": tensor()}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
        torch_zip(self.folder / "run.pt", {"run": {"inner": {"model": {"w": tensor()}, "optimizer": state}}})
        info = self.ballast("info", "run.pt", "--json").json()["training"]
        self.assertEqual(info["model"], {"root": "run.inner.model", "tensors": 1, "bytes": 16})
        self.assertEqual([part["root"] for part in info["optimizers"]], ["run.inner.optimizer"])
        self.ballast("convert", "run.pt", "model.safetensors", "--model-only", "-q")
        self.assertEqual([row[0] for row in self.ballast("ls", "model.safetensors").rows()], ["w"])

    def test_become_the_model_alone(self):
        done = self.ballast("convert", TORCH / "checkpoint_nested.pt", "model.safetensors", "--model-only")
        self.assertIn('optimizer state is left out: "optimizer" (12 tensors, 224 B)', done.err)
        wanted = self.ballast("hash", TORCH / "checkpoint_nested.pt", "--root", "model", "--digest").out
        self.assertEqual(self.ballast("hash", "model.safetensors", "--digest").out, wanted)

    def test_that_are_none_are_copied(self):
        done = self.ballast("convert", TINY, "copy.safetensors", "--model-only")
        self.assertIn("note: there is nothing in it but the model\n", done.err)
        self.ballast("diff", TINY, "copy.safetensors")

    def test_of_an_optimizer_alone_have_no_model(self):
        self.refused("convert", TORCH / "optimizer_adam.pt", "x.safetensors", "--model-only", code=IO, says="there is no model in it, only the state of an optimizer")
        self.assertIn("this is the state of an optimizer", self.ballast("info", TORCH / "optimizer_adam.pt").out)

    def test_keep_tied_tensors_tied(self):
        done = self.ballast("convert", SOURCE / "examples" / "tiny.pt", "tied.pt", "--model-only")
        self.assertNotIn("training checkpoint", done.err)
        self.assertEqual(self.ballast("info", "tied.pt", "--json").json()["tied"], [["embed.weight", "head.weight"]])

    @needs_fixtures
    def test_of_other_people_become_models(self):
        for name, tensors in {"cgcnn__pre-trained__band-gap.pth.tar": 46, "chemprop__tests__data__example_model_v2_regression_mol.ckpt": 16, "burn__reader__checkpoint.pt": 4}.items():
            out = self.ballast("convert", FIXTURES / "benign" / name, "out.safetensors", "--model-only", "--force", "--json").json()
            self.assertEqual(out["tensors"], tensors, name)


class Cat(TestCase):
    def test_needs_no_name_if_there_is_one_tensor(self):
        self.write("one.safetensors", {"w": ("I32", [2], [1, 2])})
        self.assertEqual(self.ballast("cat", "one.safetensors").out, "[1 2]\n")
        self.assertEqual(self.ballast("cat", "one.safetensors", "w*", "--json").json()["name"], "w")
        self.write("none.safetensors", {})
        self.refused("cat", "none.safetensors", code=IO, says="there is no tensor in it")
        self.refused("cat", TINY, code=USAGE, says="there are 12 tensors", hint="lm_head.weight, model.embed.weight")
        self.refused("cat", TINY, "*norm*", code=USAGE, says="3 tensors match", hint="-o x.npz")
        self.refused("cat", TINY, "*nothing*", code=IO, says='no tensor matches "*nothing*"')

    def test_takes_a_name_with_a_star_as_it_is(self):
        self.write("odd.safetensors", {"a*": ("I32", [1], [1]), "ab": ("I32", [1], [2])})
        self.assertEqual(self.ballast("cat", "odd.safetensors", "a*").out, "[1]\n")

    def test_writes_several_tensors_as_an_archive(self):
        done = self.ballast("cat", TINY, "*norm*", "model.norm.weight", "*ids", "-o", "x.npz")
        self.assertIn("wrote x.npz: 4 tensors, NumPy", done.err)
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no NumPy")
        with numpy.load(self.folder / "x.npz") as arrays:
            self.assertEqual(sorted(arrays), ["model.layers.0.norm.weight", "model.layers.1.norm.weight", "model.norm.weight", "model.position_ids"])
            self.assertEqual(arrays["model.position_ids"].tolist(), [list(range(24))])
        self.ballast("cat", TINY, "*mlp*", "-o", "y.npz", "--dtype", "F32", "--slice", ":2,0")
        with numpy.load(self.folder / "y.npz") as arrays:
            self.assertEqual({array.shape for array in arrays.values()}, {(2,)})

    def test_refuses_what_an_archive_cannot_hold(self):
        self.refused("cat", TINY, "*mlp*", "-o", "x.npz", code=UNSUPPORTED, says="has dtype BF16", hint="--dtype F32")
        self.write("evil.safetensors", {"../x": ("I32", [1], [1])})
        self.refused("cat", "evil.safetensors", "-o", "x.npz", code=UNSUPPORTED, says="out of its folder")
        self.write("x.npz", b"mine")
        self.refused("cat", TINY, "*norm*", "-o", "x.npz", code=USAGE, says="already exists", hint="--force")
        self.assertEqual((self.folder / "x.npz").read_bytes(), b"mine")


class Metadata(TestCase):
    def setUp(self):
        super().setUp()
        self.write("k.gguf", (VECTORS / "gguf" / "kv_all.gguf").read_bytes())
        self.write("t.safetensors", {"w": ("F32", [1], [1])}, {"format": "pt"})

    def value(self, file, key):
        return self.ballast("meta", "get", file, key, "--json").json()["metadata"][key]

    def test_takes_the_text_of_a_file(self):
        text = "{{ x }}\n= é\n"
        self.write("t.jinja", text.encode())
        for file in ("k.gguf", "t.safetensors"):
            self.ballast("meta", "set", file, "card=@t.jinja", "author=@@me")
            self.assertEqual(self.value(file, "card"), text)
            self.assertEqual(self.value(file, "author"), "@me")
        self.ballast("convert", "t.safetensors", "u.safetensors", "--metadata", "more=@t.jinja")
        self.assertEqual(self.value("u.safetensors", "more"), text)

    def test_refuses_files_that_are_no_text(self):
        self.write("bad", b"a\xff")
        with open(self.folder / "huge", "wb") as file:
            file.truncate(1 << 30)
        os.mkfifo(self.folder / "pipe")
        self.refused("meta", "set", "k.gguf", "x=@bad", code=MALFORMED, says="bad: the text is not UTF-8 (byte 1)")
        self.refused("meta", "set", "k.gguf", "x=@huge", code=MALFORMED, says="huge: ")
        self.refused("meta", "set", "k.gguf", "x=@pipe", code=USAGE, says="pipe: ")
        self.refused("meta", "set", "k.gguf", "x=@nowhere", code=IO, says="nowhere: ", hint="x=@@nowhere")

    def test_sets_arrays_in_a_gguf(self):
        self.ballast("meta", "set", "k.gguf", "a:[str]=x,y", 'b=["p", "q"]', "c:[u8]=1,2", "d=[true]")
        self.assertEqual(self.value("k.gguf", "a"), {"type": "string", "count": 2, "items": ["x", "y"]})
        self.assertEqual(self.value("k.gguf", "b"), {"type": "string", "count": 2, "items": ["p", "q"]})
        self.assertEqual(self.value("k.gguf", "c"), {"type": "u8", "count": 2, "items": [1, 2]})
        self.assertEqual(self.value("k.gguf", "d"), {"type": "bool", "count": 1, "items": [True]})
        self.ballast("meta", "set", "k.gguf", "c=[7]")
        self.assertEqual(self.value("k.gguf", "c")["type"], "u8")
        self.refused("meta", "set", "k.gguf", "c=[256]", code=USAGE, says="is no array of u8", hint="KEY:[TYPE]=a,b,c")

    def test_is_text_in_safetensors(self):
        self.ballast("meta", "set", "t.safetensors", 'l=["a"]', "w:string=5", "u:v=1")
        self.assertEqual([self.value("t.safetensors", key) for key in ("l", "w", "u:v")], ['["a"]', "5", "1"])
        self.refused("meta", "set", "t.safetensors", "n:u32=3", code=USAGE, says='"n" cannot be u32', hint="n=VALUE")

    def test_help_explains_types(self):
        text = self.ballast("meta", "set", "--help").out
        for word in ("KEY:TYPE=VALUE", "KEY:[TYPE]=a,b,c", "@FILE", "u8 i8"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
