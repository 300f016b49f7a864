"""The native part of the package: sessions, guards and readers."""

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
    """Prefetch the accesses that `accesses` yields, in that order, until the guard is closed."""

def read(
    accesses: Iterable[Access],
    *,
    budget: Optional[SupportsIndex] = None,
    window: Optional[SupportsIndex] = None,
) -> Reader:
    """Read the accesses that `accesses` yields, in that order, and prefetch the next ones meanwhile."""

@final
class Guard:
    """A list being prefetched. Made by `prefetch`; best used in a `with` statement."""

    def at(self, n: SupportsIndex) -> None:
        """Report that the program is about to make access `n`, counted from 0; earlier ones count as passed."""

    def reading(self, file: FileName, offset: SupportsIndex, length: SupportsIndex) -> None:
        """Report that the program is about to read these bytes, by any means."""

    def pread(self, file: FileName, length: SupportsIndex, offset: SupportsIndex) -> bytes:
        """Read `length` bytes at `offset`, fewer only at the end of the file, and report the read."""

    def stats(self) -> Stats:
        """The session's present statistics; after the end, the final ones, with a closed account."""

    def problems(self) -> List[str]:
        """Files that could not be fetched, and why. Empty before the guard is closed."""

    def close(self) -> None:
        """End the session. Fetched pages stay in memory."""

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
        """The session's present statistics; after the end, the final ones, with a closed account."""

    def problems(self) -> List[str]:
        """Files that could not be fetched, and why. Empty before the reader is closed."""

    def close(self) -> None:
        """End the session. Fetched pages stay in memory."""

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
        """Its offset, in bytes."""

    @property
    def marked_file(self) -> Optional[FileName]:
        """The file of the most recent marked access, or None."""

    @property
    def marked_offset(self) -> Optional[int]:
        """The offset of that access in bytes, or None."""

    @property
    def ran_out(self) -> bool:
        """True if the list has run out; if false, the read is not on it."""

@final
class Stats:
    """Statistics of a session: counts of entries and reads, and bytes."""

    @property
    def accepted(self) -> int:
        """Entries that the list has accepted so far."""

    @property
    def listed(self) -> int:
        """Reads that were on the list."""

    @property
    def unlisted(self) -> int:
        """Reads of listed files that were not on the list."""

    @property
    def skipped(self) -> int:
        """Entries that the program passed and has not read."""

    @property
    def ahead(self) -> int:
        """Entries ahead of the program."""

    @property
    def issued(self) -> int:
        """Bytes fetched ahead of the program; after the end, the sum of useful, late, wasted, evicted and infill."""

    @property
    def useful(self) -> int:
        """Issued bytes that were in memory when the program read them."""

    @property
    def late(self) -> int:
        """Issued bytes that were still on their way when the program read them."""

    @property
    def wasted(self) -> int:
        """Issued bytes of entries that the program never read."""

    @property
    def evicted(self) -> int:
        """Issued bytes that were gone from memory before the program read them."""

    @property
    def infill(self) -> int:
        """Issued bytes between entries, fetched along with them, that the program never read."""

    @property
    def missed(self) -> int:
        """Bytes of reads that waited for the device, because they were not prefetched in time."""
