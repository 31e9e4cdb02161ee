#!/usr/bin/env python3
"""Writes tiny.pt, a training checkpoint as torch.save would write it, without PyTorch.

{"state_dict": OrderedDict of a small classifier with a tied head, "epoch": 3, "lr": 0.001, "args": {...}}: the same bytes
every time, laid out as torch 2 lays out its zips (storages aligned to 64 bytes, in the order of their keys).
"""

import collections
import io
import pathlib
import pickle
import random
import struct
import sys
import types
import zipfile

ALIGNMENT = 64
YEAR_ZERO = (1980, 1, 1, 0, 0, 0)


def stand_in(module, name):
    """A class that pickles as module.name. It is never called: only its name gets into the file."""
    for part in [module] if "." not in module else [module.split(".")[0], module]:
        sys.modules.setdefault(part, types.ModuleType(part))
    made = type(name, (), {"__module__": module, "__qualname__": name})
    setattr(sys.modules[module], name, made)
    return made


FloatStorage = stand_in("torch", "FloatStorage")
LongStorage = stand_in("torch", "LongStorage")
rebuild_tensor = stand_in("torch._utils", "_rebuild_tensor_v2")


class Storage:
    def __init__(self, kind, code, values):
        self.kind, self.count, self.data = kind, len(values), struct.pack(f"<{len(values)}{code}", *values)


class Tensor:
    """A view of a storage. Pickles as a call of _rebuild_tensor_v2."""

    def __init__(self, storage, shape, strides, offset=0):
        self.view = (storage, offset, shape, strides, False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.storages = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        if value not in self.storages:
            self.storages.append(value)
        return ("storage", value.kind, str(self.storages.index(value)), "cpu", value.count)

    def reducer_override(self, value):
        return (rebuild_tensor, value.view) if isinstance(value, Tensor) else NotImplemented


def floats(generator, *shape):
    count = 1
    for size in shape:
        count *= size
    values = [round(generator.uniform(-1, 1) * shape[-1] ** -0.5, 4) for _ in range(count)]
    return Storage(FloatStorage, "f", values)


def checkpoint():
    generator = random.Random(2024)
    embedding = floats(generator, 16, 8)
    hidden = floats(generator, 8, 12)
    state = collections.OrderedDict()
    state["embed.weight"] = Tensor(embedding, (16, 8), (8, 1))
    state["hidden.weight"] = Tensor(hidden, (12, 8), (1, 12))  # transposed: a view that is not contiguous
    state["hidden.bias"] = Tensor(floats(generator, 12), (12,), (1,))
    state["norm.num_batches_tracked"] = Tensor(Storage(LongStorage, "q", [1200]), (), ())
    state["head.weight"] = Tensor(embedding, (16, 8), (8, 1))  # tied
    return {"state_dict": state, "epoch": 3, "lr": 0.001, "args": {"name": "tiny", "layers": 1, "dropout": None}}


def write_zip(path, records):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records:
            info = zipfile.ZipInfo(f"{path.stem}/{name}", YEAR_ZERO)
            begin = archive.fp.tell() + 30 + len(info.filename.encode()) + 4
            info.extra = b"FB" + struct.pack("<H", -begin % ALIGNMENT) + b"Z" * (-begin % ALIGNMENT)
            archive.writestr(info, data)


def main():
    path = pathlib.Path(__file__).with_name("tiny.pt")
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(checkpoint())
    records = [("data.pkl", file.getvalue()), (".format_version", "1"), (".storage_alignment", str(ALIGNMENT))]
    records += [("byteorder", "little")]
    records += [(f"data/{key}", storage.data) for key, storage in enumerate(pickler.storages)]
    write_zip(path, records + [("version", "3\n")])


if __name__ == "__main__":
    main()
