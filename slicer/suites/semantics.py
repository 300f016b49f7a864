#!/usr/bin/env python3
"""C and C++ that nobody here wrote, through `foreread cc` and `c++`: it must behave as it does without.

    slicer/suites/semantics.py [--quick] [--only SUITE] [--csmith N] [--every N] [NAME...]

Programs are the execution tests of GCC's torture suite (Debian's gcc-12-source), what csmith makes of its
seeds, and the execution tests of G++ and of the C++ library (the same package), each run inside harness.c, so that what they compute decides where a file is read. A program is

    passed      with a prefetch thread, and its output, messages and status are those without
    refused     linked plainly; it then behaves the same too, and the reason is counted
    different   otherwise: its name, and what differs, are printed

and not tried when the system's compiler does not compile it or it does not end by itself. "In step"
are those of the passed whose prefetch thread made the very calls that the program made.

Exit status: 0 if none is different, 1 otherwise.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The tools to try, as make slicer leaves them.
RELEASE = pathlib.Path(os.environ.get("SUITE_TOOLS", ROOT / "target/release"))
HARNESS = pathlib.Path(__file__).with_name("harness.c")
# Of the file that is read: harness.c's BLOCK * PLACES.
DATA_BYTES = 4096 * 256
# Seconds: for a compilation, and for a program that takes a hundredth of that.
COMPILE_LIMIT = 120
RUN_LIMIT = 20
# Until the account of a prefetch thread is there, after its program's end.
REPORT_LIMIT = 2
FLAGS = {"c": ["-O1", "-w", "-Dmain=test_main", "-Dexit=test_exit", "-Dabort=test_abort"],
         "c++": ["-O1", "-w"]}
# What compiles a language: the system's driver, and foreread's word for its own.
COMPILERS = {"c": "cc", "c++": "c++"}
SUITES = {"torture": sources.torture, "csmith": sources.csmith, "gxx": sources.gxx, "libstdcxx": sources.libstdcxx}


def run(command, limit, **options):
    """Status, output and messages of a command; None if it does not end in time."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, **options)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


class Laboratory:
    """A folder with the harness compiled both ways, and the file that is read."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.data.write_bytes(os.urandom(DATA_BYTES))
        harness = shutil.copy(HARNESS, self.folder)
        self.foreread = str(RELEASE / "foreread")
        for compiler, name in ([["cc"], "plain"], [[self.foreread, "cc"], "sliced"]):
            command = [*compiler, "-O1", "-c", harness, "-o", str(self.folder / f"{name}.o")]
            subprocess.run(command, check=True)

    def build(self, name, program, folder, **options):
        driver = COMPILERS[program.language]
        compiler = [driver] if name == "plain" else [self.foreread, driver]
        command = [*compiler, *FLAGS[program.language], *program.flags, str(program.source),
                   str(self.folder / f"{name}.o"), "-lm", "-o", str(folder / name)]
        return run(command, COMPILE_LIMIT, **options)

    def execute(self, path, folder, **variables):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(RELEASE), **variables}
        return run([path, str(self.data)], RUN_LIMIT, cwd=folder, env=environment)

    def judge(self, program):
        """What became of a program: (verdict, why, whether in step)."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = pathlib.Path(folder)
            compiled = self.build("plain", program, folder)
            if compiled is None or compiled[0] != 0:
                return "not tried", "cc does not compile it", False
            (folder / "in").mkdir()
            (folder / "plain").rename(folder / "in/test")
            plain = self.execute("in/test", folder)
            if plain is None or plain != self.execute("in/test", folder):
                return "not tried", "it does not end by itself, or not the same twice", False
            explained = folder / "explained.jsonl"
            environment = {**os.environ, "FOREREAD_CC_EXPLAIN": str(explained)}
            compiled = self.build("sliced", program, folder, env=environment)
            if compiled is None or compiled[0] != 0:
                return "different", f"foreread cc: {compiled}", False
            # Under the same name: what a program prints may hold it.
            (folder / "sliced").rename(folder / "in/test")
            report = folder / "report"
            ours = self.execute("in/test", folder, FOREREAD_PREEXEC="1",
                                FOREREAD_PREEXEC_REPORT=str(report), HARNESS_LINGERS="1")
            if ours != plain:
                return "different", f"{ours} instead of {plain}", False
            told = json.loads(explained.read_text().splitlines()[-1])
            if not told["sliced"]:
                return "refused", reason(told), False
            return "passed", "", in_step(report)


def reason(told):
    """Why a program was linked plainly: the units' and functions' reasons say more than the program's."""
    units = [one["why"] for one in told["units"] if one.get("why")]
    functions = [one["why"] for one in told["functions"] if one["status"] == "refused"]
    # Most are refused because of others.
    own = [why for why in functions if "left whole" not in why]
    return (units + own + functions + [told["why"]])[0]


def in_step(report):
    """Whether the prefetch thread made as many calls as the program, which it tells after its end."""
    deadline = time.monotonic() + REPORT_LIMIT
    while time.monotonic() < deadline:
        if report.exists() and (text := report.read_text()).endswith("\n"):
            account = json.loads(text.splitlines()[-1])
            return account.get("calls", 0) == account.get("program_calls", 0) > 0
        time.sleep(0.005)
    return False


def judge_all(laboratory, programs, jobs):
    """Verdicts on all programs, the different ones printed as they are found."""
    verdicts = collections.Counter()
    reasons = collections.Counter()
    steps = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, outcome in zip(programs, pool.map(laboratory.judge, programs)):
            verdict, why, step = outcome
            verdicts[verdict] += 1
            steps += step
            if verdict == "different":
                print(f"  {program.name}: DIFFERENT: {why}", flush=True)
            elif verdict == "refused":
                reasons[general(why)] += 1
            if os.environ.get("SUITE_VERBOSE"):
                print(f"  {program.name}: {verdict}: {why}{'' if step else ' (not in step)'}", flush=True)
    return verdicts, reasons, steps


def general(why):
    """A reason without the names in it, so that it can be counted."""
    words = why.split(";")[0].split()
    return " ".join(word for word in words if not set(word) & set("'`\"‘’/_0123456789"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a bounded part, for make test-slicer")
    parser.add_argument("--only", choices=SUITES)
    parser.add_argument("--csmith", type=int, default=200, metavar="N", help="seeds 1 to N")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth test of the compiler's suites")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*", help="these programs alone")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.csmith = 8
    failed = passed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="foreread-semantics-") as folder:
        laboratory = Laboratory(folder)
        for suite, find in SUITES.items():
            if arguments.only not in (None, suite):
                continue
            if arguments.quick:
                # To compile what includes the C++ library takes longest.
                arguments.every = 200 if suite in ("gxx", "libstdcxx") else 40
            programs = find(ROOT / "target/suites", arguments)
            if programs is None:
                print(f"{suite}: skipped: {sources.NEEDS[suite]} is not installed")
                continue
            if arguments.names:
                programs = [one for one in programs if one.name in arguments.names]
            verdicts, reasons, steps = judge_all(laboratory, programs, arguments.jobs)
            tried = sum(verdicts.values()) - verdicts["not tried"]
            print(f"{suite}: tried {tried}, passed {verdicts['passed']} ({steps} in step), "
                  f"refused {verdicts['refused']}, different {verdicts['different']}"
                  f" (not tried: {verdicts['not tried']})")
            for why, times in reasons.most_common():
                print(f"  {times:5} refused: {why}")
            failed += verdicts["different"]
            passed += verdicts["passed"]
            skipped += verdicts["refused"]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
