"""GGUF in and out: blocks, metadata, split files. This test has its own reader to read the files back."""

import json
import random
import struct
import unittest

from support import *

F32, F16, Q5_0, Q8_0, Q4_K = 0, 1, 6, 8, 12
WIDTHS = {0: ("<B", 1), 1: ("<b", 1), 2: ("<H", 2), 3: ("<h", 2), 4: ("<I", 4), 5: ("<i", 4), 6: ("<f", 4), 7: ("<?", 1),
          10: ("<Q", 8), 11: ("<q", 8), 12: ("<d", 8)}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(fields, tensors):
    """fields: the bytes of each; tensors: (name, shape, type, data)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)) + b"".join(fields)
    offset = 0
    for name, shape, kind, data in tensors:
        head += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        head += struct.pack("<IQ", kind, offset)
        offset += len(data) + -len(data) % 32
    out = head + b"\0" * (-len(head) % 32)
    for _, _, _, data in tensors:
        out += data + b"\0" * (-len(data) % 32)
    return out


class Reader:
    """The content of a GGUF file of version 3, read in the order of the format."""

    def __init__(self, data):
        self.data, self.at = data, 0
        assert self.take(4) == b"GGUF"
        version, tensors, fields = self.unpack("<IQQ")
        assert version == 3
        self.fields, self.tensors, alignment = {}, {}, 32
        for _ in range(fields):
            key, kind = self.string(), self.unpack("<I")[0]
            self.fields[key] = self.value(kind)
        alignment = self.fields.get("general.alignment", 32)
        infos = []
        for _ in range(tensors):
            name, rank = self.string(), self.unpack("<I")[0]
            shape = list(reversed(self.unpack(f"<{rank}Q")))
            infos.append((name, shape, *self.unpack("<IQ")))
        begin = self.at + -self.at % alignment
        ends = [info[3] for info in infos[1:]] + [len(data) - begin]
        for (name, shape, kind, offset), end in zip(infos, ends):
            assert offset % alignment == 0
            self.tensors[name] = (shape, kind, data[begin + offset:begin + end])

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def string(self):
        return self.take(self.unpack("<Q")[0]).decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element, count = self.unpack("<IQ")
            return [self.value(element) for _ in range(count)]
        return self.unpack(WIDTHS[kind][0])[0]


class Gguf(TestCase):
    def setUp(self):
        super().setUp()
        generator = random.Random(7)
        values = lambda count: [generator.uniform(-1, 1) for _ in range(count)]
        self.write("in.safetensors", {"blk.0.weight": ("F32", [4, 256], values(1024)),
                                      "blk.0.odd.weight": ("F32", [2, 96], values(192)),
                                      "blk.0.odder.weight": ("F32", [2, 5], values(10)),
                                      "blk.0.norm.weight": ("F32", [256], values(256))}, {"general.architecture": "test"})

    def read(self, name):
        return Reader((self.folder / name).read_bytes())

    def test_encodes_tensors_of_whole_blocks_and_falls_back_for_others(self):
        result = self.ballast("convert", "in.safetensors", "out.gguf", "--dtype", "Q4_K")
        self.assertIn('"blk.0.odd.weight" has rows of 96, no whole blocks of Q4_K: written as Q5_0', result.err)
        self.assertIn('"blk.0.odder.weight" has rows of 5, no whole blocks of Q4_K: written as F16', result.err)
        file = self.read("out.gguf")
        self.assertEqual({name: (shape, kind) for name, (shape, kind, _) in file.tensors.items()}, {
            "blk.0.weight": ([4, 256], Q4_K), "blk.0.odd.weight": ([2, 96], Q5_0), "blk.0.odder.weight": ([2, 5], F16),
            "blk.0.norm.weight": ([256], F32)})
        self.assertEqual(file.fields, {"general.architecture": "test", "general.quantization_version": 2,
                                       "general.file_type": 15})

    def test_decodes_when_asked_and_never_by_itself(self):
        self.ballast("convert", "in.safetensors", "q.gguf", "--dtype", "Q8_0", "-q")
        self.refused("convert", "q.gguf", "out.safetensors", code=UNSUPPORTED, says="Q8_0", hint="--raw")
        self.ballast("convert", "q.gguf", "out.safetensors", "--dtype", "F32")
        whole = self.ballast("hash", "out.safetensors", "--json").json()["tensors"]
        decoded = self.ballast("hash", "q.gguf", "--decoded", "--json").json()["tensors"]
        self.assertEqual(whole["blk.0.weight"], decoded["blk.0.weight"])
        self.assertNotEqual(decoded["blk.0.weight"],
                            self.ballast("hash", "q.gguf", "--json").json()["tensors"]["blk.0.weight"])

    def test_raw_blocks_become_the_same_file_again(self):
        self.ballast("convert", "in.safetensors", "q.gguf", "--dtype", "Q4_K", "--meta", "tokenizer.ggml.model=llama",
                     "--meta", "test.size:u64=5", "-q")
        self.ballast("convert", "q.gguf", "raw.safetensors", "--raw")
        tensors, metadata = read_safetensors(self.folder / "raw.safetensors")
        self.assertEqual((tensors["blk.0.weight"][0], tensors["blk.0.weight"][1]), ("U8", [4, 144]))
        self.assertIn("ballast.gguf", metadata)
        self.ballast("convert", "raw.safetensors", "back.gguf")
        self.assertEqual((self.folder / "back.gguf").read_bytes(), (self.folder / "q.gguf").read_bytes())
        self.assertEqual(self.ballast("diff", "q.gguf", "raw.safetensors").out, "equal: 4 tensors\n")

    def test_metadata_are_typed(self):
        self.ballast("convert", "in.safetensors", "m.gguf", "--meta", "a.count=7", "--meta", "a.rate=0.5", "--meta", "a.on=true",
                     "--meta", "a.text=hello", "--meta", "a.wide:u64=7", "-q")
        fields = self.read("m.gguf").fields
        self.assertEqual({key: fields[key] for key in fields if key.startswith("a.")},
                         {"a.count": 7, "a.rate": 0.5, "a.on": True, "a.text": "hello", "a.wide": 7})
        self.assertEqual(self.ballast("meta", "get", "m.gguf", "a.rate").out, "0.5\n")
        self.assertEqual(self.ballast("meta", "get", "m.gguf", "--json").json()["metadata"]["a.count"], 7)
        self.ballast("meta", "set", "m.gguf", "a.count=8", "a.new=x")
        self.ballast("meta", "unset", "m.gguf", "a.on")
        fields = self.read("m.gguf").fields
        self.assertEqual((fields["a.count"], fields["a.new"], "a.on" in fields), (8, "x", False))
        self.assertEqual(self.ballast("verify", "m.gguf").code, OK)
        self.refused("convert", "m.gguf", "x.gguf", "--meta", "a.count=many", code=USAGE, says="a.count")
        self.ballast("meta", "set", "m.gguf", "a.count:u23=2")  # a word that is not a type belongs to the key
        self.assertEqual(self.ballast("meta", "get", "m.gguf", "a.count:u23").out.strip(), "2")
        self.ballast("convert", "m.gguf", "less.gguf", "--remove-meta", "a.text", "-q")
        self.assertNotIn("a.text", self.read("less.gguf").fields)

    def test_a_program_gets_all_of_an_array(self):
        items = struct.pack("<3000I", *range(3000))
        self.write("a.gguf", gguf([string("a.many") + struct.pack("<IIQ", 9, 4, 3000) + items], []))
        self.assertEqual(json.loads(self.ballast("meta", "get", "a.gguf", "a.many").out), list(range(3000)))
        of_one = self.ballast("meta", "get", "a.gguf", "a.many", "--json").json()["metadata"]["a.many"]
        self.assertEqual((of_one["count"], of_one["items"]), (3000, list(range(3000))))
        of_all = self.ballast("meta", "get", "a.gguf", "--json").json()["metadata"]["a.many"]
        self.assertEqual((of_all["count"], of_all["items"]), (3000, list(range(8))))

    def test_a_whole_model_is_not_called_a_part(self):
        self.refused("convert", "in.safetensors", "m-00001-of-00003.gguf", code=USAGE, says="part 1 of 3", hint="--max-shard-size")

    def test_splits_and_joins(self):
        self.ballast("convert", "in.safetensors", "whole.gguf", "-q")
        self.ballast("convert", "whole.gguf", "part.gguf", "--max-shard-size", "2kB", "-q")
        parts = sorted(path.name for path in self.folder.glob("part-*.gguf"))
        self.assertGreater(len(parts), 1)
        self.assertEqual(self.read(parts[0]).fields["split.count"], len(parts))
        for part in parts:
            self.assertEqual(self.ballast("diff", part, "whole.gguf").out, "equal: 4 tensors\n")
        self.assertLess(len(self.ballast("ls", parts[0], "--single", "--json").json()["tensors"]), 4)
        self.ballast("convert", parts[-1], "joined.gguf", "-q")
        self.assertEqual((self.folder / "joined.gguf").read_bytes(), (self.folder / "whole.gguf").read_bytes())
        (self.folder / parts[1]).unlink()
        self.refused("ls", parts[0], code=IO, says=parts[1])

    def test_info_shows_the_model(self):
        tokens = struct.pack("<IQ", 8, 3) + string("a") + string("b") + string("c")
        fields = [string("general.architecture") + struct.pack("<I", 8) + string("llama"),
                  string("llama.context_length") + struct.pack("<II", 4, 4096),
                  string("tokenizer.ggml.tokens") + struct.pack("<I", 9) + tokens,
                  string("tokenizer.chat_template") + struct.pack("<I", 8) + string("{{ \x1b[31m }}")]
        (self.folder / "m.gguf").write_bytes(gguf(fields, [("w", [2], F32, struct.pack("<2f", 1, 2))]))
        text = self.ballast("info", "m.gguf").out
        self.assertIn("llama, context 4096, tokens 3, a chat template", text)
        self.assertNotIn("\x1b", text)
        self.assertEqual(self.ballast("cat", "m.gguf", "w").out, "[1. 2.]\n")

    def test_refuses_what_gguf_cannot_store(self):
        self.write("long.safetensors", {"x" * 64: ("F32", [1], [1])})
        self.refused("convert", "long.safetensors", "out.gguf", code=UNSUPPORTED, says="x" * 64)
        self.refused("convert", "in.safetensors", "out.gguf", "--dtype", "IQ2_XXS", code=UNSUPPORTED, says="IQ2_XXS")
        self.assertEqual([path.name for path in self.folder.glob("*.gguf")], [])


if __name__ == "__main__":
    unittest.main()
