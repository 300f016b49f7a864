"""Overflow pages of rows are foreseen where the query reads them."""

import random
import sqlite3

from lab import BY_ZIP, Lab, child, evict, stands_in

ROWS = 1500
PAGE = 4096

WALK = """
db = sqlite3.connect(path, isolation_level=None); load(db)
print(digest(db.execute(arguments[0])))
print(db.execute("pragma integrity_check").fetchall())
db.close()
"""


class Overflow(Lab):
    def make(self, least, most, pragma="select 1", more=0):
        """A table whose rows have so many bytes in `data`, and after that in `more`."""
        rng = random.Random(3)
        db = sqlite3.connect(self.path(), isolation_level=None)
        db.execute(pragma).fetchall()
        db.execute("create table customer(id integer primary key, zip integer, name text, data text, more text)")
        db.execute("begin")
        rows = ((n, rng.randrange(10**6), f"n{n:05}", "x" * rng.randrange(least, most), "z" * more) for n in range(ROWS))
        db.executemany("insert into customer values(?, ?, ?, ?, ?)", rows)
        db.execute("create index zip on customer(zip)")
        db.execute("commit")
        return db

    def overflow_pages(self, db):
        try:
            found = db.execute("select pageno from dbstat where name = 'customer' and pagetype = 'overflow'").fetchall()
        except sqlite3.OperationalError:
            self.skipTest("this sqlite3 library has no dbstat")
        return {(self.path(), (page - 1) * PAGE) for (page,) in found}

    def walk(self, query, **options):
        """The log of a walk with the right answer."""
        plain = child(None, WALK.replace("load(db)", ""), self.path(), query)
        self.assertIn("[('ok',)]", plain)
        for extension in self.each_extension():
            if not stands_in(extension):
                evict(self.path())
                self.assertEqual(child(extension, WALK, self.path(), query), plain)
        return self.best_log(WALK, self.path(), query, answer=plain, **options)

    def test_one_page_of_each_row_is_foreseen(self):
        overflow = self.overflow_pages(self.make(5000, 7500))
        log = self.walk(BY_ZIP)
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        self.assertGreater(len(given & overflow), ROWS * 0.7)
        self.assertLess(len(given - read), 100 + len(given) // 20)

    def test_chains_are_foreseen(self):
        overflow = self.overflow_pages(self.make(5000, 40000))
        log = self.walk(BY_ZIP)
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        self.assertGreater(len(given & overflow), 2 * ROWS)
        self.assertLess(len(given - read), 100 + len(given) // 20)

    def test_of_a_chain_no_more_is_foreseen_than_is_read(self):
        overflow = self.overflow_pages(self.make(4500, 4501, more=19000))
        query = "select id, name, data from customer order by zip"
        log = self.walk(query)
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        self.assertGreater(len(given & overflow), ROWS * 0.7)
        self.assertLess(len(given - read), 100 + len(given) // 20)

    def test_a_query_that_needs_no_overflow_page_gets_none(self):
        overflow = self.overflow_pages(self.make(5000, 7500))
        query = "select id, zip, name from customer order by zip"
        log = self.walk(query)
        self.assertGreater(log.share(), 0.5)
        self.assertFalse(set(log.given) & overflow)

    def test_a_walk_that_ends_soon_has_wasted_no_more_than_it_read(self):
        self.make(5000, 7500)
        log = self.best_log(WALK.replace("pragma integrity_check", "select 1"), self.path(), BY_ZIP + " limit 300", enough=lambda log: log.given)
        self.assertTrue(log.given)
        # Leaf and overflow page of each row, and as many again.
        self.assertLess(len(set(log.given)), 4 * 300)

    def test_rows_in_the_log_of_a_wal_are_foreseen_there(self):
        db = self.make(5000, 7500, "pragma journal_mode=wal")
        db.execute("pragma wal_autocheckpoint=0").fetchall()
        db.execute("pragma wal_checkpoint").fetchall()
        db.execute("update customer set data = data || 'y' where id % 3 = 0")
        wal = self.path("test.db-wal")
        log = self.walk(BY_ZIP, cold=[wal])
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        self.assertGreater(sum(path == wal for path, _ in given), ROWS // 3)
        self.assertLess(len(given - read), 100 + len(given) // 20)
        db.close()
