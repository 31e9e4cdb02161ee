# This file is written by python/tools/make_verbs.py from the command itself.
from collections.abc import Iterable

from ._run import Report, _File, _Pairs, _Path, _Progress

__all__ = ["info"]

def info(
    file: _File,
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
    dequantize: bool = False,
    lenient: bool = False,
    limits: _Pairs | None = None,
    variant: str | None = None,
    subfolder: _Path | None = None,
    header: str | Iterable[str] | None = None,
    netrc: bool = False,
    ca_file: _Path | None = None,
    plain_http: bool = False,
    offline: bool = False,
    progress: _Progress | None = None,
) -> Report: ...
