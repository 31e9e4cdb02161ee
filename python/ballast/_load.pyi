from collections.abc import Iterable, Mapping
from typing import Any, Literal

class Opaque:
    module: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: Any
    items: list[Any]
    pairs: list[tuple[Any, Any]]
    def __init__(self, module: str, name: str) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Composite(dict[str, Any]):
    layout: str
    shape: tuple[int, ...]
    def __init__(self, layout: str, shape: tuple[int, ...], parts: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None: ...

def load(
    path: Any,
    map_location: Any = None,
    *,
    weights_only: Literal[True] = True,
    mmap: bool | None = None,
    root: str | None = None,
    limits: Mapping[str, int] | None = None,
) -> Any: ...
