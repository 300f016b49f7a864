"""Samplers, layouts and memmaps: the order and the bytes are those without foreread."""

from __future__ import annotations

import array
import random
from pathlib import Path
from typing import Iterator, List

import pytest

import foreread
from conftest import PAGE, eventually, resident


def test_records_of_several_files_are_numbered_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"head" + b"a" * 25)
    second.write_bytes(b"head" + b"b" * 30)
    records = foreread.Records([first, second], 10, header=4)
    assert len(records) == 5
    assert [records(index) for index in (0, 1, 2, 4)] == [
        (first, 4, 10),
        (first, 14, 10),
        (second, 4, 10),
        (second, 24, 10),
    ]
    for index in (-1, 5):
        with pytest.raises(IndexError, match=f"sample {index} of 5"):
            records(index)


def test_offsets_tell_where_samples_of_any_size_lie(data: Path) -> None:
    assert foreread.Offsets(data, [0, 10, 25])(1) == (data, 10, 15)
    assert len(foreread.Offsets(data, [0, 10, 25])) == 2
    offsets = array.array("q", [7, 5])
    several = foreread.Offsets([data, "b"], offsets, [1, 2], file_of=[0, 1])
    assert [several(0), several(1)] == [(data, 7, 1), ("b", 5, 2)]


def test_wrong_layouts_are_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="size is 0"):
        foreread.Records(data, 0)
    with pytest.raises(ValueError, match="header is -4"):
        foreread.Records(data, 1, header=-4)
    with pytest.raises(ValueError, match="at least one file"):
        foreread.Records([], 1)
    with pytest.raises(FileNotFoundError, match="/no/such"):
        foreread.Records("/no/such", 1)
    with pytest.raises(ValueError, match="file_of is missing"):
        foreread.Offsets([data, data], [0, 1], [1, 1])
    with pytest.raises(ValueError, match="lengths is missing"):
        foreread.Offsets([data, data], [0, 1], file_of=[0])
    with pytest.raises(ValueError, match="lengths has 3 numbers, and there are 2"):
        foreread.Offsets(data, [0, 1], [1, 1, 1])
    with pytest.raises(ValueError, match="offsets is empty"):
        foreread.Offsets(data, [])
    with pytest.raises(ValueError, match="fall from 9 to 3 at sample 1"):
        foreread.Offsets(data, [0, 9, 3])(1)


def test_ordered_samples_yields_each_index_with_its_bytes(data: Path) -> None:
    whole = data.read_bytes()
    order = list(range(len(whole) // 1000))
    random.Random(3).shuffle(order)
    found = list(foreread.ordered_samples(order, foreread.Records(data, 1000)))
    assert found == [(index, whole[index * 1000 : index * 1000 + 1000]) for index in order]


def test_a_sampler_keeps_order_and_batches(data: Path) -> None:
    records = foreread.Records(data, PAGE)
    order = [5, 3, 900, 17]
    sampler = foreread.SamplerPrefetch(order, records)
    assert len(sampler) == 4
    assert list(sampler) == order
    assert list(sampler) == order, "each iteration begins anew"
    batches = [[5, 3], [], [900], [17]]
    for lag in (0, 1, 3, 100):
        for window in (1, 2, 100):
            assert list(foreread.SamplerPrefetch(batches, records, lag=lag, window=window)) == batches


def test_a_sampler_is_asked_no_further_than_the_window(data: Path) -> None:
    asked = 0

    def order() -> Iterator[int]:
        nonlocal asked
        while True:
            yield asked % 4000
            asked += 1

    for count, _ in enumerate(foreread.SamplerPrefetch(order(), foreread.Records(data, PAGE), window=500)):
        assert asked <= count + 502
        if count == 3000:
            break


def test_samples_are_in_memory_when_the_sampler_names_them(data: Path, shuffled: List[int]) -> None:
    sampler = iter(foreread.SamplerPrefetch(shuffled, foreread.Records(data, PAGE)))
    first = next(sampler)
    # The first is the program's to read by now.
    assert eventually(lambda: all(resident(data)[page] for page in shuffled[1:200]))
    assert [first, *sampler] == shuffled


def test_lag_keeps_samples_that_workers_have_not_read(data: Path, shuffled: List[int]) -> None:
    lag = 100
    budget = 400 * PAGE
    sampler = foreread.SamplerPrefetch(shuffled, foreread.Records(data, PAGE), lag=lag, budget=budget)
    waiting: List[int] = []
    for count, page in enumerate(sampler):
        waiting.append(page)
        if count == 600:
            assert eventually(lambda: all(resident(data)[page] for page in waiting[-lag + 1 :]))
            break


def test_an_error_of_the_sampler_comes_in_its_place(data: Path) -> None:
    seen = []
    with pytest.raises(IndexError, match="sample 5000 of 4096"):
        for index in foreread.SamplerPrefetch([1, 2, 5000, 3], foreread.Records(data, PAGE)):
            seen.append(index)
    assert seen == [1, 2]
    with pytest.raises(TypeError, match="str"):
        list(foreread.SamplerPrefetch(["x"], foreread.Records(data, PAGE)))


def test_the_epoch_reaches_the_sampler(data: Path) -> None:
    class Distributed(List[int]):
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    inner = Distributed([1])
    foreread.SamplerPrefetch(inner, foreread.Records(data, 1)).set_epoch(9)
    assert inner.epoch == 9


def test_wrong_samplers_are_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="lag is -1"):
        foreread.SamplerPrefetch([1], foreread.Records(data, 1), lag=-1)
    with pytest.raises(TypeError, match="layout is 5"):
        foreread.SamplerPrefetch([1], 5)  # type: ignore[arg-type]
