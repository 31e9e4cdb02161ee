"""Root may read and write whatever permissions say, which would leave nothing to test where tests run as root."""

import contextlib
import ctypes
import os
import struct

DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2  # of linux/capability.h


@contextlib.contextmanager
def without_root_rights():
    """Inside it, permissions hold for this thread as for everybody, even if root runs it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = struct.pack("<Ii", 0x20080522, 0), ctypes.create_string_buffer(24)  # version 3, this thread

    def check(failed):
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    check(libc.capget(header, before))
    (effective,) = struct.unpack_from("<I", before)
    check(libc.capset(header, struct.pack("<I", effective & ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)) + before.raw[4:]))
    try:
        yield
    finally:
        check(libc.capset(header, before))
