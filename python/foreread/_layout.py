"""The places of a dataset's samples: from an index to an extent."""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import accumulate
from typing import Optional, Protocol, Sequence, SupportsIndex, Tuple, Union

from ._types import FileName

#: The place of a sample: file, offset and length, in bytes.
Extent = Tuple[FileName, int, int]


class Layout(Protocol):
    """Returns the place of sample `index`. Any function of this type is a layout."""

    def __call__(self, index: int, /) -> Extent: ...


def files_of(files: Union[FileName, Sequence[FileName]]) -> list[FileName]:
    if isinstance(files, (list, tuple)):
        if not files:
            raise ValueError("files is empty: a layout needs at least one file")
        return list(files)
    return [files]  # type: ignore[list-item]


def size_of(file: FileName) -> int:
    if isinstance(file, (str, bytes, int, os.PathLike)):
        return os.stat(file).st_size
    return os.fstat(file.fileno()).st_size


class Records:
    """Records of one size, one after another, in one file or several.

    Index 0 is the first record of the first file. Each file begins with `header` bytes that belong to no
    record. An incomplete record at its end is no sample.
    """

    def __init__(
        self, files: Union[FileName, Sequence[FileName]], size: int, *, header: int = 0
    ) -> None:
        if size <= 0:
            raise ValueError(f"size is {size}: a record has at least one byte")
        if header < 0:
            raise ValueError(f"header is {header}, not a number of bytes")
        self._files = files_of(files)
        self._size = size
        self._header = header
        counts = (max(0, size_of(file) - header) // size for file in self._files)
        #: Index of the first record after each file.
        self._ends = list(accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1]

    def __call__(self, index: int, /) -> Extent:
        if not 0 <= index < self._ends[-1]:
            raise IndexError(f"sample {index} of {self._ends[-1]} in {self._files[0]!r}")
        file = bisect_right(self._ends, index)
        first = self._ends[file - 1] if file else 0
        return self._files[file], self._header + (index - first) * self._size, self._size


class Offsets:
    """Samples of any size: sample `i` begins at `offsets[i]`.

    It is `lengths[i]` bytes long. Without `lengths` it ends where the next sample begins, and `offsets` has one
    number more, the end of the last sample. With several files, sample `i` is in `files[file_of[i]]`.
    """

    def __init__(
        self,
        files: Union[FileName, Sequence[FileName]],
        offsets: Sequence[SupportsIndex],
        lengths: Optional[Sequence[SupportsIndex]] = None,
        *,
        file_of: Optional[Sequence[SupportsIndex]] = None,
    ) -> None:
        self._files = files_of(files)
        if len(self._files) > 1 and file_of is None:
            raise ValueError(f"file_of is missing: which of {len(self._files)} files is a sample in?")
        if len(self._files) > 1 and lengths is None:
            raise ValueError("lengths is missing: the next offset may be in another file")
        self._count = len(offsets) - 1 if lengths is None else len(offsets)
        for name, given in (("lengths", lengths), ("file_of", file_of)):
            if given is not None and len(given) != self._count:
                raise ValueError(f"{name} has {len(given)} numbers, and there are {self._count} samples")
        if self._count < 0:
            raise ValueError("offsets is empty: without lengths it ends with the end of the last sample")
        self._offsets = offsets
        self._lengths = lengths
        self._file_of = file_of

    def __len__(self) -> int:
        return self._count

    def __call__(self, index: int, /) -> Extent:
        if not 0 <= index < self._count:
            raise IndexError(f"sample {index} of {self._count} in {self._files[0]!r}")
        start = int(self._offsets[index])
        if self._lengths is None:
            length = int(self._offsets[index + 1]) - start
            if length < 0:
                raise ValueError(f"offsets fall from {start} to {start + length} at sample {index}")
        else:
            length = int(self._lengths[index])
        file = self._files[0 if self._file_of is None else int(self._file_of[index])]
        return file, start, length
