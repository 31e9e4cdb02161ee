from collections.abc import Mapping
from typing import Any, Literal, Protocol

from . import adapter as adapter
from . import cache as cache
from . import gguf as gguf
from . import imatrix as imatrix
from . import meta as meta
from . import peft as peft
from . import safetensors as safetensors
from ._load import Composite as Composite
from ._load import Opaque as Opaque
from ._load import load as load
from ._native import AlreadyExists as AlreadyExists
from ._native import Cancelled as Cancelled
from ._native import Changed as Changed
from ._native import Checkpoint as Checkpoint
from ._native import Error as Error
from ._native import InvalidArgument as InvalidArgument
from ._native import IOFailed as IOFailed
from ._native import Malformed as Malformed
from ._native import Mismatch as Mismatch
from ._native import NoPermission as NoPermission
from ._native import NoSuchTensor as NoSuchTensor
from ._native import NotFound as NotFound
from ._native import OverLimit as OverLimit
from ._native import Tensor as Tensor
from ._native import Unsafe as Unsafe
from ._native import Unsupported as Unsupported
from ._patch import patch as patch
from ._run import Report as Report
from ._run import _Path, _Progress
from ._verbs import check as check
from ._verbs import convert as convert
from ._verbs import diff as diff
from ._verbs import fetch as fetch
from ._verbs import hash as hash
from ._verbs import info as info
from ._verbs import ls as ls
from ._verbs import plan as plan
from ._verbs import scan as scan
from ._verbs import stats as stats
from ._verbs import verify as verify
from ._verbs import view as view

__version__: str

class _Source(Protocol):
    """Any object that reads; size may be a property, or len() of the object."""

    def read(self, offset: int, size: int, /) -> bytes: ...

def open(
    target: _Path | bytes | bytearray | memoryview | _Source,
    *,
    device: Any = "cpu",
    root: str | None = None,
    safety: Literal["inert", "strict"] = "inert",
    cache: Literal["use", "ignore", "automatic", "always"] = "use",
    lenient: bool = False,
    dequantize: bool = False,
    conversions: str | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int = 0,
    progress: _Progress | None = None,
    variant: str | None = None,
    subfolder: str | None = None,
    token: str | None = None,
    cache_dir: _Path | None = None,
    headers: Mapping[str, str] | None = None,
    offline: bool = False,
) -> Checkpoint: ...
def save(
    tensors: Checkpoint | Mapping[str, Any], path: _Path, *, metadata: Mapping[str, str] | None = None, **options: Any
) -> Report: ...
