"""The awkward cases of docs/contract.md: the JSON of ls, hash and info is what tests/golden says.

BALLAST_UPDATE_GOLDEN=1 writes the files anew; look at the difference before you commit it.
"""

import json
import os
import unittest

from support import *

GOLDEN = SOURCE / "tests" / "golden"
SAFETENSORS, TORCH, GGUF = VECTORS / "safetensors", VECTORS / "torch2", VECTORS / "gguf"

SAFETENSORS_CASES = [
    "all_dtypes_torch.safetensors", "all_dtypes_numpy.safetensors", "shapes.safetensors", "names_odd.safetensors",
    "metadata_odd.safetensors", "save_model_tied.safetensors", "empty.safetensors", "empty_with_metadata.safetensors",
    "ok_f4.safetensors", "ok_f6.safetensors", "ok_unaligned.safetensors", "ok_reverse_order.safetensors",
    "ok_leading_space.safetensors", "ok_extra_field.safetensors", "ok_metadata_null.safetensors", "sharded_hub",
    "sharded_transformers", "sharded_transformers/model.safetensors.index.json",
    "sharded_transformers/model-00002-of-00003.safetensors", "single_transformers",
]

TORCH_CASES = [
    "all_dtypes.pt", "big_endian.pt", "conj_neg.pt", "exotic_float4_e2m1fn_x2.pt", "lightning_like.ckpt", "meta.pt",
    "module_tied_lm.pt", "nested_tensor.pt", "numpy_inside.pt", "odd_keys.pt", "plain_pickle_protocol4.pkl", "quantized.pt",
    "quantized_quint4x2.pt", "rezip_deflate.pt", "root_tensor.pt", "sparse.pt", "storages.pt", "tied_legacy.pt",
    "torchscript_script.pt", "views.pt",
]

GGUF_CASES = [
    "big_endian_quant.gguf", "kv_all.gguf", "long_tensor_name.gguf", "nested_array.gguf", "offsets_out_of_order.gguf",
    "quantized_by_gguf_py.gguf", "split_by_tensors-00002-of-00003.gguf",
]


class Contract(TestCase):
    def check(self, folder, target):
        for verb in ("ls", "hash", "info"):
            done = subprocess.run([COMMAND, verb, "--json", "-q", target], cwd=folder, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            actual = json.loads(done.stdout)
            golden = GOLDEN / f"{target.replace('/', '__')}.{verb}.json"
            if os.environ.get("BALLAST_UPDATE_GOLDEN"):
                golden.write_text(json.dumps(actual, indent=1, ensure_ascii=True) + "\n")
            self.assertEqual(actual, json.loads(golden.read_text()), f"{verb} {target}")

    def test_the_example(self):
        self.check(SOURCE / "examples", "tiny.safetensors")
        self.check(SOURCE / "examples", "tiny.pt")

    def test_the_awkward_safetensors_files(self):
        for target in SAFETENSORS_CASES:
            with self.subTest(target):
                self.check(SAFETENSORS, target)

    def test_the_awkward_torch_files(self):
        for target in TORCH_CASES:
            with self.subTest(target):
                self.check(TORCH, target)

    def test_the_awkward_gguf_files(self):
        for target in GGUF_CASES:
            with self.subTest(target):
                self.check(GGUF, target)

    def test_a_name_that_is_there_twice(self):
        done = subprocess.run([COMMAND, "ls", "--json", "ok_duplicate_key.safetensors"], cwd=SAFETENSORS, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (4, b""))

    def test_the_digest_does_not_depend_on_sharding(self):
        whole = self.folder / "whole.safetensors"
        subprocess.run([COMMAND, "convert", "-q", SAFETENSORS / "sharded_transformers", whole], check=True)
        digests = [json.loads(subprocess.run([COMMAND, "hash", "--json", target], capture_output=True, check=True).stdout)["digest"]
                   for target in (SAFETENSORS / "sharded_transformers", whole)]
        self.assertEqual(digests[0], digests[1])


if __name__ == "__main__":
    unittest.main()
