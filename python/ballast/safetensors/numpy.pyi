import os
from typing import Any

import numpy as np

from . import _Backend

__all__ = ["load", "load_file", "save", "save_file"]

_Arrays = dict[str, np.ndarray[Any, Any]]

_TYPES: dict[str, type[np.generic]]

def save(tensor_dict: _Arrays, metadata: dict[str, str] | None = None) -> bytes: ...
def save_file(
    tensor_dict: _Arrays, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None: ...
def load(data: bytes) -> _Arrays: ...
def load_file(filename: str | os.PathLike[str], *, backend: _Backend = "mmap") -> _Arrays: ...
