"""SafetensorError, and what is wrong with a file in the words of the reference package.

Programs look for words such as "header too large" in these messages. Ballast's own error, which names the tensor and
the byte, is the cause of each.
"""

import os

from .. import _native

# The format's code of each dtype -> the bits of an element.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

_MAX_HEADER_BYTES = 100_000_000
_MAX_COUNT = 2**64 - 1


class SafetensorError(_native.Error):
    """Whatever the functions of this package could not do with a file, or with what they were asked to write."""

    __module__ = "ballast.safetensors"


def failure(text, error):
    """A SafetensorError that says `text` and knows what Ballast's own error knows."""
    made = SafetensorError(text)
    for field in ("code", "where", "offset", "hint", "name"):
        setattr(made, field, getattr(error, field))
    return made


def cannot_read(error, prefix, read, size):
    """The error for a file of `size` bytes, of which read(offset, size) gives some."""
    try:
        reason = _reason(read, size)
    except OSError:
        reason = None
    return failure(f"{prefix}: {reason or _message(error)}", error)


def cannot_write(error, path=None):
    reason = _message(error)
    if path is not None and isinstance(error, OSError):
        reason = _system_reason(reason, path)
    return failure(f"Error while serializing: {reason}", error)


def _message(error):
    """The sentence without the file before it and the hint below it."""
    text = str(error).split("\n  hint: ")[0]
    return text.removeprefix(f"{error.where}: ") if error.where else text


def _system_reason(reason, path):
    import errno

    for number in errno.errorcode:
        if os.strerror(number).lower() in reason.lower():
            return f'I/O error: {os.strerror(number)} (os error {number}) at path "{path}"'
    return f'I/O error: {reason} at path "{path}"'


def _reason(read, size):
    """The first rule that a file breaks, in the order of the format; None if it breaks only rules of Ballast."""
    if size < 8:
        return "header too small"
    length = int.from_bytes(read(0, 8), "little")
    if length > _MAX_HEADER_BYTES:
        return "header too large"
    if length > size - 8:
        return "invalid header length"
    try:
        text = bytes(read(8, length)).decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 in header: {error.reason} at byte {error.start}"
    import json

    try:
        header = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        return f"invalid JSON in header: {error.msg} at line {error.lineno} column {error.colno}"
    except RecursionError:
        return "invalid JSON in header: recursion limit exceeded"
    except ValueError:
        return "invalid JSON in header: number out of range"
    except _Repeated:
        return None
    return _reason_of_header(header, size - 8 - length)


class _Repeated(Exception):
    """A key is there twice, which the reference package does not notice."""


class _Object(dict):
    """A JSON object."""

    def __init__(self, pairs):
        super().__init__(pairs)
        if len(self) < len(pairs):
            raise _Repeated


def _reason_of_header(header, data_bytes):
    if not isinstance(header, dict):
        return "invalid JSON in header: expected an object"
    texts = header.get("__metadata__")
    if texts is not None and not (isinstance(texts, dict) and all(isinstance(value, str) for value in texts.values())):
        return "invalid JSON in header: `__metadata__` is no object of texts"
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in tensors.items():
        problem = _problem_of_fields(entry)
        if problem:
            return f"invalid JSON in header: {problem} in `{name}`"
    end = 0
    for name, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if first != end or last < first:
            return f"invalid offset for tensor `{name}`"
        bits = BITS[entry["dtype"]]
        for dimension in entry["shape"]:
            bits *= dimension
            if bits > _MAX_COUNT:
                return "overflow computing buffer size from shape and/or element type"
        if bits % 8:
            return (
                "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, "
                "this is invalid."
            )
        if bits // 8 != last - first:
            return "invalid shape, data type, or offset for tensor"
        end = last
    return None if end == data_bytes else "incomplete metadata, file not fully covered"


def _problem_of_fields(entry):
    if not isinstance(entry, dict):
        return "expected an object"
    for field in ("dtype", "shape", "data_offsets"):
        if field not in entry:
            return f"missing field `{field}`"
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in BITS:
        return f"unknown dtype {entry['dtype']!r}"
    for field in ("shape", "data_offsets"):
        if not isinstance(entry[field], list) or not all(_is_count(number) for number in entry[field]):
            return f"`{field}` is no list of sizes"
    return None if len(entry["data_offsets"]) == 2 else "`data_offsets` are two numbers"


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
