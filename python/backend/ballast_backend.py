"""Makes the wheel of the Python module, for pip: the hooks of PEP 517 and PEP 660, with nothing but the standard library.

The native module is built by our CMake. A build folder for each version of Python is kept in build/ of the source tree, so
that the second wheel takes seconds; --config-settings build-folder=FOLDER names another one.
"""

import ast
import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "ballast"
NAME = "ballast"

# What the build of the module needs of the repository.
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "cli", "include", "src", "python")

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Opens every model checkpoint, safely, lazily, without copies, and without torch
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{description}
"""

# An sdist is unpacked into one folder, and pip looks for this file at its top.
SDIST_PYPROJECT = """\
[build-system]
requires = []
build-backend = "ballast_backend"
backend-path = ["python/backend"]
"""


# The hooks.


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory, _dist_info())
    folder.mkdir()
    for name, content in _dist_info_files().items():
        (folder / name).write_bytes(content)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    native = _build_native(_build_folder(config_settings))
    files = {f"{NAME}/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in _python_files()}
    files[f"{NAME}/{native.name}"] = native.read_bytes()
    return _write_wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that only leads to the build folder, where the native module stands beside links to the Python files."""
    native = _build_native(_build_folder(config_settings))
    return _write_wheel(wheel_directory, {f"{NAME}.pth": f"{native.parent.parent}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    top = f"{NAME}-{_version()}"
    path = pathlib.Path(sdist_directory, top + ".tar.gz")
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=_date()) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, f"{top}/PKG-INFO", _metadata())
            _add(archive, f"{top}/pyproject.toml", SDIST_PYPROJECT.encode())
            for source in _source_files():
                name = f"{top}/{source.relative_to(ROOT).as_posix()}"
                _add(archive, name, source.read_bytes(), executable=os.access(source, os.X_OK))
    return path.name


# What is in a wheel.


def _version():
    found = re.search(r"project\(ballast\s+VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not found:
        sys.exit("ballast: CMakeLists.txt does not say which version this is")
    return found.group(1)


def _metadata():
    module = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    return METADATA.format(name=NAME, version=_version(), description=ast.get_docstring(module)).encode()


def _tag():
    if not sys.platform.startswith("linux") or sys.implementation.name != "cpython":
        sys.exit("ballast: for now there is only a module for CPython on Linux")
    python = "cp{}{}".format(*sys.version_info)
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}{sys.abiflags}-{platform}"


def _dist_info():
    return f"{NAME}-{_version()}.dist-info"


def _dist_info_files():
    wheel = f"Wheel-Version: 1.0\nGenerator: ballast_backend\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    return {"LICENSE": (ROOT / "LICENSE").read_bytes(), "METADATA": _metadata(), "WHEEL": wheel.encode()}


def _python_files():
    return [path for path in _tree(PACKAGE) if path.suffix in (".py", ".pyi") or path.name == "py.typed"]


def _source_files():
    files = []
    for name in SOURCES:
        files += _tree(ROOT / name) if (ROOT / name).is_dir() else [ROOT / name]
    return files


def _tree(folder):
    """The files below a folder, in an order that is always the same, without what Python leaves behind."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


# How it is written. The same sources give the same bytes.


def _date():
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800)  # a zip knows no time before 1980


def _write_wheel(folder, files):
    """Writes a wheel of `files` (names to bytes), and returns its name."""
    info = _dist_info()
    files = {**files, **{f"{info}/{name}": content for name, content in _dist_info_files().items()}}
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    path = pathlib.Path(folder, f"{NAME}-{_version()}-{_tag()}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, time.gmtime(_date())[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(member, content)
    return path.name


def _digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _add(archive, name, content, executable=False):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mtime = _date()
    member.mode = 0o755 if executable else 0o644
    archive.addfile(member, io.BytesIO(content))


# The native module.


def _build_folder(config_settings):
    named = (config_settings or {}).get("build-folder")
    return pathlib.Path(named).absolute() if named else ROOT / "build" / ("wheel-" + _tag())


def _build_native(folder):
    """Builds the native module, and returns its path."""
    if not shutil.which("cmake"):
        sys.exit("ballast: there is no cmake; `./dev setup build python` in a clone of Ballast installs what is needed")
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "BALLAST_COMMAND_ONLY": "ON",
        "BALLAST_BUILD_PYTHON": "ON",
        "BALLAST_INSTALL": "OFF",
        "BALLAST_WERROR": "OFF",
        "Python_EXECUTABLE": sys.executable,
    }
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    _run("cmake", "-S", ROOT, "-B", folder, *generator, *(f"-D{name}={value}" for name, value in options.items()))
    _run("cmake", "--build", folder, "--target", "ballast_python", "--parallel", os.cpu_count() or 1)
    return folder / "python" / NAME / ("_native" + sysconfig.get_config_var("EXT_SUFFIX"))


def _run(*command):
    words = [str(word) for word in command]
    if subprocess.run(words).returncode != 0:
        sys.exit(
            f"ballast: {words[0]} failed, see above; `./dev setup build python` in a clone of Ballast installs what the "
            "build needs"
        )
