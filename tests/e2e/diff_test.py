"""diff in depth: its numbers against plain Python, names and prefixes matched, roles, costs, ranks."""

import json
import math
import random
import shutil
import unittest

from seeded_weights import write_weights
from support import *

CASES = VECTORS / "hf2gguf"


def rounded(value, dtype):
    """The number that a file of this dtype holds."""
    if dtype == "F32":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if dtype == "F16":
        return struct.unpack("<e", struct.pack("<e", value))[0]
    bits, = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def packed(values, dtype):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{'f' if dtype == 'F32' else 'e'}", *values)


def is_close(x, y, atol, rtol):
    """numpy.isclose with equal_nan."""
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or (math.isfinite(y) and abs(x - y) <= atol + rtol * abs(y))


class Numbers(TestCase):
    def test_are_those_of_plain_python(self):
        rng = random.Random(5)
        for dtype_a, dtype_b in (("F32", "F32"), ("BF16", "BF16"), ("F16", "F16"), ("F32", "BF16"), ("F16", "BF16")):
            for count in (1, 7, 8, 1023, 1024, 5000):
                a = [rounded(rng.gauss(0, 1), dtype_a) for _ in range(count)]
                b = [rounded(x + rng.choice((0, 0, 1e-3, 0.1)) * rng.gauss(0, 1), dtype_b) for x in a]
                if count > 1000:
                    a[10], b[11], a[12], b[13], a[14], b[14] = math.nan, math.nan, math.inf, -math.inf, math.inf, math.inf
                for atol, rtol in ((0, 0), (0.01, 0), (0, 0.05), (1e-3, 1e-2)):
                    with self.subTest(a=dtype_a, b=dtype_b, count=count, atol=atol, rtol=rtol):
                        self.compare((dtype_a, a), (dtype_b, b), atol, rtol)

    def precision(self, dtype_a, dtype_b):
        """Blocks of BF16 are added up as F32 first."""
        return 2e-8 if dtype_a == dtype_b == "BF16" else 1e-12

    def compare(self, a, b, atol, rtol):
        (dtype_a, x), (dtype_b, y) = a, b
        self.write("a.safetensors", {"w": (dtype_a, [len(x)], packed(x, dtype_a))})
        self.write("b.safetensors", {"w": (dtype_b, [len(y)], packed(y, dtype_b))})
        result = self.run_raw("diff", "a.safetensors", "b.safetensors", "--atol", str(atol), "--rtol", str(rtol),
                              "--ignore-dtype", "--json")
        pairs = list(zip(x, y))
        differ = [i for i, (p, q) in enumerate(pairs) if not is_close(p, q, atol, rtol)]
        self.assertEqual(result.code, NO if differ else 0, result)
        report = result.json()
        self.assertEqual(report["equal"], not differ)
        if not differ:
            return
        change, = report["changed"]
        finite = [(p, q) for p, q in pairs if math.isfinite(p) and math.isfinite(q)]
        norm_a = math.sqrt(math.fsum(p * p for p, _ in finite))
        norm_b = math.sqrt(math.fsum(q * q for _, q in finite))
        norm = math.sqrt(math.fsum((p - q) ** 2 for p, q in finite))
        self.assertEqual(change["different"], len(differ))
        self.assertEqual(change["nan_mismatch"], sum(math.isnan(p) != math.isnan(q) for p, q in pairs))
        for key, wanted in (("norm_a", norm_a), ("norm_b", norm_b), ("norm_change", norm), ("relative_change", norm / norm_a),
                            ("cosine", math.fsum(p * q for p, q in finite) / norm_a / norm_b),
                            ("rms", norm / math.sqrt(len(finite)))):
            self.assertAlmostEqual(change[key], wanted, delta=self.precision(dtype_a, dtype_b) * max(1, abs(wanted)), msg=key)
        far = {i: abs(pairs[i][0] - pairs[i][1]) for i in differ if not any(map(math.isnan, pairs[i]))}
        if far:
            largest = max(far.values())
            self.assertEqual(float(change["max_abs"].replace("Infinity", "inf") if isinstance(change["max_abs"], str)
                                   else change["max_abs"]), largest)
            self.assertEqual(change["max_at"], [min(i for i in far if far[i] == largest)])

    def test_are_null_where_there_are_none(self):
        self.write("a.safetensors", {"zero": ("F32", [2], [0, 0]), "empty": ("F32", [0, 3], []), "scalar": ("F32", [], [1])})
        self.write("b.safetensors", {"zero": ("F32", [2], [0, 1]), "empty": ("F16", [0, 3], b""), "scalar": ("F32", [], [2])})
        report = self.ballast("diff", "a.safetensors", "b.safetensors", "--json", code=NO).json()
        changed = {change["name"]: change for change in report["changed"]}
        self.assertEqual((changed["zero"]["relative_change"], changed["zero"]["cosine"]), (None, None))
        self.assertNotIn("relative_change", changed["empty"])
        self.assertEqual((changed["scalar"]["max_at"], changed["scalar"]["relative_change"]), ([], 1))
        self.assertEqual(list(changed), ["zero", "empty", "scalar"])  # in the order of the file


class Presentation(TestCase):
    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        a, b = {}, {}
        for layer in range(16):
            for role in ("up", "down"):
                values = [rng.gauss(0, 1) for _ in range(64)]
                a[f"layers.{layer}.{role}.weight"] = ("F32", [8, 8], values)
                scale = 0 if role == "down" and layer < 8 else 0.01 * (layer + 1)
                b[f"layers.{layer}.{role}.weight"] = ("F32", [8, 8], [x * (1 + scale) for x in values])
        self.write("a.safetensors", a)
        self.write("b.safetensors", b | {"extra": ("U8", [1], [1])})

    def show(self, *args, **more):
        return Terminal(*args, cwd=self.folder, **more).finish()

    def test_summary_roles_and_the_largest_changes(self):
        lines = self.ballast("diff", "a.safetensors", "b.safetensors", "--top", "2", code=NO).lines()
        self.assertEqual(lines[0], "8 equal, 0 only in A, 1 only in B, 24 changed")
        self.assertTrue(lines[1].startswith("changed tensors: change "), lines[1])
        rows = {line.split("\t")[0].strip(): line.split("\t") for line in lines if "\t" in line}
        self.assertEqual(rows["layers.#.down.weight"][1], "8 of 16")
        self.assertEqual(rows["layers.#.down.weight"][4][:8], " " * 8)
        self.assertEqual((len(rows["layers.#.up.weight"][4]), rows["layers.#.up.weight"][4][-1]), (16, "@"))
        changed = [line for line in lines if line.startswith("~")]
        self.assertEqual(len(changed), 2)
        self.assertTrue(all(line.startswith("~ layers.15.") for line in changed))
        self.assertIn("  22 more changed; --top 24 shows all", lines)
        self.assertIn("+ extra  U8 [1]", lines)

    def test_a_pipe_gets_all_and_quiet_only_what_differs(self):
        lines = self.ballast("diff", "a.safetensors", "b.safetensors", code=NO).lines()
        self.assertEqual(len([line for line in lines if line.startswith("~")]), 24)
        quiet = self.ballast("diff", "a.safetensors", "b.safetensors", "-q", code=NO).lines()
        self.assertEqual({line[0] for line in quiet}, {"+", "~"})

    def test_a_terminal_gets_ten_and_bars(self):
        for locale, bars in (("C.UTF-8", True), ("C", False)):
            code, text = self.show("diff", "a.safetensors", "b.safetensors", "--color=never",
                                   env=environment(LC_ALL=locale), columns=100)
            self.assertEqual(code, NO)
            self.assertEqual("█" in text, bars)
            self.assertEqual(text.count("\n~"), 10)
            self.assertLessEqual(max(len(line) for line in text.splitlines() if "layers.#" in line), 100)
        _, text = self.show("diff", "a.safetensors", "b.safetensors", "--color=never", env=environment(LC_ALL="C.UTF-8"), columns=50)
        lines = text.splitlines()
        row = next(i for i, line in enumerate(lines) if "layers.#.up" in line)
        self.assertEqual((len(lines[row + 1].strip()), lines[row + 1][-1]), (16, "█"))  # the layers stand below the row

    def test_json_has_roles_and_what_comes_to_all(self):
        report = self.ballast("diff", "a.safetensors", "b.safetensors", "--json", "--top", "3", code=NO).json()
        self.assertEqual((len(report["changed"]), report["changed_tensors"]), (3, 24))
        changes = [change["relative_change"] for change in report["changed"]]
        self.assertEqual(changes, sorted(changes, reverse=True))
        role = {role["pattern"]: role for role in report["roles"]}["layers.#.down.weight"]
        self.assertEqual((role["tensors"], role["changed"], role["worst_name"]), (16, 8, "layers.15.down.weight"))
        self.assertAlmostEqual(role["worst"], 0.16, places=5)
        self.assertEqual([layer["layer"] for layer in role["layers"]], list(range(16)))
        self.assertEqual((report["names"], report["prefix"]), (None, None))

    def test_what_became_nan_or_infinite_comes_first(self):
        """No relative change says it, so it is said in the summary, the chart, the tables and the JSON."""
        rng = random.Random(1)
        values = {f"layers.{layer}.w": [rng.gauss(0, 1) for _ in range(64)] for layer in range(16)}
        changed = {name: [x * 1.1 for x in numbers] for name, numbers in values.items()}
        changed["layers.12.w"] = [math.nan] * 64
        changed["layers.14.w"] = values["layers.14.w"][:-1] + [math.inf]
        for file, numbers in (("x.safetensors", values), ("y.safetensors", changed)):
            self.write(file, {name: ("F32", [8, 8], some) for name, some in numbers.items()})
        lines = self.ballast("diff", "x.safetensors", "y.safetensors", "--top", "2", code=NO).lines()
        self.assertEqual(lines[1], "2 tensors have NaN or infinite values on one side only")
        self.assertTrue(lines[2].endswith(", of what is finite on both sides"), lines[2])
        role = next(line for line in lines if line.startswith("  layers.#.w")).split("\t")
        self.assertEqual((role[3], role[4][12], role[4][14], role[4][15]), ("NaN, Inf", "!", "!", "@"))
        self.assertEqual({line.split()[1] for line in lines if line.startswith("~")}, {"layers.12.w", "layers.14.w"})
        _, text = self.show("diff", "x.safetensors", "y.safetensors", "--color=never", columns=100)
        rows = [line.split() for line in text.splitlines() if line.startswith("~")]
        self.assertEqual({row[1]: row[2] for row in rows[:2]}, {"layers.12.w": "NaN", "layers.14.w": "Inf"})
        report = self.ballast("diff", "x.safetensors", "y.safetensors", "--json", code=NO).json()
        self.assertEqual((report["broken_tensors"], report["roles"][0]["broken"]), (2, 2))
        self.assertEqual([layer["layer"] for layer in report["roles"][0]["layers"] if layer["broken"]], [12, 14])

    def test_values_that_were_not_compared_are_not_called_equal(self):
        self.write("x.safetensors", {"w": ("F32", [4], [1.0, 2.0, 3.0, 4.0])})
        self.write("y.safetensors", {"w": ("F32", [4], [1.0, 2.0, 3.0, 5.0])})
        said = self.ballast("diff", "x.safetensors", "y.safetensors", "--no-values")
        self.assertEqual(said.out, "equal: 1 tensor, by names, dtypes and shapes; values were not compared\n")
        self.assertFalse(self.ballast("diff", "x.safetensors", "y.safetensors", "--no-values", "--json").json()["values_compared"])
        self.assertIn("1 value of 4 differs, by at most 1", self.ballast("diff", "x.safetensors", "y.safetensors", code=NO).out)

    def test_wrong_use_is_refused(self):
        files = ("a.safetensors", "b.safetensors")
        self.refused("diff", *files, "--rtol", "-1", code=USAGE, says="--rtol must be 0 or more")
        self.refused("diff", *files, "--atol", "nan", code=USAGE, says="--atol")
        self.refused("diff", *files, "--atol", "1", "--tolerance", "1", code=USAGE, says="mean the same")
        self.refused("diff", *files, "--names", "torch", code=USAGE, says="no names of the style", hint="keep")
        self.refused("diff", *files, "--names", "gguf", code=USAGE, says="architecture", hint="--architecture")
        self.refused("diff", "a.safetensors", "nope.safetensors", code=IO, says="nope")


class Names(TestCase):
    def model_folder(self, case):
        source = CASES / case / json.loads((CASES / case / "case.json").read_text())["folder"]
        if (source / "model.safetensors").exists():
            return source
        folder = self.folder / source.name
        shutil.copytree(source, folder)
        write_weights(folder)
        return folder

    def test_a_folder_equals_the_gguf_made_of_it(self):
        for case in ("llama", "gemma", "gpt2", "qwen2", "mixtral", "bert"):
            with self.subTest(case=case):
                folder = self.model_folder(case)
                self.ballast("convert", folder, f"{case}.gguf", "--type", "f32")
                for sides in ((folder, f"{case}.gguf"), (f"{case}.gguf", folder)):
                    result = self.run_raw("diff", *sides, "--ignore-dtype", "--atol", "1e-5", "--json")
                    report = result.json()
                    self.assertEqual(report["changed"], [])
                    self.assertEqual(report["names"], "hf")
                    self.assertGreater(report["equal_tensors"], 5)
                    self.assertIn("names of Hugging Face", result.err)
                    # Buffers that GGUF does not have, and the head that is the embedding.
                    self.assertLessEqual(len(report["only_in_a"]) + len(report["only_in_b"]), 4, report)
                self.ballast("diff", folder, f"{case}.gguf", "--names", "keep", code=NO)

    def test_a_quantization_says_what_it_costs(self):
        folder = self.model_folder("llama")
        self.ballast("convert", folder, "wide.gguf", "--type", "f32")
        self.ballast("convert", folder, "small.gguf", "--type", "q8_0")
        result = self.ballast("diff", "wide.gguf", "small.gguf", code=NO)
        self.assertRegex(result.out, r"(?m)^Q8_0 costs 0\.\d+ % RMS, worst in \S+$")
        report = self.ballast("diff", folder, "small.gguf", "--json", code=NO).json()
        cost = {cost["dtype_b"]: cost for cost in report["dtype_costs"]}["Q8_0"]
        self.assertLess(cost["relative_change"], 0.01)
        for change in report["changed"]:
            self.assertEqual(change["what"], "dtype", change)
        self.ballast("diff", folder, "small.gguf", "--ignore-dtype", "--atol", "0.05", "--include", "model.*")

    def test_only_the_side_with_fewer_bits_costs(self):
        folder = self.model_folder("q_llama8")
        for recipe in ("q4_k_m", "q8_0"):
            self.ballast("convert", folder, f"{recipe}.gguf", "--type", recipe)
        for sides in (("q4_k_m.gguf", "q8_0.gguf"), ("q8_0.gguf", "q4_k_m.gguf")):
            costs = re.findall(r"(?m)^(\S+) costs ", self.ballast("diff", *sides, code=NO).out)
            self.assertTrue(costs)
            self.assertNotIn("Q8_0", costs)

    def test_prefixes_are_matched_and_named(self):
        tensors = {"model.a.weight": ("F32", [2], [1, 2]), "model.b.weight": ("F32", [2], [1, 2])}
        self.write("plain.safetensors", tensors)
        self.write("module.safetensors", {"module." + name: tensor for name, tensor in tensors.items()})
        for sides in (("plain.safetensors", "module.safetensors"), ("module.safetensors", "plain.safetensors")):
            result = self.ballast("diff", *sides)
            self.assertEqual(result.out, "equal: 2 tensors\n")
            self.assertIn('names begin with "module." here only', result.err)
        self.ballast("diff", "module.safetensors", "plain.safetensors", "--include", "module.*")
        self.ballast("diff", "plain.safetensors", "module.safetensors", "--names", "keep", code=NO)

    def test_adapters_compare_by_their_names(self):
        lora = SOURCE / "examples/tiny-lora/adapter_model.safetensors"
        tensors, metadata = read_safetensors(lora)
        short = {name.removeprefix("base_model.model."): tensor for name, tensor in tensors.items()}
        self.write("other.safetensors", short, metadata)
        self.assertIn("base_model.model.", self.ballast("diff", lora, "other.safetensors").err)


class Rank(TestCase):
    def test_of_a_merged_lora_is_that_of_the_lora(self):
        base, lora = SOURCE / "examples/tiny.safetensors", SOURCE / "examples/tiny-lora"
        self.ballast("adapter", "merge", base, lora, "-o", "merged.safetensors")
        result = self.ballast("diff", base, "merged.safetensors", "--effective-rank", code=NO)
        self.assertIn("rank ≈ 4 in 4 of 4 changed matrices: a LoRA was merged, it seems", result.lines())
        report = self.ballast("diff", base, "merged.safetensors", "--effective-rank", "--json", code=NO).json()
        self.assertEqual({change["rank"]["before_gap"] for change in report["changed"]}, {4})
        plain = self.ballast("diff", base, "merged.safetensors", "--json", code=NO).json()
        self.assertNotIn("rank", plain["changed"][0])


class Loras(TestCase):
    """Two LoRAs are compared by what they add to each weight."""

    ROWS, COLUMNS = 6, 5

    def lora(self, name, seed, rank, alpha, parts=None, dtype="F32"):
        rng = random.Random(seed)
        a, b = parts or ([[rng.gauss(0, 1) for _ in range(self.COLUMNS)] for _ in range(rank)],
                         [[rng.gauss(0, 1) for _ in range(rank)] for _ in range(self.ROWS)])
        prefix = "base_model.model.layers.0.q_proj"
        self.write(f"{name}/adapter_model.safetensors", {
            f"{prefix}.lora_A.weight": (dtype, [rank, self.COLUMNS], packed(sum(a, []), dtype)),
            f"{prefix}.lora_B.weight": (dtype, [self.ROWS, rank], packed(sum(b, []), dtype))})
        (self.folder / name / "adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": ["q_proj"]}))
        return [[alpha / rank * sum(b[i][k] * a[k][j] for k in range(rank)) for j in range(self.COLUMNS)] for i in range(self.ROWS)]

    def test_of_other_ranks_have_the_numbers_of_their_products(self):
        a, b = sum(self.lora("a", 1, 2, 4), []), sum(self.lora("b", 2, 3, 3), [])
        report = self.ballast("diff", "a", "b", "--json", code=NO).json()
        change, = report["changed"]
        norm = lambda values: math.sqrt(sum(x * x for x in values))
        self.assertEqual((change["name"], change["what"], change["max_at"]), ("layers.0.q_proj.weight", "values", None))
        self.assertAlmostEqual(change["relative_change"], norm([x - y for x, y in zip(a, b)]) / norm(a), places=5)
        self.assertAlmostEqual(change["cosine"], sum(x * y for x, y in zip(a, b)) / norm(a) / norm(b), places=5)
        self.assertIn("rank 2, alpha 4", self.ballast("diff", "a", "b", code=NO).err)

    def test_that_say_the_same_are_equal(self):
        rng = random.Random(3)
        a = [[rng.gauss(0, 1) for _ in range(self.COLUMNS)] for _ in range(2)]
        b = [[rng.gauss(0, 1) for _ in range(2)] for _ in range(self.ROWS)]
        self.lora("a", 0, 2, 4, (a, b))
        self.lora("b", 0, 2, 2, ([[2 * x for x in row] for row in a], b))  # the scaling is in A
        self.assertEqual(self.ballast("diff", "a", "b").out, "equal: 1 tensor\n")
        self.ballast("adapter", "convert", "a", "--to", "kohya", "-o", "a.safetensors", "-q")
        self.assertEqual(self.ballast("diff", "a", "b", "--names", "keep", code=NO).lines()[0], "1 equal, 0 only in A, 0 only in B, 1 changed")

    def test_that_do_not_fit_together_are_compared_by_their_tensors(self):
        self.lora("a", 1, 2, 4)
        self.write("b/adapter_model.safetensors", {"base_model.model.layers.0.q_proj.lora_A.weight": ("F32", [2, 5], [0.0] * 10)})
        shutil.copy(self.folder / "a/adapter_config.json", self.folder / "b")
        for one, other, only in (("a", "b", "only_in_a"), ("b", "a", "only_in_b")):
            result = self.ballast("diff", one, other, "--json", code=NO)
            self.assertEqual(result.err, 'note: compared tensor by tensor: "layers.0.q_proj" of "b" has only one of its two matrices\n')
            report = result.json()
            self.assertEqual([change["name"] for change in report["changed"]], ["base_model.model.layers.0.q_proj.lora_A.weight"])
            self.assertEqual(report[only], ["base_model.model.layers.0.q_proj.lora_B.weight"])


class OnATerminal(TestCase):
    def test_no_line_is_wider_than_the_screen_and_names_stay_apart(self):
        for side, factor in (("a", 1.0), ("b", 1.5)):
            self.write(f"{side}.safetensors", {f"model.layers.{i}.self_attn.{part}_proj.weight": ("F32", [4, 4], [factor * (i + 1)] * 16)
                                               for i in range(4) for part in "qkvo"})
        for columns in (50, 80, 120):
            _, text = Terminal("diff", "a.safetensors", "b.safetensors", cwd=self.folder, columns=columns).finish()
            lines = without_colors(text).splitlines()
            self.assertLessEqual(max(map(len, lines)), columns, text)
            names = [line.split()[1] for line in lines if line.startswith("~ ")]
            self.assertEqual(len(set(names)), 10, text)

    def test_what_only_one_side_has_is_folded(self):
        self.write("a.safetensors", {f"layers.{i}.w": ("F32", [2], [1.0, 2.0]) for i in range(30)})
        self.write("b.safetensors", {"layers.0.w": ("F32", [2], [1.0, 2.0])})
        _, text = Terminal("diff", "a.safetensors", "b.safetensors", cwd=self.folder).finish()
        self.assertIn("- layers.#.w  ×29  F32 [2]", without_colors(text))
        _, text = Terminal("diff", "a.safetensors", "b.safetensors", "-v", cwd=self.folder).finish()
        self.assertIn("- layers.29.w  F32 [2]", without_colors(text))


if __name__ == "__main__":
    unittest.main()
