from collections import OrderedDict
from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import NDArray

from .constants import GGMLQuantizationType, GGUFEndian, GGUFValueType

READER_SUPPORTED_VERSIONS: list[int]

class ReaderField(NamedTuple):
    offset: int
    name: str
    parts: Sequence[NDArray[Any]] = ...
    data: list[int] = ...
    types: list[GGUFValueType] = ...
    def contents(self, index_or_slice: int | slice = ...) -> Any: ...

class ReaderTensor(NamedTuple):
    name: str
    tensor_type: GGMLQuantizationType
    shape: NDArray[numpy.uint64]
    n_elements: int
    n_bytes: int
    data_offset: int
    data: NDArray[Any]
    field: ReaderField

class GGUFReader:
    byte_order: Literal["I", "S"]
    alignment: int
    gguf_scalar_to_np: dict[GGUFValueType, type[numpy.generic]]
    data: numpy.memmap[Any, numpy.dtype[numpy.uint8]]
    data_offset: int
    endianess: GGUFEndian
    fields: OrderedDict[str, ReaderField]
    tensors: list[ReaderTensor]
    splits: list[GGUFReader]
    def __init__(
        self, path: str | PathLike[str], mode: Literal["r", "r+", "c"] = "r", *, whole: bool = False
    ) -> None: ...
    def get_field(self, key: str) -> ReaderField | None: ...
    def get_tensor(self, idx: int) -> ReaderTensor: ...
    def dequantize(self, tensor: ReaderTensor) -> NDArray[numpy.float32]: ...
