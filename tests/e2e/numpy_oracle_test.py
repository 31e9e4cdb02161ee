"""What the command writes as .npz is loaded by NumPy itself and compared bit for bit.

Skipped (exit 77) if there is no NumPy.
"""

import random
import sys
import unittest
import zipfile

try:
    import numpy
except ImportError:
    print("NumPy is not installed")
    sys.exit(77)

from support import *

DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4",
    "F32": "<f4", "C64": "<c8", "F64": "<f8", "I64": "<i8", "U64": "<u8",
}


def random_array(generator):
    dtype = generator.choice(list(DTYPES))
    shape = [generator.choice([0, 1, 2, 3, 7, 20]) for _ in range(generator.randrange(5))]
    count = 1
    for dimension in shape:
        count *= dimension
    content = generator.randbytes(count * numpy.dtype(DTYPES[dtype]).itemsize)
    return dtype, shape, bytes(byte & 1 for byte in content) if dtype == "BOOL" else content


class NumPy(TestCase):
    def written(self, tensors):
        (self.folder / "in.safetensors").write_bytes(safetensors(tensors))
        self.ballast("convert", "in.safetensors", "out.npz", "--force", "--allow-empty")
        return self.folder / "out.npz"

    def expect_equal(self, path, tensors):
        with numpy.load(path, allow_pickle=False) as loaded:
            self.assertEqual(set(loaded.files), set(tensors))
            for name, (dtype, shape, content) in tensors.items():
                array = loaded[name]
                self.assertEqual((array.dtype.str, list(array.shape)), (DTYPES[dtype], shape), name)
                self.assertTrue(array.flags.c_contiguous, name)
                self.assertEqual(array.tobytes(), content, name)

    def test_random_arrays_are_equal_bit_for_bit(self):
        for seed in range(20):
            generator = random.Random(seed)
            tensors = {f"layer.{i}.weight": random_array(generator) for i in range(generator.randrange(40))}
            with self.subTest(seed=seed):
                path = self.written(tensors)
                self.expect_equal(path, tensors)
                with zipfile.ZipFile(path) as archive:
                    self.assertIsNone(archive.testzip())

    def test_names_are_kept_whatever_is_in_them(self):
        names = ["", " ", "a.b", "a/b", "größe", "重み", "\U0001F9CA", "tab\tnew\nline", "quote\"'", "x.npy", "0"]
        tensors = {name: ("U8", [1], bytes([i])) for i, name in enumerate(names)}
        self.expect_equal(self.written(tensors), tensors)

    def test_every_dtype_that_numpy_has_and_no_other(self):
        tensors = {dtype: (dtype, [2], bytes(2 * numpy.dtype(code).itemsize)) for dtype, code in DTYPES.items()}
        self.expect_equal(self.written(tensors), tensors)
        self.write("in.safetensors", {"w": ("BF16", [4], bytes(8))})
        self.refused("convert", "in.safetensors", "b.npz", code=UNSUPPORTED, says="BF16", hint="--dtype")
        self.ballast("convert", "in.safetensors", "b.npz", "--dtype", "F32")
        self.expect_equal(self.folder / "b.npz", {"w": ("F32", [4], bytes(16))})

    def test_numpy_and_we_write_the_same_checkpoint(self):
        arrays = {"a": numpy.arange(12, dtype="<f4").reshape(3, 4), "b": numpy.array(7, dtype="<i8")}
        numpy.savez(self.folder / "theirs.npz", **arrays)
        self.ballast("convert", "theirs.npz", "ours.npz")
        self.ballast("diff", "theirs.npz", "ours.npz")
        with numpy.load(self.folder / "ours.npz") as loaded:
            for name, array in arrays.items():
                self.assertTrue(numpy.array_equal(loaded[name], array))


if __name__ == "__main__":
    unittest.main()
