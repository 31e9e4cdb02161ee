"""What the documentation shows is what the command does.

A block marked ```console is a session: lines that begin with "$ ballast" or "$ ./dev run" are run in a folder that has
the repository's examples/ in it and lasts as long as the document; the lines below must be what a terminal shows, where
a line "..." stands for any number of lines. "$ echo $?" shows the exit code. Other commands (git, cd,
apt) are for the reader and are not run. A block whose output is not shown must only succeed.
"""

import shutil
import unittest

from support import *


def sessions(path):
    """(line number, command, expected lines) of every command in every console block."""
    inside, current = False, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = line.strip() == "```console"
            if current:
                yield current
            current = None
        elif inside and line.startswith("$ "):
            if current:
                yield current
            current = (number, line[2:], [])
        elif inside and line.startswith("> ") and current and not current[2]:
            current = (current[0], current[1] + "\n" + line[2:], [])
        elif inside and current:
            current[2].append(line)


def matches(expected, actual):
    """Whether the lines are the same, "..." being any number of them."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and comparable(expected[0]) == comparable(actual[0]) and matches(expected[1:], actual[1:])


def comparable(line):
    """The line without what differs from run to run: how long it took."""
    return re.sub(r"\bin [0-9.]+ m?s\b", "in TIME", line.rstrip())


class Documents(TestCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(SOURCE / "examples", self.folder / "examples")
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "ballast").symlink_to(COMMAND)
        self.last_code = 0

    def run_line(self, command):
        command = re.sub(r"^\./dev run\b", "ballast", command)
        terminal = Terminal("-c", command, program="bash", cwd=self.folder, columns=120, env=environment(
            NO_COLOR="1", PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}"))
        self.last_code, text = terminal.finish(120)
        # On a slow machine there may have been a progress bar.
        return re.sub(r"[^\n]*\r\x1b\[K", "", text).splitlines()

    def check_document(self, path):
        for number, command, expected in sessions(path):
            where = f"{path.name}, line {number}: $ {command}"
            if command == "echo $?":
                self.assertEqual(expected, [str(self.last_code)], where)
            elif re.match(r"(ballast|\./dev run)\b", command):
                actual = self.run_line(command)
                if not expected:
                    self.assertEqual(self.last_code, OK, where + "\n" + "\n".join(actual))
                elif not matches(expected, actual):
                    self.fail("\n".join([where, "--- the document shows", *expected, "--- the command prints", *actual]))


def add_test(path):
    name = "test_" + re.sub(r"\W+", "_", str(path.relative_to(SOURCE)))
    setattr(Documents, name, lambda self: self.check_document(path))


for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]:
    if document.exists():
        add_test(document)


class Reference(TestCase):
    """The pages that list everything do list everything."""

    def options(self):
        found = set()
        for verb in ([], ["info"], ["ls"], ["cat"], ["stats"], ["hash"], ["verify"], ["diff"], ["meta", "get"],
                     ["meta", "set"], ["meta", "unset"], ["convert"], ["plan"], ["adapter", "info"], ["adapter", "extract"], ["adapter", "inject"],
                     ["adapter", "convert"], ["adapter", "merge"], ["adapter", "from-diff"], ["cache", "path"], ["cache", "list"],
                     ["cache", "clear"], ["completion"]):
            found.update(re.findall(r"(?m)^  .{4}--([a-z-]+)", self.ballast(*verb, "--help").out))
        return sorted(found)

    def test_cli_md_and_the_man_page_describe_every_option(self):
        page = (SOURCE / "docs/cli.md").read_text()
        manual = (SOURCE / "docs/ballast.1").read_text()
        self.assertGreater(len(self.options()), 20)
        for option in self.options():
            self.assertIn(f"--{option}", page)
            if option != "output":  # the manual knows it as -o
                self.assertIn(f"-{option}", manual)

    def test_cli_md_describes_every_schema(self):
        page = (SOURCE / "docs/cli.md").read_text()
        for verb in "info ls cat stats hash verify diff meta convert plan adapter cache".split():
            self.assertIn(f"ballast.{verb}/1", page)

    def test_the_man_page_is_well_formed(self):
        page = SOURCE / "docs/ballast.1"
        tools = {"mandoc": ["mandoc", "-T", "lint", "-W", "warning", page],
                 "man": ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page]}
        tools = {tool: command for tool, command in tools.items() if shutil.which(tool)}
        if not tools:
            self.skipTest("neither man nor mandoc is installed")
        for tool, command in tools.items():
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(MANPAGER="cat"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), tool)

    def test_tiny_safetensors_is_what_its_program_writes(self):
        shutil.copy(SOURCE / "examples/make_tiny.py", self.folder)
        subprocess.run([sys.executable, self.folder / "make_tiny.py"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual((self.folder / "tiny.safetensors").read_bytes(), TINY.read_bytes())


if __name__ == "__main__":
    unittest.main()
