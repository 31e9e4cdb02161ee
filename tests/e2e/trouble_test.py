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


def finished_files(folder):
    """The files of a conversion that are whole, but do not have their names yet."""
    return [path for path in folder.iterdir() if re.search(r"-[0-9a-f]{16}\.tmp$", path.name)]


class Killed(TestCase):
    def names(self, folder=None):
        return sorted(path.name for path in (folder or self.folder).iterdir())

    def kill_at(self, moment, *args):
        """Runs the command and kills it after so many seconds; returns whether it was still running then."""
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
        durations = []
        for _ in range(3):  # the first run is slower, and its time would be too late for the others
            start = time.monotonic()
            self.ballast(*args)
            durations.append(time.monotonic() - start)
        duration = min(durations)
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

    def test_is_resumed_shard_by_shard(self):
        self.write("in.safetensors", random_model(24, 2 << 20, seed=4))
        args = ("convert", "in.safetensors", "out/", "--max-shard-size", "2MiB", "--threads", "1")
        (self.folder / "out").mkdir()
        moments = random.Random(5)
        for shards in (3, 6, 9, 12):
            process = subprocess.Popen([COMMAND, *args], cwd=self.folder, stderr=subprocess.DEVNULL, env=environment())
            while len(finished_files(self.folder / "out")) < shards and process.poll() is None:
                time.sleep(0.001)
            time.sleep(moments.uniform(0, 0.005))
            self.assertIsNone(process.poll(), "the run was over before it could be killed")
            process.kill()
            process.wait()
        self.assertFalse((self.folder / "out" / "model.safetensors.index.json").exists(), "the index comes last")
        finished = len(finished_files(self.folder / "out"))
        self.assertIn(f"{finished} files had been written by a run that was stopped", self.ballast(*args).err)
        self.assertEqual([n for n in self.names(self.folder / "out") if n.startswith(".")], [])
        self.assertEqual(self.ballast("hash", "out", "--json").json()["digest"],
                         self.ballast("hash", "in.safetensors", "--json").json()["digest"])


class Interrupted(TestCase):
    def test_ctrl_c_keeps_finished_shards_and_says_how_to_go_on(self):
        self.write("in.safetensors", random_model(40, 4 << 20, seed=8))
        (self.folder / "out").mkdir()
        args = ("convert", "in.safetensors", "out/", "--max-shard-size", "4MiB", "--threads", "1")
        kept = lambda: finished_files(self.folder / "out")
        process = subprocess.Popen([COMMAND, *args], cwd=self.folder, stderr=subprocess.PIPE, env=environment())
        while len(kept()) < 3 and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == OK:
            self.skipTest("this machine is too fast to be interrupted")
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertRegex(err.decode(), r"interrupted\n  hint: \d+ of 41 files are finished and kept; starting the same again goes on")
        left = kept()
        self.assertGreaterEqual(len(left), 3)
        self.assertEqual(len(list((self.folder / "out").iterdir())), len(left), "nothing is left of the unfinished one")
        self.assertIn(f"{len(left)} files had been written by a run that was stopped", self.ballast(*args).err)
        self.assertEqual([path for path in (self.folder / "out").iterdir() if path.name.startswith(".")], [])
        self.assertEqual(self.ballast("hash", "out", "--digest").out, self.ballast("hash", "in.safetensors", "--digest").out)


class Resharded(TestCase):
    """--force replaces a whole set of shards, and not only the files of the same names."""

    def setUp(self):
        super().setUp()
        self.write("in.safetensors", {f"t{i}": ("U8", [100], bytes([i]) * 100) for i in range(6)})
        (self.folder / "out").mkdir()

    def convert(self, source, target, *more):
        return self.ballast("convert", source, target, *more)

    def names(self):
        return sorted(path.name for path in (self.folder / "out").iterdir())

    def shards(self, stem, count, ending="safetensors"):
        return [f"{stem}-{i:05}-of-{count:05}.{ending}" for i in range(1, count + 1)]

    def test_a_smaller_set_leaves_nothing_of_the_larger_one(self):
        for ending, name in (("safetensors", "model.safetensors"), ("bin", "pytorch_model.bin")):
            with self.subTest(ending):
                stem = name.removesuffix("." + ending)
                self.convert("in.safetensors", f"out/{name}", "--max-shard-size", "100")
                self.assertEqual(len(self.names()), 7)
                said = self.convert("in.safetensors", f"out/{name}", "--max-shard-size", "300", "--force").err
                self.assertEqual(self.names(), sorted(self.shards(stem, 2, ending) + [f"{name}.index.json"]))
                self.assertIn("removed 6 shards of an earlier set, such as", said)
                self.convert("in.safetensors", f"out/{name}", "--force")
                self.assertEqual(self.names(), [name], "nor does a single file")
                self.assertEqual(self.ballast("hash", "out", "--digest").out, self.ballast("hash", "in.safetensors", "--digest").out)
                (self.folder / "out" / name).unlink()

    def test_a_dry_run_says_what_would_be_removed(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        before = self.names()
        said = self.convert("in.safetensors", "out/", "--max-shard-size", "300", "--force", "--dry-run").err
        self.assertIn("would remove 6 shards of an earlier set, such as", said)
        self.assertEqual(self.names(), before)
        said = self.convert("in.safetensors", "out/", "--max-shard-size", "300", "--force").err
        self.assertNotIn("would remove", said)

    def test_a_set_can_be_made_from_itself(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        self.convert("out/", "out/", "--max-shard-size", "200", "--force")
        self.assertEqual(self.names(), sorted(self.shards("model", 3) + ["model.safetensors.index.json"]))
        self.assertEqual(self.ballast("hash", "out", "--digest").out, self.ballast("hash", "in.safetensors", "--digest").out)

    def test_removes_only_files_that_the_index_names_and_that_have_names_of_the_set(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        others = ["model-00009-of-00009.safetensors", "other-00001-of-00006.safetensors", "model-1-of-6.safetensors",
                  "model-00001-of-00006.bin", "model-00007-of-00006.safetensors", "weights.safetensors"]
        for name in others:
            (self.folder / "out" / name).write_bytes(b"mine")
        index = self.folder / "out/model.safetensors.index.json"
        text = json.loads(index.read_text())
        text["weight_map"] |= {f"x{i}": name for i, name in enumerate(others[1:])}
        index.write_text(json.dumps(text))
        said = self.convert("in.safetensors", "out/", "--max-shard-size", "300", "--force").err
        self.assertEqual(self.names(), sorted(self.shards("model", 2) + ["model.safetensors.index.json"] + others))
        self.assertIn('left alone, because no index names it: a shard of an earlier set, "model-00009-of-00009.safetensors"', said)

    def test_an_index_that_leads_elsewhere_removes_nothing(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        index = self.folder / "out/model.safetensors.index.json"
        index.write_text(index.read_text().replace("model-00006-of-00006.safetensors", "../in.safetensors"))
        self.convert("in.safetensors", "out/", "--max-shard-size", "300", "--force")
        self.assertTrue((self.folder / "in.safetensors").exists())
        self.assertEqual(len(self.names()), 9)

    def test_a_link_is_removed_and_not_what_it_leads_to(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        shard = self.folder / "out/model-00003-of-00006.safetensors"
        shard.rename(self.folder / "blob")
        shard.symlink_to("../blob")
        self.convert("in.safetensors", "out/", "--max-shard-size", "300", "--force")
        self.assertEqual(self.names(), sorted(self.shards("model", 2) + ["model.safetensors.index.json"]))
        self.assertTrue((self.folder / "blob").exists())

    def test_a_conversion_that_fails_removes_nothing(self):
        self.convert("in.safetensors", "out/", "--max-shard-size", "100")
        before = self.names()
        (self.folder / "out/model-00002-of-00002.safetensors").mkdir()
        self.refused("convert", "in.safetensors", "out/", "--max-shard-size", "300", "--force", code=USAGE, says="out/model-00002-of-00002.safetensors: is a directory")
        self.assertEqual(self.names(), sorted(before + ["model-00002-of-00002.safetensors"]))

    def test_left_parts_of_a_gguf_are_reported(self):
        self.write("f.safetensors", {f"t{i}": ("F32", [32], [i] * 32) for i in range(6)})
        self.convert("f.safetensors", "out/m.gguf", "--max-shard-size", "128")
        first = len(self.names())
        self.assertGreater(first, 2)
        said = self.convert("f.safetensors", "out/m.gguf", "--max-shard-size", "400", "--force").err
        self.assertIn("left alone, because no index names it", said)


class Full(TestCase):
    """A disk of 3 MiB, if this user may mount one."""

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

    def test_is_reported_before_anything_is_written_and_keeps_the_old_files(self):
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
