#!/usr/bin/env python3
"""Writes the functions that mirror the verbs of the command, and their type stubs, from the command's own description of
itself.

    PYTHONPATH=build/release/python python3 python/tools/make_verbs.py [--check]

--check writes nothing, and fails if a file is not what it would write.
"""

import pathlib
import re
import sys

from ballast import _native

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "ballast"

# What only a terminal needs, or what a function says by its result.
NOT_MIRRORED = {"help", "help-all", "version", "limits", "quiet", "verbose", "color", "json"}
# A shell's business; and what indexing a tensor does better.
NOT_FUNCTIONS = {"completion", "cat"}
# Verbs that look at the file itself, so that a state dict in memory is no target for them.
OF_FILES = {("scan",), ("verify",), ("check",), ("fetch",), ("meta", "get"), ("meta", "set"), ("meta", "unset"), ("imatrix", "info"), ("cache", "path"), ("cache", "clear")}
# Where a positional of the command is not called what a Python programmer would call it.
NAMES = {"IN": "source", "KEY=VALUE": "metadata", "GLOB": "globs"}
# Positionals that are not checkpoints.
TEXTS = {"GLOB", "KEY", "KEY=VALUE", "OUT"}
# What an option's value is, by the name that the help gives it; a text if it is not here. _run.pyi has the types.
TYPES = {
    "N": "int", "R": "int", "W": "float", "X": "float", "Q": "bool | float | str", "SIZE": "int | str",
    "ADAPTER": "_Path", "DIR": "_Path", "FILE": "_Path", "OUT": "_Path", "PATH": "_Path", "TARGET": "_Path",
}  # fmt: skip
# A path in the checkpoint, not on the disk.
NO_FILES = {"root"}


def parameter(argument):
    name = NAMES.get(argument["name"])
    if name is None:
        name = argument["name"].lower().replace("-", "_")
        if argument["positional"] and argument["repeatable"]:
            name += "s"
    return "limits" if name == "limit" else name


def kind(argument):
    is_text = argument["name"] in TEXTS
    return ("texts" if is_text else "targets") if argument["repeatable"] else "text" if is_text else "target"


def default(argument):
    return "False" if argument["flag"] else "None"


def type_of(argument):
    """The type of an argument that is no checkpoint, without the None of one that may be left out."""
    if argument["flag"]:
        return "bool"
    if "=" in argument["value"]:
        return "_Pairs"
    one = "str" if argument["name"] in NO_FILES else TYPES.get(argument["value"], "str")
    return f"{one} | Iterable[{one}]" if argument["repeatable"] else one


def positional_type(argument, path):
    if argument["name"] in TEXTS:
        return type_of(argument)
    one = "_File" if path in OF_FILES else "_Target"
    return f"{one} | Iterable[{one}]" if argument["repeatable"] else one


def annotated(part, types):
    """A part of a signature with its type: "force=False" as "force: bool = False"."""
    if part == "*":
        return part
    name, _, value = part.partition("=")
    kind = types[name.lstrip("*")]
    if name.startswith("*"):
        return f"{name}: {kind.split(' | ')[0]}"
    if not value:
        return f"{name}: {kind}"
    return f"{name}: {kind}{' | None' if value == 'None' else ''} = {value}"


def keywords_in(text):
    """A help text with keywords in the place of flags."""
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda match: match.group(1).replace("-", "_"), text)


def with_common(arguments, common):
    """A verb's own option goes before one of every verb that has the same name."""
    own = {a["name"] for a in arguments}
    return [*arguments, *(a for a in common if a["name"] not in own)]


def signature(arguments, common):
    parts = []
    starred = False
    for argument in arguments:
        if argument["positional"]:
            if argument["repeatable"] and not any(a["positional"] and a["required"] for a in arguments) and kind(argument) == "targets":
                parts.append("*" + parameter(argument))
                starred = True
            else:
                parts.append(parameter(argument) + ("" if argument["required"] else "=None"))
    if not starred:
        parts.append("*")
    parts += [f"{parameter(a)}={default(a)}" for a in with_common(arguments, common) if not a["positional"]]
    return parts + ["progress=None"]


def wrapped(words, indent, first=""):
    lines, line = [], first
    for word in words:
        if len(line) + len(word) + 1 > 116 and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def mirrored(verb):
    return [a for a in verb["arguments"] if a["name"] not in NOT_MIRRORED]


def stub(verb, path, common):
    arguments = mirrored(verb)
    types = {parameter(a): positional_type(a, path) if a["positional"] else type_of(a) for a in with_common(arguments, common)}
    types["progress"] = "_Progress"
    parts = [f"    {annotated(part, types)},\n" for part in signature(arguments, common)]
    return f"def {verb['name'].replace('-', '_')}(\n{''.join(parts)}) -> Report: ..."


def function(verb, path, common):
    arguments = mirrored(verb)
    has_json = any(a["name"] == "json" for a in verb["arguments"])
    name = verb["name"].replace("-", "_")
    parts = signature(arguments, common)
    lines = [f"def {name}(", wrapped([p + ("," if i + 1 < len(parts) else "") for i, p in enumerate(parts)], 4, "    "), "):"]
    lines.append(f'    """{verb["summary"][0].upper() + verb["summary"][1:]}.')
    lines.append("")
    for argument in arguments:
        text = keywords_in(argument["help"]).replace("\\", "\\\\")
        lines.append(wrapped(text.split(), 12, f"        {parameter(argument)}: "))
    lines.append('    """')
    positionals = ", ".join(f'("{kind(a)}", {parameter(a)})' for a in arguments if a["positional"])
    options = [a for a in with_common(arguments, common) if not a["positional"]]
    lines.append("    return _run(")
    lines.append(f"        {path!r},")
    lines.append(f"        [{positionals}],")
    lines.append("        {")
    pairs = [f'"{a["name"]}": {parameter(a)},' for a in options]
    lines.append(wrapped(pairs, 12, "            "))
    lines.append("        },")
    lines.append(f"        objects={path not in OF_FILES},")
    lines.append(f"        json={has_json},")
    lines.append("        progress=progress,")
    lines.append("    )")
    return "\n".join(lines)


WRITTEN = "This file is written by python/tools/make_verbs.py from the command itself."


def all_of(verbs):
    return "__all__ = [" + ", ".join(f'"{verb["name"].replace("-", "_")}"' for verb in verbs) + "]\n"


def module(doc, verbs, group, common):
    head = f'"""{doc}\n\n{WRITTEN}\n"""\n\nfrom ._run import run as _run\n\n'
    functions = [function(verb, (*group, verb["name"]), common) for verb in verbs]
    return head + all_of(verbs) + "".join(f"\n\n{text}\n" for text in functions)


def stub_module(verbs, group, common):
    stubs = "".join(f"\n{stub(verb, (*group, verb['name']), common)}\n" for verb in verbs)
    types = [name for name in ("_File", "_Pairs", "_Path", "_Progress", "_Target") if re.search(rf"\b{name}\b", stubs)]
    iterable = "from collections.abc import Iterable\n\n" if "Iterable[" in stubs else ""
    imports = f"{iterable}from ._run import {', '.join(['Report', *types])}\n\n"
    return f"# {WRITTEN}\n{imports}{all_of(verbs)}{stubs}"


def modules():
    tree = _native.command()
    common = mirrored(tree)
    verbs = [verb for verb in tree["verbs"] if verb["name"] not in NOT_FUNCTIONS]
    groups = [("_verbs", "The verbs of the command as functions.", [verb for verb in verbs if not verb["verbs"]], ())]
    for verb in verbs:
        if verb["verbs"]:
            groups.append((verb["name"], verb["summary"][0].upper() + verb["summary"][1:] + ".", verb["verbs"], (verb["name"],)))
    made = {}
    for name, doc, members, group in groups:
        made[name + ".py"] = module(doc, members, group, common)
        made[name + ".pyi"] = stub_module(members, group, common)
    return made


def main():
    stale = []
    for name, text in modules().items():
        path = FOLDER / name
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            stale.append(name)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"not what the command says: {', '.join(stale)}; run python/tools/make_verbs.py")


if __name__ == "__main__":
    main()
