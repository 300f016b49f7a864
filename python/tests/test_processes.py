"""Forks, signals and other users."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable, List

import pytest

import foreread
from conftest import PAGE

HERE = Path(__file__).parent


def in_child(work: Callable[[], object]) -> int:
    """The exit status of a child that does the work: 0 if it returns something true."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(20)
            status = 0 if work() else 2
        except BaseException as failure:
            print(repr(failure), file=sys.stderr)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_inherited_guard_does_nothing(data: Path) -> None:
    whole = data.read_bytes()
    guard = foreread.prefetch((data, number * PAGE, PAGE) for number in range(1000))

    def use_it() -> bool:
        guard.at(5)
        guard.at(10**9)
        guard.reading(data, 0, 1)
        assert guard.pread(data, 10, 100) == whole[100:110]
        assert guard.stats().accepted == 0
        guard.close()
        return True

    assert in_child(use_it) == 0
    guard.at(5)
    assert guard.stats().listed == 1
    guard.close()


def test_an_inherited_guard_may_be_dropped(data: Path) -> None:
    guards = [foreread.prefetch([(data, 0, PAGE)])]
    assert in_child(lambda: guards.pop() and not guards) == 0
    guards[0].at(0)


def test_an_inherited_reader_reads_on_without_prefetching(data: Path) -> None:
    whole = data.read_bytes()
    accesses = [(data, number * 100, 100) for number in range(3000)]
    reader = foreread.read(iter(accesses), window=700)
    assert next(reader) == whole[:100]
    expected = [whole[offset : offset + 100] for _, offset, _ in accesses[1:]]
    assert in_child(lambda: list(reader) == expected) == 0
    assert list(reader) == expected


def test_a_child_may_have_a_session_of_its_own(data: Path) -> None:
    whole = data.read_bytes()
    with foreread.prefetch([(data, 0, PAGE)]):

        def use_it() -> bool:
            with foreread.read([(data, 5, 6)]) as reader:
                return list(reader) == [whole[5:11]]

        assert in_child(use_it) == 0


def worker(indices: List[int], path: Path, answers: Connection) -> None:
    with open(path, "rb") as file:
        answers.send([os.pread(file.fileno(), 100, index * 100) for index in indices])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_sampler_serves_worker_processes(data: Path, method: str) -> None:
    whole = data.read_bytes()
    context: Any = multiprocessing.get_context(method)
    batches = [[number, 4000 - number] for number in range(40)]
    found = []
    for batch in foreread.SamplerPrefetch(batches, foreread.Records(data, 100), lag=8):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=worker, args=(batch, data, theirs))
        process.start()
        found += mine.recv()
        process.join()
        assert process.exitcode == 0
        if method == "spawn" and len(found) >= 4:
            break
    expected = [whole[index * 100 : index * 100 + 100] for batch in batches for index in batch]
    assert found == expected[: len(found)]
    assert len(found) >= 4


def test_threads_and_forks_at_once_do_not_hang(data: Path) -> None:
    stop = threading.Event()
    accesses = ((data, number % 4000 * PAGE, 64) for number in iter(int, 1))
    with foreread.read(accesses, window=64) as reader:

        def drain() -> None:
            while not stop.is_set():
                next(reader)

        threads = [threading.Thread(target=drain) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                assert in_child(lambda: foreread.prefetch([(data, 0, 1)]).stats().accepted == 1) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join()


# Whoever runs the suite in a shell's background has it started with the interrupt key ignored.
INTERRUPTED = """
import foreread, itertools, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
accesses = ((sys.argv[1], number % 4000 * 4096, 64) for number in itertools.count())
try:
    print("going", flush=True)
    {}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "endless",
    [
        "[None for _ in foreread.read(accesses)]",
        "import collections; collections.deque(foreread.read(accesses), maxlen=0)",
        "g = foreread.prefetch(itertools.repeat((sys.argv[1], 0, 1)), window=10**6); [g.at(n) for n in itertools.count()]",
    ],
)
def test_the_interrupt_key_works(data: Path, endless: str) -> None:
    program = [sys.executable, "-c", INTERRUPTED.format(endless), str(data)]
    process = subprocess.Popen(program, cwd="/", stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert output == "interrupted\n"
    finally:
        process.kill()


def interpreter_for_everyone() -> str:
    """An interpreter that other users may run, too."""
    nobody: List[str] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"]
        try:
            if subprocess.run(nobody + check, capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    pytest.skip("no Python from 3.9 on that user nobody may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="the suite is run by an ordinary user already")
def test_an_ordinary_user_is_served(data: Path, tmp_path: Path) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    python = interpreter_for_everyone()
    package = tmp_path / "package"
    shutil.copytree(Path(foreread.__file__).parent, package / "foreread")
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    os.chown(data, 65534, 65534)
    program = """
import foreread, os, sys, time
path = sys.argv[1]
assert os.geteuid() == 65534
whole = [(path, page * 4096, 4096) for page in range(0, 4096, 4)]
with foreread.read(whole) as reader:
    end = time.monotonic() + 60
    while reader.stats().issued == 0 and time.monotonic() < end:
        time.sleep(0.01)
    fd = os.open(path, os.O_RDONLY)
    assert all(part == os.pread(fd, 4096, offset) for part, (_, offset, _) in zip(reader, whole))
stats = reader.stats()
assert stats.issued > 0 and stats.useful + stats.late > 0, stats
try:
    foreread.prefetch([(sys.argv[2], 0, 1)])
except PermissionError as refused:
    assert refused.filename == sys.argv[2]
    print("served and refused")
"""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    secret.chmod(0o600)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", program, str(data), str(secret)]
    done = subprocess.run(command, cwd="/", env={"PYTHONPATH": str(package)}, capture_output=True, text=True)
    assert done.stdout == "served and refused\n", done.stderr
