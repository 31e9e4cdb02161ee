"""Quantized checkpoints, as the command opens, converts and refuses them."""

import shutil
import unittest

from support import *

QUANTIZED = VECTORS / "quantized"


def model(name):
    return QUANTIZED / name / "in"


def expected(name):
    return QUANTIZED / name / "expected.safetensors"


def config(folder):
    return json.loads((folder / "config.json").read_text())


class Dequantize(TestCase):
    def test_info_says_what_comes_of_the_parts(self):
        out = self.ballast("info", model("gptq-4bit-g32-sym")).out
        self.assertIn("gptq, 4 bits, groups of 32: 2 weights in 8 parts (config.json)", out)
        self.assertIn("--dequantize makes F16 of them, 32768 bytes", out)
        told = self.ballast("info", "--json", model("gptq-4bit-g32-sym")).json()["quantization"]
        self.assertEqual((told["bytes_after"], told["dtype_after"]), (2 * 2 * 64 * 128, "F16"))
        told = self.ballast("info", "--json", "--dequantize", model("gptq-4bit-g32-sym")).json()
        self.assertEqual(told["dequantized"], "gptq")
        self.assertNotIn("quantization", told)

    def test_ls_shows_parts_or_weights(self):
        folder = model("bnb-nf4-double")
        self.assertIn("weight.nested_absmax", self.ballast("ls", folder).out)
        self.assertNotIn("absmax", self.ballast("ls", folder, "--dequantize").out)

    def test_a_slice_of_a_weight_is_read(self):
        arguments = [model("hqq-4bit-axis1"), "model.layers.0.self_attn.q_proj.weight", "--dequantize", "--json"]
        whole = self.ballast("cat", *arguments).json()["values"]
        self.assertEqual(self.ballast("cat", *arguments, "--slice", "3,7:9").json()["values"], whole[3][7:9])

    def test_parts_are_refused_with_the_way_out(self):
        folder, other = model("awq-gemm-g32"), model("awq-gemm-g64-nozero")
        for arguments in (["convert", folder, "x.safetensors", "--dtype", "BF16"], ["stats", folder]):
            self.refused(*arguments, code=UNSUPPORTED, says="quantized with awq", hint="--dequantize")
        shutil.copytree(folder, self.folder / "changed")
        tensors, metadata = read_safetensors(folder / "model.safetensors")
        name = "model.layers.0.self_attn.q_proj.qweight"
        dtype, shape, data = tensors[name]
        self.write("changed/model.safetensors", tensors | {name: (dtype, shape, bytes([data[0] ^ 1]) + data[1:])}, metadata)
        self.refused("diff", folder, "changed", code=UNSUPPORTED, says="cannot be compared by value", hint="--dequantize")
        self.ballast("diff", folder, "changed", "--dequantize", code=1)
        self.ballast("diff", folder, folder)
        self.ballast("diff", folder, expected("awq-gemm-g32"), "--dequantize")
        self.ballast("stats", other, "--dequantize")

    def test_a_folder_that_is_written_says_nothing_of_quantization(self):
        for name in ("gptq-quantize_config", "mlx-4bit-g64", "fp8-block128", "ct-pack-int4-g32"):
            with self.subTest(name):
                self.ballast("convert", model(name), name + "/", "--dequantize", "--dtype", "F32", "--no-sync")
                out = self.folder / name
                self.assertFalse({"quantization_config", "quantization"} & config(out).keys())
                self.assertEqual(config(out)["dtype"], "float32")
                self.assertFalse((out / "quantize_config.json").exists())
                self.assertNotIn("quantized", self.ballast("info", out).out)

    def test_a_dtype_that_comes_of_the_scheme_is_in_the_configuration(self):
        self.ballast("convert", model("bnb-int8"), "int8/", "--dequantize", "--include", "*q_proj.weight", "--no-sync")
        self.assertEqual(config(self.folder / "int8")["dtype"], "float32")

    def test_a_copy_keeps_every_byte_and_the_configuration(self):
        self.ballast("convert", model("bnb-fp4"), "copy/", "--no-sync")
        self.assertEqual(config(self.folder / "copy"), config(model("bnb-fp4")))
        self.assertEqual(read_safetensors(self.folder / "copy/model.safetensors"), read_safetensors(model("bnb-fp4") / "model.safetensors"))

    def test_a_pickle_of_torchao_keeps_its_parts_in_a_copy(self):
        self.ballast("convert", model("torchao-int8wo-bin"), "copy.safetensors", "--no-sync")
        tensors, _ = read_safetensors(self.folder / "copy.safetensors")
        self.assertEqual(tensors["model.layers.0.self_attn.q_proj.weight.qdata"][0], "I8")

    def test_a_gguf_gets_numbers_without_being_asked(self):
        done = self.ballast("convert", model("gptq-8bit-channel") / "model.safetensors", "plain.gguf", "--no-sync")
        self.assertIn("the weights are quantized with gptq: a GGUF gets the numbers", done.err)
        self.assertIn("q_proj.weight", self.ballast("ls", "plain.gguf").out)
        folder = VECTORS / "hf2gguf" / "llama" / "Tiny-Llama-1.1B-Chat-v1.0"
        self.ballast("convert", folder, "fp8/", "--quantize", "fp8-block", "--no-sync")
        self.ballast("convert", "fp8/", "numbers/", "--dequantize", "--no-sync")
        for source in ("fp8/", "numbers/"):
            self.ballast("convert", source, source.strip("/") + ".gguf", "--type", "Q8_0", "--no-sync")
        self.ballast("diff", "fp8.gguf", "numbers.gguf")

    def test_a_scheme_that_is_not_decoded_is_named(self):
        shutil.copytree(model("gptq-4bit-g32-sym"), self.folder / "marlin")
        (self.folder / "marlin/config.json").write_text(
            json.dumps({"quantization_config": {"quant_method": "gptq", "checkpoint_format": "marlin"}}))
        self.refused("ls", "marlin", "--dequantize", code=UNSUPPORTED, says="laid out for a kernel (marlin)", hint="copied as they are")
        self.assertIn("stay as their parts", self.ballast("ls", "marlin", "--dequantize", "--lenient").err)
        self.assertIn("are not decoded", self.ballast("info", "marlin").out)

    def test_info_says_sizes_and_what_is_left(self):
        for name, says in (("ct-pack-int4-asym", "compressed-tensors, 4 bits, groups of 64"), ("fp8-block128", "fp8, 8 bits"),
                           ("bnb-nf4", "bitsandbytes, 4 bits"), ("quanto-int4", "quanto, 4 bits"), ("torchao-int8wo", "torchao, 8 bits"),
                           ("torchao-int8wo-bin", "torchao, 8 bits: 2 weights in 6 parts")):
            self.assertIn(says, self.ballast("info", model(name)).out, name)
        self.assertIn("left as they are: lm_head", self.ballast("info", model("ct-pack-int4-asym")).out)
        told = self.ballast("info", "--json", model("ct-pack-int4-asym")).json()["quantization"]
        self.assertEqual(told["unquantized_modules"], ["lm_head"])

    def test_standard_input_says_that_the_version_is_a_guess(self):
        data = (model("gptq-4bit-g32-sym") / "model.safetensors").read_bytes()
        done = self.ballast("convert", "-", "x.safetensors", "--dequantize", "--no-sync", stdin=data)
        self.assertIn("no configuration says of which version of GPTQ the weights are", done.err)

    def test_every_weight_but_the_experts_of_gpt_oss_is_dequantized_for_a_gguf(self):
        tensors, _ = read_safetensors(model("mxfp4-gpt-oss") / "model.safetensors")
        name = "model.layers.0.self_attn.q_proj.weight"
        tensors |= {name: ("F8_E4M3", [4, 4], bytes([0x38] * 16)), name + "_scale": ("F32", [], bytes(4))}
        self.write("oss/model.safetensors", tensors)
        self.ballast("convert", "oss/model.safetensors", "oss.gguf", "--no-sync")
        listed = {row["name"]: row["dtype"] for row in self.ballast("ls", "oss.gguf", "--json").json()["tensors"]}
        self.assertIn(listed[name], ("BF16", "F32"))
        self.assertNotIn(name + "_scale", listed)
        self.assertNotIn("I8", set(listed.values()))

    def test_codes_without_their_scale_never_get_into_a_gguf(self):
        tensors, _ = read_safetensors(model("mxfp4-gpt-oss") / "model.safetensors")
        name = "model.layers.0.self_attn.q_proj.weight"
        tensors |= {name: ("F8_E4M3", [4, 4], bytes([0x38] * 16)), name + "_scale": ("F32", [], bytes(4))}
        self.write("oss/model.safetensors", tensors)
        shutil.copy(model("mxfp4-gpt-oss") / "config.json", self.folder / "oss")
        for more in ((), ("--names", "gguf")):
            self.refused("convert", "oss/model.safetensors", "oss.gguf", "--exclude", "*weight_scale", *more, code=UNSUPPORTED, says="is a part of a weight that is quantized")

    def test_files_that_openai_publishes_of_gpt_oss_become_those_of_transformers(self):
        before = "block.0.mlp.mlp1_weight."
        self.write("oss.safetensors", {before + "blocks": ("U8", [2, 4, 1, 16], bytes([0x22] * 128)), before + "scales": ("U8", [2, 4, 1], bytes([127] * 8))})
        self.ballast("convert", "oss.safetensors", "whole.safetensors", "--dequantize", "--map", "transformers:gpt_oss", "--no-sync")
        tensors, _ = read_safetensors(self.folder / "whole.safetensors")
        self.assertEqual(tensors["model.layers.0.mlp.experts.gate_up_proj"][:2], ("BF16", [2, 32, 4]))

    def test_what_stays_packed_is_said_of_config_json(self):
        shutil.copytree(model("fp8-block128"), self.folder / "some")
        tensors, metadata = read_safetensors(model("fp8-block128") / "model.safetensors")
        left = next(name for name in tensors if name.endswith("_scale_inv"))
        self.write("some/model.safetensors", {n: t for n, t in tensors.items() if n != left}, metadata)
        done = self.ballast("convert", "some", "out/", "--dequantize", "--no-sync")
        self.assertIn("its other parts are missing", done.err)
        self.assertIn("config.json still says that the weights are quantized", done.err)
        self.assertNotIn("float8", (self.folder / "out/config.json").read_text().split("quantization_config")[0])

    def test_differences_of_a_quantized_model_and_another_point_to_the_weights(self):
        folder, floats = model("gptq-4bit-g32-sym"), expected("gptq-4bit-g32-sym")
        for pair in ([folder, floats], [floats, folder]):
            self.refused("adapter", "from-diff", *pair, "-o", "lora", code=UNSUPPORTED, says="is a weight that is quantized with gptq", hint="--dequantize")
        self.assertIn("--dequantize", self.ballast("diff", floats, folder, code=1).err)

    def test_an_adapter_is_merged_into_the_numbers(self):
        prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        a, b = [j % 5 - 2 for j in range(128)], [i % 3 - 1 for i in range(64)]
        self.write("adapter/adapter_model.safetensors",
                   {prefix + "A.weight": ("F32", [1, 128], a), prefix + "B.weight": ("F32", [64, 1], b)})
        (self.folder / "adapter/adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"], "task_type": None}))
        arguments = ["adapter", "merge", model("fp8-fbgemm-row"), "adapter", "-o", "merged.safetensors"]
        self.refused(*arguments, code=UNSUPPORTED, says="cannot be merged into", hint="--dequantize")
        self.ballast(*arguments, "--dequantize")
        of_bf16 = lambda tensor, at: struct.unpack("<f", b"\0\0" + tensor[2][2 * at:2 * at + 2])[0]
        merged, plain = (read_safetensors(path)[0] for path in (self.folder / "merged.safetensors", expected("fp8-fbgemm-row")))
        changed = "model.layers.0.self_attn.q_proj.weight"
        self.assertEqual(merged[changed][:2], ("BF16", [64, 128]))
        for i, j in ((0, 0), (2, 0), (2, 3), (4, 2), (62, 127), (63, 126)):
            self.assertAlmostEqual(of_bf16(merged[changed], i * 128 + j), of_bf16(plain[changed], i * 128 + j) + b[i] * a[j], delta=0.02)
        self.assertEqual({name for name in plain if plain[name] != merged[name]}, {changed})


if __name__ == "__main__":
    unittest.main()
