"""Read or edit metadata, in place where it fits.

This file is written by python/tools/make_verbs.py from the command itself.
"""

from ._run import run as _run

__all__ = ["get", "set", "unset"]


def get(
    target, key=None, *, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """All metadata, or the value of one key.

        target: a file, a folder, an index, https://, hf://, s3://, or - for stdin
        key: print only the value of this key
    """
    return _run(
        ('meta', 'get'),
        [("target", target), ("text", key)],
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


def set(
    target, metadata=None, *, no_sync=False, threads=None, root=None, weights_only=False, single=False,
    block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False,
    lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """Add or replace keys.

        target: a file
        metadata: what to set
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('meta', 'set'),
        [("target", target), ("texts", metadata)],
        {
            "no-sync": no_sync, "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )


def unset(
    target, keys=None, *, no_sync=False, threads=None, root=None, weights_only=False, single=False,
    block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False,
    lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """Remove keys.

        target: a file
        keys: what to remove
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('meta', 'unset'),
        [("target", target), ("texts", keys)],
        {
            "no-sync": no_sync, "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )
