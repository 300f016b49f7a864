"""foreread.read: every byte is what os.pread would have given."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

import foreread
from conftest import PAGE, evict, eventually, resident


def test_bytes_are_those_of_the_file_in_list_order(data: Path, shuffled: List[int]) -> None:
    accesses = [(data, page * PAGE + page % 700, page % 9000) for page in shuffled]
    fd = os.open(data, os.O_RDONLY)
    with foreread.read(accesses) as reader:
        assert list(reader) == [os.pread(fd, length, offset) for _, offset, length in accesses]
    os.close(fd)


@pytest.mark.parametrize("name", ["path", "text", "bytes", "object", "descriptor"])
def test_a_file_is_named_by_path_object_or_descriptor(data: Path, name: str) -> None:
    with open(data, "rb") as file:
        named = {
            "path": data,
            "text": str(data),
            "bytes": os.fsencode(data),
            "object": file,
            "descriptor": file.fileno(),
        }[name]
        with foreread.read([(named, 5, 10), (named, 4096, 7)]) as reader:  # type: ignore[list-item]
            assert list(reader) == [os.pread(file.fileno(), 10, 5), os.pread(file.fileno(), 7, 4096)]


def test_names_that_are_no_utf8_are_read(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe"
    with open(path, "wb") as file:
        file.write(b"odd")
    assert list(foreread.read([(path, 0, 3), (os.fsdecode(path), 1, 2)])) == [b"odd", b"dd"]


def test_the_end_of_the_file_shortens_a_read(data: Path) -> None:
    size = data.stat().st_size
    accesses = [(data, size - 3, 10), (data, size, 10), (data, size + 4096, 1), (data, 0, 0), (data, 8, 2**62)]
    lengths = [len(found) for found in foreread.read(accesses)]
    assert lengths == [3, 0, 0, 0, size - 8]


def test_a_generator_is_drawn_from_as_it_is_used_up(data: Path) -> None:
    drawn = 0

    def endless() -> Iterator[Tuple[Path, int, int]]:
        nonlocal drawn
        while True:
            yield data, drawn % 4000 * PAGE, 16
            drawn += 1

    with foreread.read(endless(), window=500) as reader:
        for count in range(1, 5000):
            next(reader)
            assert count <= drawn <= count + 500


def test_an_error_of_the_generator_comes_in_its_place(data: Path) -> None:
    def failing() -> Iterator[Tuple[Path, int, int]]:
        for number in range(100):
            yield data, number, 1
        raise LookupError("no more")

    found = []
    with pytest.raises(LookupError, match="no more"):
        for part in foreread.read(failing()):
            found.append(part)
    assert len(found) == 100


def test_threads_share_a_reader_and_each_access_is_read_once(data: Path) -> None:
    accesses = [(data, number * 8, 8) for number in range(20_000)]
    found: List[bytes] = []
    with foreread.read(iter(accesses), window=300) as reader:
        threads = [threading.Thread(target=lambda: found.extend(reader)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    whole = data.read_bytes()
    assert sorted(found) == sorted(whole[number * 8 : number * 8 + 8] for number in range(20_000))


def test_a_file_closed_while_listed_is_named_by_the_error(data: Path) -> None:
    file = open(data, "rb")
    reader = foreread.read([(file, 0, 4)])
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        next(reader)


def test_a_descriptor_given_to_another_file_is_not_read(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"secret")
    fd = os.open(data, os.O_RDONLY)
    with foreread.read([(fd, 0, 4), (fd, 4, 4)]) as reader:
        next(reader)
        replacement = os.open(other, os.O_RDONLY)
        os.dup2(replacement, fd)
        with pytest.raises(OSError, match="Bad file descriptor"):
            next(reader)
    os.close(fd)
    os.close(replacement)


def test_pages_arrive_before_they_are_read(data: Path, shuffled: List[int]) -> None:
    with foreread.read((data, page * PAGE, PAGE) for page in shuffled) as reader:
        assert eventually(lambda: all(resident(data)[page] for page in shuffled[:200]))
        assert sum(len(part) for part in reader) == len(shuffled) * PAGE
    stats = reader.stats()
    assert stats.listed == stats.accepted == len(shuffled)
    assert stats.issued > 0
    parts = (stats.useful, stats.late, stats.wasted, stats.evicted, stats.infill)
    assert stats.issued == sum(parts)
    # A page may be read before the engine has heard that it has come.
    assert stats.useful + stats.late >= 200 * PAGE


def test_resident_data_is_not_fetched_again(data: Path, shuffled: List[int]) -> None:
    data.read_bytes()
    with foreread.read((data, page * PAGE, PAGE) for page in shuffled) as reader:
        for _ in reader:
            pass
    assert reader.stats().issued == 0


def test_a_closed_reader_says_so(data: Path) -> None:
    reader = foreread.read([(data, 0, 1), (data, 1, 1)])
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        next(reader)


def test_evicting_is_what_makes_the_tests_cold(data: Path) -> None:
    data.read_bytes()
    assert all(resident(data))
    evict(data)
    assert not any(resident(data))
