"""What the documentation shows is what the command does.

A block marked ```console is a session: lines that begin with "$ ballast", "$ ./dev run" or "$ python3 examples/" are run in a folder that has
the repository's examples/ in it and lasts as long as the document; the lines below must be what a terminal shows, where
a line "..." stands for any number of lines. "$ echo $?" shows the exit code. Other commands (git, cd,
apt) are for the reader and are not run, so no output is shown below them. A block whose output is not shown, or is
only "...", must only succeed.
"""

import shutil
import unittest

from support import *


def sessions(path):
    """(line number, command, expected lines) of every command in every console block."""
    inside, current, indent = False, None, 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            indent = len(line) - len(line.lstrip())  # of a block in a list
        line = line[indent:] if not line[:indent].strip() else line
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
    """The line without what differs from run to run: the time that it took."""
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
            NO_COLOR="1", LC_ALL="C.UTF-8", PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}"))
        self.last_code, text = terminal.finish(120)
        # On a slow machine there may have been a progress bar.
        return re.sub(r"[^\n]*\r\x1b\[K", "", text).splitlines()

    def check_document(self, path):
        for number, command, expected in sessions(path):
            where = f"{path.name}, line {number}: $ {command}"
            if command == "echo $?":
                self.assertEqual(expected, [str(self.last_code)], where)
            elif re.match(r"(ballast|\./dev run|python3 examples/make_\w+\.py)\b", command):
                actual = self.run_line(command)
                if all(line.strip() == "..." for line in expected):
                    self.assertEqual(self.last_code, OK, where + "\n" + "\n".join(actual))
                elif not matches(expected, actual):
                    self.fail("\n".join([where, "--- the document shows", *expected, "--- the command prints", *actual]))
            else:
                self.assertEqual(expected, [], where + "\nshows output, but is not run")


def add_test(path):
    name = "test_" + re.sub(r"\W+", "_", str(path.relative_to(SOURCE)))
    setattr(Documents, name, lambda self: self.check_document(path))


for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]:
    if document.exists():
        add_test(document)


def option_names(text):
    return set(re.findall(r"--[a-z][a-z-]*", text))


def lowest(commands):
    """The commands that can be run: "meta get", but not "meta"."""
    return [path for path in commands if path and not any(other.startswith(path + " ") for other in commands)]


class CommandPage(TestCase):
    """docs/cli.md has the verbs and the options that the parser has, each option for the verbs that have it, and no others."""

    def setUp(self):
        super().setUp()
        self.page = (SOURCE / "docs/cli.md").read_text()
        self.commands = parser_commands()
        self.sections = dict(re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", self.page))
        self.assertGreater(len(lowest(self.commands)), 10)

    def rows(self, section):
        """The cells of every row of every table of options: the options, the verbs that have them if a third column says so, the meaning."""
        inside = False
        for line in self.sections[section].splitlines():
            inside = line.startswith("|") and (inside or line.startswith("| option |"))
            if inside and "`" in line:
                yield [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]

    def verbs_of(self, cell, group=""):
        """The commands that a cell names: a list, of words after `group` if there is one, or "every verb but" a list."""
        words = {f"{group} {word}".strip() for word in re.findall(r"`([^`]+)`", cell)}
        self.assertLessEqual(words, set(lowest(self.commands)), cell)
        self.assertTrue(words, f"no verb in: {cell}")
        return set(lowest(self.commands)) - words if cell.startswith("every verb but") else words

    def test_the_first_table_lists_every_verb(self):
        table = {verb: row for row, verb in re.findall(r"(?m)^(\| \[`.*\]\(#([a-z]+)\) \|.*)$", self.page)}
        self.assertEqual(list(table), parser_verbs())
        for command in self.commands:
            for word in command.split()[1:]:
                self.assertRegex(table[command.split()[0]], rf"\b{word}\b", command)

    def test_every_verb_has_a_section_in_that_order(self):
        self.assertEqual([title for title in self.sections if title in parser_verbs()], parser_verbs())

    def test_the_tables_of_options_are_those_of_the_parser(self):
        said = {path: set() for path in ["", *lowest(self.commands)]}
        for option, *verbs, meaning in self.rows("What holds everywhere"):
            for path in self.verbs_of(verbs[0]) if verbs else [""]:
                said[path] |= option_names(option)
            for name in option_names(option) if verbs else []:
                have_it = [path for path in lowest(self.commands) if name in self.commands[path]]
                self.assertEqual(sorted(self.verbs_of(verbs[0])), sorted(have_it), name)
        for verb in parser_verbs():
            for option, *verbs, meaning in self.rows(verb):
                for path in self.verbs_of(verbs[0], verb) if verbs else [verb]:
                    said[path] |= option_names(option)
        for path in said:
            self.assertEqual(sorted(said[path]), sorted(self.commands[path]), path or "options of every verb")

    def test_describes_the_schema_of_every_verb_that_has_json(self):
        for verb in {path.split()[0] for path in lowest(self.commands) if "--json" in self.commands[path]}:
            self.assertRegex(self.page, rf"`ballast\.{verb}/\d`")


class Manual(TestCase):
    """The man page has the verbs and the options that the parser has, and no others."""

    def setUp(self):
        super().setUp()
        page = (SOURCE / "docs/ballast.1").read_text()
        self.commands = parser_commands()
        self.synopsis = re.search(r"(?m)^\.Cm (info .*)$", page).group(1).split(" | ")
        verbs, options = re.search(r"(?ms)^\.Ss Verbs\n(.*)^\.Ss Options\n(.*?)^\.Sh ", page).groups()
        self.items = re.split(r"(?m)^(?=\.It Cm )", verbs)[1:]
        self.everywhere = self.options(options)

    def options(self, text):
        flags = set(re.findall(r"\bFl (-?[a-z][a-z-]*)", text))
        return {"--output" if flag == "o" else f"-{flag}" for flag in flags if flag.startswith("-") or flag == "o"}

    def test_the_synopsis_lists_every_verb(self):
        self.assertEqual(self.synopsis, parser_verbs())

    def test_describes_every_verb(self):
        for path in lowest(self.commands):
            self.assertTrue(any(re.match(rf"\.It Cm {path}\b", item) for item in self.items), path)

    def test_describes_every_option_and_no_other(self):
        for verb in parser_verbs():
            said = self.options("".join(item for item in self.items if item.startswith(f".It Cm {verb}")))
            here = set().union(*(options for path, options in self.commands.items() if path.split()[:1] == [verb]))
            self.assertEqual(sorted(here - said - self.everywhere), [], f"{verb}: the page does not have these")
            self.assertEqual(sorted(said - here - self.commands[""]), [], f"{verb}: the parser does not have these")
        self.assertEqual(sorted(self.commands[""] - self.everywhere), [], "the page does not have these")
        self.assertEqual(sorted(self.everywhere - set().union(*self.commands.values())), [], "the parser does not have these")


class Reference(TestCase):
    def test_the_pages_have_the_exit_codes_of_the_help(self):
        block = self.ballast("--help").out.split("\nExit codes\n")[1]
        codes = re.findall(r"(?:^|; )(\d+) [a-z]", " ".join(block.split()))
        self.assertEqual(codes, ["0", "1", "2", "3", "4", "5", "6", "130"])
        page = re.search(r"(?ms)^\| exit code \|.*?\n\n", (SOURCE / "docs/cli.md").read_text()).group()
        self.assertEqual(re.findall(r"(?m)^\| (\d+) \|", page), codes)
        manual = (SOURCE / "docs/ballast.1").read_text().split(".Sh EXIT STATUS\n")[1].split(".Sh ")[0]
        self.assertEqual(re.findall(r"(?m)^\.It (\d+)$", manual), codes)

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
