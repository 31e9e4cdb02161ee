"""convert --quantize: weights in forms of fewer bits, with the config.json by which transformers loads them."""

import math
import random

from support import *

QUANTIZED = VECTORS / "quantized"
LAYER = "model.layers.0.mlp.up_proj.weight"
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32"}
SCHEMES = {"fp8-block": "fp8", "nf4": "bitsandbytes", "nf4-double": "bitsandbytes", "mxfp4": "compressed-tensors"}
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def floats(tensor):
    dtype, _, raw = tensor
    return list(struct.unpack(f"<{len(raw) // 4}f", raw)) if dtype == "F32" else [
        struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]


def nibbles(raw, first_high):
    for byte in raw:
        yield from ((byte >> 4, byte & 15) if first_high else (byte & 15, byte >> 4))


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    return (-1 if code & 128 else 1) * (math.ldexp(mantissa, -9) if exponent == 0 else math.ldexp(8 + mantissa, exponent - 10))


def decoded(tensors, name):
    """The values of a weight, from the description of its form alone."""
    if name + "_scale_inv" in tensors:
        scales, (_, shape, raw) = tensors[name + "_scale_inv"], tensors[name]
        factors, wide = floats(scales), scales[1][1]
        return [e4m3(code) * factors[i // shape[1] // 128 * wide + i % shape[1] // 128] for i, code in enumerate(raw)]
    if name + "_packed" in tensors:
        exponents = tensors[name + "_scale"][2]
        return [(-1 if code & 8 else 1) * math.ldexp(E2M1[code & 7], exponents[i // 32] - 127)
                for i, code in enumerate(nibbles(tensors[name + "_packed"][2], False))]
    codes, absmax = floats(tensors[name + ".quant_map"]), tensors[name + ".absmax"]
    if absmax[0] == "U8":
        state = json.loads(tensors[name + ".quant_state.bitsandbytes__nf4"][2])
        meanings, scales = floats(tensors[name + ".nested_quant_map"]), floats(tensors[name + ".nested_absmax"])
        absmax = [meanings[code] * scales[i // 256] + state["nested_offset"] for i, code in enumerate(absmax[2])]
    else:
        absmax = floats(absmax)
    return [codes[code] * absmax[i // 64] for i, code in enumerate(nibbles(tensors[name][2], True))]


class Quantize(TestCase):
    def setUp(self):
        super().setUp()
        numbers = random.Random(1)
        self.values = [struct.unpack("<f", struct.pack("<f", numbers.gauss(0, 1)))[0] for _ in range(192 * 160)]
        self.write("model/model.safetensors", {
            LAYER: ("F32", [192, 160], self.values), "model.layers.0.mlp.gate.weight": ("F32", [4, 32], [1.0] * 128),
            "model.embed_tokens.weight": ("F32", [4, 32], [2.0] * 128), "model.norm.weight": ("F32", [32], [1.0] * 32)})
        self.write("model/config.json", json.dumps(CONFIG, indent=2).encode())

    def test_writes_what_transformers_loads(self):
        most = max(map(abs, self.values))
        for scheme, method in SCHEMES.items():
            done = self.ballast("convert", "model", f"{scheme}/", "--quantize", scheme)
            self.assertIn(f"note: quantized with {scheme}: 1 weight; matrices that are left as they are: "
                          '"model.layers.0.mlp.gate.weight", "model.embed_tokens.weight"\n', done.err)
            config = json.loads((self.folder / scheme / "config.json").read_text())
            self.assertEqual(config.pop("quantization_config")["quant_method"], method)
            self.assertEqual(config, CONFIG)
            tensors, _ = read_safetensors(self.folder / scheme / "model.safetensors")
            self.assertEqual(floats(tensors["model.embed_tokens.weight"]), [2.0] * 128)
            got = decoded(tensors, LAYER)
            self.assertEqual(len(got), len(self.values))
            error = math.sqrt(sum((a - b) ** 2 for a, b in zip(got, self.values)) / len(got))
            self.assertLess(error, {"fp8-block": 0.03, "mxfp4": 0.13}.get(scheme, 0.1), scheme)
            self.assertLess(max(abs(a - b) for a, b in zip(got, self.values)), most / 4, scheme)
            found = self.ballast("info", scheme, "--json").json()["quantization"]
            self.assertEqual((found["scheme"], found["modules"], found["evidence"]), (method, 1, "config.json"))
            self.ballast("verify", scheme)

    def test_comes_back_with_dequantize(self):
        for scheme in SCHEMES:
            self.ballast("convert", "model", f"{scheme}/", "--quantize", scheme, "--dtype", "BF16")
            tensors, _ = read_safetensors(self.folder / scheme / "model.safetensors")
            self.ballast("convert", scheme, f"{scheme}-back/", "--dequantize")
            back, _ = read_safetensors(self.folder / f"{scheme}-back" / "model.safetensors")
            self.assertEqual(back[LAYER][:2], ("BF16", [192, 160]))
            for a, b in zip(floats(back[LAYER]), decoded(tensors, LAYER)):
                self.assertLessEqual(abs(a - b), abs(b) / 255, scheme)
            # And once more: the codes do not change.
            self.ballast("convert", f"{scheme}-back", f"{scheme}-again/", "--quantize", scheme)
            again, _ = read_safetensors(self.folder / f"{scheme}-again" / "model.safetensors")
            packed = LAYER + ("_packed" if scheme == "mxfp4" else "")
            self.assertEqual(again[packed], tensors[packed], scheme)

    def test_goes_from_one_scheme_to_another(self):
        self.ballast("convert", "model", "fp8/", "--quantize", "fp8-block")
        self.refused("convert", "fp8", "nf4/", "--quantize", "nf4", code=UNSUPPORTED,
                     says="is a part of a weight that is quantized with fp8: it cannot be quantized with nf4")
        self.ballast("convert", "fp8", "nf4/", "--dequantize", "--quantize", "nf4")
        config = json.loads((self.folder / "nf4/config.json").read_text())
        self.assertEqual(config["quantization_config"]["quant_method"], "bitsandbytes")
        self.assertEqual(len(read_safetensors(self.folder / "nf4/model.safetensors")[0]), 7)

    def test_says_what_config_json_needs_beside_a_single_file(self):
        done = self.ballast("convert", "model", "one.safetensors", "--quantize", "nf4")
        self.assertIn('note: the config.json of this model needs "quantization_config": {"quant_method":"bitsandbytes"', done.err)
        self.assertFalse((self.folder / "config.json").exists())

    def test_takes_the_weights_that_are_named(self):
        self.ballast("convert", "model", "one.safetensors", "--quantize", "model.embed*=nf4", "--quantize", "*.gate.weight=nf4")
        tensors, _ = read_safetensors(self.folder / "one.safetensors")
        self.assertEqual({name: tensor[0] for name, tensor in tensors.items() if name.endswith(".weight")},
                         {LAYER: "F32", "model.layers.0.mlp.gate.weight": "U8", "model.embed_tokens.weight": "U8", "model.norm.weight": "F32"})

    def test_is_shown_by_a_dry_run(self):
        plan = self.ballast("convert", "model", "out/", "--quantize", "fp8-block", "--dry-run", "--json").json()["plan"]
        steps = {item["name"]: (item["dtype"], item.get("steps")) for item in plan}
        self.assertEqual(steps[LAYER], ("F8_E4M3", ["quantize to FP8 in blocks of 128 x 128"]))
        self.assertEqual(steps[LAYER + "_scale_inv"], ("F32", ["scales of FP8 in blocks of 128 x 128"]))
        self.assertFalse((self.folder / "out").exists())

    def test_refuses_what_makes_no_sense(self):
        self.refused("convert", "model", "x/", "--quantize", "int3", code=USAGE, says='--quantize: there is no scheme "int3"', hint="one of fp8-block")
        self.refused("convert", "model", "x/", "--quantize", "nf4", "--quantize", "a=nf4", code=USAGE, says="chooses the weights itself")
        self.refused("convert", "model", "x/", "--quantize", "a=mxfp4", "--quantize", "b=nf4", code=USAGE, says="a model has one scheme")
        self.refused("convert", "model", "x.gguf", "--quantize", "nf4", code=USAGE, says="a GGUF is for llama.cpp", hint="--type")
        self.refused("convert", "model", "x/", "--quantize", "nothing=nf4", code=UNSUPPORTED, says="no weight of those names can be quantized with nf4")
        self.assertFalse((self.folder / "x").exists())

    def test_refuses_a_value_that_is_not_finite(self):
        self.write("bad/model.safetensors", {LAYER: ("F32", [2, 64], [1.0] * 127 + [math.nan])})
        for scheme in SCHEMES:
            done = self.ballast("convert", "bad", "x/", "--quantize", scheme, code=UNSUPPORTED)
            self.assertIn("the value at [1, 63] is NaN, which cannot be encoded as", done.err)
        self.assertFalse((self.folder / "x").exists())

    def test_gives_the_bytes_of_bitsandbytes_and_of_compressed_tensors(self):
        for vector, scheme in (("bnb-nf4", "nf4"), ("ct-mxfp4", "mxfp4")):
            self.ballast("convert", QUANTIZED / vector / "expected.safetensors", f"{vector}.safetensors", "--quantize", scheme)
            self.assertEqual(read_safetensors(self.folder / f"{vector}.safetensors")[0],
                             read_safetensors(QUANTIZED / vector / "in" / "model.safetensors")[0])

    def test_writes_shards_with_any_number_of_threads(self):
        for threads in ("1", "4"):
            self.ballast("convert", "model", f"t{threads}/", "--quantize", "nf4-double", "--max-shard-size", "9kB", "--threads", threads)
        files = sorted(path.name for path in (self.folder / "t1").iterdir())
        self.assertGreater(len(files), 3)
        for name in files:
            self.assertEqual((self.folder / "t1" / name).read_bytes(), (self.folder / "t4" / name).read_bytes(), name)


if __name__ == "__main__":
    unittest.main()
