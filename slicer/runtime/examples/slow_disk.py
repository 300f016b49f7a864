#!/usr/bin/env python3
"""The video player on a slow disk, without and with its prefetch thread: the share of the waiting that is masked.

    slow_disk.py PLAIN TRANSLATED GENERATE FOREREAD [MODEL]

PLAIN, TRANSLATED and GENERATE are programs, FOREREAD the command, in the folder of libforeread.so.1. Needs root: it mounts
a slow disk (`foreread slowdisk`). Prints a line per case: seconds cold and plain, cold with the prefetch thread, and hot,
which is the limit; and masked = (plain - foreread) / (plain - limit). On a busy machine these are mostly noise. Therefore
the line also has the seconds in which the program neither ran nor was ready to run (it waited for the disk), without and
with the prefetch thread, and the share of them that is gone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

CASES = [
    ("forward 4K", []),
    ("backward 4K", ["-b"]),
    ("forward 8K", ["-s", "8192"]),
    ("backward 8K", ["-b", "-s", "8192"]),
]
# Decodings per block: none, one (negligible), and 100 (about 0.4 ms).
WORK = [0, 1, 100]


class Disk:
    def __init__(self, foreread, model, folder):
        self.foreread, self.folder = foreread, folder
        self.run("mount", model, folder, "--size", "256M")

    def run(self, *arguments):
        subprocess.run([self.foreread, "slowdisk", *arguments], check=True, stdout=subprocess.DEVNULL)

    def cold(self):
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as drop:
            drop.write("3")
        self.run("forget", self.folder)


class Run:
    """A program run to its end: its output, wall-clock seconds, and seconds blocked."""

    def __init__(self, command, environment):
        began = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        self.out = process.stdout.read()
        # The process has ended and is not reaped: the kernel still has its times.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.seconds = time.monotonic() - began
        with open(f"/proc/{process.pid}/schedstat") as file:
            on_processor, ready = (int(field) / 1e9 for field in file.read().split()[:2])
        self.blocked = max(self.seconds - on_processor - ready, 0)
        if process.wait() != 0:
            sys.exit(f"{command} failed")


def report(path):
    """The report, which is written when the program has ended; None if it never appears."""
    for _ in range(200):
        if os.path.exists(path) and os.path.getsize(path) > 0:
            with open(path) as file:
                return json.load(file)
        time.sleep(0.01)
    return None


def measure(disk, plain, translated, arguments, environment, scratch):
    disk.cold()
    plainly = Run([plain, *arguments], environment)
    written = os.path.join(scratch, "report")
    disk.cold()
    ahead = Run([translated, *arguments], environment | {"FOREREAD_PREEXEC_REPORT": written})
    said = report(written)
    os.unlink(written)
    hot = Run([plain, *arguments], environment)
    if ahead.out != plainly.out:
        sys.exit(f"{translated} prints something else than {plain}")
    return plainly, ahead, hot, said


def share(part, whole):
    return f"{100 * part / whole:8.1f}%" if whole > 0 else f"{'-':>9}"


def main():
    plain, translated, generate, foreread, *model = sys.argv[1:]
    if os.geteuid() != 0:
        sys.exit("skipped: mounting a slow disk needs root")
    environment = os.environ | {"LD_LIBRARY_PATH": os.path.dirname(os.path.abspath(foreread))}
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "disk")
        os.mkdir(folder)
        disk = Disk(foreread, model[0] if model else "hdd-7200", folder)
        try:
            film = os.path.join(folder, "film")
            subprocess.run([generate, "film", "16", film], check=True)
            print(f"{'case':<12}{'work':>5}{'plain s':>9}{'foreread s':>11}{'hot s':>8}{'masked':>9}"
                  f"{'blocked s':>10}{'with':>7}{'gone':>9}{'late':>7}{'first ms':>9}{'thread ms':>10}"
                  f"{'process ms':>11}")
            for name, arguments in CASES:
                for work in WORK:
                    plainly, ahead, hot, said = measure(
                        disk, plain, translated, [*arguments, "-k", str(work), film], environment, scratch)
                    masked = share(plainly.seconds - ahead.seconds, plainly.seconds - hot.seconds)
                    gone = share(plainly.blocked - ahead.blocked, plainly.blocked)
                    late = 100 * said["late"] / max(said["issued"], 1)
                    print(f"{name:<12}{work:>5}{plainly.seconds:>9.3f}{ahead.seconds:>11.3f}"
                          f"{hot.seconds:>8.3f}{masked}{plainly.blocked:>10.3f}{ahead.blocked:>7.3f}{gone}"
                          f"{late:>6.1f}%{1e3 * said['first_s']:>9.1f}{1e3 * said['cpu_s']:>10.1f}"
                          f"{1e3 * said['process_cpu_s']:>11.1f}", flush=True)
        finally:
            disk.run("umount", folder)


main()
