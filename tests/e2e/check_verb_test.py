"""check: one verb that says whether models are fit to ship, and why not."""

import json
import math
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import unittest

from support import *

LLAMA = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"
MIXTRAL = next(path for path in (VECTORS / "hf2gguf" / "mixtral").iterdir() if path.is_dir())


def read_tensors(path):
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + length])
    metadata = head.pop("__metadata__", {})
    body = data[8 + length:]
    return {name: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])]) for name, one in head.items()}, metadata


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


class CheckCase(TestCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(LLAMA, self.model)
        for path in [self.model, *self.model.iterdir()]:
            path.chmod(0o755)
        (self.model / "LICENSE").write_text("Do what you like.\n")

    def change(self, tensors=(), remove=(), metadata=None, **config):
        old, said = read_tensors(self.model / "model.safetensors")
        for name in remove:
            del old[name]
        old.update(tensors)
        (self.model / "model.safetensors").write_bytes(safetensors(old, said if metadata is None else metadata))
        path = self.model / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))

    def findings(self, *options, code, target=None):
        report = self.ballast("check", target or self.model, "--json", *options, code=code).json()
        self.assertEqual(report["schema"], "ballast.check/1")
        self.assertEqual(report["passes"], code == OK)
        return [(one["rule"], one["level"], one["tensor"]) for target in report["targets"] for one in target["findings"]]


class Check(CheckCase):
    def test_a_sound_model_passes_without_a_word(self):
        self.assertEqual(self.findings(code=OK), [])
        result = self.ballast("check", self.model)
        self.assertRegex(result.out, r"^ok +.*model: 20 tensors, ")
        self.assertEqual(result.err, "1 target passes\n")

    def test_every_reference_model_passes(self):
        for case in sorted((VECTORS / "hf2gguf").glob("*/*/model.safetensors")):
            with self.subTest(case.parent.name):
                report = self.ballast("check", case.parent, "--json").json()
                rules = {finding["rule"] for finding in report["targets"][0]["findings"]}
                self.assertLessEqual(rules, {"licence", "unknown-code"})

    def test_a_missing_tensor_is_named_as_the_checkpoint_would_have_it(self):
        self.change(remove=["model.layers.1.mlp.up_proj.weight"], num_hidden_layers=2)
        self.assertEqual(self.findings(code=NO), [("missing", "fail", "model.layers.1.mlp.up_proj.weight")])
        old, _ = read_tensors(self.model / "model.safetensors")
        more = {name.replace("layers.0.", f"layers.{i}."): value for name, value in old.items() if "layers.0." in name for i in (2, 3)}
        self.change(more, num_hidden_layers=4)
        copies = [f"model.layers.2.{part}_proj.weight" for part in (
            "mlp.down", "mlp.gate", "mlp.up", "self_attn.o", "self_attn.q", "self_attn.k", "self_attn.v")]
        self.assertEqual(self.findings(code=NO), [("missing", "fail", "model.layers.1.mlp.up_proj.weight")] + [("duplicate", "warn", name) for name in copies])

    def test_what_no_model_of_the_architecture_is_without(self):
        """Of an architecture that a table knows, each of these is missing by name, whatever else is there."""
        tensors, _ = read_tensors(self.model / "model.safetensors")
        mlp = [f"model.layers.1.mlp.{part}_proj.weight" for part in ("gate", "up", "down")]
        cases = {"the last norm": (["model.norm.weight"], ["model.norm.weight"]),
                 "all of one kind": ([name for name in tensors if "q_proj" in name], ["model.layers.0.self_attn.q_proj.weight"]),
                 "a part of a layer": (mlp, mlp)}
        for case, (remove, named) in cases.items():
            with self.subTest(case):
                self.change(remove=remove)
                self.assertEqual(self.findings(code=NO), [("missing", "fail", name) for name in named])
                self.change({name: tensors[name] for name in remove})
        self.change(remove=[name for name in tensors if "embed_tokens" not in name])
        self.assertEqual(self.findings(code=NO), [("missing", "fail", None), ("missing", "fail", "model.norm.weight")])
        self.assertIn("none of the 2 layers that config.json says is there", self.ballast("check", self.model, code=NO).out)
        self.change({"a": ("F32", [1], pack("F32", [1.0]))}, remove=["model.embed_tokens.weight"])
        self.assertIn(("missing", "fail", "model.embed_tokens.weight"), self.findings(code=NO))

    def test_numbers_of_layers_that_no_model_has(self):
        for layers, says in {0: "there is a layer 1, and by config.json there are 0", 100_000: "99998 of 100000 layers are not there"}.items():
            self.change(num_hidden_layers=layers)
            self.assertIn(says, self.ballast("check", self.model, code=NO).out)

    def test_a_head_that_transformers_would_drop(self):
        tensors, _ = read_tensors(self.model / "model.safetensors")
        dtype, shape, data = tensors["model.embed_tokens.weight"]
        self.change({"lm_head.weight": (dtype, shape, data)}, tie_word_embeddings=True)
        self.assertEqual(self.findings(code=OK), [("duplicate", "warn", "lm_head.weight")])
        self.change({"lm_head.weight": (dtype, shape, data[2:] + data[:2])})
        self.assertEqual(self.findings(code=NO), [("contradiction", "fail", "lm_head.weight")])
        self.assertIn("lm_head.weight is stored all the same", self.ballast("info", self.model).out)

    def test_a_gguf_is_compared_with_its_metadata(self):
        self.ballast("convert", self.model, "whole.gguf")
        self.assertEqual(self.findings(code=OK, target="whole.gguf"), [])
        cases = {"*blk.1.*": [("missing", "fail", None)], "*attn_q.weight": [("missing", "fail", "blk.0.attn_q.weight")],
                 "output_norm.weight": [("missing", "fail", "output_norm.weight")]}
        for left_out, findings in cases.items():
            with self.subTest(left_out):
                self.ballast("convert", "whole.gguf", "part.gguf", "--exclude", left_out, "--force")
                self.assertEqual(self.findings(code=NO, target="part.gguf"), findings)
        self.ballast("meta", "set", "whole.gguf", "llama.feed_forward_length=64")
        self.assertEqual({finding[:2] for finding in self.findings(code=NO, target="whole.gguf")}, {("contradiction", "fail")})

    def test_every_reference_model_passes_as_a_gguf(self):
        for case in sorted((VECTORS / "hf2gguf").glob("*/*/model.safetensors")):
            with self.subTest(case.parent.name):
                self.ballast("convert", case.parent, "model.gguf", "--force")
                self.assertLessEqual({finding[0] for finding in self.findings(code=OK, target="model.gguf")}, {"duplicate"})

    def test_quantized_weights_are_the_weights_that_they_stand_for(self):
        for scheme in ("nf4", "fp8-block"):
            with self.subTest(scheme):
                folder = self.folder / scheme
                self.ballast("convert", self.model, f"{scheme}/", "--quantize", scheme)
                self.assertEqual(self.findings(code=OK, target=folder), [])
                part = next(name for name in read_tensors(folder / "model.safetensors")[0] if "1.mlp.up_proj.weight" in name)
                self.ballast("convert", f"{scheme}/", f"{scheme}-part/", "--exclude", part + "*")
                self.assertIn(("missing", "fail", "model.layers.1.mlp.up_proj.weight"), self.findings(code=NO, target=f"{scheme}-part"))

    def test_quantized_weights_of_an_unknown_kind_are_not_called_missing(self):
        tensors, _ = read_tensors(self.model / "model.safetensors")
        matrices = [name for name in tensors if name.endswith("_proj.weight")]
        self.change({name.replace(".weight", ".q_weight"): ("I32", [1], bytes(range(4))) for name in matrices}, remove=matrices,
                    quantization_config={"quant_method": "exl2", "bits": 4})
        self.assertEqual(self.findings(code=OK), [("not-checked", "warn", None)])

    def test_what_was_not_compared_is_said(self):
        self.change(architectures=["MyOwnForCausalLM"], model_type="my_own")
        self.assertEqual(self.findings(code=OK), [("not-checked", "warn", None)])
        self.assertIn('config.json was not compared with the tensors: there is no table of "MyOwnForCausalLM"', self.ballast("check", self.model).out)
        (self.model / "config.json").write_text("{}")
        self.assertIn("it does not say which model it is of", self.ballast("check", self.model).out)

    def test_files_beside_config_json_that_are_not_the_whole_model(self):
        self.write("model/optimizer.safetensors", {"step": ("F32", [1], [1.0])})
        self.assertEqual(self.findings(code=OK, target="model/optimizer.safetensors"), [("not-checked", "warn", None)])
        self.ballast("convert", self.model, "shards/", "--max-shard-size", "100KB")
        shard = next((self.folder / "shards").glob("*00001-of*.safetensors"))
        self.assertEqual(self.findings(code=OK, target=shard), [("not-checked", "warn", None)])

    def test_values_without_an_order_are_said_to_be_unchecked(self):
        numbers = pack("F32", [1.0, math.nan])
        self.write("c.safetensors", safetensors({"a": ("C64", [1], numbers), "b": ("C64", [1], numbers)}))
        self.assertEqual(self.findings(code=OK, target="c.safetensors"), [("not-checked", "warn", "a")])
        self.assertIn("was not looked at for NaN and infinities, nor was another one", self.ballast("check", "c.safetensors").out)

    def test_an_adapter_against_its_configuration(self):
        adapter = self.folder / "adapter"
        adapter.mkdir()
        half = lambda rows, columns: ("F32", [rows, columns], pack("F32", [0.5 + i / 7 for i in range(rows * columns)]))
        module = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        (adapter / "adapter_model.safetensors").write_bytes(safetensors({module + "A.weight": half(4, 8), module + "B.weight": half(8, 4)}, {"format": "pt"}))
        config = {"peft_type": "LORA", "r": 4, "lora_alpha": 16, "target_modules": ["q_proj"]}
        (adapter / "adapter_config.json").write_text(json.dumps(config))
        (adapter / "LICENSE").write_text("Do what you like.\n")
        self.assertEqual(self.findings(code=OK, target=adapter), [])
        (adapter / "adapter_config.json").write_text(json.dumps(config | {"r": 64}))
        self.assertEqual(self.findings(code=NO, target=adapter), [("contradiction", "fail", None)])
        self.assertIn("the configuration says rank 64", self.ballast("check", adapter, code=NO).out)

    def test_damage_is_said_once(self):
        data = safetensors({"a": ("F32", [4], pack("F32", [1.0] * 4))})
        self.write("cut.safetensors", data[:-8])
        self.assertEqual(self.findings(code=NO, target="cut.safetensors"), [("malformed", "fail", None)])
        (self.model / "config.json").write_text("{")
        self.assertEqual([finding[0] for finding in self.findings(code=OK)], ["configuration"])

    def test_a_shard_that_never_arrived(self):
        self.write("m/model-00001-of-00002.safetensors", {"a": ("F32", [1], [1.0])})
        (self.folder / "m/model.safetensors.index.json").write_text(json.dumps(
            {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}}))
        result = self.ballast("check", "m", code=NO)
        self.assertIn('1 of 2 shards is not there, "model-00002-of-00002.safetensors", with 2 of 3 tensors', result.out)
        self.refused("ls", "m", code=IO, says="1 of 2 shards is not there", hint="interrupted")

    def test_missing_layers_and_layers_too_many(self):
        self.change(num_hidden_layers=5)
        self.assertEqual(self.findings(code=NO), [("missing", "fail", None)])
        self.change(num_hidden_layers=1)
        self.assertEqual(self.findings(code=NO), [("contradiction", "fail", None)])

    def test_shapes_that_contradict_the_configuration(self):
        self.change(vocab_size=400)
        self.assertEqual(self.findings(code=NO), [("contradiction", "fail", "model.embed_tokens.weight")])
        self.change(vocab_size=326, intermediate_size=200)
        self.assertEqual({finding[2] for finding in self.findings(code=NO)},
                         {f"model.layers.{i}.mlp.{part}_proj.weight" for i in (0, 1) for part in ("up", "gate", "down")})

    def test_a_head_that_is_missing(self):
        self.change(tie_word_embeddings=False)
        self.assertEqual(self.findings(code=NO), [("missing", "fail", None)])

    def test_an_expert_that_is_missing(self):
        shutil.rmtree(self.model)
        shutil.copytree(MIXTRAL, self.model)
        for path in [self.model, *self.model.iterdir()]:
            path.chmod(0o755)
        tensors, _ = read_tensors(self.model / "model.safetensors")
        self.change(remove=[next(name for name in tensors if ".experts.1." in name)])
        self.assertIn(("missing", "fail", None), self.findings(code=NO))

    def test_tensors_that_are_left_over(self):
        self.change({"model.extra.weight": ("F32", [2], pack("F32", [1.0, 2.0]))})
        self.assertEqual(self.findings(code=OK), [("left-over", "warn", "model.extra.weight")])

    def test_values_that_break_a_model(self):
        bad = pack("F32", [1.0, math.nan, math.inf, 2.0])
        self.change({"model.norm.weight": ("F32", [4], bad)}, hidden_size=64)
        rules = [finding[0] for finding in self.findings(code=NO)]
        self.assertIn("nan", rules)
        self.assertIn("infinity", rules)
        self.assertIn("contradiction", rules)

    def test_what_transformers_and_lawyers_need(self):
        self.change(metadata={"format": "np"})
        self.assertEqual(self.findings(code=OK), [("format", "warn", None)])
        self.change(metadata={})
        (self.model / "LICENSE").unlink()
        (self.model / "README.md").write_text("# A model\n")
        self.assertEqual(self.findings(code=OK), [("format", "warn", None), ("licence", "warn", None)])
        (self.model / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# A model\n")
        self.assertEqual(self.findings(code=OK), [("format", "warn", None)])

    def test_a_matrix_that_is_stored_again(self):
        old, _ = read_tensors(self.model / "model.safetensors")
        same = old["model.embed_tokens.weight"]
        says = []
        for copies in range(1, 4):
            self.change({f"model.copy{i}.weight": same for i in range(copies)})
            report = self.ballast("check", self.model, "--json").json()
            says += [one["what"] for one in report["targets"][0]["findings"] if one["rule"] == "duplicate"]
        twin = 'has the bytes of "model.embed_tokens.weight"'
        self.assertEqual(says, [twin, twin + ", and so has another one", twin + ", and so have 2 others"])

    def test_a_pickle_that_runs_code(self):
        (self.folder / "evil.pkl").write_bytes(pickle.dumps({"a": Evil()}))
        self.assertIn(("unsafe", "fail", None), self.findings(code=NO, target=self.folder / "evil.pkl"))

    def test_what_cannot_be_opened_fails_and_the_other_targets_are_checked(self):
        (self.folder / "cut.safetensors").write_bytes(TINY.read_bytes()[:500])
        os.mkfifo(self.folder / "pipe")
        report = self.ballast("check", TINY, "cut.safetensors", "none.safetensors", "pipe", "--json", code=NO).json()
        self.assertEqual([one["passes"] for one in report["targets"]], [True, False, False, False])
        self.assertEqual([one["opened"] for one in report["targets"]], [True, False, False, False])
        self.assertEqual([[finding["rule"] for finding in one["findings"]] for one in report["targets"][1:]],
                         [["malformed"], ["missing"], ["malformed"]])
        self.assertIn("named pipe", report["targets"][3]["findings"][0]["what"])
        self.refused("check", code=USAGE, says="check what?")
        self.refused("check", "-", code=USAGE, says="standard input cannot be checked")

    def test_an_index_that_names_what_is_not_there(self):
        folder = self.folder / "shards"
        folder.mkdir()
        (folder / "a.safetensors").write_bytes(TINY.read_bytes())
        (folder / "model.safetensors.index.json").write_text('{"weight_map": {"model.norm.weight": "a.safetensors", "x": "b.safetensors"}}')
        self.assertIn(("missing", "fail", None), self.findings(code=NO, target=folder))

    def test_a_folder_of_checkpoints_is_each_of_them(self):
        folder = self.folder / "several"
        folder.mkdir()
        for name in ("a.safetensors", "b.safetensors"):
            (folder / name).write_bytes(TINY.read_bytes())
        report = self.ballast("check", folder, TINY, "--json").json()
        self.assertEqual([pathlib.Path(one["target"]).name for one in report["targets"]], ["several", "a.safetensors", "b.safetensors", "tiny.safetensors"])
        self.assertEqual([one["checkpoints"] for one in report["targets"]], [2, 0, 0, 0])

    def test_a_folder_of_checkpoints_is_scanned_as_a_whole(self):
        folder = self.folder / "several"
        folder.mkdir()
        for name in ("a.safetensors", "b.safetensors"):
            (folder / name).write_bytes(TINY.read_bytes())
        (folder / "evil.pkl").write_bytes(pickle.dumps({"a": Evil()}))
        self.assertIn(("unsafe", "fail", None), self.findings(code=NO, target=folder))

    def test_a_folder_of_folders_is_each_model_in_it(self):
        shutil.copytree(self.model, self.folder / "models/organisation/one")
        shutil.copytree(self.model, self.folder / "models/two")
        report = self.ballast("check", "models", "--json").json()
        self.assertEqual([one["target"] for one in report["targets"]], ["models", "models/organisation/one", "models/two"])
        (self.folder / "models/broken").mkdir()
        (self.folder / "models/broken/model_index.json").write_text("{")
        report = self.ballast("check", "models", "--json", code=NO).json()
        self.assertEqual([one["target"] for one in report["targets"] if not one["passes"]], ["models/broken"])
        (self.folder / "models/evil.pkl").write_bytes(pickle.dumps({"a": Evil()}))
        self.assertIn(("unsafe", "fail", None), self.findings(code=NO, target="models"))

    def test_a_checkpoint_beside_the_opened_one_is_said_to_be_unchecked(self):
        broken = {"w": ("F32", [2], pack("F32", [1.0, math.nan]))}
        (self.model / "model.fp16.safetensors").write_bytes(safetensors(broken))
        self.assertEqual(self.findings(code=OK), [("not-checked", "warn", None)])
        self.assertIn("1 other safetensors files are beside it", self.ballast("check", self.model).out)
        (self.model / "model.fp16.safetensors").rename(self.model / "model.npz")
        (self.model / "checkpoint-500").mkdir()
        (self.model / "checkpoint-500/model.safetensors").write_bytes(safetensors(broken))
        self.assertIn('were only scanned: "checkpoint-500"', self.ballast("check", self.model).out)

    def test_a_pipeline_without_one_of_its_models(self):
        pipe = self.folder / "pipe"
        pipe.mkdir()
        (pipe / "model_index.json").write_text(json.dumps({
            "_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"],
            "scheduler": ["diffusers", "DDIMScheduler"], "tokenizer": ["transformers", "CLIPTokenizer"], "safety_checker": [None, None]}))
        self.write("pipe/vae/diffusion_pytorch_model.safetensors", {"w": ("F32", [1], [1.0])})
        findings = self.findings(code=NO, target=pipe)
        self.assertIn(("missing", "fail", None), findings)
        self.assertIn("parts without weights: \"unet\"", self.ballast("check", pipe, code=NO).out)
        self.assertIn("parts without weights: \"unet\"", self.ballast("verify", pipe, code=NO).out)
        self.assertIn("parts without weights: \"unet\"", self.ballast("info", pipe).out)
        self.write("pipe/unet/diffusion_pytorch_model.safetensors", {"w": ("F32", [1], [1.0])})
        self.assertNotIn("missing", [finding[0] for finding in self.findings(code=OK, target=pipe)])

    def test_a_repository_in_the_cache_of_the_hub_is_its_snapshot(self):
        repository = self.folder / "models--org--name"
        for folder in ("blobs", "refs", "snapshots/abc"):
            (repository / folder).mkdir(parents=True)
        (repository / "refs/main").write_text("abc")
        for file in self.model.iterdir():
            shutil.copy(file, repository / "blobs" / f"{file.name}-digest")
            (repository / "snapshots/abc" / file.name).symlink_to(f"../../blobs/{file.name}-digest")
        self.assertEqual(self.findings(code=OK, target=repository), [])
        self.ballast("verify", repository)
        scanned = self.ballast("scan", repository, "--json").json()["files"]
        self.assertEqual([one["file"] for one in scanned if "/blobs/" in one["file"]], [])


class Policy(CheckCase):
    def policy(self, text):
        (self.folder / "policy").write_text(text)
        return "--policy", self.folder / "policy"

    def test_says_what_fails(self):
        self.change(metadata={})
        self.assertEqual(self.findings(*self.policy("fail format # it must be loaded\n"), code=NO), [("format", "fail", None)])
        self.assertEqual(self.findings(*self.policy("ignore format"), code=OK), [])
        self.assertEqual(self.findings(*self.policy("fail all\nwarn format, nan"), code=OK), [("format", "warn", None)])

    def test_says_which_dtypes_weights_have(self):
        self.assertEqual(self.findings(*self.policy("dtypes F32 F16\nfail dtype"), code=NO), [("dtype", "fail", "model.embed_tokens.weight")])
        self.assertEqual(self.findings(*self.policy("dtypes BF16\nfail dtype"), code=OK), [])

    def test_never_lets_through_what_was_not_looked_at(self):
        (self.folder / "cut.safetensors").write_bytes(TINY.read_bytes()[:500])
        for text in ("ignore all", "warn all", "ignore malformed"):
            self.assertEqual(self.findings(*self.policy(text), code=NO, target="cut.safetensors")[0], ("malformed", "fail", None))
            self.assertEqual(self.findings(*self.policy(text), code=NO, target="nowhere")[0], ("missing", "fail", None))

    def test_a_later_line_of_dtypes_replaces_an_earlier_one(self):
        self.assertEqual(self.findings(*self.policy("dtypes BF16\ndtypes F32\nfail dtype"), code=NO), [("dtype", "fail", "model.embed_tokens.weight")])

    def test_says_which_code_is_trusted(self):
        (self.folder / "a.pkl").write_bytes(b"cmymodule\nThing\n)R.")
        self.assertEqual(self.findings(code=NO, target=self.folder / "a.pkl"), [("missing", "fail", None), ("unknown-code", "warn", None)])
        self.assertEqual(self.findings(*self.policy("mymodule.*\n"), code=NO, target=self.folder / "a.pkl"), [("missing", "fail", None)])

    def test_a_line_that_makes_no_sense_is_refused_by_its_number(self):
        for text, says in {"fail": "line 1 of the policy: which rule?", "\nfail nothing": 'line 2 of the policy: there is no rule "nothing"',
                           "dtypes F31": 'there is no dtype "F31"', "deny all": '"deny" is no word of a policy',
                           "licence": '"licence" is no word of a policy', "dtypes": "which dtypes?"}.items():
            self.refused("check", self.model, *self.policy(text), code=USAGE, says=says, hint="fail RULE")
        self.refused("check", self.model, "--policy", self.folder / "none", code=IO, says="cannot open the policy")
        for verb in ("check", "scan"):
            self.refused(verb, self.model, "--policy", self.folder, code=USAGE, says="the policy is a folder")

    def test_the_rules_are_shown(self):
        rules = {line.split("\t")[0]: line.split("\t")[1] for line in self.ballast("check", "--rules").lines()}
        self.assertEqual({rule for rule, level in rules.items() if level == "fail"},
                         {"unsafe", "malformed", "missing", "contradiction", "nan", "infinity"})


class Documents(CheckCase):
    def test_sarif_has_every_finding(self):
        self.change(vocab_size=400, metadata={})
        run = self.ballast("check", self.model, "--sarif", code=NO).json()["runs"][0]
        self.assertEqual([(one["ruleId"], one["level"]) for one in run["results"]], [("contradiction", "error"), ("format", "warning")])
        self.assertIn("model.embed_tokens.weight has the shape", run["results"][0]["message"]["text"])
        self.assertEqual(len(run["tool"]["driver"]["rules"]), len(self.ballast("check", "--rules").lines()))

    def test_sarif_has_its_files_as_references(self):
        (self.folder / "50% a:b.safetensors").write_bytes(b"nothing")
        run = self.ballast("check", "50% a:b.safetensors", "--sarif", code=NO).json()["runs"][0]
        self.assertEqual({one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}, {"50%25%20a%3Ab.safetensors"})
        for verb in ("check", "scan"):
            self.refused(verb, self.model, "--sarif", "--json", code=USAGE, says="--sarif and --json are two documents")

    def test_text_names_the_tensor_and_the_rule(self):
        self.change(vocab_size=400)
        result = self.ballast("check", self.model, code=NO)
        self.assertRegex(result.out, r"(?m)^FAIL +.*model: 20 tensors, .*, 1 failure$")
        self.assertRegex(result.out, r"(?m)^  fail\tcontradiction\tmodel.embed_tokens.weight\thas the shape \[326, 64\], and by config.json it would have \[400, 64\]$")
        self.assertEqual(result.err, "1 of 1 target fails\n")


CI = SOURCE / "examples" / "ci"


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class ContinuousIntegration(CheckCase):
    """The hook and the workflow of examples/ci do what they say, in a repository with awkward names."""

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        bin = self.folder / "bin"
        bin.mkdir()
        (bin / "ballast").symlink_to(COMMAND)
        self.environment = environment() | {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        self.run_in("git", "init", "-q")
        self.run_in("git", "config", "user.email", "a@example.org")
        self.run_in("git", "config", "user.name", "A")

    def run_in(self, *words, code=0):
        done = subprocess.run(words, cwd=self.repository, env=self.environment, capture_output=True, timeout=60)
        self.assertEqual(done.returncode != 0, code != 0, done)
        return done

    def put(self, name, tensors):
        (self.repository / name).write_bytes(safetensors(tensors, {"format": "pt"}))
        self.run_in("git", "add", "--", name)

    def workflow_step(self, name):
        lines = (CI / "check-models.yml").read_text().splitlines()
        at = lines.index("        run: |", lines.index(f"      - name: {name}")) + 1
        script = []
        while at < len(lines) and (lines[at].startswith(" " * 10) or not lines[at]):
            script.append(lines[at][10:])
            at += 1
        return "\n".join(script)

    SOUND = {"w": ("F32", [2], pack("F32", [1.0, 2.0]))}
    BROKEN = {"w": ("F32", [2], pack("F32", [1.0, math.nan]))}

    def test_the_hook_lets_sound_models_through_and_stops_the_others(self):
        shutil.copy(CI / "pre-commit", self.repository / ".git/hooks/pre-commit")
        self.put("-a b.safetensors", self.SOUND)
        self.run_in("git", "commit", "-q", "-m", "sound")
        self.put("bad\n.safetensors", self.BROKEN)
        stopped = self.run_in("git", "commit", "-q", "-m", "broken", code=1)
        self.assertIn("1 of 2 values is NaN", (stopped.stdout + stopped.stderr).decode())
        (self.repository / ".ballast-policy").write_text("warn nan\n")
        self.run_in("git", "commit", "-q", "-m", "allowed")
        (self.repository / "notes.txt").write_text("no model")
        self.run_in("git", "add", "notes.txt")
        self.run_in("git", "commit", "-q", "-m", "nothing to check")

    def test_the_hook_checks_what_is_committed(self):
        shutil.copy(CI / "pre-commit", self.repository / ".git/hooks/pre-commit")
        self.put("a.NPZ.safetensors", self.SOUND)
        self.put("b*.safetensors", self.BROKEN)
        (self.repository / "b*.safetensors").write_bytes(safetensors(self.SOUND))
        stopped = self.run_in("git", "commit", "-q", "-m", "mended in the work tree only", code=1)
        self.assertIn("b*.safetensors", stopped.stderr.decode())
        self.run_in("git", "add", "--", "b*.safetensors")
        self.run_in("git", "commit", "-q", "-m", "mended")
        (self.repository / "bad.PKL").write_bytes(pickle.dumps({"a": Evil()}))
        self.run_in("git", "add", "bad.PKL")
        self.run_in("git", "commit", "-q", "-m", "another ending", code=1)

    def test_the_hook_checks_the_folder_of_a_model_as_a_whole(self):
        shutil.copy(CI / "pre-commit", self.repository / ".git/hooks/pre-commit")
        self.change(remove=["model.norm.weight"], metadata={})
        shutil.copytree(self.model, self.repository / "a model")
        self.run_in("git", "add", "-A")
        stopped = self.run_in("git", "commit", "-q", "-m", "without a norm", code=1)
        said = (stopped.stdout + stopped.stderr).decode()
        self.assertIn("transformers refuses such a file", said)
        self.assertIn("model.norm.weight", said)

    def test_the_workflow_writes_nothing_without_models(self):
        (self.repository / "notes.txt").write_text("no model")
        self.run_in("git", "add", "notes.txt")
        self.run_in("bash", "-e", "-o", "pipefail", "-c", self.workflow_step("Check"))
        self.assertFalse((self.repository / "ballast.sarif").exists())

    def test_the_workflow_writes_what_it_uploads(self):
        check = self.workflow_step("Check")
        self.put("a.safetensors", self.SOUND)
        self.run_in("bash", "-e", "-o", "pipefail", "-c", check)
        self.assertEqual(json.loads((self.repository / "ballast.sarif").read_text())["runs"][0]["results"], [])
        self.put("-b.safetensors", self.BROKEN)
        self.run_in("bash", "-e", "-o", "pipefail", "-c", check, code=1)
        results = json.loads((self.repository / "ballast.sarif").read_text())["runs"][0]["results"]
        self.assertEqual([one["ruleId"] for one in results], ["nan"])
        self.assertEqual(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "./-b.safetensors")


if __name__ == "__main__":
    unittest.main()
