"""Fetch data into the page cache before the program reads them, by a list of its next reads.

- prefetch(accesses): prefetch a list of reads, which the program makes by any means.
- read(accesses): read a list in its order, and prefetch the next entries.
- SamplerPrefetch, ordered_samples: samples of a dataset in an order known beforehand.
- memmap(array, rows): rows of a numpy.memmap in an order known beforehand.

The program reads the same data as without foreread. A session that fails costs only the speed-up.
"""

from ._layout import Layout, Offsets, Records
from ._memmap import memmap
from ._native import Guard, Miss, Reader, Stats, __version__, prefetch, read
from ._sampler import SamplerPrefetch, ordered_samples
from ._types import Access, FileName

__all__ = [
    "Access",
    "FileName",
    "Guard",
    "Layout",
    "Miss",
    "Offsets",
    "Reader",
    "Records",
    "SamplerPrefetch",
    "Stats",
    "__version__",
    "memmap",
    "ordered_samples",
    "prefetch",
    "read",
]
