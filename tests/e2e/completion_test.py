"""Completion scripts: the shells can read them, and they offer the verbs, options and values that exist.

What needs a shell that is not installed is skipped; if BALLAST_REQUIRE_SHELLS is set, that is a failure.
"""

import shutil
import unittest

from support import *


class Completion(TestCase):
    def script(self, shell):
        path = self.folder / f"completion.{shell}"
        path.write_text(self.ballast("completion", shell).out)
        return path

    def shell(self, shell, *args):
        if shutil.which(shell) is None:
            missing = self.fail if "BALLAST_REQUIRE_SHELLS" in os.environ else self.skipTest
            missing(f"{shell} is not installed: ./dev setup tests")
        done = subprocess.run([shell, *map(str, args)], capture_output=True, text=True, cwd=self.folder, timeout=60,
                              env=environment(HOME=str(self.folder), PATH=f"{pathlib.Path(COMMAND).parent}:{os.environ['PATH']}"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def test_every_shell_can_parse_its_script(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                self.shell(shell, "-n", self.script(shell))

    def complete_in_bash(self, *words):
        program = f"""source {self.script("bash")}
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1}
            _ballast; printf '%s\\n' "${{COMPREPLY[@]}}" """
        return self.shell("bash", "-c", program).split()

    def test_bash_offers_verbs_options_and_values(self):
        self.assertEqual(self.complete_in_bash("ballast", "c"), ["cat", "check", "convert", "cache", "completion"])
        self.assertEqual(self.complete_in_bash("ballast", "meta", ""), ["get", "set", "unset"])
        self.assertEqual(self.complete_in_bash("ballast", "ls", "--inc"), ["--include"])
        self.assertEqual(self.complete_in_bash("ballast", "convert", "a", "b", "--max"), ["--max-shard-size"])
        self.assertEqual(self.complete_in_bash("ballast", "meta", "set", "x", "--no-s"), ["--no-sync"])
        self.assertEqual(self.complete_in_bash("ballast", "ls", "--color", "=", "a"), ["auto", "always"])
        self.assertIn("BF16", self.complete_in_bash("ballast", "convert", "--dtype", "B"))
        self.assertIn("Q4_K", self.complete_in_bash("ballast", "convert", "a", "b", "--dtype", "Q"))
        self.assertEqual(self.complete_in_bash("ballast", "cat", "a", "b", "--dtype", "Q"), [])
        self.assertEqual(self.complete_in_bash("ballast", "adapter", "convert", "a", "--to", ""),
                         ["peft", "diffusers", "kohya", "gguf"])
        self.assertEqual(self.complete_in_bash("ballast", "convert", "a", "b", "--names", "="), ["hf", "gguf"])
        self.assertIn("llama", self.complete_in_bash("ballast", "convert", "a", "b", "--architecture", "l"))
        self.assertEqual(self.complete_in_bash("ballast", "ls", "--block-endian", "b"), ["big"])
        self.assertEqual(self.complete_in_bash("ballast", "completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete_in_bash("ballast", "ls", "no-such-file"), [])

    def test_fish_offers_verbs_options_and_values(self):
        offered = lambda line: [entry.split("\t")[0] for entry in self.shell(
            "fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'").splitlines()]
        self.assertEqual(sorted(offered("ballast c")), ["cache", "cat", "check", "completion", "convert"])
        self.assertEqual(sorted(offered("ballast meta ")), ["get", "set", "unset"])
        self.assertIn("--include", offered("ballast ls --inc"))
        self.assertIn("always", offered("ballast ls --color a"))
        self.assertIn("Q4_K", offered("ballast convert a b --dtype Q"))
        self.assertEqual(sorted(offered("ballast convert a b --names ")), ["gguf", "hf"])
        self.assertEqual(sorted(offered("ballast adapter convert a --to ")), ["diffusers", "gguf", "kohya", "peft"])

    def test_every_script_has_the_words_that_options_take(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.ballast("completion", shell).out
            for words in ("peft diffusers kohya gguf", "hf gguf", "big little", "IQ4_XS"):
                self.assertIn(words, text, shell)

    def test_scripts_know_every_verb(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.ballast("completion", shell).out
            for command in filter(None, parser_commands()):
                self.assertIn(f" {command}'", text, shell)


if __name__ == "__main__":
    unittest.main()
