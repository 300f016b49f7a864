"""What is disclosed, and what is not."""

import os
import random
import sqlite3
import time

from lab import BY_ZIP, KINDS, LARGE, Lab, Log, child, evict, make, status_of

WALK = """
db = sqlite3.connect(path); load(db)
db.execute(arguments[0]).fetchall(); db.close()
"""

STATUS = """
db = sqlite3.connect(path); load(db)
db.execute(arguments[0]).fetchall(); time.sleep(0.2)
print(status(db))
"""


MAPPED = """
db = sqlite3.connect(path); load(db)
db.execute(arguments[0]).fetchall(); db.execute(arguments[1]).fetchall(); time.sleep(0.2)
print(status(db))
"""


def is_quick(path):
    """Whether eight of nine cold reads of a file take no more than a millisecond."""
    took = []
    for place in range(1, 10):
        evict(path)
        with open(path, "rb", buffering=0) as file:
            began = time.monotonic()
            os.pread(file.fileno(), 1, place << 20)
            took.append(time.monotonic() - began)
    return sorted(took)[-2] <= 1e-3


class Lists(Lab):
    def disclosed_in_its_order(self, kind, **size):
        path = self.path()
        make(path, KINDS[kind], **size)
        for query in (BY_ZIP, BY_ZIP + " desc"):
            self.assertGreater(self.best_log(WALK, path, query).share(), 0.5, query)

    def test_a_walk_is_disclosed_in_its_order(self):
        self.disclosed_in_its_order("rollback", **LARGE)

    def test_a_walk_through_small_pages_is_disclosed(self):
        self.disclosed_in_its_order("page 512", rows=20000, width=100)

    def test_a_walk_through_a_database_with_autovacuum_is_disclosed(self):
        self.disclosed_in_its_order("autovacuum", **LARGE)

    def test_a_walk_through_utf_16_is_disclosed(self):
        self.disclosed_in_its_order("utf-16", rows=8000, width=1850)

    def test_a_walk_through_a_checkpointed_wal_database_is_disclosed(self):
        self.disclosed_in_its_order("wal", **LARGE)

    def test_limit_16_and_a_table_scan_disclose_nothing(self):
        path = self.path()
        make(path, "")
        for extension in self.each_extension():
            for query in (
                BY_ZIP + " limit 1",
                BY_ZIP + " limit 16",
                "select sum(length(data)) from customer",
                "select count(*) from without",
            ):
                evict(path)
                status = status_of(child(extension, STATUS, path, query))
                # The scan of a table without rowid may pass for a walk until it is seen that the
                # kernel's read-ahead has all of it in memory.
                self.assertEqual((status["walks"], status["disclosed"]), (0, 0), query)

    def test_what_is_in_memory_is_left_alone(self):
        path = self.path()
        make(path, "")
        for extension in self.each_extension():
            status = child(extension, "open(path, 'rb').read()\n" + STATUS, path, BY_ZIP)
            self.assertEqual(status_of(status)["walks"], 0)

    def test_a_mapped_database_on_a_quick_device_is_left_to_the_kernel(self):
        path = self.path()
        make(path, "", **LARGE)
        query = "pragma mmap_size=1000000000"
        for extension in self.each_extension():
            # The library measures the device, too. Beside others that keep it busy it is not quick: once is enough.
            disclosed = []
            while 0 not in disclosed and len(disclosed) < 10:
                if not is_quick(path):
                    self.skipTest("the device is not quick")
                evict(path)
                disclosed.append(status_of(child(extension, MAPPED, path, query, BY_ZIP))["disclosed"])
            self.assertIn(0, disclosed)

    def test_an_index_that_suffices_discloses_index_pages_alone(self):
        path, rng = self.path(), random.Random(7)
        db = sqlite3.connect(path)
        # The leaves of the index lie between those of the table.
        db.execute("create table customer(id integer primary key, zip integer, data text)")
        db.execute("create index zip on customer(zip)")
        rows = ((n, rng.randrange(10**6), "x" * 300) for n in range(60000))
        db.executemany("insert into customer values(?, ?, ?)", rows)
        db.commit()
        db.close()
        with sqlite3.connect(path) as db:
            try:
                found = db.execute("select pageno from dbstat where name = 'zip'").fetchall()
            except sqlite3.OperationalError:
                self.skipTest("this sqlite3 library has no dbstat")
        leaves = {(path, (page - 1) * 4096) for (page,) in found}
        log = self.best_log(WALK, path, "select zip from customer order by zip", enough=lambda log: log.given)
        self.assertTrue(log.given)
        self.assertLessEqual(set(log.given), leaves)

    def test_attached_databases_are_watched_and_right(self):
        code = """
db = sqlite3.connect(path); load(db)
db.execute('attach ? as other', (arguments[0],))
print(digest(db.execute('select * from other.customer order by zip')))
print(digest(db.execute('select * from main.customer order by zip')))
print(db.execute('pragma integrity_check').fetchall()); db.close()
"""
        path, other, log = self.path(), self.path("other.db"), self.path("log")
        make(path, "", **LARGE)
        make(other, "pragma page_size=8192", **LARGE)
        files = set()
        # On a fast disk with a long read-ahead the files may be in memory too soon.
        for _ in range(6):
            evict(path, other)
            out = child(self.standin(), code, path, other, FOREREAD_STANDIN=log).split("\n")
            self.assertEqual(out[0], out[1])
            self.assertEqual(out[2], "[('ok',)]")
            files |= Log(log).paths
            if files == {path, other}:
                return
        self.fail(f"disclosed from {sorted(files)} alone")
