"""Converting takes bounded memory, whatever the model's size: less than 96 MiB beside the mapped pages of the files."""

import json
import os
import struct
import time
import unittest

from support import *

MIB = 1 << 20
LIMIT = 96 * MIB


def write_model(path, size):
    """Writes sixteen tensors of F32 to a file that takes no room on the disk, because its data are a hole."""
    each = size // 16
    entries = {f"layers.{i}.weight": {"dtype": "F32", "shape": [each // 4], "data_offsets": [i * each, (i + 1) * each]}
               for i in range(16)}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)


def peak_anonymous(*arguments, cwd):
    """Runs the command and returns the most memory in bytes that it had for itself."""
    process = subprocess.Popen([COMMAND, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=environment())
    peak = samples = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"RssAnon:\s+(\d+) kB", status)
        if found:
            peak, samples = max(peak, int(found.group(1)) * 1024), samples + 1
        time.sleep(0.001)
    errors = process.communicate()[1].decode()
    return process.returncode, peak, samples, errors


class Memory(TestCase):
    def setUp(self):
        super().setUp()
        if not pathlib.Path("/proc/self/status").exists():
            self.skipTest("there is no /proc to watch a process by")
        if os.environ.get("BALLAST_SANITIZE"):
            self.skipTest("sanitizers keep memory of their own")

    def check(self, *options, output="out.safetensors"):
        for size in (48 * MIB, 16 * 48 * MIB):
            write_model(self.folder / "in.safetensors", size)
            code, peak, samples, errors = peak_anonymous("convert", "in.safetensors", output, "--force", "--no-sync",
                                                         *options, cwd=self.folder)
            self.assertEqual(code, OK, errors)
            self.assertGreater(samples, 0)
            self.assertLess(peak, LIMIT, f"{size // MIB} MiB, {options}")

    def test_is_bounded_for_a_plain_copy(self):
        self.check()

    def test_is_bounded_for_a_cast(self):
        self.check("--dtype", "BF16")

    def test_is_bounded_for_compression(self):
        self.check("--compress", "--verify")

    def test_is_bounded_for_shards(self):
        self.check("--max-shard-size", "40MB")

    def test_is_bounded_from_and_to_pytorch(self):
        self.check(output="out.pt")
        code, peak, _, errors = peak_anonymous("convert", "out.pt", "back.safetensors", "--no-sync", cwd=self.folder)
        self.assertEqual(code, OK, errors)
        self.assertLess(peak, LIMIT)


if __name__ == "__main__":
    unittest.main()
