"""Bad input: an exception that names the file and the value, never a crash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Type

import pytest

import foreread

BAD_ACCESSES = [
    ([("{}", -1, 1)], ValueError, "access 0: offset is -1"),
    ([("{}", 0, 1), ("{}", 0, -5)], ValueError, "access 1: length is -5"),
    ([("{}", 2**63, 1)], ValueError, "9223372036854775808"),
    ([("{}", 2**70, 1)], ValueError, "offset is 1180591620717411303424"),
    ([("{}", 2**63 - 1, 1)], ValueError, "end past"),
    ([("{}", "0", 1)], TypeError, "access 0: offset is '0', not a whole number"),
    ([("{}", 0, 1.5)], TypeError, "length is 1.5"),
    ([("{}", 0, None)], TypeError, "length is None"),
    ([("{}", 0)], TypeError, r"access 0 is \('.*', 0\), not \(file, offset, length\)"),
    ([("{}", 0, 1, True, 5)], TypeError, "access 0 is"),
    (["abc"], TypeError, "access 0 is 'abc'"),
    ([None], TypeError, "access 0 is None"),
    ([(None, 0, 1)], TypeError, "access 0: file is None"),
    ([(True, 0, 1)], TypeError, "access 0: file is True"),
    ([(1.5, 0, 1)], TypeError, "access 0: file is 1.5"),
    ([("/no/such/file", 0, 1)], FileNotFoundError, "No such file.*'/no/such/file'"),
    ([("/dev/null", 0, 1)], OSError, "'/dev/null'"),
    ([("/", 0, 1)], OSError, "'/'"),
    ([(-1, 0, 1)], OSError, "Bad file descriptor.*-1"),
    ([(987654, 0, 1)], OSError, "Bad file descriptor.*987654"),
    ([(2**40, 0, 1)], OSError, "Bad file descriptor.*1099511627776"),
    ([("a\0b", 0, 1)], OSError, "a.*b"),
    ("abc", TypeError, "accesses is 'abc'"),
    (b"abc", TypeError, "accesses is b'abc'"),
    (5, TypeError, "int"),
    (None, TypeError, "None"),
]


@pytest.mark.parametrize("make", [foreread.prefetch, foreread.read])
@pytest.mark.parametrize("accesses, kind, text", BAD_ACCESSES)
def test_a_bad_access_names_its_number_and_value(
    data: Path, make: Callable[[Any], Any], accesses: Any, kind: Type[Exception], text: str
) -> None:
    if isinstance(accesses, list):
        named = str(data)
        accesses = [tuple(named if part == "{}" else part for part in one) if isinstance(one, tuple) else one for one in accesses]
    with pytest.raises(kind, match=text):
        # A reader raises when it gets to the place.
        list(iter(make(accesses)))


def test_a_closed_file_object_is_refused(data: Path) -> None:
    file = open(data, "rb")
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        foreread.prefetch([(file, 0, 1)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; test_processes.py has this for nobody")
def test_a_file_that_may_not_be_read_is_refused(data: Path) -> None:
    data.chmod(0)
    with pytest.raises(PermissionError, match=str(data)):
        foreread.prefetch([(data, 0, 1)])


@pytest.mark.parametrize("make", [foreread.prefetch, foreread.read])
@pytest.mark.parametrize(
    "choice, kind, text",
    [
        ({"budget": 0}, ValueError, "budget is 0"),
        ({"budget": -4096}, ValueError, "budget is -4096"),
        ({"budget": "1G"}, TypeError, "budget is '1G'"),
        ({"window": 0}, ValueError, "window is 0"),
        ({"window": 1.5}, TypeError, "window is 1.5"),
    ],
)
def test_a_bad_number_is_named_with_its_function(
    data: Path, make: Callable[..., Any], choice: Any, kind: Type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=f"^{make.__name__}: {text}"):
        make([(data, 0, 1)], **choice)


@pytest.mark.parametrize(
    "choice, kind, text",
    [
        ({"on_miss": 5}, TypeError, "on_miss is 5, not callable"),
        ({"no_such": 5}, TypeError, "no_such"),
    ],
)
def test_a_bad_choice_is_named(data: Path, choice: Any, kind: Type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        foreread.prefetch([(data, 0, 1)], **choice)


def test_bad_positions_are_named(data: Path) -> None:
    with foreread.prefetch([(data, 0, 1)]) as guard:
        with pytest.raises(ValueError, match="n is -1"):
            guard.at(-1)
        with pytest.raises(TypeError, match="n is 'x'"):
            guard.at("x")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a read: offset is -1"):
            guard.reading(data, -1, 1)
        with pytest.raises(ValueError, match="a read: length is -1"):
            guard.pread(data, -1, 0)
        with pytest.raises(FileNotFoundError, match="/no/such"):
            guard.pread("/no/such", 1, 0)


def test_files_that_shrink_and_vanish_harm_nothing(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(data.read_bytes())
    accesses = [(copy, page * 4096, 4096) for page in range(4096)]
    with foreread.prefetch(iter(accesses), window=64) as guard, open(copy, "rb") as file:
        os.truncate(copy, 10_000)
        os.unlink(copy)
        for number in range(64):
            guard.at(number)
        assert guard.pread(file, 4096, 8192) == data.read_bytes()[8192:10_000]
