#!/usr/bin/env python3
"""Train on a shuffled dataset: 100,000 samples in a few large files, each read once, in an order known beforehand.

    random_samples.py --make DIR                     write the dataset, once
    random_samples.py --mode plain DIR               read it as any program would
    random_samples.py --mode foreread DIR            the same reads, prefetched by their list

Both modes print the same checksum. --compute adds microseconds of computing for each sample, --cold has
nothing of the dataset in memory at the start.
"""

import argparse
import os
import random
import sys
import time
import zlib
from pathlib import Path
from typing import Iterator, List

FILES = 4


def make(folder: Path, samples: int, size: int) -> None:
    """Write the samples, evenly over the files."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(1)
    for number in range(FILES):
        with open(folder / f"samples-{number}.bin", "wb") as file:
            for _ in range(number, samples, FILES):
                file.write(noise.randbytes(size))
            file.flush()
            os.fsync(file.fileno())


def evict(paths: List[Path]) -> None:
    """Have nothing of the files in memory."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain(paths: List[Path], order: List[int], per_file: int, size: int) -> Iterator[bytes]:
    """The samples in that order, as any program would read them."""
    files = [os.open(path, os.O_RDONLY) for path in paths]
    for index in order:
        yield os.pread(files[index // per_file], size, index % per_file * size)


def foreread(paths: List[Path], order: List[int], per_file: int, size: int) -> Iterator[bytes]:
    """The samples in that order, each in memory by the time it is read."""
    import foreread

    return foreread.read((paths[index // per_file], index % per_file * size, size) for index in order)


def train(samples: Iterator[bytes], compute_us: float) -> int:
    """Look at every sample; a checksum of all of them, which depends on the order."""
    checksum = 1
    if not compute_us:
        for sample in samples:
            checksum = zlib.adler32(sample, checksum)
        return checksum
    compute_ns = round(compute_us * 1000)
    clock = time.perf_counter_ns
    for sample in samples:
        end = clock() + compute_ns
        checksum = zlib.adler32(sample, checksum)
        while clock() < end:
            pass
    return checksum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the dataset's folder")
    parser.add_argument("--make", action="store_true", help="write the dataset")
    parser.add_argument("--mode", choices=["plain", "foreread"], default="foreread")
    parser.add_argument("--samples", type=int, default=100_000, help="samples to write with --make (100,000)")
    parser.add_argument("--size", type=int, default=4096, help="bytes of a sample (4096)")
    parser.add_argument("--count", type=int, help="samples to read (all)")
    parser.add_argument("--compute", type=float, default=0, metavar="US", help="computing for each sample, in µs (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--cold", action="store_true", help="evict the dataset first")
    choices = parser.parse_args()

    if choices.make:
        make(choices.folder, choices.samples, choices.size)
        return
    paths = sorted(choices.folder.glob("samples-*.bin"))
    if not paths:
        sys.exit(f"{choices.folder}: no samples-*.bin here; write them with --make")
    per_file = min(path.stat().st_size for path in paths) // choices.size
    order = list(range(per_file * len(paths)))
    random.Random(choices.seed).shuffle(order)
    order = order[: choices.count]
    if choices.cold:
        evict(paths)

    start = time.perf_counter()
    read = plain if choices.mode == "plain" else foreread
    checksum = train(read(paths, order, per_file, choices.size), choices.compute)
    seconds = time.perf_counter() - start
    print(f"checksum {checksum:08x}")
    print(
        f"{choices.mode}: {len(order)} samples in {seconds:.3f} s, {seconds / max(1, len(order)) * 1e6:.1f} µs each",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
