"""The command reads what torch and NumPy write: names, dtypes, shapes and bytes, over random trees.

Skipped (exit 77) if there is no torch. One process: importing torch takes seconds.
"""

import collections
import ctypes
import hashlib
import pickle
import random
import sys
import warnings

try:
    import numpy
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(77)

from support import *

warnings.filterwarnings("ignore")  # sparse CSR is "in beta state"

DTYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64", torch.complex64: "C64",
    torch.complex128: "C128", torch.qint8: "QI8", torch.quint8: "QU8", torch.qint32: "QI32",
    torch.quint4x2: "QU4X2",
}
PLAIN = [dtype for dtype, name in DTYPES.items() if not name.startswith("Q")]
TREES = 60


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def raw(tensor):
    """The bytes of a tensor's contiguous form, NaNs and all."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def entry(tensor):
    return DTYPES[tensor.dtype], list(tensor.shape), sha256(raw(tensor))


def array_entry(array):
    little = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    code = array.dtype.kind + str(8 * array.dtype.itemsize)
    return {"b8": "BOOL"}.get(code, code.upper()), list(array.shape), sha256(little.tobytes())


def parts_of(tensor):
    """Returns {suffix: entry}, the entries that one tensor is listed as."""
    if tensor.layout == torch.sparse_coo:
        return {".indices": entry(tensor._indices()), ".values": entry(tensor._values())}
    if tensor.layout == torch.sparse_csr:
        return {".crow_indices": entry(tensor.crow_indices()), ".col_indices": entry(tensor.col_indices()),
                ".values": entry(tensor.values())}
    if not tensor.is_quantized:
        return {"": entry(tensor)}
    parts = {"": (DTYPES[tensor.dtype], list(tensor.shape), sha256(raw(tensor.int_repr())))}
    if tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        parts[".scales"] = entry(tensor.q_per_channel_scales())
        parts[".zero_points"] = entry(tensor.q_per_channel_zero_points())
    return parts


def flatten(tree, path=""):
    """{name: entry} of everything that is a tensor."""
    if isinstance(tree, torch.nn.Module):
        tree = tree.state_dict()
    if isinstance(tree, torch.Tensor):
        return {(path + suffix).lstrip(".") if not path else path + suffix: found
                for suffix, found in parts_of(tree).items()}
    if isinstance(tree, numpy.ndarray):
        return {path: array_entry(tree)}
    if isinstance(tree, dict):
        children = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, (list, tuple)):
        children = [(str(i), value) for i, value in enumerate(tree)]
    else:
        return {}
    found = {}
    for key, value in children:
        found.update(flatten(value, f"{path}.{key}" if path else key))
    return found


class Generator:
    """Trees of whatever torch 1.13 can save, from one seed each."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.made = []

    def base(self, dtype, shape):
        count = 1
        for dimension in shape:
            count *= dimension
        size = torch.empty((), dtype=dtype).element_size()
        content = bytearray(self.random.randbytes(max(count * size, 1)))
        if dtype == torch.bool:
            content = bytearray(byte & 1 for byte in content)
        flat = torch.frombuffer(content, dtype=torch.uint8)[:count * size].clone()
        return flat.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)

    def shape(self, least=0):
        return [self.random.choice([1, 2, 3, 5, 8]) for _ in range(self.random.randrange(least, 4))]

    def plain(self):
        return self.base(self.random.choice(PLAIN), self.shape())

    def view(self):
        tensor = self.base(self.random.choice(PLAIN), self.shape(least=1) + [4])
        return self.random.choice([
            lambda t: t.transpose(0, -1), lambda t: t[..., 1:3], lambda t: t[::2], lambda t: t.flatten()[3:],
            lambda t: t.unsqueeze(0).expand(3, *t.shape), lambda t: t.select(-1, 2),
            lambda t: torch.as_strided(t, (2, 2), (1, 1), 1), lambda t: t[:0], lambda t: t.unsqueeze(-1),
            lambda t: t.permute(*reversed(range(t.dim()))),
        ])(tensor)

    def signed(self):
        complex_one = self.base(torch.complex64, [3, 2])
        return self.random.choice([
            lambda: complex_one.conj(), lambda: complex_one.conj().imag, lambda: complex_one.mT.conj()])()

    def sparse(self):
        dense = torch.randn(4, 6, dtype=self.random.choice([torch.float32, torch.float64]))
        dense[dense < 0.5] = 0
        indices = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 2]])
        return self.random.choice([
            dense.to_sparse, dense.to_sparse_csr, lambda: dense.to_sparse(1),
            lambda: torch.sparse_coo_tensor(indices, torch.randn(4), (2, 3)),
            lambda: torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (2, 3)),
        ])()

    def quantized(self):
        values, scales = torch.randn(3, 4), torch.rand(3) + 0.01
        dtype = self.random.choice([torch.qint8, torch.quint8, torch.qint32])
        return self.random.choice([
            lambda: torch.quantize_per_tensor(values, 0.1, 3, dtype),
            lambda: torch.quantize_per_tensor(values, 0.1, 3, dtype).t(),
            lambda: torch.quantize_per_channel(values, scales.double(), torch.tensor([1, 2, 3]), 0, torch.qint8),
            lambda: torch.quantize_per_channel(values, scales, torch.rand(3), 0, torch.quint8),
            lambda: torch.quantize_per_channel(values, scales, torch.rand(3), 0, torch.quint4x2),
        ])()

    def array(self):
        dtype = self.random.choice(["<f4", ">f8", "<i8", ">i2", "|u1", "|b1", "<c8", "<f2"])
        array = numpy.frombuffer(bytearray(self.random.randbytes(48)), dtype="|u1")
        array = (array & 1 if dtype == "|b1" else array).view(dtype)
        shape = self.random.choice([(-1,), (2, -1), (1, 2, -1)])
        array = array.reshape(shape)
        return self.random.choice([array, numpy.asfortranarray(array), array[..., ::-1], array[:0]])

    def tied(self):
        return self.random.choice(self.made) if self.made else self.plain()

    def leaf(self):
        kind = self.random.choice([self.plain] * 4 + [self.view] * 4 +
                                  [self.signed, self.sparse, self.quantized, self.array, self.tied, self.parameter])
        tensor = kind()
        if isinstance(tensor, torch.Tensor):
            self.made.append(tensor)
        return tensor

    def parameter(self):
        return torch.nn.Parameter(torch.randn(self.shape()))

    def module(self):
        net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 3, bias=False))
        net.register_buffer("kept", torch.randn(2))
        net.register_buffer("scratch", torch.randn(2), persistent=False)
        return net

    def tree(self, depth=0):
        if depth == 3 or (depth > 0 and self.random.random() < 0.5):
            plain = self.random.choice([1, 0.5, "text", None, True, b"raw"])
            return self.random.choice([self.leaf] * 6 + [lambda: plain])()
        children = [self.tree(depth + 1) for _ in range(self.random.randrange(1, 5))]
        keys = self.random.sample(["weight", "bias", "state", "0", "ünïcode", "with space", 7, -3], len(children))
        return self.random.choice([
            lambda: dict(zip(keys, children)), lambda: collections.OrderedDict(zip(keys, children)), lambda: children,
            lambda: tuple(children)])()


class TorchDifferential(TestCase):
    def assertReads(self, path, expected):
        listed = self.ballast("ls", "--json", path).json()["tensors"]
        hashes = self.ballast("hash", "--json", path).json()["tensors"]
        found = {one["name"]: (one["dtype"], one["shape"], hashes[one["name"]]) for one in listed}
        self.assertEqual(found, expected, path)
        self.assertEqual([one["name"] for one in listed], list(expected), path)

    def save(self, name, tree, **options):
        path = self.folder / name
        torch.save(tree, path, **options)
        return path

    def test_random_trees(self):
        for seed in range(TREES):
            tree, protocol = Generator(seed).tree(), 2 + seed % 4
            for new in (True, False):
                with self.subTest(seed=seed, protocol=protocol, zip=new):
                    path = self.save("x.pt", tree, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
                    # The expected values are those that torch itself reads: the torch of 2022 loses the conjugate bit.
                    self.assertReads(path, flatten(torch.load(path, weights_only=False)))

    def test_every_kind_of_tensor_alone(self):
        """Random trees may miss one kind for years."""
        for seed in range(20):
            generator = Generator(1000 + seed)
            for kind in (generator.plain, generator.view, generator.signed, generator.sparse, generator.quantized,
                         generator.parameter):
                tree = {"x": kind()}
                with self.subTest(seed=seed, kind=kind.__name__):
                    path = self.save("x.pt", tree)
                    self.assertReads(path, flatten(torch.load(path, weights_only=False)))

    def test_a_tensor_without_a_tree(self):
        tensor = torch.randn(2, 3)
        self.assertReads(self.save("x.pt", tensor), {"": entry(tensor)})

    def test_tied_tensors_and_views_share_their_storage(self):
        base = torch.randn(4, 4)
        path = self.save("x.pt", {"a": base, "b": base, "row": base[1]})
        self.assertReads(path, flatten({"a": base, "b": base, "row": base[1]}))
        self.assertEqual(self.ballast("info", "--json", path).json()["tied"], [["a", "b"]])

    def test_whole_modules(self):
        for seed, legacy in enumerate((False, True)):
            net = Generator(seed).module()
            self.assertReads(self.save("x.pt", net, _use_new_zipfile_serialization=not legacy), flatten(net))

    def test_optimizers(self):
        net = torch.nn.Linear(3, 2)
        for optimizer in (torch.optim.Adam(net.parameters()), torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)):
            net(torch.randn(4, 3)).sum().backward()
            optimizer.step()
            state = optimizer.state_dict()
            self.assertReads(self.save("x.pt", state), flatten(state))

    def test_pickles_by_python_itself(self):
        for seed in range(20):
            generator = Generator(2000 + seed)
            tree = {"a": generator.plain(), "b": [generator.view(), generator.array()], "c": 3}
            for protocol in (2, 3, 4, 5):
                with self.subTest(seed=seed, protocol=protocol):
                    self.assertReads(self.write("x.pkl", pickle.dumps(tree, protocol)), flatten(tree))

    def test_arrays_by_numpy(self):
        for seed in range(40):
            array = Generator(3000 + seed).array()
            numpy.save(self.folder / "x.npy", array)
            numpy.savez(self.folder / "x.npz", first=array, second=array[..., :1])
            numpy.savez_compressed(self.folder / "packed.npz", first=array)
            with self.subTest(seed=seed, dtype=array.dtype.str):
                self.assertReads("x.npy", {"": array_entry(array)})
                self.assertReads("x.npz", {"first": array_entry(array), "second": array_entry(array[..., :1])})
                self.assertReads("packed.npz", {"first": array_entry(array)})

    def test_dense_forms(self):
        for seed in range(30):
            generator = Generator(4000 + seed)
            tree = {"s": generator.sparse(), "q": generator.quantized()}
            path = self.save("x.pt", tree)
            with self.subTest(seed=seed):
                self.ballast("convert", "--dense", "--force", path, "dense.safetensors")
                hashes = self.ballast("hash", "--json", "dense.safetensors").json()["tensors"]
                self.assertEqual(hashes, {"s": sha256(raw(tree["s"].to_dense())),
                                          "q": sha256(raw(tree["q"].dequantize()))})

    def test_the_dense_form_adds_up_in_the_dtype_of_the_values(self):
        indices = torch.tensor([[0, 1, 0, 1, 0, 0]])
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.int8,
                      torch.int64, torch.uint8, torch.bool):
            values = (torch.randn(6) * 100).to(dtype)
            sparse = torch.sparse_coo_tensor(indices, values, (3,))
            with self.subTest(dtype=dtype):
                self.ballast("convert", "--dense", "--force", self.save("x.pt", {"s": sparse}), "dense.safetensors")
                hashes = self.ballast("hash", "--json", "dense.safetensors").json()["tensors"]
                self.assertEqual(hashes["s"], sha256(raw(sparse.to_dense())))


if __name__ == "__main__":
    unittest.main()
