"""ballast.safetensors stands in for safetensors 0.8: its results, its sentences, and what it does better."""

import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import pytest

import ballast
from ballast.safetensors import (
    SafetensorError,
    TensorSpec,
    _safe_open_handle,
    deserialize,
    safe_open,
    serialize,
    serialize_file,
)

np = pytest.importorskip("numpy", reason="NumPy is not installed")
from ballast.safetensors import numpy as st  # noqa: E402

FOUR_BY_SIX = np.arange(24, dtype=np.int64).reshape(4, 6)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "model.safetensors")
    st.save_file({"b": np.float32(7), "a": FOUR_BY_SIX, "e": np.zeros((0, 3), np.float16)}, path, {"k": "v"})
    return path


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def spec_of(array, **others):
    fields = {"dtype": array.dtype.name, "shape": array.shape, "data_ptr": array.ctypes.data, "data_len": array.nbytes}
    return TensorSpec(**{**fields, **others})


def is_installed(name):
    return find_spec(name) is not None


def raises(kind, text):
    """pytest.raises with the whole text."""

    class Exactly:
        def __enter__(self):
            self.context = pytest.raises(kind)
            self.info = self.context.__enter__()
            return self.info

        def __exit__(self, *what):
            done = self.context.__exit__(*what)
            assert str(self.info.value) == text
            return done

    return Exactly()


# What it costs to import.


def test_importing_it_imports_neither_numpy_nor_torch():
    folder = str(pathlib.Path(ballast.__file__).parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {folder!r}); import ballast.safetensors; "
        "print([name for name in ('numpy', 'torch', 'json', 'typing') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-S", "-E", "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert out.strip() == "[]"


# Writing.


def test_the_bytes_are_those_of_the_reference_package():
    ones, two = np.ones((1, 2), np.int32), np.array(2, np.int32)
    arrays = {"z": np.zeros(2, np.uint8), "b": ones, "a": two, "h": np.zeros(0, np.float16)}
    text = (
        b'{"__metadata__":{"format":"pt"},'
        b'"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"I32","shape":[1,2],"data_offsets":[4,12]},'
        b'"h":{"dtype":"F16","shape":[0],"data_offsets":[12,12]},"z":{"dtype":"U8","shape":[2],"data_offsets":[12,14]}}'
    )
    text += b" " * (-len(text) % 8)
    data = struct.pack("<iii", 2, 1, 1) + b"\0\0"
    assert st.save(arrays, {"format": "pt"}) == struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "metadata, text",
    [
        (None, b"{}      "),
        ({}, b'{"__metadata__":{}}     '),
        ({"b": "1", "a": "2"}, b'{"__metadata__":{"a":"2","b":"1"}}      '),
    ],
)
def test_a_file_without_tensors_is_a_file(tmp_path, metadata, text):
    assert st.save({}, metadata) == struct.pack("<Q", len(text)) + text
    st.save_file({}, tmp_path / "none", metadata)
    assert (tmp_path / "none").read_bytes() == st.save({}, metadata)
    with safe_open(tmp_path / "none", "np") as file:
        assert file.metadata() == metadata
        assert file.keys() == [] and file.get_tensors() == {}


def test_empty_metadata_before_tensors_shift_the_data():
    data = st.save({"a": np.array([5], np.uint8)}, {})
    assert data[8:].startswith(b'{"__metadata__":{},"a":{')
    assert st.load(data)["a"].tolist() == [5]


def test_bytes_and_file_are_the_same_whatever_the_file_is_called(tmp_path):
    arrays = {"a": FOUR_BY_SIX, "b": np.float32(1)}
    for name in ("x", "x.pt", "x.bin", "model.safetensors"):
        st.save_file(arrays, tmp_path / name)
        assert (tmp_path / name).read_bytes() == st.save(arrays)
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.parametrize("dtype", "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8".split())
def test_every_dtype_of_numpy_comes_back(tmp_path, dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    st.save_file({"a": array}, tmp_path / "x")
    from_file = [st.load_file(tmp_path / "x", backend=backend)["a"] for backend in ("mmap", "pread")]
    for back in (st.load(st.save({"a": array}))["a"], *from_file):
        assert back.dtype == array.dtype and back.tolist() == array.tolist() and back.flags.writeable


def test_arrays_are_saved_as_they_look():
    """The reference package writes the memory of an array that is not contiguous in the wrong order."""
    arrays = {"transposed": FOUR_BY_SIX.T, "backwards": FOUR_BY_SIX[::-1, ::2], "big": FOUR_BY_SIX.astype(">i8")}
    back = st.load(st.save(arrays))
    for name, array in arrays.items():
        assert back[name].tolist() == array.tolist()


def test_a_file_gets_the_mode_that_the_umask_says(tmp_path):
    old = os.umask(0o027)
    try:
        st.save_file({}, tmp_path / "x")
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_saving_over_a_file_leaves_its_tensors_alone(path):
    before = st.load_file(path)
    st.save_file({"a": before["a"] + 1}, path)
    assert before["a"].tolist() == FOUR_BY_SIX.tolist()
    assert st.load_file(path)["a"].tolist() == (FOUR_BY_SIX + 1).tolist()


def test_saving_one_shard_leaves_the_others_alone(tmp_path):
    names = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    for name in names:
        st.save_file({name: FOUR_BY_SIX}, tmp_path / name)
    weight_map = {name: name for name in names}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    st.save_file({names[0]: FOUR_BY_SIX}, tmp_path / names[0])
    st.save_file({"a": FOUR_BY_SIX}, tmp_path / "model.safetensors")
    assert sorted(os.listdir(tmp_path)) == [*names, "model.safetensors", "model.safetensors.index.json"]


def test_other_threads_run_while_a_file_is_written(tmp_path):
    array = np.zeros(64 << 20, np.uint8)
    ticks, done = [], threading.Event()

    def count():
        while not done.wait(0.0005):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=count)
    thread.start()
    try:
        begin = time.perf_counter()
        serialize_file({"a": spec_of(array)}, tmp_path / "x")
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
    # Before and after the call the interpreter may let the other thread run once, even if the call kept its lock.
    assert sum(begin < tick < end for tick in ticks) > 3


def test_what_cannot_be_written(tmp_path):
    array = np.zeros(2, np.float32)
    wrong = "Error while serializing: invalid shape, data type, or offset for tensor"
    for others in ({"shape": [3]}, {"shape": [1]}, {"data_len": 4}, {"shape": [2**32, 2**32]}, {"shape": [2**70]}):
        with raises(SafetensorError, wrong):
            serialize({"a": spec_of(array, **others)})
    with raises(SafetensorError, 'Error while serializing: tensor "a" has 8 bytes at address 0'):
        serialize({"a": spec_of(array, data_ptr=0)})
    with raises(TypeError, "argument 'tensor_dict': 'dict' object is not an instance of 'TensorSpec'"):
        serialize({"a": {"dtype": "float32", "shape": [2], "data_ptr": 1, "data_len": 8}})
    with raises(TypeError, "argument 'tensor_dict': 'int' object is not an instance of 'str'"):
        serialize({1: spec_of(array)})
    with raises(TypeError, "argument 'metadata': 'int' object is not an instance of 'str'"):
        serialize({}, {"a": 1})
    with raises(TypeError, "argument 'filename': 'bytes' object is not an instance of 'str'"):
        serialize_file({}, b"x")
    missing = tmp_path / "nope" / "x"
    text = f'Error while serializing: I/O error: No such file or directory (os error 2) at path "{missing}"'
    with raises(SafetensorError, text):
        serialize_file({}, missing)
    with raises(AttributeError, "'list' object has no attribute 'items'"):
        st.save([])
    with pytest.raises(SafetensorError, match='^Unknown dtype "str32". Supported dtypes: bool, int8, '):
        st.save({"a": np.array(["x"])})


def test_a_tensor_called_metadata_is_refused():
    """The reference package writes a file that nobody can read."""
    with raises(SafetensorError, 'Error while serializing: safetensors cannot store a tensor called "__metadata__"'):
        st.save({"__metadata__": FOUR_BY_SIX})


def test_a_spec_says_what_it_was_given():
    spec = TensorSpec(dtype="float32", shape=(2,), data_ptr=1, data_len=8)
    assert (spec.dtype, spec.shape, spec.data_ptr, spec.data_len) == ("F32", [2], 1, 8)
    assert repr(spec) == "TensorSpec(dtype='F32', shape=[2], data_ptr=1, data_len=8)"
    with pytest.raises(AttributeError):
        spec.dtype = "F64"
    with pytest.raises(TypeError):
        TensorSpec("float32", [2], 1, 8)
    assert TensorSpec(dtype="float4_e2m1fn_x2", shape=[2, 3], data_ptr=1, data_len=6).shape == [2, 6]
    words = (
        "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, "
        "float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn_x2, complex64"
    )
    with raises(SafetensorError, f'Unknown dtype "F32". Supported dtypes: {words}'):
        TensorSpec(dtype="F32", shape=[2], data_ptr=1, data_len=8)


# Reading.


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_a_file_gives_its_names_metadata_and_tensors(path, backend):
    with safe_open(path, "np", backend=backend) as file:
        assert file.keys() == ["a", "b", "e"]
        assert file.offset_keys() == ["a", "b", "e"]
        assert file.metadata() == {"k": "v"}
        assert file.get_tensor("a").tolist() == FOUR_BY_SIX.tolist()
        assert file.get_tensor("b").shape == () and file.get_tensor("e").shape == (0, 3)
        assert list(file.get_tensors()) == file.offset_keys()


def test_names_are_sorted_by_text_or_by_offset(tmp_path):
    st.save_file({"a": np.zeros(1, np.uint8), "b": np.zeros(1, np.float64)}, tmp_path / "x")
    with safe_open(tmp_path / "x", "np") as file:
        assert (file.keys(), file.offset_keys(), file.metadata()) == (["a", "b"], ["b", "a"], None)


def test_arrays_are_views_of_a_private_map(path):
    before = pathlib.Path(path).read_bytes()
    with safe_open(path, "np") as file:
        one, two, rows = file.get_tensor("a"), file.get_tensor("a"), file.get_slice("a")[1:3, ::2]
    one[1, 0] = 99
    assert two[1, 0] == 99 and rows[0, 0] == 99 and np.shares_memory(one, rows)
    assert pathlib.Path(path).read_bytes() == before
    os.remove(path)
    assert one[3].tolist() == FOUR_BY_SIX[3].tolist()


def test_pread_gives_memory_of_its_own(path):
    with safe_open(path, "np", backend="pread") as file:
        one, two = file.get_tensor("a"), file.get_tensor("a")
    one[0, 0] = 99
    assert two[0, 0] == 0


def test_after_the_end_of_with_a_file_is_closed(path):
    with safe_open(path, "np") as file:
        rows = file.get_slice("a")
    for call in (file.keys, file.offset_keys, file.metadata, file.get_tensors, lambda: file.get_tensor("a")):
        with raises(SafetensorError, "File is closed"):
            call()
    assert rows[1:2].tolist() == FOUR_BY_SIX[1:2].tolist()


def test_what_cannot_be_opened(tmp_path, path):
    with raises(FileNotFoundError, "No such file or directory: nope"):
        safe_open("nope", "np")
    with raises(OSError, "No such device (os error 19)"):
        safe_open(tmp_path, "np")
    with raises(TypeError, "safe_open.__new__() missing 1 required positional argument: 'framework'"):
        safe_open(path)
    with raises(SafetensorError, "framework xx is invalid"):
        safe_open(path, "xx")
    with pytest.raises(TypeError):
        safe_open(path, None)
    with raises(TypeError, "argument 'filename': 'bytes' object is not an instance of 'str'"):
        safe_open(os.fsencode(path), "np")
    with raises(SafetensorError, 'backend "x" is invalid (expected one of: "mmap", "pread")'):
        safe_open(path, "np", backend="x")


@pytest.mark.skipif(is_installed("tensorflow"), reason="TensorFlow is installed")
def test_other_frameworks_are_imported_with_the_first_tensor(path):
    with safe_open(path, "tf") as file, raises(ModuleNotFoundError, "No module named 'tensorflow'"):
        file.get_tensor("a")


@pytest.mark.parametrize(
    "device, kind, text",
    [
        ("meta", SafetensorError, "device meta is invalid"),
        (-1, SafetensorError, "device -1 is invalid"),
        ("mps:1", SafetensorError, "device mps:1 is invalid: only mps or mps:0 is supported"),
        ("cuda:x", ValueError, "invalid digit found in string"),
        ("cuda", SafetensorError, "Device cuda:0 is not supported for framework numpy"),
        ("npu:3", SafetensorError, "Device npu:3 is not supported for framework numpy"),
        (2, SafetensorError, "Device 2 is not supported for framework numpy"),
    ],
)
def test_devices_that_numpy_has_not(path, device, kind, text):
    with raises(kind, text):
        safe_open(path, "np", device)
    assert safe_open(path, "np", None).keys()


def test_a_name_that_is_not_there(path):
    with safe_open(path, "np") as file:
        for get in (file.get_tensor, file.get_slice):
            with raises(SafetensorError, "File does not contain tensor zzz"):
                get("zzz")
            with raises(TypeError, "argument 'name': 'int' object is not an instance of 'str'"):
                get(1)
        with raises(TypeError, "cannot pickle 'builtins.safe_open' object"):
            pickle.dumps(file)


def test_a_file_object_is_opened_by_its_name(path):
    with open(path, "rb") as named, _safe_open_handle(named, "np") as file:
        assert file.keys() == ["a", "b", "e"]
    with os.fdopen(os.open(path, os.O_RDONLY), "rb") as numbered, _safe_open_handle(numbered, framework="np") as file:
        assert file.keys() == ["a", "b", "e"]


def test_removed_names_stay_in_the_metadata(tmp_path):
    """ballast.open() gives such names back; the reference package does not."""
    st.save_file({"a": FOUR_BY_SIX}, tmp_path / "x.safetensors", {"b": "a"})
    with safe_open(tmp_path / "x.safetensors", "np") as file:
        assert (file.keys(), file.metadata()) == (["a"], {"b": "a"})
    assert list(ballast.open(tmp_path / "x.safetensors")) == ["a", "b"]


def test_compressed_tensors_are_read_as_what_they_were(tmp_path):
    ballast.save({"a": np.zeros(1 << 20, np.float32)}, tmp_path / "x.safetensors", compress=True)
    assert (tmp_path / "x.safetensors").stat().st_size < 1 << 20
    for backend in ("mmap", "pread"):
        back = st.load_file(tmp_path / "x.safetensors", backend=backend)["a"]
        assert back.dtype == np.float32 and back.shape == (1 << 20,) and not back.any()


@pytest.mark.skipif(is_installed("ml_dtypes"), reason="ml_dtypes is installed")
def test_numpy_has_no_bfloat16_by_itself():
    data = file_of({"a": entry("BF16", offsets=(0, 4))}, b"\x80\x3f\x80\x3f")
    with pytest.raises(TypeError, match="NumPy has no BF16"):
        st.load(data)
    assert deserialize(data) == [("a", {"shape": [2], "dtype": "BF16", "data": bytearray(b"\x80\x3f\x80\x3f")})]


def test_deserialize_copies_into_bytearrays():
    data = st.save({"a": np.arange(3, dtype=np.uint8)})
    ((name, tensor),) = deserialize(data)
    assert (name, tensor) == ("a", {"shape": [3], "dtype": "U8", "data": bytearray(b"\0\1\2")})
    tensor["data"][0] = 9
    assert deserialize(bytearray(data)) == deserialize(memoryview(data)) == deserialize(data) != [(name, tensor)]
    with raises(TypeError, "argument 'bytes': 'str' object is not an instance of 'bytes'"):
        deserialize("x")


# Slices.


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("index", [
    0, -1, True, np.int64(1), slice(None), slice(1, 3), slice(0, 0), slice(None, None, 2), ..., (0, ...), (), [],
    (slice(None), 2), (slice(2, None), -6), (..., 1), (1, 2), slice(-2, None), slice(3, 1), slice(None, None, -1),
], ids=repr)  # fmt: skip
def test_slices_are_those_of_numpy(path, backend, index):
    with safe_open(path, "np", backend=backend) as file:
        rows = file.get_slice("a")
        assert (rows.get_shape(), rows.get_dtype()) == ([4, 6], "I64")
        got = rows[index]
    expected = FOUR_BY_SIX[1 if index is True else index]
    assert got.shape == expected.shape and got.tolist() == expected.tolist()


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("index, text", [
    (-5, "Invalid index -5 for dimension 0 of size 4"),
    ((..., -7), "Invalid index -7 for dimension 1 of size 6"),
    (4, "Error during slicing [4] with shape [4, 6]: index 4 out of bounds for tensor dimension #0 of size 4"),
    ((slice(2, None), 20),
     "Error during slicing [2:, 20] with shape [4, 6]: index 20 out of bounds for tensor dimension #1 of size 6"),
    (slice(1, 9),
     "Error during slicing [1:9] with shape [4, 6]: index 8 out of bounds for tensor dimension #0 of size 4"),
    ((slice(None), slice(None, 20)),
     "Error during slicing [:, :20] with shape [4, 6]: index 19 out of bounds for tensor dimension #1 of size 6"),
    (slice(4, 4),
     "Error during slicing [4:4] with shape [4, 6]: index 4 out of bounds for tensor dimension #0 of size 4"),
    ((0, 0, 0), "Error during slicing [0, 0, 0] with shape [4, 6]: more slicing indexes than dimensions in tensor"),
    (None, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    ((0, 1.0), "Unsupported slice index at position 1: expected slice, int, or ellipsis"),
    ("x", "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    (np.ones(4, bool), "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    ([0, 1], "Non empty lists are not implemented"),
], ids=repr)  # fmt: skip
def test_slices_that_are_refused(path, backend, index, text):
    with safe_open(path, "np", backend=backend) as file, raises(SafetensorError, text):
        file.get_slice("a")[index]


def test_slices_of_scalars_and_of_nothing(path):
    with safe_open(path, "np") as file:
        assert file.get_slice("b")[()] == 7
        assert file.get_slice("e")[:].shape == (0, 3)
        too_many = "more slicing indexes than dimensions in tensor"
        with raises(SafetensorError, f"Error during slicing [:] with shape []: {too_many}"):
            file.get_slice("b")[:]


# Files that are wrong.

SUBBYTES = (
    "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, this is invalid."
)
OVERFLOW = "overflow computing buffer size from shape and/or element type"
WRONG = {
    "header too small": b"abc",
    "header too large": file_of(b"{}", length=100_000_001),
    "invalid header length": file_of(b"{}", length=3),
    "invalid UTF-8 in header: ": file_of(b'{"\xff":1}'),
    "invalid JSON in header: ": file_of(b'{"a"}'),
    "invalid JSON in header: unknown dtype": file_of({"a": entry("F33")}, bytes(8)),
    "invalid JSON in header: missing field `shape`": file_of({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)),
    "invalid JSON in header: `__metadata__` is no object of texts": file_of({"__metadata__": {"a": 1}}),
    "invalid offset for tensor `a`": file_of({"a": entry(offsets=(1, 9))}, bytes(9)),
    "invalid shape, data type, or offset for tensor": file_of({"a": entry(shape=[3])}, bytes(8)),
    OVERFLOW: file_of({"a": entry(shape=[2**33, 2**33])}, bytes(8)),
    "incomplete metadata, file not fully covered": file_of({"a": entry()}, bytes(7)),
    "incomplete metadata, file not fully covered ": file_of({"a": entry()}, bytes(9)),
    SUBBYTES: file_of({"a": entry("F4", [3], (0, 1))}, bytes(1)),
    # The reference package takes the last of two.
    'tensor "a" is there twice': file_of(b'{"a":%(e)s,"a":%(e)s}' % {b"e": json.dumps(entry()).encode()}, bytes(8)),
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_file_is_refused_in_the_words_of_the_reference_package(tmp_path, reason):
    (tmp_path / "x").write_bytes(WRONG[reason])
    with pytest.raises(SafetensorError) as from_file:
        safe_open(tmp_path / "x", "np")
    with pytest.raises(SafetensorError) as from_bytes:
        deserialize(WRONG[reason])
    assert str(from_file.value).startswith(f"Error while deserializing header: {reason.rstrip()}")
    assert str(from_bytes.value).startswith(f"Error while deserializing: {reason.rstrip()}")
    assert isinstance(from_file.value.__cause__, ballast.Error) and from_file.value.where == str(tmp_path / "x")


def test_a_checkpoint_of_another_format_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", FOUR_BY_SIX)
    with pytest.raises(SafetensorError, match="header too large") as error:
        st.load_file(tmp_path / "x.npy")
    assert "is not a safetensors file" in str(error.value.__cause__)


def test_the_error_can_be_pickled_and_caught_as_any_of_ballast():
    error = pickle.loads(pickle.dumps(SafetensorError("text")))
    assert (type(error), str(error), error.code) == (SafetensorError, "text", None)
    assert issubclass(SafetensorError, ballast.Error) and SafetensorError.__module__ == "ballast.safetensors"


# Many at once.


def test_many_threads_read_one_file(path):
    wrong = []
    with safe_open(path, "np") as file:

        def read():
            for _ in range(200):
                if file.get_slice("a")[2:].sum() != FOUR_BY_SIX[2:].sum() or file.keys() != ["a", "b", "e"]:
                    wrong.append(1)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_opening_and_saving_many_times_leaks_nothing(path):
    resource = pytest.importorskip("resource")

    def use(count):
        for _ in range(count):
            array = st.load_file(path)["a"]
            st.load(st.save({"a": array}))
        return len(os.listdir("/proc/self/fd")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    descriptors, kilobytes = use(200)
    more_descriptors, more_kilobytes = use(3000)
    assert more_descriptors == descriptors
    assert more_kilobytes - kilobytes < 1024
