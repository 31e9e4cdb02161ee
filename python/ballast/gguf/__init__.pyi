from typing import Any

from . import constants as constants
from . import gguf_reader as gguf_reader
from . import quants as quants
from .constants import GGML_MAX_DIMS as GGML_MAX_DIMS
from .constants import GGML_QUANT_SIZES as GGML_QUANT_SIZES
from .constants import GGML_QUANT_VERSION as GGML_QUANT_VERSION
from .constants import GGUF_DEFAULT_ALIGNMENT as GGUF_DEFAULT_ALIGNMENT
from .constants import GGUF_MAGIC as GGUF_MAGIC
from .constants import GGUF_VERSION as GGUF_VERSION
from .constants import QK_K as QK_K
from .constants import GGMLQuantizationType as GGMLQuantizationType
from .constants import GGUFEndian as GGUFEndian
from .constants import GGUFValueType as GGUFValueType
from .constants import LlamaFileType as LlamaFileType
from .constants import TokenType as TokenType
from .gguf_reader import READER_SUPPORTED_VERSIONS as READER_SUPPORTED_VERSIONS
from .gguf_reader import GGUFReader as GGUFReader
from .gguf_reader import ReaderField as ReaderField
from .gguf_reader import ReaderTensor as ReaderTensor
from .quants import QuantError as QuantError
from .quants import dequantize as dequantize
from .quants import quant_shape_from_byte_shape as quant_shape_from_byte_shape
from .quants import quant_shape_to_byte_shape as quant_shape_to_byte_shape
from .quants import quantize as quantize

def __getattr__(name: str) -> Any: ...
