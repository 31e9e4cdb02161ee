"""Tensors: indexing, memory, and what NumPy, torch and others make of them."""

import gc
import os
import pathlib
import random

import numpy as np
import pytest

import ballast

DTYPES = ["?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16"]


def array_of(dtype, shape, seed=0):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(seed).integers(0, 2 if dtype == "?" else 256, size, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    state = {f"t{i}": array_of(dtype, (3, 4, 5), i) for i, dtype in enumerate(DTYPES) if dtype != "<c16"}
    ballast.save(state, path)
    return path, state


def test_every_dtype_of_numpy_comes_back_bit_for_bit(model):
    path, state = model
    for name, tensor in ballast.open(path).items():
        assert tensor.numpy().dtype == state[name].dtype
        assert tensor.numpy().tobytes() == state[name].tobytes() == tensor.tobytes()


def test_an_index_gives_what_numpy_gives_for_random_indices(tmp_path):
    array = np.arange(4 * 5 * 6).reshape(4, 5, 6).astype("<i4")
    ballast.save({"a": array}, tmp_path / "a.safetensors")
    tensor = ballast.open(tmp_path / "a.safetensors")["a"]
    rng = random.Random(1)

    def item(size):
        kind = rng.randrange(3)
        if kind == 0:
            return rng.randrange(-size, size)
        step = rng.choice([None, 1, 2, 3, -1, -2])
        return slice(rng.choice([None, *range(-size - 1, size + 2)]), rng.choice([None, *range(-size - 1, size + 2)]), step)

    for _ in range(2000):
        count = rng.randrange(0, 4)
        index = [item(array.shape[i]) for i in range(count)]
        if rng.random() < 0.4:
            at = rng.randrange(len(index) + 1)
            tail = [item(array.shape[3 - len(index) + at + i]) for i in range(len(index) - at)]
            index = [*index[:at], Ellipsis, *tail]
        for _ in range(rng.randrange(3)):
            index.insert(rng.randrange(len(index) + 1), None)
        index = tuple(index)
        assert np.array_equal(tensor[index].numpy(), array[index]), index
        assert tensor[index].shape == array[index].shape, index
        assert tensor[index].tolist() == array[index].tolist(), index


@pytest.mark.parametrize("index", [(4,), (-5,), (0, 0, 0, 0), (Ellipsis, Ellipsis)])
def test_an_index_that_is_not_there_is_an_index_error(tmp_path, index):
    ballast.save({"a": np.zeros((4, 5, 6), "f4")}, tmp_path / "a.safetensors")
    with pytest.raises(IndexError):
        ballast.open(tmp_path / "a.safetensors")["a"][index]


@pytest.mark.parametrize("index", [[0, 1], np.array([True, False]), "x", 1.0])
def test_a_list_or_a_mask_is_a_type_error_that_names_the_way_out(tmp_path, index):
    ballast.save({"a": np.zeros((4, 5), "f4")}, tmp_path / "a.safetensors")
    with pytest.raises(TypeError, match="numpy"):
        ballast.open(tmp_path / "a.safetensors")["a"][index]


def test_what_is_written_to_an_array_never_reaches_the_file(model):
    path, state = model
    before = path.read_bytes()
    checkpoint = ballast.open(path)
    array = checkpoint["t1"].numpy()
    array[:] = 0
    assert checkpoint["t1"].numpy()[0, 0, 0] == 0, "two arrays of one tensor share their memory"
    assert checkpoint["t1"].tobytes() == state["t1"].tobytes(), "Ballast itself reads the file"
    assert path.read_bytes() == before


def test_an_array_lives_on_after_the_checkpoint_is_closed_and_the_file_deleted(model):
    path, state = model
    with ballast.open(path) as checkpoint:
        tensor, array = checkpoint["t9"], checkpoint["t9"].numpy()
    os.remove(path)
    gc.collect()
    assert checkpoint.closed
    with pytest.raises(ValueError, match="closed"):
        checkpoint["t9"]
    assert array.tobytes() == state["t9"].tobytes() == tensor.tobytes()


def test_the_buffer_protocol_shows_shape_strides_and_format(model):
    path, _ = model
    view = memoryview(ballast.open(path)["t10"][:, ::2, 1])
    assert (view.format, view.shape, view.readonly) == ("f", (3, 2), False)
    assert view.strides == (4 * 5 * 4, 2 * 5 * 4)


def test_numpy_takes_a_tensor_by_dlpack_and_by_asarray(model):
    path, state = model
    tensor = ballast.open(path)["t10"]
    assert np.from_dlpack(tensor).tobytes() == state["t10"].tobytes()
    assert np.asarray(tensor[1]).tobytes() == state["t10"][1].tobytes()
    assert np.asarray(tensor, dtype="f8").dtype == np.float64


def test_a_capsule_that_nobody_takes_is_freed(model):
    path, _ = model
    for version in (None, (1, 0)):
        for _ in range(1000):
            ballast.open(path)["t10"].__dlpack__(max_version=version)


def test_a_dtype_that_numpy_has_not_is_a_type_error_that_names_the_ways_out(tmp_path):
    ballast.save({"a": np.ones((2, 2), "f4")}, tmp_path / "a.safetensors", dtype="BF16")
    tensor = ballast.open(tmp_path / "a.safetensors")["a"]
    assert tensor.dtype == "BF16"
    try:
        import ml_dtypes

        assert tensor.numpy().dtype == ml_dtypes.bfloat16
    except ImportError:
        for take in (tensor.numpy, lambda: np.asarray(tensor)):
            with pytest.raises(TypeError, match="ml_dtypes.*torch.*F32"):
                take()
    with pytest.raises(BufferError, match="U8"):
        memoryview(tensor)
    assert tensor.to("F32").numpy().tolist() == [[1, 1], [1, 1]] == tensor.tolist()
    assert tensor.bitcast("U8").shape == (2, 4)


def test_scalars_and_empty_tensors_are_what_they_are(tmp_path):
    state = {"s": np.float32(1.5), "e": np.zeros((0, 3), "i4"), "z": np.zeros((2, 0), "f8")}
    ballast.save(state, tmp_path / "a.safetensors")
    opened = ballast.open(tmp_path / "a.safetensors")
    assert opened["s"].shape == () and opened["s"].item() == 1.5 and opened["s"].numpy() == 1.5
    assert opened["e"].tolist() == [] and opened["z"].tolist() == [[], []]
    assert opened["e"].numpy().shape == (0, 3) and opened["z"].numpy().shape == (2, 0)
    assert bool(opened["s"])
    with pytest.raises(TypeError):
        len(opened["s"])


def test_a_tensor_cannot_be_pickled(model):
    import copy
    import pickle

    tensor = ballast.open(model[0])["t1"]
    for use in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="pickle"):
            use(tensor)


def test_a_tensor_says_where_its_bytes_lie(model):
    path, state = model
    file, offset = ballast.open(path)["t4"][1].location
    assert file == str(path)
    assert path.read_bytes()[offset : offset + 40] == state["t4"][1].tobytes()


def test_a_file_that_shrinks_is_an_exception_where_ballast_reads(tmp_path):
    path = tmp_path / "a.safetensors"
    ballast.save({"a": np.ones(1 << 20, "f4")}, path)
    tensor = ballast.open(path)["a"]
    os.truncate(path, 4096)
    with pytest.raises(ballast.Changed):
        tensor.tobytes()
    with pytest.raises(OSError):
        tensor.to("F64").numpy()


@pytest.mark.parametrize("first", ["faulthandler", "ballast"])
def test_faulthandler_and_ballasts_guard_live_together_in_either_order(tmp_path, first):
    import subprocess
    import sys

    path = tmp_path / "a.safetensors"
    ballast.save({"a": np.ones(1 << 18, "f4")}, path)
    enable = "import faulthandler; faulthandler.enable()"
    touch = f"import ballast; t = ballast.open({str(path)!r})['a']; t.tobytes()"
    code = "\n".join(
        [*([enable, touch] if first == "faulthandler" else [touch, enable])]
        + [f"import os; os.truncate({str(path)!r}, 4096)", "try:\n t.tobytes()\nexcept ballast.Changed: print('caught')"]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "caught\n", done.stderr
    # A crash that is not Ballast's is still faulthandler's to report.
    ballast.save({"a": np.ones(1 << 18, "f4")}, path, force=True)
    foreign = "\n".join(
        [*([enable, touch] if first == "faulthandler" else [touch, enable])]
        + ["t.tobytes()", "array = t.numpy()", f"import os; os.truncate({str(path)!r}, 4096)", "print(array.sum())"]
    )
    done = subprocess.run([sys.executable, "-c", foreign], capture_output=True, text=True, timeout=60)
    assert done.returncode == -7 and done.stderr.count("Bus error") == 1, done.stderr


def test_buffers_are_saved_without_numpy(tmp_path):
    import subprocess
    import sys

    code = f"""
import sys, array, ballast
sys.modules["numpy"] = sys.modules["torch"] = None
state = {{"f": array.array("f", [1, 2]), "q": array.array("l", [3]), "b": b"xyz",
         "s": memoryview(b"abcdef")[::2], "m": memoryview(bytes(range(6))).cast("B", [2, 3])}}
ballast.save(state, {str(tmp_path / "a.safetensors")!r})
opened = ballast.open({str(tmp_path / "a.safetensors")!r})
assert opened["f"].tolist() == [1, 2] and opened["q"].tolist() == [3] and opened["q"].dtype == "I64"
assert opened["b"].tobytes() == b"xyz" and opened["s"].tobytes() == b"ace"
assert opened["m"].tolist() == [[0, 1, 2], [3, 4, 5]]
try:
    ballast.save({{"x": 3}}, "x.safetensors")
except TypeError as error:
    assert "x: int" in str(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_any_producer_of_dlpack_is_saved(tmp_path):
    class Producer:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__()

    class Versioned(Producer):
        def __dlpack__(self, **options):
            return tensor.__dlpack__(**options)

    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    ballast.save({"t": array}, tmp_path / "t.safetensors")
    tensor = ballast.open(tmp_path / "t.safetensors")["t"]
    state = {"plain": Producer(array), "strided": Producer(array.transpose(2, 0, 1)[::2]), "new": Versioned(array)}
    ballast.save(state, tmp_path / "a.safetensors")
    opened = ballast.open(tmp_path / "a.safetensors")
    assert np.array_equal(opened["plain"].numpy(), array)
    assert np.array_equal(opened["strided"].numpy(), array.transpose(2, 0, 1)[::2])
    assert np.array_equal(opened["new"].numpy(), array)


# --- comparisons


def test_a_comparison_goes_element_by_element(tmp_path):
    array = np.arange(6, dtype="f4").reshape(2, 3)
    ballast.save({"a": array, "b": array[::-1].copy()}, tmp_path / "a.safetensors")
    opened = ballast.open(tmp_path / "a.safetensors")
    a, b = opened["a"], opened["b"]
    for other in (3, 3.0, np.float32(3), array[0], array.tolist(), np.ones((2, 1), "f4")):
        assert np.array_equal(a == other, array == np.asarray(other))
        assert np.array_equal(a != other, array != np.asarray(other))
        assert np.array_equal(other == a, np.asarray(other) == array)
    assert np.array_equal(a == b, array == array[::-1]) and np.array_equal(a < 3, array < 3)
    assert np.array_equal(a >= b, array >= array[::-1])
    assert (a == opened["a"]).all(), "two objects that stand for one tensor have equal values"
    assert (a == a).all()
    assert opened["a"][0, 0] == 0 and not opened["a"][0, 1] == 0


def test_a_comparison_never_is_a_silent_false(tmp_path):
    ballast.save({"a": np.ones((2, 3), "f4"), "n": np.full(1, np.nan, "f4")}, tmp_path / "a.safetensors")
    ballast.save({"a": np.ones((2, 3), "f4")}, tmp_path / "b.safetensors", dtype="BF16")
    a = ballast.open(tmp_path / "a.safetensors")["a"]
    with pytest.raises(ValueError, match="broadcast"):
        a == np.ones(4, "f4")
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a == a)
    with pytest.raises(ValueError, match="ambiguous"):
        {"a": a} == {"a": a[:]}
    n = ballast.open(tmp_path / "a.safetensors")["n"]
    assert not (n == n).any(), "NaN is not equal to itself"
    bf16 = ballast.open(tmp_path / "b.safetensors")["a"]
    try:
        import ml_dtypes  # noqa: F401

        assert (bf16 == 1).all()
    except ImportError:
        with pytest.raises(TypeError, match='t.to\\("F32"\\)'):
            bf16 == 1
    with pytest.raises(TypeError):
        a < "text"


def test_a_tensor_is_not_equal_to_what_is_no_tensor(tmp_path):
    ballast.save({"a": np.ones(3, "f4")}, tmp_path / "a.safetensors")
    a = ballast.open(tmp_path / "a.safetensors")["a"]
    for other in (None, "auto", b"x", {}, object()):
        assert (a == other) is False and (a != other) is True
    assert a not in (None, "auto")


def test_tensors_are_keys_of_dicts_by_their_identity(tmp_path):
    ballast.save({"a": np.ones(3, "f4"), "b": np.ones(3, "f4")}, tmp_path / "a.safetensors")
    opened = ballast.open(tmp_path / "a.safetensors")
    a, b = opened["a"], opened["b"]
    named = {a: "a", b: "b"}
    assert named[a] == "a" and named[b] == "b" and a in named and opened["a"] not in named
    assert a in [a, b] and len({a, b, a}) == 2


def test_a_tensor_is_compared_with_torchs_as_torch_does(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: ./dev setup oracles")
    given = torch.arange(4.0).to(torch.bfloat16)
    ballast.save({"a": given}, tmp_path / "a.safetensors")
    a = ballast.open(tmp_path / "a.safetensors")["a"]
    for got in (a == given, given == a):
        assert isinstance(got, torch.Tensor) and got.all()
    assert (a < torch.tensor(2.0)).tolist() == [True, True, False, False]


def test_without_numpy_a_comparison_names_the_way_out(tmp_path):
    import subprocess
    import sys

    ballast.save({"a": np.ones(3, "f4")}, tmp_path / "a.safetensors")
    code = f"""
import sys, ballast
sys.modules["numpy"] = sys.modules["torch"] = None
a = ballast.open({str(tmp_path / "a.safetensors")!r})["a"]
try:
    a == 3
except TypeError as error:
    assert "t.tolist()" in str(error), error
else:
    raise SystemExit("no error")
assert (a == None) is False and a in {{a: 1}}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_checkpoints_are_compared_by_diff_and_not_in_silence(model):
    path, _ = model
    one, two = ballast.open(path), ballast.open(path)
    assert one == one and one in {one: 1} and (one == None) is False  # noqa: E711
    for other in (two, dict(two)):
        with pytest.raises(TypeError, match="ballast.diff"):
            one == other
        with pytest.raises(TypeError, match="ballast.diff"):
            other != one
    assert ballast.diff(one, two).equal


FLOATS = ["F16", "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2"]
INTEGERS = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "i2", "U16": "u2", "I32": "i4", "U32": "u4", "I64": "i8", "U64": "u8"}


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_of_every_dtype_become_lists(tmp_path, dtype):
    ballast.save({"a": np.array([[0, 1.5], [-2, 0.25]], "f4")}, tmp_path / "a.safetensors")
    made = ballast.open(tmp_path / "a.safetensors")["a"].to(dtype)
    assert made.dtype == dtype and made.tolist() == [[0, 1.5], [-2, 0.25]] and made[1, 0].item() == -2


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_every_dtype_become_lists(tmp_path, dtype):
    ballast.save({"a": np.array([0, 1], INTEGERS[dtype])}, tmp_path / "a.safetensors")
    made = ballast.open(tmp_path / "a.safetensors")["a"]
    assert made.dtype == dtype and made.tolist() == [0, 1]


def test_a_quantized_checkpoint_opens_as_its_numbers():
    folder = pathlib.Path(__file__).parents[2] / "tests/vectors/quantized/awq-gemm-g32"
    name = "model.layers.0.self_attn.q_proj.weight"
    assert name not in ballast.open(folder / "in")
    weight = ballast.open(folder / "in", dequantize=True)[name]
    assert weight.dtype == "F16" and weight.tolist() == ballast.open(folder / "expected.safetensors")[name].tolist()
