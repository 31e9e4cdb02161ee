"""GGUFReader: the metadata and the tensors of a GGUF file as arrays that are maps of it."""

import os
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Sequence

from .. import _native
from .constants import (
    GGML_QUANT_SIZES,
    GGUF_DEFAULT_ALIGNMENT,
    GGUF_VERSION,
    GGMLQuantizationType,
    GGUFEndian,
    GGUFValueType,
)
from .quants import _PLAIN, dequantize, quant_shape_to_byte_shape

__all__ = ["GGUFReader", "READER_SUPPORTED_VERSIONS", "ReaderField", "ReaderTensor"]

READER_SUPPORTED_VERSIONS = [2, GGUF_VERSION]

# What NumPy calls the types of values, by number; strings are bytes, and arrays are no type of one value.
_LETTERS = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "?", "u1", None, "u8", "i8", "f8")


class _Parts(Sequence):
    """The parts of a field: arrays, each made when somebody asks for it. A vocabulary has a quarter of a million."""

    __slots__ = ("_map", "_places")

    def __init__(self, map, places):
        self._map = map
        self._places = places

    def __len__(self):
        return len(self._places)

    def __getitem__(self, index):
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return [self._map.array(*self._places[i]) for i in chosen]
        return self._map.array(*self._places[chosen])

    def __iter__(self):
        return (self._map.array(*self._places[i]) for i in range(len(self)))

    def __add__(self, other):
        return [*self, *other]

    def __repr__(self):
        return repr(list(self))

    def numbers(self):
        """All elements of an array of numbers as one array; None if this is no such array."""
        whole = self._places.numbers
        return None if whole is None else self._map.array(*whole)

    def strings(self):
        """Where each string of an array of strings lies; nothing if this is no such array."""
        begins = self._places.strings
        return list(zip((begin + 8 for begin in begins), begins[1:]))

    def text(self, begin, end):
        return str(self._map.bytes[begin:end], encoding="utf-8")


class _Map:
    """The bytes of the file, and the byte order of the numbers in it."""

    __slots__ = ("attributes", "bytes", "data", "dtypes", "make", "order")

    def __init__(self, data, order):
        import numpy

        self.data = data
        self.order = order
        self.make = numpy.ndarray.__new__
        self.attributes = vars(data)
        self.bytes = memoryview(data)
        self.dtypes = [letters and self.dtype(numpy.dtype(letters)) for letters in _LETTERS]

    def dtype(self, dtype):
        return dtype.newbyteorder("S") if self.order == "S" else dtype

    def array(self, offset, type, count):
        return self.view(offset, self.dtypes[type], (count,))

    def view(self, offset, dtype, shape):
        if 0 in shape:  # NumPy does not call this a map
            return self.data[:0].view(dtype).reshape(shape)
        # The same as slicing the map, changing the dtype and the shape, of which each would take a microsecond.
        made = self.make(type(self.data), shape, dtype, self.data, offset)
        vars(made).update(self.attributes)
        return made


class ReaderField(namedtuple("ReaderField", "offset name parts data types", defaults=([], [-1], []))):
    """A key and its value.

    offset: where it begins in the file
    parts: an array for each length, key, type and value, in the order of the file
    data: which parts are values; one for each element of an array
    types: the type, and for an array also that of its elements
    """

    __slots__ = ()

    def contents(self, index_or_slice=slice(None)):
        """The value as Python has it; of an array one element, or those of a slice."""
        if not self.types:
            return None
        read = _text if self.types[-1] == GGUFValueType.STRING else _number
        if self.types[0] != GGUFValueType.ARRAY:
            return read(self.parts[-1])
        if isinstance(index_or_slice, int):
            return read(self.parts[self.data[index_or_slice]])
        if isinstance(self.parts, _Parts):
            numbers = self.parts.numbers()
            if numbers is not None:
                return numbers[index_or_slice].tolist()
            strings = self.parts.strings()
            if strings:
                return [self.parts.text(begin, end) for begin, end in strings[index_or_slice]]
        return [read(self.parts[i]) for i in self.data[index_or_slice]]


def _text(part):
    return str(part.tobytes(), encoding="utf-8")


def _number(part):
    return part.tolist()[0]


class ReaderTensor(namedtuple("ReaderTensor", "name tensor_type shape n_elements n_bytes data_offset data field")):
    """A tensor.

    shape: as in the file, the fastest dimension first
    data_offset: where its bytes begin in the file
    data: an array with the fastest dimension last; blocks and BF16 are bytes
    """

    __slots__ = ()


class _ScalarTypes:
    """GGUFReader.gguf_scalar_to_np: made when somebody asks for it, since it needs NumPy."""

    def __get__(self, instance, owner):
        import numpy

        strings = (GGUFValueType.STRING, GGUFValueType.ARRAY)
        return {type: numpy.dtype(_LETTERS[type]).type for type in GGUFValueType if type not in strings}


class GGUFReader:
    """The metadata (fields) and the tensors of a GGUF file. Opening reads the header and maps the rest.

    mode is that of numpy.memmap: "r" for arrays that are read-only, "r+" to edit the file through them, "c" for arrays
    whose changes stay in memory.

    A part of a split file is read by itself, as gguf-py reads it; with whole=True, the fields are those of the first
    part, and the tensors those of all parts. splits then has the readers of the other parts.
    """

    byte_order = "I"  # "I" is that of this machine, "S" the other one
    alignment = GGUF_DEFAULT_ALIGNMENT
    gguf_scalar_to_np = _ScalarTypes()

    def __init__(self, path, mode="r", *, whole=False):
        path = os.fsdecode(path)
        if whole:
            path, others = _parts_of_split(path)
        os.stat(path)  # the system's own error, with its number
        is_swapped, fields, tensors, end, size = _native.gguf_header(path)
        import numpy

        self.data = numpy.memmap(path, mode=mode)
        if self.data.nbytes != size:
            raise _native.Changed(f"{path}: the file changed while it was being opened")
        self.byte_order = "S" if is_swapped else "I"
        self.endianess = GGUFEndian.BIG if is_swapped == (sys.byteorder == "little") else GGUFEndian.LITTLE
        self._path = path
        self._map = _Map(self.data, self.byte_order)
        self._add_fields(fields)
        self._set_alignment()
        self.data_offset = -(-end // self.alignment) * self.alignment
        self._add_tensors(tensors)
        self.splits = []
        if whole:
            self._add_splits(others, mode)

    def get_field(self, key):
        """The field of this key, or None."""
        return self.fields.get(key)

    def get_tensor(self, idx):
        """The tensor of this number."""
        return self.tensors[idx]

    def dequantize(self, tensor):
        """The values of a tensor as float32, also of a big-endian file, whose blocks dequantize() cannot know."""
        if self.byte_order == "I" or tensor.tensor_type in _PLAIN:
            return dequantize(tensor.data, tensor.tensor_type)
        from .. import open

        with open(self._path, cache="ignore") as checkpoint:
            return checkpoint[tensor.name].to("F32").numpy()

    def _add_fields(self, fields):
        counts = (("GGUF.version", 4, "u4", "UINT32"), ("GGUF.tensor_count", 8, "u8", "UINT64"),
                  ("GGUF.kv_count", 16, "u8", "UINT64"))  # fmt: skip
        self.fields = OrderedDict()
        for name, offset, letters, type in counts:
            part = self._map.array(offset, _LETTERS.index(letters), 1)
            self.fields[name] = ReaderField(offset, name, [part], [0], [GGUFValueType[type]])
        for offset, name, types, data, places in fields:
            if name in self.fields:
                raise KeyError(f"Duplicate {name} already in list at offset {offset}")
            types = [GGUFValueType(type) for type in types]
            self.fields[name] = ReaderField(offset, name, _Parts(self._map, places), data, types)

    def _set_alignment(self):
        field = self.fields.get("general.alignment")
        if field is None:
            return
        if field.types != [GGUFValueType.UINT32]:
            raise _native.Malformed("Bad type for general.alignment field")
        self.alignment = field.contents()
        if self.alignment == 0 or self.alignment & (self.alignment - 1):
            raise _native.Malformed("Invalid alignment: must be a non-zero power of two")

    def _add_tensors(self, tensors):
        import numpy

        plain = {type: self._map.dtype(numpy.dtype(letters)) for type, letters in _PLAIN.items()}
        byte = numpy.dtype("u1")
        names = set()
        self.tensors = []
        for offset, name, shape, number, begin, places in tensors:
            if name in names:
                raise _native.Malformed(f"Found duplicated tensor with name {name}")
            names.add(name)
            type = GGMLQuantizationType(number)
            dtype = plain.get(type, byte)
            self.tensors.append(self._tensor(offset, name, shape, type, dtype, self.data_offset + begin, places))

    def _tensor(self, offset, name, shape, type, dtype, begin, places):
        block, size = GGML_QUANT_SIZES[type]
        elements = 1
        for dimension in shape:
            elements *= dimension
        nbytes = elements * size // block
        rows = shape[::-1]
        if type not in _PLAIN:
            rows = quant_shape_to_byte_shape(rows, type)
        if nbytes and begin + nbytes > self.data.nbytes:
            raise _native.Malformed(
                f"Tensor {name} has {nbytes} bytes from byte {begin} on, but the file ends at byte {self.data.nbytes}"
            )
        parts = _Parts(self._map, places)
        data = self._map.view(begin, dtype, rows)
        field = ReaderField(offset, name, parts, [1, 3, 4, 5])
        return ReaderTensor(name, type, parts[3], elements, nbytes, begin, data, field)

    def _add_splits(self, paths, mode):
        names = {tensor.name for tensor in self.tensors}
        for path in paths:
            part = GGUFReader(path, mode)
            for tensor in part.tensors:
                if tensor.name in names:
                    raise _native.Malformed(f"Found duplicated tensor with name {tensor.name}")
                names.add(tensor.name)
            self.splits.append(part)
            self.tensors.extend(part.tensors)


def _parts_of_split(path):
    """The first part of a split file, and the others; of any other file itself."""
    import re

    found = re.fullmatch(r"(.*-)(\d{5})(-of-(\d{5})\.gguf)", path, re.DOTALL)
    if not found:
        return path, []
    begin, _, end, count = found.groups()
    return f"{begin}00001{end}", [f"{begin}{number:05}{end}" for number in range(2, int(count) + 1)]
