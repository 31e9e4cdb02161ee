"""PEFT's functions for saving and loading adapters, on dictionaries or on models.

    from ballast.peft import get_peft_model_state_dict, load_peft_weights, set_peft_model_state_dict

Where PEFT takes a model, these take a model (anything with `peft_config` and `state_dict()`), or a state dict and the
configuration (a dict, PEFT's own object, or the path of an adapter_config.json). Tensors are torch's if torch is
installed, and Ballast's own if not. Neither PEFT nor torch is needed.
"""

import os
from collections import namedtuple
from collections.abc import Mapping

from . import _native, _remote

__all__ = ["get_peft_model_state_dict", "load_peft_weights", "set_peft_model_state_dict"]


class SetResult(namedtuple("SetResult", ["missing_keys", "unexpected_keys"])):
    """The names that the adapter had no tensor for, and those that the state had no place for.

    For a state dict, `state` is the new one; `mismatched_keys` have another shape in the adapter.
    """

    def __new__(cls, missing, unexpected, mismatched=(), state=None):
        made = super().__new__(cls, missing, unexpected)
        made.mismatched_keys, made.state = list(mismatched), state
        return made


def load_peft_weights(model_id, device=None, key_mapping=None, *, subfolder=None, **hf_hub_download_kwargs):
    """The tensors of an adapter in a folder or in a repository of the Hugging Face Hub, by the names of its file.

        device: where the tensors go; by default an accelerator if torch has one, else the cpu
        key_mapping: {regular expression: replacement} for names without "base_model.model."
        subfolder: of the folder, if several adapters lie in it

    Other keywords are those of a download, and mean nothing for a folder: revision, token, cache_dir, local_files_only.
    """
    rules = list((key_mapping or {}).items())
    target, remote = os.fsdecode(os.fspath(model_id)), hf_hub_download_kwargs
    if remote.get("revision") and not os.path.exists(target):
        target = (target if "://" in target else "hf://" + target) + "@" + remote["revision"]
    said = _remote(remote.get("token"), remote.get("cache_dir"), bool(remote.get("local_files_only")))
    tensors, _, _ = _native.adapter_load(target, subfolder or "", rules, said)
    torch = _torch()
    if torch is None:
        return tensors
    where = _infer_device(torch) if device is None else device
    return {name: tensor.torch().to(where) for name, tensor in tensors.items()}


def get_peft_model_state_dict(
    model, state_dict=None, adapter_name="default", unwrap_compiled=False, save_embedding_layers="auto", *, config=None
):
    """What PEFT saves of an adapter: the tensors of `adapter_name`, without that name in theirs.

        model: a PeftModel; or a state dict, and then the configuration as the second argument or as config=
        save_embedding_layers: True, False, or "auto": if the adapter changes them
    """
    if isinstance(model, Mapping):
        state, found = model, state_dict if config is None else config
    else:
        if unwrap_compiled:
            model = getattr(model, "_orig_mod", model)
        state = model.state_dict() if state_dict is None else state_dict
        found = model.peft_config[adapter_name] if config is None else config
    text = _config_text(found)
    embeddings = {True: "always", False: "never", "auto": "auto"}.get(save_embedding_layers)
    if embeddings is None:
        raise ValueError(f"save_embedding_layers is True, False or 'auto', not {save_embedding_layers!r}")

    def run(tensors):
        return _native.adapter_get(tensors, text, adapter_name, embeddings, 0)

    listed = _tried(run, state)
    return {name: _origin(entry, state) for name, entry in listed.items()}


def set_peft_model_state_dict(
    model, peft_model_state_dict, adapter_name="default", ignore_mismatched_sizes=False, low_cpu_mem_usage=False, *,
    config=None,
):
    """Puts the tensors of an adapter into a model, and says what did not fit.

        model: a PeftModel; or a state dict, and then config= is needed, and the result's `state` is the new one
        ignore_mismatched_sizes: leave out tensors that do not fit, instead of an error
    """
    is_state = isinstance(model, Mapping)
    if is_state and config is None:
        raise TypeError("a state dict does not say what kind of adapter it is: give config=")
    state = model if is_state else model.state_dict()
    text = _config_text(model.peft_config[adapter_name] if config is None else config)

    def run(tensors, adapter):
        return _native.adapter_set(tensors, adapter, text, adapter_name, ignore_mismatched_sizes)

    listed, missing, unexpected, mismatched = _tried(run, state, peft_model_state_dict)
    if is_state:
        new = {name: _origin(entry, state, peft_model_state_dict) for name, entry in listed.items()}
        return SetResult(missing, unexpected, mismatched, new)
    added = {
        name: _origin(entry, state, peft_model_state_dict)
        for name, entry in listed.items()
        if entry[0] is None or entry[0][0] == 1
    }
    options = {"assign": True} if low_cpu_mem_usage else {}
    model.load_state_dict(added, strict=False, **options)
    return SetResult(missing, unexpected, mismatched)


def _config_text(config):
    """The configuration as JSON: of a dict, of PEFT's own object, or of a file."""
    from json import dumps

    if config is None:
        raise TypeError("a state dict does not say what kind of adapter it is: give its configuration")
    if isinstance(config, (str, os.PathLike)):
        path = os.path.join(config, "adapter_config.json") if os.path.isdir(config) else config
        with open(path, encoding="utf-8") as file:
            return file.read()
    fields = config.to_dict() if hasattr(config, "to_dict") else dict(config)
    return dumps({key: _plain(value) for key, value in fields.items()})


def _plain(value):
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "value") and not isinstance(value, (str, int, float)):
        return value.value  # an enum
    return value.value if type(value).__module__ != "builtins" and hasattr(value, "value") else value


def _tried(run, *states):
    """Runs on dtypes and shapes alone, so that nothing is copied; on the values if some are needed."""
    metas = [{name: _meta(tensor) for name, tensor in state.items()} for state in states]
    try:
        result = run(*metas)
        listed = result[0] if isinstance(result, tuple) else result
        if all(origin is not None for origin, _ in listed.values()):
            return result
    except _native.Unsupported:
        pass  # a tensor was read, which has no values here
    from ._interop import to_tensor

    return run(*[{name: to_tensor(tensor, name) for name, tensor in state.items()} for state in states])


def _meta(tensor):
    from ._interop import FROM_NAME, TORCH

    word = str(tensor.dtype).removeprefix("torch.")
    by_torch = {word: dtype for dtype, word in TORCH.items()}
    return _native.meta_tensor(by_torch.get(word) or FROM_NAME.get(word) or word, list(tensor.shape))


def _origin(entry, *states):
    """The very tensor that was given, where it is unchanged; else what was made of it."""
    origin, tensor = entry
    if origin is not None:
        return states[origin[0]][origin[1]]
    return tensor.torch() if _torch() is not None else tensor


def _torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


def _infer_device(torch):
    for name in ("cuda", "mps", "xpu", "npu", "mlu"):
        backend = getattr(torch, name, None) or getattr(torch.backends, name, None)
        if backend is not None and hasattr(backend, "is_available") and backend.is_available():
            return name
    return "cpu"
