"""The extension inside a process: its locks, its children, its threads, its ways in."""

import os
import shutil
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
