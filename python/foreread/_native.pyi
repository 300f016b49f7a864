"""The native half of the package: sessions, guards and readers."""

import os
from types import TracebackType
from typing import Callable, Iterable, Iterator, List, Optional, SupportsIndex, Type, final

from ._types import Access, FileName

__version__: str

def prefetch(
    accesses: Iterable[Access],
    *,
    budget: Optional[SupportsIndex] = None,
    window: Optional[SupportsIndex] = None,
    on_miss: Optional[Callable[[Miss], Optional[Iterable[Access]]]] = None,
    check: Optional[os.PathLike[str] | str] = None,
) -> Guard:
    """Prefetch what `accesses` yields, in that order, until the guard is closed."""

def read(
    accesses: Iterable[Access],
    *,
    budget: Optional[SupportsIndex] = None,
    window: Optional[SupportsIndex] = None,
) -> Reader:
    """Read what `accesses` yields, in that order, prefetching what comes next meanwhile."""

@final
class Guard:
    """A list being prefetched. Made by `prefetch`; best used in a `with` statement."""

    def at(self, n: SupportsIndex) -> None:
        """The program is about to make access number `n`; the ones before count as passed."""

    def reading(self, file: FileName, offset: SupportsIndex, length: SupportsIndex) -> None:
        """The program is about to read these bytes, by means of its own."""

    def pread(self, file: FileName, length: SupportsIndex, offset: SupportsIndex) -> bytes:
        """Read up to `length` bytes at `offset`, fewer only at the end of the file."""

    def stats(self) -> Stats:
        """Where the session stands; after the end, its closed account."""

    def problems(self) -> List[str]:
        """Files that could not be fetched, and why. Known once the guard is closed."""

    def close(self) -> None:
        """End the session. What is in memory stays there."""

    def __enter__(self) -> Guard: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]] = None,
        exception: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
        /,
    ) -> None: ...

@final
class Reader(Iterator[bytes]):
    """An iterator of `bytes`, one for each access of the list. Made by `read`."""

    def __iter__(self) -> Reader: ...
    def __next__(self) -> bytes: ...
    def stats(self) -> Stats:
        """Where the session stands; after the end, its closed account."""

    def problems(self) -> List[str]:
        """Files that could not be fetched, and why. Known once the reader is closed."""

    def close(self) -> None:
        """End the session. What is in memory stays there."""

    def __enter__(self) -> Reader: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]] = None,
        exception: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
        /,
    ) -> None: ...

@final
class Miss:
    """A read that is not on the list, or the one that used up the list."""

    @property
    def file(self) -> FileName:
        """The file about to be read, as it was first named."""

    @property
    def offset(self) -> int:
        """Where in it, in bytes."""

    @property
    def marked_file(self) -> Optional[FileName]:
        """The file of the most recent marked access."""

    @property
    def marked_offset(self) -> Optional[int]:
        """Where in it, in bytes."""

    @property
    def ran_out(self) -> bool:
        """Whether the list has run out; if not, the read is not on it."""

@final
class Stats:
    """Where a session stands: reads and entries are counts, the rest is bytes."""

    @property
    def accepted(self) -> int:
        """Entries handed over so far."""

    @property
    def listed(self) -> int:
        """Reads that were on the list."""

    @property
    def unlisted(self) -> int:
        """Reads of listed files that were not."""

    @property
    def skipped(self) -> int:
        """Entries passed over without being read."""

    @property
    def ahead(self) -> int:
        """Entries ahead of the program."""

    @property
    def issued(self) -> int:
        """Bytes fetched ahead of the program: useful, late, wasted, evicted and infill together."""

    @property
    def useful(self) -> int:
        """Of those, in memory when they were read."""

    @property
    def late(self) -> int:
        """Of those, still on their way when they were read."""

    @property
    def wasted(self) -> int:
        """Of those, never read."""

    @property
    def evicted(self) -> int:
        """Of those, gone from memory again before they were read."""

    @property
    def infill(self) -> int:
        """Of those, read along because they lay between others, and never read by the program."""

    @property
    def missed(self) -> int:
        """Bytes the program read from the device by itself."""
