"""What the command can do, the module can do: each verb is a function, each option a keyword, and nothing else is there."""

import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import ballast
from ballast import _native, _verbs

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))

# What the module has not, and why.
NO_FUNCTIONS = {
    "cat": "indexing a tensor does it",
    "completion": "it is for shells",
}
NO_KEYWORDS = {
    "help": "help(ballast.convert)",
    "help-all": "help(ballast.convert)",
    "version": "ballast.__version__",
    "limits": "it prints a table",
    "quiet": "a function prints nothing",
    "verbose": "a function prints nothing",
    "color": "a function prints nothing",
    "json": "a report is that document",
}
# Where a keyword is not the option's name, or a parameter not the name in the usage.
OTHER_NAMES = {"limit": "limits", "IN": "source", "GLOB": "globs", "KEY=VALUE": "metadata"}

TREE = _native.command()


def verbs():
    """The path of each verb that can be run, and its description."""
    for verb in TREE["verbs"]:
        if verb["name"] in NO_FUNCTIONS:
            continue
        if verb["verbs"]:
            yield from (((verb["name"], inner["name"]), inner) for inner in verb["verbs"])
        else:
            yield (verb["name"],), verb


VERBS = dict(verbs())


def python_name(word):
    return word.replace("-", "_")


def module_of(path):
    return getattr(ballast, path[0]) if len(path) == 2 else ballast


def function_of(path):
    return getattr(module_of(path), python_name(path[-1]))


def options_of(verb):
    return [a for a in [*verb["arguments"], *TREE["arguments"]] if not a["positional"] and a["name"] not in NO_KEYWORDS]


def keyword_of(option):
    return OTHER_NAMES.get(option["name"], python_name(option["name"]))


def parameter_of(positional):
    name = positional["name"]
    return OTHER_NAMES.get(name, name.lower() + ("s" if positional["repeatable"] else ""))


def parameters(function, *kinds):
    return {p.name: p.default for p in inspect.signature(function).parameters.values() if p.kind in kinds}


@pytest.mark.parametrize("path", VERBS, ids=".".join)
def test_every_option_of_a_verb_is_a_keyword_and_every_keyword_an_option(path):
    expected = {keyword_of(option): False if option["flag"] else None for option in options_of(VERBS[path])}
    keywords = parameters(function_of(path), inspect.Parameter.KEYWORD_ONLY)
    assert keywords == {**expected, "progress": None}


@pytest.mark.parametrize("path", VERBS, ids=".".join)
def test_every_positional_argument_of_a_verb_is_a_parameter(path):
    expected = [parameter_of(argument) for argument in VERBS[path]["arguments"] if argument["positional"]]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert list(parameters(function_of(path), *kinds)) == expected


@pytest.mark.parametrize("path", VERBS, ids=".".join)
def test_every_keyword_reaches_the_option_of_its_name(path, monkeypatch):
    seen = {}

    def record(verb, positionals, options, **rest):
        seen.update(verb=verb, options=options, positionals=[value for _, value in positionals])

    function = function_of(path)
    monkeypatch.setitem(function.__globals__, "_run", record)
    positionals = [a for a in VERBS[path]["arguments"] if a["positional"]]
    options = options_of(VERBS[path])
    function(*(a["name"] for a in positionals), **{keyword_of(option): f"--{option['name']}" for option in options})
    assert seen["verb"] == path
    assert seen["options"] == {option["name"]: f"--{option['name']}" for option in options}
    values = [value[0] if isinstance(value, tuple) else value for value in seen["positionals"]]  # of *targets, the one
    assert values == [a["name"] for a in positionals]


def test_every_function_is_a_verb():
    functions = {(name,) for name in _verbs.__all__}
    for group in {path[0] for path in VERBS if len(path) == 2}:
        functions |= {(group, name) for name in getattr(ballast, group).__all__}
    assert functions == {tuple(python_name(word) for word in path) for path in VERBS}


def test_the_package_offers_every_verb():
    assert {path[0] for path in VERBS} <= set(ballast.__all__)


def test_what_is_left_out_is_still_there_to_be_left_out():
    everything = [TREE, *TREE["verbs"], *(inner for verb in TREE["verbs"] for inner in verb["verbs"])]
    assert set(NO_FUNCTIONS) <= {verb["name"] for verb in TREE["verbs"]}
    assert set(NO_KEYWORDS) <= {argument["name"] for verb in everything for argument in verb["arguments"]}


def test_the_written_files_are_what_the_command_says():
    script = SOURCE / "python" / "tools" / "make_verbs.py"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ballast.__file__))}
    subprocess.run([sys.executable, "-B", script, "--check"], env=environment, check=True)
