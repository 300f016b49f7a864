"""Files, and what of them is in memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import time
from pathlib import Path
from typing import Callable, List

import pytest

PAGE = 4096
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def resident(path: Path) -> List[bool]:
    """Which pages of the file are in memory."""
    size = path.stat().st_size
    pages = ctypes.create_string_buffer(-(-size // PAGE))
    fd = os.open(path, os.O_RDONLY)
    try:
        address = LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        assert address != ctypes.c_void_p(-1).value, "mmap failed"
        failed = LIBC.mincore(address, size, pages)
        LIBC.munmap(address, size)
        assert not failed, os.strerror(ctypes.get_errno())
    finally:
        os.close(fd)
    return [bool(page[0] & 1) for page in pages]


def evict(path: Path) -> None:
    """Have no page of the file in memory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    if any(resident(path)):
        pytest.skip(f"the pages of {path} cannot be evicted: a memory file system?")


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether the condition comes true in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Sixteen MiB that are nowhere twice, cold."""
    path = tmp_path / "data.bin"
    path.write_bytes(random.Random(7).randbytes(16 << 20))
    evict(path)
    return path


@pytest.fixture
def shuffled(data: Path) -> List[int]:
    """Numbers of the file's pages, every fourth, in an order without pattern."""
    pages = list(range(0, data.stat().st_size // PAGE, 4))
    random.Random(8).shuffle(pages)
    return pages
