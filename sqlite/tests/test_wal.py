"""Pages that are in the WAL are foreseen there, never in the database file; or nothing is foreseen."""

import shutil
import sqlite3
import struct

from lab import BY_ZIP, LARGE, Lab, child, evict, make, status_of

WALK = """
loaded = sqlite3.connect(":memory:")
if arguments[0] == "adopted":
    db = loaded = sqlite3.connect(path, isolation_level=None)
if arguments[0] != "plain":
    load(loaded)
if arguments[0] != "adopted":
    name = "file:" + path + ("?vfs=foreread" if arguments[0] == "named" else "")
    db = sqlite3.connect(name, uri=True, isolation_level=None)
for statement in arguments[2:]:
    db.execute(statement).fetchall()
# before
print(digest(db.execute(arguments[1])))
print(db.execute("pragma integrity_check").fetchall())
db.close()
"""

STATUS = WALK.replace("db.close()", "print(status(loaded))")

PAGE = 4096


def frames(path):
    """The pages in a WAL with the offsets of their newest bytes, and how many frames there are."""
    with open(path, "rb") as wal:
        log = wal.read()
    newest, n, salt = {}, 0, log[16:24]
    for at in range(32, len(log) - PAGE, 24 + PAGE):
        if log[at + 8 : at + 16] != salt:
            break
        newest[struct.unpack_from(">I", log, at)[0]] = at + 24
        n += 1
    return newest, n


class Wal(Lab):
    def setUp(self):
        super().setUp()
        make(self.path(), "pragma journal_mode=wal", **LARGE)
        # Open until the end: the last connection to close would empty the log.
        self.writer = self.connect()
        self.wal = self.path("test.db-wal")

    def connect(self):
        db = sqlite3.connect(self.path(), isolation_level=None)
        db.execute("pragma wal_autocheckpoint=0").fetchall()
        self.addCleanup(db.close)
        return db

    def change(self, remainder):
        """Puts a tenth of the rows into the log, and with them nearly all of the index."""
        self.writer.execute("update customer set zip = zip + 1 where id % 10 = ?", (remainder,))

    def walk(self, how):
        """The log of a walk with the right answer."""
        plain = child(None, WALK, self.path(), "plain", BY_ZIP)
        self.assertIn("[('ok',)]", plain)
        return self.best_log(WALK, self.path(), how, BY_ZIP, cold=[self.wal], answer=plain)

    def assert_foreseen_where_read(self, log, in_wal):
        """`in_wal`: pages and their places in the log, where all of them have to be read."""
        places = set(in_wal.values())
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        for path, offset in given:
            if path == self.wal:
                self.assertIn(offset, places)
            else:
                self.assertNotIn(offset // PAGE + 1, in_wal)
        # Pages read before the walk was found may be on the list again.
        self.assertLess(len(given - read), 100 + len(given) // 20)

    def test_pages_in_the_log_are_foreseen_there(self):
        self.change(3)
        in_wal, _ = frames(self.wal)
        self.assertGreater(len(in_wal), 400)
        for how in ("adopted", "opened", "named"):
            with self.subTest(how=how):
                log = self.walk(how)
                self.assert_foreseen_where_read(log, in_wal)
                in_log = [{place for place in places if place[0] == self.wal} for places in (log.given, log.reads)]
                self.assertGreater(len(in_log[0]), len(in_log[1]) // 2)
                self.assertGreater(len(in_log[1]), 200)

    def test_what_has_been_copied_to_the_database_is_foreseen_there(self):
        self.change(3)
        _, copied = frames(self.wal)
        reader = self.connect()
        reader.execute("begin")
        reader.execute("select * from customer limit 1").fetchall()
        self.change(4)
        # As far as the reader allows.
        _, n, backfilled = self.writer.execute("pragma wal_checkpoint").fetchone()
        self.assertTrue(copied == backfilled < n)
        in_wal = {page: at for page, at in frames(self.wal)[0].items() if at > 32 + copied * (24 + PAGE)}
        self.assert_foreseen_where_read(self.walk("adopted"), in_wal)

    def test_a_reader_of_an_older_state_is_helped_with_that(self):
        self.change(3)
        # Another connection writes between the beginning of the transaction and the walk.
        meanwhile = """
db.execute("begin"); db.execute("select * from customer limit 1").fetchall()
other = sqlite3.connect(path, isolation_level=None)
other.execute("pragma wal_autocheckpoint=0")
other.execute("update customer set zip = zip + 1 where id % 10 = 4")
for name in (path, path + "-wal"):
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    # Closed only at exit: closing would drop this process's locks.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
"""
        log = self.best_log(WALK.replace("# before\n", meanwhile), self.path(), "opened", BY_ZIP, cold=[self.wal])
        given, read = set(log.given), set(log.reads)
        self.assertGreater(log.share(), 0.5)
        self.assertLess(len(given - read), 100 + len(given) // 20)

    def walks(self, attempts, how, first):
        """How many walks are helped, in as many runs as it takes for one, of a copy as a crash would leave it."""
        for _ in range(attempts):
            for suffix in ("", "-wal"):
                shutil.copy(self.path("test.db" + suffix), self.path("copy.db" + suffix))
            evict(self.path("copy.db"), self.path("copy.db-wal"))
            out = child(self.standin(), STATUS, self.path("copy.db"), how, BY_ZIP, first).split("\n")
            self.assertEqual(out[1], "[('ok',)]")
            if status_of(out[2])["walks"]:
                return status_of(out[2])["walks"]
        return 0

    def test_a_writer_is_left_alone(self):
        self.change(3)
        self.assertGreater(self.walks(6, "adopted", "begin"), 0)
        self.assertEqual(self.walks(2, "adopted", "begin immediate"), 0)

    def test_a_log_whose_reads_are_not_seen_is_left_alone(self):
        # The connection is adopted in another mode, and the log opened later by the VFS it was opened with.
        code = """
db = sqlite3.connect(path, isolation_level=None)
load(db)
db.execute("pragma journal_mode=wal").fetchall()
db.execute("pragma wal_autocheckpoint=0")
other = sqlite3.connect(path, isolation_level=None)
other.execute("pragma wal_autocheckpoint=0")
other.execute("update customer set data = substr(data, 2) || 'y' where id % 10 = 3")
with open(path + "-wal", "rb") as wal, open(arguments[0], "wb") as copy:
    copy.write(wal.read())
fd = os.open(path, os.O_RDONLY)
os.fsync(fd)
# Closed only at exit: closing would drop this process's locks.
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
db.execute("select * from customer order by zip").fetchall()
db.close()
"""
        path, copy = self.path("late.db"), self.path("copy")
        make(path, "", **LARGE)
        log = self.best_log(code, path, copy, enough=lambda log: log.given)
        in_wal, _ = frames(copy)
        self.assertGreater(len(in_wal), 400)
        self.assertTrue(log.given)
        for name, offset in log.given:
            self.assertEqual(name, path)
            self.assertNotIn(offset // PAGE + 1, in_wal)

    def test_a_log_that_one_process_has_to_itself_is_left_alone(self):
        # The index stays in the database, so that its walk can be told.
        self.writer.execute("update customer set data = substr(data, 2) || 'y' where id % 10 = 3")
        self.assertGreater(self.walks(6, "opened", "select 1"), 0)
        self.assertEqual(self.walks(2, "opened", "pragma locking_mode=exclusive"), 0)
