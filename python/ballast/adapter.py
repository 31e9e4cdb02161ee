"""LoRAs and other adapters: look, take out, put in, merge, convert.

This file is written by python/tools/make_verbs.py from the command itself.
"""

from ._run import run as _run

__all__ = ["info", "extract", "inject", "convert", "merge", "from_diff"]


def info(
    adapter, *, subfolder=None, key_mapping=None, initial_adapter=None, allow_dangerous=False, architecture=None,
    heads=None, kv_heads=None, threads=None, root=None, weights_only=False, single=False, block_endian=None,
    cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False,
    limits=None, variant=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """Type, rank, alpha, scaling, modules, dtypes, base, and what is wrong.

        adapter: the folder that PEFT saved, or a file of diffusers, kohya, llama.cpp or MLX
        subfolder: of the adapter's folder, where several lie in one
        key_mapping: replace in the adapter's names, without base_model.model.; the first that matches counts
        initial_adapter: of PiSSA, OLoRA and the like: the adapter before its training, which is subtracted
        allow_dangerous: go on although the file names something dangerous
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
    """
    return _run(
        ('adapter', 'info'),
        [("target", adapter)],
        {
            "subfolder": subfolder, "key-mapping": key_mapping, "initial-adapter": initial_adapter,
            "allow-dangerous": allow_dangerous, "architecture": architecture, "heads": heads, "kv-heads": kv_heads,
            "threads": threads, "root": root, "weights-only": weights_only, "single": single,
            "block-endian": block_endian, "cache": cache, "cache-all": cache_all, "compress-cache": compress_cache,
            "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient, "limit": limits,
            "variant": variant, "header": header, "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http,
            "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def extract(
    state, *, config=None, name=None, save_embeddings=None, base_vocabulary=None, initial_adapter=None,
    portable=False, allow_dangerous=False, output=None, force=False, dry_run=False, strict=False, no_sync=False,
    threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False, cache_all=False,
    compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None, variant=None,
    subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False, progress=None
):
    """The adapter in an adapted model's checkpoint, as PEFT saves it.

        state: the checkpoint of the adapted model
        config: its adapter_config.json
        name: of the adapter; default where it is not given
        save_embeddings: whether those of the base go along: auto (where they are adapted or resized), always or
            never
        base_vocabulary: rows of the embeddings before training, to tell whether they were resized
        initial_adapter: of PiSSA, OLoRA and the like: the adapter before its training, which is subtracted
        portable: names without base_model.model.
        allow_dangerous: go on although the file names something dangerous
        output: the folder to write
        force: overwrite what is there
        dry_run: show what would be written, and write nothing
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('adapter', 'extract'),
        [("target", state)],
        {
            "config": config, "name": name, "save-embeddings": save_embeddings, "base-vocabulary": base_vocabulary,
            "initial-adapter": initial_adapter, "portable": portable, "allow-dangerous": allow_dangerous,
            "output": output, "force": force, "dry-run": dry_run, "strict": strict, "no-sync": no_sync,
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


def inject(
    base, adapter, *, name=None, dtype=None, ignore_mismatched=False, subfolder=None, key_mapping=None,
    initial_adapter=None, allow_dangerous=False, architecture=None, heads=None, kv_heads=None, output=None,
    force=False, dry_run=False, strict=False, no_sync=False, threads=None, root=None, weights_only=False,
    single=False, block_endian=None, cache=False, cache_all=False, compress_cache=False, no_cache=False,
    dequantize=False, lenient=False, limits=None, variant=None, header=None, netrc=False, ca_file=None,
    plain_http=False, offline=False, progress=None
):
    """A base with an adapter in it, as the state dict of a PeftModel.

        base: the base, or a model that has adapters already
        adapter: the folder that PEFT saved, or a file of diffusers, kohya, llama.cpp or MLX
        name: of the adapter; default where it is not given
        dtype: cast the base, and decode ggml's blocks
        ignore_mismatched: leave out what does not fit the base
        subfolder: of the adapter's folder, where several lie in one
        key_mapping: replace in the adapter's names, without base_model.model.; the first that matches counts
        initial_adapter: of PiSSA, OLoRA and the like: the adapter before its training, which is subtracted
        allow_dangerous: go on although the file names something dangerous
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
        output: a .safetensors, .bin, .pt, .pth, .ckpt, .gguf or .npz file, or a folder
        force: overwrite what is there
        dry_run: show what would be written, and write nothing
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('adapter', 'inject'),
        [("target", base), ("target", adapter)],
        {
            "name": name, "dtype": dtype, "ignore-mismatched": ignore_mismatched, "subfolder": subfolder,
            "key-mapping": key_mapping, "initial-adapter": initial_adapter, "allow-dangerous": allow_dangerous,
            "architecture": architecture, "heads": heads, "kv-heads": kv_heads, "output": output, "force": force,
            "dry-run": dry_run, "strict": strict, "no-sync": no_sync, "threads": threads, "root": root,
            "weights-only": weights_only, "single": single, "block-endian": block_endian, "cache": cache,
            "cache-all": cache_all, "compress-cache": compress_cache, "no-cache": no_cache,
            "dequantize": dequantize, "lenient": lenient, "limit": limits, "variant": variant, "header": header,
            "netrc": netrc, "ca-file": ca_file, "plain-http": plain_http, "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def convert(
    adapter, *, to=None, base=None, portable=False, subfolder=None, key_mapping=None, initial_adapter=None,
    allow_dangerous=False, architecture=None, heads=None, kv_heads=None, output=None, force=False, dry_run=False,
    strict=False, no_sync=False, threads=None, root=None, weights_only=False, single=False, block_endian=None,
    cache=False, cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False,
    limits=None, variant=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """For another program: PEFT, diffusers, kohya, llama.cpp; the scaling of every module stays.

        adapter: the folder that PEFT saved, or a file of diffusers, kohya, llama.cpp or MLX
        to: whose names and shapes it gets: peft (a folder), diffusers, kohya or gguf (a file)
        base: the base: for kohya its names, which tell flat ones apart; for gguf its config.json
        portable: for peft: names without base_model.model.
        subfolder: of the adapter's folder, where several lie in one
        key_mapping: replace in the adapter's names, without base_model.model.; the first that matches counts
        initial_adapter: of PiSSA, OLoRA and the like: the adapter before its training, which is subtracted
        allow_dangerous: go on although the file names something dangerous
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
        output: the folder or file to write
        force: overwrite what is there
        dry_run: show what would be written, and write nothing
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('adapter', 'convert'),
        [("target", adapter)],
        {
            "to": to, "base": base, "portable": portable, "subfolder": subfolder, "key-mapping": key_mapping,
            "initial-adapter": initial_adapter, "allow-dangerous": allow_dangerous, "architecture": architecture,
            "heads": heads, "kv-heads": kv_heads, "output": output, "force": force, "dry-run": dry_run,
            "strict": strict, "no-sync": no_sync, "threads": threads, "root": root, "weights-only": weights_only,
            "single": single, "block-endian": block_endian, "cache": cache, "cache-all": cache_all,
            "compress-cache": compress_cache, "no-cache": no_cache, "dequantize": dequantize, "lenient": lenient,
            "limit": limits, "variant": variant, "header": header, "netrc": netrc, "ca-file": ca_file,
            "plain-http": plain_http, "offline": offline,
        },
        objects=True,
        json=True,
        progress=progress,
    )


def merge(
    base, adapters=None, *, weight=None, base_from_hub=False, initial_adapter=None, peft_exact=False,
    unmerge=False, dtype=None, architecture=None, heads=None, kv_heads=None, output=None, max_shard_size=None,
    force=False, dry_run=False, no_sidecars=False, strict=False, verify=False, allow_dangerous=False, memory=None,
    no_sync=False, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """Adapters into the weights of their base, streamed in bounded memory.

        base: the base: any format and dtype, sharded or not, quantized or not
        adapters: folders that PEFT saved, or files of diffusers, kohya, llama.cpp or MLX; in order
        weight: how much of an adapter: one for each, in their order, or none for 1
        base_from_hub: the base is the Hub's repository that the first adapter names; give no BASE
        initial_adapter: of PiSSA, OLoRA and the like: each adapter before its training, which is subtracted
        peft_exact: round where PEFT's merge_and_unload rounds, not once at the end
        unmerge: take them out of a base that they were merged into
        dtype: cast the result, and decode ggml's blocks
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
        output: a .safetensors, .bin, .pt, .pth, .ckpt, .gguf or .npz file, or a folder
        max_shard_size: split into shards of at most this much
        force: overwrite what is there
        dry_run: show what would be written, and write nothing
        no_sidecars: from folder to folder: only the weights, and not config.json, the tokenizer and the like
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        verify: read everything back and compare, before anything is replaced
        allow_dangerous: go on although a file names something dangerous
        memory: for all buffers together; 64MiB by default
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('adapter', 'merge'),
        [("target", base), ("targets", adapters)],
        {
            "weight": weight, "base-from-hub": base_from_hub, "initial-adapter": initial_adapter,
            "peft-exact": peft_exact, "unmerge": unmerge, "dtype": dtype, "architecture": architecture,
            "heads": heads, "kv-heads": kv_heads, "output": output, "max-shard-size": max_shard_size,
            "force": force, "dry-run": dry_run, "no-sidecars": no_sidecars, "strict": strict, "verify": verify,
            "allow-dangerous": allow_dangerous, "memory": memory, "no-sync": no_sync, "threads": threads,
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


def from_diff(
    base, tuned, *, rank=None, fan_in_fan_out=False, include=None, exclude=None, allow_dangerous=False,
    architecture=None, heads=None, kv_heads=None, output=None, force=False, dry_run=False, strict=False,
    no_sync=False, threads=None, root=None, weights_only=False, single=False, block_endian=None, cache=False,
    cache_all=False, compress_cache=False, no_cache=False, dequantize=False, lenient=False, limits=None,
    variant=None, subfolder=None, header=None, netrc=False, ca_file=None, plain_http=False, offline=False,
    progress=None
):
    """A LoRA of what changed between two checkpoints, and how much it leaves out.

        base: the model before training
        tuned: the model after it
        rank: of every matrix; 16 where it is not given
        fan_in_fan_out: matrices are [in, out], as GPT-2 has them
        include: whole names that match: * ? [a-z] {a,b} {0..31}
        exclude: leave out tensors whose whole name matches
        allow_dangerous: go on although a file names something dangerous
        architecture: for GGUF, where the file does not say it: llama
        heads: for GGUF: heads of attention
        kv_heads: for GGUF: heads of keys and values
        output: the folder to write
        force: overwrite what is there
        dry_run: show the error of every layer, and write nothing
        strict: write nothing where values of tensors would be lost or checksums are wrong, instead of a note
        no_sync: do not wait until the disk has it (a file still appears complete or not at all)
    """
    return _run(
        ('adapter', 'from-diff'),
        [("target", base), ("target", tuned)],
        {
            "rank": rank, "fan-in-fan-out": fan_in_fan_out, "include": include, "exclude": exclude,
            "allow-dangerous": allow_dangerous, "architecture": architecture, "heads": heads, "kv-heads": kv_heads,
            "output": output, "force": force, "dry-run": dry_run, "strict": strict, "no-sync": no_sync,
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
