#!/usr/bin/env python3
"""Runs independent C and C++ code through `foreread cc` and `c++`: it must behave as it does without.

    slicer/suites/semantics.py [--quick] [--only SUITE] [--csmith N] [--every N] [NAME...]

Programs are the execution tests of GCC's torture suite (Debian's gcc-12-source), programs that csmith generates, and the
execution tests of G++ and of the C++ library (the same package). Each runs inside harness.c, so that its results decide
where a file is read. A program is

    agreeing     with a prefetch thread, its output, messages and status are the same as without, and the prefetch thread
                 made the program's reads: thread, call ID, file, offset and length (addresses.py)
    disagreeing  the same, but the reads differ: its name is printed, with the first reads that differ
    empty        the same, and nothing could be compared
    refused      linked without a prefetch thread; it then behaves the same too, and the reason is counted
    different    otherwise: its name and the differences are printed

and not tried if the system's compiler does not compile it or it does not end by itself. "To the end" are agreeing
programs whose prefetch thread made all calls of the program. docs/semantics.md lists disagreements with their reasons:
these are counted as named.

Exit status: 0 if none is different, or disagrees without a reason; 1 otherwise.
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

import addresses
import sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The tools to test, as built by make slicer.
RELEASE = pathlib.Path(os.environ.get("SUITE_TOOLS", ROOT / "target/release"))
HARNESS = pathlib.Path(__file__).with_name("harness.c")
OBSERVER = pathlib.Path(os.environ.get("SUITE_OBSERVER", ROOT / "target/slicer/libforeread_observer.so"))
# Size of the file that is read: harness.c's BLOCK * PLACES.
DATA_BYTES = 4096 * 256
# Seconds: for a compilation, and for a program that needs a hundredth of that.
COMPILE_LIMIT = 120
RUN_LIMIT = 20
# Longest wait for the account of a prefetch thread after its program's end, in seconds.
REPORT_LIMIT = 2
FLAGS = {"c": ["-O1", "-w", "-Dmain=test_main", "-Dexit=test_exit", "-Dabort=test_abort"],
         "c++": ["-O1", "-w"]}
# The compiler for each language: the system's driver, and the name of foreread's.
COMPILERS = {"c": "cc", "c++": "c++"}
# The result for a program that behaves the same, by the comparison of its reads.
VERDICTS = {"agrees": "agreeing", "disagrees": "disagreeing", "empty": "empty"}
SUITES = {"torture": sources.torture, "csmith": sources.csmith, "gxx": sources.gxx, "libstdcxx": sources.libstdcxx}


def run(command, limit, **options):
    """Status, output and messages of a command; None if it does not end in time."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, **options)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


class Laboratory:
    """A folder with the harness compiled in both ways, and the file that is read."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.data.write_bytes(os.urandom(DATA_BYTES))
        harness = shutil.copy(HARNESS, self.folder)
        self.foreread = str(RELEASE / "foreread")
        for compiler, name in ([["cc"], "plain"], [[self.foreread, "cc"], "sliced"]):
            command = [*compiler, "-O1", "-c", harness, "-o", str(self.folder / f"{name}.o")]
            subprocess.run(command, check=True)

    def build(self, name, program, source, folder, **options):
        driver = COMPILERS[program.language]
        compiler = [driver] if name == "plain" else [self.foreread, driver]
        command = [*compiler, *FLAGS[program.language], *program.flags, str(source),
                   str(self.folder / f"{name}.o"), "-lm", "-o", str(folder / name)]
        return run(command, COMPILE_LIMIT, **options)

    def compiled(self, program, folder):
        """The source that the system's compiler compiles: the one that reports its values, if possible; or None."""
        for source in (program.telling, program.source):
            if source is not None:
                done = self.build("plain", program, source, folder)
                if done is not None and done[0] == 0:
                    return source
        return None

    def execute(self, path, folder, **variables):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(RELEASE), **variables}
        return run([path, str(self.data)], RUN_LIMIT, cwd=folder, env=environment)

    def judge(self, program):
        """The result for a program: (verdict, reason, the comparison of its reads or None)."""
        # A prefetch process may outlive its program by a moment.
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            folder = pathlib.Path(folder)
            source = self.compiled(program, folder)
            if source is None:
                return "not tried", "cc does not compile it", None
            (folder / "in").mkdir()
            (folder / "plain").rename(folder / "in/test")
            plain = self.execute("in/test", folder)
            if plain is None or plain != self.execute("in/test", folder):
                return "not tried", "it does not end by itself, or not the same twice", None
            explained = folder / "explained.jsonl"
            environment = {**os.environ, "FOREREAD_CC_EXPLAIN": str(explained)}
            compiled = self.build("sliced", program, source, folder, env=environment)
            if compiled is None or compiled[0] != 0:
                return "different", f"foreread cc: {compiled}", None
            # Under the same name, which may be part of a program's output.
            (folder / "sliced").rename(folder / "in/test")
            report, traces = folder / "report", folder / "traces"
            ours = self.execute("in/test", folder,
                                **addresses.environment(OBSERVER, traces, {"FOREREAD_PREEXEC_REPORT": str(report)}))
            if ours != plain:
                return "different", f"{ours} instead of {plain}", None
            told = json.loads(explained.read_text().splitlines()[-1])
            if not told["sliced"]:
                return "refused", reason(told), None
            ended = await_report(report)
            came = addresses.compare(traces, plain[0] != 0)
            why = "" if came.verdict == "agrees" else f"{came.describe()} ({ended})"
            return VERDICTS[came.verdict], why, came


def reason(told):
    """Why a program was linked plainly: the reasons of its units and functions are more specific than the program's."""
    units = [one["why"] for one in told["units"] if one.get("why")]
    functions = [one["why"] for one in told["functions"] if one["status"] == "refused"]
    # Most functions are refused because of others.
    own = [why for why in functions if "left whole" not in why]
    return (units + own + functions + [told["why"]])[0]


def await_report(report):
    """Why the prefetch thread ended, which is reported after its program's end."""
    deadline = time.monotonic() + REPORT_LIMIT
    while time.monotonic() < deadline:
        if report.exists() and (text := report.read_text()).endswith("\n"):
            return json.loads(text.splitlines()[-1])["ended"]
        time.sleep(0.005)
    return "no report"


def judge_all(laboratory, programs, jobs):
    """Verdicts on all programs, bad ones printed at once; and the sum of all compared reads."""
    verdicts = collections.Counter()
    reasons = collections.Counter()
    reads = addresses.Comparison()
    named = addresses.named()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, outcome in zip(programs, pool.map(laboratory.judge, programs)):
            verdict, why, came = outcome
            if verdict == "disagreeing" and program.name in named:
                verdict = "named"
            verdicts[verdict] += 1
            if came is not None:
                reads += came
                verdicts["to the end"] += verdict == "agreeing" and came.whole
            if verdict in ("different", "disagreeing"):
                print(f"  {program.name}: {verdict.upper()}: {why}", flush=True)
            elif verdict == "refused":
                reasons[general(why)] += 1
            if os.environ.get("SUITE_VERBOSE"):
                print(f"  {program.name}: {verdict}: {why}", flush=True)
    return verdicts, reasons, reads


def show(suite, verdicts, reasons, reads):
    """The figures of a suite."""
    tried = sum(verdicts[name] for name in ("agreeing", "disagreeing", "named", "empty", "refused", "different"))
    sliced = tried - verdicts["refused"] - verdicts["different"]
    share = 100 * verdicts["agreeing"] / sliced if sliced else 0
    print(f"{suite}: tried {tried}, agreeing {verdicts['agreeing']} ({share:.1f} % of {sliced} sliced; "
          f"{verdicts['to the end']} to the end), disagreeing {verdicts['disagreeing']} (and named {verdicts['named']}), "
          f"empty {verdicts['empty']}, refused {verdicts['refused']}, different {verdicts['different']}"
          f" (not tried: {verdicts['not tried']})")
    counts = reads.counts
    compared = counts["same"] + counts["differing"] + counts["beyond"]
    print(f"  reads: {counts['program_calls']} by the programs, {compared} compared, {counts['same']} the same, "
          f"{counts['no read'] + counts['no place'] + counts['unseen']} not comparable")
    for why, times in reasons.most_common():
        print(f"  {times:5} refused: {why}")


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
                # Programs that include the C++ library take longest to compile.
                arguments.every = 200 if suite in ("gxx", "libstdcxx") else 40
            programs = find(ROOT / "target/suites", arguments)
            if programs is None:
                print(f"{suite}: skipped: {sources.NEEDS[suite]} is not installed")
                continue
            if arguments.names:
                programs = [one for one in programs if one.name in arguments.names]
            verdicts, reasons, reads = judge_all(laboratory, programs, arguments.jobs)
            show(suite, verdicts, reasons, reads)
            failed += verdicts["different"] + verdicts["disagreeing"]
            passed += verdicts["agreeing"]
            skipped += verdicts["refused"] + verdicts["empty"] + verdicts["named"]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
