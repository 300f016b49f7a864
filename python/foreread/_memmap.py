"""Rows of a numpy.memmap in an order known beforehand.

A page of a mapping is read when it is touched, without a call that foreread could intercept. So the position
is reported for each row. numpy is imported only when a memmap is given.
"""

from __future__ import annotations

import mmap
import os
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, SupportsIndex, Tuple

from ._sampler import SamplerPrefetch

if TYPE_CHECKING:
    import numpy


def memmap(
    array: "numpy.memmap[Any, Any]",
    rows: Iterable[SupportsIndex],
    *,
    budget: Optional[int] = None,
    window: Optional[int] = None,
) -> Iterator["numpy.memmap[Any, Any]"]:
    """Yield the view `array[row]` for each of `rows`, in that order, and fetch the rows' pages beforehand.

    `array` is a numpy.memmap, or a slice of one, whose rows (along the first axis) are contiguous in
    the file.
    """
    extents = RowExtents(array)
    order = SamplerPrefetch(map(as_index, rows), extents, budget=budget, window=window)
    return (array[row] for row in order)


class RowExtents:
    """A layout: the place of a row of a memmap in its file."""

    def __init__(self, array: "numpy.memmap[Any, Any]") -> None:
        import numpy

        if not isinstance(array, numpy.memmap):
            raise TypeError(f"array is a {type(array).__name__}, not a numpy.memmap")
        mapping = getattr(array, "_mmap", None)
        if array.filename is None or not isinstance(mapping, mmap.mmap):
            raise ValueError("array is backed by no file: it is not (a slice of) a memmap any more")
        if array.ndim == 0:
            raise ValueError("array has no rows: it is a single value")
        if array.size and not array[0].flags.c_contiguous and not array[0].flags.f_contiguous:
            raise ValueError(
                f"a row of this array of shape {array.shape} is not contiguous in {os.fspath(array.filename)!r}"
            )
        self._file = os.fspath(array.filename)
        self._rows = array.shape[0]
        self._stride = array.strides[0]
        self._length = array[0].nbytes if self._rows else 0
        # A slice has the `offset` of the whole array, so the place of the first row is computed from addresses.
        base = numpy.frombuffer(mapping, dtype=numpy.uint8).ctypes.data
        address = array.__array_interface__["data"][0]
        start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
        self._first = start + address - base

    def __call__(self, row: int, /) -> Tuple[str, int, int]:
        place = row + self._rows if row < 0 else row
        if not 0 <= place < self._rows:
            raise IndexError(f"row {row} of {self._rows} in {self._file!r}")
        return self._file, self._first + place * self._stride, self._length
