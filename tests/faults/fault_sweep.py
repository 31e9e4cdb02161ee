"""Makes every call that changes a file fail, one at a time, while the command writes a file.

Whatever happens, the output is the old file or the new one, whole; a run that exits with 0 has written the new one; and
the next run leaves nothing behind but its output.

  BALLAST_COMMAND   the command, run as: COMMAND convert IN OUT [--force] [--no-sync]
  BALLAST_FAIL_LIB  the library made of fail_nth.cpp
"""

import json
import os
import shlex
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = shlex.split(os.environ.get("BALLAST_COMMAND", ""))
LIBRARY = os.environ.get("BALLAST_FAIL_LIB", "")
MOST_CALLS = 1000  # a command that makes more calls for one small file is not doing what we think


def safetensors(fill, sizes):
    """A safetensors file of U8 tensors, `sizes` of them, filled with `fill`."""
    header, end = {}, 0
    for i, size in enumerate(sizes):
        header[f"tensor.{i}"] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes([fill]) * end


class Run:
    """One run of the command, with what it printed and which calls it made."""

    def __init__(self, folder, *options, **fault):
        log = folder.parent / "calls.log"
        log.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BALLAST_FAIL_")}
        environment |= {f"BALLAST_FAIL_{name}": str(value) for name, value in fault.items()}
        environment |= {"LD_PRELOAD": LIBRARY, "BALLAST_FAIL_LOG": str(log)}
        # AddressSanitizer wants to be the first library; being second does it no harm here.
        environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        command = [*COMMAND, "convert", str(folder / "in.safetensors"), str(folder / "out.safetensors"), *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        self.exit_code, self.stderr = done.returncode, done.stderr
        self.calls = log.read_text().splitlines() if log.exists() else []

    @property
    def fired(self):
        return next((call[2:] for call in self.calls if call.startswith("! ")), None)


@unittest.skipUnless(COMMAND and LIBRARY, "BALLAST_COMMAND and BALLAST_FAIL_LIB say what to run")
class FaultSweep(unittest.TestCase):
    OLD = safetensors(1, [100])

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "models"
        self.folder.mkdir()
        self.out = self.folder / "out.safetensors"
        (self.folder / "in.safetensors").write_bytes(safetensors(2, [100_001, 3, 200_000, 1]))
        self.assertEqual(Run(self.folder).exit_code, 0)
        self.new = self.out.read_bytes()

    def put_old(self, old):
        if old is None:
            self.out.unlink(missing_ok=True)
        else:
            self.out.write_bytes(old)

    def content(self):
        return self.out.read_bytes() if self.out.exists() else None

    def sweep(self, old, *options, check, **fault):
        """Lets call 1, 2, 3, … fail until a run ends without a failure; `check` looks at each run that met one."""
        for n in range(1, MOST_CALLS):
            self.put_old(old)
            run = Run(self.folder, *options, AT=n, **fault)
            if run.fired is None and run.exit_code == 0:
                self.assertGreater(n, 3, "no call was counted: is the library loaded?")
                return
            with self.subTest(call=n, name=run.fired, fault=fault, options=options):
                found = self.content()
                self.assertIn(found, (old, self.new), "the output is torn")
                if run.exit_code == 0:
                    self.assertEqual(found, self.new, "success was claimed for a file that is not there")
                check(run)
                self.leaves_nothing_behind()
        self.fail(f"more than {MOST_CALLS} calls")

    def leaves_nothing_behind(self):
        clean = Run(self.folder, "--force")
        self.assertEqual(clean.exit_code, 0, clean.stderr)
        self.assertEqual(self.content(), self.new)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"in.safetensors", "out.safetensors"})

    def succeeds(self, run):
        self.assertEqual(run.exit_code, 0, run.stderr)

    def test_a_failing_call_is_an_error_that_names_the_output(self):
        def check(run):
            if run.calls[-2:] == ["fsync folder", "! close"]:
                return self.succeeds(run)  # all is on the disk, and nothing depends on that close any more
            self.assertEqual(run.exit_code, 3, run.stderr)
            self.assertIn("out.safetensors", run.stderr)

        for error in ("ENOSPC", "EIO", "EDQUOT", "EROFS"):
            self.sweep(self.OLD, "--force", ERRNO=error, check=check)
            self.sweep(None, ERRNO=error, check=check)

    def test_an_interrupted_call_is_repeated(self):
        def check(run):
            if not run.fired.startswith("rename"):  # a signal does not interrupt a rename
                self.succeeds(run)

        self.sweep(self.OLD, "--force", ERRNO="EINTR", check=check)

    def test_a_short_write_is_continued(self):
        self.sweep(self.OLD, "--force", SHORT=1, check=self.succeeds)

    def test_an_operation_that_the_file_system_lacks_is_left_out(self):
        def check(run):
            if run.fired in ("fallocate", "flock", "fchmod"):
                self.succeeds(run)

        self.sweep(self.OLD, "--force", ERRNO="EOPNOTSUPP", check=check)
        self.sweep(None, ERRNO="EOPNOTSUPP", check=check)

    def test_a_killed_run_loses_nothing(self):
        def check(run):
            self.assertEqual(run.exit_code, -9)

        self.sweep(self.OLD, "--force", KILL=1, check=check)
        self.sweep(None, KILL=1, check=check)

    def test_the_file_is_synced_before_the_rename_and_the_folder_after_it(self):
        calls = [call for call in Run(self.folder, "--force").calls if call.startswith(("pwrite", "fsync", "rename"))]
        self.assertEqual(calls[-3:], ["fsync", "renameat", "fsync folder"])
        self.assertTrue(calls[-4].startswith("pwrite"), calls)

    def test_nothing_is_synced_with_no_sync(self):
        run = Run(self.folder, "--force", "--no-sync")
        self.assertEqual(run.exit_code, 0, run.stderr)
        self.assertFalse([call for call in run.calls if call.startswith("fsync")])


if __name__ == "__main__":
    unittest.main()
