"""Runs a verb of the command in this process, and gives what it answers as an object."""

import os
from collections.abc import Mapping

from . import _native


class Report:
    """What a verb answers: the fields of its documented JSON as attributes.

    Lists and nested objects stay what they are in the JSON, with attributes again. `exit_code` is what the command
    would end with (1 for a "no": differences, a finding), and `said` are the sentences that it would write to stderr.
    """

    def __init__(self, fields, exit_code=0, said=()):
        self._fields = fields
        self.exit_code = exit_code
        self.said = list(said)

    def __getattr__(self, name):
        if name.startswith("_"):  # copy and pickle ask before there are fields
            raise AttributeError(name)
        try:
            return _wrapped(self.__dict__["_fields"][name])
        except KeyError:
            raise AttributeError(f"the report has no field {name!r}; it has {', '.join(self._fields)}") from None

    def __getitem__(self, name):
        return _wrapped(self._fields[name])

    def __contains__(self, name):
        return name in self._fields

    def __iter__(self):
        return iter(self._fields)

    def __dir__(self):
        return [*super().__dir__(), *self._fields]

    def __eq__(self, other):
        return isinstance(other, Report) and self._fields == other._fields

    __hash__ = None

    def __repr__(self):
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._fields.items())
        return f"<ballast.Report {shown}>"

    def to_dict(self):
        """The document that the command prints with --json."""
        return self._fields


def _wrapped(value):
    if isinstance(value, dict):
        return Report(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _short(value):
    if isinstance(value, (dict, list)):
        return f"<{len(value)}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Targets:
    """The targets of a call: paths go to the verb as they are, open checkpoints and dicts under a name of their own."""

    def __init__(self, takes_objects):
        self.takes_objects = takes_objects
        self.opened = {}

    def word(self, target):
        if isinstance(target, (str, os.PathLike)):
            return _path(target)
        if isinstance(target, bytes):
            return self.word(os.fsdecode(target))
        if not self.takes_objects:
            if isinstance(target, _native.Checkpoint) and not target.target.startswith("<"):
                return self.word(target.target)
            raise TypeError(f"a path is needed, not {type(target).__name__}: this verb looks at the file itself")
        if not isinstance(target, _native.Checkpoint):
            if not isinstance(target, Mapping):
                raise TypeError(f"a path, a checkpoint or a dict of tensors is needed, not {type(target).__name__}")
            from ._interop import checkpoint_of

            target = checkpoint_of(target)
        name = f"\0object {len(self.opened)}"  # no path is called so
        self.opened[name] = target
        return name


def _path(target):
    path = os.fsdecode(os.fspath(target))
    if "\0" in path:
        raise ValueError("embedded null byte")
    return path


def _texts(value):
    """The words of an option that may be given several times: a text, several, or a mapping of KEY to VALUE."""
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or "=" in key for key in value):
            raise ValueError("the keys of a mapping are texts without '='")
        return [f"{key}={_text(item)}" for key, item in value.items()]
    is_one = isinstance(value, (str, bytes, os.PathLike)) or not hasattr(value, "__iter__")
    return [_text(item) for item in ([value] if is_one else value)]


def _text(value):
    if isinstance(value, (bytes, os.PathLike)):
        return _path(value)
    if value is None:
        raise TypeError("None is no value")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def run(verb, positionals, options, *, objects, json, progress=None):
    """Runs `verb` (a tuple of words) with positional values and with options by their long names."""
    targets = _Targets(objects)
    words = [*verb]
    for name, value in options.items():
        if value is None or value is False:
            continue
        if value is True:
            words.append(f"--{name}")
        else:
            for text in _texts(value):
                words.extend([f"--{name}={text}"] if text else [f"--{name}", ""])
    if json:
        words.append("--json")
    words.append("--")  # a path that looks like an option is still a path
    for number, (kind, value) in enumerate(positionals):
        if value is None:
            if number == 0 and kind == "target":
                raise TypeError("a target is needed, not None")
            continue
        if kind == "target":
            words.append(targets.word(value))
        elif kind == "targets":
            one = isinstance(value, (str, bytes, os.PathLike, _native.Checkpoint, Mapping))
            words.extend(targets.word(item) for item in ([value] if one else value))
        elif kind == "texts":
            words.extend(_texts(value))
        else:
            words.append(_text(value))
    told = _progress(progress)
    try:
        exit_code, out, said = _native.run(words, targets.opened, told)
    finally:
        if told is not None and hasattr(told, "close"):
            told.close()
    if not json or not out.lstrip().startswith(("{", "[")):  # a list for people, such as the allowlist
        return Report({"text": out.rstrip("\n")}, exit_code, said)
    from json import loads

    return Report(loads(out) if out.strip() else {}, exit_code, said)


def _progress(progress):
    """A callable of (phase, done, total): as it is, a bar for True, or something with tqdm's update()."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _Bar()
    if isinstance(progress, type) and hasattr(progress, "update"):
        return _Updated(progress(unit="B", unit_scale=True), owns=True)
    if hasattr(progress, "update"):
        return _Updated(progress, owns=False)
    if callable(progress):
        return progress
    raise TypeError(f"progress is True, a callable, or something like tqdm, not {type(progress).__name__}")


class _Updated:
    """Tells an object like tqdm's."""

    def __init__(self, bar, owns):
        self.bar, self.owns, self.done = bar, owns, 0

    def __call__(self, phase, done, total):
        if done < self.done:
            self.done = 0
            if hasattr(self.bar, "reset"):
                self.bar.reset(total)
        self.bar.total = total
        self.bar.update(done - self.done)
        self.done = done

    def close(self):
        if self.owns:
            self.bar.close()


class _Bar:
    """A bar on stderr, drawn only if the job takes longer than half a second."""

    def __init__(self):
        import time

        self.clock, self.start, self.drawn = time.monotonic, time.monotonic(), False

    def __call__(self, phase, done, total):
        import sys

        if self.clock() - self.start < 0.5:
            return
        share = done / total if total else 0
        filled = int(share * 40)
        sys.stderr.write(f"\r\x1b[K{phase} {share:4.0%} {'█' * filled}{' ' * (40 - filled)} {done / 1e9:.2f} of {total / 1e9:.2f} GB")
        sys.stderr.flush()
        self.drawn = True

    def close(self):
        import sys

        if self.drawn:
            sys.stderr.write("\r\x1b[K")
