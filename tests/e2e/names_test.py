"""convert --names: GGUF's names into Hugging Face's and back, with a writer and a reader of GGUF that are not ours."""

import random
import struct
import unittest

from support import *

F32, F16 = 0, 1
U32_VALUE, STRING_VALUE = 4, 8
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
ELEMENT = {F32: ("f", 4), F16: ("e", 2)}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def product(shape):
    count = 1
    for dimension in shape:
        count *= dimension
    return count


def gguf(fields, tensors):
    """The bytes of a GGUF 3 with {key: number or text} and {name: (shape, numbers)}, all F32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    for key, value in fields.items():
        is_text = isinstance(value, str)
        head += text(key) + struct.pack("<I", STRING_VALUE if is_text else U32_VALUE)
        head += text(value) if is_text else struct.pack("<I", value)
    data = b""
    for name, (shape, values) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        head += struct.pack("<IQ", F32, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
    return head + b"\0" * (-len(head) % 32) + data


class GgufReader:
    """Reads metadata that are numbers or text, and tensors that are F32 or F16: {name: (shape, numbers)}."""

    def __init__(self, path):
        self.raw, self.at = pathlib.Path(path).read_bytes(), 4
        assert self.raw[:4] == b"GGUF"
        version, tensor_count, field_count = self.take("IQQ")
        assert version == 3
        self.fields = dict(self.field() for _ in range(field_count))
        infos = [self.info() for _ in range(tensor_count)]
        start = self.at + -self.at % 32
        self.tensors = {name: (shape, self.values(start + offset, kind, product(shape)))
                        for name, shape, kind, offset in infos}

    def take(self, form):
        got = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return got

    def text(self):
        (size,) = self.take("Q")
        self.at += size
        return self.raw[self.at - size:self.at].decode()

    def field(self):
        key = self.text()
        (kind,) = self.take("I")
        if kind == STRING_VALUE:
            return key, self.text()
        self.at += WIDTHS[kind]
        return key, int.from_bytes(self.raw[self.at - WIDTHS[kind]:self.at], "little")

    def info(self):
        name = self.text()
        (rank,) = self.take("I")
        shape = list(reversed(self.take(f"{rank}Q")))
        return name, shape, *self.take("IQ")

    def values(self, offset, kind, count):
        letter, size = ELEMENT[kind]
        return list(struct.unpack(f"<{count}{letter}", self.raw[offset:offset + count * size]))


class Names(TestCase):
    HEADS, HEADS_KV, WIDTH = 4, 2, 32

    def numbers(self, *shape):
        """Returns multiples of 1/64, which survive F16 and a sum with 1."""
        source = random.Random(repr(shape))
        return list(shape), [source.randrange(-63, 64) / 64 for _ in range(product(shape))]

    def llama(self):
        width, kv = self.WIDTH, self.WIDTH // 2
        return {
            "token_embd.weight": self.numbers(10, width),
            "blk.0.attn_norm.weight": self.numbers(width),
            "blk.0.attn_q.weight": self.numbers(width, width),
            "blk.0.attn_k.weight": self.numbers(kv, width),
            "blk.0.attn_v.weight": self.numbers(kv, width),
            "blk.0.attn_output.weight": self.numbers(width, width),
            "blk.0.ffn_norm.weight": self.numbers(width),
            "blk.0.ffn_gate.weight": self.numbers(3 * width, width),
            "blk.0.ffn_up.weight": self.numbers(3 * width, width),
            "blk.0.ffn_down.weight": self.numbers(width, 3 * width),
            "output_norm.weight": self.numbers(width),
            "rope_freqs.weight": self.numbers(4),
        }

    LLAMA_FIELDS = {"general.architecture": "llama", "llama.attention.head_count": HEADS,
                    "llama.attention.head_count_kv": HEADS_KV}

    def read(self, name):
        tensors, _ = read_safetensors(self.folder / name)
        return {name: (shape, list(struct.unpack(f"<{product(shape)}f", raw))) for name, (_, shape, raw) in tensors.items()}

    def write_gguf(self, name, fields, tensors):
        return self.write(name, gguf(fields, tensors))

    def rows(self, tensor):
        (count, width), values = tensor
        return [values[i * width:(i + 1) * width] for i in range(count)]

    def halves(self, tensor, heads):
        """Turns GGUF's order of rows, neighbours, into Hugging Face's, halves, head by head."""
        rows = self.rows(tensor)
        size = len(rows) // heads
        head = [rows[h * size:(h + 1) * size] for h in range(heads)]
        return [row for one in head for row in one[0::2] + one[1::2]]

    def test_llama_to_hugging_face(self):
        tensors = self.llama()
        self.write_gguf("in.gguf", self.LLAMA_FIELDS, tensors)
        result = self.ballast("convert", "in.gguf", "out.safetensors", "--names", "hf", "--dtype", "F32")
        self.assertIn('1 of 12 names of llama have no counterpart in Hugging Face and stay, such as "rope_freqs.weight"',
                      result.err)
        out = self.read("out.safetensors")
        layer = "model.layers.0."
        self.assertEqual(sorted(out), sorted([
            "model.embed_tokens.weight", "model.norm.weight", "rope_freqs.weight", layer + "input_layernorm.weight",
            layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight", layer + "self_attn.v_proj.weight",
            layer + "self_attn.o_proj.weight", layer + "post_attention_layernorm.weight", layer + "mlp.gate_proj.weight",
            layer + "mlp.up_proj.weight", layer + "mlp.down_proj.weight"]))
        self.assertEqual(self.rows(out[layer + "self_attn.q_proj.weight"]),
                         self.halves(tensors["blk.0.attn_q.weight"], self.HEADS))
        self.assertEqual(self.rows(out[layer + "self_attn.k_proj.weight"]),
                         self.halves(tensors["blk.0.attn_k.weight"], self.HEADS_KV))
        self.assertEqual(out[layer + "self_attn.v_proj.weight"], tensors["blk.0.attn_v.weight"])

    def test_only_what_a_rule_casts_changes_its_dtype(self):
        tensors = self.llama()
        self.write_gguf("in.gguf", self.LLAMA_FIELDS, tensors)
        self.ballast("convert", "in.gguf", "half.gguf", "--dtype", "BF16")
        self.ballast("convert", "half.gguf", "out.safetensors", "--names", "hf", "--dtype", "*norm.weight=F16")
        listed = {each["name"]: each["dtype"] for each in self.ballast("ls", "--json", "out.safetensors").json()["tensors"]}
        self.assertEqual({name: dtype for name, dtype in listed.items() if "norm" not in name and dtype != "BF16"}, {})
        self.assertEqual({dtype for name, dtype in listed.items() if "norm" in name}, {"F16"})

    def test_llama_and_back(self):
        tensors = self.llama()
        self.write_gguf("in.gguf", self.LLAMA_FIELDS, tensors)
        self.ballast("convert", "in.gguf", "hf.safetensors", "--names", "hf", "--dtype", "F32")
        self.ballast("convert", "hf.safetensors", "back.gguf", "--names", "gguf", "--architecture", "llama")
        back = GgufReader(self.folder / "back.gguf")
        self.assertEqual(back.tensors, tensors)
        self.assertEqual({key: back.fields[key] for key in self.LLAMA_FIELDS}, self.LLAMA_FIELDS)

    def test_head_counts_can_be_given(self):
        q, k = self.numbers(32, 32), self.numbers(16, 32)
        self.write("hf.safetensors", {"model.layers.0.self_attn.q_proj.weight": ("F32", *q),
                                      "model.layers.0.self_attn.k_proj.weight": ("F32", *k)})
        command = ["convert", "hf.safetensors", "out.gguf", "--names", "gguf", "--architecture", "llama"]
        self.refused(*command, code=USAGE, says="nothing says llama.attention.head_count", hint="--heads 32")
        self.refused(*command, "--heads", 4, code=NO, says="another of that block has", hint="--kv-heads")
        self.ballast(*command, "--heads", 4, "--kv-heads", 2)
        out = GgufReader(self.folder / "out.gguf")
        self.assertEqual(self.halves(out.tensors["blk.0.attn_q.weight"], 4), self.rows(q))
        self.assertEqual(self.halves(out.tensors["blk.0.attn_k.weight"], 2), self.rows(k))
        self.assertEqual(out.fields["general.architecture"], "llama")
        self.assertEqual(out.fields["llama.attention.head_count"], 4)
        self.assertEqual(out.fields["llama.attention.head_count_kv"], 2)

    def test_quantized_weights_are_decoded(self):
        self.write_gguf("in.gguf", self.LLAMA_FIELDS, self.llama())
        self.ballast("convert", "in.gguf", "q8.gguf", "--dtype", "Q8_0")
        self.ballast("convert", "q8.gguf", "plain.safetensors", "--dtype", "F32")
        self.ballast("convert", "q8.gguf", "hf.safetensors", "--names", "hf", "--dtype", "F32")
        plain, named = self.read("plain.safetensors"), self.read("hf.safetensors")
        self.assertEqual(self.rows(named["model.layers.0.self_attn.q_proj.weight"]),
                         self.halves(plain["blk.0.attn_q.weight"], self.HEADS))

    def test_names_come_before_quantizing(self):
        """gpt2's matrices are transposed first, and then cut into blocks."""
        shape, values = self.numbers(64, 32)
        self.write("hf.safetensors", {"h.0.mlp.c_fc.weight": ("F32", shape, values), "h.0.attn.bias": ("F32", [1], [1])})
        result = self.ballast("convert", "hf.safetensors", "q8.gguf", "--names", "gguf", "--architecture", "gpt2",
                              "--dtype", "Q8_0")
        self.assertIn('left out, since GGUF has no place for them: 1 of 2 tensors, such as "h.0.attn.bias"', result.err)
        self.assertEqual(self.ballast("ls", "q8.gguf", "--json").json()["tensors"][0]["shape"], [32, 64])
        self.ballast("convert", "q8.gguf", "back.safetensors", "--names", "hf", "--dtype", "F32")
        back_shape, back = self.read("back.safetensors")["transformer.h.0.mlp.c_fc.weight"]
        self.assertEqual(back_shape, shape)
        for expected, got in zip(values, back):
            self.assertAlmostEqual(expected, got, delta=1 / 128)
        self.refused("convert", "q8.gguf", "raw.safetensors", "--names", "hf", "--raw", code=UNSUPPORTED,
                     says="may not cut its blocks", hint="decode it first")

    def test_gemma_norms(self):
        shape, values = self.numbers(32)
        self.write("hf.safetensors", {"model.norm.weight": ("F16", shape, values)})
        result = self.ballast("convert", "hf.safetensors", "out.gguf", "--names", "gguf", "--architecture", "gemma2")
        self.assertIn("norms are F32 now, since 1 is added to them", result.err)
        self.assertEqual(GgufReader(self.folder / "out.gguf").tensors,
                         {"output_norm.weight": (shape, [value + 1 for value in values])})
        self.ballast("convert", "out.gguf", "back.safetensors", "--names", "hf", "--dtype", "F16")
        tensors, _ = read_safetensors(self.folder / "back.safetensors")
        self.assertEqual(tensors["model.norm.weight"], ("F16", shape, pack("F16", values)))

    def test_an_unknown_architecture_keeps_its_names(self):
        tensors = {"blk.0.ssm_in.weight": self.numbers(4, 4)}
        self.write_gguf("in.gguf", {"general.architecture": "rwkv6"}, tensors)
        result = self.ballast("convert", "in.gguf", "out.safetensors", "--names", "hf")
        self.assertIn('no names are known for the architecture "rwkv6": all stay as they are', result.err)
        self.assertEqual(self.read("out.safetensors"), tensors)

    def test_what_makes_no_sense_is_refused(self):
        self.write("hf.safetensors", {"model.norm.weight": ("F32", *self.numbers(4))})
        self.refused("convert", "hf.safetensors", "out.gguf", "--names", "gguf", code=USAGE,
                     says="nothing says of which architecture", hint="--architecture llama")
        self.refused("convert", "hf.safetensors", "out.gguf", "--names", "gguf", "--architecture", "lama", code=USAGE,
                     says='"lama"', hint="known are llama, mistral")
        self.assertEqual(self.ballast("convert", "hf.safetensors", "out.gguf", "--names", "onnx", code=USAGE).out, "")
        self.assertEqual(self.names_in_folder(), ["hf.safetensors"])


if __name__ == "__main__":
    unittest.main()
