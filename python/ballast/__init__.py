"""Ballast opens every model checkpoint: safely, lazily, without copies, and without torch or NumPy.

    >>> import ballast
    >>> with ballast.open("examples/tiny.safetensors") as checkpoint:
    ...     embed = checkpoint["model.embed.weight"]
    >>> embed
    <ballast.Tensor BF16 [32, 16]>
    >>> embed[0, :4].tolist()
    [...]

Arrays live on after the checkpoint is closed, and may be written to: the file stays as it is.
"""

from collections.abc import ItemsView, KeysView, Mapping, ValuesView

try:
    from . import _native
except ImportError as error:
    if "_native" not in str(error) or "cannot import name" not in str(error):
        raise
    raise ImportError(
        "ballast has no native module here: this is its source folder. Start Python in another folder, "
        "or with ./dev python, which builds the module"
    ) from None
if not _native.is_main_interpreter():
    raise ImportError("ballast works in the main interpreter only, not in a sub-interpreter")
from ._native import (
    AlreadyExists,
    Cancelled,
    Changed,
    Checkpoint,
    Error,
    IOFailed,
    InvalidArgument,
    Malformed,
    Mismatch,
    NoPermission,
    NoSuchTensor,
    NotFound,
    OverLimit,
    Tensor,
    Unsafe,
    Unsupported,
)

__version__ = _native.version

_VERBS = ("info", "ls", "stats", "hash", "scan", "verify", "check", "diff", "view", "convert", "fetch", "plan")
_ELSEWHERE = {"Composite": "._load", "Opaque": "._load", "Report": "._run", "load": "._load", "patch": "._patch"}
_MODULES = ("adapter", "cache", "gguf", "imatrix", "meta", "peft", "safetensors")

__all__ = [
    "AlreadyExists", "Cancelled", "Changed", "Checkpoint", "Error", "IOFailed", "InvalidArgument", "Malformed", "Mismatch",
    "NoPermission", "NoSuchTensor", "NotFound", "OverLimit", "Tensor", "Unsafe", "Unsupported", "open", "save",
    *_ELSEWHERE, *_VERBS, *_MODULES,
]  # fmt: skip


def open(
    target,
    *,
    device="cpu",
    root=None,
    safety="inert",
    cache="use",
    lenient=False,
    dequantize=False,
    conversions=None,
    limits=None,
    threads=0,
    progress=None,
    variant=None,
    subfolder=None,
    token=None,
    cache_dir=None,
    headers=None,
    offline=False,
):
    """Opens a checkpoint of any format: a file, a folder, an index, an address (https://…, hf://org/name, s3://…), bytes,
    or an object with read(offset, size).

    Only headers are read. The result is a mapping of names to lazy tensors, and a context manager. What the read() of an
    object raises is the __cause__ of the error.

        >>> len(open("examples/tiny.safetensors"))
        12

        device: where t.torch() puts tensors
        root: a subtree of a nested checkpoint ("state_dict"), whose prefix is dropped
        safety: "inert" (unknown classes are kept as data, and never run), or "strict" to refuse what torch.load(weights_only=True) refuses
        cache: "use" a cache that is there, "ignore" it, or make one: "automatic", "always"
        lenient: forgive what real files are known to get wrong, with a note for each
        dequantize: weights that are kept quantized (GPTQ, AWQ, NF4, FP8, …) as the numbers that they stand for
        conversions: tensors as transformers has them, with experts stacked and old names replaced: "auto" by the
            model_type of config.json, or a model_type such as "mixtral"
        limits: limits on input that are raised or lowered, such as {"max_tensors": 1000}: max_header_bytes,
            max_index_bytes, max_tensors, max_metadata_keys, max_rank, max_json_depth, max_shards, max_archive_members,
            max_archive_depth, max_inflated_bytes, max_pickle_bytes, max_pickle_nodes, max_values, max_expansion_bytes,
            max_expansion_ratio
        variant: of a folder with several: "fp16" takes model.fp16.safetensors
        subfolder: of the target
        token, cache_dir, offline: of the Hugging Face Hub; by default what HF_TOKEN, HF_HUB_CACHE and the like say
        headers: to be sent to the host of an address
    """
    if hasattr(target, "__fspath__"):
        import os

        target = os.fsdecode(os.fspath(target))
    if progress is not None:
        from ._run import _progress

        progress = _progress(progress)
    remote = _remote(token, cache_dir, offline, headers)
    opened = _native.open(target, str(device), root or "", safety, cache, lenient, dequantize, limits or {}, threads, progress, variant or "", subfolder or "", remote)
    return _native.with_conversions(opened, conversions, remote) if conversions else opened


def _remote(token=None, cache_dir=None, offline=False, headers=None):
    """What was said about targets that are addresses; what was not is up to the environment."""
    import os

    said = {
        "token": token if isinstance(token, str) else None,
        "cache_dir": None if cache_dir is None else os.fsdecode(os.fspath(cache_dir)),
        "offline": offline or None,
        "headers": None if headers is None else dict(headers),
    }
    return {key: value for key, value in said.items() if value is not None}


def save(tensors, path, *, metadata=None, **options):
    """Saves a dict of tensors (of torch, NumPy, or any producer of DLPack or buffers) or a checkpoint to a file.

    The format follows from the ending of the path; options are those of convert().

        >>> from array import array
        >>> report = save({"a": array("f", [1, 2])}, "a.safetensors", force=True)
        >>> open("a.safetensors")["a"].tolist()
        [1.0, 2.0]
    """
    from ._interop import checkpoint_of
    from ._verbs import convert

    return convert(checkpoint_of(tensors, metadata or {}), path, **options)


# A class of pybind11 cannot have an abstract base class, so what Mapping would add is added here.
Mapping.register(Checkpoint)
Checkpoint.keys = lambda self: KeysView(self)
Checkpoint.values = lambda self: ValuesView(self)
Checkpoint.items = lambda self: ItemsView(self)


def _repr_html_(self):
    from ._interop import html_table

    return html_table(self)


def _equals(self, other, /):
    if self is other or not isinstance(other, Mapping):
        return True if self is other else NotImplemented
    raise TypeError("== does not compare checkpoints: ballast.diff(a, b).equal does, by their tensors' values")


Checkpoint._repr_html_ = _repr_html_
Checkpoint.__eq__, Checkpoint.__hash__ = _equals, object.__hash__
del _equals, _repr_html_


def __getattr__(name):
    if name in _VERBS:
        from . import _verbs

        value = getattr(_verbs, name)
    elif name in _MODULES:
        from importlib import import_module

        value = import_module("." + name, __name__)
    elif name in _ELSEWHERE:
        from importlib import import_module

        value = getattr(import_module(_ELSEWHERE[name], __name__), name)
    else:
        raise AttributeError(f"module 'ballast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
