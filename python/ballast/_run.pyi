from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Protocol

from ._native import Checkpoint

# The types of arguments, for the stubs of the verbs.
_Path = str | PathLike[str]
_File = str | bytes | PathLike[str] | Checkpoint  # of an open checkpoint, its file
_Target = str | bytes | PathLike[str] | Checkpoint | Mapping[str, Any]  # of a mapping, its tensors
_Pairs = str | Iterable[str] | Mapping[str, Any]  # "KEY=VALUE", several, or {KEY: VALUE}

class _Updatable(Protocol):
    """What progress needs of tqdm."""

    total: Any
    def update(self, n: Any, /) -> object: ...

_Progress = bool | Callable[[str, int, int], object] | _Updatable | type

class Report:
    exit_code: int
    said: list[str]
    def __init__(self, fields: dict[str, Any], exit_code: int = 0, said: Iterable[str] = ()) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def to_dict(self) -> dict[str, Any]: ...

def run(
    verb: tuple[str, ...],
    positionals: Iterable[tuple[str, Any]],
    options: Mapping[str, Any],
    *,
    objects: bool,
    json: bool,
    progress: _Progress | None = None,
) -> Report: ...
