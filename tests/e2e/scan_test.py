"""scan: safe means known. A file that loaders would run is not called safe, and one that honest programs write is not
called dangerous.
"""

import base64
import bz2
import gzip
import io
import lzma
import pickle
import random
import tarfile
import zipfile
import zlib

from support import *

FOUND = VECTORS / "found"


def text(word):
    raw = word.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def raw_bytes(data):
    return b"B" + struct.pack("<I", len(data)) + data


def name_of(path):
    module, _, name = path.partition(":")
    return f"c{module}\n{name}\n".encode()


def call(path, *arguments):
    return name_of(path) + b"(" + b"".join(arguments) + b"tR"


def pickled(*ops):
    return b"\x80\x04" + b"".join(ops) + b"."


def archive_of(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


EVIL = b"\x80\x02" + call("os:system", text("id")) + b"."
LIST = b"](" + b"".join(b"K" + bytes([byte]) for byte in EVIL) + b"e"


def loaded(data):
    return call("torch.storage:_load_from_bytes", data)


def array_wrapper(shape, code, alignment=False):
    """A NumpyArrayWrapper up to its BUILD, as joblib pickles it; the raw array follows it."""
    dtype = call("numpy:dtype", text(code), b"\x89", b"\x88")
    dtype += b"(K\x03" + text("<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"}(" + text("shape") + b"(" + b"".join(b"K" + bytes([n]) for n in shape) + b"t" + text("order") + text("C")
    state += text("dtype") + dtype + text("allow_mmap") + b"\x88"
    if alignment:
        state += text("numpy_array_alignment_bytes") + b"K\x10"
    return name_of("joblib.numpy_pickle:NumpyArrayWrapper") + b")\x81" + state + b"ub"


def joblib_file(array, *behind, alignment=False):
    first = text("w") + array_wrapper([len(array) // 4], "f4", alignment)
    return b"\x80\x04}(" + first + array + b"".join(behind) + b"u."


KERAS = {"class_name": "Sequential", "config": {"layers": [
    {"class_name": "Lambda", "config": {"function": {"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}}}]}}
JINJA = "{{ ''.__class__.__mro__[1].__subclasses__() }}"

# A second file of each kind that was found: {name: (content, verdict)}.
DANGEROUS = {
    "cp037.pkl": pickled(loaded(call("_codecs:encode", text("a"), text("cp037")))),
    "bytes_of_numbers.pkl": pickled(loaded(call("builtins:bytes", LIST))),
    "bytearray_appended.pkl": pickled(loaded(b"\x96\x01" + bytes(7) + b"c" + b"K\x6fa")),
    "bytes_of_text.pkl": pickled(loaded(call("builtins:bytes", text("abc"), text("utf-7")))),
    "base64.pkl": pickled(loaded(call("base64:b64decode", text(base64.b64encode(EVIL).decode())))),
    "lzma.pkl": pickled(loaded(call("lzma:decompress", raw_bytes(lzma.compress(EVIL))))),
    "parse_expr.pkl": pickled(call("sympy.parsing.sympy_parser:parse_expr", text("1"))),
    "sympy_alias.pkl": pickled(call("sympy.core:sympify", text("1"))),
    "eval_type.pkl": pickled(call("typing:_eval_type", text("1"), b"}", b"}")),
    "unsafe_load.pkl": pickled(call("yaml:unsafe_load", text("1"))),
    "vformat.pkl": pickled(call("string:Formatter.vformat", name_of("string:Formatter") + b")\x81", text("{}"), b")", b"}")),
    "tofile.pkl": pickled(call("numpy:ndarray.tofile", text("x"))),
    "resolve_by_other_name.pkl": pickled(call("some.module:resolve_name", text("os:system"))),
    "getattr_of_module.pkl": pickled(call("builtins:getattr", name_of("torch:nn"), text("Module"))),
    "computed_import.pkl": pickled(call("_codecs:encode", text("os"), text("latin1")), text("system"), b"\x93"),
    "nested.pkl": pickled(b"}", text("a"), raw_bytes(EVIL), b"s"),
    "other_member.pt": archive_of({"m/data.pkl": pickled(b"}"), "m/extra": EVIL}),
    "evil.joblib": joblib_file(bytes(16), text("x"), call("os:system", text("id"))),
    "evil_aligned.joblib": joblib_file(b"\x02\xff\xff" + bytes(16), text("x"), call("posix:system", text("id")),
                                       alignment=True),
    "not_stepped.pkl": b"\x80\x04}(" + text("w") + array_wrapper([100], "f4") + (
        b"0" + call("os:system", text("id")) + b"0NNu.").ljust(400, b"N") + b"u.",
    "evil.pkl.gz": gzip.compress(EVIL),
    "evil.pkl.z": zlib.compress(EVIL),
    "model.keras": archive_of({"metadata.json": "{}", "config.json": json.dumps(KERAS)}),
    "escaped.keras": archive_of({"config.json": json.dumps(KERAS).replace("Lambda", "L\\u0061mbda")}),
    "lambda.h5": b"\x89HDF\r\n\x1a\n" + bytes(100) + json.dumps(KERAS).encode(),
    "script.pt": archive_of({"m/data.pkl": pickled(b"}"), "m/constants.pkl": pickled(b")"),
                             "m/code/__torch__/net.py": "def f(x):\n  torch.save(x, \"y\")\n"}),
    "config.json": json.dumps({"chat_template": JINJA}).encode(),
    "template.jinja": JINJA.encode(),
}
# convert refuses them all as unsafe, but for those that it cannot read, or that are no checkpoints.
OTHER_REFUSALS = {
    "bytes_of_numbers.pkl": MALFORMED, "bytearray_appended.pkl": MALFORMED, "base64.pkl": MALFORMED, "lzma.pkl": MALFORMED,
    "evil.pkl.gz": UNSUPPORTED, "evil.pkl.z": UNSUPPORTED, "model.keras": UNSUPPORTED, "escaped.keras": UNSUPPORTED,
    "lambda.h5": UNSUPPORTED, "config.json": UNSUPPORTED, "template.jinja": UNSUPPORTED,
}
UNKNOWN = {
    "class.pkl": pickled(name_of("mine:Net") + b")\x81"),
    "call.pkl": pickled(call("mine:make", b"N")),
    "handed_over.pkl": pickled(call("collections:defaultdict", name_of("mine:make"))),
    "codec.pkl": pickled(call("_codecs:encode", text("a"), text("utf-8"))),
    "print.pkl": pickled(b"}", text("a"), raw_bytes(pickled(call("builtins:print", text("x")))), b"s"),
    "evil.pkl.bz2": bz2.compress(EVIL),
    "evil.pkl.xz": lzma.compress(EVIL),
    "evil.pkl.lzma": lzma.compress(EVIL, format=lzma.FORMAT_ALONE),
    "evil.pkl.lz4": b"\x04\x22\x4d\x18" + bytes(40),
    "evil.7z": b"7z\xbc\xaf\x27\x1c" + bytes(40),
    "weights.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "bomb.gz": gzip.compress(bytes(300 << 20), 1),
    "auto_map.json": json.dumps({"auto_map": {"AutoModel": "modeling.Net"}}).encode(),
    "broken.gz": gzip.compress(EVIL)[:-9],
}
KNOWN = {
    "joblib.joblib": joblib_file(struct.pack("<4f", 1, 2, 3, 4), text("x"), b"K\x01"),
    "plain.pkl.gz": gzip.compress(pickled(b"}")),
    "plain.pkl.z": zlib.compress(pickled(b"}")),
    "storage.pkl": pickled(loaded(raw_bytes(pickled(b"}")))),
    "words.pkl": pickle.dumps({"note": "os.system('rm -rf /')", "eval": "__import__"}),
}


class Scanned(TestCase):
    def safe_of(self, path, *options):
        result = self.run_raw("scan", "--json", path, *options)
        self.assertIn(result.code, (OK, NO), f"{path}\n{result}")
        report = result.json()
        self.assertEqual(report["schema"], "ballast.scan/2")
        self.assertEqual(result.code == OK, report["safe"] is True)
        return report["safe"]

    def assertRefused(self, path, code):
        self.ballast("convert", path, self.folder / "out.safetensors", "--force", code=code)


class Kinds(Scanned):
    def test_a_file_that_leads_to_code_is_dangerous_and_is_not_converted(self):
        for name, content in DANGEROUS.items():
            with self.subTest(name):
                path = self.write(name, content)
                self.assertIs(self.safe_of(path), False)
                self.assertRefused(path, OTHER_REFUSALS.get(name, UNSAFE))

    def test_the_text_does_not_deny_a_pickle(self):
        for content, says in ((pickle.dumps({"a": 1}), "no names, in 1 pickle"),
                              (pickled(call("collections:OrderedDict")), "1 name known, in 1 pickle"),
                              (safetensors({"w": ("F32", [1], [1.0])}), "no pickles")):
            path = self.write("file", content)
            self.assertEqual(self.ballast("scan", path).lines(), [f"safe       {path}: {says}"])

    def test_a_file_that_nobody_knows_or_looked_into_is_unknown(self):
        for name, content in UNKNOWN.items():
            with self.subTest(name):
                self.assertIsNone(self.safe_of(self.write(name, content)))

    def test_what_honest_programs_write_is_safe(self):
        for name, content in KNOWN.items():
            with self.subTest(name):
                self.assertIs(self.safe_of(self.write(name, content)), True)

    def test_a_joblib_file_opens(self):
        path = self.write("array.joblib", KNOWN["joblib.joblib"])
        self.assertIn("w", self.ballast("ls", path).out)
        self.assertEqual(self.ballast("cat", path, "w", "--json").json()["values"], [1, 2, 3, 4])

    def test_a_pickle_in_memory_is_refused_too(self):
        result = self.run_raw("convert", "-", self.folder / "out.safetensors", stdin=DANGEROUS["nested.pkl"])
        self.assertEqual(result.code, UNSAFE, result)


class Chance(Scanned):
    def test_random_weights_are_numbers(self):
        """A storage that begins like a pickle, an archive or a packed stream is a storage."""
        rng = random.Random(17)
        heads = [b"c", b"cos\nsystem\n", b"\x80\x02", b"PK\x03\x04", b"\x1f\x8b\x08", b"x\x9c", b"(", b"i", b"BZh", EVIL]
        members, items = {}, b""
        for key in range(2000):
            data = (heads[key % len(heads)] + rng.randbytes(256))[:256]
            members[f"m/data/{key}"] = data
            storage = b"(" + text("storage") + name_of("torch:ByteStorage") + text(str(key)) + text("cpu") + b"M\x00\x01tQ"
            tensor = call("torch._utils:_rebuild_tensor_v2", storage, b"K\x00", b"M\x00\x01\x85", b"K\x01\x85", b"\x89",
                          call("collections:OrderedDict"))
            items += text(f"w{key}") + tensor
        path = self.write("random.pt", archive_of({"m/data.pkl": b"\x80\x02}(" + items + b"u.", **members}))
        self.assertIs(self.safe_of(path), True)

    def test_random_members_that_nobody_names_are_not_pickles(self):
        rng = random.Random(18)
        for round_ in range(5):
            members = {f"raw/{i}": b"c" + rng.randbytes(2000) for i in range(2000)}
            report = self.run_raw("scan", "--json", self.write("raw.zip", archive_of({"a.npy": npy(), **members}))).json()
            self.assertEqual([one for one in report["globals"] if one["verdict"] == "dangerous"], [])
            self.assertIsNot(report["safe"], False)


def npy():
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(4)


class Report(Scanned):
    def test_trusted_names_are_known_for_one_run(self):
        path = self.write("class.pkl", UNKNOWN["class.pkl"])
        self.assertIs(self.safe_of(path, "--trust", "mine.*"), True)
        self.assertIsNone(self.safe_of(path, "--trust", "other.*"))
        policy = self.write("policy", b"# ours\n\n other.* # and theirs\nmine.N?t\n")
        self.assertIs(self.safe_of(path, "--policy", policy), True)
        evil = self.write("evil.pkl", EVIL)
        self.assertIs(self.safe_of(evil, "--trust", "*"), False)
        self.refused("scan", path, "--policy", "nowhere", code=IO, says="policy")

    def test_several_targets_are_one_report(self):
        self.write("models/known.pkl", KNOWN["words.pkl"])
        self.write("models/class.pkl", UNKNOWN["class.pkl"])
        evil = self.write("evil.pkl", EVIL)
        report = self.run_raw("scan", "--json", self.folder / "models", evil).json()
        self.assertIs(report["safe"], False)
        self.assertEqual([(pathlib.Path(one["file"]).name, one["safe"]) for one in report["files"]],
                         [("class.pkl", None), ("known.pkl", True), ("evil.pkl", False)])
        self.assertTrue(all("file" in one for one in report["globals"]))
        folder = self.run_raw("scan", "--json", self.folder / "models").json()
        self.assertIsNone(folder["safe"])
        self.assertNotIn("files", self.run_raw("scan", "--json", evil).json())
        lines = self.ballast("scan", self.folder / "models", evil, code=NO)
        self.assertIn("1 safe, 1 unknown, 1 dangerous", lines.err)

    def test_a_missing_target_does_not_hide_the_others(self):
        evil = self.write("evil.pkl", EVIL)
        report = self.run_raw("scan", "--json", evil, self.folder / "missing").json()
        self.assertEqual([one["safe"] for one in report["files"]], [False, None])

    def test_details_of_harmless_files_are_shown_only_on_request(self):
        path = self.write("dict.pkl", pickled(call("collections:OrderedDict")))
        self.assertNotIn("OrderedDict", self.ballast("scan", path).out)
        told = self.ballast("scan", "-v", path).out
        self.assertIn("collections.OrderedDict", told)
        self.assertIn("(allowlist)", told)

    def test_the_text_says_which_rule_a_verdict_comes_from(self):
        for name, rule in (("class.pkl", "not on the allowlist"), ("codec.pkl", "what it is given")):
            self.assertIn(rule, self.ballast("scan", self.write(name, UNKNOWN[name]), code=NO).out)
        self.assertIn("(denylist)", self.ballast("scan", self.write("evil.pkl", EVIL), code=NO).out)
        alias = self.write("alias.pkl", pickled(call("any.module:system", text("id"))))
        self.assertIn("(last word)", self.ballast("scan", alias, code=NO).out)

    def test_standard_input(self):
        self.assertEqual(self.run_raw("scan", "-", stdin=EVIL).code, NO)
        self.assertEqual(self.run_raw("scan", "-", stdin=KNOWN["words.pkl"]).code, OK)
        self.refused("scan", "-", "x", code=USAGE, says="standard input")

    def test_sarif(self):
        self.write("models/class.pkl", UNKNOWN["class.pkl"])
        self.write("models/evil.pkl", EVIL)
        self.write("models/known.pkl", KNOWN["words.pkl"])
        document = json.loads(self.ballast("scan", "--sarif", self.folder / "models", code=NO).out)
        self.assertEqual(document["version"], "2.1.0")
        results = document["runs"][0]["results"]
        self.assertEqual([(one["ruleId"], one["level"]) for one in results],
                         [("unknown-name", "warning"), ("dangerous-name", "error")])
        place = results[1]["locations"][0]["physicalLocation"]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("evil.pkl"))
        self.assertEqual(place["region"], {"byteOffset": 2})

    def test_columns_are_aligned_with_colours_too(self):
        ops = pickled(call("os:system", text("id")), call("mine:make", b"N"))
        path = self.write("two.pkl", ops)
        plain = self.ballast("scan", "--color=never", path, code=NO).out
        coloured = self.ballast("scan", "--color=always", path, code=NO).out
        import re
        self.assertEqual(re.sub("\x1b\\[[0-9;]*m", "", coloured), plain)

    def test_the_allowlist_has_a_reason_for_every_row(self):
        rows = [line.split("\t") for line in self.ballast("scan", "--allowlist").out.splitlines()]
        self.assertGreater(len(rows), 200)
        self.assertTrue(all(len(row) == 4 and row[0] and row[1] and row[3] for row in rows))
        self.refused("scan", code=USAGE, says="scan what")

    def test_code_beside_a_configuration_was_not_looked_into(self):
        self.write("model/config.json", b"{}")
        self.write("model/modeling.py", b"import torch\n")
        self.write("scripts/train.py", b"import torch\n")
        report = self.run_raw("scan", "--json", self.folder).json()
        self.assertIsNone(report["safe"])
        self.assertEqual([pathlib.Path(one["file"]).name for one in report["findings"]], ["modeling.py"])


class Files(Scanned):
    HARMLESS = ("module_py", "od_")
    # Of files that are dangerous, convert cannot even read these.
    UNREADABLE = {"folder_member.npz", "g_known_rot13.pkl", "g_known_utf16.pkl", "g_zlib.pkl", "cache_poison.tar"}
    OTHERS = ("poly_",)  # two formats in one file: one_meaning_test.cpp tests them

    def test_only_harmless_ones_of_the_found_files_are_called_safe(self):
        for path in sorted(FOUND.iterdir()):
            if path.suffix == ".md" or path.name.startswith(self.OTHERS):
                continue
            with self.subTest(path.name):
                safe = self.safe_of(path)
                self.assertEqual(safe is True, path.name.startswith(self.HARMLESS))
                if safe is False:
                    self.assertRefused(path, MALFORMED if path.name in self.UNREADABLE else UNSAFE)

    @needs_fixtures
    def test_the_table_of_the_document_is_what_scan_says(self):
        document = (SOURCE / "docs" / "scan.md").read_text()
        for folder in ("benign", "adapters", "gguf", "safetensors", "malicious/control-benign"):
            counts = {True: 0, None: 0, False: 0}
            for path in sorted((FIXTURES / folder).rglob("*")):
                if not path.is_file():
                    continue
                result = self.run_raw("scan", "--json", path)
                if result.code in (OK, NO):
                    counts[result.json()["safe"]] += 1
            with self.subTest(folder):
                self.assertEqual(counts[False], 0)
                row = f"| `{folder}` | {counts[True]} | {counts[None]} | {counts[False]} |"
                self.assertIn(row, document)


if __name__ == "__main__":
    unittest.main()
