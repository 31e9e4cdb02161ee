"""What somebody hostile, or careless, could do to the module: nothing may crash, hang, run code, or lie."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import ballast


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.safetensors"
    ballast.save({"a": np.arange(6, dtype="f4").reshape(2, 3), "c": np.array([1 + 2j, 3j], "c8")}, made)
    return made


def run(code, timeout=300):  # for a busy machine; what may take long is measured in processor time
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout)


# --- memory


@pytest.mark.parametrize("kind", [ballast.Tensor, ballast.Checkpoint, ballast._native.MemorySpan])
def test_an_object_without_memory_behind_it_cannot_be_made(kind):
    with pytest.raises(TypeError):
        kind.__new__(kind)
    with pytest.raises(TypeError):
        kind()


def test_a_buffer_with_strides_is_no_file(path):
    data = path.read_bytes()
    with pytest.raises(BufferError):
        ballast.open(memoryview(data[::-1])[::-1])

    class Strided:
        size = len(data)

        def read(self, offset, size):
            return memoryview(data[offset : offset + size][::-1])[::-1]

    with pytest.raises(ballast.IOFailed):
        ballast.open(Strided())


def test_an_opaque_object_answers_no_protocol(tmp_path):
    class Thing:
        pass

    thing = Thing()
    thing.__dict__.update({"__array_interface__": {"data": (4096, False), "shape": (4,), "typestr": "<f4", "version": 3},
                           "_repr_html_": "x", "plain": 1})  # fmt: skip
    Thing.__module__, Thing.__qualname__ = "nowhere", "Thing"
    nowhere = type(sys)("nowhere")
    nowhere.Thing = Thing
    sys.modules["nowhere"] = nowhere
    try:
        (tmp_path / "a.pkl").write_bytes(pickle.dumps({"t": thing}))
    finally:
        del sys.modules["nowhere"]
    got = ballast.load(tmp_path / "a.pkl")["t"]
    assert got.plain == 1 and not hasattr(got, "__array_interface__") and not hasattr(got, "_repr_html_")
    assert np.asarray(got).dtype == object


# --- pickles

DEEP = 1_000_000
# name: (the pickle, what comes of it)
BOMBS = {
    "a deep tuple as a key": (b"\x80\x02}K\x01" + b"\x85" * DEEP + b"K\x02s.", "dict 1"),
    "a deep tuple in a set": (b"\x80\x04\x8f(K\x01" + b"\x85" * DEEP + b"\x90.", "set 1"),
    "a tuple of itself twice, sixty times, as a key": (b"\x80\x02}K\x01" + b"q\x00h\x00\x86" * 60 + b"K\x02s.", "dict 1"),
    "a list of itself twice, forty times, as a key": (b"\x80\x02}]q\x000" + b"](h\x00h\x00eq\x000" * 40 + b"h\x00K\x02s.", "dict 1"),
    "a bytearray of many bytes": (b"\x80\x02cbuiltins\nbytearray\nJ\x00\x00\x00\x7f\x85R.", "Opaque"),
    "a list of a range": (b"\x80\x02cbuiltins\nlist\ncbuiltins\nrange\nJ\x00\x00\x00\x7f\x85R\x85R.", "Opaque"),
    "a set of a range": (b"\x80\x02cbuiltins\nset\ncbuiltins\nrange\nJ\x00\x00\x00\x7f\x85R\x85R.", "Opaque"),
    "a fraction of a power": (b"\x80\x02cfractions\nFraction\nX\x0c\x00\x00\x001e1000000000\x85R.", "Opaque"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_pickle_cannot_take_long_or_much(tmp_path, name):
    bomb, result = BOMBS[name]
    (tmp_path / "bomb.pkl").write_bytes(bomb)
    code = f"""
import resource, ballast
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
loaded = ballast.load({str(tmp_path / "bomb.pkl")!r})
print(type(loaded).__name__, *([len(loaded)] if hasattr(loaded, "__len__") else []))
"""
    before = os.times()
    done = run(code)
    after = os.times()
    assert (done.returncode, done.stdout) == (0, result + "\n"), done.stderr[-500:]
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 20


def test_values_that_contain_themselves_lose_nothing(tmp_path):
    import argparse

    space = argparse.Namespace(a=1)
    space.me = space
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"n": space}))
    got = ballast.load(tmp_path / "a.pkl")["n"]
    assert got.a == 1 and got.me is got


def test_load_takes_what_torch_load_takes(tmp_path):
    import io

    data = pickle.dumps({"x": [1, 2], "s": {3, (4, 5)}})
    (tmp_path / "a.pkl").write_bytes(data)
    want = {"x": [1, 2], "s": {3, (4, 5)}}
    assert ballast.load(io.BytesIO(data)) == want
    with open(tmp_path / "a.pkl", "rb") as file:
        assert ballast.load(file) == want
    assert ballast.load(data) == want


# --- threads, fork, the end


def test_a_copy_of_a_tensor_of_a_python_source_does_not_wait_for_itself(tmp_path):
    ballast.save({"a": np.zeros(15_000_000, "f4")}, tmp_path / "big.safetensors")
    code = f"""
import ballast
data = open({str(tmp_path / "big.safetensors")!r}, "rb").read()
class S:
    size = len(data)
    def read(self, offset, size): return data[offset:offset + size]
ballast.open(S())["a"].__dlpack__(copy=True)
print("done")
"""
    assert run(code).stdout == "done\n"


def test_a_daemon_thread_does_not_abort_the_end(tmp_path):
    ballast.save({"a": np.zeros(15_000_000, "f4")}, tmp_path / "big.safetensors")
    code = f"""
import ballast, threading, time
def work():
    while True: ballast.hash({str(tmp_path / "big.safetensors")!r})
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_what_is_called_while_the_interpreter_ends_comes_back(path):
    code = f"""
import atexit, ballast
class Last:
    def __del__(self, open=ballast.open, info=ballast.info):
        info({str(path)!r})
        print(open({str(path)!r})["a"].tobytes()[:4])
last = Last()
last.me = last
atexit.register(lambda: print(ballast.info({str(path)!r}).tensors))
"""
    done = run(code)
    assert done.returncode == 0 and done.stdout.startswith("2\n"), done.stderr


def test_a_child_of_fork_does_not_wait_for_a_thread_of_its_parent(path):
    code = f"""
import ballast, os, threading
opened = ballast.open({str(path)!r})
opened["a"].numpy()  # imports NumPy: a child of fork must not wait for an import of its parent, which is Python's own affair
stop = threading.Event()
def work():
    while not stop.is_set(): opened["a"].numpy()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        opened["a"].numpy()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print("done")
"""
    assert run(code).stdout == "done\n"


def test_a_sub_interpreter_is_told_that_it_cannot(path):
    interpreters = pytest.importorskip("_xxsubinterpreters")
    code = """
import _xxsubinterpreters as interpreters
import ballast
one = interpreters.create()
try:
    interpreters.run_string(one, "import ballast")
except interpreters.RunFailedError as error:
    print("told" if "main interpreter" in str(error) else error)
"""
    assert interpreters and run(code).stdout == "told\n"


# --- what it says


def test_an_empty_text_is_an_empty_text(path, tmp_path):
    report = ballast.convert(path, tmp_path / "b.safetensors", add_prefix="", dry_run=True)
    assert report.exit_code == 0 and not (tmp_path / "b.safetensors").exists()
    assert ballast.info(path, root="").tensors == 2


def test_a_key_with_an_equals_sign_is_refused(path, tmp_path):
    with pytest.raises(ValueError):
        ballast.convert(path, tmp_path / "b.safetensors", metadata={"a=b": "c"})
    with pytest.raises(TypeError):
        ballast.convert(path, tmp_path / "b.safetensors", metadata={"a": None})
    with pytest.raises(TypeError):
        ballast.save({"a": np.ones(1)}, tmp_path / "b.safetensors", metadata={"a": 1})


def test_paths_are_what_they_are(path):
    for call in (ballast.open, ballast.info):
        with pytest.raises(ValueError, match="null byte"):
            call(str(path) + "\0.evil")
    with pytest.raises(FileNotFoundError, match="--dir.safetensors"):
        ballast.open("--dir.safetensors")
    with pytest.raises(FileNotFoundError):
        ballast.diff({"a": np.ones(1)}, "<object 0>")
    with pytest.raises(TypeError):
        ballast.info(None)


def test_exceptions_say_what_they_are_about(path, tmp_path):
    with pytest.raises(KeyError):
        ballast.ls(path, "nothing*")
    with pytest.raises(KeyError):
        ballast.meta.get(path, "nothing")
    with pytest.raises(FileExistsError) as caught:
        ballast.convert(path, path)
    assert caught.value.errno == 17
    with pytest.raises(FileNotFoundError) as caught:
        ballast.open(tmp_path / "nothing")
    assert caught.value.errno == 2
    for wrong in ({"max_tensors": -1}, {"max_tensors": 1 << 70}):
        with pytest.raises(ValueError):
            ballast.open(path, limits=wrong)
    with pytest.raises(TypeError):
        ballast.open(path, limits={"max_tensors": "5"})
    assert "\ud800" not in ballast.open(path)


def test_a_source_has_a_size_that_is_a_number(path):
    data = path.read_bytes()

    class Source:
        def __init__(self, size):
            self.size = size

        def read(self, offset, size):
            return data[offset : offset + size]

    assert len(ballast.open(Source(lambda: len(data)))) == 2
    for size, error in ((-1, ValueError), (1.5, TypeError), ("9", TypeError), (1 << 70, ValueError)):
        with pytest.raises(error):
            ballast.open(Source(size))
    with pytest.raises(TypeError):
        ballast.open(3)


def test_a_report_can_be_copied_and_pickled(path):
    import copy

    report = ballast.info(path)
    assert copy.copy(report) == report == pickle.loads(pickle.dumps(report)) == copy.deepcopy(report)


def test_the_allowlist_is_a_text(path):
    assert "torch" in ballast.scan(allowlist=True).text


# --- what people try


def test_dtypes_may_be_those_of_numpy_and_torch(path):
    tensor = ballast.open(path)["a"]
    for dtype in ("F16", "float16", np.float16, np.dtype("float16")):
        assert tensor.to(dtype).dtype == "F16"
    torch = pytest.importorskip("torch")
    assert tensor.to(torch.float16).dtype == "F16"


def test_shapes_may_be_given_as_everywhere(path):
    tensor = ballast.open(path)["a"]
    assert tensor.reshape(-1).shape == (6,) and tensor.reshape(3, -1).shape == (3, 2) and tensor.reshape([6, 1]).shape == (6, 1)
    assert tensor.permute(1, 0).shape == (3, 2) == tensor.permute([1, 0]).shape
    with pytest.raises(ValueError):
        tensor.reshape(-1, -1)


def test_one_value_is_a_number(path):
    tensor = ballast.open(path)["a"]
    assert float(tensor[1, 2]) == 5.0 and int(tensor[1, 2]) == 5 and bool(tensor[0:1, 1:2])
    numbers = ballast.open(path)["c"]
    assert numbers[0].item() == 1 + 2j and numbers[::-1].tolist() == [3j, 1 + 2j] and complex(numbers[1]) == 3j


def test_gradients_and_ties_are_kept_as_torch_keeps_them(tmp_path):
    torch = pytest.importorskip("torch")
    whole = torch.zeros(4)
    torch.save({"p": torch.nn.Parameter(torch.ones(1), requires_grad=False), "q": torch.ones(1, requires_grad=True),
                "a": whole, "b": whole[1:]}, tmp_path / "a.pt")  # fmt: skip
    for mmap in (None, False):
        got = ballast.load(tmp_path / "a.pt", mmap=mmap)
        assert not got["p"].requires_grad and got["q"].requires_grad
        got["a"][1] = 5
        assert got["b"][0] == 5


def test_ctrl_c_in_a_read_is_ctrl_c(path):
    code = f"""
import ballast
data = open({str(path)!r}, "rb").read()
class S:
    size = len(data)
    def read(self, offset, size): raise KeyboardInterrupt
try:
    ballast.open(S())
    print("opened")
except KeyboardInterrupt:
    print("interrupted")
except ballast.Error as error:
    print(error.code)
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_a_fortran_order_is_not_claimed(path):
    import ctypes

    view = (ctypes.c_char * 256)()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    with pytest.raises(BufferError):
        get(ballast.open(path)["a"], view, 0x40 | 0x18)


def test_a_copy_that_is_not_wanted_is_refused(path):
    with pytest.raises(BufferError):
        ballast.open(path)["a"].to("F16").__dlpack__(copy=False)
    ballast.open(path)["a"].__dlpack__(copy=False)
