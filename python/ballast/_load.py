"""load(): the nested object of a checkpoint, as torch.load gives it, with nothing of the file imported or called."""

import os

from . import _native
from . import open as _open


class Opaque:
    """An object of a class that Ballast does not make: what it would have been, as data.

    `module` and `name` are the class, `args` and `kwargs` what it was given, `state` what it was to be set up with,
    `items` and `pairs` what was appended to it and set in it. Attributes of the state are attributes here, too.
    """

    def __init__(self, module, name):
        self.__dict__.update(module=module, name=name, args=(), kwargs={}, state=None, items=[], pairs=[])

    def __getattr__(self, name):
        # Protocols are looked up by such names (__array_interface__, _repr_html_), and the file must not answer them.
        state = self.__dict__.get("state")
        if not name.startswith(("__", "_repr_", "_ipython_")) and isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(f"an opaque object has no attribute {name!r}")

    def __dir__(self):
        state = self.state if isinstance(self.state, dict) else {}
        return [*super().__dir__(), *(key for key in state if isinstance(key, str))]

    def __repr__(self):
        return f"<opaque {self.module}.{self.name}>" if self.module else f"<opaque {self.name}>"

    def __reduce__(self):
        raise TypeError(f"{self!r} cannot be pickled: it only shows what the object would have been")


class Composite(dict):
    """A tensor that is kept in parts (sparse, quantized, nested), where torch is not there to make it."""

    def __init__(self, layout, shape, parts):
        super().__init__(parts)
        self.layout, self.shape = layout, shape


def load(path, map_location=None, *, weights_only=True, mmap=None, root=None, limits=None):
    """The object in a checkpoint of any format and age, as torch.load gives it.

    Tensors are torch's if torch is installed and has their dtype, and Ballast's own if not; they are mapped, and may be
    written to. Objects of unknown classes are Opaque. A file that names something dangerous is refused: nothing in it is ever run.

        map_location: where tensors go, as torch.load takes it
        weights_only: always True; False would mean to run what the file says
        mmap: False copies the tensors into memory
        root: a subtree of the object ("state_dict")
        limits: limits on input that are raised or lowered, as open() takes them: {"max_pickle_nodes": 100_000_000}
    """
    if not weights_only:
        raise ValueError(
            "weights_only=False would run what the file says, and Ballast runs nothing; "
            "leave it out: unknown objects are given as ballast.Opaque"
        )
    if hasattr(path, "read") and not isinstance(path, (str, bytes, os.PathLike)):
        name = getattr(path, "name", None)
        at_its_beginning = not hasattr(path, "tell") or path.tell() == 0
        path = name if isinstance(name, str) and at_its_beginning and os.path.exists(name) else path.read()
    with _open(path, cache="ignore", limits=limits) as checkpoint:
        if checkpoint.dangerous:
            _refuse(checkpoint)
        makers = _Makers(map_location, mmap)
        loaded = _native.load(checkpoint, makers)
        if loaded is not None:
            found = loaded[0]
        else:
            found = {name: makers.tensor(tensor) for name, tensor in checkpoint.items()}
    return _at(found, root) if root else found


def _refuse(checkpoint):
    error = _native.Unsafe(f"{checkpoint.target}: names something dangerous: {', '.join(checkpoint.dangerous[:3])}")
    error.where, error.hint = checkpoint.target, f"ballast.scan({checkpoint.target!r}) says what it would do"
    raise error


def _at(found, root):
    at = found
    parts = root.split(".")
    while parts:
        for length in range(len(parts), 0, -1):  # a key may have dots in it
            key = ".".join(parts[:length])
            if isinstance(at, dict) and key in at:
                at = at[key]
            elif isinstance(at, (list, tuple)) and key.isdigit() and int(key) < len(at):
                at = at[int(key)]
            elif isinstance(at, Opaque) and isinstance(at.state, dict) and key in at.state:
                at = at.state[key]
            else:
                continue
            parts = parts[length:]
            break
        else:
            error = _native.NoSuchTensor(f"there is nothing called {root!r} in the object")
            error.name = root
            raise error
    return at


def _torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


class _Makers:
    """Makes what is more than a number, a text or a container. The native half calls these by name."""

    def __init__(self, map_location, mmap):
        self.torch = _torch()
        self.map_location, self.mmap = map_location, mmap
        self.copies = {}  # by the storage: its bytes in memory, and what keeps its number its own

    # --- tensors

    def tensor(self, tensor, is_parameter=False, is_array=False, has_gradient=False):
        if is_array:
            return tensor.numpy() if self._has_numpy() else tensor
        from ._interop import fits_torch

        if self.torch is None or not fits_torch(self.torch, tensor):
            return tensor
        made = self._placed(tensor)
        if is_parameter:
            return self.torch.nn.Parameter(made, requires_grad=has_gradient)
        return made.requires_grad_() if has_gradient else made

    def _placed(self, tensor):
        where = self.map_location
        if str(where) == "meta" or not tensor.has_data:
            from ._interop import _torch_dtype, torch_shape

            return self.torch.empty(torch_shape(tensor), dtype=_torch_dtype(self.torch, tensor), device="meta")
        made = self._copied(tensor) if self.mmap is False else tensor.torch()
        if where is None:
            return made
        if isinstance(where, dict):
            return made.to(where["cpu"]) if "cpu" in where else made
        if callable(where):
            storage = made.untyped_storage() if hasattr(made, "untyped_storage") else made.storage()
            placed = where(storage, "cpu")
            return made if placed is None else made.to(placed.device)
        return made.to(where)

    def _copied(self, tensor):
        """The tensor in memory of its own, which it shares with the other tensors of its storage."""
        from ._interop import _torch_dtype

        dtype = _torch_dtype(self.torch, tensor)
        if tensor.numel == 0 or tensor.dtype == "F4" or any(stride < 0 for stride in tensor.strides):
            return tensor.torch().clone()
        number, whole, offset = tensor._storage()
        if number not in self.copies:
            self.copies[number] = bytearray(whole.tobytes()), whole
        flat = self.torch.frombuffer(self.copies[number][0], dtype=dtype, offset=offset)
        return flat.as_strided(tensor.shape, tensor.strides)

    def composite(self, layout, shape, parts):
        if self.torch is not None and layout == "sparse_coo" and {"indices", "values"} <= parts.keys():
            made = {name: self._placed(part) for name, part in parts.items()}
            return self.torch.sparse_coo_tensor(made["indices"], made["values"], shape)
        if self.torch is not None and layout == "sparse_csr" and {"crow_indices", "col_indices", "values"} <= parts.keys():
            made = {name: self._placed(part) for name, part in parts.items()}
            return self.torch.sparse_csr_tensor(made["crow_indices"], made["col_indices"], made["values"], shape)
        return Composite(layout, shape, {name: self.tensor(part) for name, part in parts.items()})

    def file(self, checkpoint):
        loaded = _native.load(checkpoint, self)
        if loaded is not None:
            return loaded[0]
        return {name: self.tensor(checkpoint[name]) for name in checkpoint}

    @staticmethod
    def _has_numpy():
        try:
            import numpy  # noqa: F401
        except ImportError:
            return False
        return True

    # --- containers

    def shell(self, module, name, is_mapping):
        """What can be there before its children: a mapping, or an object of an unknown class."""
        if is_mapping:
            from collections import Counter, OrderedDict, defaultdict

            return {"defaultdict": defaultdict(), "Counter": Counter(), "dict": {}}.get(name, OrderedDict())
        if (module, name) == ("argparse", "Namespace"):
            import argparse

            return argparse.Namespace()
        return None if (module, name) in _VALUES else Opaque(module, name)

    def finish_mapping(self, shell, args, state):
        if isinstance(state, dict):
            for key, value in state.items():
                if isinstance(key, str) and hasattr(shell, "__dict__"):
                    shell.__dict__[key] = value  # torch keeps the versions of modules in a state dict's _metadata
        factory = args[0] if args else None
        if hasattr(shell, "default_factory") and factory in (int, float, list, dict, set, str, tuple, bool):
            shell.default_factory = factory

    def finish(self, shell, args, kwargs, state, items, pairs):
        if not isinstance(shell, Opaque):  # a Namespace
            attributes = {**kwargs, **(state if isinstance(state, dict) else {})}
            shell.__dict__.update((key, value) for key, value in attributes.items() if isinstance(key, str))
            return
        shell.__dict__.update(args=args, kwargs=kwargs, state=state, items=items, pairs=pairs)

    # --- values

    def make_global(self, module, name):
        plain = {"int": int, "float": float, "list": list, "dict": dict, "set": set, "str": str, "tuple": tuple,
                 "bool": bool, "complex": complex, "bytes": bytes, "object": object}  # fmt: skip
        if module in ("builtins", "__builtin__") and name in plain:
            return plain[name]
        if module == "torch" and self.torch is not None:
            value = getattr(self.torch, name, None)
            if isinstance(value, (self.torch.dtype, self.torch.layout, self.torch.memory_format)):
                return value
        return Opaque(module, name)

    def make(self, module, name, args, kwargs, state, items, pairs):
        """An object whose class is in the table, or an Opaque if the class does not take what it was given."""
        maker = _VALUES.get((module, name))
        try:
            if maker is not None:
                return maker(self, args, kwargs, state, items)
        except Exception:  # noqa: BLE001: the arguments come from the file
            pass
        made = Opaque(module, name)
        self.finish(made, args, kwargs, state, items, pairs)
        return made


def _listed(value):
    """The items of what a pickle holds as a list; a range of 10**12 numbers, or an object, is none."""
    if not isinstance(value, (list, tuple, set, frozenset, dict, str, bytes)):
        raise ValueError
    return list(value)


def _plain_items(value):
    """Items that are hashed at once, however they were made."""
    items = _listed(value)
    if not all(isinstance(item, (int, float, complex, str, bytes, type(None))) for item in items):
        raise ValueError
    return items


def _size(makers, args, kwargs, state, items):
    values = tuple(_listed(args[0])) if args else ()
    return makers.torch.Size(values) if makers.torch is not None else values


def _device(makers, args, kwargs, state, items):
    if makers.torch is not None:
        return makers.torch.device(*args)
    return ":".join(str(part) for part in args)


def _datetime(name):
    def make(makers, args, kwargs, state, items):
        import datetime

        return getattr(datetime, name)(*args)

    return make


def _uuid(makers, args, kwargs, state, items):
    import uuid

    return uuid.UUID(int=state["int"]) if isinstance(state, dict) else uuid.UUID(*args)


def _decimal(makers, args, kwargs, state, items):
    import decimal

    return decimal.Decimal(*args)


def _fraction(makers, args, kwargs, state, items):
    import fractions
    import re

    # Fraction("1e1000000000") would compute that power.
    if not all(isinstance(a, int) or (isinstance(a, str) and re.fullmatch(r"-?\d{1,4000}(/\d{1,4000})?", a)) for a in args):
        raise ValueError
    return fractions.Fraction(*args)


def _path(name):
    def make(makers, args, kwargs, state, items):
        import pathlib

        # A path of the other system cannot be made here; the pure one names it all the same.
        return getattr(pathlib, name)(*args) if name.startswith("Pure") else pathlib.PurePath(*args)

    return make


def _bytes(makers, args, kwargs, state, items):
    text, encoding = args
    if encoding not in ("latin1", "latin-1"):
        raise ValueError
    return text.encode("latin1")


def _bytearray(makers, args, kwargs, state, items):
    if not args:
        return bytearray()
    if isinstance(args[0], str) and args[1] in ("latin-1", "latin1"):
        return bytearray(args[0].encode("latin1"))
    if not isinstance(args[0], (bytes, bytearray)):  # a number would be a size
        raise ValueError
    return bytearray(args[0])


def _plain_bytes(makers, args, kwargs, state, items):
    if args and not isinstance(args[0], (bytes, list, tuple)):
        raise ValueError
    return bytes(*args)


def _small(kind):
    def make(makers, args, kwargs, state, items):
        return kind(*args)

    return make


def _sequence(kind):
    def make(makers, args, kwargs, state, items):
        return kind([*(_plain_items(args[0]) if args else ()), *_plain_items(items)])

    return make


def _deque(makers, args, kwargs, state, items):
    from collections import deque

    return deque([*(_listed(args[0]) if args else ()), *items], *args[1:2])


def _numpy_scalar(makers, args, kwargs, state, items):
    import numpy

    return numpy.frombuffer(args[1], args[0])[0]


def _numpy_dtype(makers, args, kwargs, state, items):
    import numpy

    made = numpy.dtype(args[0])
    order = state[1] if isinstance(state, tuple) and len(state) > 1 else "="
    if made.hasobject:
        raise ValueError
    return made.newbyteorder(order) if order in "<>" else made


# Every class that is made, and how. All of these are values: making one reads no file and runs nothing of the pickle.
_VALUES = {
    ("builtins", "complex"): _small(complex),
    ("builtins", "range"): _small(range),
    ("builtins", "xrange"): _small(range),
    ("builtins", "slice"): _small(slice),
    ("builtins", "bytes"): _plain_bytes,
    ("builtins", "bytearray"): _bytearray,
    ("builtins", "set"): _sequence(set),
    ("builtins", "frozenset"): _sequence(frozenset),
    ("builtins", "list"): lambda makers, args, kwargs, state, items: [*(_listed(args[0]) if args else ()), *items],
    ("builtins", "tuple"): lambda makers, args, kwargs, state, items: tuple(_listed(args[0]) if args else ()),
    ("_codecs", "encode"): _bytes,
    ("collections", "deque"): _deque,
    ("uuid", "UUID"): _uuid,
    ("decimal", "Decimal"): _decimal,
    ("fractions", "Fraction"): _fraction,
    ("torch", "Size"): _size,
    ("torch", "device"): _device,
    ("numpy", "dtype"): _numpy_dtype,
    **{("datetime", name): _datetime(name) for name in ("date", "datetime", "time", "timedelta", "timezone")},
    **{
        (module, name): _path(name)
        for module in ("pathlib", "pathlib._local")
        for name in ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath")
    },
    **{
        (module, "scalar"): _numpy_scalar
        for module in ("numpy.core.multiarray", "numpy._core.multiarray", "numpy.core._multiarray_umath")
    },
}
