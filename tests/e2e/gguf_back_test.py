"""A GGUF becomes a model's folder again: with its config.json, and the tokenizer's files of the original, the folder
becomes the same GGUF."""

import json
import random
import shutil
import struct
import unittest

from hf2gguf_test import CASES, Gguf, comparable
from support import *

# Architectures whose keys or tensors do not all come out again, and why. So far all do.
LOST = {}


def random_tensor(shape, dtype):
    """Numbers that are the same in F32 and in BF16."""
    count = 1
    for dimension in shape:
        count *= dimension
    numbers = random.Random(str(shape)).choices(range(-100, 100), k=count)
    whole = struct.pack(f"<{count}f", *[number / 128 for number in numbers])
    return dtype, shape, whole if dtype == "F32" else b"".join(whole[i + 2:i + 4] for i in range(0, len(whole), 4))


def with_tensors(shapes):
    return lambda tensors: tensors.update({name: random_tensor(shape, "BF16") for name, shape in shapes.items()})


def with_biases(*modules):
    def change(tensors):
        for name, (dtype, shape, _) in list(tensors.items()):
            if name.removesuffix(".weight").endswith(modules):
                tensors[name.removesuffix("weight") + "bias"] = random_tensor(shape[:1], dtype)
    return change


def without(*parts):
    def change(tensors):
        for name in list(tensors):
            if any(part in name for part in parts):
                del tensors[name]
    return change


def renamed(**pairs):
    def change(tensors):
        for name in list(tensors):
            other = name
            for old, new in pairs.items():
                other = other.replace(old.replace("__", "."), new.replace("__", "."))
            tensors[other] = tensors.pop(name)
    return change


def both(*changes):
    return lambda tensors: [change(tensors) for change in changes]


def block_like_the_last(tensors):
    for name, tensor in list(tensors.items()):
        if "layers.1." in name:
            tensors[name.replace("layers.1.", "layers.2.")] = tensor


def yarn(**more):
    return {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768} | more}


def llama3(factor, low, high, length):
    return {"rope_scaling": {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                             "original_max_position_embeddings": length}}


def of_class(name, model_type=None, **more):
    return {"architectures": [name]} | ({"model_type": model_type} if model_type else {}) | more


LINEAR = {"rope_scaling": {"type": "linear", "factor": 2.5}}
LONG = {"max_position_embeddings": 131072, "rope_scaling": {
    "type": "longrope", "short_factor": [1.05 + 0.1 * i for i in range(8)], "long_factor": [1 + 2.3 * i for i in range(8)]}}
MISTRAL = {"head_dim": 32, "hidden_size": 32, "intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "mistral",
           "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 1e9,
           "sliding_window": None, "vocab_size": 330}
GONE = None  # a value that config.json does not have
HEADS = ("q_proj", "k_proj", "v_proj", "o_proj")
HEAD_OF_ROBERTA = {"classifier.dense.weight": [32, 32], "classifier.dense.bias": [32], "classifier.out_proj.weight": [3, 32],
                   "classifier.out_proj.bias": [3]}

# A case, what is changed in its config.json, and what is changed in its tensors.
VARIANTS = [
    ("llama", LINEAR),
    ("llama", yarn(attention_factor=0.9, beta_fast=16)),
    ("llama", {"attention_bias": True}, with_biases(*HEADS)),
    ("llama", {"rms_norm_eps": 3.3e-6, "rope_theta": 12345.678}),
    ("llama", of_class("LlamaModel"), without("lm_head")),
    ("llama", of_class("ArceeForCausalLM", "arcee"), without("gate_proj")),
    ("llama3", llama3(8.0, 1.0, 4.0, 8192)),
    ("llama3", llama3(4.0, 2.0, 3.0, 1000)),
    ("llama3", llama3(10.0, 0.5, 7.0, 32768) | {"rope_theta": 1e6}),
    ("llama3", llama3(40.0, 1.5, 4.0, 40) | {"rope_theta": 100.0}),
    ("mistral", {"rms_norm_eps": 1e-6}),
    ("mistral_nemo", LINEAR),
    ("mixtral", {"head_dim": 16}),
    ("ministral3", of_class("Mistral3ForConditionalGeneration", "mistral3", rope_parameters=GONE, text_config=MISTRAL),
     renamed(model__="language_model.model.")),
    ("qwen2", yarn()),
    ("qwen2", of_class("Qwen2Model", is_causal=False)),
    ("qwen2", of_class("SeedOssForCausalLM", "seed_oss", head_dim=16, attention_bias=True)),
    ("qwen3", yarn()),
    ("qwen3next", {}, without("mtp.")),
    ("qwen3next", {"full_attention_interval": GONE}),
    ("gemma2", {"attn_logit_softcapping": 40.0}),
    ("gemma3", {"final_logit_softcapping": 30.0, "sliding_window_pattern": 1}),
    ("gemma3", of_class("Gemma3TextModel", use_bidirectional_attention=True, rope_local_base_freq=20000.0)),
    ("phi2", {"partial_rotary_factor": 0.4}),
    ("phi3", LONG),
    ("phi4", {"partial_rotary_factor": 0.75}),
    ("olmo", {"clip_qkv": 8.0} | LINEAR),
    ("olmo2", of_class("Olmo3ForCausalLM", "olmo3", sliding_window=4096, layer_types=["full_attention", "sliding_attention"])),
    ("olmo2", of_class("Olmo3ForCausalLM", "olmo3", sliding_window=64) | yarn(attention_factor=1.2)),
    ("deepseek2", of_class("DeepseekV3ForCausalLM", "deepseek_v3", scoring_func="sigmoid", norm_topk_prob=True,
                           routed_scaling_factor=2.5, n_group=2, topk_group=1),
     with_tensors({"model.layers.1.mlp.gate.e_score_correction_bias": [4]})),
    ("deepseek2", {"rope_scaling": GONE, "norm_topk_prob": True}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2},
     both(without("input_layernorm", "query_key_value"),
          with_tensors({f"transformer.h.{i}.{norm}.{part}": [64] for i in (0, 1) for norm in ("ln_attn", "ln_mlp")
                        for part in ("weight", "bias")}),
          with_tensors({f"transformer.h.{i}.self_attention.query_key_value.weight": [128, 64] for i in (0, 1)}))),
    ("glm4", {"partial_rotary_factor": 1.0}),
    ("glm4moe", {"num_nextn_predict_layers": 1},
     both(block_like_the_last, with_tensors({"model.layers.2.eh_proj.weight": [32, 64], "model.layers.2.enorm.weight": [32],
                                             "model.layers.2.hnorm.weight": [32],
                                             "model.layers.2.shared_head.norm.weight": [32]}))),
    ("gptneox", {"rotary_pct": 0.3, "use_parallel_residual": False}),
    ("stablelm", {"use_parallel_residual": True, "partial_rotary_factor": 0.5}),
    ("cohere2", {"rotary_pct": 0.5, "sliding_window": 128}),
    ("commandr", {"model_max_length": GONE, "logit_scale": 0.8333}),
    ("granite", {"attention_multiplier": 0.0078125, "embedding_multiplier": 7.3, "residual_multiplier": 0.33}),
    ("minicpm", {"scale_depth": 1.3, "scale_emb": 11.7, "dim_model_base": 300, "rope_theta": 20000.0}),
    ("internlm2", LINEAR),
    ("lfm2", {"full_attn_idxs": GONE, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False,
              "block_ff_dim": GONE, "intermediate_size": 128}),
    ("mamba", of_class("FalconMambaForCausalLM", "falcon_mamba")),
    ("t5", {"feed_forward_proj": "relu"}, both(without("wi_0"), renamed(wi_1="wi"))),
    ("t5", of_class("T5EncoderModel"), without("decoder.", "lm_head")),
    ("nomicbert", {"n_positions": 2048}),
    ("modernbert", {"layer_norm_eps": GONE, "local_attention": 64, "hidden_activation": "silu", "local_rope_theta": 5000.0}),
    ("bert", of_class("BertForSequenceClassification", id2label={"0": "a", "1": "b", "2": "c"}),
     with_tensors({"classifier.weight": [3, 64], "classifier.bias": [3]})),
    ("bert", of_class("DistilBertModel", "distilbert", dim=64, n_heads=4, n_layers=2, hidden_dim=128, hidden_size=GONE,
                      num_attention_heads=GONE, num_hidden_layers=GONE, intermediate_size=GONE),
     both(without("token_type", "pooler"),
          renamed(encoder__="transformer.", attention__self__query="attention.q_lin", attention__self__key="attention.k_lin",
                  attention__self__value="attention.v_lin", attention__output__dense="attention.out_lin",
                  attention__output__LayerNorm="sa_layer_norm", intermediate__dense="ffn.lin1", output__dense="ffn.lin2",
                  output__LayerNorm="output_layer_norm"))),
    ("roberta", of_class("RobertaForSequenceClassification", id2label={"0": "a", "1": "b", "2": "c"}),
     with_tensors(HEAD_OF_ROBERTA)),
    ("xlmroberta", of_class("XLMRobertaForSequenceClassification", id2label={"0": "a", "1": "b", "2": "c"}),
     with_tensors(HEAD_OF_ROBERTA)),
]


def case_folder(name):
    case = CASES / name
    return case / json.loads((case / "case.json").read_text())["folder"]


class GgufBack(TestCase):
    def there_and_back(self, folder):
        """The GGUF of a folder, the folder that it becomes, and the GGUF of that folder."""
        back = self.folder / "back" / folder.name
        shutil.rmtree(back.parent, ignore_errors=True)
        back.mkdir(parents=True)
        self.ballast("convert", folder, "first.gguf", "--type", "f32", "--force")
        self.ballast("convert", "first.gguf", back, "--names", "hf")
        for path in folder.iterdir():
            if path.name not in ("config.json", "model.safetensors"):
                (shutil.copytree if path.is_dir() else shutil.copy)(path, back / path.name)
        self.ballast("convert", back, "second.gguf", "--type", "f32", "--force")
        return Gguf(self.folder / "first.gguf"), Gguf(self.folder / "second.gguf")

    def expect_the_same(self, folder, lost=()):
        first, second = self.there_and_back(folder)
        architecture = first.keys["general.architecture"]
        self.assertEqual(second.keys["general.architecture"], architecture)
        own = [{key: comparable(*value) for key, value in file.keys.items()
                if key.startswith(architecture[1] + ".") and key not in lost} for file in (first, second)]
        self.assertEqual(own[1], own[0])
        self.assertEqual({name: tensor for name, tensor in second.tensors.items() if name not in lost},
                         {name: tensor for name, tensor in first.tensors.items() if name not in lost})

    def test_every_architecture_comes_back(self):
        names = sorted(path.parent.name for path in CASES.glob("*/case.json") if not path.parent.name.startswith("q_"))
        self.assertGreaterEqual(len(names), 49)
        for name in names:
            with self.subTest(case=name):
                self.expect_the_same(case_folder(name), LOST.get(name, ()))

    def test_variants_of_the_architectures_come_back(self):
        for number, (name, changes, *tensor_changes) in enumerate(VARIANTS):
            with self.subTest(case=name, changes=changes):
                folder = self.folder / str(number) / case_folder(name).name
                shutil.copytree(case_folder(name), folder)
                config = json.loads((folder / "config.json").read_text()) | changes
                config = {key: value for key, value in config.items() if key not in changes or changes[key] is not GONE}
                (folder / "config.json").write_text(json.dumps(config))
                tensors, _ = read_safetensors(folder / "model.safetensors")
                for change in tensor_changes:
                    change(tensors)
                (folder / "model.safetensors").write_bytes(safetensors(tensors, {"format": "pt"}))
                self.expect_the_same(folder)

    def llama(self):
        self.ballast("convert", case_folder("llama"), "model.gguf", "--type", "f32")

    def config(self, folder):
        return json.loads((self.folder / folder / "config.json").read_text())

    def test_the_configuration_says_what_the_files_hold(self):
        self.llama()
        result = self.ballast("convert", "model.gguf", "half/", "--names", "hf", "--dtype", "BF16")
        config = self.config("half")
        self.assertEqual([config[key] for key in ("architectures", "model_type", "torch_dtype", "tie_word_embeddings")],
                         [["LlamaForCausalLM"], "llama", "bfloat16", False])
        self.assertIn("the tokenizer is not written back", result.err)
        self.assertIn("wrote 2 files in half", result.err)

    def test_experts_stay_as_they_are_stored_or_are_decoded(self):
        self.ballast("convert", case_folder("gptoss"), "model.gguf", "--type", "f32")
        self.ballast("convert", "model.gguf", "packed/", "--names", "hf")
        self.assertEqual(self.config("packed")["quantization_config"]["quant_method"], "mxfp4")
        self.ballast("convert", "model.gguf", "plain/", "--names", "hf", "--dtype", "BF16")
        self.assertNotIn("quantization_config", self.config("plain"))

    def test_a_configuration_that_is_there_stays_without_force(self):
        self.llama()
        (self.folder / "there").mkdir()
        (self.folder / "there" / "config.json").write_text("mine")
        result = self.ballast("convert", "model.gguf", "there", "--names", "hf", code=USAGE)
        self.assertIn("there/config.json: already exists\n  hint: --force", result.err)
        self.assertEqual(self.names_in_folder(), ["model.gguf", "there/config.json"])
        self.assertEqual((self.folder / "there" / "config.json").read_text(), "mine")
        self.ballast("convert", "model.gguf", "there", "--names", "hf", "--force")
        self.assertEqual(self.config("there")["model_type"], "llama")

    def test_the_plan_shows_the_configuration(self):
        self.llama()
        result = self.ballast("convert", "model.gguf", "new/", "--names", "hf", "--dry-run")
        self.assertIn(["new/config.json", "configuration"], [row[:2] for row in result.rows()])
        files = self.ballast("convert", "model.gguf", "new/", "--names", "hf", "--dry-run", "--json").json()["files"]
        self.assertEqual([(file["path"], file["tensors"]) for file in files[1:]], [("new/config.json", 0)])
        self.assertEqual(self.names_in_folder(), ["model.gguf"])

    def test_shards_have_it_beside_them(self):
        self.llama()
        self.ballast("convert", "model.gguf", "cut/", "--names", "hf", "--max-shard-size", "200kB")
        self.assertIn("cut/config.json", self.names_in_folder())
        self.assertIn("cut/model.safetensors.index.json", self.names_in_folder())
        self.assertEqual(self.config("cut")["torch_dtype"], "float32")

    def test_a_single_file_has_none_beside_it(self):
        self.llama()
        result = self.ballast("convert", "model.gguf", "model.safetensors", "--names", "hf")
        self.assertIn("no config.json is written beside a single file", result.err)
        self.assertEqual(self.names_in_folder(), ["model.gguf", "model.safetensors"])

    def test_an_architecture_that_is_not_known_has_none(self):
        self.llama()
        self.ballast("convert", "model.gguf", "other.gguf", "--metadata", "general.architecture=grok")
        result = self.ballast("convert", "other.gguf", "other/", "--names", "hf")
        self.assertIn("no config.json: the architecture \"grok\" is not known", result.err)
        self.assertEqual(self.names_in_folder(), ["model.gguf", "other.gguf", "other/model.safetensors"])

    def test_metadata_that_lack_a_number_make_none(self):
        self.llama()
        self.ballast("convert", "model.gguf", "less.gguf", "--remove-metadata", "llama.block_count")
        result = self.ballast("convert", "less.gguf", "less/", "--names", "hf")
        self.assertIn('no config.json: the metadata do not determine it: there is no "llama.block_count"', result.err)
        self.assertEqual(self.names_in_folder(), ["less.gguf", "less/model.safetensors", "model.gguf"])


if __name__ == "__main__":
    unittest.main()
