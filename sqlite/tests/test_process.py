"""The extension inside a process: its locks, its children, its threads, its ways in."""

import os
import shutil
import sqlite3
import subprocess
import tempfile

from lab import BY_ZIP, LARGE, ROWS, Lab, child, environment, evict, make, stands_in, status_of


class Process(Lab):
    def setUp(self):
        super().setUp()
        make(self.path(), "")

    def test_posix_locks_survive(self):
        code = """
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
"""
        for extension in self.each_extension():
            for mode in ("delete", "wal"):
                evict(self.path())
                switch = f"sqlite3.connect(path).execute('pragma journal_mode={mode}').fetchall()\n"
                out = child(extension, switch + code, self.path()).split("\n")
                self.assertEqual(out[:2], ["database is locked", "taken"], mode)

    def test_a_forked_child_may_open_and_close_databases(self):
        code = """
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
"""
        for extension in self.each_extension():
            evict(self.path())
            self.assertEqual(child(extension, code, self.path()).split(), [str(ROWS)] * 2)

    def test_threads_with_connections_of_their_own(self):
        code = """
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
"""
        for extension in self.each_extension():
            evict(self.path())
            self.assertEqual(child(extension, code, self.path()).split(), ["24", "2"])

    def test_the_library_is_loaded_by_a_walk_and_by_nothing_less(self):
        code = """
db = sqlite3.connect(path)
load(db)
def loaded():
    return "libforeread.so" in open("/proc/self/maps").read()
db.execute("select * from customer order by zip limit 1").fetchall()
print(loaded(), json.loads(status(db))["library"])
db.execute("select * from customer order by zip").fetchall()
print(loaded(), json.loads(status(db))["library"])
"""
        os.remove(self.path())
        make(self.path(), "", **LARGE)
        for extension in self.each_extension():
            # On a fast disk with a long read-ahead the file may be in memory too soon for a walk to need help.
            for _ in range(6):
                evict(self.path())
                first, last, _ = child(extension, code, self.path()).split("\n")
                self.assertEqual(first, "False not needed yet")
                if last == "True loaded":
                    break
            self.assertEqual(last, "True loaded", "no walk needed it in six runs")

    def test_without_the_library_queries_are_answered_all_the_same(self):
        code = """
db = sqlite3.connect(path)
if extension:
    load(db)
print(digest(db.execute("select * from customer order by zip")))
print(json.loads(status(db))["library"] if extension else "")
"""
        os.remove(self.path())
        make(self.path(), "", **LARGE)
        plain = child(None, code, self.path()).split("\n")[0]
        for extension in self.each_extension():
            folder = tempfile.mkdtemp(dir=self.folder, prefix="sanitized" if stands_in(extension) else "alone")
            alone = shutil.copy(extension, folder)
            with open(os.path.join(folder, "libforeread.so.1"), "w") as broken:
                broken.write("not a library")
            for _ in range(6):
                evict(self.path())
                answer, library, _ = child(alone, code, self.path()).split("\n")
                self.assertEqual(answer, plain)
                if library == "missing":
                    break
            self.assertEqual(library, "missing", "no walk needed it in six runs")

    def opened_cold(self, extension, first):
        """Opens the database cold, the extension loaded `first` or afterwards; pages asked for, and for each of the
        schema's and statistics' pages whether it comes into memory, without any statement."""
        code = """
import ctypes, mmap
before = int(arguments[0])
if before:
    loader = sqlite3.connect(":memory:")
    load(loader)
db = sqlite3.connect(path)
if not before:
    load(db)
asked = json.loads(status(loader if before else db))["opening"]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = os.path.getsize(path)
fd = os.open(path, os.O_RDONLY)
mapping = libc.mmap(None, size, 0, mmap.MAP_SHARED, fd, 0)
present = (ctypes.c_ubyte * ((size + 4095) // 4096))()
until = time.monotonic() + 10  # they are on their way
while True:
    assert libc.mincore(ctypes.c_void_p(mapping), ctypes.c_size_t(size), present) == 0
    there = [present[int(page) - 1] & 1 for page in arguments[1:]]
    if all(there) or time.monotonic() > until:
        break
    time.sleep(0.01)
print(asked, *there)
"""
        evict(self.path())
        return [int(word) for word in child(extension, code, self.path(), int(first), *self.schema).split()]

    def test_what_sqlite_reads_first_is_asked_for_at_the_opening(self):
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine, whose dbstat tells the schema's pages")
        # Far from page 1, with which the kernel reads a few pages more.
        db = sqlite3.connect(self.path())
        db.execute("analyze")
        one = db.execute("select rootpage from sqlite_schema where name = 'sqlite_stat1'").fetchone()
        self.schema = list(one)
        for extension in self.each_extension():
            for first in (False, True):
                asked, *present = self.opened_cold(extension, first)
                self.assertEqual((asked, present), (1, [1]), first)
        # A schema that needs pages of its own.
        with db:
            for n in range(60):
                db.execute(f"create table extra{n}(a, b, c, d, e, f, comment text default '{'-' * 200}')")
        sql = "select pageno from dbstat where name = 'sqlite_schema' and pageno > 1"
        db.close()
        done = subprocess.run(["sqlite3", self.path(), sql], capture_output=True, check=True, text=True)
        self.schema = done.stdout.split()
        self.assertGreater(len(self.schema), 3)
        for extension in self.each_extension():
            for first in (False, True):
                asked, *present = self.opened_cold(extension, first)
                self.assertEqual((asked, present), (len(self.schema), [1] * len(self.schema)), first)

    def test_nothing_is_asked_for_twice_nor_of_another_file(self):
        code = """
db = sqlite3.connect(path)
load(db)
db.execute("select count(*) from sqlite_schema").fetchall()
first = json.loads(status(db))["opening"]
sqlite3.connect(path).execute("select 1 from sqlite_schema").fetchall()
open(path + "-not", "w").write("SQLite format 2" * 1000)
try:
    sqlite3.connect(path + "-not").execute("select 1 from sqlite_schema")
except sqlite3.DatabaseError as error:
    print(error)
print(first, json.loads(status(db))["opening"])
"""
        sqlite3.connect(self.path()).execute("analyze").connection.commit()
        for extension in self.each_extension():
            evict(self.path())
            out = child(extension, code, self.path()).splitlines()
            self.assertEqual(out, ["file is not a database", "1 1"])

    def shell(self, extension, *arguments):
        """The output of the sqlite3 shell with the extension loaded."""
        command = ["sqlite3", "-cmd", f".load {extension[:-3]}", *arguments]
        done = subprocess.run(command, capture_output=True, env=environment(extension))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def plain(self):
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine")
        return subprocess.run(["sqlite3", self.path(), BY_ZIP], capture_output=True, check=True).stdout

    def test_the_shell_needs_load_and_nothing_else(self):
        os.remove(self.path())
        make(self.path(), "", **LARGE)
        plain = self.plain()
        for extension in self.each_extension():
            # On a fast disk with a long read-ahead the file may be in memory too soon.
            walks = 0
            for _ in range(6):
                evict(self.path())
                out = self.shell(extension, self.path(), BY_ZIP, "select foreread_status()")
                *rows, status = out.rstrip(b"\n").split(b"\n")
                self.assertEqual(b"\n".join(rows) + b"\n", plain)
                walks += status_of(status)["walks"]
                if walks:
                    break
            self.assertGreater(walks, 0, "no walk was helped in six runs")

    def test_the_vfs_can_be_named_in_a_uri(self):
        plain = self.plain()
        for extension in self.each_extension():
            evict(self.path())
            out = self.shell(extension, ":memory:", f".open 'file:{self.path()}?vfs=foreread'", BY_ZIP)
            self.assertEqual(out, plain)
