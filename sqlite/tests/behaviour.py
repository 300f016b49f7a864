#!/usr/bin/env python3
"""What a user of the extension may rely on, with the sqlite3 library and shell of this machine.

    behaviour.py EXTENSION [TEST...]

EXTENSION is foreread.so: the real one, or one that writes down what libforeread is asked (then
what is disclosed is tested, too). Every kind of database answers every query as it does without the
extension, cold and warm; integrity_check agrees; the POSIX locks survive.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

EXTENSION = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
STANDIN = "standin" in EXTENSION or "sanitized" in EXTENSION
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
    "small cache": "pragma cache_size=10",
}

QUERIES = [
    "select * from customer order by zip",
    "select * from customer order by zip desc",
    "select * from customer order by zip limit 1",
    "select * from customer order by zip limit 16",
    "select * from customer order by zip limit 300 offset 100",
    "select zip from customer order by zip",
    "select count(*), sum(length(data)) from customer",
    "select * from customer where zip between 100000 and 300000 order by zip",
    "select * from customer where zip in (select zip from customer where id % 37 = 0) order by zip",
    "select c.id, d.name from customer c join customer d on d.id = (c.id * 7) % 6000 "
    "order by c.zip limit 2000",
    "select c.id, w.body from customer c join without w on w.key = c.id order by c.zip limit 2000",
    "select * from customer order by name collate nocase, id",
    "select * from without order by body",
    "select * from without order by key",
    "select max(zip), min(zip), avg(zip) from customer where name > 'n3' and name < 'n5'",
    "select length(body) from long order by tag",
]


def interpreter():
    """A Python whose sqlite3 module loads extensions: this one or the system's; None without."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "import sqlite3; sqlite3.connect(':memory:').enable_load_extension"]
        if shutil.which(python) and subprocess.run(probe, capture_output=True).returncode == 0:
            return python
    return None


PYTHON = interpreter()


def make(path, pragma, rows=ROWS):
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
        ((i, rng.randrange(10**6), f"n{rng.randrange(10**6)}", "x" * rng.randrange(560, 580)) for i in range(rows)),
    )
    db.executemany("insert into without values(?, ?)", ((i, f"b{rng.random()}") for i in range(rows // 2)))
    db.executemany("insert into long values(?, ?)", ((rng.random(), "y" * rng.randrange(20000)) for _ in range(100)))
    db.executescript(
        "create index zip on customer(zip); create index name on customer(name collate nocase);"
        "create index body on without(body); create index tag on long(tag)"
    )  # commits first
    db.close()


def evict(path):
    """Puts a file out of memory."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def child(code, path, *arguments, environment=None):
    """Runs `code` in a new Python with the database at `path` and the extension; its output."""
    if not PYTHON:
        raise unittest.SkipTest("no Python here whose sqlite3 module loads extensions")
    done = subprocess.run(
        [PYTHON, "-c", PRELUDE + code, EXTENSION, path, *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stderr.decode()[-4000:]}")
    return done.stdout.decode()


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
"""


class Behaviour(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # Not /tmp: where that is a tmpfs, nothing can be evicted.
        self.folder = tempfile.mkdtemp(prefix="foreread-", dir=os.environ.get("FOREREAD_TMPDIR", "/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name="test.db"):
        return os.path.join(self.folder, name)

    def disclosed(self, log):
        """The lines that the stand-in wrote."""
        self.assertTrue(os.path.exists(log), "nothing was disclosed")
        with open(log) as file:
            return [line.split() for line in file]

    def test_every_kind_of_database_answers_as_without_the_extension(self):
        code = """
queries = json.loads(arguments[2])
db = sqlite3.connect(path, isolation_level=None)
if arguments[0] == "adopted":
    load(db)
elif arguments[0] == "opened":
    load(sqlite3.connect(":memory:"))
    db = sqlite3.connect(path, isolation_level=None)
elif arguments[0] == "named":
    load(sqlite3.connect(":memory:"))
    db = sqlite3.connect("file:" + path + "?vfs=foreread", uri=True, isolation_level=None)
db.executescript(arguments[1])
for cold in (True, False):
    for query in queries:
        if cold:
            fd = os.open(path, os.O_RDONLY)
            # Closed only at exit: closing would drop this process's locks.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        print(digest(db.execute(query)))
print(db.execute("pragma integrity_check").fetchall())
"""
        for kind, pragma in KINDS.items():
            with self.subTest(kind=kind):
                path = self.path(f"{kind}.db")
                make(path, pragma)
                evict(path)
                plain = child(code, path, "plain", pragma, json.dumps(QUERIES))
                self.assertIn("[('ok',)]", plain)
                for how in ("adopted", "opened", "named"):
                    evict(path)
                    self.assertEqual(plain, child(code, path, how, pragma, json.dumps(QUERIES)), how)

    def test_a_walk_is_disclosed_in_its_order(self):
        if not STANDIN:
            self.skipTest("only the stand-in writes down what is disclosed")
        code = (
            "db = sqlite3.connect(path); load(db)\n"
            "db.execute('select * from customer order by zip ' + arguments[0]).fetchall(); db.close()"
        )
        for kind in ("rollback", "page 512", "autovacuum", "utf-16", "wal"):
            path = self.path(f"{kind}.db")
            make(path, KINDS[kind], 20000)
            for order in ("", "desc"):
                with self.subTest(kind=kind, order=order):
                    # Where a row goes on in overflow pages, those are not known in advance.
                    least = 0.2 if kind == "page 512" else 0.7
                    self.assertGreater(self.best_share(code, path, order), least)

    def best_share(self, code, path, *arguments):
        """Which share of the reads was on the list, at best: a fast disk with a long read-ahead
        may have the file in memory before the walk has been found."""
        best = 0
        for attempt in range(6):
            log = self.path(f"log{attempt}")
            if os.path.exists(log):
                os.remove(log)
            evict(path)
            child(code, path, *arguments, environment={"FOREREAD_STANDIN": log})
            if os.path.exists(log):
                reads = [line for line in self.disclosed(log) if line[0] == "read"]
                listed = [line for line in reads if line[2] == "listed"]
                best = max(best, len(listed) / max(len(reads), 1000))
            if best > 0.7:
                break
        return best

    def test_limit_16_and_a_table_scan_disclose_nothing(self):
        path = self.path()
        make(path, "")
        for query in (
            "select * from customer order by zip limit 1",
            "select * from customer order by zip limit 16",
            "select sum(length(data)) from customer",
            "select count(*) from without",
        ):
            with self.subTest(query=query):
                evict(path)
                status = child(
                    "db = sqlite3.connect(path); load(db); db.execute(arguments[0]).fetchall()\n"
                    "print(db.execute('select foreread_status()').fetchone()[0])",
                    path,
                    query,
                )
                self.assertEqual(json.loads(status), {"walks": 0, "resident": 0, "disclosed": 0})

    def test_what_is_in_memory_is_left_alone(self):
        path = self.path()
        make(path, "")
        status = child(
            "open(path, 'rb').read(); db = sqlite3.connect(path); load(db)\n"
            "db.execute('select * from customer order by zip').fetchall(); time.sleep(0.2)\n"
            "print(db.execute('select foreread_status()').fetchone()[0])",
            path,
        )
        self.assertEqual(json.loads(status)["walks"], 0)

    def test_an_index_that_suffices_discloses_index_pages_alone(self):
        if not STANDIN:
            self.skipTest("only the stand-in writes down what is disclosed")
        path, log = self.path(), self.path("log")
        # Many index leaves, in an order that is not theirs in the file.
        make(path, "pragma page_size=512", 20000)
        leaves = set()
        with sqlite3.connect(path) as db:
            try:
                found = db.execute("select pageno from dbstat where name = 'zip'").fetchall()
            except sqlite3.OperationalError:
                self.skipTest("this sqlite3 library has no dbstat")
            leaves = {(page - 1) * 512 for (page,) in found}
        evict(path)
        child(
            "db = sqlite3.connect(path); load(db)\n"
            "for _ in db.execute('select zip from customer order by zip'): pass\n"
            "db.close()",
            path,
            environment={"FOREREAD_STANDIN": log},
        )
        if not os.path.exists(log):
            self.skipTest("the pages did not leave memory, or the walk was over too soon")
        given = {int(line[1]) for line in self.disclosed(log) if line[0] == "+"}
        self.assertLessEqual(given, leaves)

    def test_attached_databases_are_watched_and_right(self):
        if not STANDIN:
            self.skipTest("only the stand-in writes down what is disclosed")
        path, other, log = self.path(), self.path("other.db"), self.path("log")
        make(path, "", 20000)
        make(other, "pragma page_size=1024", 20000)
        files = set()
        # On a fast disk with a long read-ahead the files may be in memory too soon.
        for _ in range(6):
            evict(path)
            evict(other)
            out = child(
                "db = sqlite3.connect(path); load(db)\n"
                "db.execute('attach ? as other', (arguments[0],))\n"
                "print(digest(db.execute('select * from other.customer order by zip')))\n"
                "print(digest(db.execute('select * from main.customer order by zip')))\n"
                "print(db.execute('pragma integrity_check').fetchall()); db.close()",
                path,
                other,
                environment={"FOREREAD_STANDIN": log},
            ).split("\n")
            self.assertEqual(out[0], out[1])
            self.assertEqual(out[2], "[('ok',)]")
            if os.path.exists(log):
                files |= {line[1] for line in self.disclosed(log) if line[0] == "file"}
            if files == {path, other}:
                return
        self.fail(f"disclosed from {sorted(files)} alone")

    def test_posix_locks_survive(self):
        path = self.path()
        make(path, "")
        evict(path)
        out = child(
            """
import subprocess
db = sqlite3.connect(path, isolation_level=None)
load(db)
db.execute("begin immediate")
db.execute("select * from customer order by zip").fetchall()
other = sqlite3.connect(path)  # a second connection, opened and closed again
other.execute("select * from customer order by zip limit 100").fetchall()
other.close()
probe = "import sqlite3,sys\\ntry:\\n sqlite3.connect(sys.argv[1], timeout=0).execute('begin immediate')\\n print('taken')\\nexcept sqlite3.OperationalError as e: print(e)"
print(subprocess.run([sys.executable, "-c", probe, path], capture_output=True, text=True).stdout.strip())
db.execute("rollback")
print(subprocess.run([sys.executable, "-c", probe, path], capture_output=True, text=True).stdout.strip())
""",
            path,
        ).split("\n")
        self.assertEqual(out[:2], ["database is locked", "taken"])

    def test_concurrent_writers_and_vacuum_do_no_harm(self):
        writer = """
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.execute("pragma busy_timeout=60000")
until = time.monotonic() + 4
n = 0
while time.monotonic() < until:
    n += 1
    db.execute("begin immediate")
    db.execute("delete from customer where id % 97 = ?", (n % 97,))
    db.execute("insert into customer select 100000 + ? * 1000 + id, zip, name, data from customer where id between 500 and 700", (n,))
    db.execute("commit")
    if n % 5 == 0:
        try:
            db.execute("vacuum")
        except sqlite3.OperationalError:
            pass
    time.sleep(0.01)
"""
        reader = """
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.execute("pragma busy_timeout=60000")
load(db)
until = time.monotonic() + 5
while time.monotonic() < until:
    db.execute("begin")
    walked = [row[0] for row in db.execute("select zip from customer not indexed order by zip, id")]
    by_index = [row[1] for row in db.execute("select * from customer indexed by zip where zip >= 0 order by zip, id")]
    db.execute("commit")
    assert walked == by_index, (len(walked), len(by_index))
print(db.execute("pragma integrity_check").fetchall())
"""
        for kind in ("rollback", "wal", "autovacuum"):
            with self.subTest(kind=kind):
                path = self.path(f"{kind}.db")
                make(path, KINDS[kind])
                writing = subprocess.Popen([sys.executable, "-c", PRELUDE + writer, EXTENSION, path])
                try:
                    # Evicted meanwhile from a process of its own.
                    evicting = subprocess.Popen(
                        [
                            sys.executable,
                            "-c",
                            "import os,sys,time\n"
                            "for _ in range(50):\n"
                            " fd=os.open(sys.argv[1],os.O_RDONLY); os.fsync(fd)\n"
                            " os.posix_fadvise(fd,0,0,os.POSIX_FADV_DONTNEED); os.close(fd); time.sleep(0.1)",
                            path,
                        ]
                    )
                    self.assertEqual(child(reader, path).strip(), "[('ok',)]")
                finally:
                    writing.wait()
                    evicting.wait()
                self.assertEqual(writing.returncode, 0)

    def test_foreign_and_damaged_files_fail_as_without_the_extension(self):
        code = """
if arguments[0] == "with":
    load(sqlite3.connect(":memory:"))
for query in json.loads(arguments[1]):
    try:
        db = sqlite3.connect(path)
        print(digest(db.execute(query)))
    except sqlite3.DatabaseError as error:
        print(error)
"""
        queries = json.dumps([QUERIES[0], QUERIES[1], QUERIES[5], QUERIES[9], "pragma integrity_check"])
        whole = self.path("whole.db")
        make(whole, "")
        with open(whole, "rb") as file:
            bytes_ = file.read()
        rng = random.Random(11)
        for n in range(24):
            with self.subTest(n=n):
                path = self.path(f"damaged{n}.db")
                damaged = bytearray(bytes_)
                if n == 0:
                    damaged = bytearray(rng.randbytes(1 << 20))  # as if encrypted
                elif n == 1:
                    damaged = bytearray()
                elif n == 2:
                    damaged = damaged[: len(damaged) // 2 + 100]
                elif n == 3:
                    damaged[4096:] = rng.randbytes(len(damaged) - 4096)
                else:
                    for _ in range(10 * n):
                        at = 4096 * rng.randrange(len(damaged) // 4096) + rng.choice((rng.randrange(16), rng.randrange(4096)))
                        if at >= 100:
                            damaged[at] = rng.randrange(256)
                with open(path, "wb") as file:
                    file.write(damaged)
                evict(path)
                plain = child(code, path, "without", queries)
                evict(path)
                self.assertEqual(plain, child(code, path, "with", queries))

    def test_a_database_replaced_or_removed_is_left_alone(self):
        path, other = self.path(), self.path("other.db")
        make(path, "")
        make(other, "pragma page_size=1024", 500)
        out = child(
            """
db = sqlite3.connect(path)
load(db)
first = digest(db.execute("select * from customer order by id"))
os.rename(arguments[0], path)
print(first == digest(db.execute("select * from customer order by id")))
a = digest(db.execute("select * from customer order by zip"))
print(a == digest(db.execute("select * from customer not indexed order by zip, id")))
os.remove(path)
print(a == digest(db.execute("select * from customer order by zip")))
""",
            path,
            other,
        )
        self.assertEqual(out.split(), ["True"] * 3)

    def test_a_forked_child_may_open_and_close_databases(self):
        path = self.path()
        make(path, "")
        evict(path)
        out = child(
            """
db = sqlite3.connect(path)
load(db)
cursor = db.execute("select * from customer order by zip")
for _ in range(200):
    cursor.fetchone()
sys.stdout.flush()
if os.fork() == 0:
    mine = sqlite3.connect(path)
    print(len(mine.execute("select * from customer order by zip").fetchall()))
    mine.close()
    sys.stdout.flush()
    os._exit(0)
os.wait()
print(200 + len(cursor.fetchall()))
db.close()
""",
            path,
        )
        self.assertEqual(out.split(), [str(ROWS)] * 2)

    def test_threads_with_connections_of_their_own(self):
        path = self.path()
        make(path, "")
        evict(path)
        out = child(
            """
import threading
load(sqlite3.connect(":memory:"))
results = []
def work(n):
    for _ in range(4):
        db = sqlite3.connect(path)
        results.append(digest(db.execute("select * from customer order by zip" + (" desc" if n % 2 else ""))) )
        db.close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(results), len(set(results)))
""",
            path,
        )
        self.assertEqual(out.split(), ["24", "2"])

    def test_the_shell_needs_load_and_nothing_else(self):
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine")
        path = self.path()
        make(path, "", 20000)
        query = QUERIES[0]
        plain = subprocess.run(["sqlite3", path, query], capture_output=True, check=True).stdout
        load = f".load {EXTENSION[:-3]}"
        # On a fast disk with a long read-ahead the file may be in memory too soon.
        for _ in range(6):
            evict(path)
            done = subprocess.run(
                ["sqlite3", "-cmd", load, path, query, "select foreread_status()"], capture_output=True
            )
            *rows, status = done.stdout.rstrip(b"\n").split(b"\n")
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.assertEqual(b"\n".join(rows) + b"\n", plain)
            if json.loads(status)["walks"]:
                return
        self.fail("no walk was helped in six runs")

    def test_the_vfs_can_be_named_in_a_uri(self):
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine")
        path = self.path()
        make(path, "")
        query = QUERIES[0]
        plain = subprocess.run(["sqlite3", path, query], capture_output=True, check=True).stdout
        evict(path)
        done = subprocess.run(
            ["sqlite3", "-cmd", f".load {EXTENSION[:-3]}", ":memory:", f".open 'file:{path}?vfs=foreread'", query],
            capture_output=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout, plain)


if __name__ == "__main__":
    if not EXTENSION:
        sys.exit(__doc__)
    unittest.main(verbosity=1)
