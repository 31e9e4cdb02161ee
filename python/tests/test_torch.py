"""What torch gets, and what torch gives."""

import numpy as np
import pytest

import ballast

torch = pytest.importorskip("torch", reason="torch is not installed: ./dev setup oracles")

DTYPES = [
    getattr(torch, name)
    for name in (
        "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 complex64 "
        "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
    ).split()
    if hasattr(torch, name)
]


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.dtype != torch.bool else tensor.numpy().tobytes()


def tensor_of(dtype, shape):
    size = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
    bytes_ = np.random.default_rng(3).integers(0, 2 if dtype == torch.bool else 256, size, dtype=np.uint8)
    return torch.frombuffer(bytearray(bytes_.tobytes()), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("ending", ["safetensors", "pt"])
def test_every_dtype_of_torch_comes_back_bit_for_bit(tmp_path, dtype, ending):
    path = tmp_path / f"a.{ending}"
    given = tensor_of(dtype, (4, 6))
    ballast.save({"a": given, "b": given.t()}, path)
    opened = ballast.open(path)
    for name, want in (("a", given), ("b", given.t())):
        got = opened[name].torch()
        assert got.dtype == dtype and got.shape == want.shape and raw(got) == raw(want)
    view = opened["a"][1:3, ::2].torch()
    assert raw(view) == raw(given[1:3, ::2])


def test_torch_shares_the_memory_of_one_file_and_may_write_to_it(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.zeros(8)}, path)
    before = path.read_bytes()
    opened = ballast.open(path)
    opened["a"].torch()[:] = 1
    assert opened["a"].torch().sum() == 8
    assert path.read_bytes() == before


def test_from_dlpack_takes_a_tensor(tmp_path):
    ballast.save({"a": torch.arange(6, dtype=torch.float32).reshape(2, 3)}, tmp_path / "a.safetensors")
    got = torch.from_dlpack(ballast.open(tmp_path / "a.safetensors")["a"])
    assert got.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_parameters_conjugates_and_gradients_are_saved_as_their_values(tmp_path):
    state = {
        "p": torch.nn.Parameter(torch.ones(2)),
        "c": torch.tensor([1 + 2j]).conj(),
        "n": torch.ones(3)[::2],
    }
    ballast.save(state, tmp_path / "a.safetensors")
    opened = ballast.open(tmp_path / "a.safetensors")
    assert opened["p"].tolist() == [1, 1] and opened["c"].tolist() == [1 - 2j] and opened["n"].tolist() == [1, 1]


def test_a_sparse_tensor_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(TypeError, match="to_dense"):
        ballast.save({"a": torch.eye(3).to_sparse()}, tmp_path / "a.safetensors")


# --- ballast.load


def test_load_gives_the_nested_object_that_was_saved(tmp_path):
    import collections
    import datetime

    object_ = {
        "state_dict": collections.OrderedDict(a=torch.arange(6.0).reshape(2, 3), b=torch.nn.Parameter(torch.ones(2))),
        "epoch": 3,
        "lr": 0.1,
        "when": datetime.date(2024, 5, 6),
        "shape": torch.Size([2, 3]),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "nested": [(1, "two", None), {3: {4, 5}}],
        "big": 1 << 80,
        "bytes": b"\x00\xff",
        "complex": 1 + 2j,
    }
    for legacy in (False, True):
        path = tmp_path / f"{legacy}.pt"
        torch.save(object_, path, _use_new_zipfile_serialization=not legacy)
        got = ballast.load(path)
        assert list(got) == list(object_)
        assert type(got["state_dict"]) is collections.OrderedDict
        assert torch.equal(got["state_dict"]["a"], object_["state_dict"]["a"])
        assert isinstance(got["state_dict"]["b"], torch.nn.Parameter)
        for key in ("epoch", "lr", "when", "shape", "dtype", "device", "nested", "big", "bytes", "complex"):
            assert got[key] == object_[key] and type(got[key]) is type(object_[key]), key


def test_load_keeps_views_of_one_storage_together_and_objects_that_contain_themselves(tmp_path):
    whole = torch.arange(12.0)
    object_ = {"whole": whole, "half": whole[::2], "t": whole.reshape(3, 4).t()}
    object_["self"] = object_
    loop = []
    object_["tuple"] = (loop,)
    loop.append(object_["tuple"])
    torch.save(object_, tmp_path / "a.pt")
    got = ballast.load(tmp_path / "a.pt")
    got["whole"][0] = 100
    assert got["half"][0] == 100 and got["t"][0, 0] == 100 and got["t"].stride() == (1, 4)
    assert got["self"] is got
    assert got["tuple"][0][0] is got["tuple"]


def test_an_unknown_class_is_an_opaque_object_that_shows_what_it_would_have_been(tmp_path):
    torch.save(torch.nn.Linear(2, 3), tmp_path / "a.pt")
    got = ballast.load(tmp_path / "a.pt")
    assert repr(got) == "<opaque torch.nn.modules.linear.Linear>"
    assert got.in_features == 2 and got._parameters["weight"].shape == (3, 2)


def test_weights_only_false_is_refused_with_the_reason(tmp_path):
    torch.save({}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="runs nothing"):
        ballast.load(tmp_path / "a.pt", weights_only=False)


def test_a_dangerous_file_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            import os

            return os.system, ("true",)

    torch.save({"a": torch.ones(1), "e": Evil()}, tmp_path / "a.pt")
    with pytest.raises(ballast.Unsafe):
        ballast.load(tmp_path / "a.pt")


@pytest.mark.parametrize("where", [None, "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda s, l: s, lambda s, l: None, "meta"])
def test_map_location_is_what_torch_load_takes(tmp_path, where):
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    got = ballast.load(tmp_path / "a.pt", map_location=where)["a"]
    assert got.device.type == ("meta" if where == "meta" else "cpu")


def test_root_takes_a_subtree_and_mmap_false_a_copy(tmp_path):
    torch.save({"model": {"a.b": torch.ones(2)}}, tmp_path / "a.pt")
    assert list(ballast.load(tmp_path / "a.pt", root="model")) == ["a.b"]
    got = ballast.load(tmp_path / "a.pt", root="model.a.b", mmap=False)
    assert got.tolist() == [1, 1]
    with pytest.raises(KeyError):
        ballast.load(tmp_path / "a.pt", root="nothing")
