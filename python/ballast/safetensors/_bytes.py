"""Tensors as addresses in memory, and the bytes of a file made of them."""

import os
from operator import index

from .. import _native
from ._error import SafetensorError, cannot_read, cannot_write

# A framework's word for a dtype -> the format's code, in the order in which messages list them.
CODES = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32",
    "int64": "I64", "uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4", "complex64": "C64",
}  # fmt: skip


def check_type(argument, value, kind):
    if not isinstance(value, kind):
        given, wanted = type(value).__name__, kind.__name__
        raise TypeError(f"argument '{argument}': '{given}' object is not an instance of '{wanted}'")


def path_of(filename):
    """A path as text. Bytes are refused, as the reference package does."""
    if hasattr(filename, "__fspath__"):
        filename = os.fspath(filename)
    check_type("filename", filename, str)
    return filename


class TensorSpec:
    """A tensor as its dtype, shape, and the address and size of its bytes, which the caller keeps alive.

    `dtype` is given as frameworks call it ("float32"), and read as files do ("F32"). torch packs two F4 values into an
    element, so the last dimension of a "float4_e2m1fn_x2" is doubled.
    """

    __module__ = "ballast.safetensors"
    __slots__ = ("_data_len", "_data_ptr", "_dtype", "_shape")

    def __init__(self, *, dtype, shape, data_ptr, data_len):
        check_type("dtype", dtype, str)
        code = CODES.get(dtype)
        if code is None:
            raise SafetensorError(f'Unknown dtype "{dtype}". Supported dtypes: {", ".join(CODES)}')
        self._dtype = code
        self._shape = [_unsigned(size) for size in shape]
        if code == "F4" and self._shape:
            self._shape[-1] *= 2
        self._data_ptr = _unsigned(data_ptr)
        self._data_len = _unsigned(data_len)

    @property
    def dtype(self):
        """The dtype as files spell it."""
        return self._dtype

    @property
    def shape(self):
        """How many values there are in each dimension."""
        return list(self._shape)

    @property
    def data_ptr(self):
        """The address of the first byte."""
        return self._data_ptr

    @property
    def data_len(self):
        """How many bytes there are."""
        return self._data_len

    def __repr__(self):
        bytes_at = f"data_ptr={self._data_ptr}, data_len={self._data_len}"
        return f"TensorSpec(dtype={self._dtype!r}, shape={self._shape}, {bytes_at})"


def _unsigned(value):
    number = index(value)
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return number


def serialize(tensor_dict, metadata=None):
    """The bytes of a safetensors file of these TensorSpecs."""
    checkpoint = _checkpoint_of(tensor_dict, metadata)
    try:
        return _native.safetensors_to_bytes(checkpoint, metadata is not None)
    except _native.Error as error:
        raise cannot_write(error) from error


def serialize_file(tensor_dict, filename, metadata=None):
    """Writes a safetensors file of these TensorSpecs. It appears under its name whole, or not at all."""
    path = path_of(filename)
    checkpoint = _checkpoint_of(tensor_dict, metadata)
    try:
        _native.safetensors_to_file(checkpoint, os.fsencode(path), metadata is not None)
    except _native.Error as error:
        raise cannot_write(error, path) from error


def _checkpoint_of(tensor_dict, metadata):
    check_type("tensor_dict", tensor_dict, dict)
    tensors = {}
    for name, spec in tensor_dict.items():
        check_type("tensor_dict", name, str)
        check_type("tensor_dict", spec, TensorSpec)
        tensors[name] = _tensor_of(name, spec)
    if metadata is not None:
        check_type("metadata", metadata, dict)
        for key, value in metadata.items():
            check_type("metadata", key, str)
            check_type("metadata", value, str)
    return _native.checkpoint_of(tensors, metadata or {})


def _tensor_of(name, spec):
    if spec._data_len and not spec._data_ptr:
        raise SafetensorError(f'Error while serializing: tensor "{name}" has {spec._data_len} bytes at address 0')
    wrong = "Error while serializing: invalid shape, data type, or offset for tensor"
    try:
        tensor = _native.tensor_of_memory(None, spec._data_ptr, spec._data_len, spec._dtype, spec._shape)
    except (_native.Error, TypeError) as error:  # TypeError: a dimension of more than 64 bits
        raise SafetensorError(wrong) from error
    if tensor.nbytes != spec._data_len:
        raise SafetensorError(wrong)
    return tensor


def deserialize(bytes):
    """The tensors of a file in memory: a list of (name, {"shape", "dtype", "data"}), where data is a copy."""
    return [
        (name, {"shape": list(tensor.shape), "dtype": tensor.dtype, "data": _native.safetensors_read(tensor)})
        for name, tensor in tensors_in(bytes).items()
    ]


def tensors_in(data):
    """The tensors of a file in memory by their names, in the order of their data."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        check_type("bytes", data, bytes)
    try:
        checkpoint = _native.safetensors_open_buffer(data)
    except _native.Error as error:
        view = memoryview(data).cast("B")
        read = lambda offset, size: view[offset : offset + size]  # noqa: E731
        raise cannot_read(error, "Error while deserializing", read, len(view)) from error
    return {name: as_stored(checkpoint[name]) for name in checkpoint._names()}


def as_stored(tensor):
    """The tensor as the file has it: blocks of ggml, which Ballast can keep in safetensors, are bytes there."""
    return tensor if tensor.dtype in _STORED else tensor.bitcast("U8")


_STORED = {*CODES.values(), "F6_E2M3", "F6_E3M2"}
