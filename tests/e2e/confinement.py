"""Runs a program that can read and compute and do nothing else: a seccomp filter kills it at any other system call.

The filter lists what is allowed. Not in the list: starting a program, a process, a socket, changing anything on a disk,
tracing. Opening is allowed for reading only, clone for threads only. The one execve that starts the program itself is
told from all others by the address of its path, which nothing in the new program's memory can have by design.
"""

import ctypes
import os
import platform
import signal
import struct

# name: (x86-64, AArch64); None if the architecture has no such call
ALLOWED = {
    "read": (0, 63), "pread64": (17, 67), "readv": (19, 65), "preadv": (295, 69), "preadv2": (327, 286),
    "write": (1, 64), "writev": (20, 66),
    "close": (3, 57), "lseek": (8, 62), "dup": (32, 23), "fcntl": (72, 25), "ioctl": (16, 29), "poll": (7, None),
    "ppoll": (271, 73), "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getdents64": (217, 61),
    "getcwd": (79, 17), "fadvise64": (221, 223),
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
    "mincore": (27, 232), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "futex": (202, 98), "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293),
    "membarrier": (324, 283), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "gettid": (186, 178),
    "getpid": (39, 172), "prlimit64": (302, 261), "getrusage": (98, 165), "sysinfo": (99, 179), "uname": (63, 160),
    "arch_prctl": (158, None), "getrandom": (318, 278), "clock_gettime": (228, 113), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "tgkill": (234, 131), "exit": (60, 93), "exit_group": (231, 94),
}
OPEN, OPENAT, CLONE, CLONE3, EXECVE = (2, None), (257, 56), (56, 220), (435, 435), (59, 221)

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # and O_TMPFILE's own bit
CLONE_THREAD = 0x10000
ENOSYS = 38

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # of classic BPF: ld word absolute, jeq, jset, ret
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # where these lie in the data that a filter is given

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

LIBC = ctypes.CDLL(None, use_errno=True)


def is_possible():
    """Whether this system can confine a program: it is Linux, on an architecture that the list knows."""
    return platform.system() == "Linux" and platform.machine() in ARCHITECTURES


def was_killed(code):
    """Whether a return code is that of a program that was killed for a call that is not allowed."""
    return code in (-signal.SIGSYS, 128 + signal.SIGSYS)


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def low_half(argument):
    return FIRST_ARGUMENT + 8 * argument


def on_call(number, *then):
    """Runs `then`, which ends in a return, for one system call, and leaves all others to what follows."""
    return [instruction(LOAD, NUMBER), instruction(EQUAL, number, 0, len(then)), *then]


def program(path_address):
    column, architecture = ARCHITECTURES[platform.machine()]
    kill, allow = instruction(RETURN, KILL), instruction(RETURN, ALLOW)
    code = [instruction(LOAD, ARCHITECTURE), instruction(EQUAL, architecture, 1, 0), kill]
    for name, numbers in ALLOWED.items():
        if numbers[column] is not None:
            code += on_call(numbers[column], allow)
    for numbers, flags in ((OPEN, 1), (OPENAT, 2)):
        if numbers[column] is not None:
            code += on_call(numbers[column], instruction(LOAD, low_half(flags)),
                            instruction(ANY_BIT, WRITING, 0, 1), kill, allow)
    code += on_call(CLONE[column], instruction(LOAD, low_half(0)),
                    instruction(ANY_BIT, CLONE_THREAD, 1, 0), kill, allow)
    # The flags of clone3 lie in memory, where a filter cannot look: the C library uses clone instead.
    code += on_call(CLONE3[column], instruction(RETURN, ERRNO | ENOSYS))
    code += on_call(EXECVE[column], instruction(LOAD, low_half(0)), instruction(EQUAL, path_address, 1, 0), kill,
                    instruction(LOAD, low_half(0) + 4), instruction(EQUAL, path_address >> 32, 1, 0), kill, allow)
    return b"".join(code + [kill])


def start(arguments, environment):
    """A preexec_fn for subprocess that replaces the process by the confined program before subprocess itself does."""
    path = ctypes.create_string_buffer(os.fsencode(arguments[0]))
    words = [os.fsencode(str(argument)) for argument in arguments]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    variables = [os.fsencode(f"{key}={value}") for key, value in environment.items()]
    envp = (ctypes.c_char_p * (len(variables) + 1))(*variables, None)
    code = program(ctypes.addressof(path))
    text = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    given = Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))

    def become():
        if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        LIBC.execve(path, argv, envp)
        raise OSError(ctypes.get_errno(), "execve")

    return become
