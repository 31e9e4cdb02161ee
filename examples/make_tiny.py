#!/usr/bin/env python3
"""Writes tiny.safetensors, the toy transformer that the documentation and the tests look at.

The same bytes every time: the weights come from a seeded generator, and the file is laid out as the reference library
would lay it out (dtypes by falling alignment, names ascending, header padded to eight bytes).
"""

import json
import pathlib
import random
import struct

VOCABULARY, WIDTH, HIDDEN, CONTEXT, LAYERS = 32, 16, 32, 24, 2

METADATA = {
    "architecture": "toy transformer",
    "format": "pt",
    # Tied to the embedding, and therefore not stored: this is how safetensors.torch.save_model notes it.
    "lm_head.weight": "model.embed.weight",
}


def f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def bf16(values):
    """The upper half of each float, rounded to nearest even."""
    bits = struct.unpack(f"<{len(values)}I", f32(values))
    return struct.pack(f"<{len(values)}H", *((b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in bits))


def i64(values):
    return struct.pack(f"<{len(values)}q", *values)


def weights(generator, *shape):
    """Roughly normal, with the spread that initialisers give: twelve uniform numbers sum up to a variance of one."""
    count = 1
    for size in shape:
        count *= size
    spread = shape[-1] ** -0.5
    return [spread * (sum(generator.random() for _ in range(12)) - 6) for _ in range(count)]


def toy_transformer():
    generator = random.Random(2024)
    tensors = {}

    def matrix(name, *shape):
        tensors[name] = ("BF16", shape, bf16(weights(generator, *shape)))

    def ones(name):
        tensors[name] = ("F32", (WIDTH,), f32([1.0] * WIDTH))

    matrix("model.embed.weight", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        ones(f"{prefix}.norm.weight")
        matrix(f"{prefix}.attn.qkv.weight", 3 * WIDTH, WIDTH)
        matrix(f"{prefix}.mlp.up.weight", HIDDEN, WIDTH)
        matrix(f"{prefix}.mlp.down.weight", WIDTH, HIDDEN)
    ones("model.norm.weight")
    tensors["model.position_ids"] = ("I64", (1, CONTEXT), i64(list(range(CONTEXT))))
    return tensors


def safetensors(tensors, metadata):
    falling_alignment = ["I64", "F32", "BF16"]
    order = sorted(tensors, key=lambda name: (falling_alignment.index(tensors[name][0]), name))
    header, data = {"__metadata__": metadata}, b""
    for name in order:
        dtype, shape, raw = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


if __name__ == "__main__":
    path = pathlib.Path(__file__).with_name("tiny.safetensors")
    path.write_bytes(safetensors(toy_transformer(), METADATA))
    print(f"wrote {path.name}")
