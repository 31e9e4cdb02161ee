#!/usr/bin/env python3
"""Writes tour/ into the current folder: the checkpoints that docs/tour.md asks its questions about.

    base/             a small Llama in BF16, with its configuration and a tokenizer
    chat/, code/      two fine-tunes of it, in F32; chat/ stores its head twice
    chat-lora/, code-lora/   two LoRAs for it
    moe/              a Mixtral with eight experts, in two shards
    partial/          the same, of which the second shard never arrived
    spike.safetensors base/ after a training step that went wrong
    stranger.pt       a pickle that runs a command if it is loaded
    last.ckpt         what a trainer saves: the model, and twice as much of its optimizer

The same bytes every time, as those of make_tiny.py. Nothing but Python is needed.
"""

import array
import collections
import io
import json
import pathlib
import random
import shutil
import statistics
import struct
import sys

from make_tiny_pt import FloatStorage, Pickler, Storage, Tensor, write_zip

WIDTH, VOCABULARY, LAYERS, HEADS, KEY_HEADS = 256, 512, 8, 8, 2
MOE_WIDTH, MOE_HIDDEN, MOE_LAYERS, EXPERTS = 64, 128, 4, 8
SPREAD = 0.02

# The upper halves of floats, at equal steps of a normal distribution: a random index is a random weight.
NORMAL = [struct.unpack("<I", struct.pack("<f", SPREAD * statistics.NormalDist().inv_cdf((i + 0.5) / 4096)))[0] >> 16
          for i in range(4096)]
ONE = 0x3F80


def values(generator, count):
    """The upper halves of `count` weights."""
    picks = array.array("H", generator.randbytes(2 * count))
    return array.array("H", [NORMAL[pick & 4095] for pick in picks])


def layer_shapes():
    keys = WIDTH // HEADS * KEY_HEADS
    return {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (keys, WIDTH), "self_attn.v_proj": (keys, WIDTH),
            "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (WIDTH, WIDTH), "mlp.up_proj": (WIDTH, WIDTH),
            "mlp.down_proj": (WIDTH, WIDTH), "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}


def moe_layer_shapes():
    shapes = {f"self_attn.{part}_proj": (MOE_WIDTH, MOE_WIDTH) for part in "qkvo"}
    shapes["block_sparse_moe.gate"] = (EXPERTS, MOE_WIDTH)
    for expert in range(EXPERTS):
        shapes[f"block_sparse_moe.experts.{expert}.w1"] = (MOE_HIDDEN, MOE_WIDTH)
        shapes[f"block_sparse_moe.experts.{expert}.w2"] = (MOE_WIDTH, MOE_HIDDEN)
        shapes[f"block_sparse_moe.experts.{expert}.w3"] = (MOE_HIDDEN, MOE_WIDTH)
    return shapes | {"input_layernorm": (MOE_WIDTH,), "post_attention_layernorm": (MOE_WIDTH,)}


def model(seed, shapes, layers, width, head):
    """{name: (shape, upper halves)} of a decoder whose layers have these shapes."""
    generator, tensors = random.Random(seed), {}

    def add(name, *shape):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        tensors[f"{name}.weight"] = (shape, values(generator, count) if len(shape) == 2 else array.array("H", [ONE] * count))

    add("model.embed_tokens", VOCABULARY, width)
    for layer in range(layers):
        for name, shape in shapes.items():
            add(f"model.layers.{layer}.{name}", *shape)
    add("model.norm", width)
    if head:
        add("lm_head", VOCABULARY, width)
    return tensors


def bf16(tensors):
    return {name: ("BF16", shape, halves.tobytes()) for name, (shape, halves) in tensors.items()}


def fine_tuned(tensors, seed, amount):
    """The same in F32, each matrix changed in its last bits: `amount` says how many of the 23, by name and layer."""
    generator, changed = random.Random(seed), {}
    for name, (shape, halves) in tensors.items():
        floats = array.array("I", [half << 16 for half in halves]).tobytes()
        bits = amount(name) if len(shape) == 2 else 0
        mask = struct.pack("<I", (1 << bits) - 1) * (len(floats) // 4)
        noise = int.from_bytes(generator.randbytes(len(floats)), "little") & int.from_bytes(mask, "little")
        changed[name] = ("F32", shape, (int.from_bytes(floats, "little") ^ noise).to_bytes(len(floats), "little"))
    return changed


def layer_of(name):
    parts = name.split(".")
    return int(parts[2]) if parts[1] == "layers" else 0


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, []
    end = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(raw)]}
        data.append(raw)
        end += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": WIDTH,
         "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
         "vocab_size": VOCABULARY, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "tie_word_embeddings": True}
MIXTRAL = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": MOE_WIDTH,
           "intermediate_size": MOE_HIDDEN, "num_hidden_layers": MOE_LAYERS, "num_attention_heads": 4,
           "num_key_value_heads": 4, "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "vocab_size": VOCABULARY,
           "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "tie_word_embeddings": False,
           "torch_dtype": "bfloat16"}


def write_model_folder(folder, config, dtype, tensors):
    folder.mkdir()
    write_json(folder / "config.json", config | {"torch_dtype": dtype})
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": {**{chr(33 + i): i for i in range(94)}, "th": 94}, "merges": ["t h"]}})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer"})
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    if tensors is not None:
        (folder / "model.safetensors").write_bytes(safetensors(tensors))


def write_fine_tunes(folder, base):
    """chat/ changed attention, more so in later layers; code/ changed the last layers of the MLP as well."""
    chat = fine_tuned(base, 2, lambda name: 12 + layer_of(name) if "attn" in name else 8)
    chat["lm_head.weight"] = chat["model.embed_tokens.weight"]
    write_model_folder(folder / "chat", LLAMA, "float32", chat)
    code = fine_tuned(base, 2, lambda name: 12 + layer_of(name) if "attn" in name else 8)
    extra = fine_tuned(base, 3, lambda name: 15 + layer_of(name))
    code.update({name: tensor for name, tensor in extra.items() if "mlp" in name and layer_of(name) >= LAYERS // 2})
    write_model_folder(folder / "code", LLAMA, "float32", code)


def write_lora(folder, seed, rank, modules):
    generator, tensors = random.Random(seed), {}
    for layer in range(LAYERS):
        for module in modules:
            rows, columns = layer_shapes()[module]
            prefix = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{prefix}.lora_A.weight"] = ((rank, columns), values(generator, rank * columns))
            tensors[f"{prefix}.lora_B.weight"] = ((rows, rank), values(generator, rows * rank))
    folder.mkdir()
    write_json(folder / "adapter_config.json", {
        "base_model_name_or_path": "tour/base", "bias": "none", "fan_in_fan_out": False, "lora_alpha": 16, "peft_type": "LORA",
        "r": rank, "target_modules": sorted({module.split(".")[1] for module in modules}), "task_type": "CAUSAL_LM"})
    (folder / "adapter_model.safetensors").write_bytes(safetensors(bf16(tensors)))


def write_moe(folder):
    tensors = bf16(model(4, moe_layer_shapes(), MOE_LAYERS, MOE_WIDTH, head=True))
    write_model_folder(folder / "moe", MIXTRAL, "bfloat16", None)
    index = {"metadata": {"total_size": sum(len(raw) for _, _, raw in tensors.values())}, "weight_map": {}}
    halves = collections.defaultdict(dict)
    for name, tensor in tensors.items():
        part = 1 if layer_of(name) < MOE_LAYERS // 2 and name not in ("model.norm.weight", "lm_head.weight") else 2
        index["weight_map"][name] = file = f"model-0000{part}-of-00002.safetensors"
        halves[file][name] = tensor
    write_json(folder / "moe/model.safetensors.index.json", index)
    for file, part in halves.items():
        (folder / "moe" / file).write_bytes(safetensors(part))
    shutil.copytree(folder / "moe", folder / "partial")
    (folder / "partial/model-00002-of-00002.safetensors").unlink()


def write_spike(folder, base):
    broken = bf16(base)
    for layer, part in (5, "self_attn.o_proj"), (5, "mlp.down_proj"), (6, "mlp.gate_proj"):
        name = f"model.layers.{layer}.{part}.weight"
        dtype, shape, raw = broken[name]
        broken[name] = (dtype, shape, raw[:4096] + struct.pack("<H", 0x7FC0) * (32 * layer) + raw[4096 + 64 * layer:])
    (folder / "spike.safetensors").write_bytes(safetensors(broken))


def torch_zip(path, value):
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(value)
    records = [("data.pkl", file.getvalue()), ("byteorder", "little")]
    records += [(f"data/{key}", storage.data) for key, storage in enumerate(pickler.storages)]
    write_zip(path, records + [("version", "3\n")])


def write_training_checkpoint(path):
    generator = random.Random(6)

    def tensor(*shape):
        return Tensor(Storage(FloatStorage, "f", [generator.uniform(-0.1, 0.1) for _ in range(shape[0] * shape[1])]), shape, (shape[1], 1))

    shapes = {f"module.layers.{layer}.{part}.weight": (32, 32) for layer in range(3) for part in ("attn", "mlp")}
    state = {index: {"step": 1200, "exp_avg": tensor(*shape), "exp_avg_sq": tensor(*shape)} for index, shape in enumerate(shapes.values())}
    groups = [{"lr": 0.0003, "betas": (0.9, 0.95), "params": list(state)}]
    torch_zip(path, {"model": collections.OrderedDict((name, tensor(*shape)) for name, shape in shapes.items()),
                     "optimizer": {"state": state, "param_groups": groups}, "iteration": 1200})


class Stranger:
    """Pickles as a call of os.system. Nothing here calls it."""

    def __reduce__(self):
        import os

        return (os.system, ("echo this ran on your machine",))


def main():
    folder = pathlib.Path("tour")
    if folder.exists():
        sys.exit("tour/ is there already")
    folder.mkdir()
    base = model(1, layer_shapes(), LAYERS, WIDTH, head=False)
    write_model_folder(folder / "base", LLAMA, "bfloat16", bf16(base))
    write_fine_tunes(folder, base)
    write_lora(folder / "chat-lora", 7, 4, ["self_attn.q_proj", "self_attn.v_proj"])
    write_lora(folder / "code-lora", 8, 8, ["self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"])
    write_moe(folder)
    write_spike(folder, base)
    torch_zip(folder / "stranger.pt", {"weight": Tensor(Storage(FloatStorage, "f", [0.0] * 4), (2, 2), (2, 1)), "extra": Stranger()})
    write_training_checkpoint(folder / "last.ckpt")
    print("wrote tour/")


if __name__ == "__main__":
    main()
