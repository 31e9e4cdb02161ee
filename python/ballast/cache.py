"""The conversion cache: where it is, what it holds, clearing it.

This file is written by python/tools/make_verbs.py from the command itself.
"""

from ._run import run as _run

__all__ = ["path", "list", "clear"]


def path(
    target=None, *, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """Where the cache of a target lies or would lie.

        target: a file or a folder; without it, the folder of those that cannot lie beside
    """
    return _run(
        ('cache', 'path'),
        [("target", target)],
        {
            "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=False,
        json=False,
        progress=progress,
    )


def list(
    *, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False, cache_all=False,
    compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None, variant=None,
    subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """What there is, of what, how large, and whether it still counts.

    """
    return _run(
        ('cache', 'list'),
        [],
        {
            "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def clear(
    *targets, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """Remove all, or those of some targets.

        targets: only those of these
    """
    return _run(
        ('cache', 'clear'),
        [("targets", targets)],
        {
            "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )
