"""Folders of Hugging Face's models become what llama.cpp's converter and llama-quantize made of them: every key, every
type, every byte. The reference files are in tests/vectors/hf2gguf."""

import hashlib
import json
import mmap
import shutil
import struct
import unittest

from seeded_weights import write_weights
from support import *

CASES = VECTORS / "hf2gguf"
TYPES = ["UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "BOOL", "STRING", "ARRAY", "UINT64", "INT64",
         "FLOAT64"]
CODES = {"UINT8": "B", "INT8": "b", "UINT16": "H", "INT16": "h", "UINT32": "I", "INT32": "i", "FLOAT32": "f",
         "BOOL": "B", "UINT64": "Q", "INT64": "q", "FLOAT64": "d"}
# ggml's number of a type: its name, elements and bytes of a block
BLOCKS = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
          7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
          12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66),
          17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18),
          21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 29: ("IQ1_M", 256, 56),
          30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
          41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18)}
# Names of pre-tokenizers that llama.cpp treats alike: the same cuts, the same flags.
ALIKE = [set(names.split()) for names in (
    "gpt-2 phi-2 jina-v2-es jina-v2-de mellum modern-bert mpt olmo jais exaone4", "command-r smollm",
    "starcoder refact codeshell exaone minerva-7b", "dbrx smaug-bpe glm4 chatglm-bpe",
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2", "qwen2 deepseek-r1-qwen hunyuan",
    "stablelm2 megrez", "deepseek-v3 hunyuan-dense joyai-llm", "gpt-4o llama4 kanana2", "roberta-bpe jina-v1-en")]
# The path of an imatrix and the text that it was made with are not the reference's.
PATHS = {"quantize.imatrix.file", "quantize.imatrix.dataset"}


class Gguf:
    """A reader of its own, so that a mistake of ours does not hide itself."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 24
        _, tensors, keys = struct.unpack_from("<IQQ", self.bytes, 4)
        self.keys = {}
        for _ in range(keys):
            key = self.text()
            kind = TYPES[self.number("I")]
            self.keys[key] = [kind, self.value(kind)]
        found = [(self.text(), [self.number("Q") for _ in range(self.number("I"))], self.number("I"), self.number("Q"))
                 for _ in range(tensors)]
        begin = -(-self.at // 32) * 32
        self.tensors = {}
        for name, shape, kind, offset in found:
            kind, elements, size = BLOCKS[kind]
            count = 1
            for dimension in shape:
                count *= dimension
            data = self.bytes[begin + offset:begin + offset + count // elements * size]
            self.tensors[name] = [kind, shape, hashlib.sha256(data).hexdigest()]

    def number(self, code):
        value, = struct.unpack_from("<" + code, self.bytes, self.at)
        self.at += struct.calcsize(code)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.bytes[self.at - size:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == "STRING":
            return self.text()
        if kind == "ARRAY":
            kind, count = TYPES[self.number("I")], self.number("Q")
            return [kind, [self.value(kind) for _ in range(count)]]
        return bool(self.number("B")) if kind == "BOOL" else self.number(CODES[kind])


def comparable(kind, value):
    """Floats by their bits; bytes, of which the reference has only a digest, by that."""
    if kind == "FLOAT32":
        return struct.pack("<f", value)
    if kind == "ARRAY" and value[0] == "UINT8":
        items = value[1]
        return items if isinstance(items, dict) else {"n": len(items), "sha256": hashlib.sha256(bytes(items)).hexdigest()}
    return [value[0], [comparable(value[0], item) for item in value[1]]] if kind == "ARRAY" else value


class Hf2gguf(TestCase):
    def compare(self, file, keys, tensors, gone=()):
        wanted = {key: [kind, value] for key, kind, value in keys if key not in gone}
        found = Gguf(self.folder / file)
        self.assertEqual(set(found.keys) - PATHS, set(wanted) - PATHS)
        for key, (kind, value) in wanted.items():
            if key in PATHS:
                continue
            self.assertEqual(found.keys[key][0], kind, key)
            if key == "tokenizer.ggml.pre":
                pair = {found.keys[key][1], value}
                is_bert = wanted["tokenizer.ggml.model"][1] == "bert"
                self.assertTrue(is_bert or len(pair) == 1 or any(pair <= alike for alike in ALIKE), pair)
            else:
                self.assertEqual(comparable(kind, found.keys[key][1]), comparable(kind, value), key)
        self.assertEqual(set(found.tensors), {name for name, *_ in tensors})
        for name, kind, shape, digest in tensors:
            self.assertEqual(found.tensors[name][:2], [kind, shape], name)
            self.assertTrue(found.tensors[name][2].startswith(digest), f"{name} ({kind}) has other bytes")

    def with_changes(self, keys, changes):
        changed = {key: [key, kind, value] for key, kind, value in changes}
        return [changed.pop(key, [key, kind, value]) for key, kind, value in keys] + list(changed.values())

    def case_folder(self, case):
        """The folder of a case; the weights of large ones are made first."""
        source = case / json.loads((case / "case.json").read_text())["folder"]
        if (source / "model.safetensors").exists():
            return source
        folder = self.folder / source.name
        if folder.exists():
            return folder
        shutil.copytree(source, folder)
        write_weights(folder)
        return folder

    def test_every_architecture_is_what_the_converter_makes_of_it(self):
        cases = sorted(path.parent for path in CASES.glob("*/expect.json"))
        self.assertGreaterEqual(len(cases), 49)
        for case in cases:
            folder = self.case_folder(case)
            expected = json.loads((case / "expect.json").read_text(encoding="utf-8", errors="surrogateescape"))
            for kind, output in expected["outputs"].items():
                with self.subTest(case=case.name, type=kind):
                    self.ballast("convert", folder, "out.gguf", "--type", kind, *output.get("args", []), "--force")
                    tensors = expected["outputs"][output["same"]] if "same" in output else output
                    self.compare("out.gguf", self.with_changes(expected["kv"], output["kv"]), tensors["tensors"])

    def quantized(self, case, document, kinds):
        case = CASES / case
        folder = self.case_folder(case)
        expected = json.loads((case / document).read_text(encoding="utf-8", errors="surrogateescape"))
        importance = ["--imatrix", case / expected["imatrix"]] if expected.get("imatrix") else []
        names = expected["names"]
        for kind in kinds or expected["outputs"]:
            output = expected["outputs"][kind]
            arguments = [*importance, *output.get("args", []), *expected.get("args", [])]
            with self.subTest(case=case.name, document=document, type=kind):
                if (case.name, document, kind) in self.NOT_COMPARED:
                    continue
                if "error" in output:
                    # llama-quantize has no type for such rows, or no importance.
                    result = self.run_raw("convert", folder, "out.gguf", "--type", output.get("type", kind), *arguments,
                                          "--force")
                    self.assertIn(result.code, (USAGE, UNSUPPORTED), result)
                    self.assertIn('tensor "', result.err)
                    continue
                self.ballast("convert", folder, "out.gguf", "--type", output.get("type", kind), *arguments, "--force")
                self.compare("out.gguf", self.with_changes(expected["kv"], output["kv"]),
                             [[names[i][0], type_, names[i][1], digest] for i, type_, digest in output["tensors"]],
                             output.get("gone", ()))

    # Failures of llama-quantize, of which nothing follows for us.
    NOT_COMPARED = {
        ("q_odd", "quant.json", "Q8_0"), ("q_odd", "quant-imatrix.json", "Q8_0"),  # the converter has another type for such rows
        ("q_odd", "quant-options.json", "embd-q6_K Q2_K"),  # its options are not recorded
    }

    def test_every_failure_of_the_reference_is_known(self):
        failures = set()
        for document in CASES.glob("q_*/quant*.json"):
            outputs = json.loads(document.read_text(encoding="utf-8", errors="surrogateescape"))["outputs"]
            failures |= {(document.parent.name, document.name, kind) for kind, output in outputs.items() if "error" in output}
        self.assertEqual(len(failures), 36)
        self.assertLessEqual(self.NOT_COMPARED, failures)

    def test_every_recipe_is_that_of_llama_quantize(self):
        self.quantized("q_odd", "quant.json", None)

    def test_every_recipe_with_importance(self):
        self.quantized("q_odd", "quant-imatrix.json", None)
        self.quantized("q_odd", "quant-imatrix-dat.json", None)

    def test_recipes_for_larger_models_and_experts(self):
        self.quantized("q_llama8", "quant.json", ["Q4_K_M", "Q3_K_L", "TQ1_0"])
        self.quantized("q_llama8", "quant-imatrix.json", ["IQ2_M", "Q2_K_S", "IQ1_M", "TQ2_0", "Q1_0"])
        self.quantized("q_moe8", "quant.json", ["Q4_K_M", "MXFP4_MOE"])
        self.quantized("q_moe8", "quant-imatrix.json", ["IQ3_XXS"])

    def test_the_options_of_llama_quantize(self):
        for case in ("q_odd", "q_llama8", "q_moe8"):
            self.quantized(case, "quant-options.json", None)


if __name__ == "__main__":
    unittest.main()
