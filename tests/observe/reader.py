"""Reads through Python's own files, buffered and not, and through os."""

import mmap
import os
import sys

path = sys.argv[-1]
fd = os.open(path, os.O_RDONLY)
os.pread(fd, 100, 12288)
os.read(fd, 50)
os.lseek(fd, 8000, os.SEEK_SET)
os.read(fd, 60)
os.preadv(fd, [bytearray(70)], 9000)
os.close(fd)
with open(path, "rb", buffering=0) as file:
    file.seek(4096)
    file.read(4096)
with open(path, "rb", buffering=4096) as file:
    file.read(10)
    file.read(10)
