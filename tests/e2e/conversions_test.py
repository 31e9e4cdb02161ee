"""convert --map transformers: what from_pretrained does to published weights, and the way back."""

import json
import re
import unittest

from support import *

DOCS = SOURCE / "docs" / "maps.md"


def experts(words, count=2):
    """The matrices of the experts of one layer, each of which has other values."""
    tensors = {}
    for expert in range(count):
        for at, word in enumerate(words):
            shape = [2, 3] if at == 2 else [3, 2]
            tensors[f"{expert}.{word}.weight"] = ("F32", shape, [100 * expert + 10 * at + i for i in range(6)])
    return tensors


class Conversions(TestCase):
    def model(self, folder, config, tensors):
        (self.folder / folder).mkdir()
        self.write(f"{folder}/model.safetensors", tensors)
        (self.folder / folder / "config.json").write_text(json.dumps(config))

    def mixtral(self, **more):
        block = "model.layers.0.block_sparse_moe."
        tensors = {block + "experts." + name: tensor for name, tensor in experts(["w1", "w3", "w2"]).items()}
        tensors[block + "gate.weight"] = ("F32", [2, 2], [1, 2, 3, 4])
        self.model("published", {"model_type": "mixtral", "num_local_experts": 2} | more, tensors)

    def listed(self, target):
        return {t["name"]: t["shape"] for t in self.ballast("ls", target, "--json").json()["tensors"]}

    def test_are_chosen_by_the_config_and_can_be_undone(self):
        self.mixtral()
        done = self.ballast("convert", "published", "fused/", "--map", "transformers")
        self.assertIn("config.json", done.err)
        self.assertNotIn("what is written has others", done.err, "they are transformers' names")
        self.assertEqual(self.listed("fused"), {
            "model.layers.0.mlp.experts.gate_up_proj": [2, 6, 2],
            "model.layers.0.mlp.experts.down_proj": [2, 2, 3],
            "model.layers.0.mlp.gate.weight": [2, 2],
        })
        tensors, _ = read_safetensors(self.folder / "fused" / "model.safetensors")
        self.assertEqual(tensors["model.layers.0.mlp.experts.gate_up_proj"][2],
                         pack("F32", [*range(0, 6), *range(10, 16), *range(100, 106), *range(110, 116)]))
        self.ballast("convert", "fused", "back/", "--map-back", "transformers")
        self.assertEqual(self.ballast("diff", "published", "back").out, "equal: 7 tensors\n")
        result = self.ballast("convert", "fused", "again.safetensors", "--map", "transformers")
        self.assertIn("transformers' conversions for mixtral change no tensor", result.err)

    def test_can_be_named(self):
        self.mixtral()
        self.ballast("convert", "published/model.safetensors", "alone.safetensors")
        self.ballast("convert", "alone.safetensors", "fused.safetensors", "--map", "transformers:mixtral")
        self.assertEqual(len(self.listed("fused.safetensors")), 3)
        self.ballast("convert", "fused.safetensors", "back.safetensors", "--map-back", "transformers:mixtral")
        self.assertEqual(self.ballast("diff", "alone.safetensors", "back.safetensors").out, "equal: 7 tensors\n")

    def test_that_there_are_not_are_an_error_with_those_that_there_are(self):
        self.model("llama", {"model_type": "llama"}, {"a": ("F32", [1], [1])})
        self.write("alone.safetensors", {"a": ("F32", [1], [1])})
        for code, *arguments in ((UNSUPPORTED, "llama", "--map", "transformers"),
                                 (UNSUPPORTED, "llama", "--map-back", "transformers"),
                                 (USAGE, "alone.safetensors", "--map", "transformers:llama")):
            self.refused("convert", arguments[0], "x.safetensors", *arguments[1:], code=code, says='no conversions for the model_type "llama"', hint="mixtral")
        self.refused("convert", "alone.safetensors", "x.safetensors", "--map", "transformers", code=IO,
                     says="no config.json says which model this is", hint="mixtral")
        self.refused("convert", "alone.safetensors", "x.safetensors", "--map", "transformers:mixtrl", code=USAGE,
                     says="mixtrl", hint='did you mean "mixtral"')
        self.assertEqual(self.names_in_folder(), ["alone.safetensors", "llama/config.json", "llama/model.safetensors"])

    def test_refuse_a_layer_that_lacks_an_expert(self):
        self.mixtral()
        missing = "model.layers.0.block_sparse_moe.experts.1.w3.weight"
        self.refused("convert", "published", "x.safetensors", "--map", "transformers", "--exclude", missing, code=NO,
                     says="belongs with")
        (self.folder / "published" / "config.json").write_text('{"model_type": "mixtral", "num_local_experts": 3}')
        self.refused("convert", "published", "x.safetensors", "--map", "transformers", code=NO,
                     says='belongs with "model.layers.0.mlp.experts.2.w1.weight", which is not there')

    def test_take_wrappers_out_of_names_with_a_note(self):
        self.model("bert", {"model_type": "bert"}, {
            "module._orig_mod.bert.embeddings.LayerNorm.gamma": ("F32", [1], [1]),
            "bert.encoder.layer.0._fsdp_wrapped_module.output.LayerNorm.beta": ("F32", [1], [2]),
            "bert.pooler.bias": ("F32", [1], [3]),
        })
        result = self.ballast("convert", "bert", "out.safetensors", "--map", "transformers")
        self.assertEqual(sorted(self.listed("out.safetensors")), [
            "bert.embeddings.LayerNorm.weight", "bert.encoder.layer.0.output.LayerNorm.bias", "bert.pooler.bias"])
        self.assertIn("wrappers of training put parts into 2 of 3 names", result.err)

    # The experts of an FP8 model are stacked when they are numbers again: 0x38 is 1.
    def test_stack_what_is_dequantized_and_no_parts_of_it(self):
        tensors = {}
        for expert in range(2):
            for word in ("gate_proj", "up_proj", "down_proj"):
                name = f"model.layers.0.mlp.experts.{expert}.{word}.weight"
                tensors[name] = ("F8_E4M3", [2, 2], b"\x38" * 4)
                tensors[name + "_scale_inv"] = ("F32", [1, 1], [2.0 + expert])
        quantization = {"quant_method": "fp8", "weight_block_size": [128, 128]}
        self.model("fp8", {"model_type": "deepseek_v3", "quantization_config": quantization}, tensors)
        self.refused("convert", "fp8", "x.safetensors", "--map", "transformers", code=UNSUPPORTED,
                     says="is a part of a weight that is quantized")
        self.ballast("convert", "fp8", "out.safetensors", "--map", "transformers", "--dequantize", "--dtype", "F32")
        tensors, _ = read_safetensors(self.folder / "out.safetensors")
        self.assertEqual(tensors["model.layers.0.mlp.experts.gate_up_proj"][:2], ("F32", [2, 4, 2]))
        self.assertEqual(tensors["model.layers.0.mlp.experts.gate_up_proj"][2], pack("F32", [2.0] * 8 + [3.0] * 8))

    def test_a_file_of_that_name_is_a_path(self):
        self.write("in.safetensors", {"a": ("F32", [1], [1])})
        (self.folder / "transformers").write_text('{"rules": [{"from": "a", "to": "b"}]}')
        self.ballast("convert", "in.safetensors", "out.safetensors", "--map", "./transformers")
        self.assertEqual(list(self.listed("out.safetensors")), ["b"])

    def test_of_the_document_are_those_of_the_command(self):
        self.write("in.safetensors", {"a": ("F32", [1], [1])})
        result = self.run_raw("convert", "in.safetensors", "x.safetensors", "--map", "transformers:llama")
        known = re.search(r"there are some for (.*)", result.err).group(1).split(", ")
        section = DOCS.read_text().split("## What transformers does")[1]
        rows = re.findall(r"^\| (`[^|]*) \|", section, re.M)
        written = [name for row in rows for name in re.findall(r"`([^`]+)`", row) if name != "model_type"]
        self.assertEqual(sorted(written), known)


if __name__ == "__main__":
    unittest.main()
