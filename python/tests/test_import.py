"""What `import ballast` costs, what it brings along, and what the native module shows to the linker."""

import pathlib
import shutil
import subprocess
import sys
import time

import pytest

import ballast
from ballast import _native

FOLDER = pathlib.Path(ballast.__file__).parent.parent
IMPORT = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import ballast"

ALLOWED_SECONDS = 0.050


def python(code):
    """Runs an interpreter that takes nothing from its surroundings, and returns what it printed."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def seconds(code):
    start = time.perf_counter()
    python(code)
    return time.perf_counter() - start


def test_the_import_brings_no_large_module_along():
    loaded = python(f"{IMPORT}; print(*sys.modules)").split()
    assert "ballast._native" in loaded
    assert {"numpy", "torch", "json", "typing", "pathlib", "dataclasses", "re"}.isdisjoint(loaded)


def test_the_import_loads_only_what_the_package_itself_needs():
    loaded = python(f"{IMPORT}; print(*sys.modules)").split()
    assert {name for name in loaded if name.startswith("ballast")} == {"ballast", "ballast._native"}


def test_the_import_takes_less_than_50_ms():
    python(IMPORT)  # writes the compiled files
    pairs = [(seconds("pass"), seconds(IMPORT)) for _ in range(10)]
    empty, imported = (min(column) for column in zip(*pairs))
    assert imported - empty < ALLOWED_SECONDS, f"{(imported - empty) * 1000:.1f} ms beyond {empty * 1000:.1f} ms"


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not installed")
def test_the_native_module_exports_nothing_but_what_python_calls():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", _native.__file__], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert [line.split()[-1] for line in listed.splitlines()] == ["PyInit__native"]
