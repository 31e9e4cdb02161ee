"""Conversions in trouble: killed at any moment, a disk that is full, a limit on files, a source that changes."""

import random
import resource
import shutil
import signal
import threading
import unittest

from support import *

KILLS = 200


def random_model(tensors, each, seed):
    generator = random.Random(seed)
    return safetensors({f"layers.{i}.weight": ("F32", [each // 4], generator.randbytes(each)) for i in range(tensors)})


class Killed(TestCase):
    def names(self, folder=None):
        return sorted(path.name for path in (folder or self.folder).iterdir())

    def kill_at(self, moment, *args):
        """Runs the command and kills it after so many seconds; whether it was still running then."""
        process = subprocess.Popen([COMMAND, *args], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=environment())
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return True
        return False

    def test_leaves_the_old_file_or_the_new_one(self):
        old = random_model(1, 4096, seed=1)
        self.write("in.safetensors", random_model(24, 1 << 20, seed=2))
        args = ("convert", "in.safetensors", "out.safetensors", "--force", "--dtype", "BF16")
        start = time.monotonic()
        self.ballast(*args)
        duration = time.monotonic() - start
        new = (self.folder / "out.safetensors").read_bytes()

        moments = random.Random(3)
        killed = 0
        for _ in range(KILLS):
            (self.folder / "out.safetensors").write_bytes(old)
            killed += self.kill_at(moments.uniform(0, 1.2 * duration), *args)
            content = (self.folder / "out.safetensors").read_bytes()
            self.assertIn(len(content), (len(old), len(new)))
            self.assertTrue(content in (old, new))
        self.assertGreater(killed, KILLS // 10, "it was mostly too late")

        self.ballast(*args)
        self.assertEqual(self.names(), ["in.safetensors", "out.safetensors"], "nothing is left of those that were killed")

    def test_is_taken_up_again_shard_by_shard(self):
        model = random_model(12, 1 << 20, seed=4)
        self.write("in.safetensors", model)
        args = ("convert", "in.safetensors", "out/", "--max-shard-size", "1MiB")
        (self.folder / "out").mkdir()
        moments = random.Random(5)
        for _ in range(60):
            if not self.kill_at(moments.uniform(0, 0.15), *args):
                break
            names = self.names(self.folder / "out")
            if "model.safetensors.index.json" in names:  # killed when all was done
                self.assertEqual(len([n for n in names if n.startswith("model-")]), 12, "the index comes last")
                break
        if not (self.folder / "out" / "model.safetensors.index.json").exists():
            self.ballast(*args, "--force")  # shards may have their names when the index does not
        self.assertEqual([n for n in self.names(self.folder / "out") if n.startswith(".")], [])
        self.assertEqual(self.ballast("hash", "out", "--json").json()["digest"],
                         self.ballast("hash", "in.safetensors", "--json").json()["digest"])


class Full(TestCase):
    """A disk of 3 MiB, where this user may mount one."""

    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.write("in.safetensors", random_model(4, 1 << 20, seed=6))

    def on_small_disk(self, *args):
        script = 'mount -t tmpfs -o size=3m tmpfs disk && printf old > disk/out.safetensors && "$@"; code=$?; ' \
                 'ls -A disk; cat disk/out.safetensors; exit $code'
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", COMMAND, *args], cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        if "mount" in done.stderr or "unshare" in done.stderr or shutil.which("unshare") is None:
            self.skipTest("this user may not mount a disk")
        return done

    def test_says_so_before_it_writes_anything_and_keeps_what_is_there(self):
        done = self.on_small_disk("convert", "in.safetensors", "disk/out.safetensors", "--force")
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertRegex(done.stderr, r"the disk is too full: 4194\d+ bytes \(4\.19 MB\) are needed, \S+ MB are free")
        self.assertEqual(done.stdout, "out.safetensors\nold")

    def test_counts_all_shards(self):
        done = self.on_small_disk("convert", "in.safetensors", "disk/m.safetensors", "--max-shard-size", "1MB")
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn("the disk is too full", done.stderr)
        self.assertEqual(done.stdout, "out.safetensors\nold")


class Limited(TestCase):
    def test_a_limit_on_files_is_a_clear_error(self):
        self.write("in.safetensors", random_model(4, 1 << 20, seed=7))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        result = self.run_raw("convert", "in.safetensors", "out.safetensors", preexec_fn=limit)
        self.assertEqual(result.code, IO, result)
        self.assertIn("file too large", result.err.lower())
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])


class Shrinking(TestCase):
    def test_a_source_that_shrinks_meanwhile_is_an_error(self):
        source = self.write("in.safetensors", random_model(64, 1 << 20, seed=8))
        size = source.stat().st_size
        stop = threading.Event()

        def shrink_and_grow():
            while not stop.is_set():
                os.truncate(source, size // 2)
                os.truncate(source, size)

        worker = threading.Thread(target=shrink_and_grow)
        worker.start()
        try:
            for _ in range(20):
                result = self.run_raw("convert", "in.safetensors", "out.safetensors", "--no-sync")
                self.assertIn(result.code, (IO, MALFORMED), result)
                self.assertEqual(self.names_in_folder(), ["in.safetensors"])
        finally:
            stop.set()
            worker.join()


if __name__ == "__main__":
    unittest.main()
