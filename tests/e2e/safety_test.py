"""No file runs, writes or fetches anything. Every command here runs confined: see confinement.py.

The hostile files that the test makes itself are always there; the collected ones lie beside the repository, and the tests
of them say that they were skipped if those files are not there.
"""

import functools
import io
import pickle
import pickletools
import resource
import zipfile

import confinement
from support import *

MALICIOUS = FIXTURES / "malicious"


@functools.cache
def is_instrumented():
    """Whether the command has sanitizers, which open files, start processes and take memory of their own."""
    # Reads 1 MiB at a time: the peak memory of this process is inherited by the processes that it starts.
    end = b""
    with open(COMMAND, "rb") as program:
        while piece := program.read(1 << 20):
            if any(mark in end + piece for mark in (b"__asan_init", b"__tsan_init", b"__msan_init")):
                return True
            end = piece[-16:]
    return False


def text(word):
    raw = word.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def call(module, name, argument):
    """The opcodes that would call module.name(argument), with nothing before or behind them."""
    return f"c{module}\n{name}\n(V{argument}\ntR".encode()


def archive_of(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def hostile_files(evidence):
    """Returns {name: bytes}, each file an attempt to make the file `evidence`."""
    command = f"touch {evidence}"
    system = call("os", "system", command)
    stop = b"."
    stack_global = b"\x80\x04" + text("os") + text("system") + b"\x93" + text(command) + b"\x85R."
    through_memo = (b"\x80\x04" + text("system") + b"\x94" + text("os") + b"\x94" + b"00" + b"h\x01h\x00\x93" +
                    text(command) + b"\x85R.")
    inst = f"(V{command}\nios\nsystem\n.".encode()
    obj = b"(cos\nsystem\nV" + command.encode() + b"\no."
    nested = pickle.dumps({"weights": system + stop}, protocol=4)
    return {
        "reduce.pkl": system + stop,
        "reduce_proto2.pkl": b"\x80\x02" + system + stop,
        "stack_global.pkl": stack_global,
        "stack_global_through_memo.pkl": through_memo,
        "inst.pkl": inst,
        "obj.pkl": obj,
        "popped.pkl": b"\x80\x02" + system + b"0}.",
        "broken_after_the_call.pkl": b"\x80\x02" + system + b"\xff\xff",
        "second_pickle.pkl": pickle.dumps({"a": 1}) + b"\x80\x02" + system + stop,
        "inside_bytes.pkl": nested,
        "legacy.pt": pickle.dumps(0x1950a86a20f9469cfc6c, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2) +
                     b"\x80\x02" + system + stop + pickle.dumps([], 2),
        "zip.pt": archive_of({"archive/data.pkl": b"\x80\x02" + system + stop, "archive/version": b"3\n"}),
        "constants.pt": archive_of({"archive/data.pkl": pickle.dumps({}, 2),
                                    "archive/constants.pkl": b"\x80\x02" + system + stop}),
        "member.zip": archive_of({"inner/model.pkl": b"\x80\x02" + system + stop}),
        "object_array.npy": npy_of_objects(b"\x80\x02" + system + stop),
        "object_array_by_another_name.npy": npy_of_objects(b"\x80\x02" + system + stop, b"i4,O"),
        "zip_inside_bytes.pkl": load_from_bytes(archive_of({"archive/data.pkl": b"\x80\x02" + system + stop})),
        "complaint_inside_bytes.pkl": load_from_bytes(b"ccollections\nCounter\n}b0" + system + stop),
    }


def load_from_bytes(data):
    """A pickled storage: a call with the bytes of a file of its own."""
    return (b"\x80\x04" + text("torch.storage") + text("_load_from_bytes") + b"\x93B" + struct.pack("<I", len(data)) +
            data + b"\x85R.")


def npy_of_objects(data, descr=b"|O"):
    header = b"{'descr': '" + descr + b"', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class Safety(TestCase):
    def confined(self, *args):
        """Runs the command confined, so that it can do nothing but read."""
        if is_instrumented() or not confinement.is_possible():
            return self.run_raw(*args)
        env = environment()
        result = self.run_raw(*args, env=env, preexec_fn=confinement.start([COMMAND, *args], env))
        self.assertFalse(confinement.was_killed(result.code), f"{args} did what it must not\n{result}")
        return result

    def assertEndsWell(self, result, *codes):
        """Expects one of the codes, and an error message if the command failed."""
        self.assertIn(result.code, codes, result)
        if result.code > NO:
            self.assertRegex(result.err, "(?m)^ballast: ")

    def look(self, path):
        """Runs the verbs that only look; a dangerous file must not be converted either. Returns the scan."""
        before = self.names_in_folder()
        scan = self.confined("scan", "--json", path)
        self.assertEndsWell(scan, OK, NO, MALFORMED, UNSUPPORTED)
        shown = self.confined("ls", path)
        self.assertEndsWell(shown, OK, MALFORMED, UNSUPPORTED, UNSAFE)
        self.assertEndsWell(self.confined("info", path), shown.code)
        report = scan.json() if scan.code in (OK, NO) else {"safe": None, "globals": [], "findings": []}
        verdicts = {found["verdict"] for found in report["globals"] + report["findings"]}
        self.assertEqual(report["safe"] is False, "dangerous" in verdicts)
        self.assertEqual(report["safe"] is True, scan.code == OK, scan)
        if report["safe"] is True:
            self.assertEqual((verdicts - {"known"}, report["findings"]), (set(), []))
        if report["safe"] is False:
            self.look_at_refusal(path, shown.code)
        self.assertEqual(self.names_in_folder(), before)
        return report

    def look_at_refusal(self, path, code):
        """Whatever scan calls dangerous is not converted, wherever in the file it lies."""
        out = self.folder / "out.safetensors"
        self.assertEndsWell(self.confined("convert", path, out), UNSAFE if code == OK else code)

    def names_of(self, report, verdict="dangerous"):
        return {f"{found['module']}.{found['name']}" for found in report["globals"] if found["verdict"] == verdict}

    def assertCheap(self, path):
        for verb in ("ls", "info", "scan"):
            usages = [self.usage_of(verb, path) for _ in range(1 if is_instrumented() else 3)]
            if not is_instrumented():
                # The best of three counts: on a busy machine, a start alone can take that long.
                self.assertLess(min(usage.ru_utime + usage.ru_stime for usage in usages), 0.05, (verb, path))
                self.assertLess(min(usage.ru_maxrss for usage in usages), 32 * 1024, (verb, path))

    def usage_of(self, verb, path):
        process = subprocess.Popen([COMMAND, verb, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (OK, NO, MALFORMED), (verb, path))
        return usage


class Confinement(Safety):
    """The confinement works: otherwise nothing below shows anything."""

    def setUp(self):
        super().setUp()
        if not confinement.is_possible():
            self.skipTest("no seccomp filter is known for this system")

    def run_program(self, *args):
        return subprocess.run(args, capture_output=True, cwd=self.folder, timeout=60,
                              preexec_fn=confinement.start(args, environment())).returncode

    def test_reading_is_allowed(self):
        self.assertEqual(self.run_program("/bin/cat", "/dev/null"), 0)

    def test_writing_a_file_kills(self):
        self.assertTrue(confinement.was_killed(self.run_program("/bin/dd", "if=/dev/null", "of=made")))
        self.assertEqual(self.names_in_folder(), [])

    def test_starting_a_program_kills(self):
        self.assertTrue(confinement.was_killed(self.run_program("/usr/bin/env", "/bin/true")))

    def test_starting_a_process_kills(self):
        self.assertTrue(confinement.was_killed(self.run_program("/bin/sh", "-c", "(:) ; :")))

    def test_a_conversion_that_is_allowed_to_write_is_killed_here(self):
        if is_instrumented():
            self.skipTest("a sanitizer does what the cage forbids")
        args = [COMMAND, "convert", str(TINY), str(self.folder / "copy.safetensors")]
        self.assertTrue(confinement.was_killed(self.run_program(*args)))


class Made(Safety):
    def test_every_way_to_call_is_named_and_none_is_called(self):
        evidence = self.folder / "evidence"
        for name, content in hostile_files(evidence).items():
            with self.subTest(name):
                report = self.look(self.write(name, content))
                self.assertIn("os.system", self.names_of(report))
        self.assertFalse(evidence.exists())

    def test_the_offset_is_that_of_the_opcode(self):
        for name, content in hostile_files("x").items():
            if not name.endswith(".pkl") or "inside" in name:
                continue
            with self.subTest(name):
                report = self.look(self.write(name, content))
                found = next(found for found in report["globals"] if found["name"] == "system")
                self.assertIn(chr(content[found["offset"]]), "ci\x93\u0093", found)
                self.assertEqual(found["member"], "")

    def test_python_itself_would_have_run_it(self):
        """The files are what they claim to be: their opcodes are those of a call."""
        content = hostile_files("x")["reduce_proto2.pkl"]
        self.assertEqual([opcode.name for opcode, _, _ in pickletools.genops(content)],
                         ["PROTO", "GLOBAL", "MARK", "UNICODE", "TUPLE", "REDUCE", "STOP"])

    def test_a_module_by_another_name_is_refused(self):
        for module, name in (("argparse", "_os.system"), ("enum", "bltns.eval"), ("plistlib", "codecs.open")):
            with self.subTest(name):
                content = b"\x80\x04" + text(module) + text(name) + b"\x93" + text("x") + b"\x85R."
                report = self.look(self.write("alias.pkl", content))
                self.assertIn(f"{module}.{name}", self.names_of(report))

    def test_a_folder_is_looked_at_whole(self):
        folder = self.folder / "models"
        (folder / "sub").mkdir(parents=True)
        (folder / "README.md").write_text("# A model\n\nand what it is good for.\n")
        shutil.copy(TINY, folder)
        self.assertEqual(self.confined("scan", folder).code, OK)
        (folder / "a.tar.gz").write_bytes(b"\x1f\x8b\x08\x00packed")
        (folder / "sub" / "evil.pkl").write_bytes(hostile_files("x")["reduce.pkl"])
        result = self.confined("scan", folder, "--json")
        self.assertEqual(result.code, NO)
        report = result.json()
        self.assertEqual({one["file"] for one in report["globals"]}, {str(folder / "sub" / "evil.pkl")})
        self.assertEqual([(one["where"], one["what"]) for one in report["findings"]],
                         [(str(folder / "a.tar.gz"),
                           "this is a gzip file that breaks off or goes on behind its end: not looked into")])
        told = self.confined("scan", folder).out
        self.assertIn(f"dangerous  {folder / 'sub' / 'evil.pkl'}: 1 dangerous name", told)
        self.assertIn("byte 0", told)

    def test_a_folder_that_cannot_be_listed_is_an_error(self):
        folder = self.folder / "closed"
        folder.mkdir()
        folder.chmod(0)
        self.refused("scan", folder, code=IO, says="cannot list the folder", preexec_fn=drop_root_rights)

    def test_dangerous_words_in_strings_are_not_called_dangerous(self):
        words = {"system": "os.system('id')", "eval": ["__import__", "subprocess"], b"cos\nsystem\n": 1}
        report = self.look(self.write("words.pkl", pickle.dumps(words)))
        self.assertTrue(report["safe"])

    def test_allowing_danger_converts_and_still_runs_nothing(self):
        evidence = self.folder / "evidence"
        content = b"\x80\x02}(X\x01\x00\x00\x00a" + call("os", "system", f"touch {evidence}") + b"u."
        path = self.write("x.pkl", content)
        self.refused("convert", path, "out.safetensors", code=UNSAFE, says="os.system", hint="--allow-dangerous")
        self.ballast("convert", path, "out.safetensors", "--allow-dangerous", "--allow-empty")
        self.assertFalse(evidence.exists())

    def test_weights_only_refuses_what_torch_refuses(self):
        harmless = self.write("path.pkl", pickle.dumps(pathlib.PurePosixPath("a")))
        self.ballast("ls", harmless)
        self.refused("ls", "--weights-only", harmless, code=UNSAFE, says="weights_only does not allow")

    def test_billion_laughs_cost_what_their_bytes_cost(self):
        lists = b"]\x94(K\x01K\x01e0" + b"".join(
            b"]\x94(" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"e0" for i in range(60)) + b"h\x3c."
        tuples = b"K\x01" + b"2\x86" * 60 + b"."
        dicts = b"}\x94" + b"".join(
            b"}\x94(K\x00h" + bytes([i]) + b"K\x01h" + bytes([i]) + b"u0" if i else b"0" for i in range(60)) + b"h\x3b."
        for name, content in {"lists": lists, "tuples": tuples, "dicts": dicts}.items():
            with self.subTest(name):
                self.assertCheap(self.write(f"{name}.pkl", b"\x80\x04" + content))

    def test_ten_million_levels_need_no_stack(self):
        many = 10**7
        deep = {
            "lists": b"]" * many + b"a" * (many - 1),
            "tuples": b"N" + b"\x85" * many,
            "marks": b"(" * many + b"t" * many,
        }
        for name, content in deep.items():
            path = self.write(f"{name}.pkl", b"\x80\x02" + content + b".")
            for verb in ("ls", "scan"):
                with self.subTest(name, verb=verb):
                    result = self.run_raw(verb, path, preexec_fn=self.take_stack_away)
                    self.assertEndsWell(result, OK, MALFORMED)

    @staticmethod
    def take_stack_away():
        size = 8 << 20 if is_instrumented() else 64 << 10
        resource.setrlimit(resource.RLIMIT_STACK, (size, size))


@needs_fixtures
class Collected(Safety):
    """Files that others wrote to get past scanners."""

    # These files name nothing, or only what is harmless in itself; all others outside control-benign are dangerous.
    HARMLESS = {
        "decode_exec_chain", "nested_pickle_hex", "nested_pickle_multistage", "nested_pickle_raw", "simple_nested",
        "mixed_model", "billionLaughsAlt", "globalLaughs", "object_arrays", "object_arrays_compressed",
        "bleach_flu", "lebron_football",
    }

    def expectations(self):
        return json.loads((FIXTURES / "expected" / "_malicious_globals.json").read_text())

    def test_every_global_is_named_at_its_offset_and_nothing_happens(self):
        files = self.expectations()
        self.assertGreaterEqual(len(files), 86)
        for entry in files:
            with self.subTest(entry["file"]):
                report = self.look(FIXTURES / entry["file"])
                found = {(f"{one['module']}.{one['name']}", one["offset"], one["member"]) for one in report["globals"]}
                for stream in entry["streams"]:
                    member = stream["member"].split(" (RELAXED")[0]
                    for one in stream["globals"]:
                        # A global that the disassembler could not follow has no module.
                        if not one["name"].startswith("None."):
                            self.assertIn((one["name"], one["offset"], member), found)
                self.assertEqual(report["safe"] is not False, self.is_harmless(entry))

    def is_harmless(self, entry):
        stem = pathlib.Path(entry["file"]).stem.split("__")[-1]
        if stem == "malicious_lambda":  # not a pickle, but a layer with byte code
            return False
        return "note" in entry or "control-benign" in entry["file"] or stem in self.HARMLESS

    def test_look_alikes_are_not_called_dangerous(self):
        paths = sorted((MALICIOUS / "control-benign").iterdir())
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            with self.subTest(path.name):
                self.assertEqual(self.confined("scan", path).code, OK)

    def test_laughs_cost_what_their_bytes_cost(self):
        for path in sorted(MALICIOUS.glob("pickle_injector__*")):
            with self.subTest(path.name):
                self.assertCheap(path)


if __name__ == "__main__":
    unittest.main()
