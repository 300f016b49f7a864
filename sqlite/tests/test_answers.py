"""Every kind of database, whole, foreign or damaged, answers as it does without the extension."""

import concurrent.futures
import json
import random
import shutil
import subprocess
import sys

from lab import BY_ZIP, EXTENSIONS, KINDS, PRELUDE, Lab, child, environment, evict, make, stands_in, status_of

QUERIES = [
    BY_ZIP,
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
    "select body from long order by tag",
]

ENCRYPTED = """
create table customer(id integer primary key, zip integer, name text, data text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000)
insert into customer select i, i * 7919 % 10007, 'n' || i, hex(zeroblob(400)) from n;
create index zip on customer(zip);
"""

HOWS = ("adopted", "opened", "named")

ANSWER = """
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
for cold in (True, False) if arguments[0] != "plain" else (False,):
    for query in queries:
        if cold:
            fd = os.open(path, os.O_RDONLY)
            # Closed only at exit: closing would drop this process's locks.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        print(digest(db.execute(query)))
print(db.execute("pragma integrity_check").fetchall())
"""

WRITE = """
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.execute("pragma busy_timeout=60000")
until = time.monotonic() + 2.5
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

READ = """
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.execute("pragma busy_timeout=60000")
load(db)
until = time.monotonic() + 3
while time.monotonic() < until:
    db.execute("begin")
    walked = [row[0] for row in db.execute("select zip from customer not indexed order by zip, id")]
    by_index = [row[1] for row in db.execute("select * from customer indexed by zip where zip >= 0 order by zip, id")]
    db.execute("commit")
    assert walked == by_index, (len(walked), len(by_index))
print(db.execute("pragma integrity_check").fetchall())
"""

EVICT = """
import os, sys, time
for _ in range(30):
    fd = os.open(sys.argv[1], os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    time.sleep(0.1)
"""

FAIL = """
if extension:
    load(sqlite3.connect(":memory:"))
for name in arguments[1:]:
    for query in json.loads(arguments[0]):
        try:
            db = sqlite3.connect(name)
            print(name, digest(db.execute(query)))
        except sqlite3.DatabaseError as error:
            print(name, error)
"""


class Answers(Lab):
    def answers_as_without(self, kind):
        path, pragma = self.path(), KINDS[kind]
        make(path, pragma)
        plain = child(None, ANSWER, path, "plain", pragma, json.dumps(QUERIES))
        *plain, check, _ = plain.split("\n")
        self.assertEqual(check, "[('ok',)]")
        # Each kind is opened in each way by one of the extensions, and each extension opens in each way.
        turn = list(KINDS).index(kind)
        for extension in self.each_extension():
            for _ in range(1 if stands_in(extension) else 2):
                how = HOWS[turn % len(HOWS)]
                turn += 1
                evict(path)
                out = child(extension, ANSWER, path, how, pragma, json.dumps(QUERIES)).split("\n")
                self.assertEqual(out, [*plain, *plain, check, ""], how)

    def write_meanwhile(self, kind):
        path = self.path()
        make(path, KINDS[kind])
        writing = subprocess.Popen([sys.executable, "-c", PRELUDE + WRITE, "", path])
        # Evicted meanwhile from a process of its own.
        evicting = subprocess.Popen([sys.executable, "-c", EVICT, path])
        try:
            # All extensions at once.
            with concurrent.futures.ThreadPoolExecutor() as pool:
                for answer in pool.map(lambda extension: child(extension, READ, path), EXTENSIONS):
                    self.assertEqual(answer.strip(), "[('ok',)]")
        finally:
            writing.wait()
            evicting.wait()
        self.assertEqual(writing.returncode, 0)

    def test_foreign_and_damaged_files_fail_as_without_the_extension(self):
        queries = json.dumps([QUERIES[0], QUERIES[1], QUERIES[5], QUERIES[9], "pragma integrity_check"])
        whole = self.path("whole.db")
        make(whole, "", 2500)
        with open(whole, "rb") as file:
            bytes_ = file.read()
        rng, paths = random.Random(11), []
        for n in range(24):
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
            paths.append(path)
        plain = child(None, FAIL, whole, queries, *paths)
        for extension in self.each_extension():
            evict(*paths)
            self.assertEqual(plain, child(extension, FAIL, whole, queries, *paths))

    def test_an_encrypted_database_answers_as_without_the_extension_and_is_left_alone(self):
        shell = shutil.which("sqlcipher")
        if not shell:
            self.skipTest("no sqlcipher shell on this machine")
        path, key = self.path(), "pragma key = 'a secret';\n"

        def said(extension, script):
            done = subprocess.run([shell, path], input=script, env=environment(extension), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        said(None, key + ENCRYPTED)
        with open(path, "rb") as file:
            self.assertNotEqual(file.read(15), b"SQLite format 3")
        queries = "".join(f"{query};\n" for query in (QUERIES[0], QUERIES[1], QUERIES[4], "pragma integrity_check"))
        plain = said(None, key + queries)
        self.assertTrue(plain.endswith("ok\n"))
        for extension in self.each_extension():
            loading = f".load {extension[:-3]}\n"
            for beginning in (loading + key, key + loading):
                evict(path)
                *answer, told = said(extension, beginning + queries + "select foreread_status();\n").splitlines(True)
                self.assertEqual("".join(answer), plain)
                self.assertEqual(status_of(told)["disclosed"], 0)

    def test_a_database_replaced_or_removed_is_left_alone(self):
        code = """
db = sqlite3.connect(path)
load(db)
first = digest(db.execute("select * from customer order by id"))
os.rename(arguments[0], path)
print(first == digest(db.execute("select * from customer order by id")))
a = digest(db.execute("select * from customer order by zip"))
print(a == digest(db.execute("select * from customer not indexed order by zip, id")))
os.remove(path)
print(a == digest(db.execute("select * from customer order by zip")))
"""
        path, other = self.path(), self.path("other.db")
        for extension in self.each_extension():
            make(path, "")
            make(other, "pragma page_size=1024", 500)
            self.assertEqual(child(extension, code, path, other).split(), ["True"] * 3)


def named(kind):
    return kind.replace(" ", "_").replace("-", "_")


for one in KINDS:
    setattr(
        Answers,
        f"test_every_kind_of_database_answers_as_without_the_extension_{named(one)}",
        lambda self, kind=one: self.answers_as_without(kind),
    )
for one in ("rollback", "wal", "autovacuum"):
    setattr(
        Answers,
        f"test_concurrent_writers_and_vacuum_do_no_harm_{named(one)}",
        lambda self, kind=one: self.write_meanwhile(kind),
    )
