#!/usr/bin/env python3
"""Rows of a large matrix on disk, in an order known beforehand.

    memmap_rows.py MATRIX.npy                   10,000 rows, prefetched by their list
    memmap_rows.py --plain MATRIX.npy           the same rows without

MATRIX.npy is written if it is not there (needs numpy). Both ways print the same sum.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy

import foreread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrix", type=Path, metavar="MATRIX.npy")
    parser.add_argument("--plain", action="store_true", help="do not prefetch")
    parser.add_argument("--rows", type=int, default=10_000, help="rows to visit (10,000)")
    choices = parser.parse_args()

    if not choices.matrix.exists():
        made = numpy.lib.format.open_memmap(choices.matrix, mode="w+", dtype="f4", shape=(50_000, 1024))
        made[:] = numpy.arange(50_000, dtype="f4")[:, None]
        made.flush()
    with open(choices.matrix, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    matrix = numpy.load(choices.matrix, mmap_mode="r")
    order = numpy.random.default_rng(1).integers(0, len(matrix), choices.rows)

    start = time.perf_counter()
    rows = (matrix[row] for row in order) if choices.plain else foreread.memmap(matrix, order)
    total = sum(float(row[::512].sum()) for row in rows)
    seconds = time.perf_counter() - start
    print(f"sum {total:.0f}")
    print(f"{choices.rows} rows in {seconds:.3f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
