#!/usr/bin/env python3
"""Random programs under `foreread run`, compared with the same programs alone.

    soak.py [--seconds N] [--seed N]

Each round makes files and a program that reads them in a random way, runs it alone, and then several times by `foreread run`:
cold and hot, undisturbed, and with one trouble: foreread killed, the program killed, the program's store on a full file system,
a limit on memory, on processor time, on file sizes or on descriptors, files that change between the runs, a file system that is
unmounted right after the run. Output and exit status must be those of the program alone, and the ledger of `--json` must be closed. The first difference ends the soak with the seed that repeats its round.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOREREAD = os.path.join(ROOT, "target/release/foreread")
# Much longer than any round's program runs.
PATIENCE = 120
COLUMNS = ["useful", "late", "wasted", "evicted", "infill", "unknown"]

PROGRAM = """
import hashlib, mmap, os, sys, threading, time
def digest(name, reads, way):
    sum = hashlib.md5()
    with open(name, "rb", 0) as file:
        size = os.fstat(file.fileno()).st_size
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if way == "mapped" and size else None
        for offset, length, pause in reads:
            if view is not None:
                sum.update(view[offset:offset + length])
            elif way == "seek":
                file.seek(offset)
                sum.update(file.read(length))
            else:
                sum.update(os.pread(file.fileno(), length, offset))
            time.sleep(pause)
    return sum.hexdigest()
def part(number, work, out):
    out[number] = [digest(*one) for one in work]
def run(parts, status):
    out = [None] * len(parts)
    threads = [threading.Thread(target=part, args=(n, work, out)) for n, work in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(out, flush=True)
    print("to standard error", file=sys.stderr)
    sys.exit(status)
"""


def holders(dev):
    """Processes that have anything of this file system open, mapped or as their folder: number and name of each."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        at = os.path.join("/proc", process)
        held = [os.path.join(at, name) for name in ["cwd", "root", "exe"]]
        for folder in ["fd", "map_files"]:
            try:
                held += [os.path.join(at, folder, name) for name in os.listdir(os.path.join(at, folder))]
            except OSError:
                pass
        for link in held:
            try:
                if os.stat(link).st_dev == dev:
                    with open(os.path.join(at, "stat")) as stat:
                        found.append(stat.readline().rsplit(")", 1)[0] + ")")
                    break
            except OSError:
                pass
    return found


def unmount(place):
    """Unmounts a file system that nobody uses any more. Who just looks at all mounts is waited for; foreread is not."""
    dev, begun, refused = os.stat(place).st_dev, time.monotonic(), None
    while True:
        tried = subprocess.run(["umount", place], stderr=subprocess.PIPE, text=True)
        if tried.returncode == 0:
            break
        held = holders(dev)
        refused = refused or f"{tried.stderr.strip()}: {held or 'held by nobody known'}"
        assert not any("foreread" in one for one in held) and time.monotonic() - begun < PATIENCE, refused
    if refused:
        print(f"soak: {refused}, for {time.monotonic() - begun:.3f} s", flush=True)


def reads_of(rng, size):
    """Offsets, lengths and pauses (s) of one way through a file."""
    count = rng.randrange(1, 300)
    length = rng.choice([1, 100, 4096, 16384, 131072])
    pause = rng.choice([0, 0, 0.0001])
    way = rng.choice(["forward", "backward", "strided", "random"])
    step = length * rng.choice([1, 2, 7]) if way == "strided" else length
    offsets = [n * step for n in range(count)]
    if way == "backward":
        offsets = [max(0, size - offset - length) for offset in offsets]
    if way == "random":
        offsets = [rng.randrange(size + 1) for _ in offsets]
    return [(offset, length, pause) for offset in offsets]


class Round:
    """Files, a program, and a store of their own."""

    def __init__(self, rng, folder):
        self.rng = rng
        self.folder = folder
        self.home = os.path.join(folder, "home")
        self.names = [f"file-{n}" for n in range(rng.randrange(1, 20))]
        self.sizes = {name: rng.choice([0, 1, 5000, 1 << 20, 8 << 20]) for name in self.names}
        for name in self.names:
            self.write(name)
        ways = ["pread", "seek", "mapped"]
        one = lambda name: (name, reads_of(rng, self.sizes[name]), rng.choice(ways))
        parts = [[one(name) for name in rng.sample(self.names, rng.randrange(1, len(self.names) + 1))]
                 for _ in range(rng.randrange(1, 4))]
        with open(os.path.join(folder, "program.py"), "w") as file:
            file.write(f"{PROGRAM}\nrun({parts!r}, {rng.choice([0, 0, 3])})\n")

    def write(self, name):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(self.rng.randbytes(self.sizes[name]))

    def cold(self):
        for name in self.names:
            fd = os.open(os.path.join(self.folder, name), os.O_RDONLY)
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    def start(self, words, home=None):
        environment = dict(os.environ, XDG_DATA_HOME=home or self.home, LC_ALL="C")
        return subprocess.Popen(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, words, home=None):
        child = self.start(words, home)
        try:
            out, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise AssertionError(f"no end after {PATIENCE} s: {words}")
        return child.returncode, out, err

    def alone(self):
        return self.run([sys.executable, "program.py"])

    def prefix(self, *options):
        return [FOREREAD, "run", *options, "--", sys.executable, "program.py"]

    def compare(self, what, plain, got):
        assert got[0] == plain[0], f"{what}: status {got[0]}, alone {plain[0]}: {got[2]!r}"
        assert got[1] == plain[1], f"{what}: another output"
        # foreread's own lines come first if the program replaces foreread.
        own = [line for line in got[2].splitlines(True) if not line.startswith(b"foreread: ")]
        assert b"".join(own) == plain[2], f"{what}: standard error: {got[2]!r}"

    def undisturbed(self, what):
        plain = self.alone()
        account = os.path.join(self.folder, "account.json")
        self.compare(what, plain, self.run(self.prefix("--json", account)))
        with open(account) as file:
            ledger = json.load(file).get("ledger")
        if ledger:
            total = sum(ledger[column] for column in COLUMNS)
            assert ledger["issued"] == total, f"{what}: the ledger is open: {ledger}"

    def killed(self, whom):
        """foreread or all of its session killed at a random time; what it leaves must not harm the next run."""
        child = self.start(self.prefix())
        time.sleep(self.rng.random() * 0.2)
        if whom == "foreread":
            # The program goes on without foreread, and its output is complete.
            os.kill(child.pid, signal.SIGKILL)
        else:
            os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate(timeout=PATIENCE)
        plain = self.alone()
        if whom == "foreread" and out:
            assert out == plain[1], "foreread killed: another output"
        self.undisturbed(f"after {whom} was killed")

    def full(self):
        """The store on a file system without room."""
        place = os.path.join(self.folder, "full")
        os.mkdir(place)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place]).returncode:
            return
        try:
            with open(os.path.join(place, "filler"), "wb", 0) as file:
                try:
                    while file.write(b"0" * 4096):
                        pass
                except OSError:
                    pass
            self.compare("with a full store", self.alone(), self.run(self.prefix(), place))
        finally:
            unmount(place)

    def limited(self):
        """A limit that both have, the program alone too: on the address space, the size of files, or open files."""
        limit = self.rng.choice(["-v 1500000", "-f 1", "-n 16"])
        shell = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh"]
        plain = self.run([*shell, sys.executable, "program.py"])
        self.compare(f"within ulimit {limit}", plain, self.run([*shell, *self.prefix()]))

    def slow(self):
        """A quota of processor time for both, less than one processor."""
        group = f"/sys/fs/cgroup/cpu/foreread-soak-{os.getpid()}"
        try:
            os.mkdir(group)
            with open(os.path.join(group, "cpu.cfs_quota_us"), "w") as file:
                file.write(str(self.rng.choice([20_000, 60_000])))
        except OSError:
            return
        shell = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        try:
            plain = self.run([*shell, sys.executable, "program.py"])
            self.compare("within a quota", plain, self.run([*shell, *self.prefix()]))
        finally:
            os.rmdir(group)

    def mounted(self):
        """The files on a file system that is unmounted as soon as the run has ended, or while a part of it goes on."""
        place, image = os.path.join(self.folder, "mounted"), os.path.join(self.folder, "image")
        os.mkdir(place)
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if subprocess.run(["mkfs.ext4", "-q", image], **quietly).returncode:
            return
        for name in self.names:
            shutil.move(os.path.join(self.folder, name), os.path.join(self.folder, name + ".kept"))
            os.symlink(os.path.join("mounted", name), os.path.join(self.folder, name))
        mount = lambda: subprocess.run(["mount", "-o", "loop", image, place], **quietly).returncode
        if mount():
            return
        for name in self.names:
            shutil.copy(os.path.join(self.folder, name + ".kept"), os.path.join(place, name))
        plain = self.alone()
        for run in ["first", "second", "third"]:
            unmount(place)
            assert mount() == 0, "the file system is not unmounted"
            self.compare(f"the {run} run on a mount", plain, self.run(self.prefix()))
        unmount(place)

    def changed(self):
        """Files of the record that have become shorter, longer, or others."""
        for name in self.rng.sample(self.names, (len(self.names) + 1) // 2):
            path = os.path.join(self.folder, name)
            way = self.rng.choice(["shorter", "longer", "other"])
            if way == "shorter":
                os.truncate(path, self.sizes[name] // 2)
            elif way == "longer":
                with open(path, "ab") as file:
                    file.write(self.rng.randbytes(10_000))
            else:
                os.remove(path)
                self.write(name)
        self.cold()
        self.undisturbed("after files have changed")

    def all(self):
        for run in ["first", "second", "third"]:
            if run != "third":
                self.cold()
            self.undisturbed(f"the {run} run")
        troubles = [lambda: self.killed("foreread"), lambda: self.killed("everything"), self.limited, self.changed]
        if os.geteuid() == 0:
            troubles += [self.full, self.slow, self.mounted]
        self.rng.choice(troubles)()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="how long rounds are begun")
    parser.add_argument("--seed", type=int, help="one round alone, that of this seed")
    options = parser.parse_args()
    if not os.path.exists(FOREREAD):
        sys.exit(f"{FOREREAD} is missing: run make build first")
    base = os.path.join(ROOT, "target/tmp")
    os.makedirs(base, exist_ok=True)
    end = time.monotonic() + options.seconds
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    rounds = 0
    while rounds == 0 or (options.seed is None and time.monotonic() < end):
        seed = first + rounds
        folder = tempfile.mkdtemp(prefix="soak-", dir=base)
        try:
            Round(random.Random(seed), folder).all()
        except (AssertionError, subprocess.CalledProcessError) as why:
            sys.exit(f"soak: round {rounds + 1} failed: {why}\nsoak: repeat it by tests/soak.py --seed {seed}; files: {folder}")
        shutil.rmtree(folder)
        rounds += 1
        if rounds % 10 == 0:
            print(f"soak: {rounds} rounds", flush=True)
    print(f"soak: {rounds} rounds, no difference; first seed {first}")


if __name__ == "__main__":
    main()
