"""ballast.safetensors.torch stands in for safetensors.torch 0.8."""

import collections
import json
import os
import pathlib
import struct

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: ./dev setup oracles installs it")

from ballast.safetensors import SafetensorError, safe_open  # noqa: E402
from ballast.safetensors import torch as st  # noqa: E402

DTYPES = sorted(st._TYPES)


def same(a, b):
    """Whether two tensors have the same bytes; some dtypes have no equality."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return a.numel() == 0 or torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def some(dtype):
    code = next(code for code, other in st._TYPES.items() if other == dtype)
    if code == "BOOL":
        return torch.tensor([[True, False], [False, True]])
    raw = torch.arange(4 * st._SIZE[dtype], dtype=torch.uint8)
    return raw.view(dtype).reshape(2, 2)


@pytest.mark.parametrize("code", DTYPES)
def test_every_dtype_of_this_torch_comes_back(tmp_path, code):
    tensor = some(st._TYPES[code])
    path = tmp_path / "x.safetensors"
    st.save_file({"a": tensor, "e": tensor[:0]}, path)
    assert path.read_bytes() == st.save({"a": tensor, "e": tensor[:0]})
    for back in (st.load(path.read_bytes()), *(st.load_file(path, backend=backend) for backend in ("mmap", "pread"))):
        assert same(back["a"], tensor) and same(back["e"], tensor[:0])
    with safe_open(path, "pt") as file:
        assert file.get_slice("a").get_dtype() == code
        assert same(file.get_slice("a")[1:], tensor[1:])


def test_tensors_are_views_of_a_private_map_with_storages_of_their_own(tmp_path):
    path = tmp_path / "x"
    st.save_file({"a": torch.arange(6.0), "b": torch.arange(3, dtype=torch.uint8)}, path)
    before = path.read_bytes()
    with safe_open(path, "pt") as file:
        one, two = file.get_tensor("a"), file.get_tensor("a")
    one[0] = 9
    assert two[0] == 9 and path.read_bytes() == before
    assert st.storage_size(one) == 24 and one.storage_offset() == 0
    os.remove(path)
    assert one[1:].tolist() == [1, 2, 3, 4, 5]


def test_data_that_are_not_aligned_are_read(tmp_path):
    header = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                         "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]}}).encode()  # fmt: skip
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(header)) + header + b"\7" + struct.pack("<ff", 1.5, 2.5))
    for backend in ("mmap", "pread"):
        assert st.load_file(tmp_path / "x", backend=backend)["b"].tolist() == [1.5, 2.5]


def test_slices_are_those_of_torch(tmp_path):
    tensor = torch.arange(24).reshape(4, 6)
    st.save_file({"a": tensor}, tmp_path / "x")
    with safe_open(tmp_path / "x", "pt") as file:
        rows = file.get_slice("a")
        for index in (0, -1, slice(1, 9), slice(None, None, 2), None, [0, 2], torch.tensor([3, 0]), (..., -1), (), []):
            assert torch.equal(rows[index], tensor[index])
        with pytest.raises(IndexError):
            rows[4]
    with safe_open(tmp_path / "x", "pt", backend="pread") as file:
        assert torch.equal(file.get_slice("a")[1:3, ::2], tensor[1:3, ::2])
        with pytest.raises(SafetensorError, match="index 8 out of bounds"):
            file.get_slice("a")[1:9]


def test_devices_are_given_as_texts_numbers_or_of_torch(tmp_path):
    st.save_file({"a": torch.zeros(2)}, tmp_path / "x")
    for device in ("cpu", None, torch.device("cpu")):
        assert st.load_file(tmp_path / "x", device=device)["a"].device == torch.device("cpu")
    if not torch.cuda.is_available():
        with safe_open(tmp_path / "x", "pt", "cuda:0") as file, pytest.raises((RuntimeError, AssertionError)):
            file.get_tensor("a")


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_dtypes_that_torch_cannot_show(tmp_path, backend):
    def write(dtype, shape, size):
        header = json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
        (tmp_path / "x").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
        return safe_open(tmp_path / "x", "pt", backend=backend)

    with pytest.raises(SafetensorError, match="^Dtype not understood: F6_E2M3$"):
        write("F6_E2M3", [4], 3).get_tensor("a")
    odd = write("F4", [2, 3], 3)
    assert odd.get_slice("a").get_shape() == [2, 3]
    with pytest.raises(SafetensorError, match=r"^f4_x2 dtype requires .* divisible by 2 in torch: got \[2, 3\]$"):
        odd.get_tensor("a")
    if not hasattr(torch, "float8_e4m3fn"):
        with pytest.raises(TypeError, match="has no dtype for F8_E4M3"):
            write("F8_E4M3", [2], 2).get_tensor("a")


# What save() refuses.


def refused(tensors, kind, text):
    with pytest.raises(kind) as error:
        st.save(tensors)
    assert str(error.value) == text


def test_only_dicts_of_dense_tensors_are_saved():
    a = torch.zeros(2)
    refused([a], ValueError, "Expected a dict of [str, torch.Tensor] but received <class 'list'>")
    refused({"a": 1}, ValueError, "Key `a` is invalid, expected torch.Tensor but received <class 'int'>")
    refused(
        {"a": torch.sparse_coo_tensor(size=(2, 3))},
        ValueError,
        "You are trying to save a sparse tensors: `['a']` which this library does not support. You can make it a dense "
        "tensor before saving with `.to_dense()` but be aware this might make a much larger file than needed.",
    )
    assert st.save(collections.OrderedDict(a=a)) == st.save({"a": torch.nn.Parameter(a)}) == st.save({"a": a})


def test_tensors_that_share_memory_are_refused():
    a = torch.zeros(4, 2)
    text = (
        "\n            Some tensors share memory, this will lead to duplicate memory on disk and potential differences "
        "when loading them again: %s.\n            A potential way to correctly save your model is to use `save_model`."
        "\n            More information at https://huggingface.co/docs/safetensors/torch_shared_tensors\n        "
    )
    refused({"a": a, "b": a[1:]}, RuntimeError, text % [{"a", "b"}])
    assert st.load(st.save({"a": a[:2], "b": a[2:]}))["b"].shape == (2, 2)


def test_tensors_that_are_not_contiguous_are_refused():
    refused(
        {"a": torch.zeros(2, 3).t()},
        ValueError,
        "You are trying to save a non contiguous tensor: `a` which is not allowed. It either means you are trying to "
        "save tensors which are reference of each other in which case it's recommended to save only the full tensors, "
        "and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving.",
    )


def test_dtypes_that_the_format_has_not_and_tensors_without_data():
    with pytest.raises(KeyError) as error:
        st.save({"a": torch.zeros(2, dtype=torch.complex128)})
    assert error.value.args == (torch.complex128,)
    with pytest.raises(NotImplementedError, match="^Cannot copy out of meta tensor; no data!$"):
        st.save({"a": torch.zeros(2, device="meta")})


def test_conjugates_are_saved_as_what_they_are():
    """The reference package writes the memory that a conjugate is a view of."""
    a = torch.tensor([1 + 2j], dtype=torch.complex64)
    assert st.load(st.save({"a": a.conj()}))["a"].tolist() == [1 - 2j]
    assert st.load(st.save({"a": a.conj().imag.contiguous()}))["a"].tolist() == [-2]


# Modules.


class Tied(torch.nn.Module):
    def __init__(self, tied=True):
        super().__init__()
        self.a = torch.nn.Linear(3, 3)
        self.b = self.a if tied else torch.nn.Linear(3, 3)


def test_a_module_that_shares_tensors_is_saved_once_and_loaded(tmp_path):
    model, other, path = Tied(), Tied(), tmp_path / "x"
    mine = {"a.bias": "kept", "b.bias": "mine"}
    st.save_model(model, path, mine)
    assert mine == {"a.bias": "kept", "b.bias": "mine"}
    with safe_open(path, "pt") as file:
        assert file.keys() == ["a.bias", "a.weight"]
        assert file.metadata() == {"a.bias": "kept", "b.bias": "mine", "b.weight": "a.weight"}
    assert st.load_model(other, path) == (set(), [])
    assert torch.equal(other.b.weight, model.a.weight)


def test_a_module_that_shares_nothing_has_no_metadata(tmp_path):
    st.save_model(torch.nn.Linear(2, 2), tmp_path / "x")
    with safe_open(tmp_path / "x", "pt") as file:
        assert file.metadata() is None


def test_what_a_module_and_a_file_do_not_share(tmp_path):
    st.save_model(Tied(), tmp_path / "tied")
    text = 'Error(s) in loading state_dict for Tied:\n    Missing key(s) in state_dict: "b.bias", "b.weight"'
    with pytest.raises(RuntimeError) as error:
        st.load_model(Tied(tied=False), tmp_path / "tied")
    assert str(error.value) == text
    assert st.load_model(Tied(tied=False), tmp_path / "tied", strict=False) == ({"b.bias", "b.weight"}, [])

    st.save_model(Tied(tied=False), tmp_path / "untied")
    with pytest.raises(RuntimeError) as error:
        st.load_model(Tied(), tmp_path / "untied")
    assert str(error.value).endswith('\n    Unexpected key(s) in state_dict: "b.bias", "b.weight"')
    with pytest.raises(RuntimeError, match="size mismatch"):
        st.load_model(torch.nn.Linear(2, 2), pathlib.Path(saved(torch.nn.Linear(3, 2), tmp_path)))


def saved(model, folder):
    st.save_model(model, folder / "model")
    return folder / "model"


def test_a_module_with_a_transposed_weight(tmp_path):
    model = torch.nn.Linear(3, 2)
    model.weight = torch.nn.Parameter(torch.zeros(3, 2).t())
    with pytest.raises(ValueError) as error:
        st.save_model(model, tmp_path / "x", force_contiguous=False)
    advice = " Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
    assert str(error.value).endswith("before saving." + advice)
    st.save_model(model, tmp_path / "x")


def test_names_of_shared_tensors():
    a = torch.zeros(4, 4)
    assert st._find_shared_tensors({"a": a, "b": a[1], "c": torch.zeros(1)}) == [{"a", "b"}, {"c"}]
    assert st._find_shared_tensors({"a": a[:2], "b": a[2:], "e": torch.zeros(0)}) == [{"a"}, {"b"}]
    assert st._find_shared_tensors({"m": torch.zeros(2, device="meta")}) == []
    names = {"b": a, "c": a, "part": a[0]}
    assert st._remove_duplicate_names(names) == {"b": ["c", "part"]}
    assert st._remove_duplicate_names(names, preferred_names={"c"}) == {"c": ["b", "part"]}
    assert st._remove_duplicate_names(names, discard_names={"b"}) == {"c": ["b", "part"]}
    with pytest.raises(RuntimeError, match=r"amongst: \{'part'\}\. None is covering the entire storage\.Refusing to"):
        st._remove_duplicate_names({"part": a[0]})
    assert st._is_complete(a) and not st._is_complete(a[:2])
    assert st.storage_ptr(a[1]) == a.data_ptr() and st.storage_size(a[1]) == 64
    assert st._end_ptr(a[::2, ::2]) - a.data_ptr() == (2 * 4 + 2 + 1) * 4
