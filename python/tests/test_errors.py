"""Errors: which exception each of them is, what they name, and what their hints speak of."""

import json
import os
import re
import struct

import numpy as np
import pytest

import ballast
from root_rights import without_root_rights


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "a.safetensors"
    ballast.save({"model.a": np.ones((2, 3), "f4"), "model.b": np.zeros(4, "f4")}, target, metadata={"author": "me"})
    return target


def caught(kind, function, *args, **options):
    with pytest.raises(kind) as raised:
        function(*args, **options)
    return raised.value


# --- what is not there


def test_a_file_that_is_not_there_is_a_file_not_found_error_and_a_name_is_a_key_error(path, tmp_path):
    missing = tmp_path / "no tensor of this revision.safetensors"  # the words of a name decide nothing
    error = caught(FileNotFoundError, ballast.open, missing)
    assert error.code == "not_found" and error.filename == str(missing) and error.name is None
    folder = tmp_path / "folder"
    folder.mkdir()
    assert not isinstance(caught(FileNotFoundError, ballast.open, folder), KeyError)

    checkpoint = ballast.open(path)
    error = caught(KeyError, checkpoint.__getitem__, "such file: a folder in the cache")
    assert error.name == "such file: a folder in the cache" and not isinstance(error, OSError)
    for name, make in {
        "no folder": lambda: ballast.open(path, root="no folder"),
        "no file": lambda: ballast.convert(path, tmp_path / "b.safetensors", strip_prefix="no file"),
        "the weights": lambda: ballast.meta.unset(path, "the weights"),
        "a revision": lambda: ballast.meta.get(path, "a revision"),
    }.items():
        error = caught(KeyError, make)
        assert isinstance(error, ballast.NoSuchTensor) and error.name == name, name
    error = caught(KeyError, ballast.ls, path, globs="no such file*")
    assert error.name is None
    assert isinstance(caught(KeyError, ballast.save, {}, tmp_path / "empty.safetensors"), ballast.NoSuchTensor)


def test_a_part_that_is_missing_is_a_file_that_is_missing(tmp_path):
    state = {f"layers.{i}": np.ones(256, "f4") for i in range(4)}
    ballast.save(state, tmp_path / "m.gguf", max_shard_size="1kB")
    parts = sorted(tmp_path.glob("*.gguf"))
    assert len(parts) > 1
    parts[-1].unlink()
    assert "missing" in str(caught(FileNotFoundError, ballast.open, parts[0]))


def test_a_file_that_exists_is_a_file_exists_error_whichever_verb_says_so(path, tmp_path):
    for function, *args in ((ballast.convert, path, path.with_name("b.safetensors")), (ballast.save, {"a": np.ones(1, "f4")}, path)):
        if function is ballast.convert:
            function(*args)
        error = caught(FileExistsError, function, *args)
        assert isinstance(error, ballast.AlreadyExists) and "force=True" in error.hint


def test_an_error_about_a_tensor_names_it(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    error = caught(ballast.OverLimit, ballast.open, tmp_path / "a.safetensors")
    assert error.name == "w" and error.offset is not None


# --- limits


def gguf_of_keys(count):
    keys = b"".join(struct.pack("<Q", 2) + f"k{i}".encode() + struct.pack("<IB", 0, 1) for i in range(count))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count) + keys


def test_a_limit_names_the_keyword_that_raises_it(path, tmp_path):
    (tmp_path / "k.gguf").write_bytes(gguf_of_keys(5))
    ballast.save({"a": np.ones(1, "f4"), "b": np.ones(1, "f4")}, tmp_path / "a.pt")
    ballast.save({f"{i}": np.ones(64, "f4") for i in range(4)}, tmp_path / "s.safetensors", max_shard_size="300B")
    index = tmp_path / "s.safetensors.index.json"
    for target, field, value in (
        (path, "max_tensors", 1),
        (path, "max_header_bytes", 16),
        (path, "max_metadata_keys", 0),
        (path, "max_rank", 1),
        (tmp_path / "k.gguf", "max_metadata_keys", 3),
        (tmp_path / "k.gguf", "max_header_bytes", 30),
        (tmp_path / "a.pt", "max_pickle_nodes", 3),
        (tmp_path / "a.pt", "max_archive_members", 1),
        (index, "max_shards", 1),
        (index, "max_index_bytes", 10),
        (index, "max_tensors", 2),
    ):
        error = caught(ballast.OverLimit, ballast.open, target, limits={field: value})
        assert f'limits={{"{field}": …}}' in error.hint, (target.name, field, error.hint)
        assert "--" not in str(error)
        ballast.open(target, limits={field: 1_000_000})
        error = caught(ballast.OverLimit, ballast.ls, target, limits={field: value})
        assert f'limits={{"{field}": …}}' in error.hint, (target.name, field, error.hint)


def test_load_takes_limits(tmp_path):
    ballast.save({"a": np.ones(1, "f4"), "b": np.ones(1, "f4")}, tmp_path / "a.pt")
    assert len(ballast.load(tmp_path / "a.pt", limits={"max_pickle_nodes": 1000})) == 2
    error = caught(ballast.OverLimit, ballast.load, tmp_path / "a.pt", limits={"max_pickle_nodes": 3})
    assert "max_pickle_nodes" in error.hint


def test_a_limit_that_there_is_not_suggests_one_that_there_is(path):
    assert '"max_tensors"' in caught(ValueError, ballast.open, path, limits={"max_tensor": 3}).hint
    everything = caught(ValueError, ballast.open, path, limits={"nonsense": 3}).hint
    assert "max_rank" in everything
    names = set(re.findall(r"max_\w+", everything))
    assert names == set(re.findall(r"max_\w+", ballast.open.__doc__)), "the documentation of open() has them all"


# --- hints


def test_hints_are_expressions_of_python(path, tmp_path):
    def hint(function, *args, **options):
        error = caught(ballast.Error, function, *args, **options)
        assert not re.search(r"(^|\s)--?[a-z]|ballast [a-z]", str(error)), str(error)
        return error.hint

    ballast.save({"a": np.ones((2, 256), "f4")}, tmp_path / "q.gguf", dtype="Q4_K")
    ballast.save({"a": np.ones(4, "c8")}, tmp_path / "c.safetensors")
    assert "ballast.ls()" in hint(ballast.ls, path, globs="nothing*")
    assert "ballast.ls()" in hint(ballast.diff, path, path, include="nothing*")
    assert "ballast.meta.get(TARGET)" in hint(ballast.meta.get, path, "zzzzzzzz")
    assert 'dtype="F16"' in hint(ballast.convert, tmp_path / "q.gguf", tmp_path / "q.safetensors")
    assert "exclude=" in hint(ballast.convert, tmp_path / "c.safetensors", tmp_path / "c.gguf")
    assert 'strip_prefix="module."' in hint(ballast.convert, path, tmp_path / "x.safetensors", strip_prefix="module.")
    assert "manifest=FILE" in hint(ballast.verify, path, manifest=tmp_path / "nothing")
    assert "ranks=8" in hint(ballast.plan, path, ranks=0)
    assert "tolerance=1e-6" in hint(ballast.diff, path, path, tolerance=-1)
    assert "help(ballast.open)" in hint(ballast.ls, path, limits={"nonsense": 3})
    assert "allow_empty=True" in hint(ballast.save, {}, tmp_path / "e.safetensors")
    assert "lenient=True" in hint(ballast.open, spaced(tmp_path))
    assert "author=me" in hint(ballast.meta.set, path, "nonsense")
    assert "output=" in hint(ballast.adapter.merge, path, [path])
    assert 'header="@FILE"' in hint(ballast.ls, path, header="nonsense")
    assert 'safety="strict"' in hint(ballast.open, unknown_class(tmp_path), safety="strict")
    assert "weights_only=True" in hint(ballast.ls, unknown_class(tmp_path), weights_only=True)


def test_a_hint_names_the_function_that_has_a_keyword_if_the_called_one_has_not(tmp_path):
    ballast.save({"q.weight": np.full((2, 2), 60000, "f2")}, tmp_path / "base.safetensors")
    lora = tmp_path / "lora"
    lora.mkdir()
    (lora / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q"]}')
    weights = {"A": np.array([[10000, 0]], "f4"), "B": np.array([[1], [0]], "f4")}
    ballast.save(
        {f"base_model.model.q.lora_{part}.weight": values for part, values in weights.items()},
        lora / "adapter_model.safetensors",
    )
    error = caught(
        ballast.Error, ballast.adapter.merge, tmp_path / "base.safetensors", [lora], output=tmp_path / "m.safetensors", strict=True
    )
    assert 'with dtype="F32", or those tensors alone with dtype="NAME=F32" of ballast.convert()' in error.hint, error.hint


def spaced(folder):
    """A file with bytes that belong to no tensor, which only a lenient reader passes over."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path = folder / "spaced.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    return path


def unknown_class(folder):
    """A pickle of an object whose class torch's weights_only does not know."""
    path = folder / "class.pkl"
    path.write_bytes(b"\x80\x02cnot.a.module\nName\n)\x81.")
    return path


def test_notes_speak_of_keywords_too(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: ./dev setup oracles")
    torch.save({"state_dict": {"a": torch.ones(1)}, "epoch": 3}, tmp_path / "a.pt")
    said = ballast.convert(tmp_path / "a.pt", tmp_path / "a.safetensors").said
    assert any('root="state_dict" takes them' in text for text in said), said
    assert any("keep_values=True keeps" in text for text in said), said
    assert not any("--" in text for text in said), said


def test_what_stands_in_quotes_stays_as_it_is(path):
    error = caught(KeyError, ballast.open(path).__getitem__, "--max-shard-size 5GB")
    assert '"--max-shard-size 5GB"' in str(error)
    error = caught(KeyError, ballast.open, path, root="--root PATH")
    assert '"--root PATH"' in str(error)


def test_functions_of_peft_speak_of_their_own_keywords():
    from ballast.peft import get_peft_model_state_dict, set_peft_model_state_dict

    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]}
    state = {
        "base_model.model.q.base_layer.weight": np.ones((4, 4), "f4"),
        "base_model.model.q.lora_A.other.weight": np.ones((2, 4), "f4"),
        "base_model.model.q.lora_B.other.weight": np.ones((4, 2), "f4"),
    }
    error = caught(KeyError, get_peft_model_state_dict, state, config)
    assert error.name == "default" and "adapter_name" in error.hint
    adapter = {"base_model.model.q.lora_A.weight": np.ones((3, 4), "f4"), "base_model.model.q.lora_B.weight": np.ones((4, 3), "f4")}
    error = caught(ballast.Mismatch, set_peft_model_state_dict, state, adapter, "other", config=config)
    assert "ignore_mismatched_sizes=True" in error.hint


# --- what an object of yours raises


class Source:
    def __init__(self, data, error, after=0):
        self.data, self.error, self.left = data, error, after

    @property
    def size(self):
        return len(self.data)

    def read(self, offset, size):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return self.data[offset : offset + size]


class LineIsDown(Exception):
    pass


def test_what_a_source_raises_is_the_cause_of_the_error(path):
    down = LineIsDown("at noon")
    error = caught(ballast.IOFailed, ballast.open, Source(path.read_bytes(), down))
    assert error.__cause__ is down and error.__suppress_context__ and "at noon" in str(error)
    names = []
    trace = down.__traceback__
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "read" in names, "the traceback leads into the source"


def test_the_cause_comes_through_views_casts_verbs_and_threads(path, tmp_path):
    source = Source(path.read_bytes(), LineIsDown("later"), after=1000)
    checkpoint = ballast.open(source)
    source.left = 0
    for use in (
        lambda: checkpoint["model.a"].tobytes(),
        lambda: checkpoint["model.a"].to("F16").numpy(),
        lambda: checkpoint["model.a"][1:, ::2].tolist(),
        lambda: ballast.hash(checkpoint),
        lambda: ballast.convert(checkpoint, tmp_path / "out.safetensors"),
        lambda: ballast.convert(checkpoint, tmp_path / "out.gguf", dtype="F16"),
    ):
        error = caught(ballast.Error, use)
        assert isinstance(error.__cause__, LineIsDown), error
    assert not list(tmp_path.glob("out.*"))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_error_is_raised_as_it_is(path, kind):
    given = kind("stop")
    assert caught(kind, ballast.open, Source(path.read_bytes(), given)) is given
    source = Source(path.read_bytes(), given, after=1000)
    checkpoint = ballast.open(source)
    source.left = 0
    assert caught(kind, ballast.hash, checkpoint) is given


def test_a_cause_is_let_go_of_with_its_error(path):
    import gc
    import weakref

    down = LineIsDown("gone")
    alive = weakref.ref(down)
    source = Source(path.read_bytes(), down)
    del down
    try:
        ballast.open(source)
    except ballast.Error:
        pass
    del source
    gc.collect()
    assert alive() is None


def test_no_permission_says_the_systems_number(path):
    import errno

    path.chmod(0)
    with without_root_rights():
        assert caught(PermissionError, ballast.open, path).errno == errno.EACCES
