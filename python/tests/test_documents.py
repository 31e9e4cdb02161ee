"""The examples of the documents, run in the order of their page."""

import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python-migration.md", "README.md"])
def test_every_example_runs(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.cpp"))
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / page)
    assert found, f"{page} has no example"
    names = {}
    for block in found:
        exec(compile(block, page, "exec"), names)


def test_docstrings_show_examples_that_run(tmp_path, monkeypatch):
    import doctest

    import ballast

    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.cpp"))
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(ballast, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0 and results.failed == 0
