"""Checkpoints: the mapping, errors, threads, fork, sources, and the verbs as functions."""

import collections.abc
import gc
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ballast
from root_rights import without_root_rights


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "model.safetensors"
    ballast.save({f"layer.{i}.weight": np.full((4, 8), i, "f4") for i in range(12)}, made, metadata={"who": "me"})
    return made


# --- the mapping


def test_a_checkpoint_is_a_mapping(path):
    opened = ballast.open(path)
    assert isinstance(opened, collections.abc.Mapping)
    assert len(opened) == 12 and "layer.3.weight" in opened and 3 not in opened and "x" not in opened
    assert list(opened) == list(opened.keys()) == [name for name, _ in opened.items()]
    assert set(dict(opened)) == opened.keys()
    assert opened.get("x") is None and opened.get("x", 1) == 1
    assert opened.metadata["who"] == "me" and opened.format == "safetensors" and opened.files == [str(path)]
    assert repr(opened).startswith("<ballast.Checkpoint") and "12 tensors" in repr(opened)
    assert "layer.#.weight" in opened._repr_html_()


def test_html_escapes_what_a_file_says(tmp_path):
    ballast.save({"<script>": np.zeros(1)}, tmp_path / "a.safetensors")
    assert "<script>" not in ballast.open(tmp_path / "a.safetensors")._repr_html_()


def test_a_name_that_is_no_utf8_comes_back_as_it_is(tmp_path):
    name = "a\udcff"
    with pytest.raises((ballast.Error, UnicodeError)):
        ballast.save({name: np.zeros(1)}, tmp_path / "a.safetensors")


# --- errors


def test_errors_are_what_python_people_catch(path, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        ballast.open(tmp_path / "nothing")
    assert isinstance(caught.value, ballast.Error) and caught.value.filename == str(tmp_path / "nothing")
    assert caught.value.code == "not_found" and caught.value.where == str(tmp_path / "nothing")
    with pytest.raises(KeyError) as caught:
        ballast.open(path)["layer.3.weigh"]
    assert caught.value.name == "layer.3.weigh" and "layer.3.weight" in caught.value.hint
    assert not str(caught.value).startswith("'"), "a KeyError shows its text, not the repr of it"
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError) as caught:
        ballast.open(broken)
    assert caught.value.code == "malformed"
    with pytest.raises(ValueError) as caught:
        ballast.open(path, limits={"max_tensors": 3})
    assert caught.value.code == "limit" and not isinstance(caught.value, MemoryError)
    with pytest.raises(ValueError, match="no limit"):
        ballast.open(path, limits={"max_nonsense": 3})
    for wrong in ({"safety": "x"}, {"cache": "x"}):
        with pytest.raises(ValueError):
            ballast.open(path, **wrong)


def test_hints_speak_of_keywords_and_not_of_flags(path):
    with pytest.raises(ballast.Error) as caught:
        ballast.convert(path, path)
    assert "--" not in str(caught.value)
    with pytest.raises(ballast.Error) as caught:
        ballast.convert(path, path.with_name("b.safetensors"), dtype="nonsense")
    assert "--" not in str(caught.value)


def test_a_file_that_may_not_be_read_is_a_permission_error(path):
    path.chmod(0)
    with without_root_rights(), pytest.raises(PermissionError):
        ballast.open(path)


# --- sources


class Reading:
    def __init__(self, data):
        self.data, self.reads = data, 0
        self.size = len(data)

    def read(self, offset, size):
        self.reads += 1
        return self.data[offset : offset + size]


def test_bytes_and_objects_that_read_are_sources(path):
    data = path.read_bytes()
    for target in (data, bytearray(data), memoryview(data), Reading(data)):
        opened = ballast.open(target)
        assert opened["layer.7.weight"][1, 2].item() == 7


def test_an_object_that_reads_too_little_or_raises_is_an_error(path):
    class Short(Reading):
        def read(self, offset, size):
            return super().read(offset, size)[:-1]

    class Broken(Reading):
        def read(self, offset, size):
            raise RuntimeError("the line is down")

    with pytest.raises(ballast.Changed):
        ballast.open(Short(path.read_bytes()))
    with pytest.raises(ballast.IOFailed, match="the line is down"):
        ballast.open(Broken(path.read_bytes()))


def test_a_source_is_let_go_of_when_nothing_needs_it(path):
    import weakref

    source = Reading(path.read_bytes())
    alive = weakref.ref(source)
    tensor = ballast.open(source)["layer.1.weight"]
    del source
    gc.collect()
    assert tensor.tolist()[0][0] == 1 and alive() is not None
    del tensor
    gc.collect()
    assert alive() is None


# --- threads and processes


def test_several_threads_use_one_checkpoint(path):
    opened = ballast.open(path)
    wrong = []

    def read(number):
        for i in range(300):
            layer = (i + number) % 12
            tensor = opened[f"layer.{layer}.weight"]
            if tensor[i % 4].tolist() != [layer] * 8 or tensor.numpy()[0, 0] != layer:
                wrong.append((number, i))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_child_of_fork_reads_on(path):
    opened = ballast.open(path)
    ballast.hash(opened)  # starts threads in this process
    array = opened["layer.2.weight"].numpy()
    child = os.fork()
    if child == 0:
        right = array[0, 0] == 2 and opened["layer.5.weight"].tolist()[0][0] == 5
        right = right and ballast.hash(opened).exit_code == 0
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_ten_thousand_opens_take_less_than_a_megabyte(path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def use():
        with ballast.open(path) as opened:
            opened["layer.1.weight"][0].numpy()
            opened["layer.1.weight"].__dlpack__()

    for _ in range(500):
        use()
    gc.collect()
    before = resident()
    for _ in range(10_000):
        use()
    gc.collect()
    assert resident() - before < 1 << 20


LONG_JOB = """
import ballast, sys, os
print("go", flush=True)
try:
    ballast.hash({big!r})
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_stops_a_job_at_once_and_leaves_nothing(tmp_path):
    big = tmp_path / "big.npy"
    with open(big, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 30,)})
        file.truncate(file.tell() + (4 << 30))
    code = f"""
import ballast, signal, threading, time, os
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    ballast.convert({str(big)!r}, {str(tmp_path / "out.safetensors")!r}, dtype="F16")
except KeyboardInterrupt:
    print(time.monotonic() - start)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout, done.stderr
    assert float(done.stdout) < 1.5, "0.3 seconds, and what a busy machine adds to a tenth of one"
    assert sorted(os.listdir(tmp_path)) == ["big.npy"]


# --- verbs


def test_a_verb_answers_with_the_documented_json(path):
    report = ballast.info(path)
    assert report.tensors == 12 and report.to_dict()["schema"].startswith("ballast.info/")
    assert report.patterns[0].name == "layer.#.weight"
    with pytest.raises(AttributeError, match="tensors"):
        report.nothing
    assert "tensors" in dir(report) and "tensors" in report


def test_targets_are_paths_open_checkpoints_or_dicts_of_tensors(path, tmp_path):
    opened = ballast.open(path)
    arrays = {name: tensor.numpy() for name, tensor in opened.items()}
    assert ballast.diff(path, opened).equal and ballast.diff(opened, arrays).equal
    arrays["layer.0.weight"][0, 0] = 9
    report = ballast.diff(path, arrays)
    assert not report.equal and report.exit_code == 1 and report.changed[0].name == "layer.0.weight"
    assert ballast.stats(arrays, globs="layer.0.*").tensors[0].max == 9
    with pytest.raises(TypeError, match="path"):
        ballast.verify(arrays)
    with pytest.raises(TypeError):
        ballast.info(3)


def test_stats_hunts_as_the_command_does(path):
    arrays = {name: tensor.numpy() for name, tensor in ballast.open(path).items()}
    arrays["layer.0.weight"][0, 1] = float("nan")
    report = ballast.stats(arrays, problems=True, outlier_factor=100)
    assert report.exit_code == 1 and not report.ok
    found = [problem for problem in report.problems if problem.kind == "nan"]
    assert [(problem.name, problem.first) for problem in found] == [("layer.0.weight", [0, 1])]
    asked = ballast.stats(arrays, globs="layer.0.*", quantiles=[0, 0.5, 1], long=True, axis=-1).tensors[0]
    assert [q.quantile for q in asked.quantiles] == [0, 0.5, 1] and asked.outliers == 0
    assert len(asked.channels) == asked.shape[-1] and asked.channels[1].nans == 1
    assert len(ballast.stats(arrays, globs="layer.0.*", quantiles=True).tensors[0].quantiles) == 7


def test_convert_takes_every_kind_of_option(path, tmp_path):
    out = tmp_path / "out.gguf"
    report = ballast.convert(
        path, out, rename={"^layer": "blk"}, dtype=["*.0.*=F16", "F32"], metadata={"general.architecture": "llama"},
        exclude="layer.11.*", threads=1,
    )
    assert report.exit_code == 0
    opened = ballast.open(out)
    assert len(opened) == 11 and opened["blk.1.weight"].dtype == "F32"
    with pytest.raises(ballast.Error) as caught:
        ballast.convert(path, out)
    assert "force=True" in caught.value.hint
    ballast.convert(path, out, force=True)


def test_an_option_that_may_be_given_often_takes_any_iterable(path):
    assert len(ballast.ls(path, include=(f"layer.{i}.*" for i in range(3))).tensors) == 3
    assert len(ballast.ls(path, ["layer.1.*", "layer.2.*"]).tensors) == 2
    assert len(ballast.ls(path, "layer.1*").tensors) == 3


def test_metadata_are_read_and_edited(path):
    assert ballast.meta.get(path).to_dict()["metadata"]["who"] == "me"
    ballast.meta.set(path, {"who": "you", "more": "x"})
    assert ballast.open(path).metadata["who"] == "you"
    ballast.meta.unset(path, ["more"])
    assert "more" not in ballast.open(path).metadata


def test_progress_is_told_to_a_callable_and_may_cancel(path, tmp_path):
    big = {"a": np.zeros(1 << 26, "f4")}
    calls = []
    ballast.save(big, tmp_path / "a.safetensors", progress=lambda *state: calls.append(state))
    for phase, done, total in calls:
        assert isinstance(phase, str) and 0 <= done <= total
    with pytest.raises(ballast.Cancelled):
        ballast.save(big, tmp_path / "b.safetensors", progress=lambda phase, done, total: False)
    assert not (tmp_path / "b.safetensors").exists()

    def broken(phase, done, total):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        ballast.save(big, tmp_path / "b.safetensors", progress=broken)


def test_progress_may_be_something_like_tqdm(tmp_path):
    class Bar:
        made = []

        def __init__(self, **options):
            self.total, self.n = None, 0
            Bar.made.append(self)

        def update(self, n):
            self.n += n

        def reset(self, total):
            self.n = 0

        def close(self):
            self.closed = True

    ballast.save({"a": np.zeros(1 << 26, "f4")}, tmp_path / "a.safetensors", progress=Bar)
    assert Bar.made and Bar.made[0].closed
    ballast.save({"a": np.zeros(1 << 20, "f4")}, tmp_path / "b.safetensors", progress=True)


def test_a_path_that_looks_like_an_option_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ballast.save({"a": np.zeros(1)}, "-x.safetensors")
    assert ballast.info("-x.safetensors").tensors == 1


def test_scan_takes_several_targets_and_says_what_it_finds(path, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return os.system, ("true",)

    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil()))
    assert ballast.scan(path).safe is True
    report = ballast.scan(path, tmp_path / "evil.pkl")
    assert report.safe is False and report.exit_code == 1


def test_the_lock_of_the_interpreter_is_free_while_bytes_move(tmp_path):
    ballast.save({"a": np.zeros(1 << 26, "f4")}, tmp_path / "a.safetensors")
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    ballast.hash(tmp_path / "a.safetensors")
    ballast.open(tmp_path / "a.safetensors")["a"].to("F64").numpy()
    after = ticks[0]
    stop.set()
    thread.join()
    assert after - before > 3
