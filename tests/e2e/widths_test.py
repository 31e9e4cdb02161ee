"""Every verb at every width: what a terminal shows fits it, and a pipe gets all of it.

A line may be wider than the terminal only if it is one word: a digest, a path or a name that is cut nowhere else. The
terminal goes on with such a word in its next line, and it can be copied as a whole.
"""

import math
import pickle
import subprocess
import sys
import unicodedata
import unittest

from imatrix_test import legacy
from support import *

WIDTHS = (50, 80, 120)
MODEL = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"
LONG = "model.layers.0." + "x" * 300 + ".weight"
NAMES = [LONG, "模型.层.权重" * 20, "e\u0301" * 200, "\u202eabc" + "שלום" * 30, "a" * 48 + "👍🏽" * 20, "short"]

# Data that was asked for by its name, and that a program may read from the terminal: it is printed as it is.
AS_IT_IS = ("--json", "--sarif", "completion")

COMMANDS = """
info NAMES | info tour/base --context 8192 | info tour/last.ckpt | info tour/stranger.pt | info tour/moe | info several | info tour/chat-lora
tour/base TINY | info NAMES --json | info nothing.safetensors | info cut.safetensors
ls NAMES | ls NAMES --long --top 3 | ls NAMES --tree | ls tour/moe experts --depth 1 | ls TINY | ls NAMES --duplicates | ls tour/chat --duplicates | ls TINY nrom | ls TINY --sort size | ls NAMES --json
cat TINY model.position_ids | cat TINY model.embed.weight | cat NAMES short | cat TINY model.nrom.weight | cat TINY *.norm.* -o n1.npz --force
stats NAMES | stats tour/spike.safetensors | stats TINY *mlp* --histogram | stats TINY model.embed.weight | stats TINY --long
stats TINY --quantiles | stats TINY model.embed.weight --axis -1 --top 2 | stats NAMES --axis 0 | stats tour/spike.safetensors --problems | stats zeros.safetensors --problems
stats TINY --problems | stats tour/chat-lora --problems
hash NAMES | hash TINY *norm* | hash TINY --digest | hash nothing
scan tour/stranger.pt | scan examples/tiny.pt -v | scan tour | scan --allowlist | scan examples/tiny.pt
verify TINY | verify TINY --manifest other.sha256 | verify cut.safetensors | verify NAMES
check tour/partial | check tour/chat TINY | check tour/stranger.pt tour/spike.safetensors | check NAMES | check zeros.safetensors | check --rules
diff tour/chat tour/code --top 3 | diff tour/base tour/chat | diff tour/chat-lora tour/code-lora --top 3 | diff NAMES TINY | diff TINY TINY
diff NAMES zeros.safetensors | diff tour/base tour/chat --effective-rank --top 3
view TINY --html page.html --force | view | view TINY --html page.html
meta get NAMES | meta get TINY | meta get GGUF | meta get TINY format | meta get TINY fromat | meta set edited.safetensors a=1 | meta unset edited.safetensors a
convert TINY half.safetensors --dtype F16 --force | convert TINY sharded/ --max-shard-size 4kB --dry-run | convert tour/last.ckpt last.safetensors --model-only --force
convert tour/base base.gguf --type Q4_K_M --dry-run | convert tour/chat chat2/ --dtype BF16 --dry-run | convert NAMES n.gguf | convert examples/tiny.pt t.gguf --dry-run
convert TINY f8.safetensors --dtype F8_E4M3 --exclude nothing --force | convert TINY TINY
fetch tour/base | fetch http://127.0.0.1:1/x.safetensors -o d | plan TINY --ranks 2 --rules examples/ranks.json | plan TINY
adapter info tour/chat-lora | adapter info TINY | adapter merge examples/tiny.safetensors examples/tiny-lora -o m.safetensors --dry-run
adapter merge tour/base tour/chat-lora -o m/ --dry-run | adapter convert tour/chat-lora --to kohya -o k.safetensors --dry-run
adapter inject tour/base tour/chat-lora -o i.safetensors --dry-run | adapter from-diff tour/chat tour/code --rank 2 --dry-run
adapter extract i2.safetensors --config tour/chat-lora/adapter_config.json -o x --dry-run | adapter convert TINY --to kohya -o k.safetensors
imatrix info imatrix.dat | imatrix info TINY | cache list | cache path TINY | cache path nothing | cache clear
completion bash | completion tcsh | lss TINY | --limits | --version | help options | --help | --nothing
""".replace("\n", " | ")

# The exit codes of those that do not succeed.
CODES = {
    NO: """stats tour/spike.safetensors --problems | stats zeros.safetensors --problems | scan tour/stranger.pt | scan tour
           verify TINY --manifest other.sha256 | verify cut.safetensors | check tour/partial | check tour/stranger.pt tour/spike.safetensors
           check zeros.safetensors | diff tour/chat tour/code --top 3 | diff tour/base tour/chat | diff tour/chat-lora tour/code-lora --top 3
           diff NAMES TINY | diff NAMES zeros.safetensors | diff tour/base tour/chat --effective-rank --top 3""",
    USAGE: """ls TINY --sort size | view | view TINY --html page.html | convert TINY TINY | fetch tour/base | plan TINY
              completion tcsh | lss TINY | --nothing""",
    IO: """info nothing.safetensors | ls TINY nrom | cat TINY model.nrom.weight | hash nothing | meta get TINY fromat
           fetch http://127.0.0.1:1/x.safetensors -o d | adapter info TINY | adapter convert TINY --to kohya -o k.safetensors | cache path nothing""",
    MALFORMED: "info cut.safetensors | imatrix info TINY",
    UNSUPPORTED: "convert NAMES n.gguf",
}
CODE_OF = {command.strip(): code for code, lines in CODES.items() for command in re.split(r" \| |\n", lines)}


def commands():
    """Every line above, and the help of every verb in both lengths."""
    for line in filter(None, map(str.strip, COMMANDS.split("|"))):
        yield line.split(" ")
    for path in parser_commands():
        yield [*path.split(), "--help"]
        yield [*path.split(), "--help-all"]


def columns_of(text):
    """Columns by Python's tables, which are not ours."""
    return sum(0 if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


def make_targets(folder):
    """One folder for all tests of this file: no command here changes what another one reads."""
    shutil.copytree(SOURCE / "examples", folder / "examples")
    subprocess.run([sys.executable, "examples/make_tour.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    put = lambda name, content: (folder / name).write_bytes(content)
    put("names.safetensors", safetensors({name: ("F32", [8, 40], pack("F32", [math.sin(i + 1) for i in range(320)])) for name in NAMES},
                                         {"tokenizer.ggml.some_long_key.padding_token_id": "32000", "big": str(2**100), "a_key_that_is_long": str(2**100), "mixed": "from 0.5 to 123456 " * 9, "description": "a word and another " * 40, "one": "x" * 400, "numbers": "1 22 333 " * 200, "list": str(list(range(900))), "模型" * 30: "y"}))
    put("zeros.safetensors", safetensors({name: ("F32", [8, 40], pack("F32", [0.0] * 8 + [math.nan] + [1.0] * 311)) for name in NAMES}))
    put("cut.safetensors", TINY.read_bytes()[:3000])
    put("edited.safetensors", TINY.read_bytes())
    put("other.sha256", "".join(f"{i:064x}  {name}\n" for i, name in enumerate(NAMES)).encode())
    put("imatrix.dat", legacy([(b"blk.%d." % i + b"x" * 100, 2, [2, 4.123456]) for i in range(9)]))
    (folder / "several").mkdir()
    for name in ("b" * 200, "b"):
        put(f"several/{name}.safetensors", TINY.read_bytes())
    subprocess.run([COMMAND, "adapter", "inject", "tour/base", "tour/chat-lora", "-o", "i2.safetensors", "-q"], cwd=folder, check=True)


class Widths(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="ballast-e2e-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        make_targets(cls.folder)
        cls.names = {"NAMES": "names.safetensors", "TINY": "examples/tiny.safetensors", "GGUF": str(VECTORS / "gguf/kv_all.gguf")}

    def words(self, command):
        return [self.names.get(word, word) for word in command]

    def show(self, command, columns, **env):
        _, text = Terminal(*self.words(command), cwd=self.folder, columns=columns, env=environment(**env)).finish()
        return re.sub(r"[^\n]*\r\x1b\[K", "", text)  # what a progress bar left

    def pipe(self, command):
        done = subprocess.run([COMMAND, *self.words(command)], capture_output=True, cwd=self.folder, timeout=120, env=environment(), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, CODE_OF.get(" ".join(command), OK), done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def too_wide(self, text, columns):
        return [line for line in without_colors(text).splitlines() if columns_of(line) > columns and len(line.split()) > 1]

    def test_every_verb_is_tried(self):
        tried = {" ".join(command) for command in commands()}
        self.assertLessEqual(set(CODE_OF), tried)
        for path in filter(None, parser_commands()):
            if not any(other.startswith(path + " ") for other in parser_commands()):
                self.assertTrue(any((command + " ").startswith(path + " ") and not command.endswith(("--help", "--help-all")) for command in tried), path)

    def test_what_a_terminal_shows_fits_it(self):
        for columns in WIDTHS:
            for command in commands():
                if set(command) & set(AS_IT_IS):
                    continue
                with self.subTest(" ".join(command), columns=columns):
                    text = without_colors(self.show(command, columns))
                    self.assertEqual(self.too_wide(text, columns), [])
                    if command[0] != "cat" and command != ["meta", "get", "NAMES"]:  # whose lines are numbers
                        self.assertNotRegex(text, r"\d\n *(\d{3}|[kMGT]?B|%)(?![\w:])|\[\d+,\n")

    def test_no_number_of_a_value_is_cut(self):
        for columns in WIDTHS:
            text = without_colors(self.show(["info", "NAMES"], columns))
            self.assertNotRegex(text, r" = .*[\d.]…")
            self.assertRegex(text, r"(?m)^ +tokenizer\.gg.*id = 32000$")
            for key in ("big", "a_key_that_is_long"):
                self.assertRegex(text, rf"(?m)^(metadata)? +{key} =\s+{2**100}$")

    def test_rows_can_be_told_apart(self):
        for command in (["ls", "tour/moe"], ["stats", "tour/base"], ["ls", "tour/base", "--long"]):
            for columns in WIDTHS:
                rows = without_colors(self.show([*command, "-q"], columns)).splitlines()
                names = [row.split()[0] for row in rows if row.startswith(("model", "lm_head"))]
                self.assertGreater(len(names), 70)
                self.assertEqual(len(set(names)), len(names), (command, columns))

    def test_the_names_of_choices_are_never_cut(self):
        for columns in WIDTHS:
            self.assertIn("b" * 200 + ".safetensors", self.show(["info", "several"], columns))

    TABLES = {"`info`": ["info NAMES"], "`ls`": ["ls TINY --long", "ls tied.safetensors --long"],
              "`ls --tree`": ["ls TINY --tree", "ls tied.safetensors --tree"], "`stats`": ["stats zeros.safetensors --long --quantiles --histogram", "stats TINY"],
              "`stats --axis`": ["stats NAMES --axis 0"], "`stats --problems`": ["stats zeros.safetensors --problems"],
              "`diff`, by role": ["diff tour/base tour/chat"], "`diff`, by tensor": ["diff tour/chat tour/code --top 3", "diff TINY half.safetensors"],
              "`convert --dry-run`": ["convert TINY sharded/ --max-shard-size 4kB --dry-run"], "`adapter from-diff`": ["adapter from-diff tour/chat tour/code --rank 2 --dry-run"],
              "`imatrix info`": ["imatrix info imatrix.dat"]}

    def test_columns_are_left_out_in_the_order_of_the_document_and_the_table_says_which(self):
        rows = re.findall(r"(?m)^\| (`.*) \| (.*) \|$", (SOURCE / "docs" / "cli.md").read_text().split('id="columns"')[1].split("Every verb has")[0])
        self.assertEqual([table for table, _ in rows], list(self.TABLES))
        subprocess.run([COMMAND, "convert", self.names["TINY"], "half.safetensors", "--dtype", "F16", "-q", "--force"], cwd=self.folder, check=True)
        subprocess.run([COMMAND, "convert", "examples/tiny.pt", "tied.safetensors", "--dedupe", "-q", "--force"], cwd=self.folder, check=True)
        for table, order in rows:
            order = re.split(r", |; ", order.split(", then what was asked for")[0])
            most = []
            for command in self.TABLES[table]:
                for columns in range(20, 81, 5):
                    text = without_colors(self.show(command.split(), columns))
                    said = re.findall(r"(?s)left out: (.*?); -v\s+shows\s+all", text)
                    for left_out in said:
                        names = " ".join(left_out.split()).split(", ")
                        while names[0].endswith(" (all 0)"):
                            names.pop(0)
                        if table.startswith("`diff`"):
                            names = [name for name in names if name in order]  # the other table of diff is on the same screen
                        known = [name for name in order if name in names]
                        self.assertEqual(names[:len(known)], known, (command, columns))
                        most = max(most, names, key=len)
                    self.assertNotIn("left out:", self.show([*command.split(), "-q"], columns))
            self.assertTrue(most, table)

    def test_a_text_that_fits_beside_its_row_is_not_put_below_it(self):
        text = self.show(["meta", "get", "GGUF", "--color=never"], 50)
        self.assertRegex(text, r"(?m)^t\.u64 +18446744073709551615$")
        self.assertRegex(text, r"(?m)^t\.long\n    abc")

    def test_without_colours_and_without_utf8_it_fits_as_well(self):
        for command in commands():
            with self.subTest(" ".join(command)):
                text = self.show(command, 80, NO_COLOR="1", LC_ALL="C")
                self.assertTrue(text.isascii(), text)
                self.assertNotIn("\x1b", text)
                if not set(command) & set(AS_IT_IS):
                    self.assertEqual(self.too_wide(text, 80), [])

    def test_a_pipe_gets_names_whole_and_no_colours(self):
        for command in commands():
            with self.subTest(" ".join(command)):
                out, err = self.pipe(command)
                self.assertNotIn("\x1b", out + err)
                if "--help" in command or "--help-all" in command or command[0] in ("help", "--help", "cat", "completion"):
                    continue
                self.assertNotIn("…", out)
                for name in NAMES[:5]:
                    shown = name.replace("\u202e", "\\u{202e}")
                    self.assertEqual(out.count(shown[:20]) >= 1, out.count(shown) >= 1, out)

    def test_a_digest_is_never_cut_and_a_manifest_can_be_copied_from_any_terminal(self):
        for columns in WIDTHS:
            text = self.show(["hash", "NAMES", "--color=never"], columns)
            (self.folder / "copied.sha256").write_text(text)
            done = subprocess.run([COMMAND, "verify", "names.safetensors", "--manifest", "copied.sha256"], capture_output=True, cwd=self.folder, env=environment())
            self.assertEqual((done.returncode, done.stdout.decode(errors="replace")[:3]), (OK, "ok:"), text)

    def test_the_help_of_every_verb_fits_a_screen(self):
        """45 lines of eighty columns: what a window that is as high as a usual screen shows."""
        for path in parser_commands():
            with self.subTest(path):
                self.assertLessEqual(len(self.show([*path.split(), "--help"], 80).splitlines()), 45)
                self.assertEqual([line for line in self.show([*path.split(), "--help"], 50).splitlines() if columns_of(without_colors(line)) > 50], [])

    def test_many_options_stand_in_groups(self):
        for path, options in parser_commands().items():
            if path and len(options) > 10:
                self.assertNotIn("\nOptions\n", self.pipe([*path.split(), "--help"])[0], path)

    def test_the_short_help_names_every_option_and_the_long_one_explains_it(self):
        commands = parser_commands()
        for path, options in commands.items():
            short, long = (self.pipe([*path.split(), answer])[0] for answer in ("--help", "--help-all"))
            for option in options - {"--help", "--help-all", "--version", "--limits"}:
                self.assertRegex(short, rf"(?m)^ .*{option}\b", path)
                self.assertRegex(long, rf"(?m)^  (-\w, |    ){option}\b.*\n?", path)


if __name__ == "__main__":
    unittest.main()
