"""What gguf-py offers to programs that read GGUF files, under the same names.

    from ballast.gguf import GGUFReader, dequantize

    reader = GGUFReader("model.gguf")
    print(reader.get_field("general.architecture").contents())
    for tensor in reader.tensors:
        print(tensor.name, tensor.tensor_type.name, dequantize(tensor.data, tensor.tensor_type).shape)

Arrays are maps of the file: read-only, or with mode "r+" the file itself, or with mode "c" a private copy of what is
written to. ballast.open() reads the same files, and more of them: version 1, and types that are newer than this module.
"""

from . import constants, gguf_reader, quants
from .constants import (
    GGML_MAX_DIMS,
    GGML_QUANT_SIZES,
    GGML_QUANT_VERSION,
    GGUF_DEFAULT_ALIGNMENT,
    GGUF_MAGIC,
    GGUF_VERSION,
    QK_K,
    GGMLQuantizationType,
    GGUFEndian,
    GGUFValueType,
    LlamaFileType,
    TokenType,
)
from .gguf_reader import READER_SUPPORTED_VERSIONS, GGUFReader, ReaderField, ReaderTensor
from .quants import QuantError, dequantize, quant_shape_from_byte_shape, quant_shape_to_byte_shape, quantize

__all__ = [
    "GGML_MAX_DIMS", "GGML_QUANT_SIZES", "GGML_QUANT_VERSION", "GGUF_DEFAULT_ALIGNMENT", "GGUF_MAGIC", "GGUF_VERSION",
    "GGMLQuantizationType", "GGUFEndian", "GGUFReader", "GGUFValueType", "LlamaFileType", "QK_K", "QuantError",
    "READER_SUPPORTED_VERSIONS", "ReaderField", "ReaderTensor", "TokenType", "constants", "dequantize", "gguf_reader",
    "quant_shape_from_byte_shape", "quant_shape_to_byte_shape", "quantize", "quants",
]  # fmt: skip


def __getattr__(name):
    from .._patch import attribute_of_original

    return attribute_of_original(__name__, name)
