"""safe_open: the tensors of one file, made for a framework when they are asked for."""

import os
from importlib import import_module

from .. import _interop, _native
from ._bytes import as_stored, check_type, path_of
from ._error import SafetensorError, cannot_read
from ._index import numpy_index

_FRAMEWORKS = {
    "pt": "pytorch", "torch": "pytorch", "pytorch": "pytorch", "np": "numpy", "numpy": "numpy", "tf": "tensorflow",
    "tensorflow": "tensorflow", "jax": "flax", "flax": "flax", "mlx": "mlx", "paddle": "paddle",
}  # fmt: skip
# What makes a tensor of the others of a NumPy array.
_MAKERS = {
    "tensorflow": ("tensorflow", "convert_to_tensor"),
    "flax": ("jax.numpy", "array"),
    "mlx": ("mlx.core", "array"),
    "paddle": ("paddle", "to_tensor"),
}
_ACCELERATORS = ("cuda", "npu", "xpu", "xla", "mlu", "musa", "hpu")
_BACKENDS = ("mmap", "pread")


class safe_open:
    """Opens a safetensors file; tensors are read, or mapped without a copy, when they are asked for.

        filename: a str or a path
        framework: "pt", "np", "tf", "jax", "mlx" or "paddle"
        device: where torch puts tensors: "cpu", "cuda:1", or the number of an accelerator
        backend: "mmap", or "pread" to read each tensor into memory of its own

    Tensors may be written to, which never changes the file, and live on after the file is closed.
    """

    __module__ = "ballast.safetensors"
    __slots__ = ("__weakref__", "_backend", "_checkpoint", "_framework")

    def __new__(cls, filename, framework, device="cpu", *, backend="mmap"):
        return _opened(cls, path_of(filename), framework, device, backend)

    def keys(self):
        """The names of the tensors, sorted."""
        return sorted(self._open()._names())

    def offset_keys(self):
        """The names of the tensors in the order of their data in the file."""
        return self._open()._names()

    def metadata(self):
        """The texts beside the tensors, or None if the file has none."""
        checkpoint = self._open()
        found = checkpoint.metadata
        return found if found or _native.safetensors_has_metadata(checkpoint) else None

    def get_tensor(self, name):
        """A tensor of the framework."""
        return _made(self._tensor(name), self._framework, self._backend)

    def get_tensors(self):
        """All tensors by their names, in the order of offset_keys()."""
        checkpoint = self._open()
        return {
            name: _made(as_stored(checkpoint[name]), self._framework, self._backend) for name in checkpoint._names()
        }

    def get_slice(self, name):
        """A tensor that reads only what it is indexed with."""
        return PySafeSlice(self._tensor(name), self._framework, self._backend)

    def __enter__(self):
        return self

    def __exit__(self, _exc_type, _exc_value, _traceback):
        self._checkpoint = None

    def __reduce_ex__(self, _protocol):
        raise TypeError(f"cannot pickle 'builtins.{type(self).__name__}' object")

    def _open(self):
        if self._checkpoint is None:
            raise SafetensorError("File is closed")
        return self._checkpoint

    def _tensor(self, name):
        checkpoint = self._open()
        check_type("name", name, str)
        tensor = checkpoint.get(name)
        if tensor is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return as_stored(tensor)


class _safe_open_handle(safe_open):
    """safe_open() of a file object that has `fileno` and `name`; the file is opened again by its name."""

    __module__ = "ballast.safetensors"
    __slots__ = ()

    def __new__(cls, f, framework, device="cpu", *, backend="mmap"):
        number, name = f.fileno(), f.name
        # A file that was opened by its number has no name but this.
        path = f"/proc/self/fd/{number}" if isinstance(name, int) else os.fsdecode(os.fspath(name))
        return _opened(cls, path, framework, device, backend)


class PySafeSlice:
    """A tensor of a file that is not read until it is indexed."""

    __module__ = "ballast.safetensors"
    __slots__ = ("_backend", "_framework", "_tensor")

    def __init__(self, tensor, framework, backend):
        self._tensor, self._framework, self._backend = tensor, framework, backend

    def get_shape(self):
        """The sizes of the dimensions, as the file has them."""
        return list(self._tensor.shape)

    def get_dtype(self):
        """The dtype as the file spells it: "F32"."""
        return self._tensor.dtype

    def __getitem__(self, index):
        if self._framework == "pytorch" and self._backend == "mmap":
            import torch

            # The pages behind what is not asked for are never touched, so torch may do the indexing.
            return _on_device(_in_torch(torch, self._tensor)[index], self._tensor)
        shown = self._tensor[numpy_index(index, self._tensor.shape)]
        return _made(shown, self._framework, self._backend)


def _opened(cls, path, framework, device, backend):
    check_type("framework", framework, str)
    if framework not in _FRAMEWORKS:
        raise SafetensorError(f"framework {framework} is invalid")
    framework = _FRAMEWORKS[framework]
    device = _device(device)
    if backend not in _BACKENDS:
        expected = ", ".join(f'"{word}"' for word in _BACKENDS)
        raise SafetensorError(f'backend "{backend}" is invalid (expected one of: {expected})')
    if device != "cpu" and framework not in ("pytorch", "paddle"):
        raise SafetensorError(f"Device {device} is not supported for framework {framework}")
    if framework == "pytorch":
        import torch  # noqa: F401
    elif framework == "numpy":
        import numpy  # noqa: F401
    self = object.__new__(cls)
    self._framework, self._backend = framework, backend
    self._checkpoint = _checkpoint_at(path, device)
    return self


def _checkpoint_at(path, device):
    try:
        return _native.safetensors_open(os.fsencode(path), device)
    except _native.Error as error:
        try:
            file = open(path, "rb", buffering=0)
        except IsADirectoryError:
            raise OSError("No such device (os error 19)") from error
        except OSError:
            raise FileNotFoundError(f"No such file or directory: {path}") from error
        if isinstance(error, OSError):
            raise
        with file:
            read = lambda offset, size: os.pread(file.fileno(), size, offset)  # noqa: E731
            size = os.fstat(file.fileno()).st_size
            raise cannot_read(error, "Error while deserializing header", read, size) from error


def _device(device):
    """The device as torch spells it."""
    if device is None:
        return "cpu"
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise SafetensorError(f"device {device} is invalid")
        return str(device)
    if type(device).__module__ == "torch" and type(device).__name__ == "device":
        device = str(device)
    if not isinstance(device, str):
        raise SafetensorError(f"device {device!r} is invalid")
    kind, colon, number = device.partition(":")
    if kind == "mps":
        if number not in ("", "0") or (colon and not number):
            raise SafetensorError(f"device {device} is invalid: only mps or mps:0 is supported")
        return "mps"
    if kind in _ACCELERATORS:
        if colon and not (number.isascii() and number.isdigit()):
            raise ValueError("invalid digit found in string" if number else "cannot parse integer from empty string")
        return f"{kind}:{int(number or 0)}"
    if device != "cpu":
        raise SafetensorError(f"device {device} is invalid")
    return device


def _made(tensor, framework, backend):
    """The tensor for a framework, mapped or read."""
    if framework == "pytorch":
        import torch

        made = _in_torch(torch, tensor) if backend == "mmap" else read_for_torch(torch, tensor)
        return _on_device(made, tensor)
    array = _interop.to_numpy(tensor) if backend == "mmap" else read_for_numpy(tensor)
    if framework == "numpy":
        return array
    module, function = _MAKERS[framework]
    made = getattr(import_module(module), function)(array)
    return made.to(tensor.device.replace("cuda", "gpu")) if tensor.device != "cpu" else made


def _in_torch(torch, tensor):
    """A view of the file's private map."""
    dtype, packed = torch_dtype(torch, tensor)
    if packed:
        return _interop._torch_of_memory(torch, tensor.bitcast("U8"), torch.uint8).view(dtype)
    return _interop._torch_of_memory(torch, tensor, dtype)


def read_for_torch(torch, tensor):
    """A copy in memory of its own."""
    dtype, packed = torch_dtype(torch, tensor)
    shape = list(tensor.shape)
    if packed:
        shape[-1] //= 2
    if tensor.numel == 0:
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(_native.safetensors_read(tensor), dtype=torch.uint8 if packed else dtype)
    return flat.reshape(shape).view(dtype) if packed else flat.reshape(shape)


def torch_dtype(torch, tensor):
    """The dtype, and whether torch packs two values into one of its elements."""
    if tensor.dtype.startswith("F6_"):
        raise SafetensorError(f"Dtype not understood: {tensor.dtype}")
    packed = tensor.dtype == "F4"
    if packed and (not tensor.shape or tensor.shape[-1] % 2):
        shape = list(tensor.shape)
        raise SafetensorError(f"f4_x2 dtype requires that the last dim be divisible by 2 in torch: got {shape}")
    return _interop._torch_dtype(torch, tensor), packed


def _on_device(made, tensor):
    device = tensor.device
    return made if device == "cpu" else made.to(int(device) if device.isdigit() else device)


def read_for_numpy(tensor):
    """A copy in memory of its own."""
    import numpy

    dtype = _interop._numpy_dtype(numpy, tensor)
    return numpy.frombuffer(_native.safetensors_read(tensor), dtype).reshape(tensor.shape)
