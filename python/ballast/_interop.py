"""Between Ballast's tensors and those of NumPy, torch and others. Nothing here is imported before it is needed."""

import sys

from . import _native

# The dtype of Ballast -> what NumPy calls it; the second kind needs the package ml_dtypes.
NUMPY = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16",
}  # fmt: skip
ML_DTYPES = {
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
TORCH = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C32": "complex32", "C64": "complex64", "C128": "complex128", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F4": "float4_e2m1fn_x2",
}  # fmt: skip
# The release of torch that first had it, where there are releases without it.
TORCH_SINCE = {
    "U16": "2.3", "U32": "2.3", "U64": "2.3", "F8_E4M3": "2.1", "F8_E5M2": "2.1", "F8_E4M3FNUZ": "2.2",
    "F8_E5M2FNUZ": "2.2", "F8_E8M0": "2.7", "F4": "2.8",
}  # fmt: skip
# The letters of the buffer protocol and of the module struct.
LETTERS = {
    "BOOL": "?", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i", "U64": "Q", "I64": "q",
    "F16": "e", "F32": "f", "F64": "d",
}  # fmt: skip
# The other way: what a framework calls it -> Ballast's name.
FROM_NAME = {
    **{"bool": "BOOL", "complex64": "C64", "complex128": "C128"},
    **{f"{sign}int{bits}": f"{letter}{bits}" for sign, letter in (("", "I"), ("u", "U")) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{name: dtype for dtype, name in ML_DTYPES.items()},
}


def _numpy_dtype(numpy, tensor):
    if tensor.dtype in NUMPY:
        return numpy.dtype(NUMPY[tensor.dtype])
    if tensor.dtype in ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(
                f"NumPy has no {tensor.dtype}: install ml_dtypes, take t.torch(), "
                'or choose a dtype yourself: t.to("F32").numpy()'
            ) from None
        return numpy.dtype(getattr(ml_dtypes, ML_DTYPES[tensor.dtype]))
    raise TypeError(
        f'NumPy has no {tensor.dtype}: t.to("F32").numpy() is its values, and t.bitcast("U8").numpy() its bytes'
    )


def to_numpy(tensor):
    import numpy

    dtype = _numpy_dtype(numpy, tensor)
    memory, first, strides = tensor._memory()
    if tensor.numel == 0:
        return numpy.empty(tensor.shape, dtype)
    return numpy.ndarray(tensor.shape, dtype, memory, first, tuple(s * dtype.itemsize for s in strides))


def to_array(tensor, dtype=None, copy=None):
    array = to_numpy(tensor)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a copy is needed to change the dtype")
        return array.astype(dtype)
    return array.copy() if copy else array


def fits_torch(torch, tensor):
    """Whether this torch has the dtype; two values of F4 are one there, so that a dimension must be even."""
    is_odd = tensor.dtype == "F4" and (tensor.ndim == 0 or tensor.shape[-1] % 2 != 0)
    return hasattr(torch, TORCH.get(tensor.dtype, "no dtype")) and not is_odd


def _torch_dtype(torch, tensor):
    name = TORCH.get(tensor.dtype)
    if name is not None and hasattr(torch, name):
        return getattr(torch, name)
    since = f": torch.{name} came with torch {TORCH_SINCE[tensor.dtype]}" if tensor.dtype in TORCH_SINCE else ""
    raise TypeError(
        f"this torch ({torch.__version__}) has no dtype for {tensor.dtype}{since}; "
        't.to("F32").torch() is its values, and t.bitcast("U8").torch() its bytes'
    )


def to_torch(tensor):
    import torch

    dtype = _torch_dtype(torch, tensor)
    if tensor.dtype == "F4":
        torch_shape(tensor)
        pairs = tensor.bitcast("U8")
        return _torch_of_memory(torch, pairs, torch.uint8).view(dtype).to(_device(tensor))
    return _torch_of_memory(torch, tensor, dtype).to(_device(tensor))


def torch_shape(tensor):
    """The shape that torch gives the tensor, which counts pairs of F4."""
    shape = tensor.shape
    if tensor.dtype != "F4":
        return shape
    if not shape or shape[-1] % 2:
        raise TypeError(
            f"torch keeps two F4 values in a byte, and the last dimension of {list(shape)} is not even: "
            't.to("F32").torch() is its values'
        )
    return (*shape[:-1], shape[-1] // 2)


def _device(tensor):
    device = tensor.device
    return int(device) if device.isdigit() else device


def _torch_of_memory(torch, tensor, dtype):
    if tensor.numel == 0:
        return torch.empty(tensor.shape, dtype=dtype)
    memory, first, strides = tensor._memory()
    if any(stride < 0 for stride in strides):  # torch has no such strides
        return _torch_of_memory(torch, tensor.contiguous(), dtype)
    flat = torch.frombuffer(memory, dtype=dtype)
    return flat.reshape(tensor.shape) if tensor.is_contiguous else flat.as_strided(tensor.shape, strides)


def compared(tensor, other, comparison):
    """t == other, element by element: an array of NumPy's, or of torch's if `other` is one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(other, torch.Tensor):
        names = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
        return getattr(torch, names[comparison])(tensor.torch(), other)
    is_of_numbers = isinstance(other, (_native.Tensor, int, float, complex, list, tuple))
    if not is_of_numbers and not hasattr(other, "__array__") and not hasattr(other, "__array_interface__"):
        return NotImplemented  # None, a text: no tensor is equal to them
    try:
        import numpy
    except ImportError:
        raise TypeError("comparing a tensor needs NumPy; t.tolist() and t.tobytes() can be compared without it") from None
    values = to_numpy(tensor)  # a TypeError with the ways out, if NumPy has no such dtype
    others = to_numpy(other) if isinstance(other, _native.Tensor) else other
    return getattr(numpy, comparison)(values, others)  # == of NumPy 1.24 is False for shapes that do not fit


def to_list(tensor):
    """Nested lists of Python numbers; blocks and floats that Python has not become floats."""
    formats = {"F16", "F4", "F6_E2M3", "F6_E3M2", *ML_DTYPES}  # a memoryview is not cast to "e"
    if tensor.dtype in formats or tensor.dtype not in NUMPY:
        tensor = tensor.to("F32")
    if tensor.dtype in ("C64", "C128"):
        parts = memoryview(tensor.tobytes()).cast("f" if tensor.dtype == "C64" else "d").tolist()
        values = [complex(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
    else:
        values = _flat(tensor)
    if tensor.numel == 0:
        return _empty(tensor.shape)
    for size in reversed(tensor.shape[1:]):
        count = len(values) // size if size else 0
        values = [values[i * size : (i + 1) * size] for i in range(count)]
    return values[0] if tensor.ndim == 0 else values


def _flat(tensor):
    return memoryview(tensor.tobytes()).cast(LETTERS[tensor.dtype]).tolist() if tensor.numel else []


def _empty(shape):
    if shape[0] > 1_000_000:
        raise ValueError(f"a list of {shape[0]} empty lists is not made")
    return [_empty(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else []


def to_item(tensor):
    if tensor.numel != 1:
        raise ValueError(f"item() is for one value, and {list(tensor.shape)} has {tensor.numel}")
    value = to_list(tensor)
    while isinstance(value, list):
        value = value[0]
    return value


def checkpoint_of(tensors, metadata=None):
    """A checkpoint of what Python holds: a Checkpoint as it is, or a mapping of names to tensors of any library."""
    if isinstance(tensors, _native.Checkpoint) and not metadata:
        return tensors
    made = {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors are texts, not {type(name).__name__}")
        made[name] = to_tensor(value, name)
    kept = dict(tensors.metadata) if isinstance(tensors, _native.Checkpoint) else {}
    return _native.checkpoint_of(made, {**kept, **(metadata or {})})


def to_tensor(value, name=""):
    """A tensor of Ballast that shares the memory of `value`, which it keeps alive."""
    if isinstance(value, _native.Tensor):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(torch, value, name)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _from_numpy(numpy, value, name)
    if hasattr(value, "__dlpack__"):
        return _native.tensor_of_dlpack(_capsule(value))
    try:
        return _from_buffer(memoryview(value), name)
    except TypeError:
        raise TypeError(f"{name or 'the value'}: {type(value).__name__} is no tensor, array or buffer") from None


def _capsule(value):
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer that knows nothing of versions
        return value.__dlpack__()


def _from_buffer(view, name):
    letters = {"l": "I64" if view.itemsize == 8 else "I32", "L": "U64" if view.itemsize == 8 else "U32"}
    letters.update((letter, dtype) for dtype, letter in LETTERS.items())
    dtype = letters.get(view.format.lstrip("@=<"))
    if dtype is None:
        raise ValueError(f"{name or 'the buffer'}: there is no dtype in a checkpoint for the format {view.format!r}")
    shape = list(view.shape)
    return _native.tensor_of_buffer(view if view.c_contiguous else view.tobytes(), dtype, shape)


def _from_numpy(numpy, value, name):
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{name or 'the array'} has a mask, which a checkpoint has no place for: fill it first")
    array = numpy.ascontiguousarray(value).reshape(numpy.shape(value))
    dtype = FROM_NAME.get(array.dtype.name)
    if dtype is None:
        raise TypeError(f"{name or 'the array'}: there is no dtype for {array.dtype} in a checkpoint")
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.byteswap().view(array.dtype.newbyteorder())
    return _native.tensor_of_memory(array, array.ctypes.data, array.nbytes, dtype, list(array.shape))


def _from_torch(torch, value, name):
    if value.layout != torch.strided:
        raise TypeError(f"{name or 'the tensor'} is {value.layout}: make it dense with .to_dense()")
    word = str(value.dtype).removeprefix("torch.")
    by_torch = {word: dtype for dtype, word in TORCH.items()}
    if word not in by_torch:
        raise TypeError(f"{name or 'the tensor'}: there is no dtype for {value.dtype} in a checkpoint")
    plain = value.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
    shape = list(plain.shape)
    if word == "float4_e2m1fn_x2":
        shape[-1] *= 2
    nbytes = plain.numel() * plain.element_size()
    return _native.tensor_of_memory(plain, plain.data_ptr(), nbytes, by_torch[word], shape)


def html_table(checkpoint):
    """The pattern table of `ballast info`, for a notebook."""
    from html import escape

    rows = "".join(
        f"<tr><td style='text-align:left'><code>{escape(name)}</code></td><td>{escape(dtype)}</td>"
        f"<td>{escape(str(list(shape)))}</td><td>{count}</td><td>{size:,}</td></tr>"
        for name, dtype, shape, count, size in checkpoint._patterns()
    )
    head = "<tr><th style='text-align:left'>name</th><th>dtype</th><th>shape</th><th>tensors</th><th>bytes</th></tr>"
    return f"<p>{escape(repr(checkpoint))}</p><table>{head}{rows}</table>"
