"""The weights of a model that are kept as a recipe: weights.json has a seed, and of each tensor its shape, scale and offset.

Every number is a sum of uniform ones of Python's Mersenne Twister, which is exact in a double, cut to BF16: the bytes are the same
everywhere, and weights.json has their digest.
"""

import array
import hashlib
import json
import math
import random

from support import safetensors


def write_weights(folder):
    """Writes folder/model.safetensors as folder/weights.json describes it."""
    recipe = json.loads((folder / "weights.json").read_text())
    tensors = {name: ("BF16", shape, truncated(numbers(f"{recipe['seed']}:{name}", shape, scale, offset)))
               for name, (shape, scale, offset) in sorted(recipe["tensors"].items())}
    content = safetensors(tensors, {"format": "pt"})
    digest = hashlib.sha256(content).hexdigest()
    if digest != recipe["sha256"]:
        raise RuntimeError(f"the weights of {folder} have the digest {digest}, not {recipe['sha256']}")
    (folder / "model.safetensors").write_bytes(content)


def numbers(seed, shape, scale, offset):
    draw = random.Random(seed).random
    drawn = array.array("f", [offset + scale * (draw() + draw() + draw() - 1.5) for _ in range(math.prod(shape))])
    if len(shape) > 1:
        add_structure(drawn, shape[-1], scale if shape[-2] > 2 else None)
    return drawn


def add_structure(matrix, columns, constant):
    """As in real weights: two columns are greater than the others, the first row is zero, the second one may be constant."""
    for row in range(0, len(matrix), columns):
        matrix[row + 3] *= 8.0
        matrix[row + columns // 2] *= -4.0
    matrix[:columns] = array.array("f", [0.0] * columns)
    if constant is not None:
        matrix[columns:2 * columns] = array.array("f", [constant * 0.5] * columns)


def truncated(values):
    """The upper half of each number."""
    raw, halves = values.tobytes(), bytearray(2 * len(values))
    halves[0::2], halves[1::2] = raw[2::4], raw[3::4]
    return bytes(halves)
