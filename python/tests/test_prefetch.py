"""foreread.prefetch: lists, positions and callbacks."""

from __future__ import annotations

import gc
import itertools
import os
import time
import weakref
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

import pytest

import foreread
from conftest import PAGE, eventually, resident


def test_listed_pages_arrive_unasked(data: Path, shuffled: List[int]) -> None:
    with foreread.prefetch((data, page * PAGE, PAGE) for page in shuffled[:500]):
        assert eventually(lambda: all(resident(data)[page] for page in shuffled[:500]))
        assert not all(resident(data))


def test_telling_the_position_moves_what_is_fetched(data: Path, shuffled: List[int]) -> None:
    accesses = ((data, page * PAGE, PAGE) for page in shuffled)
    with foreread.prefetch(accesses, budget=64 * PAGE) as guard:
        assert eventually(lambda: guard.stats().issued > 0)
        time.sleep(0.1)
        assert not resident(data)[shuffled[-1]]
        place = iter(range(len(shuffled) - 8))

        def arrived() -> bool:
            for number in itertools.islice(place, 4):
                guard.at(number)
            return resident(data)[shuffled[-1]]

        assert eventually(arrived)


def test_reads_that_are_only_told_of_make_room(data: Path, shuffled: List[int]) -> None:
    accesses = ((data, page * PAGE, PAGE) for page in shuffled)
    with foreread.prefetch(accesses, budget=64 * PAGE) as guard:
        place = iter(shuffled[:-8])

        def arrived() -> bool:
            for page in itertools.islice(place, 4):
                guard.reading(data, page * PAGE, PAGE)
            return resident(data)[shuffled[-1]]

        assert eventually(arrived)
        assert guard.stats().useful > 0


def test_at_counts_what_it_passes_over(data: Path) -> None:
    with foreread.prefetch((data, number * PAGE, 1) for number in range(1000)) as guard:
        guard.at(0)
        guard.at(99)
        stats = guard.stats()
        assert (stats.accepted, stats.listed, stats.skipped, stats.ahead) == (1000, 2, 98, 900)


def test_at_may_jump_past_the_window(data: Path) -> None:
    with foreread.prefetch(((data, number, 1) for number in range(10_000)), window=100) as guard:
        guard.at(7_000)
        assert 7_001 <= guard.stats().accepted <= 7_200
        guard.at(9_999)
        with pytest.raises(IndexError, match="10000"):
            guard.at(10_000)


def test_a_generator_is_drawn_from_as_it_is_used_up(data: Path) -> None:
    drawn = 0

    def endless() -> Iterator[Tuple[Path, int, int]]:
        nonlocal drawn
        while True:
            yield data, drawn % 4000 * PAGE, 16
            drawn += 1

    with foreread.prefetch(endless(), window=2000) as guard:
        for number in range(20_000):
            guard.at(number)
            assert number < drawn <= number + 2001


def test_reading_and_pread_follow_the_list(data: Path) -> None:
    whole = data.read_bytes()
    with foreread.prefetch((data, number * PAGE, PAGE) for number in range(100)) as guard:
        guard.reading(data, 0, 10)
        guard.reading(str(data), 5 * PAGE + 7, 1)
        assert guard.pread(data, 20, 9 * PAGE) == whole[9 * PAGE : 9 * PAGE + 20]
        with open(data, "rb") as file:
            assert guard.pread(file, 30, 500 * PAGE) == whole[500 * PAGE : 500 * PAGE + 30]
        stats = guard.stats()
        assert (stats.listed, stats.unlisted, stats.skipped) == (3, 1, 7)


def test_on_miss_is_told_of_unlisted_reads_and_marked_ones(data: Path) -> None:
    seen: List[foreread.Miss] = []
    accesses: List[foreread.Access] = [(data, 0, 10), (data, PAGE, 10, True), (data, 2 * PAGE, 10)]
    with foreread.prefetch(accesses, on_miss=seen.append) as guard:
        guard.reading(data, 0, 10)
        guard.reading(data, PAGE, 10)
        assert not seen
        guard.reading(data, 50 * PAGE, 10)
        (miss,) = seen
        assert (miss.file, miss.offset, miss.ran_out) == (data, 50 * PAGE, False)
        assert (miss.marked_file, miss.marked_offset) == (data, PAGE)


def test_on_miss_continues_a_list_that_ran_out(data: Path) -> None:
    def supply(miss: foreread.Miss) -> Optional[List[foreread.Access]]:
        return [(data, page * PAGE, 1) for page in range(10, 20)] if miss.ran_out else None

    with foreread.prefetch([(data, page * PAGE, 1) for page in range(10)], on_miss=supply) as guard:
        for number in range(10):
            guard.at(number)
        guard.reading(data, 15 * PAGE, 1)
        stats = guard.stats()
        assert (stats.accepted, stats.unlisted, stats.ahead) == (20, 0, 4)
        guard.at(19)


def test_on_miss_replaces_a_list_that_was_wrong(data: Path) -> None:
    def supply(miss: foreread.Miss) -> Optional[List[foreread.Access]]:
        if miss.ran_out:
            return None
        return [(miss.file, miss.offset + page * PAGE, PAGE) for page in range(1, 4)]

    with foreread.prefetch([(data, 0, 1)] * 100, on_miss=supply) as guard:
        guard.reading(data, 2000 * PAGE, 1)
        assert guard.stats().ahead == 3
        assert eventually(lambda: resident(data)[2003])
        guard.at(2)
        assert guard.stats().ahead == 0


def test_an_exception_of_on_miss_reaches_the_reading_call(data: Path) -> None:
    def supply(miss: foreread.Miss) -> None:
        raise KeyError("wrong turn")

    with foreread.prefetch([(data, 0, 1)], on_miss=supply) as guard:
        with pytest.raises(KeyError, match="wrong turn"):
            guard.reading(data, 77 * PAGE, 1)


def test_an_error_of_the_generator_is_raised(data: Path) -> None:
    def failing() -> Iterator[Tuple[Path, int, int]]:
        yield data, 0, 1
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        foreread.prefetch(failing())


def test_a_check_report_tells_where_list_and_reality_part(data: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    with foreread.prefetch([(data, 0, 1), (data, PAGE, 1)], check=report) as guard:
        guard.reading(data, 0, 1)
        guard.reading(data, 9 * PAGE, 1)
    assert str(9 * PAGE) in report.read_text()


def test_a_closed_guard_says_so_and_keeps_its_account(data: Path) -> None:
    guard = foreread.prefetch([(data, 0, PAGE)])
    guard.at(0)
    guard.close()
    guard.close()
    assert guard.stats().listed == 1
    for call in (lambda: guard.at(0), lambda: guard.reading(data, 0, 1), lambda: guard.pread(data, 1, 0)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_closed_in_a_call_the_account_is_closed_too(data: Path, shuffled: List[int]) -> None:
    def supply(miss: foreread.Miss) -> None:
        guard.close()

    guard = foreread.prefetch([(data, page * PAGE, PAGE) for page in shuffled[:100]], on_miss=supply)
    assert eventually(lambda: all(resident(data)[page] for page in shuffled[:100]))
    guard.reading(data, shuffled[200] * PAGE, 1)
    stats = guard.stats()
    assert stats.wasted == 100 * PAGE
    assert stats.issued == stats.useful + stats.late + stats.wasted + stats.evicted + stats.infill


def test_closing_lets_go_of_the_iterable(data: Path) -> None:
    def accesses() -> Iterator[Tuple[Path, int, int]]:
        while True:
            yield data, 0, 1

    source = accesses()
    alive = weakref.ref(source)
    guard = foreread.prefetch(source, window=10)
    guard.close()
    del source
    gc.collect()
    assert alive() is None


def test_a_guard_that_is_dropped_ends_its_session(data: Path) -> None:
    before = len(os.listdir("/proc/self/task"))
    guard = foreread.prefetch([(data, 0, 1)])
    assert len(os.listdir("/proc/self/task")) > before
    del guard
    assert eventually(lambda: len(os.listdir("/proc/self/task")) <= before)


class Owner:
    """What a program keeps a guard in, and what the guard keeps in turn."""

    def __init__(self, file: Path) -> None:
        self.file = open(file, "rb")
        self.guard: Optional[foreread.Guard] = None
        self.reader: Optional[foreread.Reader] = None

    def fileno(self) -> int:
        return self.file.fileno()

    def accesses(self) -> Iterator[Tuple["Owner", int, int]]:
        for offset in range(100):
            yield self, offset, 1

    def missed(self, _: foreread.Miss) -> None:
        pass


def test_a_guard_in_a_cycle_is_collected_and_its_session_ends(data: Path) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        owner = Owner(data)
        owner.guard = foreread.prefetch(owner.accesses(), window=10, on_miss=owner.missed)
        owner.reader = foreread.read(owner.accesses(), window=10)
        assert len(next(owner.reader)) == 1
    del owner
    gc.collect()
    assert eventually(lambda: len(os.listdir("/proc/self/task")) <= before)


def test_posix_locks_of_a_prefetched_file_survive(data: Path, shuffled: List[int]) -> None:
    import fcntl

    with open(data, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        with foreread.prefetch([(data, page * PAGE, 1) for page in shuffled]) as guard:
            # Not by `resident`: that would open the file and close it.
            assert eventually(lambda: guard.stats().issued > 0)
            time.sleep(0.1)
        child = os.fork()
        if child == 0:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os._exit(0)
            except OSError:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
