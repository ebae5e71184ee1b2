"""Process: settings of the C library and of the interpreter that serving needs."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from dataclasses import dataclass

from engine.units import MIB

# Names and numbers as in glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_MAX = -4
_M_ARENA_MAX = -8
_MALLOC_OPTIONS = (
    (_M_ARENA_MAX, 1),
    (_M_MMAP_MAX, 0),
    (_M_TRIM_THRESHOLD, -1),
    (_M_TOP_PAD, 64 * MIB),
)
_SWITCH_INTERVAL_S = 0.0005
_GC_THRESHOLD = (50_000, 20, 100)
_CHECK_BYTES = 48 * MIB


@dataclass(frozen=True, slots=True)
class Check:
    """Say in one sentence whether a setting has its effect."""

    is_ok: bool
    text: str


def tune_memory() -> Check:
    """Tell the C library to keep freed blocks instead of returning them to the system.

    By default glibc maps every large tensor anew and unmaps it when it dies:
    each batch then pays page faults for all of its activations, up to half of
    its time. The price is that a process keeps what it once needed. Call it
    before any thread starts: threads get heaps of their own otherwise. A
    second call changes nothing.

    Returns:
        Whether it was done, and why not.
    """
    libc = _glibc()
    if libc is None:
        return Check(False, f"memory is not tuned: {sys.platform} has no glibc mallopt")
    refused = [option for option, value in _MALLOC_OPTIONS if not libc.mallopt(option, value)]
    if refused:
        return Check(False, f"memory is not tuned: mallopt refused {refused}")
    return Check(True, "memory is tuned: freed blocks are kept for the next batch")


def tune_interpreter() -> Check:
    """Set the interpreter up for threads that must not wait for each other long.

    A full collection looks at every object that imports have made, with the
    interpreter's lock held; frozen objects are left out. Call it when start-up
    is over. A second call freezes what has come since.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    return interpreter_effect()


def memory_effect() -> Check:
    """Check that a large block is reused without page faults.

    It does what a batch does: take a block, write it, free it, twice; in the
    second round the pages should be there already.
    """
    libc = _glibc()
    if libc is None:
        return Check(False, f"memory: {sys.platform} has no glibc; large blocks may be slow")
    _touch(libc)
    faults = _touch(libc)
    pages = _CHECK_BYTES // resource.getpagesize()
    is_ok = faults < pages // 10
    said = "are reused" if is_ok else "are mapped anew each time: call tune_memory() first"
    return Check(is_ok, f"memory: large blocks {said} ({faults} page faults for {pages} pages)")


def interpreter_effect() -> Check:
    """Check that threads are switched often and that imports are out of the collections."""
    interval_ms = sys.getswitchinterval() * 1e3
    frozen = gc.get_freeze_count()
    is_ok = interval_ms < 1 and frozen > 0
    hint = "" if is_ok else "; call tune_interpreter() after start-up"
    found = f"threads switch after {interval_ms:g} ms, {frozen} objects are frozen"
    return Check(is_ok, f"interpreter: {found}{hint}")


def _glibc() -> ctypes.CDLL | None:
    """Return the C library if it is glibc, with the types of what is called."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return None
    libc.mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    libc.malloc.argtypes = (ctypes.c_size_t,)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    libc.free.restype = None
    return libc


def _touch(libc: ctypes.CDLL) -> int:
    """Take, write and free one large block; return the page faults of this thread."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    block = libc.malloc(_CHECK_BYTES)
    assert block, "a block of this size can be had"
    ctypes.memset(block, 1, _CHECK_BYTES)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
