"""What a person sees: alignment, colours, the progress bar, Ctrl-C."""

import json
import unicodedata
import unittest

from support import *


class OnATerminal(TestCase):
    def show(self, *args, **more):
        return Terminal(*args, cwd=self.folder, **more).finish()

    def test_ls_is_aligned_and_coloured(self):
        code, text = self.show("ls", TINY)
        self.assertEqual(code, OK)
        self.assertIn("\x1b[36mBF16\x1b[0m", text)
        *lines, total = without_colors(text).splitlines()
        self.assertEqual(len({line.index(" [") for line in lines}), 1)
        self.assertEqual(total, "12 tensors, 4 168 parameters, 8.58 kB")
        self.assertIn("1.02 kB", lines[0])
        self.assertNotIn("\t", text)

    def test_colours_can_be_turned_off_and_on(self):
        for options, env in ((["--color=never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
            _, text = self.show("ls", TINY, *options, env=environment(**{k: v for k, v in env.items() if k != "TERM"}) | env)
            self.assertNotIn("\x1b", text, (options, env))
        _, text = self.show("ls", TINY, "--color", "always", env=environment(NO_COLOR="1"))
        self.assertIn("\x1b[36m", text)
        self.assertNotIn("\x1b", self.ballast("ls", TINY).out)
        self.assertIn("\x1b[36m", self.ballast("ls", TINY, "--color=always").out)

    NAMES = ["short", "x" * 300, "模型.层.权重" * 20, "e\u0301" * 200, "\u202eabc" + "שלום" * 30, "a" * 48 + "👍🏽" * 20]

    def columns_of(self, text):
        """Columns by Python's tables, which are not ours."""
        return sum(0 if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
                   for c in text)

    def test_every_line_fits_the_screen_and_no_number_is_cut(self):
        self.write("m.safetensors", {name: ("U8", [1234], bytes(1234)) for name in self.NAMES})
        for columns in (50, 80, 120):
            for env in (environment(LANG="C.UTF-8"), environment(LANG="C.UTF-8", NO_COLOR="1"), environment(LC_ALL="C")):
                for verb in ("ls", "info", "stats"):
                    _, text = self.show(verb, "m.safetensors", columns=columns, env=env)
                    table = [line for line in without_colors(text).splitlines() if "short" in line or "xxx" in line]
                    for line in without_colors(text).splitlines() if verb in ("ls", "info") else table:
                        self.assertLessEqual(self.columns_of(line), columns, (verb, columns, line))
                    if verb in ("ls", "info"):
                        self.assertEqual(sum("1.23 kB" in line for line in text.splitlines()) >= len(self.NAMES), True, (verb, columns, text))

    def test_a_name_is_cut_in_its_middle_unless_v_asks_for_all_of_it(self):
        self.write("m.safetensors", {"model.layers.0." + "x" * 100 + ".weight": ("U8", [1], [1])})
        utf8, plain = environment(LANG="de_DE.UTF-8"), environment(LANG="C")
        self.assertRegex(self.show("ls", "m.safetensors", "--color=never", columns=60, env=utf8)[1], r"^model\.layers\.0\.x+…x+\.weight  U8  \[1\]  1 B\n")
        self.assertRegex(self.show("ls", "m.safetensors", "--color=never", columns=60, env=plain)[1], r"^model\.layers\.0\.x+\.\.\.x+\.weight  U8 ")
        self.assertIn("x" * 100, self.show("ls", "m.safetensors", "-v", columns=60, env=utf8)[1])
        self.assertIn("x" * 100, self.ballast("ls", "m.safetensors").out)

    def test_a_terminal_without_utf8_gets_numbers_of_characters(self):
        self.write("m.safetensors", {"层": ("U8", [1], [1]), "👍": ("U8", [1], [1])})
        _, text = self.show("ls", "m.safetensors", "--color=never", "-q", env=environment(LC_ALL="POSIX"))
        self.assertEqual(sorted(line.split()[0] for line in text.splitlines()), ["\\u5c42", "\\ud83d\\udc4d"])
        _, text = self.show("ls", "m.safetensors", "--json", env=environment(LC_ALL="POSIX"))
        self.assertEqual({tensor["name"] for tensor in json.loads(text)["tensors"]}, {"层", "👍"})
        self.assertTrue(text.isascii())

    def test_a_pipe_gets_the_same_under_every_locale(self):
        self.write("m.safetensors", {"层": ("U8", [3], [1, 2, 3])}, {"model": "模型"})
        for args in (["ls", "m.safetensors"], ["info", "m.safetensors"], ["stats", "m.safetensors"], ["stats", TINY, "--histogram"], ["diff", "m.safetensors", TINY], ["--help"]):
            texts = [self.run_raw(*args, env=environment(LC_ALL=locale)) for locale in ("C", "C.UTF-8")]
            self.assertEqual((texts[0].raw, texts[0].err), (texts[1].raw, texts[1].err), args)

    def test_histogram_fits_the_screen(self):
        for columns in (40, 80, 200):
            _, text = self.show("stats", TINY, "model.position_ids", "--color=never", columns=columns)
            chart = text.split("\n\n", 1)[1].splitlines()
            self.assertGreater(len(chart), 8)
            self.assertLessEqual(max(map(len, chart)), columns)

    def test_long_metadata_is_cut_unless_v_asks_for_all_of_it(self):
        self.write("m.safetensors", {"w": ("U8", [1_234_567], bytes(1_234_567))}, {"long": "word " * 200})
        _, text = self.show("info", "m.safetensors", "--color=never", columns=80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn("…", text)
        self.assertIn("parameters  1.23 M", text)
        _, text = self.show("info", "m.safetensors", "-v", columns=80)
        self.assertIn("word " * 200, text.replace("\r", ""))

    def test_numbers_that_a_terminal_rounds_are_exact_in_a_pipe(self):
        many = bytes(1_234_567)
        self.write("a.safetensors", {"w": ("U8", [1_234_567], many)})
        self.write("b.safetensors", {"w": ("U8", [1_234_567], b"\1" * 1_234_567)})
        cases = ((["diff", "a.safetensors", "b.safetensors"], "by at most  at   differ", "1234567 values of 1234567"),
                 (["verify", "a.safetensors"], "1.23 MB read", "1234567 bytes read"),
                 (["stats", "a.safetensors"], "1.23 M │", "1234567 │"))
        for args, rounded, exact in cases:
            _, text = self.show(*args, "--color=never")
            self.assertIn(rounded, text, args)
            self.assertIn(exact, self.run_raw(*args).out, args)

    def test_a_manifest_may_be_copied_from_a_terminal(self):
        self.write("m.safetensors", {f"t{i}": ("U8", [1], b"x") for i in range(1200)})
        for text in (self.show("hash", "m.safetensors", "--color=never")[1].replace("\r", ""),
                     self.ballast("hash", "m.safetensors").out):
            (self.folder / "manifest").write_text(text)
            self.ballast("verify", "m.safetensors", "--manifest", "manifest")

    def test_errors_and_diffs_are_coloured(self):
        code, text = self.show("ls", "nope")
        self.assertEqual(code, IO)
        self.assertTrue(text.startswith("\x1b[31mballast:\x1b[0m nope"), text)
        self.write("a.safetensors", {"a": ("U8", [1], [1])})
        self.write("b.safetensors", {"b": ("U8", [1], [1])})
        code, text = self.show("diff", "a.safetensors", "b.safetensors")
        self.assertEqual(code, NO)
        self.assertIn("\x1b[31m- a", text)
        self.assertIn("\x1b[32m+ b", text)

    def test_metadata_cannot_command_the_terminal(self):
        self.write("m.safetensors", {"\x1b]0;title\x07": ("U8", [1], [1])}, {"key": "\x1b[2J\u009b2J"})
        for args in (["ls"], ["info"], ["hash"], ["stats"], ["meta", "get"], ["ls", "--json"], ["info", "--json"]):
            _, text = self.show(*args, "m.safetensors", "--color=never")
            self.assertNotIn("\x1b", text, args)
            self.assertNotIn("\u009b", text, args)
        _, text = self.show("meta", "get", "m.safetensors", "key")
        self.assertNotIn("\x1b", text)

    def test_standard_input_from_the_keyboard_is_refused(self):
        code, text = self.show("ls", "-")
        self.assertEqual(code, USAGE)
        self.assertIn("standard input is the terminal", text)

    def test_cat_says_what_it_shows_without_mixing_it_into_a_pipe(self):
        _, text = self.show("cat", TINY, "model.norm.weight")
        self.assertTrue(text.startswith("model.norm.weight  F32 [16]\n"), text)
        self.assertEqual(self.ballast("cat", TINY, "model.norm.weight").err, "")


class Progress(TestCase):
    """A sparse file of many gigabytes takes long enough to be seen, and to be interrupted."""

    BYTES = 24 << 30

    def setUp(self):
        super().setUp()
        header = json.dumps({"w": {"dtype": "U8", "shape": [self.BYTES], "data_offsets": [0, self.BYTES]}})
        path = self.write("sparse.safetensors", with_header(header))
        try:
            os.truncate(path, path.stat().st_size + self.BYTES)
        except OSError:
            self.skipTest("the file system has no sparse files of this size")

    def test_shows_bytes_rate_and_time_left_and_ctrl_c_stops_it(self):
        terminal = Terminal("hash", "sparse.safetensors", cwd=self.folder)
        self.assertTrue(terminal.read_until(rb" of 25\.8 GB.*/s.* left"), terminal.output)
        terminal.press(b"\x03")
        code, text = terminal.finish()
        self.assertEqual(code, INTERRUPTED)
        self.assertTrue(text.endswith("\r\x1b[K\x1b[31mballast:\x1b[0m interrupted\n"), text)

    def test_fits_the_screen_without_a_number_that_is_cut(self):
        for columns, shows in ((70, rb" of 25\.8 GB  [^ ]+ [kMG]B/s  .* left"), (56, rb" of 25\.8 GB  .* left"), (24, rb"hashing +\d+ % .*\r\x1b")):
            terminal = Terminal("hash", "sparse.safetensors", cwd=self.folder, columns=columns)
            self.assertTrue(terminal.read_until(shows), terminal.output)
            terminal.press(b"\x03")
            _, text = terminal.finish()
            frames = without_colors(text.split("\x1b[K\x1b[31m")[0]).replace("^C", "").split("\r\x1b[K")  # ^C is what the terminal shows of the key
            self.assertNotIn("…", "".join(frames))
            self.assertLess(max(len(frame.strip("\r")) for frame in frames), columns, frames)

    def test_is_silent_with_q_and_in_a_pipe(self):
        terminal = Terminal("hash", "sparse.safetensors", "-q", cwd=self.folder)
        time.sleep(1.2)
        terminal.press(b"\x03")
        code, text = terminal.finish()
        self.assertEqual(code, INTERRUPTED)
        self.assertNotIn("GB", text)
        process = subprocess.Popen([COMMAND, "verify", "sparse.safetensors"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        time.sleep(1.2)
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertNotIn(b"GB", err)

    def test_an_interrupted_copy_leaves_nothing(self):
        terminal = Terminal("convert", "sparse.safetensors", "out.safetensors", "--dry-run", cwd=self.folder)
        self.assertEqual(terminal.finish()[0], OK)
        free = os.statvfs(self.folder)
        if free.f_bavail * free.f_frsize < 2 * self.BYTES:
            self.skipTest("not enough room on the disk to start such a copy")
        terminal = Terminal("convert", "sparse.safetensors", "out.safetensors", cwd=self.folder)
        terminal.read_until(rb" of 25\.8 GB")
        terminal.press(b"\x03")
        self.assertEqual(terminal.finish()[0], INTERRUPTED)
        self.assertEqual(self.names_in_folder(), ["sparse.safetensors"])


if __name__ == "__main__":
    unittest.main()
