"""What an importance matrix of llama.cpp holds.

This file is written by python/tools/make_verbs.py from the command itself.
"""

from ._run import run as _run

__all__ = ["info"]


def info(
    file, *, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """Which text it was measured on, and what it says about each tensor.

        file: what llama-imatrix wrote, of either format
    """
    return _run(
        ('imatrix', 'info'),
        [("target", file)],
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
