"""patch(): Ballast in place of safetensors and gguf, for programs that cannot be edited."""

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import RLock

_PACKAGES = ("safetensors", "gguf")
# Neither NumPy nor torch is imported for these.
_AT_ONCE = ("safetensors", "gguf", "gguf.constants", "gguf.gguf_reader", "gguf.quants")
_HERE = __name__.rpartition(".")[0]  # "ballast"

_lock = RLock()
_uses = 0  # of patch() that nobody has undone
_originals = {}  # what sys.modules had instead


class _Finder:
    """Finds the modules of the packages, so that each is imported when a program first wants it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, _Finder) if name.partition(".")[0] in _PACKAGES else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        # The import system takes what it finds in sys.modules afterwards.
        sys.modules[module.__spec__.name] = _stand_in(module.__spec__.name)


class _Patch:
    """A use of patch(), which ends by undo() or at the end of a with statement."""

    def __init__(self):
        self._is_on = True

    def undo(self):
        """Puts the original modules back, if no other use is left. A second call does nothing."""
        global _uses
        with _lock:
            if not self._is_on:
                return
            self._is_on = False
            _uses -= 1
            if _uses == 0:
                _take_out()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo()


def patch():
    """Puts ballast.safetensors and ballast.gguf in place of the packages safetensors and gguf, with their submodules.

    Programs that import these from now on get Ballast's. Names that a program took from the originals earlier (by
    `from safetensors.torch import load_file`) stay as they are, so call this first.

        ballast.patch()               # from here on

        with ballast.patch():         # only inside
            import somebodys_program

    What the originals have and Ballast lacks (gguf.GGUFWriter, safetensors.flax) comes from them if they are installed.
    """
    global _uses
    with _lock:
        if _uses == 0:
            _put_in()
        _uses += 1
        return _Patch()


def _take_all():
    """Takes the modules of the packages out of sys.modules."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in _PACKAGES}


def _put_in():
    _originals.update(_take_all())
    sys.meta_path.insert(0, _Finder)
    try:
        for name in _AT_ONCE:
            import_module(name)
    except BaseException:
        _take_out()
        raise


def _take_out():
    sys.meta_path.remove(_Finder)
    _take_all()
    sys.modules.update(_originals)
    _originals.clear()


def _stand_in(name):
    """The module that stands in for an original: ours, or the original itself if we have none."""
    if name == "safetensors._safetensors_rust":  # the native half, which some programs import by itself
        name = "safetensors"
    ours = f"{_HERE}.{name}"
    try:
        return import_module(ours)
    except ModuleNotFoundError as error:
        if error.name != ours:
            raise
    return _original(name)


def _original(name):
    with _lock:
        if _Finder not in sys.meta_path:  # another thread has just undone it
            return import_module(name)
        with _lifted():
            return import_module(name)


@contextmanager
def _lifted():
    """The originals for a moment; what is imported meanwhile belongs to them."""
    ours = _take_all()
    sys.meta_path.remove(_Finder)
    sys.modules.update(_originals)
    try:
        yield
    finally:
        _originals.update(_take_all())
        sys.meta_path.insert(0, _Finder)
        sys.modules.update(ours)


def attribute_of_original(module, name):
    """What the original of one of our modules has under a name that ours lacks; an AttributeError if there is none."""
    if _uses and not name.startswith("__"):
        try:
            return getattr(_original(module.removeprefix(_HERE + ".")), name)
        except (ImportError, AttributeError):
            pass
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
