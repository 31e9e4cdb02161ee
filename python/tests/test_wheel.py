"""The wheel and the sdist that pip gets. The native module is the one of this build: CMake is not run again."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

import ballast
from ballast import _native

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.syspath_prepend(SOURCE / "python" / "backend")
    import ballast_backend

    monkeypatch.setattr(ballast_backend, "_build_native", lambda folder: pathlib.Path(_native.__file__))
    return ballast_backend


@pytest.fixture
def wheel(backend, tmp_path):
    return tmp_path / backend.build_wheel(tmp_path)


def test_the_wheel_is_for_this_python_and_this_system_only(wheel):
    python = "cp{}{}".format(*sys.version_info)
    assert wheel.name.startswith(f"ballast-{ballast.__version__}-{python}-{python}")
    assert wheel.name.endswith(f"linux_{os.uname().machine}.whl")


def test_the_record_lists_every_file_with_its_digest(wheel):
    with zipfile.ZipFile(wheel) as archive:
        record = f"ballast-{ballast.__version__}.dist-info/RECORD"
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert set(rows) == set(archive.namelist())
        assert rows.pop(record) == ("", "")
        for name, (digest, size) in rows.items():
            content = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={expected}", len(content)), name


def test_the_wheel_has_every_module_with_its_stub_and_nothing_else(wheel):
    package = SOURCE / "python"
    kept = {path.relative_to(package).as_posix() for ending in ("*.py", "*.pyi") for path in package.glob(f"ballast/**/{ending}")}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("ballast/")}
    assert names == kept | {"ballast/py.typed", "ballast/" + os.path.basename(_native.__file__)}


def test_the_same_sources_make_the_same_wheel(backend, wheel, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    assert (again / backend.build_wheel(again)).read_bytes() == wheel.read_bytes()


def test_the_metadata_are_ready_before_anything_is_built(backend, tmp_path):
    assert backend.get_requires_for_build_wheel() == []
    folder = tmp_path / backend.prepare_metadata_for_build_wheel(tmp_path)
    text = (folder / "METADATA").read_text()
    for line in ("Name: ballast", f"Version: {ballast.__version__}", "Requires-Python: >=3.9"):
        assert line in text.splitlines()


def test_an_editable_wheel_leads_to_the_build(backend, tmp_path):
    with zipfile.ZipFile(tmp_path / backend.build_editable(tmp_path)) as archive:
        assert archive.read("ballast.pth").decode().strip() == os.path.dirname(os.path.dirname(_native.__file__))


def test_the_sdist_has_what_a_build_needs(backend, tmp_path):
    with tarfile.open(tmp_path / backend.build_sdist(tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        text = archive.extractfile(f"ballast-{ballast.__version__}/pyproject.toml").read().decode()
    assert 'backend-path = ["python/backend"]' in text
    needed = {"CMakeLists.txt", "PKG-INFO", "src/CMakeLists.txt", "cli/CMakeLists.txt", "python/backend/ballast_backend.py"}
    assert needed <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("build/")]


def test_pip_installs_the_wheel_without_the_network(wheel, tmp_path):
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = {"check": True, "cwd": tmp_path, "env": environment}
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel], **run)
    opened = f"import ballast; print(ballast.__file__, len(ballast.open({str(SOURCE / 'examples' / 'tiny.safetensors')!r})))"
    shown = subprocess.run([python, "-c", opened], stdout=subprocess.PIPE, text=True, **run).stdout.split()
    assert shown[0].startswith(str(folder)) and int(shown[1]) > 0
