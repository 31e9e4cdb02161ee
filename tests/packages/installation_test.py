"""What cmake/installation puts under a prefix, it removes again: all of it, and nothing else."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
RECORD = "share/ballast/install_manifest.txt"


class Installation(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ballast-installation-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree, self.prefix = self.folder / "tree", self.folder / "prefix"
        self.write(self.tree, {"bin/ballast": "command", "include/ballast/open.hpp": "header", "share/man/man1/a b.1": "page"})
        (self.tree / "bin/ballast").chmod(0o755)

    def write(self, root, files):
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)

    def below(self, root):
        return {str(path.relative_to(root)) for path in root.rglob("*")}

    def run_script(self, *args, code=0):
        done = subprocess.run([SOURCE / "cmake/installation", *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def put(self, **expect):
        return self.run_script("put", self.tree, self.prefix, **expect)

    def remove(self, **expect):
        return self.run_script("remove", self.prefix, **expect)

    def test_puts_every_file_with_its_mode(self):
        self.put()
        self.assertEqual(self.below(self.prefix), self.below(self.tree) | {"share/ballast", RECORD})
        self.assertEqual((self.prefix / "bin/ballast").read_text(), "command")
        self.assertEqual((self.prefix / "bin/ballast").stat().st_mode & 0o777, 0o755)

    def test_removes_the_files_and_the_folders_that_it_made(self):
        self.put()
        self.remove()
        self.assertFalse(self.prefix.exists())

    def test_says_what_it_removes(self):
        self.put()
        said = self.remove().stdout.splitlines()
        for path in ("bin/ballast", "include/ballast/open.hpp", "share/man/man1/a b.1", RECORD, "bin"):
            self.assertIn(f"removed {self.prefix / path}", said)

    def test_leaves_what_was_there_before(self):
        before = {"bin/other": "theirs", "share/man/man1/other.1": "theirs"}
        self.write(self.prefix, before)
        (self.prefix / "include").mkdir()
        there = self.below(self.prefix)
        self.put()
        self.remove()
        self.assertEqual(self.below(self.prefix), there)

    def test_leaves_a_folder_in_which_something_else_has_appeared(self):
        self.put()
        self.write(self.prefix, {"include/ballast/mine.hpp": "mine"})
        self.assertIn("something else is in it", self.remove().stderr)
        self.assertEqual(self.below(self.prefix), {"include", "include/ballast", "include/ballast/mine.hpp"})

    def test_leaves_a_file_that_has_changed(self):
        self.put()
        self.write(self.prefix, {"bin/ballast": "another program"})
        self.assertIn(f"kept {self.prefix / 'bin/ballast'}: it has changed", self.remove().stderr)
        self.assertEqual(self.below(self.prefix), {"bin", "bin/ballast"})

    def test_does_not_mind_what_is_gone_already(self):
        self.put()
        (self.prefix / "bin/ballast").unlink()
        self.assertIn("was gone already", self.remove().stderr)
        self.assertFalse(self.prefix.exists())

    def test_a_second_installation_removes_what_only_the_first_one_had(self):
        self.put()
        (self.tree / "include/ballast/open.hpp").unlink()
        self.write(self.tree, {"include/ballast/save.hpp": "header", "bin/ballast": "newer command"})
        self.put()
        self.assertFalse((self.prefix / "include/ballast/open.hpp").exists())
        self.assertEqual((self.prefix / "bin/ballast").read_text(), "newer command")
        self.remove()
        self.assertFalse(self.prefix.exists())

    def test_an_installation_that_failed_can_be_removed(self):
        self.put()
        self.write(self.tree, {"bin/ballast": "newer command", "last/file": "new"})
        (self.prefix / "last/file").mkdir(parents=True)  # where a file should go
        self.put(code=1)
        self.assertEqual((self.prefix / "bin/ballast").read_text(), "newer command")
        self.remove()
        self.assertEqual(self.below(self.prefix), {"last", "last/file"})

    def test_says_if_it_replaces_what_it_did_not_put_there(self):
        self.write(self.prefix, {"bin/ballast": "theirs"})
        self.assertIn(f"replacing {self.prefix / 'bin/ballast'}", self.put().stderr)
        self.assertNotIn("replacing", self.put().stderr)

    def test_replaces_a_link_and_not_what_it_leads_to(self):
        self.write(self.folder, {"elsewhere": "theirs"})
        (self.prefix / "bin").mkdir(parents=True)
        (self.prefix / "bin/ballast").symlink_to(self.folder / "elsewhere")
        self.put()
        self.assertEqual((self.folder / "elsewhere").read_text(), "theirs")
        self.assertFalse((self.prefix / "bin/ballast").is_symlink())

    def test_a_moved_tree_is_removed_where_it_is(self):
        self.put()
        self.prefix = self.prefix.rename(self.folder / "moved")
        self.remove()
        self.assertFalse(self.prefix.exists())

    def test_without_a_record_nothing_is_removed(self):
        self.write(self.prefix, {"bin/ballast": "theirs"})
        self.assertIn("there is nothing to remove", self.remove(code=1).stderr)
        self.assertTrue((self.prefix / "bin/ballast").exists())

    def test_a_record_that_leads_out_of_the_prefix_removes_nothing(self):
        self.put()
        self.write(self.folder, {"elsewhere": ""})
        empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        for path in ("../elsewhere", str(self.folder / "elsewhere"), "bin/../../elsewhere", ".."):
            with self.subTest(path):
                record = (self.prefix / RECORD).read_text()
                (self.prefix / RECORD).write_text(f"{record}{empty}  {path}\n")
                self.assertIn("leads out of its folder", self.remove(code=1).stderr)
                (self.prefix / RECORD).write_text(record)
                self.assertTrue((self.folder / "elsewhere").exists())
                self.assertTrue((self.prefix / "bin/ballast").exists())

    def test_a_record_of_something_else_removes_nothing(self):
        self.put()
        (self.prefix / RECORD).write_text("bin/ballast\n")
        self.assertIn("is not a record of an installation: see line 1", self.remove(code=1).stderr)
        self.assertTrue((self.prefix / "bin/ballast").exists())

    def test_a_file_where_a_folder_must_be_stops_it_before_anything_is_copied(self):
        self.write(self.prefix, {"share": "a file"})
        self.assertIn("is not a folder", self.put(code=1).stderr)
        self.assertEqual(self.below(self.prefix), {"share"})

    def test_dev_uninstall_finds_the_prefix_below_destdir(self):
        self.put()
        done = subprocess.run([SOURCE / "dev", "uninstall", "--prefix", "/prefix"], capture_output=True, text=True,
                              env=os.environ | {"DESTDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.prefix.exists())

    def test_dev_uninstall_refuses_words_that_it_does_not_know(self):
        for words in (["--prefix"], ["--prefix="], ["--prefixes", str(self.prefix)], [str(self.prefix)]):
            done = subprocess.run([SOURCE / "dev", "uninstall", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("prefix", done.stderr)


if __name__ == "__main__":
    unittest.main()
