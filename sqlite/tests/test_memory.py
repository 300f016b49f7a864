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

    def walks(self, extension, limit):
        """How many walks are helped under this limit, in bytes, in four runs."""
        command = ["sqlite3", "-cmd", f".load {extension[:-3]}", self.path(), WALK, "select foreread_status()"]
        helped = 0
        with MemoryGroup(limit) as group:
            # On a fast disk with a long read-ahead a walk may be over before it has been found.
            for _ in range(4):
                evict(self.path())
                done = group.run(command, capture_output=True, text=True, env=environment(extension))
                self.assertEqual(done.returncode, 0, done.stderr)
                helped += status_of(done.stdout.splitlines()[-1])["walks"]
        return helped

    def test_a_database_that_just_fits_is_left_alone(self):
        for extension in self.each_extension():
            # All of these can be helped, and are where the database is small or large beside the limit.
            self.assertGreater(self.walks(extension, 4 * self.size), 0, "room for all")
            self.assertGreater(self.walks(extension, self.size // 3 * 2), 0, "larger than memory")
            self.assertEqual(self.walks(extension, self.size + 4 * MIB), 0, "just fits")

    def test_with_next_to_no_memory_nothing_is_done(self):
        for extension in self.each_extension():
            self.assertEqual(self.walks(extension, 10 * MIB), 0)
