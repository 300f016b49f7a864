"""What the tests share: databases, cold files, processes with the extension in them, memory limits.

Every test runs with each of the extensions it is given: foreread.so itself, and one built with the
sanitizers beside a stand-in for libforeread that writes down what it is asked (standin.c).
"""

import contextlib
import functools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

EXTENSIONS = []  # paths; run.py fills it
ROWS = 6000

KINDS = {
    "rollback": "",
    "wal": "pragma journal_mode=wal",
    "page 512": "pragma page_size=512",
    "page 65536": "pragma page_size=65536",
    "autovacuum": "pragma auto_vacuum=full",
    "incremental vacuum": "pragma auto_vacuum=incremental; pragma page_size=1024",
    "utf-16": "pragma encoding='utf-16le'",
    "memory-mapped": "pragma mmap_size=1000000000",
    "exclusive": "pragma locking_mode=exclusive",
    "exclusive wal": "pragma locking_mode=exclusive; pragma journal_mode=wal",
    "small cache": "pragma cache_size=10",
}

# For walks that have to be found before the kernel's read-ahead has all of a small file in memory.
LARGE = {"rows": 5000, "width": 3700}
BY_ZIP = "select * from customer order by zip"


def stands_in(extension):
    return "sanitized" in extension


@functools.cache
def interpreter():
    """A Python whose sqlite3 module loads extensions: this one or the system's; None without."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "import sqlite3; sqlite3.connect(':memory:').enable_load_extension"]
        if shutil.which(python) and subprocess.run(probe, capture_output=True).returncode == 0:
            return python
    return None


@functools.cache
def sanitizer():
    """The sanitizers' library, which has to be the first in a process."""
    found = subprocess.run([os.environ.get("CC", "cc"), "-print-file-name=libasan.so"], capture_output=True, text=True)
    return found.stdout.strip()


def environment(extension=None, reports=None, **more):
    """The environment of a process that loads the extension; what the sanitizers find goes to the folder `reports`."""
    if extension and stands_in(extension):
        # A long memory for what was freed costs page faults; here little is freed.
        options = "detect_leaks=0:quarantine_size_mb=4"
        if reports:
            # By name: the extension's thread has no standard error.
            options += f":log_path={reports}/report"
        # The sanitizers' dlopen looks beside itself, not beside the extension.
        more |= {
            "LD_PRELOAD": sanitizer(),
            "ASAN_OPTIONS": options,
            "LD_LIBRARY_PATH": os.path.dirname(os.path.abspath(extension)),
        }
    return {**os.environ, **more}


def make(path, pragma, rows=ROWS, width=560):
    """A database with a customer table, a table WITHOUT ROWID, and one with overflow pages."""
    rng = random.Random(7)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(pragma)
    db.executescript(
        "create table customer(id integer primary key, zip integer, name text, data text);"
        "create table without(key int primary key, body text) without rowid;"
        "create table long(tag int, body text);"
    )
    db.execute("begin")
    db.executemany(
        "insert into customer values(?, ?, ?, ?)",
        ((i, rng.randrange(10**6), f"n{rng.randrange(10**6)}", "x" * rng.randrange(width, width + 20)) for i in range(rows)),
    )
    db.executemany("insert into without values(?, ?)", ((i, f"b{rng.random()}") for i in range(rows // 2)))
    db.executemany("insert into long values(?, ?)", ((rng.random(), "y" * rng.randrange(20000)) for _ in range(100)))
    db.executescript(
        "create index zip on customer(zip); create index name on customer(name collate nocase);"
        "create index body on without(body); create index tag on long(tag)"
    )  # commits first
    db.close()


def evict(*paths):
    """Puts files out of memory. In a process of its own: closing a database here would drop the locks of a
    connection that the test has open."""
    for path in paths:
        drop = ["dd", f"of={path}", "oflag=nocache", "conv=notrunc,nocreat,fdatasync", "count=0", "status=none"]
        subprocess.run(drop, check=True)


PRELUDE = r"""
import hashlib, json, os, sqlite3, sys, time
extension, path, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
def load(db):
    db.enable_load_extension(True)
    db.load_extension(extension[:-3])
def digest(rows):
    hash = hashlib.sha256()
    for row in rows:
        hash.update(repr(row).encode())
    return hash.hexdigest()
def status(db):
    return db.execute("select foreread_status()").fetchone()[0]
"""


def child(extension, code, path, *arguments, **variables):
    """Runs `code` in a new Python with the database at `path` and the extension; its output."""
    if not interpreter():
        raise unittest.SkipTest("no Python here whose sqlite3 module loads extensions")
    command = [interpreter(), "-c", PRELUDE + code, extension or "", path, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as reports:
        done = subprocess.run(
            command, env=environment(extension, reports, **variables), capture_output=True, timeout=300
        )
        if done.returncode != 0:
            said = [open(os.path.join(reports, name)).read() for name in os.listdir(reports)]
            said.append(done.stderr.decode()[-4000:])
            raise AssertionError(f"status {done.returncode}: " + "\n".join(said))
    return done.stdout.decode()


class Log:
    """What the stand-in wrote down."""

    def __init__(self, path):
        self.paths, self.given, self.reads, self.listed = set(), [], [], 0
        files = {}  # of the client whose lines come next
        if not os.path.exists(path):
            return
        with open(path) as log:
            for what, *words in map(str.split, log):
                if what == "file":
                    files[words[0]] = words[1]
                    self.paths.add(words[1])
                elif what == "+":
                    self.given.append((files[words[0]], int(words[1])))
                elif what == "read":
                    self.reads.append((files[words[0]], int(words[1])))
                    self.listed += words[2] == "listed"

    def share(self, least=1000):
        """Which share of the reads was on the list, of at least so many."""
        return self.listed / max(len(self.reads), least)


class Lab(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # Not /tmp: where that is a tmpfs, nothing can be evicted.
        self.folder = tempfile.mkdtemp(prefix="foreread-", dir=os.environ.get("FOREREAD_TMPDIR", "/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name="test.db"):
        return os.path.join(self.folder, name)

    def each_extension(self):
        for extension in EXTENSIONS:
            with self.subTest(extension=extension):
                # A test that fails or is skipped in its loop closes this generator, which is no failure of its own.
                with contextlib.suppress(GeneratorExit):
                    yield extension
                    continue
            return

    def standin(self):
        """The extension that writes down what is disclosed."""
        for extension in EXTENSIONS:
            if stands_in(extension):
                return extension
        self.skipTest("only the stand-in writes down what is disclosed")

    def best_log(self, code, path, *arguments, enough=lambda log: log.share() > 0.7, cold=(), answer=None):
        """The log of a run in which enough was foreseen, or of the best of six: a fast disk with a long
        read-ahead may have the file in memory before the walk has been found. Each must print `answer`."""
        best, log = Log(""), self.path("log")
        for _ in range(6):
            with contextlib.suppress(FileNotFoundError):
                os.remove(log)
            evict(path, *cold)
            out = child(self.standin(), code, path, *arguments, FOREREAD_STANDIN=log)
            if answer is not None:
                self.assertEqual(out, answer)
            best = max(Log(log), best, key=Log.share)
            if enough(best):
                break
        return best


class MemoryGroup:
    """A memory control group of version 1 or 2, which goes at the end of the block; skips the test where it
    cannot be made."""

    ROOT = "/sys/fs/cgroup"

    def __init__(self, limit):
        first = os.path.join(self.ROOT, "memory")
        version1 = os.path.exists(os.path.join(first, "memory.limit_in_bytes"))
        self.folder = os.path.join(first if version1 else self.ROOT, f"foreread-sqlite-{os.getpid()}-{id(self)}")
        try:
            if not version1:
                self._write(os.path.join(self.ROOT, "cgroup.subtree_control"), "+memory")
            os.mkdir(self.folder)
        except OSError as error:
            raise unittest.SkipTest(f"no memory control group can be made: {error}") from None
        try:
            self._write(os.path.join(self.folder, "memory.limit_in_bytes" if version1 else "memory.max"), limit)
        except OSError as error:
            os.rmdir(self.folder)
            raise unittest.SkipTest(f"no memory limit can be set: {error}") from None

    @staticmethod
    def _write(path, value):
        with open(path, "w") as file:
            file.write(str(value))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A member that has just ended may still count.
        for _ in range(100):
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.01)
        os.rmdir(self.folder)

    def run(self, command, **options):
        """Runs a command in the group from its first instruction on."""
        members = os.path.join(self.folder, "cgroup.procs")
        return subprocess.run(["sh", "-c", 'echo $$ > "$0" && exec "$@"', members, *command], **options)


def status_of(line):
    """foreread_status(), as the shell or a program printed it."""
    return json.loads(line)
