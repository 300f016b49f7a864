"""The extension beside what else may be in its process: libforeread preloaded for the program's own reads, and the
observer of `foreread run`."""

import json
import os
import shutil
import subprocess

from lab import BY_ZIP, LARGE, Lab, child, environment, evict, make, stands_in, status_of

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "target", "release")

CLIENT = """
import ctypes
class Entry(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("flags", ctypes.c_uint), ("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]
NAMES = "struct_size accepted ahead listed unlisted skipped outside callbacks".split()
class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in NAMES]
foreread = ctypes.CDLL(None)
client = ctypes.c_void_p()
"""


class Together(Lab):
    def setUp(self):
        super().setUp()
        make(self.path(), "", **LARGE)

    def real(self):
        """The extension over libforeread itself."""
        for extension in self.each_extension():
            if not stands_in(extension):
                yield extension

    def built(self, name):
        path = os.path.abspath(os.path.join(BUILT, name))
        if not os.path.exists(path):
            self.skipTest(f"{path} is missing: run make build first")
        return path

    def test_the_programs_own_client_and_the_extension_leave_each_other_alone(self):
        # The extension's thread has 0 for the database, in a table of its own; the program for a file of its.
        code = CLIENT + """
db = sqlite3.connect(path)
load(db)
os.dup2(os.open(path + ".own", os.O_RDONLY), 0)
assert foreread.foreread_register_client(ctypes.byref(client), None, None, None) == 0
assert foreread.foreread_register_region(client, 0, ctypes.c_uint64(0), ctypes.c_uint64(2**64 - 1)) >= 0
entries = (Entry * 400)(*[Entry(0, 0, (n * 7 % 400) * 4096, 4096) for n in range(400)])
assert foreread.foreread_request_prefetching(client, entries, ctypes.c_size_t(400), 9) == 400
def read(some):
    for n in some:
        os.pread(0, 4096, (n * 7 % 400) * 4096)
read(range(100))
rows = db.execute("select * from customer order by zip")
print(digest(rows))
read(range(100, 200))
walks = json.loads(status(db))["walks"]
db.close()
read(range(200, 400))
stats = Stats(ctypes.sizeof(Stats))
assert foreread.foreread_get_stats(client, ctypes.byref(stats)) == 0
print(walks, stats.listed, stats.unlisted, stats.skipped, stats.outside)
"""
        with open(self.path() + ".own", "wb") as own:
            own.write(bytes(400 * 4096))
        plain = child(None, "print(digest(sqlite3.connect(path).execute('select * from customer order by zip')))", self.path())
        for extension in self.real():
            walks = 0
            for _ in range(6):
                evict(self.path(), self.path() + ".own")
                out = child(extension, code, self.path(), LD_PRELOAD=self.built("libforeread.so.1"))
                answer, counts = out.rstrip("\n").split("\n")
                self.assertEqual(answer + "\n", plain)
                walks, *reads = map(int, counts.split())
                self.assertEqual(reads, [400, 0, 0, 0])
                if walks:
                    break
            self.assertGreater(walks, 0, "no walk was helped in six runs")

    def test_a_walks_reads_are_told_once_where_the_library_is_preloaded(self):
        code = """
db = sqlite3.connect(path)
load(db)
print(digest(db.execute("select * from customer order by zip")))
print(json.loads(status(db))["walks"])
db.close()
"""
        report = self.path("report")
        for extension in self.real():
            for _ in range(6):
                evict(self.path())
                preload = self.built("libforeread.so.1")
                out = child(extension, code, self.path(), LD_PRELOAD=preload, FOREREAD_CHECK=report)
                if out.split()[1] != "0":
                    break
            self.assertNotEqual(out.split()[1], "0", "no walk was helped in six runs")
            with open(report) as lines:
                counts = next(line for line in lines if line.startswith("reads listed "))
            listed, unlisted, outside = (int(word) for word in counts.replace(",", "").split() if word.isdigit())
            # Each row once, and the pages of both trees that lead to it.
            self.assertLess(listed + unlisted + outside, LARGE["rows"] * 5 // 4)

    def shell(self, *command, script):
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell on this machine")
        state = {"XDG_STATE_HOME": self.path("state"), "HOME": self.folder}
        done = subprocess.run(command, input=script.encode(), capture_output=True, env=environment(None, **state))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def test_under_foreread_run_the_records_are_of_the_program_alone(self):
        foreread = self.built("foreread")
        shell = ("sqlite3", self.path())
        script = BY_ZIP + ";\n" + "-- a comment\n" * 1000 + "select count(*) from customer;\n"
        plain = self.shell(*shell, script=script)
        for extension in self.real():
            walks = 0
            loading = f".load {extension[:-3]}\n{script}select foreread_status();\n"
            record = self.path("record.fr")
            for _ in range(6):
                evict(self.path())
                out = self.shell(foreread, "record", "-o", record, "--", *shell, script=loading)
                *rows, status = out.rstrip(b"\n").split(b"\n")
                self.assertEqual(b"\n".join(rows) + b"\n", plain)
                walks += status_of(status)["walks"]
                if walks:
                    break
            self.assertGreater(walks, 0, "no walk was helped in six runs")
            # What the extension's thread has read ahead of it is not the program's.
            shown = self.shell(foreread, "show", "--json", record, script="")
            self.assertEqual(json.loads(shown)["summary"]["threads"], 1)
            for _ in range(2):
                evict(self.path())
                out = self.shell(foreread, "run", "--", *shell, script=loading)
                self.assertEqual(out[: len(plain)], plain)
