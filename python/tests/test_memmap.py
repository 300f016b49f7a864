"""Rows of a numpy.memmap."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import foreread
from conftest import PAGE, eventually, evict, resident

numpy = pytest.importorskip("numpy")


def test_rows_are_those_of_the_array_in_order(data: Path) -> None:
    array = numpy.memmap(data, dtype="<f4", mode="r", offset=512, shape=(1000, 3, 100))
    order = list(range(-1000, 1000))
    random.Random(4).shuffle(order)
    found = list(foreread.memmap(array, order))
    assert len(found) == len(order)
    assert all((row.view("u4") == array[number].view("u4")).all() for number, row in zip(order, found))


@pytest.mark.parametrize(
    "cut", ["whole", "slice", "columns", "step", "backwards", "single", "offset", "vector"]
)
def test_the_extent_of_a_row_holds_its_bytes(data: Path, cut: str) -> None:
    from foreread._memmap import RowExtents

    array = numpy.memmap(data, dtype="<u2", mode="r", offset=8192 + 6, shape=(50, 700))
    cuts = {
        "whole": array,
        "slice": array[7:],
        "columns": array[:, 100:300],
        "step": array[3:40:5],
        "backwards": array[::-1],
        "single": array[11:12],
        "offset": numpy.memmap(data, dtype="<u2", mode="r", offset=70_002, shape=(20, 10)),
        "vector": array[5],
    }
    part = cuts[cut]
    extents = RowExtents(part)
    whole = data.read_bytes()
    for row in range(-1, len(part)):
        file, offset, length = extents(row)
        assert file == str(data)
        assert whole[offset : offset + length] == part[row].tobytes()


def test_rows_are_in_memory_before_they_are_touched(data: Path) -> None:
    array = numpy.memmap(data, dtype="u1", mode="r", shape=(1024, 4 * PAGE))[:, :PAGE]
    order = list(range(1024))
    random.Random(5).shuffle(order)
    evict(data)
    rows = iter(foreread.memmap(array, order))
    next(rows)
    assert eventually(lambda: all(resident(data)[4 * row] for row in order[1:200]))


def test_what_has_no_rows_in_a_file_is_refused(data: Path) -> None:
    array = numpy.memmap(data, dtype="u1", mode="r", shape=(100, 100))
    with pytest.raises(TypeError, match="ndarray, not a numpy.memmap"):
        foreread.memmap(numpy.zeros((3, 3)), [0])
    with pytest.raises(ValueError, match="not contiguous"):
        foreread.memmap(array.T, [0])
    with pytest.raises((TypeError, ValueError), match="not a numpy.memmap|no file"):
        foreread.memmap(array + 1, [0])
    with pytest.raises(IndexError, match="row 100 of 100"):
        list(foreread.memmap(array, [1, 100]))
    with pytest.raises(TypeError, match="float"):
        list(foreread.memmap(array, [1.5]))  # type: ignore[list-item]


def test_offsets_may_be_numbers_of_numpy(data: Path) -> None:
    whole = data.read_bytes()
    offsets = numpy.array([9000, 5], dtype="i8")
    assert list(foreread.read((data, offset, numpy.uint16(7)) for offset in offsets)) == [whole[9000:9007], whole[5:12]]
