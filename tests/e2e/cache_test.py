"""The conversion cache, from outside: it is made when asked for, used when valid, and never half there."""

import random
import shutil
import unittest
import zipfile

from support import *

PT = SOURCE / "examples" / "tiny.pt"
CACHE = ".model.pt.ballast-cache.safetensors"


class Cache(TestCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o700)
        self.home = self.folder / "home"
        self.models = self.folder / "models"
        self.models.mkdir(mode=0o700)
        self.write_deflated(self.models / "model.pt")

    def write_deflated(self, path, padding=0, of=PT):
        """Packs the example again, deflated, so that its tensors cannot be mapped."""
        with zipfile.ZipFile(of) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for member in old.namelist():
                new.writestr(member, old.read(member))
            if padding:
                new.writestr("tiny/extra", random.Random(1).randbytes(padding))

    def run_raw(self, *args, env=None, **more):
        return super().run_raw(*args, env=env or self.environment(), **more)

    def environment(self, **more):
        return environment(XDG_CACHE_HOME=str(self.home), XDG_STATE_HOME=str(self.folder / "state"), **more)

    def made(self):
        return (self.models / CACHE).exists()

    def test_is_made_by_verbs_that_read_data_and_only_when_asked(self):
        self.ballast("hash", "models/model.pt")
        for verb in (["info"], ["ls"], ["scan"], ["verify"], ["hash"], ["meta", "get"]):
            self.ballast(*verb, "models/model.pt", "--cache")
        self.assertFalse(self.made())
        self.ballast("stats", "models/model.pt", "--cache")
        self.assertTrue(self.made())

    def test_the_environment_asks_too(self):
        self.ballast("stats", "models/model.pt", env=self.environment(BALLAST_CACHE="1"))
        self.assertTrue(self.made())

    def test_a_file_that_can_be_mapped_gets_a_cache_only_with_cache_all(self):
        self.ballast("convert", TINY, "models/plain.pt", "-q")
        self.ballast("stats", "models/plain.pt", "--cache")
        self.assertFalse((self.models / ".plain.pt.ballast-cache.safetensors").exists())
        self.ballast("stats", "models/plain.pt", "--cache-all")
        self.assertTrue((self.models / ".plain.pt.ballast-cache.safetensors").exists())

    def test_gives_the_same_answers(self):
        questions = [["info", "--json"], ["hash", "--json"], ["ls", "--root", "state_dict"], ["stats", "--json"]]
        before = [self.ballast(verb, "models/model.pt", *more).out for verb, *more in questions]
        self.ballast("stats", "models/model.pt", "--cache")
        after = [self.ballast(verb, "models/model.pt", *more).out for verb, *more in questions]
        self.assertEqual(before, after)
        self.assertIn(CACHE, self.ballast("ls", "models/model.pt", "--json").out)
        self.assertNotIn(CACHE, self.ballast("ls", "models/model.pt", "--json", "--no-cache").out)

    def test_is_not_planted_by_an_archive(self):
        """Another user packed a checkpoint with a cache of other numbers: those of the checkpoint count."""
        self.write("other.safetensors", {"w": ("F32", [2], b"\0" * 8)})
        self.ballast("stats", "models/model.pt", "--cache")
        packed = self.folder / "packed"
        shutil.copytree(self.models, packed)
        shutil.copy(self.folder / "other.safetensors", packed / CACHE)
        packed.chmod(0o700)
        for target in ("packed/model.pt", "packed"):
            self.assertNotIn(CACHE, self.ballast("ls", target, "--json").out)
            self.assertEqual(self.ballast("hash", target, "--json").out, self.ballast("hash", PT, "--json").out)

    def test_no_cache_is_made_without_a_folder_for_its_key(self):
        (self.folder / "file").write_text("")
        result = self.ballast("stats", "models/model.pt", "--cache", env=environment(
            XDG_CACHE_HOME=str(self.home), XDG_STATE_HOME=str(self.folder / "file")))
        self.assertFalse(self.made())
        self.assertIn("no conversion cache was made", result.err)

    def test_a_compressed_cache_gives_the_same_answers(self):
        self.write("plain.safetensors", {"w": ("F32", [1 << 18], [i % 7 for i in range(1 << 18)])})
        self.ballast("convert", "plain.safetensors", "plain.pt", "-q")
        self.write_deflated(self.models / "model.pt", of=self.folder / "plain.pt")
        before = self.ballast("stats", "models/model.pt", "--json").out
        self.assertEqual(self.ballast("stats", "models/model.pt", "--json", "--cache", "--compress-cache").out, before)
        self.assertTrue(self.made())
        self.assertLess((self.models / CACHE).stat().st_size, 1 << 18, "a quarter of the bytes in it")
        self.assertEqual([each["valid"] for each in self.ballast("cache", "list", "--json").json()["caches"]], [True])
        self.assertEqual(self.ballast("stats", "models/model.pt", "--json").out, before)

    def test_a_source_that_changed_is_converted_anew(self):
        self.ballast("stats", "models/model.pt", "--cache")
        self.write_deflated(self.models / "model.pt", padding=100)
        self.assertEqual(self.ballast("cache", "list", "--json").json()["caches"][0]["valid"], False)
        self.assertNotIn(CACHE, self.ballast("ls", "models/model.pt", "--json").out)
        self.ballast("stats", "models/model.pt", "--cache")
        self.assertIn(CACHE, self.ballast("ls", "models/model.pt", "--json").out)

    def test_list_path_and_clear(self):
        self.refused("cache", "path", "nosuch.pt", code=IO, says="no such file")
        self.assertEqual(self.ballast("cache", "list").err, "no caches\n")
        self.ballast("stats", "models/model.pt", "--cache")
        listed = self.ballast("cache", "list", "--json").json()["caches"]
        self.assertEqual([(c["path"], c["source"], c["valid"]) for c in listed],
                         [(str(self.models / CACHE), str(self.models / "model.pt"), True)])
        self.assertEqual(self.ballast("cache", "path", "models/model.pt").out.strip().split("/")[-1], CACHE)
        self.assertEqual(self.ballast("cache", "path").out.strip(), str(self.home / "ballast"))
        self.assertRegex(self.ballast("cache", "clear", "models/model.pt").err, r"removed 1 cache, \S+ kB\n")
        self.assertFalse(self.made())
        self.assertEqual(self.ballast("cache", "clear").err, "no caches to remove\n")

    def test_a_folder_that_others_can_write_to_gets_no_cache(self):
        self.models.chmod(0o777)
        self.ballast("stats", "models/model.pt", "--cache")
        self.assertFalse(self.made())
        self.assertTrue(self.ballast("cache", "path", "models/model.pt").out.startswith(str(self.home)))

    def test_sixteen_processes_see_a_complete_checkpoint_or_are_killed(self):
        random_bytes = random.Random(2)
        self.write("big.safetensors", {f"t{i}": ("F32", [1 << 16], random_bytes.randbytes(1 << 18)) for i in range(24)})
        self.ballast("convert", "big.safetensors", "plain.pt", "-q")
        with zipfile.ZipFile(self.folder / "plain.pt") as old, \
                zipfile.ZipFile(self.models / "big.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for member in old.namelist():
                new.writestr(member, old.read(member))
        wanted = self.ballast("stats", "models/big.pt", "--json").out
        for turn in range(3):
            processes = [subprocess.Popen([COMMAND, "stats", "models/big.pt", "--json", "--cache", "-q"], cwd=self.folder,
                                          env=self.environment(), stdout=subprocess.PIPE)
                         for _ in range(16)]
            victims = random_bytes.sample(processes, 5)
            for process in victims:
                time.sleep(random_bytes.uniform(0, 0.1))
                process.kill()
            for process in processes:
                out = process.communicate(timeout=120)[0].decode()
                if process not in victims:
                    self.assertEqual((process.returncode, out), (OK, wanted))
            self.assertEqual(self.ballast("stats", "models/big.pt", "--json", "--cache").out, wanted)
            self.assertEqual(sorted(path.name for path in self.models.iterdir()),
                             [".big.pt.ballast-cache.safetensors", "big.pt", "model.pt"], "nothing else is left")
            self.ballast("cache", "clear")


if __name__ == "__main__":
    unittest.main()
