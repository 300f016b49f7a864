"""Know what will be read, and have it in the page cache first.

- prefetch(accesses): prefetch a list of coming reads, however they are made.
- read(accesses): read a list in its order, prefetching what comes next.
- SamplerPrefetch, ordered_samples: samples of a dataset in an order known beforehand.
- memmap(array, rows): rows of a numpy.memmap in an order known beforehand.

Nothing here changes what a program reads: a session that fails costs the speed-up and nothing else.
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
