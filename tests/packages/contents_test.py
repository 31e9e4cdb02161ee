"""The packages that cmake/make_packages makes of a build have what they should have, and their command runs."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ["BALLAST_BUILD_DIR"])
VERSION = re.search(r"VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text().split("project(ballast")[1])[1]
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so")

for tool in ("dpkg-deb", "dpkg-shlibdeps", "file", "gzip", "objdump"):
    if shutil.which(tool) is None:
        print(f"{tool} is not installed; ./dev setup package installs it")
        sys.exit(77)


def run(*words, **options):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, **options).stdout


def dynamic_section(program):
    """[(tag, value)]: ("NEEDED", "libc.so.6"), ("RUNPATH", …)."""
    return re.findall(r"(?m)^\s+(NEEDED|RUNPATH|RPATH)\s+(\S+)", run("objdump", "-p", program))


def files_below(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ballast-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        made = cls.make("dist")
        cls.deb, cls.tarball = sorted(made, key=lambda path: path.suffix != ".deb")
        run("dpkg-deb", "-x", cls.deb, cls.folder / "deb")
        cls.usr = cls.folder / "deb/usr"
        with tarfile.open(cls.tarball) as archive:
            cls.members = archive.getmembers()
            archive.extractall(cls.folder)
        cls.unpacked = cls.folder / cls.tarball.name.removesuffix(".tar.gz")

    @classmethod
    def make(cls, name):
        done = subprocess.run([SOURCE / "cmake/make_packages", BUILD, cls.folder / name, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"],
                              capture_output=True, text=True)  # not xz, which takes ten times as long
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return list(map(pathlib.Path, done.stdout.splitlines()))

    def field(self, name):
        return run("dpkg-deb", "-f", self.deb, name).strip()

    def check_command(self, program):
        clean = {"PATH": "/nowhere", "LC_ALL": "C.UTF-8"}
        self.assertEqual(run(program, "--version", env=clean).split()[-1], VERSION)
        said = json.loads(run(program, "info", "--json", SOURCE / "examples/tiny.safetensors", env=clean))
        self.assertEqual(said["tensors"], 12)

    def check_completions(self, share, zsh):
        for shell, path in {"bash": "bash-completion/completions/ballast", "fish": "fish/vendor_completions.d/ballast.fish",
                            "zsh": zsh}.items():
            self.assertEqual((share / path).read_text(), run(BUILD / "bin/ballast", "completion", shell))

    def test_have_the_names_that_the_documents_say(self):
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(self.deb.name, f"ballast_{VERSION}_{architecture}.deb")
        self.assertEqual(self.tarball.name, f"ballast-{VERSION}-linux-{os.uname().machine}.tar.gz")

    def test_the_tarball_has_the_command_its_pages_and_nothing_else(self):
        carried = {path for path in files_below(self.unpacked) if path.startswith("lib/")}
        self.assertEqual(files_below(self.unpacked) - carried, {
            "bin/ballast", "share/man/man1/ballast.1", "share/bash-completion/completions/ballast",
            "share/fish/vendor_completions.d/ballast.fish", "share/zsh/site-functions/_ballast",
            "share/doc/ballast/LICENSE", "share/doc/ballast/copyright", "share/doc/ballast/CHANGELOG.md"})
        self.check_completions(self.unpacked / "share", "zsh/site-functions/_ballast")

    def test_the_tarball_has_the_libraries_that_its_command_needs(self):
        tags = dynamic_section(self.unpacked / "bin/ballast")
        self.assertIn(("RUNPATH", "$ORIGIN/../lib"), tags)
        carried = {path.name for path in self.unpacked.glob("lib/*")}
        needed = {value for tag, value in tags if tag == "NEEDED" and not SYSTEM.match(value)}
        self.assertLessEqual(needed, carried)
        self.assertEqual([name for name in carried if SYSTEM.match(name)], [], "these must be the system's own")

    def test_the_tarball_belongs_to_nobody_and_stays_in_its_folder(self):
        for member in self.members:
            self.assertEqual((member.uid, member.gid), (0, 0), member.name)
            self.assertEqual(member.name.split("/")[0], self.unpacked.name)
            self.assertTrue(member.issym() or member.mode & 0o022 == 0, member.name)

    def test_the_command_of_the_tarball_runs(self):
        self.check_command(self.unpacked / "bin/ballast")

    def test_the_deb_has_the_command_its_pages_and_nothing_else(self):
        self.assertEqual(files_below(self.folder / "deb"), {f"usr/{path}" for path in (
            "bin/ballast", "share/man/man1/ballast.1.gz", "share/bash-completion/completions/ballast",
            "share/fish/vendor_completions.d/ballast.fish", "share/zsh/vendor-completions/_ballast",
            "share/doc/ballast/copyright", "share/doc/ballast/changelog.gz", "share/lintian/overrides/ballast")})
        self.check_completions(self.usr / "share", "zsh/vendor-completions/_ballast")
        self.assertEqual(run("gzip", "-dc", self.usr / "share/man/man1/ballast.1.gz"), (SOURCE / "docs/ballast.1").read_text())

    def test_the_deb_says_what_it_needs(self):
        self.assertEqual(self.field("Package"), "ballast")
        self.assertEqual(self.field("Version"), VERSION)
        self.assertIn("libc6 (>= ", self.field("Depends"))
        self.assertEqual(self.field("Recommends"), "libcurl4, libopenblas0")
        self.assertRegex(self.field("Description"), "^look into, compare and convert model checkpoints\n Ballast opens ")

    def test_the_command_of_the_deb_looks_for_libraries_in_the_places_of_the_system_only(self):
        self.assertEqual([tag for tag, value in dynamic_section(self.usr / "bin/ballast") if tag != "NEEDED"], [])

    def test_the_command_of_the_deb_runs(self):
        self.check_command(self.usr / "bin/ballast")

    def test_both_have_the_licences_of_the_libraries_that_they_contain(self):
        text = (self.usr / "share/doc/ballast/copyright").read_text()
        self.assertEqual((self.unpacked / "share/doc/ballast/copyright").read_text(), text)
        for words in ("Apache License 2.0", "-------- libssl-dev", "-------- zlib1g-dev", "-------- libstdc++-", "Yann Collet", "d3-hierarchy: Copyright"):
            self.assertIn(words, text)

    def test_the_same_build_makes_the_same_packages(self):
        for path in self.make("again"):
            self.assertEqual(path.read_bytes(), (self.folder / "dist" / path.name).read_bytes(), path.name)


if __name__ == "__main__":
    unittest.main()
