"""Shared by the tests of the command: how to run it, and a writer and a reader of safetensors that are not ours."""

import atexit
import ctypes
import fcntl
import functools
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TINY = SOURCE / "examples" / "tiny.safetensors"
VECTORS = SOURCE / "tests" / "vectors"  # in the repository: a test fails if a vector is missing
FIXTURES = pathlib.Path(os.environ.get("BALLAST_SHARED", SOURCE.parent / "shared")) / "fixtures"  # beside it

if "BALLAST_COMMAND" not in os.environ:
    sys.exit("set BALLAST_COMMAND to the built command")
COMMAND = str(pathlib.Path(os.environ["BALLAST_COMMAND"]).resolve())

OK, NO, USAGE, IO, MALFORMED, UNSAFE, UNSUPPORTED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

DTYPE_BITS = {
    "BOOL": 8, "F4": 4, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}
FORMATS = {"F32": "f", "F64": "d", "F16": "e", "I8": "b", "I16": "h", "I32": "i", "I64": "q", "U8": "B", "U16": "H",
           "U32": "I", "U64": "Q", "BOOL": "?"}


CACHE_HOME = tempfile.mkdtemp(prefix="ballast-e2e-cache-")
atexit.register(shutil.rmtree, CACHE_HOME, ignore_errors=True)


def environment(**changes):
    kept = {key: value for key, value in os.environ.items()
            if key not in ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "BALLAST_CACHE", "LC_ALL", "LC_CTYPE")}
    kept.update({"LANG": "C.UTF-8", "TERM": "xterm-256color", "XDG_CACHE_HOME": CACHE_HOME} | changes)
    return {key: value for key, value in kept.items() if value is not None}


def needs_fixtures(test):
    """Skips a test, or a class of tests, if the fixtures are not there; if BALLAST_REQUIRE_SHARED is set, the script fails."""
    absent = f"the fixtures are not there: {FIXTURES}"
    if not FIXTURES.is_dir() and "BALLAST_REQUIRE_SHARED" in os.environ:
        sys.exit(absent)
    return unittest.skipUnless(FIXTURES.is_dir(), absent)(test)


def pack(dtype, values):
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def safetensors(tensors, metadata=None):
    """The bytes of a file with {name: (dtype, shape, bytes or numbers)}, in the order given."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        raw = content if isinstance(content, bytes) else pack(dtype, content)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return with_header(json.dumps(header, ensure_ascii=False, separators=(",", ":")), data)


def with_header(text, data=b""):
    raw = text.encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + data


def read_safetensors(path):
    """Returns ({name: (dtype, shape, bytes)}, metadata), and checks the file as strictly as a short reader can."""
    raw = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    metadata, data = header.pop("__metadata__", None), raw[8 + size:]
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        assert begin == end, f"a hole before {name}"
        count = 1
        for dimension in entry["shape"]:
            count *= dimension
        assert stop - begin == count * DTYPE_BITS[entry["dtype"]] // 8, name
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:stop])
        end = stop
    assert end == len(data), "bytes after the last tensor"
    return tensors, metadata


def large_weights(count):
    """F32 numbers between 0.5 and 2, the same each time: enough of them, and several threads have something to share."""
    raw = bytearray(random.Random(1).randbytes(4 * count))
    raw[3::4] = b"\x3f" * count
    return bytes(raw)


class Result:
    def __init__(self, code, out, err):
        self.code, self.raw, self.err = code, out, err
        self.out = out.decode("utf-8", "surrogateescape")

    def json(self):
        return json.loads(self.raw)

    def lines(self):
        return self.out.splitlines()

    def rows(self):
        return [line.split("\t") for line in self.lines()]

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@functools.cache
def parser_commands():
    """{"meta get": {"--json", ...}, ...}: every verb of the command's own parser with the options that it adds.

    "" has the options of every verb. The parser writes the completion scripts, so this reads the one for bash.
    """
    script = subprocess.run([COMMAND, "completion", "bash"], capture_output=True, text=True, check=True, env=environment()).stdout
    rows = re.findall(r"(?m)^    '([^']*)'\) words='[^']*' options='([^']*)' ;;$", script)
    found = {path.strip(): {word for word in options.split() if word.startswith("--")} for path, options in rows}
    return {path: options - found[""] if path else options for path, options in found.items()}


def parser_verbs():
    """The first words of the commands: info, ls, ..."""
    return list(dict.fromkeys(path.split()[0] for path in parser_commands() if path))


def foreign_flags(args, err):
    """The flags that hints name though the verb that ran does not have them, and no verb is said beside them."""
    commands = parser_commands()
    words = [str(word) for word in args]
    at = next((i for i, word in enumerate(words) if word in commands), None)
    if at is None:
        return []
    inner = " ".join(words[at:at + 2])
    own = commands[inner if inner in commands else words[at]] | commands[""] | {"--help", "--version", "--limits"}
    foreign = []
    for hint in re.findall(r"(?m)^  hint: (.*)$", err):
        said = [options for path, options in commands.items() if path and f"ballast {path}" in hint]
        known = own.union(*said)
        foreign += [flag for flag in re.findall(r"(?<![\w\"'-])--[a-z][a-z-]+", hint) if flag not in known]
    return foreign


def drop_root_rights():
    """To be called before a program is started: permissions hold for it as for everybody, even if root starts it."""
    if os.geteuid() == 0:
        for right in (1, 2):  # to read and write all files, to list all folders
            if ctypes.CDLL(None).prctl(24, right, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
                raise OSError("prctl")


class TestCase(unittest.TestCase):
    """Each test has a folder of its own, and the command runs in it."""

    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="ballast-e2e-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, tensors, metadata=None):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tensors if isinstance(tensors, bytes) else safetensors(tensors, metadata))
        return path

    def run_raw(self, *args, stdin=b"", env=None, **more):
        done = subprocess.run([COMMAND, *map(str, args)], input=stdin, capture_output=True, cwd=self.folder, timeout=120,
                              env=env or environment(), **more)
        return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def ballast(self, *args, code=OK, **more):
        """Runs the command and expects the exit code; the whole result is shown if it differs."""
        result = self.run_raw(*args, **more)
        self.assertEqual(result.code, code, f"ballast {' '.join(map(str, args))}\n{result}")
        self.assertEqual(foreign_flags(args, result.err), [], f"ballast {' '.join(map(str, args))}\n{result}")
        return result

    def refused(self, *args, code, says, hint=None, **more):
        """Runs the command and expects it to fail with words on stderr and nothing on stdout."""
        result = self.ballast(*args, code=code, **more)
        self.assertEqual(result.out, "", result)
        self.assertTrue(result.err.startswith("ballast: "), result)
        self.assertIn(says, result.err)
        if hint is not None:
            self.assertIn("\n  hint: ", result.err)
            self.assertIn(hint, result.err)
        return result

    def names_in_folder(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


class Terminal:
    """Runs the command, or another program, on a terminal of its own: collects what it prints, and sends it keys."""

    def __init__(self, *args, cwd, program=COMMAND, columns=100, env=None):
        self.output = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # A session of its own, which this terminal controls: Ctrl-C then becomes a signal, as it does for people.
        self.process = subprocess.Popen(
            [program, *map(str, args)], cwd=cwd, env=env or environment(), stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def read_until(self, pattern, seconds=30):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.output) and time.monotonic() < deadline and self._read():
            pass
        return re.search(pattern, self.output)

    def press(self, keys):
        os.write(self.master, keys)

    def finish(self, seconds=60):
        """Returns (exit code, everything printed); a death by signal is a negative code."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._read():
            pass
        code = self.process.wait(seconds)
        os.close(self.master)
        return code, self.output.decode("utf-8", "replace").replace("\r\n", "\n")

    def _read(self):
        """Returns False once the other side is closed."""
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if not ready:
            return True
        try:
            got = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += got
        return bool(got)


def without_colors(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
