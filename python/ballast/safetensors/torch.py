"""safetensors files of torch tensors and modules."""

import torch

from ._bytes import CODES, TensorSpec, serialize, serialize_file, tensors_in
from ._open import read_for_torch, safe_open

# What this torch has of the format's dtypes.
_TYPES = {code: getattr(torch, word) for word, code in CODES.items() if hasattr(torch, word)}
# The bytes of an element. torch counts a pair of F4 values as one.
_SIZE = {dtype: torch.empty((), dtype=dtype).element_size() for dtype in _TYPES.values()}

_MORE = "https://huggingface.co/docs/safetensors/torch_shared_tensors"

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]


def save(tensors, metadata=None):
    """The bytes of a safetensors file of these tensors."""
    plain = _plain_tensors(tensors)
    return serialize(_specs_of(plain), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes these tensors to a safetensors file."""
    plain = _plain_tensors(tensors)
    serialize_file(_specs_of(plain), filename, metadata=metadata)


def load(data):
    """The tensors of a safetensors file in memory, as copies."""
    return {name: read_for_torch(torch, tensor) for name, tensor in tensors_in(data).items()}


def load_file(filename, device="cpu", *, backend="mmap"):
    """The tensors of a safetensors file. On the CPU they are views of a private map: writing to one does not change
    the file."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Writes the state dict of a module. Of tensors that share memory one is kept; the metadata name the others."""
    state_dict = model.state_dict()
    duplicates = _remove_duplicate_names(state_dict)
    if duplicates:
        metadata = dict(metadata or {})
    for kept, removed in duplicates.items():
        for name in removed:
            metadata.setdefault(name, kept)
            del state_dict[name]
    if force_contiguous:
        state_dict = {name: tensor.contiguous() for name, tensor in state_dict.items()}
    try:
        save_file(state_dict, filename, metadata=metadata)
    except ValueError as error:
        advice = " Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        raise ValueError(str(error) + advice) from None


def load_model(model, filename, strict=True, device="cpu", *, backend="mmap"):
    """Loads a file of save_model() into a module: (names that the file lacks, names that the module lacks)."""
    state_dict = load_file(filename, device=device, backend=backend)
    duplicates = _remove_duplicate_names(model.state_dict(), preferred_names=state_dict.keys())
    missing, unexpected = model.load_state_dict(state_dict, strict=False)
    missing, unexpected = set(missing), list(unexpected)
    for removed in duplicates.values():
        for name in removed:
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        raise RuntimeError(_difference(type(model).__name__, missing, unexpected))
    return missing, unexpected


def _difference(model_name, missing, unexpected):
    lines = [f"Error(s) in loading state_dict for {model_name}:"]
    for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            quoted = ", ".join(f'"{name}"' for name in sorted(names))
            lines.append(f"    {kind} key(s) in state_dict: {quoted}")
    return "\n".join(lines)


def storage_ptr(tensor):
    """The address of the storage behind a tensor; 0 if there is none."""
    try:
        return _storage(tensor).data_ptr()
    except (NotImplementedError, RuntimeError):  # meta tensors, and those of some compilers
        return 0


def storage_size(tensor):
    """The bytes of the storage behind a tensor."""
    try:
        return _storage(tensor).nbytes()
    except (NotImplementedError, RuntimeError):
        return tensor.nelement() * _SIZE[tensor.dtype]


def _storage(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def _end_ptr(tensor):
    """The address behind the last element."""
    if tensor.nelement() == 0:
        return tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * _SIZE[tensor.dtype]


def _is_complete(tensor):
    """Whether a tensor is all of its storage."""
    size = tensor.nelement() * _SIZE[tensor.dtype]
    if tensor.device.type == "meta":
        return size == storage_size(tensor)
    return tensor.data_ptr() == storage_ptr(tensor) and size == storage_size(tensor)


def _find_shared_tensors(state_dict):
    """Sets of names whose tensors overlap in memory; a tensor that shares nothing is a set of its own."""
    by_storage = {}
    for name, tensor in state_dict.items():
        address, size = storage_ptr(tensor), storage_size(tensor)
        if tensor.device.type != "meta" and address and size:
            by_storage.setdefault((tensor.device, address, size), []).append(name)
    return [group for names in by_storage.values() for group in _overlapping(names, state_dict)]


def _overlapping(names, state_dict):
    if len(names) == 1:
        return [set(names)]
    areas = sorted((state_dict[name].data_ptr(), _end_ptr(state_dict[name]), name) for name in names)
    groups, end = [], None
    for first, last, name in areas:
        if end is None or first >= end:
            groups.append(set())
        groups[-1].add(name)
        end = last
    return groups


def _remove_duplicate_names(state_dict, *, preferred_names=None, discard_names=None):
    """Which name to keep of tensors that share memory, and which to leave out for it: {kept: [removed, ...]}.

    A kept tensor is all of its storage. Names in `preferred_names` are kept before others, those in `discard_names`
    after others.
    """
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed = {}
    for names in _find_shared_tensors(state_dict):
        complete = {name for name in names if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for "
                f"saving amongst: {names}. None is covering the entire storage.Refusing to save/load the model since "
                "you could be storing much more memory than needed. Please refer to "
                f"{_MORE} for more information. Or open an issue."
            )
        kept = min(complete & preferred or complete - discarded or complete)
        others = sorted(names - {kept})
        if others:
            removed[kept] = others
    return removed


def _plain_tensors(tensors):
    """The tensors as they go into a file: checked, and in this machine's memory. They must outlive their addresses."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support. You can make it "
            "a dense tensor before saving with `.to_dense()` but be aware this might make a much larger file than "
            "needed."
        )
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            "\n            Some tensors share memory, this will lead to duplicate memory on disk and potential "
            f"differences when loading them again: {shared}.\n            A potential way to correctly save your model "
            f"is to use `save_model`.\n            More information at {_MORE}\n        "
        )
    return {name: _plain(name, tensor) for name, tensor in tensors.items()}


def _plain(name, tensor):
    if not tensor.is_contiguous():
        raise ValueError(
            f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are "
            "trying to save tensors which are reference of each other in which case it's recommended to save only the "
            "full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before "
            "saving."
        )
    _ = _SIZE[tensor.dtype]  # a KeyError for a dtype that the format does not have
    # A conjugate or negative view has the memory of what it is a view of.
    return tensor.detach().resolve_conj().resolve_neg().to("cpu")


def _specs_of(tensors):
    return {
        name: TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=tensor.data_ptr(),
            data_len=tensor.nelement() * _SIZE[tensor.dtype],
        )
        for name, tensor in tensors.items()
    }
