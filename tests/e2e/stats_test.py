"""stats: problems, quantiles, norms and channels."""

import hashlib
import json
import math
import struct
import unittest

from support import NO, OK, TINY, USAGE, VECTORS, TestCase, large_weights, read_safetensors

NAN, INF = math.nan, math.inf


def weights(count, scale=1.0):
    return [scale * math.sin(i + 1) for i in range(count)]


class Problems(TestCase):
    def problems(self, *args, code=NO):
        document = self.ballast("stats", "m.safetensors", "--problems", "--json", *args, code=code).json()
        self.assertEqual(document["schema"], "ballast.stats.problems/1")
        self.assertEqual((document["ok"], len(document["problems"])), (code == OK, document["errors"] + document["warnings"]))
        return document

    def test_each_kind_has_its_row_and_the_exit_code_is_1(self):
        rows = weights(40)
        rows[8:16] = [0.0] * 8
        self.write("m.safetensors", {
            "fine": ("F32", [4], weights(4)),
            "nan": ("F32", [2, 3], [1, 2, 3, 4, NAN, 5]),
            "inf": ("F32", [2, 3], [1, 2, INF, 4, -INF, 5]),
            "bias": ("F32", [3], [0, 0, 0]),
            "rows": ("F32", [5, 8], rows),
            **{f"layers.{i}.w": ("F32", [16], weights(16, 0.01 if i == 2 else 1)) for i in range(5)},
        })
        found = {p["name"]: p for p in self.problems()["problems"]}
        self.assertEqual({name: p["kind"] for name, p in found.items()},
                         {"nan": "nan", "inf": "infinity", "bias": "zeros", "rows": "constant_rows", "layers.2.w": "outlier"})
        self.assertEqual((found["nan"]["first"], found["nan"]["count"], found["nan"]["severity"]), ([1, 1], 1, "error"))
        self.assertEqual((found["inf"]["first"], found["inf"]["count"]), ([0, 2], 2))
        self.assertEqual((found["rows"]["first"], found["rows"]["count"], found["rows"]["severity"]), ([1, 0], 1, "warning"))
        self.assertIsNone(found["layers.2.w"]["first"])
        self.assertAlmostEqual(found["layers.2.w"]["std"] * 100, found["layers.2.w"]["median_std"], 5)

        result = self.ballast("stats", "m.safetensors", "--problems", code=NO)
        table = result.rows()
        self.assertEqual(table[0], ["name", "problem", "severity", "what"])
        self.assertEqual([row[0] for row in table[1:]], ["bias", "inf", "layers.2.w", "nan", "rows"])
        self.assertEqual(table[4][1:], ["nan", "error", "1 of 6 values is NaN, at [1, 1]"])
        self.assertIn("2 errors, 3 warnings", result.err)

    def test_without_problems_it_says_so_and_exits_with_0(self):
        self.write("m.safetensors", {"w": ("F32", [4], weights(4))})
        self.assertEqual(self.ballast("stats", "m.safetensors", "--problems").out, "ok: no problems in 1 tensor\n")
        self.assertEqual(self.ballast("stats", "m.safetensors", "--problems", "-q").out, "")
        self.assertEqual(self.problems(code=OK)["problems"], [])

    def test_problems_are_red(self):
        self.write("m.safetensors", {"w": ("F32", [2], [0, 0])})
        self.assertIn("\x1b[31mzeros\x1b[0m", self.ballast("stats", "m.safetensors", "--problems", "--color=always", code=NO).out)
        self.assertNotIn("\x1b", self.ballast("stats", "m.safetensors", "--problems", code=NO).out)

    def test_the_factor_can_be_given(self):
        self.write("m.safetensors", {f"l.{i}": ("F32", [16], weights(16, 3 if i == 1 else 1)) for i in range(4)})
        self.problems(code=OK)
        self.assertEqual(len(self.problems("--outlier-factor", "2")["problems"]), 1)
        self.refused("stats", "m.safetensors", "--problems", "--outlier-factor", "0.5", code=USAGE, says="factor")
        self.refused("stats", "m.safetensors", "--problems", "--outlier-factor", "x", code=USAGE, says="not a number")

    def test_names_are_escaped(self):
        self.write("m.safetensors", {"a\x1b[2J": ("F32", [1], [NAN]),
                                     **{f"\x1b.{i}": ("F32", [16], weights(16, 99 if i == 1 else 1)) for i in range(4)}})
        self.assertNotIn("\x1b", self.ballast("stats", "m.safetensors", "--problems", code=NO).out)

    def test_what_is_not_looked_at_is_said(self):
        self.write("m.safetensors", {"c": ("C64", [1], struct.pack("<2f", 1, 2)), "w": ("F32", [4], weights(4))})
        result = self.ballast("stats", "m.safetensors", "--problems")
        self.assertIn('1 tensor not looked at, such as "c"', result.err)
        self.assertEqual([s["name"] for s in self.problems(code=OK)["skipped"]], ["c"])

    def test_packed_integers_are_left_out(self):
        self.write("m.safetensors", {
            "l.qweight": ("I32", [8, 16], [0] * 128), "l.qzeros": ("I32", [1, 2], [0, 0]), "l.g_idx": ("I32", [64], [0] * 64),
            "l.scales": ("F16", [1, 16], [1.0] * 15 + [NAN])})
        self.write("config.json", b'{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64}}')
        document = self.problems()
        self.assertEqual([(p["name"], p["kind"]) for p in document["problems"]], [("l.scales", "nan")])
        self.assertTrue(all("gptq" in s["why"] for s in document["skipped"]))

    def test_options_that_would_have_no_effect_are_refused(self):
        for args in (["--bins", "3"], ["--histogram"], ["--long"], ["--quantiles"], ["--axis", "0"]):
            self.refused("stats", TINY, "--problems", *args, code=USAGE, says=f"{args[0]} has no effect with --problems")
        self.refused("stats", TINY, "--outlier-factor", "3", code=USAGE, says="--outlier-factor needs --problems")
        self.refused("stats", TINY, "--top", "3", code=USAGE, says="--top needs --axis")


class Numbers(TestCase):
    def setUp(self):
        super().setUp()
        self.write("m.safetensors", {"w": ("F32", [2, 4], [4, -3, NAN, 1, 2, INF, 0, 5]), "i": ("I64", [4], [1, 2, 3, 4]),
                                     "none": ("F32", [0], [])})

    def tensors(self, *args):
        return {t["name"]: t for t in self.ballast("stats", "m.safetensors", "--json", *args).json()["tensors"]}

    def test_norms_are_always_in_the_document(self):
        w = self.tensors()["w"]
        self.assertEqual((w["l1"], w["max_abs"], "outliers" in w), (15, 5, False))
        self.assertAlmostEqual(w["l2"], math.sqrt(55), 12)
        self.assertAlmostEqual(w["rms"], math.sqrt(55 / 6), 12)
        self.assertIsNone(self.tensors()["none"]["l2"])

    def test_long(self):
        self.assertEqual((self.tensors("--long")["w"]["outliers"], self.tensors("--long")["w"]["outlier_share"]), (0, 0))
        rows = self.ballast("stats", "m.safetensors", "--long").rows()
        self.assertEqual(rows[0][10:], ["l1", "l2", "max_abs", "rms", "outliers"])
        self.assertEqual(rows[2][10:], ["-"] * 5)

    def test_quantiles(self):
        found = self.tensors("--quantiles", "0.5,1", "--quantiles=0")["w"]["quantiles"]
        self.assertEqual([(q["quantile"], q["value"]) for q in found], [(0.5, 2), (1, "Infinity"), (0, -3)])
        self.assertEqual(self.tensors("--quantiles=0.5")["none"]["quantiles"], [{"quantile": 0.5, "value": None}])

    def test_quantiles_without_a_value_are_the_usual_ones_wherever_they_stand(self):
        usual = [0, 0.01, 0.25, 0.5, 0.75, 0.99, 1]
        for args in (["--quantiles", "m.safetensors", "i"], ["m.safetensors", "--quantiles", "i"], ["m.safetensors", "i", "--quantiles"],
                     ["m.safetensors", "--quantiles", "--", "i"]):
            tensor = self.ballast("stats", "--json", *args).json()["tensors"][0]
            self.assertEqual([q["quantile"] for q in tensor["quantiles"]], usual)
        rows = self.ballast("stats", "m.safetensors", "--quantiles").rows()
        self.assertEqual(rows[0][10:], ["q0", "q0.01", "q0.25", "q0.5", "q0.75", "q0.99", "q1"])
        self.assertEqual(rows[1][10:], ["1", "1", "1", "2", "3", "4", "4"])

    def test_quantiles_that_make_no_sense_are_refused(self):
        for value, says in (("1.5", "1.5 is no quantile"), ("0.5,x", '"x" is not a number'), ("0.5,", '"" is not a number'),
                            (",".join(["0.5"] * 129), "at most 128")):
            self.refused("stats", "m.safetensors", "--quantiles", value, code=USAGE, says=says)

    def test_channels(self):
        w = self.tensors("--axis", "-2")["w"]
        self.assertEqual([(c["min"], c["max"], c["nans"], c["infinities"]) for c in w["channels"]], [(-3, 4, 1, 0), (0, 5, 0, 1)])
        self.assertEqual(len(self.tensors("--axis", "1")["w"]["channels"]), 4)
        self.assertEqual(self.tensors("--axis", "1")["i"]["channels"], [])
        rows = self.ballast("stats", "m.safetensors", "w", "--axis=1").rows()
        self.assertEqual(rows[0], ["name", "channel", "min", "max", "mean", "std", "nan", "inf"])
        self.assertEqual(rows[3], ["w", "2", "0", "0", "0", "0", "1", "0"])

    def test_the_largest_channels_come_first(self):
        result = self.ballast("stats", "m.safetensors", "w", "--axis", "1", "--top", "3")
        self.assertEqual([row[1] for row in result.rows()[1:]], ["2", "1", "3"])  # NaN, Inf, the largest magnitude
        self.assertIn("1 channel", result.err)

    def test_a_dimension_that_is_not_there(self):
        self.refused("stats", "m.safetensors", "w", "--axis", "2", code=USAGE, says="the tensor has no dimension 2")
        self.refused("stats", "m.safetensors", "--axis", "-4", code=USAGE, says="no tensor has a dimension -4")
        self.refused("stats", "m.safetensors", "--axis", "one", code=USAGE, says='"one" is not a whole number')
        self.assertIn('2 tensors without a dimension 1, such as "', self.ballast("stats", "m.safetensors", "--axis", "1").err)

    def test_threads_do_not_change_a_digit(self):
        self.write("large.safetensors", {"w": ("F32", [5 << 10, 1 << 10], large_weights(5 << 20))})
        args = ["stats", "large.safetensors", "--json", "--long", "--quantiles", "--axis", "0"]
        self.assertEqual(self.ballast(*args, "--threads", "1").out, self.ballast(*args, "--threads", "3").out)

    def test_blocks_are_decoded(self):
        vector = VECTORS / "gguf" / "little_endian_twin.gguf"
        self.ballast("convert", vector, "numbers.safetensors", "--dtype", "F32")
        numbers, _ = read_safetensors(self.folder / "numbers.safetensors")
        digests = {tensor["name"]: tensor["f32_sha256"] for tensor in json.loads(vector.with_suffix(".gguf.expected.json").read_text())["tensors"]}
        self.assertGreater(len(digests), 4)
        rows = self.ballast("stats", vector, "--json", "--quantiles", "0,1").json()["tensors"]
        self.assertEqual({row["name"] for row in rows}, set(digests))
        for row in rows:
            data = numbers[row["name"]][2]
            self.assertEqual(hashlib.sha256(data).hexdigest(), digests[row["name"]], "other numbers than gguf-py's")
            values = struct.unpack(f"<{len(data) // 4}f", data)
            for found in ([row["min"], row["max"]], [q["value"] for q in row["quantiles"]]):
                self.assertEqual(struct.pack("<2f", *found), struct.pack("<2f", min(values), max(values)), row["name"])


if __name__ == "__main__":
    unittest.main()
