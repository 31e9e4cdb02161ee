#!/usr/bin/env python3
"""Writes tiny-lora/, a LoRA for tiny.safetensors as PEFT would save it, that the documentation and the tests look at.

The same bytes every time, as make_tiny.py.
"""

import json
import pathlib
import random

from make_tiny import HIDDEN, LAYERS, WIDTH, f32, safetensors, weights

RANK = 4
CONFIG = {
    "base_model_name_or_path": "examples/tiny.safetensors",
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "lora_alpha": 8,
    "peft_type": "LORA",
    "r": RANK,
    "target_modules": ["attn.qkv", "mlp.up"],
    "task_type": None,
    "use_rslora": False,
}


def lora():
    generator = random.Random(2025)
    tensors = {}
    for layer in range(LAYERS):
        for module, rows in ("attn.qkv", 3 * WIDTH), ("mlp.up", HIDDEN):
            prefix = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{prefix}.lora_A.weight"] = ("F32", (RANK, WIDTH), f32(weights(generator, RANK, WIDTH)))
            tensors[f"{prefix}.lora_B.weight"] = ("F32", (rows, RANK), f32(weights(generator, rows, RANK)))
    return tensors


if __name__ == "__main__":
    folder = pathlib.Path(__file__).with_name("tiny-lora")
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG, indent=2, sort_keys=True))
    (folder / "adapter_model.safetensors").write_bytes(safetensors(lora(), {"format": "pt"}))
    print(f"wrote {folder.name}/")
