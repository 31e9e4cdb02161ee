"""Indexes of a slice: what NumPy takes, but for what the reference package refuses."""

from operator import index as integer

from ._error import SafetensorError


def numpy_index(index, shape):
    """The index with which a lazy tensor of this shape gives what was asked for.

    A range past the end of its dimension is an error here, and not cut off as everywhere else in Python.
    """
    if isinstance(index, list):
        if index:
            raise SafetensorError("Non empty lists are not implemented")
        return (slice(0, 0),)
    items = index if isinstance(index, tuple) else (index,)
    named = [_item(position, item) for position, item in enumerate(items)]
    if named.count(Ellipsis) > 1:
        raise SafetensorError("an index can have only one ellipsis")
    hidden = len(shape) - (len(named) - named.count(Ellipsis))
    dimension, found = 0, []
    for item in named:
        if item is Ellipsis:
            dimension += max(hidden, 0)
        elif isinstance(item, int) and item < 0 and dimension < len(shape):
            if item + shape[dimension] < 0:
                raise SafetensorError(f"Invalid index {item} for dimension {dimension} of size {shape[dimension]}")
            item += shape[dimension]
        found.append(item)
        dimension += item is not Ellipsis
    _check_bounds(found, shape, hidden)
    return tuple(found)


def _item(position, item):
    if item is Ellipsis:
        return item
    try:
        if isinstance(item, slice):
            # Torch and NumPy have integers of their own.
            return slice(*(bound if bound is None else integer(bound) for bound in (item.start, item.stop, item.step)))
        return integer(item)
    except TypeError:
        text = f"Unsupported slice index at position {position}: expected slice, int, or ellipsis"
        raise SafetensorError(text) from None


def _check_bounds(items, shape, hidden):
    def fail(what):
        shown = ", ".join(_text(item) for item in items)
        raise SafetensorError(f"Error during slicing [{shown}] with shape {list(shape)}: {what}")

    if hidden < 0:
        fail("more slicing indexes than dimensions in tensor")
    dimension = 0
    for item in items:
        if item is Ellipsis:
            dimension += hidden
            continue
        beyond = _beyond(item, shape[dimension])
        if beyond is not None:
            fail(f"index {beyond} out of bounds for tensor dimension #{dimension} of size {shape[dimension]}")
        dimension += 1


def _beyond(item, size):
    """The first index of the item that lies behind the dimension; None if there is none."""
    if isinstance(item, int):
        return item if item >= size else None
    if item.step is not None and item.step <= 0:
        return None  # the reference package has no such steps
    if item.stop is not None and item.stop > size:
        return item.stop - 1
    if item.start is not None and item.start >= size > 0:
        return item.start
    return None


def _text(item):
    if item is Ellipsis:
        return "..."
    if isinstance(item, int):
        return str(item)
    bounds = f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
    return bounds if item.step is None else f"{bounds}:{item.step}"
