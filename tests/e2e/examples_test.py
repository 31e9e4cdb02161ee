"""The example programs: one model in three formats gives one answer, and it is the right one."""

import math
import pathlib
import random
import subprocess
import unittest

from support import *

PROGRAMS = pathlib.Path(COMMAND).parent


class Examples(TestCase):
    def scores(self, program, *args, code=0):
        done = subprocess.run([PROGRAMS / f"example_{program}", *map(str, args)], capture_output=True, text=True,
                              cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else [float(line) for line in done.stdout.split()]

    def same_in_every_format(self, program, model, *args, gguf=()):
        self.write("model.safetensors", model)
        self.ballast("convert", "model.safetensors", "model.pt")
        self.ballast("convert", "model.safetensors", "model.gguf", *gguf)
        scores = [self.scores(program, f"model.{ending}", *args) for ending in ("safetensors", "pt", "gguf")]
        self.assertEqual(scores[0], scores[1])
        self.assertEqual(scores[0], scores[2])
        return scores[0]

    def assert_close(self, got, wanted):
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertLess(abs(a - b), 1e-4 * max(1, abs(b)))


def random_tensor(rng, *shape):
    return ("F32", list(shape), [rng.uniform(-1, 1) for _ in range(math.prod(shape))])


def rows_of(tensor):
    _, (rows, columns), values = tensor
    return [values[i * columns:(i + 1) * columns] for i in range(rows)]


class Mlp(Examples):
    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        self.model = {"hidden.weight": random_tensor(rng, 8, 5), "hidden.bias": random_tensor(rng, 8),
                      "output.weight": random_tensor(rng, 3, 8), "output.bias": random_tensor(rng, 3)}

    def expected(self, x):
        for name in ("hidden", "output"):
            if name == "output":
                x = [max(v, 0) for v in x]
            bias = self.model[f"{name}.bias"][2]
            x = [b + sum(w * v for w, v in zip(row, x)) for row, b in zip(rows_of(self.model[f"{name}.weight"]), bias)]
        return x

    def test_gives_the_same_scores_from_every_format(self):
        x = [0.5, -1, 2, 0.25, 3]
        self.assert_close(self.same_in_every_format("mlp", self.model, *x), self.expected(x))

    def test_takes_any_dtype_and_says_what_is_missing(self):
        self.write("model.safetensors", self.model)
        self.ballast("convert", "model.safetensors", "half.safetensors", "--dtype", "BF16")
        for a, b in zip(self.scores("mlp", "half.safetensors", 1, 2, 3, 4, 5), self.expected([1, 2, 3, 4, 5])):
            self.assertLess(abs(a - b), 0.2)
        self.ballast("convert", "model.safetensors", "part.safetensors", "--exclude", "*.bias")
        self.assertIn('2 missing ("hidden.bias"', self.scores("mlp", "part.safetensors", 1, code=1))


class Gpt2(Examples):
    WIDTH, HEADS, BLOCKS, TOKENS = 32, 4, 2, 11

    def setUp(self):
        super().setUp()
        rng, width = random.Random(2), self.WIDTH
        self.model = {"wte.weight": random_tensor(rng, self.TOKENS, width), "wpe.weight": random_tensor(rng, 16, width)}

        def linear(name, rows, columns):
            self.model[f"{name}.weight"], self.model[f"{name}.bias"] = random_tensor(rng, rows, columns), random_tensor(rng, columns)
        for i in range(self.BLOCKS):
            for norm in ("ln_1", "ln_2"):
                self.model[f"h.{i}.{norm}.weight"], self.model[f"h.{i}.{norm}.bias"] = random_tensor(rng, width), random_tensor(rng, width)
            linear(f"h.{i}.attn.c_attn", width, 3 * width)
            linear(f"h.{i}.attn.c_proj", width, width)
            linear(f"h.{i}.mlp.c_fc", width, 4 * width)
            linear(f"h.{i}.mlp.c_proj", 4 * width, width)
        self.model["ln_f.weight"], self.model["ln_f.bias"] = random_tensor(rng, width), random_tensor(rng, width)

    def expected(self, tokens):
        model, width = self.model, self.WIDTH
        vector = lambda name: model[name][2]

        def norm(name, x):
            mean = sum(x) / len(x)
            variance = sum((v - mean) ** 2 for v in x) / len(x)
            return [(v - mean) / math.sqrt(variance + 1e-5) * w + b
                    for v, w, b in zip(x, vector(f"{name}.weight"), vector(f"{name}.bias"))]

        def linear(name, x):
            y = list(vector(f"{name}.bias"))
            for v, row in zip(x, rows_of(model[f"{name}.weight"])):
                y = [a + v * w for a, w in zip(y, row)]
            return y
        rows = [[a + b for a, b in zip(rows_of(model["wte.weight"])[t], rows_of(model["wpe.weight"])[i])]
                for i, t in enumerate(tokens)]
        for block in range(self.BLOCKS):
            qkv = [linear(f"h.{block}.attn.c_attn", norm(f"h.{block}.ln_1", x)) for x in rows]
            size = width // self.HEADS
            for i, x in enumerate(rows):
                seen = []
                for h in range(self.HEADS):
                    q = qkv[i][h * size:(h + 1) * size]
                    weights = [math.exp(sum(a * b for a, b in zip(q, other[width + h * size:])) / math.sqrt(size))
                               for other in qkv[:i + 1]]
                    seen += [sum(w * other[2 * width + h * size + k] for w, other in zip(weights, qkv)) / sum(weights)
                             for k in range(size)]
                x = [a + b for a, b in zip(x, linear(f"h.{block}.attn.c_proj", seen))]
                inner = linear(f"h.{block}.mlp.c_fc", norm(f"h.{block}.ln_2", x))
                inner = [0.5 * v * (1 + math.tanh(0.7978845608 * (v + 0.044715 * v ** 3))) for v in inner]
                rows[i] = [a + b for a, b in zip(x, linear(f"h.{block}.mlp.c_proj", inner))]
        last = norm("ln_f", rows[-1])
        return [sum(a * b for a, b in zip(last, row)) for row in rows_of(model["wte.weight"])]

    def test_gives_the_same_scores_from_every_format(self):
        tokens = [3, 1, 4, 1, 5]
        scores = self.same_in_every_format("gpt2", self.model, self.HEADS, *tokens,
                                           gguf=("--names", "gguf", "--architecture", "gpt2"))
        self.assert_close(scores, self.expected(tokens))

    def test_finds_the_prefix_of_a_training_checkpoint(self):
        tokens = [2, 7]
        self.write("model.safetensors", self.model)
        self.ballast("convert", "model.safetensors", "training.pt", "--add-prefix", "transformer.")
        self.assert_close(self.scores("gpt2", "training.pt", self.HEADS, *tokens), self.expected(tokens))


if __name__ == "__main__":
    unittest.main()
