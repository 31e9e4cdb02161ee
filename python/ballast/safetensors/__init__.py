"""A drop-in for the package safetensors 0.8: the same names, arguments, results and errors, on Ballast.

    from ballast.safetensors import safe_open
    from ballast.safetensors.numpy import load_file, save_file

It differs where the other would lose data: repeated names in a file are refused, arrays that are not contiguous are
saved as they look, and files get the mode that the umask says.
"""

from ._bytes import TensorSpec, deserialize, serialize, serialize_file
from ._error import SafetensorError
from ._open import PySafeSlice, _safe_open_handle, safe_open

# The version whose interface this is: programs compare it.
__version__ = "0.8.0"

__all__ = ["SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize", "serialize_file"]
