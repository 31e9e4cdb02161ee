"""What the command makes of a model's folder runs in llama.cpp itself, and says there what the reference's file says.

The vectors have what llama.cpp said of the files that its own converter wrote (run.json), and some of these files.
Skipped (exit 77) if npm is not there or cannot install llama.cpp; if BALLAST_REQUIRE_LLAMACPP is set, that is a failure.
BALLAST_HF2GGUF names another folder of vectors.
"""

import math
import re
import sys
import unittest

from llamacpp import LlamaCpp, Unavailable
from seeded_weights import write_weights
from support import *

TEXT, IDS = "Hello world 123", list(range(5, 13))  # what run.json is about
TOLERANCE = 1e-3
# Processors with instructions for BF16 round what is multiplied by such weights to BF16, too: run.json is of one without.
BF16_TOLERANCE = 2e-2

# Classes of models that are loaded, and whose text is taken apart, but that are not evaluated.
ONLY_DECODERS = "node-llama-cpp runs no encoder before a decoder, and llama.cpp ends the process if nobody did"
NOT_EVALUATED = {
    "T5ForConditionalGeneration": ONLY_DECODERS,
    "MT5ForConditionalGeneration": ONLY_DECODERS,
    "UMT5ForConditionalGeneration": ONLY_DECODERS,
}

# The vectors of the repository, and of those beside it the ones that the repository does not have.
SETS = [VECTORS / "hf2gguf", FIXTURES.parent / "vectors" / "hf2gguf"]
if "BALLAST_HF2GGUF" in os.environ:
    SETS = [pathlib.Path(os.environ["BALLAST_HF2GGUF"])]


class Case:
    """A model's folder, and what llama.cpp said of the reference's file."""

    def __init__(self, path, expected):
        about = json.loads((path / "case.json").read_text())
        self.name, self.path, self.expected = path.name, path, expected
        self.folder = path / about["folder"]
        self.type = "bf16" if about.get("quant") else "f32"  # of the file that run.json is about
        self.tolerance = BF16_TOLERANCE if self.type == "bf16" else TOLERANCE
        self.is_evaluated = about["architecture"] not in NOT_EVALUATED
        self.kind = expected["kind"] if self.is_evaluated else "none"

    def references(self):
        """(file, type, importance matrix or None) of each file that the reference wrote."""
        for path in sorted(self.path.glob("reference-*.gguf")):
            with_matrix, type_name = re.fullmatch(r"reference-(imatrix-)?(.+)\.gguf", path.name).groups()
            yield path, type_name, self.path / "imatrix.gguf" if with_matrix else None


def find_cases():
    found = {}
    for folder in SETS:
        if not (folder / "run.json").is_file():
            continue
        for name, expected in json.loads((folder / "run.json").read_text())["cases"].items():
            if expected["runs"] and (folder / name / "case.json").is_file():
                found.setdefault(name, Case(folder / name, expected))
    return [found[name] for name in sorted(found)]


def greatest(values, count):
    """The places of the greatest values, the greatest first."""
    return sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]


def logits(probabilities, anchor):
    """The logits behind probabilities, of which one is known: anchor is (id, logit)."""
    shift = anchor[1] - math.log(probabilities[anchor[0]])
    return [math.log(probability) + shift for probability in probabilities]


class RunsInLlamaCpp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="ballast-llamacpp-")
        cls.addClassCleanup(holder.cleanup)
        cls.scratch = pathlib.Path(holder.name)
        cls.refused = {}  # {a file that the command did not write: what it said}
        cls.models = {}   # {name of a case: file}, of the type that run.json is about
        cls.plain = {}    # the same, without --type
        cls.pairs = {}    # {file of the reference: ours}
        files = {}        # {file: kind}
        for case in CASES:
            folder = cls.with_weights(case)
            cls.models[case.name] = cls.convert(folder, f"{case.name}.gguf", "--type", case.type)
            cls.plain[case.name] = cls.convert(folder, f"{case.name}-plain.gguf")
            files |= {cls.models[case.name]: case.kind, cls.plain[case.name]: "none"}
            for reference, type_name, matrix in case.references():
                options = ["--type", type_name] + (["--imatrix", matrix] if matrix else [])
                ours = cls.convert(folder, f"{case.name}-{reference.name}", *options)
                cls.pairs[reference] = ours
                files |= {reference: case.kind, ours: case.kind}
        written = {path: kind for path, kind in files.items() if path not in cls.refused}
        cls.told = LLAMA_CPP.run(written, TEXT, IDS)

    @classmethod
    def with_weights(cls, case):
        """The folder of the model, or a copy with the weights if only their recipe is kept."""
        if not (case.folder / "weights.json").exists():
            return case.folder
        folder = shutil.copytree(case.folder, cls.scratch / case.name / case.folder.name, copy_function=shutil.copyfile)
        write_weights(folder)
        return folder

    @classmethod
    def convert(cls, folder, name, *options):
        out = cls.scratch / name
        done = subprocess.run([COMMAND, "convert", folder, out, "--no-sync", *options],
                              capture_output=True, text=True, timeout=120, env=environment())
        if done.returncode != 0:
            cls.refused[out] = done.stderr
        return out

    def test_every_model_is_written_and_loaded(self):
        for path in [*self.models.values(), *self.plain.values(), *self.pairs, *self.pairs.values()]:
            with self.subTest(file=path.name):
                if path in self.refused:
                    self.fail(self.refused[path])
                if "error" in self.told[path]:
                    self.fail(f"llama.cpp: {self.told[path]['error']}")

    def loaded(self, files):
        """The cases whose files llama.cpp loads, each with what it told; the test above fails for the others."""
        for case in CASES:
            told = self.told.get(files[case.name], {})
            if "tokens" in told:
                yield case, told

    def test_a_text_has_the_tokens_of_the_reference(self):
        for case, told in [*self.loaded(self.models), *self.loaded(self.plain)]:
            with self.subTest(case=case.name):
                self.assertEqual(told["tokens"], case.expected["hello"])

    def test_the_five_greatest_values_are_those_of_the_reference(self):
        for case, told in self.loaded(self.models):
            if case.is_evaluated:
                with self.subTest(case=case.name):
                    self.assertEqual(greatest(told["values"], 5), [place for place, _ in case.expected["top"]])

    def test_all_values_are_near_those_of_the_reference(self):
        for case, told in self.loaded(self.models):
            if case.is_evaluated:
                with self.subTest(case=case.name):
                    values = told["values"] if case.kind == "embd" else logits(told["values"], case.expected["top"][0])
                    self.assertEqual(len(values), case.expected["n"])
                    for place, value in case.expected["top"]:
                        self.assertAlmostEqual(values[place], value, delta=case.tolerance, msg=f"value {place}")
                    mean = math.fsum(values) / len(values)
                    self.assertAlmostEqual(mean, case.expected["sum"] / len(values), delta=case.tolerance, msg="the mean")

    def test_probabilities_are_those_of_the_file_that_the_reference_wrote(self):
        for reference, ours in self.pairs.items():
            theirs, told = self.told[reference], self.told.get(ours, {})
            if "tokens" in told:
                with self.subTest(file=ours.name):
                    self.assertEqual(told["tokens"], theirs["tokens"])
                    self.assertEqual(len(told["values"]), len(theirs["values"]))
                    furthest = max(abs(a - b) for a, b in zip(told["values"], theirs["values"]))
                    self.assertLess(furthest / max(theirs["values"]), TOLERANCE)


def stop(why):
    if "BALLAST_REQUIRE_LLAMACPP" in os.environ:
        sys.exit(why)
    print(why)
    sys.exit(77)


if os.environ.get("BALLAST_SANITIZE"):
    stop("llama.cpp has nothing to say of a build with a sanitizer that it does not say of the others")
CASES = find_cases()
if not CASES:
    stop(f"no models to run: {SETS[0]}")
try:
    LLAMA_CPP = LlamaCpp()
except Unavailable as why:
    stop(str(why))

if __name__ == "__main__":
    unittest.main()
