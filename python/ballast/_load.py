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
        state = self.__dict__.get("state")
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(f"{self!r} has no attribute {name!r}")

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


def load(path, map_location=None, *, weights_only=True, mmap=None, root=None):
    """The object in a checkpoint of any format and age, as torch.load gives it.

    Tensors are torch's if torch is installed and has their dtype, and Ballast's own if not; they are mapped, and may be
    written to. Objects of unknown classes are Opaque. A file that names something dangerous is refused: nothing in it is ever run.

        map_location: where tensors go, as torch.load takes it
        weights_only: always True; False would mean to run what the file says
        mmap: False copies the tensors into memory
        root: a subtree of the object ("state_dict")
    """
    if not weights_only:
        raise ValueError(
            "weights_only=False would run what the file says, and Ballast runs nothing; "
            "leave it out: unknown objects are given as ballast.Opaque"
        )
    if hasattr(path, "read") and hasattr(path, "name") and not isinstance(path, (str, bytes, os.PathLike)):
        path = path.name  # a file that was opened by its name
    with _open(path, cache="ignore") as checkpoint:
        if checkpoint.dangerous:
            _refuse(checkpoint)
        makers = _Makers(map_location, mmap)
        loaded = _native.load(checkpoint, makers)
        if loaded is not None:
            found = loaded[0]
        else:
            found = {name: makers.tensor(tensor, False, False) for name, tensor in checkpoint.items()}
    return _at(found, root) if root else found


def _refuse(checkpoint):
    raise _native.Unsafe(
        f"{checkpoint.target}: names something dangerous: {', '.join(checkpoint.dangerous[:3])}"
        f"\n  hint: ballast.scan({checkpoint.target!r}) says what it would do"
    )


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
            raise _native.NoSuchTensor(f"there is nothing called {root!r} in the object")
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

    # --- tensors

    def tensor(self, tensor, is_parameter, is_array):
        if is_array:
            return tensor.numpy() if self._has_numpy() else tensor
        if self.torch is None:
            return tensor
        try:
            made = self._placed(tensor)
        except TypeError:  # a dtype that this torch has not
            return tensor
        return self.torch.nn.Parameter(made, requires_grad=made.is_floating_point()) if is_parameter else made

    def _placed(self, tensor):
        where = self.map_location
        if str(where) == "meta" or not tensor.has_data:
            from ._interop import _torch_dtype

            return self.torch.empty(tensor.shape, dtype=_torch_dtype(self.torch, tensor), device="meta")
        made = tensor.torch()
        if self.mmap is False:
            made = made.clone()
        if where is None:
            return made
        if isinstance(where, dict):
            return made.to(where["cpu"]) if "cpu" in where else made
        if callable(where):
            storage = made.untyped_storage() if hasattr(made, "untyped_storage") else made.storage()
            placed = where(storage, "cpu")
            return made if placed is None else made.to(placed.device)
        return made.to(where)

    def composite(self, layout, shape, parts):
        if self.torch is not None and layout == "sparse_coo" and {"indices", "values"} <= parts.keys():
            made = {name: self._placed(part) for name, part in parts.items()}
            return self.torch.sparse_coo_tensor(made["indices"], made["values"], shape)
        if self.torch is not None and layout == "sparse_csr" and {"crow_indices", "col_indices", "values"} <= parts.keys():
            made = {name: self._placed(part) for name, part in parts.items()}
            return self.torch.sparse_csr_tensor(made["crow_indices"], made["col_indices"], made["values"], shape)
        return Composite(layout, shape, {name: self.tensor(part, False, False) for name, part in parts.items()})

    def file(self, checkpoint):
        loaded = _native.load(checkpoint, self)
        if loaded is not None:
            return loaded[0]
        return {name: self.tensor(checkpoint[name], False, False) for name in checkpoint}

    @staticmethod
    def _has_numpy():
        try:
            import numpy  # noqa: F401
        except ImportError:
            return False
        return True

    # --- containers

    def make_set(self, items):
        return set(_hashable(items))

    def make_frozenset(self, items):
        return frozenset(_hashable(items))

    def shell(self, module, name, is_mapping):
        """What can be there before its children: a mapping, or an object of an unknown class."""
        if is_mapping:
            from collections import Counter, OrderedDict, defaultdict

            return {"defaultdict": defaultdict(), "Counter": Counter(), "dict": {}}.get(name, OrderedDict())
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


def _hashable(items):
    for item in items:
        try:
            hash(item)
        except TypeError:
            item = repr(item)
        yield item


def _size(makers, args, kwargs, state, items):
    values = tuple(args[0]) if args else ()
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


def _number(module, name):
    def make(makers, args, kwargs, state, items):
        return getattr(__import__(module), name)(*args)

    return make


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
    data = args[0]
    return bytearray(data.encode(args[1])) if isinstance(data, str) and args[1] in ("latin-1", "latin1") else bytearray(bytes(data))


def _small(kind):
    def make(makers, args, kwargs, state, items):
        if kind is bytes and args and isinstance(args[0], int):
            raise ValueError  # bytes(10**12) is a bomb
        return kind(*args)

    return make


def _sequence(kind):
    def make(makers, args, kwargs, state, items):
        return kind(_hashable([*(args[0] if args else ()), *items]))

    return make


def _namespace(makers, args, kwargs, state, items):
    import argparse

    return argparse.Namespace(**(state if isinstance(state, dict) else {}), **kwargs)


def _deque(makers, args, kwargs, state, items):
    from collections import deque

    return deque([*(args[0] if args else ()), *items], *args[1:2])


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
    ("builtins", "bytes"): _small(bytes),
    ("builtins", "bytearray"): _bytearray,
    ("builtins", "set"): _sequence(set),
    ("builtins", "frozenset"): _sequence(frozenset),
    ("builtins", "list"): lambda makers, args, kwargs, state, items: [*(args[0] if args else ()), *items],
    ("builtins", "tuple"): lambda makers, args, kwargs, state, items: tuple(args[0] if args else ()),
    ("_codecs", "encode"): _bytes,
    ("collections", "deque"): _deque,
    ("argparse", "Namespace"): _namespace,
    ("uuid", "UUID"): _uuid,
    ("decimal", "Decimal"): _number("decimal", "Decimal"),
    ("fractions", "Fraction"): _number("fractions", "Fraction"),
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
