"""Nothing is left out in silence: whatever is in the source and does not arrive in the target is reported, for every
pair of formats.
"""

import collections
import io
import json
import pickle
import struct
import sys
import types
import unittest
import zipfile

from support import *


class FloatStorage:
    pass


def _rebuild_tensor_v2(*arguments):
    raise AssertionError("nothing is ever called")


class Net:
    pass


FloatStorage.__module__ = "torch"
_rebuild_tensor_v2.__module__ = "torch._utils"
for module, member in (("torch", FloatStorage), ("torch._utils", _rebuild_tensor_v2)):
    sys.modules.setdefault(module, types.ModuleType(module))
    setattr(sys.modules[module], member.__name__, member)


class Storage:
    def __init__(self, key, numel):
        self.id = ("storage", FloatStorage, key, "cpu", numel)


class Tensor:
    """Pickles as a tensor that covers all of a storage."""

    def __init__(self, key, numel=2):
        self.storage, self.numel = Storage(key, numel), numel

    def __reduce__(self):
        return _rebuild_tensor_v2, (self.storage, 0, (self.numel,), (1,), False, collections.OrderedDict())


class TorchPickler(pickle.Pickler):
    def persistent_id(self, thing):
        return thing.id if isinstance(thing, Storage) else None


def pickled(thing):
    out = io.BytesIO()
    TorchPickler(out, protocol=2).dump(thing)
    return out.getvalue()


def torch_zip(thing, storages, members=None):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("m/data.pkl", pickled(thing))
        for key, numbers in storages.items():
            archive.writestr(f"m/data/{key}", struct.pack(f"<{len(numbers)}f", *numbers))
        for name, content in (members or {}).items():
            archive.writestr("m/" + name, content)
    return out.getvalue()


def legacy_stream(thing, storages):
    out = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2) + pickle.dumps({}, protocol=2)
    out += pickled(thing) + pickle.dumps(sorted(storages), protocol=2)
    for key in sorted(storages):
        out += struct.pack(f"<q{len(storages[key])}f", len(storages[key]), *storages[key])
    return out


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def tiny_gguf():
    fields = [string("general.architecture") + struct.pack("<I", 8) + string("test"),
              string("general.name") + struct.pack("<I", 8) + string("Tiny"),
              string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + string("a") + string("b"),
              string("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, 1) + string("a b")]
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields)) + b"".join(fields)
    head += string("w") + struct.pack("<IQIQ", 1, 2, 0, 0)
    return head + b"\0" * (-len(head) % 32) + struct.pack("<2f", 1, 2)


MODULE = {"training": True, "_parameters": {"w": Tensor("0")}, "_buffers": {"inv_freq": Tensor("1"), "mean": Tensor("2")},
          "_modules": {}, "_non_persistent_buffers_set": {"inv_freq"}}


class LeftOut(TestCase):
    def put(self, name, content):
        (self.folder / name).write_bytes(content)

    def notes_of(self, name):
        return [note["text"] for note in self.ballast("info", name, "--json").json()["notes"]]

    def said(self, *args, **more):
        return self.ballast(*args, "--force", **more).err

    def test_storages_that_no_tensor_uses_are_counted_and_named(self):
        storages = {"0": [1, 2], "1": [3, 4, 5], "2": [6]}
        self.put("m.pt", torch_zip({"w": Tensor("0")}, storages))
        info = self.ballast("info", "m.pt", "--json").json()
        self.assertEqual(info["wasted_bytes"], 16)
        self.assertIn('2 storages are used by no tensor and left out, 16 bytes: "1", "2"', self.notes_of("m.pt"))
        self.assertIn("2 storages are used by no tensor", self.said("convert", "m.pt", "m.safetensors"))
        # A stream takes the width of an element from the user of the storage, which is a key of a dict here.
        self.put("s.pt", legacy_stream({"w": Tensor("0"), "d": {(Tensor("1", 3),): 1}}, {"0": [1, 2], "1": [3, 4, 5]}))
        self.assertIn('a storage is used by no tensor and left out, 12 bytes: "1"', self.notes_of("s.pt"))
        self.assertEqual(self.ballast("info", "s.pt", "--json").json()["wasted_bytes"], 12)

    def test_a_file_that_uses_all_of_its_storages_says_nothing(self):
        self.put("m.pt", torch_zip({"w": Tensor("0")}, {"0": [1, 2]}, {"version": "3\n", "byteorder": "little"}))
        self.assertEqual(self.notes_of("m.pt"), [])
        self.assertNotIn("note", self.said("convert", "m.pt", "m.safetensors"))

    def test_buffers_that_are_not_in_a_state_dict_are_named(self):
        net = Net()
        net.__dict__ = MODULE
        self.put("m.pt", torch_zip(net, {"0": [1, 2], "1": [3, 4], "2": [5, 6]}))
        self.assertEqual([t["name"] for t in self.ballast("ls", "m.pt", "--json").json()["tensors"]], ["w", "mean"])
        said = self.said("convert", "m.pt", "m.safetensors")
        self.assertIn('a buffer is not in the state_dict() of its module and left out: "inv_freq"', said)
        self.assertIn("a storage is used by no tensor", said)

    def test_members_that_are_not_tensors_are_named(self):
        self.put("m.pt", torch_zip({"w": Tensor("0")}, {"0": [1, 2]}, {"extra/labels.txt": "cat", "notes.md": "#"}))
        self.assertIn('left out, since they are no tensors: "extra/labels.txt", "notes.md"', self.notes_of("m.pt"))
        script = {"constants.pkl": pickled(()), "code/net.py": "pass"}
        self.put("s.pt", torch_zip({"w": Tensor("0")}, {"0": [1, 2]}, script))
        self.assertEqual(self.notes_of("s.pt"), [])
        self.assertIn("the code of the TorchScript module is left out", self.said("convert", "s.pt", "s.safetensors"))
        with zipfile.ZipFile(self.folder / "all.zip", "w") as archive:
            archive.writestr("policy.pth", torch_zip({"w": Tensor("0")}, {"0": [1, 2]}))
            archive.writestr("system_info.txt", "OS: Linux")
        self.assertIn('left out, since they are no checkpoints: "system_info.txt"', self.notes_of("all.zip"))

    def test_values_are_named_unless_they_are_kept(self):
        self.put("m.pt", torch_zip({"w": Tensor("0"), "epoch": 3, "lr": 0.1}, {"0": [1, 2]}))
        told = '2 values beside the tensors are left out: "epoch", "lr"'
        for target in ("m.safetensors", "m.gguf", "copy.pt"):
            self.assertIn(told, self.said("convert", "m.pt", target), target)
            self.assertIn(told, self.said("convert", "m.pt", target, "--dry-run"), target)
        self.assertNotIn("left out", self.said("convert", "m.pt", "m.safetensors", "--keep-values"))
        self.assertNotIn("left out", self.said("convert", "m.pt", "m.gguf", "--keep-values"))
        self.assertIn(told, self.said("convert", "m.pt", "copy.pt", "--keep-values"))
        self.assertNotIn("left out", self.said("convert", "m.safetensors", "again.safetensors"))

    def test_metadata_that_the_target_cannot_hold_is_named(self):
        self.put("m.gguf", tiny_gguf())
        said = self.said("convert", "m.gguf", "m.safetensors")
        self.assertIn('2 arrays of the metadata are left out, which safetensors has no place for: "tokenizer.ggml.tokens", '
                      '"tokenizer.ggml.merges"', said)
        self.assertNotIn("left out", self.said("convert", "m.gguf", "raw.safetensors", "--raw"))
        self.assertNotIn("left out", self.said("convert", "m.gguf", "again.gguf"))
        said = self.said("convert", "m.gguf", "m.pt")
        for key in ("general.name", "tokenizer.ggml.tokens"):
            self.assertIn(f'"{key}"', said)
        self.write("s.safetensors", {"w": ("F32", [2], [1, 2])}, {"format": "pt", "author": "me"})
        self.assertIn('has no place for metadata; left out: "author"', self.said("convert", "s.safetensors", "s.pt"))
        self.assertNotIn("left out", self.said("convert", "s.safetensors", "s.gguf"))
        self.assertNotIn("left out", self.said("convert", "s.safetensors", "t.safetensors"))

    def test_metadata_of_adapters_is_named(self):
        name = "lora_unet_down_blocks_0_attentions_0_to_q"
        ones = [1.0] * 8
        self.write("kohya.safetensors", {f"{name}.lora_down.weight": ("F32", [2, 4], ones), f"{name}.alpha": ("F32", [], [2]),
                                         f"{name}.lora_up.weight": ("F32", [4, 2], ones)},
                   {"ss_learning_rate": "1e-4", "ss_tag_frequency": "{}", "other": "x"})
        told = 'metadata of the adapter is left out: "other", "ss_learning_rate", "ss_tag_frequency"'
        self.assertIn(told, self.said("adapter", "convert", "kohya.safetensors", "--to", "peft", "-o", "peft"))
        self.assertIn(told, self.said("adapter", "convert", "kohya.safetensors", "--to", "diffusers", "-o", "d.safetensors"))
        said = self.said("adapter", "convert", "kohya.safetensors", "--to", "kohya", "-o", "k.safetensors")
        self.assertIn('metadata of the adapter is left out: "other"', said)
        self.assertNotIn("ss_", said)
        self.write("base.safetensors", {"down_blocks.0.attentions.0.to_q.weight": ("F32", [4, 4], [1.0] * 16)})
        self.assertIn(told, self.said("adapter", "merge", "base.safetensors", "kohya.safetensors", "-o", "m.safetensors"))

    def test_a_conversion_without_tensors_is_an_error(self):
        self.put("v.pkl", pickle.dumps({"epoch": 3, "lr": 0.1}))
        self.write("none.safetensors", {}, {"author": "me"})
        for source in ("v.pkl", "none.safetensors"):
            for target in ("out.safetensors", "out.pt", "out.gguf", "folder/"):
                self.refused("convert", source, target, code=IO, says="there is no tensor to write", hint="--allow-empty")
                self.refused("convert", source, target, "--dry-run", code=IO, says="there is no tensor to write")
        self.assertEqual(self.names_in_folder(), ["none.safetensors", "v.pkl"])
        said = self.said("convert", "v.pkl", "out.safetensors", "--allow-empty")
        self.assertIn("2 values beside the tensors are left out", said)
        self.assertEqual(self.ballast("ls", "out.safetensors", "--json").json()["tensors"], [])
        self.said("convert", "v.pkl", "kept.safetensors", "--allow-empty", "--keep-values")
        self.assertEqual(len(self.ballast("info", "kept.safetensors", "--json").json()["values"]), 2)


if __name__ == "__main__":
    unittest.main()
