"""What the command writes as torch files is loaded by torch itself and compared bit for bit.

Skipped (exit 77) if there is no torch.
"""

import collections
import ctypes
import io
import pickle
import random
import sys
import unittest
import zipfile

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(77)

from support import *

TORCH = VECTORS / "torch2"

# The dtypes that even an old torch knows, with the bytes of an element.
DTYPES = {
    "BOOL": (torch.bool, 1), "U8": (torch.uint8, 1), "I8": (torch.int8, 1), "I16": (torch.int16, 2),
    "F16": (torch.float16, 2), "BF16": (torch.bfloat16, 2), "I32": (torch.int32, 4), "F32": (torch.float32, 4),
    "C64": (torch.complex64, 8), "F64": (torch.float64, 8), "I64": (torch.int64, 8),
}


def raw(tensor):
    """The bytes of a tensor's contiguous form, NaNs and all."""
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def random_tensor(generator):
    dtype = generator.choice(list(DTYPES))
    shape = [generator.choice([0, 1, 2, 3, 7, 20]) for _ in range(generator.randrange(5))]
    count = 1
    for dimension in shape:
        count *= dimension
    content = generator.randbytes(count * DTYPES[dtype][1])
    return dtype, shape, bytes(byte & 1 for byte in content) if dtype == "BOOL" else content


def opcodes(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))


class Global(collections.namedtuple("Global", "module name")):
    def __call__(self, *arguments):
        return self, arguments


class Pickled(pickle.Unpickler):
    """Reads a pickle as nested tuples of each call: its function and its arguments."""

    def find_class(self, module, name):
        return dict if (module, name) == ("collections", "OrderedDict") else Global(module, name)

    def persistent_load(self, key):
        return key


class TorchOracle(TestCase):
    def convert(self, source, name, *options):
        out = self.folder / name
        self.ballast("convert", source, out, "--force", *options)
        with zipfile.ZipFile(out) as archive:
            self.assertIsNone(archive.testzip())
        return out

    def written(self, tensors, name="m.pt", **options):
        source = self.folder / "source.safetensors"
        source.write_bytes(safetensors(tensors, **options))
        return self.convert(source, name)

    def expect_equal(self, path, tensors):
        loaded = torch.load(path, weights_only=True)
        self.assertIsInstance(loaded, collections.OrderedDict)
        self.assertEqual(set(loaded), set(tensors))
        for name, (dtype, shape, content) in tensors.items():
            self.assertEqual(loaded[name].dtype, DTYPES[dtype][0], name)
            self.assertEqual(list(loaded[name].shape), shape, name)
            self.assertEqual(raw(loaded[name]), content, name)
        return loaded

    def test_random_tensors_are_equal_bit_for_bit(self):
        for seed in range(20):
            generator = random.Random(seed)
            tensors = {f"layer.{i}.weight": random_tensor(generator) for i in range(generator.randrange(40))}
            with self.subTest(seed=seed):
                self.expect_equal(self.written(tensors), tensors)

    def test_names_are_kept_whatever_is_in_them(self):
        names = ["", " ", "a.b", "größe", "重み", "\U0001F9CA", "tab\tnew\nline", "quote\"'\\", "cpu", "storage", "0", "\0"]
        tensors = {name: ("U8", [1], bytes([i])) for i, name in enumerate(names)}
        self.expect_equal(self.written(tensors), tensors)

    def test_thousands_of_tensors(self):
        for count in (1, 2, 999, 1000, 1001, 2500):
            tensors = {f"t{i:05}": ("F32", [2], [float(i), -1.0]) for i in range(count)}
            loaded = torch.load(self.written(tensors), weights_only=True)
            self.assertEqual(list(loaded), list(tensors))
            self.assertTrue(all(loaded[f"t{i:05}"][0] == i for i in range(count)))

    def test_the_pickle_is_the_one_that_torch_writes(self):
        for count in (1, 2, 1000, 1001, 2500):
            generator = random.Random(count)
            tensors = {f"t{i}": random_tensor(generator) for i in range(count)}
            ours = self.written(tensors)
            theirs = self.folder / "theirs.pt"
            torch.save(collections.OrderedDict(
                (name, tensor.clone()) for name, tensor in torch.load(ours, weights_only=True).items()), theirs)
            self.assertEqual(opcodes(ours), opcodes(theirs), count)

    def test_tied_tensors_share_their_storage(self):
        tensors = {"embed": ("F32", [3, 2], [1.0, 2, 3, 4, 5, 6]), "other": ("F32", [6], [1.0, 2, 3, 4, 5, 6])}
        loaded = torch.load(self.written(tensors, metadata={"head": "embed"}), weights_only=True)
        self.assertEqual(set(loaded), {"embed", "other", "head"})
        self.assertEqual(loaded["head"].data_ptr(), loaded["embed"].data_ptr())
        self.assertNotEqual(loaded["other"].data_ptr(), loaded["embed"].data_ptr())

    def test_shards_load_one_by_one(self):
        tensors = {f"t{i}": ("U8", [100], bytes([i]) * 100) for i in range(5)}
        (self.folder / "source.safetensors").write_bytes(safetensors(tensors))
        self.ballast("convert", self.folder / "source.safetensors", self.folder / "pytorch_model.bin", "--max-shard-size", "250")
        index = json.loads((self.folder / "pytorch_model.bin.index.json").read_text())
        self.assertEqual(index["metadata"]["total_size"], 500)
        for name, file in index["weight_map"].items():
            self.assertRegex(file, r"^pytorch_model-0000[1-3]-of-00003\.bin$")
            self.assertEqual(raw(torch.load(self.folder / file, weights_only=True)[name]), tensors[name][2])

    def test_views_of_torch_files_stay_what_they_are(self):
        for name in ("views.pt", "tied.pt", "views_bf16.pt", "many_small.pt", "big_storage_small_views.pt"):
            with self.subTest(name=name):
                before = torch.load(TORCH / name)
                after = torch.load(self.convert(TORCH / name, name), weights_only=True)
                self.assertEqual(len(after), sum(1 for _ in leaves(before)))
                for path, tensor in leaves(before):
                    self.assertEqual(after[path].shape, tensor.shape, path)
                    self.assertEqual(raw(after[path]), raw(tensor), path)

    def test_quantized_tensors_stay_quantized(self):
        for name in ("quantized.pt", "quantized_float_qparams.pt", "quantized_quint4x2.pt"):
            with self.subTest(name=name):
                before = torch.load(TORCH / name)
                after = torch.load(self.convert(TORCH / name, name))
                self.assertEqual(set(after), set(before))
                for key, tensor in before.items():
                    self.assertEqual(after[key].qscheme(), tensor.qscheme(), key)
                    self.assertTrue(torch.equal(after[key].dequantize(), tensor.dequantize()), key)

    def test_dtypes_that_this_torch_may_not_know_are_pickled_as_a_later_one_does(self):
        for path in sorted(TORCH.glob("exotic_*.pt")) + [TORCH / "quantized_quint2x4.pt", TORCH / "all_dtypes.pt"]:
            with self.subTest(path=path.name):
                ours = Pickled(io.BytesIO(opcodes(self.convert(path, path.name)))).load()
                self.assertEqual(ours, Pickled(io.BytesIO(opcodes(path))).load())


def leaves(tree, path=""):
    """The tensors of nested dicts and lists, by their names."""
    if isinstance(tree, torch.Tensor):
        yield path, tree
        return
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield from leaves(value, f"{path}.{key}" if path else str(key))


if __name__ == "__main__":
    unittest.main()
