import os
from collections.abc import Iterable
from typing import Any

import torch

from . import _Backend

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]

_Tensors = dict[str, torch.Tensor]

_TYPES: dict[str, torch.dtype]
_SIZE: dict[torch.dtype, int]

def save(tensors: _Tensors, metadata: dict[str, str] | None = None) -> bytes: ...
def save_file(tensors: _Tensors, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None: ...
def load(data: bytes) -> _Tensors: ...
def load_file(filename: str | os.PathLike[str], device: Any = "cpu", *, backend: _Backend = "mmap") -> _Tensors: ...
def save_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None: ...
def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: Any = "cpu",
    *,
    backend: _Backend = "mmap",
) -> tuple[set[str], list[str]]: ...
def storage_ptr(tensor: torch.Tensor) -> int: ...
def storage_size(tensor: torch.Tensor) -> int: ...
def _end_ptr(tensor: torch.Tensor) -> int: ...
def _is_complete(tensor: torch.Tensor) -> bool: ...
def _find_shared_tensors(state_dict: _Tensors) -> list[set[str]]: ...
def _remove_duplicate_names(
    state_dict: _Tensors, *, preferred_names: Iterable[str] | None = None, discard_names: Iterable[str] | None = None
) -> dict[str, list[str]]: ...
