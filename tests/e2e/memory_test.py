"""Converting takes bounded memory, whatever the model's size: less than 96 MiB beside the mapped pages of the files."""

import json
import math
import os
import shutil
import time
import unittest
from random import Random

from support import *

MIB = 1 << 20
LIMIT = 96 * MIB
LLAMA_3 = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"
LLAMA = VECTORS / "hf2gguf" / "llama" / "Tiny-Llama-1.1B-Chat-v1.0"


def write_hole(path, dtype, shapes):
    """Writes tensors to a file that takes no room on the disk, because its data are a hole."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape) * DTYPE_BITS[dtype] // 8
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    head = with_header(json.dumps(entries))
    path.write_bytes(head)
    os.truncate(path, len(head) + end)


def write_model(path, size):
    write_hole(path, "F32", {f"layers.{i}.weight": [size // 16 // 4] for i in range(16)})


def write_long_tokenizer(path):
    """Makes the tokenizer one of 262 144 tokens and half a million merges, such as Gemma's, and returns how many tokens it has."""
    tokenizer = json.loads(path.read_text())
    words, random = tokenizer["model"]["vocab"], Random(1)
    free = max(words.values()) + 1
    for word in ("".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(6, 12))) for _ in range(300_000)):
        if free < 262_144 and word not in words:
            words[word], free = free, free + 1
    for token in tokenizer["added_tokens"]:
        token["id"], free = free, free + 1
    some = list(words)
    tokenizer["model"]["merges"] = [random.choices(some, k=2) for _ in range(514_906)]
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, indent=2))
    return free


def write_folder(folder, blocks, source=LLAMA, has_long_tokenizer=False):
    """Writes a llama with the sizes of one of a billion parameters, but a small vocabulary, in two shards."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    words = write_long_tokenizer(folder / "tokenizer.json") if has_long_tokenizer else config["vocab_size"]
    hidden = 256 if has_long_tokenizer else 2048
    wide, keys = 4 * hidden, hidden // 4
    config |= {"hidden_size": hidden, "intermediate_size": wide, "num_attention_heads": 32, "num_key_value_heads": 8,
               "head_dim": hidden // 32, "num_hidden_layers": blocks, "vocab_size": words}
    (folder / "config.json").write_text(json.dumps(config))
    parts = {"self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [keys, hidden], "self_attn.v_proj": [keys, hidden],
             "self_attn.o_proj": [hidden, hidden], "mlp.gate_proj": [wide, hidden], "mlp.up_proj": [wide, hidden],
             "mlp.down_proj": [hidden, wide], "input_layernorm": [hidden], "post_attention_layernorm": [hidden]}
    shards = {"model-00001-of-00002.safetensors": {"model.embed_tokens.weight": [words, hidden],
                                                   "lm_head.weight": [words, hidden], "model.norm.weight": [hidden]},
              "model-00002-of-00002.safetensors": {f"model.layers.{i}.{part}.weight": shape
                                                   for i in range(blocks) for part, shape in parts.items()}}
    for name, shapes in shards.items():
        write_hole(folder / name, "BF16", shapes)
    places = {tensor: name for name, shapes in shards.items() for tensor in shapes}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def peak_anonymous(*arguments, cwd):
    """Runs the command and returns the most memory in bytes that it had for itself."""
    process = subprocess.Popen([COMMAND, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=environment())
    peak = samples = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"RssAnon:\s+(\d+) kB", status)
        if found:
            peak, samples = max(peak, int(found.group(1)) * 1024), samples + 1
        time.sleep(0.001)
    errors = process.communicate()[1].decode()
    return process.returncode, peak, samples, errors


class Memory(TestCase):
    def setUp(self):
        super().setUp()
        if not pathlib.Path("/proc/self/status").exists():
            self.skipTest("there is no /proc to watch a process by")
        if os.environ.get("BALLAST_SANITIZE"):
            self.skipTest("sanitizers keep memory of their own")

    def check(self, *options, output="out.safetensors"):
        for size in (48 * MIB, 16 * 48 * MIB):
            write_model(self.folder / "in.safetensors", size)
            code, peak, samples, errors = peak_anonymous("convert", "in.safetensors", output, "--force", "--no-sync",
                                                         *options, cwd=self.folder)
            self.assertEqual(code, OK, errors)
            self.assertGreater(samples, 0)
            self.assertLess(peak, LIMIT, f"{size // MIB} MiB, {options}")

    def test_is_bounded_for_a_plain_copy(self):
        self.check()

    def test_is_bounded_for_a_cast(self):
        self.check("--dtype", "BF16")

    def test_is_bounded_for_compression(self):
        self.check("--compress", "--verify")

    def test_is_bounded_for_shards(self):
        self.check("--max-shard-size", "40MB")

    def test_is_bounded_from_and_to_pytorch(self):
        self.check(output="out.pt")
        code, peak, _, errors = peak_anonymous("convert", "out.pt", "back.safetensors", "--no-sync", cwd=self.folder)
        self.assertEqual(code, OK, errors)
        self.assertLess(peak, LIMIT)

    def test_is_bounded_for_a_folder_made_a_quantized_gguf(self):
        for blocks in (1, 8):  # 0.12 and 0.97 GB
            write_folder(self.folder / "model", blocks)
            self.check_folder("--type", "Q4_K_M")

    def test_is_bounded_for_a_folder_with_a_long_tokenizer(self):
        write_folder(self.folder / "model", 1, LLAMA_3, has_long_tokenizer=True)
        self.assertGreater((self.folder / "model/tokenizer.json").stat().st_size, 33_000_000)
        self.check_folder("--type", "BF16")

    def check_folder(self, *options):
        code, peak, samples, errors = peak_anonymous("convert", "model", "out.gguf", *options, "--force", "--no-sync",
                                                     cwd=self.folder)
        self.assertEqual(code, OK, errors)
        self.assertGreater(samples, 0)
        self.assertLess(peak, LIMIT, options)


if __name__ == "__main__":
    unittest.main()
