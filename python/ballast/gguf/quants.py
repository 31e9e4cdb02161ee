"""Between numbers and ggml's blocks, by the kernels of Ballast: bit for bit what ggml itself computes."""

from .._native import Unsupported as _Unsupported
from .constants import GGML_QUANT_SIZES, GGMLQuantizationType

__all__ = ["QuantError", "dequantize", "quant_shape_from_byte_shape", "quant_shape_to_byte_shape", "quantize"]

# The types that NumPy has, too; arrays of them hold numbers, and arrays of all others bytes.
_PLAIN = {
    GGMLQuantizationType.F32: "f4", GGMLQuantizationType.F16: "f2", GGMLQuantizationType.F64: "f8",
    GGMLQuantizationType.I8: "i1", GGMLQuantizationType.I16: "i2", GGMLQuantizationType.I32: "i4",
    GGMLQuantizationType.I64: "i8",
}  # fmt: skip


class QuantError(Exception):
    """The rows of an array are not whole blocks."""


def quant_shape_to_byte_shape(shape, quant_type):
    """The shape of the bytes that hold an array of this shape."""
    block, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % block:
        raise ValueError(
            f"Quantized tensor row size ({shape[-1]}) is not a multiple of {quant_type.name} block size ({block})"
        )
    return (*shape[:-1], shape[-1] // block * size)


def quant_shape_from_byte_shape(shape, quant_type):
    """The shape of the array that bytes of this shape hold."""
    block, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % size:
        raise ValueError(
            f"Quantized tensor bytes per row ({shape[-1]}) is not a multiple of {quant_type.name} type size ({size})"
        )
    return (*shape[:-1], shape[-1] // size * block)


def dequantize(data, qtype):
    """The values of blocks, or of plain numbers, as float32. Every type is decoded."""
    import numpy

    from .._interop import to_tensor

    data = numpy.asanyarray(data)
    if qtype in _PLAIN:
        return _numbers(numpy, data, _PLAIN[qtype]).astype(numpy.float32, copy=False)
    rows = numpy.ascontiguousarray(data).view(numpy.uint8)
    quant_shape_from_byte_shape(rows.shape, qtype)
    try:
        return to_tensor(rows).bitcast(qtype.name).to("F32").numpy()
    except _Unsupported:
        raise NotImplementedError(f"Dequantization for {qtype.name} is not yet implemented") from None


def _numbers(numpy, data, letters):
    """The array as numbers of this type, whichever byte order it has; bytes are seen as such numbers."""
    wanted = numpy.dtype(letters)
    is_such = data.dtype.kind == wanted.kind and data.dtype.itemsize == wanted.itemsize
    return data if is_such else data.view(wanted)


def quantize(data, qtype):
    """An array of numbers as blocks: bytes, or numbers if NumPy has the type.

    The types that need an importance matrix (IQ1_S, IQ2_XXS, IQ2_XS), Q8_1 and integers are a NotImplementedError.
    """
    import numpy

    from .._interop import to_tensor

    data = numpy.asanyarray(data)
    if qtype in _PLAIN and _PLAIN[qtype][0] == "f":
        return data.astype(_PLAIN[qtype], copy=False)
    if qtype not in _PLAIN and data.shape[-1] % GGML_QUANT_SIZES[qtype][0]:
        raise QuantError(f"Can't quantize tensor with shape {data.shape} to {qtype.name}")
    try:
        return to_tensor(data.astype(numpy.float32, copy=False)).to(qtype.name).bitcast("U8").numpy()
    except _Unsupported as error:
        if numpy.isnan(data).any():
            raise ValueError(str(error)) from error
        raise NotImplementedError(f"Quantization for {qtype.name} is not yet implemented") from None
