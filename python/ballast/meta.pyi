# This file is written by python/tools/make_verbs.py from the command itself.
from collections.abc import Iterable

from ._run import Report, _File, _Pairs, _Progress

__all__ = ["get", "set", "unset"]

def get(
    target: _File,
    key: str | None = None,
    *,
    threads: int | None = None,
    root: str | None = None,
    weights_only: bool = False,
    single: bool = False,
    block_endian: str | None = None,
    cache: bool = False,
    cache_all: bool = False,
    compress_cache: bool = False,
    no_cache: bool = False,
    lenient: bool = False,
    limits: _Pairs | None = None,
    progress: _Progress | None = None,
) -> Report: ...

def set(
    target: _File,
    metadata: _Pairs | None = None,
    *,
    no_sync: bool = False,
    threads: int | None = None,
    root: str | None = None,
    weights_only: bool = False,
    single: bool = False,
    block_endian: str | None = None,
    cache: bool = False,
    cache_all: bool = False,
    compress_cache: bool = False,
    no_cache: bool = False,
    lenient: bool = False,
    limits: _Pairs | None = None,
    progress: _Progress | None = None,
) -> Report: ...

def unset(
    target: _File,
    keys: str | Iterable[str] | None = None,
    *,
    no_sync: bool = False,
    threads: int | None = None,
    root: str | None = None,
    weights_only: bool = False,
    single: bool = False,
    block_endian: str | None = None,
    cache: bool = False,
    cache_all: bool = False,
    compress_cache: bool = False,
    no_cache: bool = False,
    lenient: bool = False,
    limits: _Pairs | None = None,
    progress: _Progress | None = None,
) -> Report: ...
