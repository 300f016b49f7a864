"""Walks that are helped while other processes write: they answer as a scan in the same transaction does, and the
database stays whole, also where a writer is killed in the middle of a transaction."""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import time

from lab import LARGE, PRELUDE, Lab, child, make

# By arguments[0], the file that ends it.
WRITE = """
import random
pragma, seed = arguments[1], int(arguments[2])
rng = random.Random(seed)
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.executescript("pragma busy_timeout=60000; pragma synchronous=off; " + pragma)
rows = db.execute("select max(id) from customer").fetchone()[0]
commits = 0
while not os.path.exists(arguments[0]):
    at = rng.randrange(rows)
    try:
        db.execute("begin immediate")
        db.execute("delete from customer where id between ? and ?", (at, at + 9))
        new = ((rng.randrange(rows + 500), rng.randrange(10**6), "w", "w" * rng.randrange(9000)) for _ in range(10))
        db.executemany("insert or replace into customer values(?, ?, ?, ?)", new)
        db.execute("update customer set zip = abs(random()) % 1000000 where id between ? and ?", (at + 20, at + 25))
        db.execute("commit")
        commits += 1
        if commits % 5 == 0 and "wal" in pragma:
            db.execute("pragma wal_checkpoint(%s)" % rng.choice(["passive", "full", "restart", "truncate"]))
        elif commits % 20 == 0:
            db.execute("vacuum")
    except sqlite3.OperationalError:
        # Somebody else's turn.
        if db.in_transaction:
            db.execute("rollback")
    time.sleep(0.05)
print(commits)
"""

# Until walks were helped and writers came in between, for SQLite lets whom it will wait the longest; three minutes at most.
READ = """
import subprocess
keep = sqlite3.connect(":memory:")
load(keep)
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.executescript("pragma busy_timeout=60000; pragma cache_size=50")
began, answers, versions = time.monotonic(), 0, set()
def enough():
    return answers >= 4 and len(versions) >= 3 and json.loads(status(keep))["walks"] > 0
while not enough() and time.monotonic() < began + 180:
    db.execute("begin")
    db.execute("select id from customer limit 1").fetchone()
    versions.add(db.execute("pragma data_version").fetchone()[0])
    for name in (path, path + "-wal"):
        # In a process of its own: closing the database here would drop this connection's locks.
        drop = ["dd", "of=" + name, "oflag=nocache", "conv=notrunc,nocreat,fdatasync", "count=0", "status=none"]
        subprocess.run(drop, stderr=subprocess.DEVNULL)
    rows = "select zip, id, name, length(data) from customer "
    order = " order by zip desc, id desc" if answers % 2 else " order by zip, id"
    walked = db.execute(rows + "indexed by zip" + order).fetchall()
    scanned = db.execute(rows + "not indexed" + order).fetchall()
    db.execute("commit")
    assert walked == scanned, (answers, len(walked), len(scanned))
    answers += 1
print(json.loads(status(keep))["walks"], len(versions), db.execute("pragma integrity_check").fetchall())
"""

# A transaction half of which the small cache has written by the time its process is killed.
TORN = b""".timeout 60000
pragma cache_size=5;
begin immediate;
insert or replace into customer select id + 50000, zip, 'torn', data from customer limit 200;
update customer set name = 'torn' where id % 97 = 3;
"""


def tear(shell, path):
    """Have the shell write, and kill it."""
    with subprocess.Popen([shell, path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(TORN)
        process.stdin.flush()
        time.sleep(0.1)
        process.kill()


class Writers(Lab):
    def written_meanwhile(self, pragma):
        path, shell = self.path(), shutil.which("sqlite3")
        make(path, pragma, **LARGE)
        for extension in self.each_extension():
            end = self.path("end")
            command = [sys.executable, "-c", PRELUDE + WRITE, "", path, end, pragma]
            writers = [subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE) for seed in (1, 2)]
            try:
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    reading = pool.submit(child, extension, READ, path)
                    while not reading.done():
                        if shell:
                            tear(shell, path)
                        time.sleep(0.1)
                walks, versions, check = reading.result().strip().split(" ", 2)
            finally:
                open(end, "x").close()
                counts = [writer.communicate()[0] for writer in writers]
                codes = [writer.returncode for writer in writers]
                os.remove(end)
            self.assertEqual(codes, [0, 0])
            self.assertGreater(sum(map(int, counts)), 1)
            self.assertEqual(check, "[('ok',)]")
            self.assertGreater(int(versions), 2, "nobody wrote between the walks")
            self.assertGreater(int(walks), 0, "no walk was helped in three minutes")

    def test_a_walk_answers_as_a_scan_does_while_others_write_a_log(self):
        self.written_meanwhile("pragma journal_mode=wal")

    def test_a_walk_answers_as_a_scan_does_while_others_write_with_a_rollback_journal(self):
        self.written_meanwhile("pragma journal_mode=delete")

    def test_a_walk_answers_as_a_scan_does_while_others_vacuum(self):
        self.written_meanwhile("pragma auto_vacuum=full; pragma journal_mode=truncate")
