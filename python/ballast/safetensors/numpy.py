"""safetensors files of NumPy arrays."""

import sys

import numpy as np

from ._bytes import TensorSpec, serialize, serialize_file, tensors_in
from ._open import read_for_numpy, safe_open

_TYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
    "C64": np.complex64,
}  # fmt: skip

__all__ = ["load", "load_file", "save", "save_file"]


def save(tensor_dict, metadata=None):
    """The bytes of a safetensors file of these arrays."""
    arrays = _arrays_of(tensor_dict)
    return serialize(_specs_of(arrays), metadata=metadata)


def save_file(tensor_dict, filename, metadata=None):
    """Writes these arrays to a safetensors file."""
    arrays = _arrays_of(tensor_dict)
    serialize_file(_specs_of(arrays), filename, metadata=metadata)


def load(data):
    """The arrays of a safetensors file in memory, as copies."""
    return {name: read_for_numpy(tensor) for name, tensor in tensors_in(data).items()}


def load_file(filename, *, backend="mmap"):
    """The arrays of a safetensors file. They are views of a private map: writing to one does not change the file."""
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()


def _arrays_of(tensor_dict):
    """The arrays as they go into a file: contiguous and little-endian. They must outlive their addresses."""
    return {name: _plain(array) for name, array in tensor_dict.items()}


def _plain(array):
    dtype = array.dtype
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(dtype.newbyteorder("<"))
    # ascontiguousarray() makes one dimension of none.
    return np.ascontiguousarray(array).reshape(array.shape)


def _specs_of(arrays):
    return {
        name: TensorSpec(
            dtype=array.dtype.name,
            shape=array.shape,
            data_ptr=array.__array_interface__["data"][0],
            data_len=array.nbytes,
        )
        for name, array in arrays.items()
    }
