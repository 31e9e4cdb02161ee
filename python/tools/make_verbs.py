#!/usr/bin/env python3
"""Writes the functions that mirror the verbs of the command, from the command's own description of itself.

    PYTHONPATH=build/release/python python3 python/tools/make_verbs.py [--check]

--check writes nothing, and fails if a file is not what it would write.
"""

import pathlib
import re
import sys

from ballast import _native

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "ballast"

# What only a terminal needs, or what a function says by its result.
NOT_MIRRORED = {"help", "version", "limits", "quiet", "verbose", "color", "json"}
# A shell's business; and what indexing a tensor does better.
NOT_FUNCTIONS = {"completion", "cat"}
# Verbs that look at the file itself, so that a state dict in memory is no target for them.
OF_FILES = {("scan",), ("verify",), ("meta", "get"), ("meta", "set"), ("meta", "unset"), ("cache", "path"), ("cache", "clear")}
# Where a positional of the command is not called what a Python programmer would call it.
NAMES = {"IN": "source", "KEY=VALUE": "metadata", "GLOB": "globs"}
# Positionals that are not checkpoints.
TEXTS = {"GLOB", "KEY", "KEY=VALUE", "OUT"}


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


def keywords_in(text):
    """A help text with keywords in the place of flags."""
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda match: match.group(1).replace("-", "_"), text)


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
    parts += [f"{parameter(a)}={default(a)}" for a in [*arguments, *common] if not a["positional"]]
    return parts + ["progress=None"]


def wrapped(words, indent, first=""):
    lines, line = [], first
    for word in words:
        if len(line) + len(word) + 1 > 116 and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def function(verb, path, common):
    arguments = [a for a in verb["arguments"] if a["name"] not in NOT_MIRRORED]
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
    options = [a for a in [*arguments, *common] if not a["positional"]]
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
    return name, "\n".join(lines)


def module(doc, functions):
    names = ", ".join(f'"{name}"' for name, _ in functions)
    head = f'"""{doc}\n\nThis file is written by python/tools/make_verbs.py from the command itself.\n"""\n\nfrom ._run import run as _run\n\n'
    return head + f"__all__ = [{names}]\n" + "".join(f"\n\n{text}\n" for _, text in functions)


def modules():
    tree = _native.command()
    common = [a for a in tree["arguments"] if a["name"] not in NOT_MIRRORED]
    top = []
    made = {}
    for verb in tree["verbs"]:
        if verb["name"] in NOT_FUNCTIONS:
            continue
        if not verb["verbs"]:
            top.append(function(verb, (verb["name"],), common))
            continue
        functions = [function(v, (verb["name"], v["name"]), common) for v in verb["verbs"]]
        made[verb["name"] + ".py"] = module(verb["summary"][0].upper() + verb["summary"][1:] + ".", functions)
    made["_verbs.py"] = module("The verbs of the command as functions.", top)
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
