"""The verbs of the command as functions.

This file is written by python/tools/make_verbs.py from the command itself.
"""

from ._run import run as _run

__all__ = ["info", "ls", "stats", "hash", "scan", "verify", "check", "diff", "view", "convert", "fetch", "plan"]


def info(
    *targets, context=None, include=None, exclude=None, threads=None, root=None, weights_only=False, single=False,
    block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False,
    lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """What is this: format, parameters, dtypes, the model, metadata.

        targets: files, folders, indexes, https://, hf://, s3://, or - for stdin
        context: for how many tokens the KV cache is estimated (4096)
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
    """
    return _run(
        ('info',),
        [("targets", targets)],
        {
            "context": context, "include": include, "exclude": exclude, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def ls(
    target, globs=None, *, include=None, exclude=None, dtype=None, min_size=None, max_size=None, duplicates=False,
    sort=None, reverse=False, top=None, long=False, tree=False, depth=None, threads=None, root=None,
    weights_only=False, single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False,
    no_cache=False, dequantize=False, lenient=False, limits=None, variant=None, subfolder=None, header=None,
    netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """One tensor a line: name, dtype, shape, bytes.

        target: a file, a folder, an index, https://, hf://, s3://, or - for stdin
        globs: only tensors whose full name matches one of these; or a part of names
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
        dtype: only tensors of these dtypes: F16,BF16
        min_size: only tensors of at least so many bytes: 10MB, 1GiB, 512K
        max_size: only tensors of at most so many bytes
        duplicates: only tensors with the bytes of another one, in groups
        sort: by bytes or numel, largest first; by name, dtype, shape or file, ascending
        reverse: the other way round
        top: only the first N, 0 is all; the largest, unless there is sort
        long: a column with the number of elements, too
        tree: what lies under each prefix of names, with layers of one kind folded
        depth: of the tree, only so many levels, 0 is all; implies tree
    """
    return _run(
        ('ls',),
        [("target", target), ("texts", globs)],
        {
            "include": include, "exclude": exclude, "dtype": dtype, "min-size": min_size, "max-size": max_size,
            "duplicates": duplicates, "sort": sort, "reverse": reverse, "top": top, "long": long, "tree": tree,
            "depth": depth, "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def stats(
    target, globs=None, *, problems=False, outlier_factor=None, quantiles=None, long=False, axis=None, top=None,
    histogram=False, bins=None, include=None, exclude=None, threads=None, root=None, weights_only=False,
    single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False,
    dequantize=False, lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False,
    ca_file=None, plain_http=False, offline=False, progress=None
):
    """Min, max, mean, std, a histogram; or problems: NaN, Inf, zeros.

        target: a file, a folder, an index, https://, hf://, s3://, or - for stdin
        globs: only tensors whose full name matches one of these
        problems: only tensors with NaN, Inf, nothing but zeros, constant rows, or an odd spread; exit 1 if there
            are any
        outlier_factor: with problems: odd is above X times the median of its pattern, or below a part of X; 8 by
            default
        quantiles: exact ones, such as 0.01,0.5,0.99; without a value 0, 0.01, 0.25, 0.5, 0.75, 0.99, 1; repeatable
        long: norms, and the share of values farther than 6 std from the mean
        axis: a line for each index of dimension N; -1 is the last one
        top: with axis, the N channels with the largest magnitudes; 0 is all, 20 on a terminal
        histogram: a small histogram for each tensor; one tensor always has a large one
        bins: of the histogram; implies histogram
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
    """
    return _run(
        ('stats',),
        [("target", target), ("texts", globs)],
        {
            "problems": problems, "outlier-factor": outlier_factor, "quantiles": quantiles, "long": long,
            "axis": axis, "top": top, "histogram": histogram, "bins": bins, "include": include, "exclude": exclude,
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


def hash(
    target, globs=None, *, digest=False, decoded=False, include=None, exclude=None, threads=None, root=None,
    weights_only=False, single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False,
    no_cache=False, dequantize=False, lenient=False, limits=None, variant=None, subfolder=None, header=None,
    netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """A SHA-256 for each tensor and one for all, whatever the format.

        target: a file, a folder, an index, https://, hf://, s3://, or - for stdin
        globs: only tensors whose full name matches one of these
        digest: only the one digest for all tensors
        decoded: of ggml's blocks, hash the F32 values that they stand for
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
    """
    return _run(
        ('hash',),
        [("target", target), ("texts", globs)],
        {
            "digest": digest, "decoded": decoded, "include": include, "exclude": exclude, "threads": threads,
            "root": root, "weights-only": weights_only, "single": single, "block-endian": block_endian,
            "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def scan(
    *targets, trust=None, policy=None, sarif=False, allowlist=False, threads=None, root=None, weights_only=False,
    single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False,
    dequantize=False, lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False,
    ca_file=None, plain_http=False, offline=False, progress=None
):
    """What a file would do to whoever loads it; runs nothing.

        targets: files, folders (every file of which is looked at, in their folders too), or - for standard input
        trust: names that are known for this run, as in 'ultralytics.*'; dangerous ones stay dangerous; repeatable
        policy: the same, one pattern a line; # begins a comment
        sarif: a SARIF 2.1.0 document, for programs that show findings
        allowlist: show what is known, for which uses, and why; scan nothing
    """
    return _run(
        ('scan',),
        [("targets", targets)],
        {
            "trust": trust, "policy": policy, "sarif": sarif, "allowlist": allowlist, "threads": threads,
            "root": root, "weights-only": weights_only, "single": single, "block-endian": block_endian,
            "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )


def verify(
    target, *, manifest=None, no_data=False, threads=None, root=None, weights_only=False, single=False,
    block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False,
    lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """Is anything missing or broken: structure, shards, bytes, digests.

        target: a file, a folder or an …index.json
        manifest: compare with what `ballast hash` printed or `ballast convert manifest` wrote earlier
        no_data: check the structure, and do not read the tensors
    """
    return _run(
        ('verify',),
        [("target", target)],
        {
            "manifest": manifest, "no-data": no_data, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )


def check(
    *targets, policy=None, rules=False, sarif=False, threads=None, root=None, weights_only=False, single=False,
    block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False,
    lenient=False, limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """Is it fit to ship: safe, complete, no NaN, as config.json says.

        targets: files and folders, https://, hf://, s3://
        policy: what fails and what is trusted, a line each: fail RULE, warn RULE, ignore RULE, dtypes A B, a
            pattern
        rules: show the rules and what they do by default; check nothing
        sarif: a SARIF 2.1.0 document, for programs that show findings
    """
    return _run(
        ('check',),
        [("targets", targets)],
        {
            "policy": policy, "rules": rules, "sarif": sarif, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=False,
        json=True,
        progress=progress,
    )


def diff(
    a, b, *, atol=None, rtol=None, tolerance=None, ignore_dtype=False, no_values=False, include=None, exclude=None,
    names=None, architecture=None, heads=None, kv_heads=None, top=None, effective_rank=False, threads=None,
    root=None, weights_only=False, single=False, block_endian=None, cache=False, cache_all=False,
    compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None, variant=None,
    subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """What differs between two checkpoints: shapes, dtypes, values.

        a: a checkpoint
        b: another
        atol: values are equal if |a - b| <= atol + rtol * |b|, as in NumPy
        rtol: the same: a part of the second checkpoint's value
        tolerance: the same as atol
        ignore_dtype: tensors of two dtypes are equal if their values are
        no_values: compare names, dtypes and shapes only
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
        names: both sides under the names of Hugging Face or llama.cpp: hf, gguf; keep takes all as they are
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
        top: so many changed tensors, the largest change first
        effective_rank: the rank of each changed matrix: a merged LoRA shows
    """
    return _run(
        ('diff',),
        [("target", a), ("target", b)],
        {
            "atol": atol, "rtol": rtol, "tolerance": tolerance, "ignore-dtype": ignore_dtype,
            "no-values": no_values, "include": include, "exclude": exclude, "names": names,
            "architecture": architecture, "heads": heads, "kv-heads": kv_heads, "top": top,
            "effective-rank": effective_rank, "threads": threads, "root": root, "weights-only": weights_only,
            "single": single, "block-endian": block_endian, "cache": cache, "cache-all": cache_all,
            "compress-cache": compress_cache, "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient,
            "limit": limits, "variant": variant, "subfolder": subfolder, "header": header, "netrc": netrc,
            "ca-file": ca_file, "plain-http": plain_http, "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def view(
    *targets, html=None, sample=None, base=None, port=None, no_browser=False, include=None, exclude=None,
    force=False, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """A checkpoint, or the difference of two, in a browser or one file.

        targets: a checkpoint, or two to compare; a file, a folder, https://, hf://
        html: write the page as one file instead; - is standard output
        sample: with html, statistics from about N values of each tensor; 0, the default, is all
        base: of an adapter: the model that it belongs to
        port: the port of the page; 0, the default, is any that is free
        no_browser: only print the address
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
        force: overwrite what is there
    """
    return _run(
        ('view',),
        [("targets", targets)],
        {
            "html": html, "sample": sample, "base": base, "port": port, "no-browser": no_browser,
            "include": include, "exclude": exclude, "force": force, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=True,
        json=False,
        progress=progress,
    )


def convert(
    source, out, *, include=None, exclude=None, model_only=False, rename=None, names=None, strip_prefix=None,
    add_prefix=None, map=None, map_back=None, architecture=None, heads=None, kv_heads=None, dtype=None, type=None,
    quantize=None, imatrix=None, include_weights=None, exclude_weights=None, tensor_type=None,
    output_tensor_type=None, token_embedding_type=None, leave_output_tensor=False, pure=False,
    allow_requantize=False, pre_tokenizer=None, dense=False, raw=False, dedupe=False, compress=False,
    keep_values=False, max_shard_size=None, metadata=None, remove_metadata=None, force=False, dry_run=False,
    no_sidecars=False, strict=False, verify=False, manifest=None, allow_dangerous=False, allow_empty=False,
    memory=None, no_sync=False, threads=None, root=None, weights_only=False, single=False, block_endian=None,
    cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False,
    limits=None, variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False,
    offline=False, progress=None
):
    """Copy, select, rename, cast and shard, streamed in bounded memory.

        source: a file, a folder, an …index.json, or - for standard input
        out: a .safetensors, .bin, .pt, .pth, .ckpt, .gguf or .npz file, or a folder
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
        model_only: of a training checkpoint, only the model
        rename: replace in every name, \\1 for groups; in order
        names: names and values as hf or gguf has them; or keep
        strip_prefix: take this from the beginning of names
        add_prefix: put this before every name
        map: rules that rename, fuse, split, stack, transpose: see docs/maps.md; before rename. transformers: what
            from_pretrained does, by the model_type of config.json or transformers:TYPE
        map_back: the same rules, the other way
        architecture: for names, where the file does not say it: llama
        heads: for names: heads of attention
        kv_heads: for names: heads of keys and values
        dtype: cast floats; decode ggml's blocks; encode: Q4_K
        type: a model that llama.cpp runs, with this recipe: Q4_K_M, IQ3_XS, …; auto, f32, f16, bf16, q8_0
        quantize: linear layers: fp8-block, nf4, nf4-double, mxfp4
        imatrix: for type: what each column matters, as llama-imatrix measured it
        include_weights: for imatrix: only tensors with this in their name
        exclude_weights: for imatrix: no tensors with this in their name
        tensor_type: for type: tensors that the expression finds get this type; the first that does counts
        output_tensor_type: for type: the type of output.weight
        token_embedding_type: for type: that of token_embd.weight
        leave_output_tensor: for type: output.weight stays as it is
        pure: for type: one type for all, without the recipe's exceptions
        allow_requantize: for type: blocks may be decoded and encoded again
        pre_tokenizer: how llama.cpp calls the pre-tokenizer, where tokenizer.json has one that is not known
        dense: sparse tensors as dense ones, quantized ones as their values
        raw: ggml's blocks into safetensors as bytes, to become the same GGUF again
        dedupe: safetensors: tensors that share their bytes once, the other names agreed
        compress: safetensors: what shrinks as zstd frames, which ballast opens as it is
        keep_values: what stands beside the tensors of a pickle, such as an epoch, as JSON metadata
        max_shard_size: split into shards of at most this much
        metadata: author=me; in a GGUF llama.block_count:u32=2
        remove_metadata: leave metadata out
        force: overwrite what is there
        dry_run: show what would be written, and write nothing
        no_sidecars: from folder to folder: only the weights, and not config.json, the tokenizer and the like
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        verify: read everything back and compare, before anything is replaced
        manifest: write down what every tensor is, for ballast verify manifest
        allow_dangerous: go on although the file names something dangerous
        allow_empty: write a file although there is no tensor to write
        memory: for all buffers together; 64MiB by default
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('convert',),
        [("target", source), ("text", out)],
        {
            "include": include, "exclude": exclude, "model-only": model_only, "rename": rename, "names": names,
            "strip-prefix": strip_prefix, "add-prefix": add_prefix, "map": map, "map-back": map_back,
            "architecture": architecture, "heads": heads, "kv-heads": kv_heads, "dtype": dtype, "type": type,
            "quantize": quantize, "imatrix": imatrix, "include-weights": include_weights,
            "exclude-weights": exclude_weights, "tensor-type": tensor_type,
            "output-tensor-type": output_tensor_type, "token-embedding-type": token_embedding_type,
            "leave-output-tensor": leave_output_tensor, "pure": pure, "allow-requantize": allow_requantize,
            "pre-tokenizer": pre_tokenizer, "dense": dense, "raw": raw, "dedupe": dedupe, "compress": compress,
            "keep-values": keep_values, "max-shard-size": max_shard_size, "metadata": metadata,
            "remove-metadata": remove_metadata, "force": force, "dry-run": dry_run, "no-sidecars": no_sidecars,
            "strict": strict, "verify": verify, "manifest": manifest, "allow-dangerous": allow_dangerous,
            "allow-empty": allow_empty, "memory": memory, "no-sync": no_sync, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant,
            "subfolder": subfolder, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def fetch(
    target, *, output=None, include=None, exclude=None, in_flight=None, force=False, no_sync=False, threads=None,
    root=None, weights_only=False, single=False, block_endian=None, cache=False, cache_all=False,
    compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None, variant=None,
    subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """What an address names, into the Hub's cache or a folder.

        target: hf://org/name[@revision][/path], https://… or s3://bucket/key
        output: only into this folder, not into the Hub's cache
        include: only files whose full path matches
        exclude: leave out files whose full path matches
        in_flight: requests at once, 8 by default
        force: overwrite what is there
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('fetch',),
        [("target", target)],
        {
            "output": output, "include": include, "exclude": exclude, "in-flight": in_flight, "force": force,
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


def plan(
    target, *, ranks=None, rules=None, rank=None, include=None, exclude=None, threads=None, root=None,
    weights_only=False, single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False,
    no_cache=False, dequantize=False, lenient=False, limits=None, variant=None, subfolder=None, header=None,
    netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """Which part of which tensor each rank of a parallel model needs.

        target: a file, a folder, an index, https://, hf://, s3://, or - for stdin
        ranks: how many there are; must be given
        rules: how tensors are cut: see docs/ranks.md; without it none is
        rank: only what this one needs, counted from 0
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
    """
    return _run(
        ('plan',),
        [("target", target)],
        {
            "ranks": ranks, "rules": rules, "rank": rank, "include": include, "exclude": exclude,
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
