"""What the command says and which code it exits with when things go wrong, and how it behaves in a pipeline."""

import resource
import signal
import struct
import unittest

from support import *

VERBS = parser_verbs()


class Usage(TestCase):
    def test_no_arguments_are_answered_with_a_short_usage(self):
        result = self.ballast(code=USAGE)
        self.assertEqual(result.out, "")
        for verb in VERBS:
            self.assertRegex(result.err, rf"\n  {verb} +\w")
        self.assertIn("ballast --help", result.err)

    def test_help_of_the_whole_and_of_every_verb(self):
        for args in (["--help"], ["-h"], ["help"]):
            result = self.ballast(*args)
            self.assertEqual(result.err, "")
            for word in [*VERBS, "Usage:", "Examples", "Exit codes", "--color", "--threads"]:
                self.assertIn(word, result.out)
        for verb in VERBS:
            text = self.ballast(verb, "--help").out
            self.assertIn(f"Usage: ballast {verb}", text)
            self.assertIn("ballast help options", text)
            self.assertEqual(self.ballast("help", verb).out, text)
        for command in parser_commands():
            self.assertIn(f"Usage: ballast {command}".rstrip(), self.ballast(*command.split(), "--help").out)
        for line in self.ballast("--help").lines():
            self.assertLessEqual(len(line), 110)

    def test_the_options_of_every_verb_have_a_help_of_their_own(self):
        text = self.ballast("help", "options").out
        for option in ("--root PATH", "--threads N", "--lenient", "--offline", "-q, --quiet"):
            self.assertIn(option, text)
            self.assertNotIn(f"  {option} ", self.ballast("ls", "--help").out)

    def test_help_about_what_is_no_verb_is_an_error(self):
        for words in (["help", "frob"], ["frob", "--help"], ["-q", "frob", "--help-all"], ["help", "meta", "frob"]):
            self.refused(*words, code=USAGE, says='there is no verb "frob"', hint="--help")
        self.refused("help", "lss", code=USAGE, says='there is no verb "lss"', hint="did you mean ls?")

    def test_help_lists_the_verbs_that_completion_offers(self):
        block = self.ballast("--help").out.split("\nVerbs\n")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"(?m)^  ([a-z-]+) +\w", block), VERBS)

    def test_version_and_limits(self):
        self.assertRegex(self.ballast("--version").out, r"^ballast \d+\.\d+\.\d+\n$")
        self.assertRegex(self.ballast("--limits").out, r"(?m)^max_header_bytes +100000000 ")

    def test_unknown_words_suggest_the_nearest(self):
        self.refused("lss", code=USAGE, says='there is no verb "lss"', hint="did you mean ls?")
        self.refused("covnert", "a", "b", code=USAGE, says='"covnert"', hint="did you mean convert?")
        self.refused("frobnicate", code=USAGE, says='"frobnicate"', hint="ballast --help")
        self.refused("meta", "got", "x", code=USAGE, says='"got"', hint="did you mean get?")
        self.refused("ls", TINY, "--jsno", code=USAGE, says='there is no option "--jsno"', hint="did you mean --json?")
        self.refused("ls", TINY, "--thread=2", code=USAGE, says='"--thread', hint="did you mean --threads?")
        self.refused("--verison", code=USAGE, says='"--verison"', hint="did you mean --version?")

    def test_bad_values_of_options(self):
        self.refused("ls", TINY, "--color", "pink", code=USAGE, says="pink", hint="--color=never")
        self.refused("ls", TINY, "--threads", "many", code=USAGE, says="--threads", hint="--help")
        self.refused("ls", TINY, "--threads", "-1", code=USAGE, says="--threads")
        self.refused("ls", TINY, "--limit", "max_header_bytes", code=USAGE, says="max_header_bytes", hint="200MB")
        self.refused("ls", TINY, "--limit", "nothing=1", code=USAGE, says='"nothing"', hint="--limits")
        self.refused("ls", code=USAGE, says="TARGET is required", hint="ballast ls --help")
        self.refused("diff", TINY, code=USAGE, says="B is required", hint="ballast diff --help")
        self.refused("verify", TINY, "extra", code=USAGE, says='"extra"')
        self.refused("completion", "tcsh", code=USAGE, says="tcsh", hint="bash")

    def test_options_of_every_verb_may_stand_anywhere(self):
        for args in (["-q", "ls", TINY], ["ls", "-q", TINY], ["ls", TINY, "--threads", "1", "--color=never"],
                     ["--threads=2", "meta", "get", TINY, "-v"], ["meta", "-q", "get", TINY]):
            self.ballast(*args)


class Slips(TestCase):
    def test_a_word_that_is_not_a_number_is_refused_in_our_words(self):
        whole, number = "is not a whole number of at least 0", "is not a number"
        cases = ((["ls", TINY, "--threads", "-1"], f'--threads: "-1" {whole}'),
                 (["ls", TINY, "--threads=many"], f'--threads: "many" {whole}'),
                 (["ls", TINY, "--threads", "1.5"], f'--threads: "1.5" {whole}'),
                 (["ls", TINY, "--threads", "2x"], f'--threads: "2x" {whole}'),
                 (["ls", TINY, "--threads", "99999999999"], '--threads: "99999999999" is too large a number'),
                 (["stats", TINY, "--bins", "-3"], f'--bins: "-3" {whole}'),
                 (["diff", TINY, TINY, "--tolerance", "small"], f'--tolerance: "small" {number}'),
                 (["convert", TINY, "out.gguf", "--heads", "-2"], f'--heads: "-2" {whole}'),
                 (["plan", TINY, "--ranks", "-2"], f'--ranks: "-2" {whole}'))
        for args, says in cases:
            self.refused(*args, code=USAGE, says=says, hint=f"write {says.split(':')[0]}")

    def test_a_value_too_few_or_too_many_is_refused_in_our_words(self):
        self.refused("ls", TINY, "--threads", code=USAGE, says="--threads needs a value", hint="ballast ls --help")
        self.refused("ls", TINY, "--root", "x", "--root", "y", code=USAGE, says="--root is given several times")

    def test_a_word_is_suggested_only_if_it_is_near(self):
        for wrong, right in (("--jsn", "--json"), ("--inclde", "--include"), ("--thread", "--threads"), ("--exlude=x", "--exclude"),
                             ("-json", "--json")):
            self.refused("ls", TINY, wrong, code=USAGE, says="there is no option", hint=f"did you mean {right}?")
        for wrong in ("--shuffle", "--size", "--paged", "--all", "--x"):
            self.refused("ls", TINY, wrong, code=USAGE, says=f'there is no option "{wrong}"', hint="ballast ls --help")
        self.refused("lst", code=USAGE, says='there is no verb "lst"', hint="did you mean ls?")
        self.refused("xyz", code=USAGE, says='there is no verb "xyz"', hint="ballast --help")


class BadInput(TestCase):
    def test_each_kind_has_its_code_and_says_what_it_is(self):
        self.write("cut.safetensors", TINY.read_bytes()[:3000])
        self.write("header.safetensors", struct.pack("<Q", 10**9))
        self.write("page.safetensors", b"<!DOCTYPE html><html><body>404</body></html>")
        self.write("pointer.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n")
        self.write("empty.safetensors", b"")
        (self.folder / "folder").mkdir()
        os.mkfifo(self.folder / "fifo")
        cases = {
            "nope.safetensors": (IO, "nope.safetensors"),
            "cut.safetensors": (MALFORMED, "cut.safetensors"),
            "header.safetensors": (MALFORMED, "header.safetensors"),
            "page.safetensors": (UNSUPPORTED, "web page"),
            "pointer.safetensors": (UNSUPPORTED, "LFS"),
            "empty.safetensors": (MALFORMED, "empty"),
        }
        for target, (code, says) in cases.items():
            for verb in (["ls"], ["info"], ["hash"], ["stats"], ["meta", "get"]):
                self.refused(*verb, target, code=code, says=says)
                self.refused(*verb, target, "--json", code=code, says=says)
            self.refused("convert", target, "out.safetensors", code=code, says=says)
        for target in ("folder", "fifo", ""):
            result = self.run_raw("ls", target)
            self.assertIn(result.code, (IO, MALFORMED, USAGE, UNSUPPORTED), result)
            self.assertTrue(result.err.startswith("ballast: "), result)
        self.assertFalse((self.folder / "out.safetensors").exists())

    def test_names_the_byte(self):
        self.write("m.safetensors", with_header('{"w":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}', b"1234"))
        self.assertRegex(self.refused("ls", "m.safetensors", code=UNSUPPORTED, says="F33").err, r"\(byte \d+\)\n")

    def test_limits_can_be_set(self):
        self.refused("ls", TINY, "--limit", "max_header_bytes=100", code=MALFORMED, says="header",
                     hint="--limits")
        self.ballast("ls", TINY, "--limit", "max_header_bytes=1MB", "--limit", "max_tensors=100")

    def test_lenient_forgives_trailing_bytes_and_says_so(self):
        self.write("m.safetensors", TINY.read_bytes() + b"trailing")
        self.refused("ls", "m.safetensors", code=MALFORMED, says="m.safetensors")
        result = self.ballast("ls", "m.safetensors", "--lenient")
        self.assertTrue(result.err.startswith("note: "), result)
        self.assertEqual(self.ballast("ls", "m.safetensors", "--lenient", "-q").err, "")

    def test_hostile_text_in_messages_is_escaped(self):
        self.write("m.safetensors", with_header('{"\\u001b[31m":{"dtype":"F\\u001b","shape":[1],"data_offsets":[0,4]}}', b"1234"))
        self.assertNotIn("\x1b", self.refused("ls", "m.safetensors", code=UNSUPPORTED, says='"F\\x1b"').err)
        self.assertNotIn("\x1b", self.refused("ls", "\x1b[31m.safetensors", code=IO, says=r"\x1b[31m.safetensors").err)

    def test_running_out_of_memory_counts_as_over_a_limit(self):
        cap = lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
        if self.run_raw("--version", preexec_fn=cap).code != OK:
            self.skipTest("the command is built with a sanitizer that needs more address space")
        self.refused("ls", "-", stdin=bytes(300 << 20), preexec_fn=cap, code=MALFORMED, says="out of memory", hint="memory")


class WithoutTensors(TestCase):
    """Some checkpoints have none: files of a vocabulary only, pickles of numbers."""

    COMMANDS = """info | info --json | ls | ls --json | ls --tree --long | ls --tree --json | ls --duplicates | ls --top 3 | cat | cat -o x.npz
        stats | stats --json | stats --axis 0 | stats --axis 0 --json | stats --quantiles --long --histogram | stats --problems | stats --problems --json
        hash | hash --json | hash --digest | scan | verify | check | check --json | diff AGAIN | diff AGAIN --json | diff AGAIN --effective-rank
        meta get | meta get --json | convert out.safetensors | convert out.gguf --allow-empty | convert q8.gguf --type q8_0 | convert q/ --quantize nf4
        convert m/ --model-only | plan --ranks 2 | adapter info | adapter extract -o a/ | adapter merge AGAIN -o m.safetensors
        adapter convert --to kohya -o k.safetensors | adapter from-diff AGAIN -o f/ | view --html v.html | view AGAIN --html w.html | imatrix info"""

    def test_no_verb_crashes(self):
        self.write("none.safetensors", {}, {"format": "pt"})
        shutil.copy(VECTORS / "safetensors" / "empty.safetensors", self.folder / "empty.safetensors")
        for command in self.COMMANDS.replace("\n", "|").split("|"):
            words = [word.replace("AGAIN", "none.safetensors") for word in command.split()]
            verbs = 2 if words[0] in ("adapter", "meta", "imatrix") else 1
            for target in ("empty.safetensors", "none.safetensors"):
                words_with_target = [*words[:verbs], target, *words[verbs:]]
                with self.subTest(" ".join(words_with_target)):
                    result = self.run_raw(*words_with_target)
                    self.assertIn(result.code, range(7), result)
                    self.assertIn(Terminal(*words_with_target, cwd=self.folder).finish()[0], range(7))

    def test_statistics_of_nothing_are_an_empty_table(self):
        self.write("none.safetensors", {})
        result = self.ballast("stats", "none.safetensors")
        self.assertEqual(len(result.lines()), 1)
        self.assertIn("there is no tensor in it", result.err)
        self.assertEqual(self.ballast("stats", "none.safetensors", "--json").json()["tensors"], [])


class Pipelines(TestCase):
    def spawn(self, *args, **more):
        return subprocess.Popen([COMMAND, *map(str, args)], cwd=self.folder, env=environment(), stderr=subprocess.PIPE, **more)

    def test_a_reader_that_leaves_early_causes_no_message(self):
        self.write("many.safetensors", {f"t{i}": ("U8", [1], b"x") for i in range(50_000)})
        for option in ([], ["--json"]):
            process = self.spawn("ls", "many.safetensors", *option, stdout=subprocess.PIPE)
            self.assertTrue(process.stdout.readline())
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(), -signal.SIGPIPE)
            process.stderr.close()

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            process = self.spawn("ls", TINY, stdout=full)
            _, err = process.communicate()
        self.assertEqual(process.returncode, IO)
        self.assertIn(b"standard output", err)

    def test_closed_output_is_an_error(self):
        process = self.spawn("ls", TINY, preexec_fn=lambda: os.close(1))
        _, err = process.communicate()
        self.assertEqual(process.returncode, IO)

    def test_messages_that_nobody_can_read_change_nothing(self):
        """They are lost, and what the command does and its exit code stay what they are."""
        cases = ((["ls", "nope"], IO), (["lss"], USAGE), ([], USAGE), (["convert", TINY, "out.safetensors", "--force"], OK), (["info", TINY, "-v"], OK),
                 (["ls", TINY, "nrom"], IO), (["ls", TINY, "norm"], OK), (["scan", TINY], OK), (["stats", TINY, "--problems"], OK))
        for args, code in cases:
            for stderr in ("2>&-", "2>/dev/full", "2>&1 >/dev/null | true"):
                script = f'set -o pipefail; "$0" "$@" {stderr}; exit ${{PIPESTATUS[0]}}'
                done = subprocess.run(["bash", "-c", script, COMMAND, *map(str, args)], cwd=self.folder, env=environment(), capture_output=True)
                self.assertEqual(done.returncode, code, (args, stderr, done))
            if args[:1] == ["convert"]:
                self.assertEqual(read_safetensors(self.folder / "out.safetensors"), read_safetensors(TINY))

    def test_no_file_takes_the_place_of_a_stream_that_is_closed(self):
        """Otherwise a message would be written into the checkpoint, or read from it."""
        self.write("m.safetensors", TINY.read_bytes() + b"more")
        closed = lambda: os.closerange(0, 3)
        process = subprocess.Popen([COMMAND, "convert", "m.safetensors", "out.safetensors", "--lenient"], cwd=self.folder, env=environment(), preexec_fn=closed)
        self.assertEqual(process.wait(60), OK)
        self.assertEqual(read_safetensors(self.folder / "out.safetensors"), read_safetensors(TINY))
        for args in (["ls", TINY], ["ls", "-"]):
            process = subprocess.Popen([COMMAND, *map(str, args)], cwd=self.folder, env=environment(), preexec_fn=closed)
            self.assertEqual(process.wait(60), IO, args)

    def test_signals_cancel_before_an_output_is_begun(self):
        # A read of standard input that never ends can always be interrupted.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.spawn("convert", "-", "out.safetensors", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            time.sleep(0.3)
            process.send_signal(number)
            self.assertEqual(process.wait(20), 128 + number)
            out, err = process.communicate()
            self.assertEqual(out, b"")
            self.assertIn(b"interrupted", err)
        self.assertEqual(self.names_in_folder(), [])

    def test_a_caller_that_ignores_interrupts_is_obeyed(self):
        ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
        process = self.spawn("ls", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=ignore)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(TINY.read_bytes(), timeout=20)
        self.assertEqual(process.returncode, OK)
        self.assertEqual(len(out.splitlines()), 12)


if __name__ == "__main__":
    unittest.main()
