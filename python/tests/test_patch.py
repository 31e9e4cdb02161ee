"""ballast.patch(): Ballast in place of safetensors and gguf."""

import importlib
import subprocess
import sys

import pytest

import ballast
import ballast.gguf
import ballast.safetensors

PACKAGES = ("safetensors", "gguf")


def modules():
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES}


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Each test begins without the originals, and leaves everything as it was."""
    kept, finders = modules(), list(sys.meta_path)
    for name in kept:
        del sys.modules[name]
    yield
    assert sys.meta_path == finders, "a test left the patch on"
    for name in modules():
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """Packages that could be the originals."""
    for name, text in {
        "gguf/__init__.py": "from .constants import *\nfrom .gguf_writer import GGUFWriter\nGGUFReader = 'theirs'\n",
        "gguf/constants.py": "class Keys:\n    NAME = 'general.name'\n",
        "gguf/gguf_writer.py": "from gguf.constants import Keys\nclass GGUFWriter:\n    keys = Keys\n",
        "safetensors/__init__.py": "safe_open = 'theirs'\n",
        "safetensors/numpy.py": "load_file = 'theirs'\n",
        "safetensors/flax.py": "from safetensors import safe_open\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)


def test_programs_get_the_modules_of_ballast():
    with ballast.patch():
        import gguf
        import gguf.quants
        import safetensors
        from gguf.gguf_reader import GGUFReader

        assert gguf is ballast.gguf and safetensors is ballast.safetensors
        assert GGUFReader is ballast.gguf.GGUFReader and gguf.quants is ballast.gguf.quants
        assert sys.modules["gguf.constants"] is ballast.gguf.constants
        assert ballast.gguf.__spec__.name == "ballast.gguf" and gguf.__name__ == "ballast.gguf"


def test_submodules_are_imported_when_somebody_wants_them():
    pytest.importorskip("numpy")
    with ballast.patch():
        import safetensors.numpy
        from safetensors._safetensors_rust import SafetensorError

        assert safetensors.numpy is importlib.import_module("ballast.safetensors.numpy")
        assert SafetensorError is ballast.safetensors.SafetensorError


def test_the_end_puts_back_what_was_there(originals):
    import gguf.constants
    import safetensors.numpy

    before = modules()
    with ballast.patch():
        assert sys.modules["gguf"] is ballast.gguf and sys.modules["gguf.constants"] is ballast.gguf.constants
        import safetensors.numpy
    assert modules() == before
    import safetensors

    assert safetensors.safe_open == "theirs" and safetensors.numpy.load_file == "theirs"


def test_the_end_leaves_nothing_if_nothing_was_there():
    with ballast.patch():
        import gguf
    assert modules() == {}


def test_originals_that_were_not_imported_yet_are_imported_afterwards(originals):
    with ballast.patch():
        from gguf import GGUFReader

        assert GGUFReader is ballast.gguf.GGUFReader
    from gguf import GGUFReader

    assert GGUFReader == "theirs"


def test_an_error_inside_ends_it_as_well():
    with pytest.raises(ZeroDivisionError), ballast.patch():
        raise ZeroDivisionError
    assert modules() == {}


def test_a_plain_call_stays_until_it_is_undone():
    use = ballast.patch()
    assert sys.modules["gguf"] is ballast.gguf
    use.undo()
    assert modules() == {}
    use.undo()
    assert modules() == {}


def test_uses_inside_each_other_end_with_the_last(originals):
    import gguf

    theirs = gguf
    first = ballast.patch()
    with ballast.patch() as second:
        with ballast.patch():
            pass
        first.undo()
        assert sys.modules["gguf"] is ballast.gguf
        second.undo()
        assert sys.modules["gguf"] is theirs
    assert sys.modules["gguf"] is theirs
    with ballast.patch():
        assert sys.modules["gguf"] is ballast.gguf
    assert sys.modules["gguf"] is theirs


def test_what_ballast_lacks_comes_from_the_originals(originals):
    with ballast.patch():
        import gguf
        import gguf.gguf_writer
        import safetensors.flax
        from gguf import GGUFWriter
        from gguf.constants import Keys

        assert Keys.NAME == "general.name" and GGUFWriter.keys is Keys
        assert gguf.gguf_writer.GGUFWriter is GGUFWriter and safetensors.flax.safe_open == "theirs"
        assert gguf is ballast.gguf and gguf.GGUFReader is ballast.gguf.GGUFReader
        assert sys.modules["gguf"] is ballast.gguf
    import gguf

    assert gguf.GGUFReader == "theirs" and gguf.GGUFWriter is GGUFWriter


def test_what_nobody_has_is_an_import_error():
    with ballast.patch():
        with pytest.raises(ImportError):
            from gguf import GGUFWriter  # noqa: F401
        with pytest.raises(ModuleNotFoundError) as caught:
            import gguf.vocab  # noqa: F401
        assert caught.value.name in ("gguf", "gguf.vocab")
        assert not hasattr(sys.modules["gguf"], "Metadata")
        assert sys.modules["gguf"] is ballast.gguf


def test_without_the_patch_the_originals_are_not_asked(originals):
    with pytest.raises(AttributeError, match="module 'ballast.gguf' has no attribute 'GGUFWriter'"):
        ballast.gguf.GGUFWriter
    assert modules() == {}


def test_it_imports_neither_numpy_nor_torch():
    code = "import sys, ballast; ballast.patch(); sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
