"""What is disclosed, and what is not."""

import sqlite3

from lab import BY_ZIP, KINDS, Lab, Log, child, evict, make, status_of

WALK = """
db = sqlite3.connect(path); load(db)
db.execute(arguments[0]).fetchall(); db.close()
"""

STATUS = """
db = sqlite3.connect(path); load(db)
db.execute(arguments[0]).fetchall(); time.sleep(0.2)
print(status(db))
"""


class Lists(Lab):
    def test_a_walk_is_disclosed_in_its_order(self):
        for kind in ("rollback", "page 512", "autovacuum", "utf-16", "wal"):
            path = self.path(f"{kind}.db")
            make(path, KINDS[kind], 20000)
            for query in (BY_ZIP, BY_ZIP + " desc"):
                with self.subTest(kind=kind, query=query):
                    # Where a row goes on in overflow pages, those are not known in advance.
                    least = 0.2 if kind == "page 512" else 0.7
                    self.assertGreater(self.best_log(WALK, path, query).share(), least)

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
                status = child(extension, STATUS, path, query)
                self.assertEqual(status_of(status), {"walks": 0, "resident": 0, "disclosed": 0}, query)

    def test_what_is_in_memory_is_left_alone(self):
        path = self.path()
        make(path, "")
        for extension in self.each_extension():
            status = child(extension, "open(path, 'rb').read()\n" + STATUS, path, BY_ZIP)
            self.assertEqual(status_of(status)["walks"], 0)

    def test_an_index_that_suffices_discloses_index_pages_alone(self):
        path, log = self.path(), self.path("log")
        # Many index leaves, in an order that is not theirs in the file.
        make(path, "pragma page_size=512", 20000)
        with sqlite3.connect(path) as db:
            try:
                found = db.execute("select pageno from dbstat where name = 'zip'").fetchall()
            except sqlite3.OperationalError:
                self.skipTest("this sqlite3 library has no dbstat")
        leaves = {(path, (page - 1) * 512) for (page,) in found}
        evict(path)
        child(self.standin(), WALK, path, "select zip from customer order by zip", FOREREAD_STANDIN=log)
        given = set(Log(log).given)
        if not given:
            self.skipTest("the pages did not leave memory, or the walk was over too soon")
        self.assertLessEqual(given, leaves)

    def test_attached_databases_are_watched_and_right(self):
        code = """
db = sqlite3.connect(path); load(db)
db.execute('attach ? as other', (arguments[0],))
print(digest(db.execute('select * from other.customer order by zip')))
print(digest(db.execute('select * from main.customer order by zip')))
print(db.execute('pragma integrity_check').fetchall()); db.close()
"""
        path, other, log = self.path(), self.path("other.db"), self.path("log")
        make(path, "", 20000)
        make(other, "pragma page_size=1024", 20000)
        files = set()
        # On a fast disk with a long read-ahead the files may be in memory too soon.
        for _ in range(6):
            evict(path, other)
            out = child(self.standin(), code, path, other, FOREREAD_STANDIN=log).split("\n")
            self.assertEqual(out[0], out[1])
            self.assertEqual(out[2], "[('ok',)]")
            files |= set(Log(log).files.values())
            if files == {path, other}:
                return
        self.fail(f"disclosed from {sorted(files)} alone")
