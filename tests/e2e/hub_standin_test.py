"""Every fault that the stand-in for the Hub can play, where it lies beside this repository: what is fetched is right, or refused."""

import ctypes.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import *

TOOL = FIXTURES.parent / "tools" / "hub-standin"
if ctypes.util.find_library("curl") is None or not TOOL.is_file():
    sys.exit(77)

SURVIVED = ["", "--status 503", "--status 429 --retry-after 0", "--cut 1000", "--cut 1000 --reset", "--cut 50000 --times 3", "--no-etag --times 0", "--weak-etag --times 0",
            "--quoted-pct-etag --times 0", "--no-ranges --times 0", "--lying-linked-size 9 --times 0", "--chunked --times 0", "--slow 2000000", "--stall 1", "--expire 2", "--evil-names", "--xet"]
REFUSED = ["--wrong-range 5 --times 0", "--wrong-total 7 --times 0", "--no-content-range --times 0", "--changed-etag --times 0", "--same-etag-other-bytes --times 0", "--lying-length -5 --times 0",
           "--lying-length 5 --times 0", "--gzip --times 0", "--endless --times 0", "--evil-location file:///etc/passwd --times 0", "--evil-location http://169.254.169.254/ --times 0",
           "--evil-location loop --times 0", "--header-bomb 500 --times 0", "--status 401 --times 0", "--status 403 --times 0", "--status 404 --times 0"]


class StandIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.files = {"model.safetensors": safetensors({"w": ("U8", [300000], os.urandom(300000))}), "config.json": b'{"a": 1}', "README.md": b"# Hello " * 2000}
        repository = cls.folder / "repositories/org/model"
        repository.mkdir(parents=True)
        for name, data in cls.files.items():
            (repository / name).write_bytes(data)

    def fetched(self, fault):
        """The exit code, what went into the cache under the names of the files, and what was said."""
        server = subprocess.Popen([sys.executable, TOOL, "--root", self.folder / "repositories", "--redirect", "--resolve-cache", "--page-size", "2", *fault.split()],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            ports = json.loads(server.stdout.readline())
            with tempfile.TemporaryDirectory() as cache:
                kept = {key: value for key, value in environment().items() if not key.startswith(("HF_", "HUGGING"))}
                env = kept | {"HF_ENDPOINT": f"http://127.0.0.1:{ports.get('port') or ports['hub']}", "HF_HUB_CACHE": cache, "HF_HOME": cache}
                done = subprocess.run([COMMAND, "fetch", "hf://org/model", "-q"], env=env, capture_output=True, timeout=60)
                names = {path.name: path for path in pathlib.Path(cache).glob("models--org--model/snapshots/*/*")}
                return done.returncode, {name: path.read_bytes() for name, path in names.items() if path.exists()}, done.stderr
        finally:
            server.kill()
            server.communicate()

    def test_what_can_be_survived_is_survived(self):
        for fault in SURVIVED:
            with self.subTest(fault):
                code, files, err = self.fetched(fault)
                self.assertEqual(code, OK, err)
                self.assertEqual(files, self.files)

    def test_what_cannot_be_believed_is_refused_and_not_kept(self):
        for fault in REFUSED:
            with self.subTest(fault):
                code, files, err = self.fetched(fault)
                self.assertIn(code, (NO, IO, MALFORMED, UNSAFE), err)
                for name, data in files.items():
                    self.assertEqual(data, self.files[name])


if __name__ == "__main__":
    unittest.main()
