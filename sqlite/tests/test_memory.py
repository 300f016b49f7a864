"""A process whose control group limits its memory: helped where that helps, else left alone."""

import shutil
import sqlite3

from lab import Lab, MemoryGroup, environment, evict, status_of

MIB = 1 << 20
WALK = "select id, substr(data, 1, 1) from customer order by zip limit 1500"


class Memory(Lab):
    def setUp(self):
        super().setUp()
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine")
        self.size = 24 * MIB
        db = sqlite3.connect(self.path())
        db.execute("create table customer(id integer primary key, zip integer, data text)")
        # A page a row.
        rows = ((n, n * 7919 % 999983, "x" * 3900) for n in range(self.size // 4096 - 100))
        db.executemany("insert into customer values(?, ?, ?)", rows)
        db.execute("create index zip on customer(zip)")
        db.commit()
        db.close()

    def statuses(self, extension, limit, walk=WALK):
        """What became of a walk under this limit, in bytes, in each of four runs: on a fast disk with a long read-ahead
        a walk may be over before it has been found."""
        command = ["sqlite3", "-cmd", f".load {extension[:-3]}", self.path(), walk, "select foreread_status()"]
        with MemoryGroup(limit) as group:
            for _ in range(4):
                evict(self.path())
                done = group.run(command, capture_output=True, text=True, env=environment(extension))
                self.assertEqual(done.returncode, 0, done.stderr)
                yield status_of(done.stdout.splitlines()[-1])

    def walks(self, extension, limit):
        """How many walks are helped under this limit, in four runs."""
        return sum(status["walks"] for status in self.statuses(extension, limit))

    # Up to twenty runs: on a busy machine a query may be answered before its walk is found.
    def is_helped(self, extension, limit):
        return any(self.walks(extension, limit) for _ in range(5))

    def test_no_more_is_listed_than_memory_may_come_to_hold(self):
        # Fourteen rows of each page, so that a list may name each of them many times.
        db = sqlite3.connect(self.path())
        db.execute("delete from customer")
        rows = ((n, n * 7919 % 999983, "x" * 260) for n in range(self.size // 4096 * 14))
        db.executemany("insert into customer values(?, ?, ?)", rows)
        db.commit()
        db.close()
        limit, read = 16 * MIB, 4000
        walk = f"select id, substr(data, 1, 1) from customer order by zip limit {read}"
        for extension in self.each_extension():
            found = []
            while len(found) < 20 and not any(status["walks"] for status in found):
                found += self.statuses(extension, limit, walk)
            self.assertGreater(sum(status["walks"] for status in found), 0)
            for status in found:
                self.assertLess(status["disclosed"], read + 2 * limit // 4096 + 1000)

    def test_a_database_that_just_fits_is_left_alone(self):
        for extension in self.each_extension():
            # All of these can be helped, and are where the database is small or large beside the limit.
            self.assertTrue(self.is_helped(extension, 4 * self.size), "room for all")
            self.assertTrue(self.is_helped(extension, self.size // 3 * 2), "larger than memory")
            self.assertEqual(self.walks(extension, self.size + 4 * MIB), 0, "just fits")

    def test_with_next_to_no_memory_nothing_is_done(self):
        for extension in self.each_extension():
            self.assertEqual(self.walks(extension, 10 * MIB), 0)
