"""Dtypes that only newer releases of torch have, with a stand-in for torch: what is installed may be older."""

import sys
import types

import numpy as np
import pytest

import ballast

NEWER = {
    "F8_E4M3": ("float8_e4m3fn", "2.1"),
    "F8_E5M2": ("float8_e5m2", "2.1"),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", "2.2"),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", "2.2"),
    "F8_E8M0": ("float8_e8m0fnu", "2.7"),
    "F4": ("float4_e2m1fn_x2", "2.8"),
}


class DType:
    def __init__(self, name, numpy):
        self.name, self.numpy = name, numpy

    def __repr__(self):
        return "torch." + self.name


class Tensor:
    """As much of a tensor as Ballast asks for: bytes of NumPy's, and the name of a dtype."""

    layout = "strided"

    def __init__(self, array, dtype, device="cpu"):
        self.array, self.dtype, self.device = array, dtype, device

    shape = property(lambda self: self.array.shape)

    def reshape(self, shape):
        return Tensor(self.array.reshape(shape), self.dtype)

    def as_strided(self, shape, strides):
        steps = [step * self.array.itemsize for step in strides]
        return Tensor(np.lib.stride_tricks.as_strided(self.array, shape, steps), self.dtype)

    def view(self, dtype):
        return Tensor(self.array.view(dtype.numpy), dtype)

    def to(self, device):
        return Tensor(self.array, self.dtype, device)

    def clone(self):
        return Tensor(self.array.copy(), self.dtype)

    # For saving.
    detach = resolve_conj = resolve_neg = contiguous = lambda self: self
    numel = lambda self: self.array.size  # noqa: E731
    element_size = lambda self: self.array.itemsize  # noqa: E731
    data_ptr = lambda self: self.array.ctypes.data  # noqa: E731


def stand_in(version, names):
    torch = types.ModuleType("torch")
    torch.__version__, torch.Tensor, torch.strided, torch.dtype = version, Tensor, "strided", DType
    torch.layout = torch.memory_format = type("Other", (), {})
    plain = {"uint8": "u1", "float32": "f4", **{name: "u1" for name in names}}
    for name, letters in plain.items():
        setattr(torch, name, DType(name, letters))
    torch.frombuffer = lambda memory, dtype, offset=0: Tensor(np.frombuffer(memory, dtype.numpy, offset=offset), dtype)
    torch.empty = lambda shape, dtype, device="cpu": Tensor(np.empty(shape, dtype.numpy), dtype, device)
    return torch


@pytest.fixture
def newer(monkeypatch):
    torch = stand_in("2.14.1", [name for name, _ in NEWER.values()])
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


@pytest.fixture
def older(monkeypatch):
    torch = stand_in("1.13.0", [])
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def saved(folder, code, ending="safetensors"):
    """A file with a tensor of the dtype, [3, 8], whose bytes count up."""
    raw = np.arange(3 * (4 if code == "F4" else 8), dtype="u1").reshape(3, -1)
    ballast.save({"raw": raw}, folder / "raw.safetensors", force=True)
    tensor = ballast.open(folder / "raw.safetensors")["raw"].bitcast(code)
    assert tensor.shape == (3, 8)
    path = folder / f"a.{ending}"
    ballast.save({"a": tensor}, path)
    return path, raw


@pytest.mark.parametrize("code", NEWER)
def test_a_newer_dtype_goes_to_torch_as_it_is_and_comes_back(tmp_path, newer, code):
    path, raw = saved(tmp_path, code)
    tensor = ballast.open(path)["a"]
    made = tensor.torch()
    assert made.dtype is getattr(newer, NEWER[code][0])
    assert made.array.tobytes() == raw.tobytes() and made.shape == raw.shape
    assert tensor[1:].torch().array.tobytes() == raw[1:].tobytes()
    ballast.save({"a": made}, tmp_path / "b.safetensors")
    again = ballast.open(tmp_path / "b.safetensors")["a"]
    assert (again.dtype, again.shape, again.tobytes()) == (code, (3, 8), raw.tobytes())


@pytest.mark.parametrize("code", NEWER)
@pytest.mark.parametrize("ending", ["safetensors", "pt"])
def test_load_gives_a_newer_dtype_to_a_torch_that_has_it(tmp_path, newer, code, ending):
    path, raw = saved(tmp_path, code, ending)
    for options in ({}, {"mmap": False}):
        made = ballast.load(path, **options)["a"]
        assert made.dtype is getattr(newer, NEWER[code][0]) and made.array.tobytes() == raw.tobytes()
    meta = ballast.load(path, map_location="meta")["a"]
    assert (meta.device, meta.shape) == ("meta", raw.shape)


@pytest.mark.parametrize("code", NEWER)
def test_an_older_torch_is_told_which_release_has_the_dtype_and_what_to_do(tmp_path, older, code):
    path, raw = saved(tmp_path, code)
    name, since = NEWER[code]
    tensor = ballast.open(path)["a"]
    with pytest.raises(TypeError) as caught:
        tensor.torch()
    for words in ("1.13.0", f"torch.{name} came with torch {since}", 't.to("F32").torch()', 't.bitcast("U8").torch()'):
        assert words in str(caught.value)
    assert tensor.to("F32").torch().shape == (3, 8)
    assert tensor.bitcast("U8").torch().array.tobytes() == raw.tobytes()
    kept = ballast.load(path)["a"]
    assert isinstance(kept, ballast.Tensor) and kept.dtype == code, "what torch has no dtype for stays Ballast's"


def test_a_dtype_that_no_torch_has_names_the_ways_out(tmp_path, newer):
    ballast.save({"a": np.ones((2, 256), "f4")}, tmp_path / "a.gguf", dtype="Q4_K")
    with pytest.raises(TypeError, match=r'Q4_K; t\.to\("F32"\)'):
        ballast.open(tmp_path / "a.gguf")["a"].torch()


def test_an_odd_number_of_f4_values_has_no_place_in_torch(tmp_path, newer):
    path, _ = saved(tmp_path, "F4")
    with pytest.raises(TypeError, match="not even"):
        ballast.open(path)["a"].reshape(8, 3).torch()


def test_a_mistake_in_map_location_is_not_taken_for_a_dtype_that_is_missing(tmp_path, newer):
    path, _ = saved(tmp_path, "F8_E8M0")

    def wrong(storage, location):
        raise TypeError("a mistake of the caller's")

    Tensor.untyped_storage = lambda self: self
    try:
        with pytest.raises(TypeError, match="a mistake"):
            ballast.load(path, map_location=wrong)
    finally:
        del Tensor.untyped_storage
