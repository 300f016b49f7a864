#!/usr/bin/env python3
"""Programs that others wrote, fetched as Debian sources and built with CC="foreread cc" CXX="foreread c++".

    slicer/suites/programs.py [--cold MODEL] [--rounds N] [--again] [NAME...]
    slicer/suites/programs.py --table [NAME...]

Each program of programs.toml is built twice from the same unchanged source, by cc and c++ and by foreread's. Its own test
suite runs on the second build (and on the first if that fails). Then both do the same work, which must give the same
output, and once more with the addresses of its reads compared. The table shows the treatment of the functions of the
program itself (test programs and helpers of the build do not count) and the first refusals. With --cold the work's files
lie on a slow disk of that model (`foreread slowdisk models`; root), cold each time, and the table has the medians of the
rounds. --again skips building and testing if that is done, and only repeats the work; --table prints the last row of each
program.

All files of the programs are kept in target/suites/programs, and the system's apt is not changed: sources come through a
separate configuration.

Exit status: 0 if all programs were built, passed their tests and gave the same output, and if their prefetch threads made
the same reads or docs/semantics.md explains why not; 1 otherwise.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import addresses

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The tools to test, as built by make slicer.
RELEASE = pathlib.Path(os.environ.get("SUITE_TOOLS", ROOT / "target/release"))
FOREREAD = RELEASE / "foreread"
OBSERVER = pathlib.Path(os.environ.get("SUITE_OBSERVER", ROOT / "target/slicer/libforeread_observer.so"))
FOLDER = ROOT / "target/suites/programs"
TABLE = pathlib.Path(__file__).with_name("programs.toml")
SOURCES = ("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
           "http://deb.debian.org/debian {} main\n")
CONFIGURATION = """Dir::Etc::SourceList "{0}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{0}/lists";
Dir::Cache "{0}/cache";
APT::Sandbox::User "root";
"""


class Failure(Exception):
    """A step that failed, in a sentence."""


def apt():
    """An environment in which apt-get knows sources and does not use the system's lists."""
    folder = FOLDER / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    (folder / "sources.list").write_text(SOURCES.format(release["VERSION_CODENAME"]))
    (folder / "apt.conf").write_text(CONFIGURATION.format(folder))
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    if not any((folder / "lists").glob("*Sources*")):
        subprocess.run(["apt-get", "update", "-q"], env=environment, check=True, capture_output=True)
    return environment


def fetch(package):
    """The unpacked source of a package, and its version."""
    folder = FOLDER / package / "source"
    if not folder.is_dir():
        partial = folder.with_name("partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        got = subprocess.run(["apt-get", "source", "-q", package], cwd=partial,
                             env=apt(), capture_output=True, text=True)
        if got.returncode != 0:
            raise Failure(f"apt-get source: {got.stderr.strip().splitlines()[-1]}")
        partial.rename(folder)
    unpacked = [one for one in folder.iterdir() if one.is_dir()]
    versions = [line.split()[1] for dsc in folder.glob("*.dsc")
                for line in open(dsc, errors="replace") if line.startswith("Version:")]
    return unpacked[0], versions[0]


def shell(script, folder, log, **variables):
    """Runs a recipe's script; True if it succeeded. Its output goes to the log."""
    with open(log, "w") as said:
        environment = {**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": str(RELEASE), **variables}
        return subprocess.run(["sh", "-e", "-c", script], cwd=folder, env=environment, stdout=said,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode == 0


class Build:
    """A program built one way."""

    def __init__(self, program, way, compilers):
        self.program, self.way, self.compilers = program, way, compilers
        self.home = FOLDER / program["name"]
        self.folder = self.home / way
        self.explained = self.home / "explained.jsonl"

    def build(self, source):
        """Builds it from scratch; returns the seconds."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(source, self.folder, symlinks=True)
        self.explained.unlink(missing_ok=True)
        begun = time.monotonic()
        if not self.script("build"):
            raise Failure(f"the {self.way} build fails: {self.home}/{self.way}-build.log")
        return time.monotonic() - begun

    def script(self, step, **variables):
        """Runs a step of the recipe here."""
        script = self.program[step]
        return shell(script, self.folder, self.home / f"{self.way}-{step}.log", **self.compilers,
                     FOREREAD_CC_EXPLAIN=str(self.explained), **variables)

    def work(self, data, **variables):
        """The seconds of the program's work, and its output."""
        log = self.home / f"{self.way}-run.log"
        begun = time.monotonic()
        if not shell(self.program["run"], self.folder, log, DATA=str(data), **variables):
            raise Failure(f"the work fails: {log}")
        return time.monotonic() - begun, log.read_bytes()

    def account(self):
        """The driver's account of the last time that it linked the program."""
        told = [json.loads(line) for line in self.explained.read_text().splitlines()]
        name = pathlib.Path(self.program["program"]).name
        own = [one for one in told if pathlib.Path(one["output"]).name == name]
        if not own:
            raise Failure(f"foreread cc linked no {name}")
        return own[-1]


def make_cold(folder):
    """Drops the files of a folder from memory."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def place_of_work(model):
    """A folder for the files of the programs' work: on a slow disk if a model is named."""
    if model is None:
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            yield pathlib.Path(folder)
        return
    mount = pathlib.Path(tempfile.mkdtemp(prefix="foreread-programs-"))
    subprocess.run([FOREREAD, "slowdisk", "mount", model, mount], check=True, capture_output=True)
    try:
        yield mount
    finally:
        subprocess.run([FOREREAD, "slowdisk", "umount", mount], check=True, capture_output=True)
        mount.rmdir()


def try_program(program, place, arguments):
    """All steps on one program; its row of the table."""
    plain = Build(program, "plain", {"CC": "cc", "CXX": "c++"})
    sliced = Build(program, "sliced", {"CC": f"{FOREREAD} cc", "CXX": f"{FOREREAD} c++"})
    if arguments.again and row_file(program).exists():
        row = last_row(program)
    else:
        row = build_and_test(program, plain, sliced)
    return {**row, **work(program, plain, sliced, place, arguments)}


def build_and_test(program, plain, sliced):
    """The columns that do not depend on a disk."""
    source, version = fetch(program["package"])
    seconds = plain.build(source), sliced.build(source)
    told = sliced.account()
    tests = "pass" if "test" in program else "has none"
    # A prefetch process is started even if all data is in memory.
    if "test" in program and not sliced.script("test", FOREREAD_PREEXEC="1"):
        tests = "FAIL" if plain.script("test") else "fail, as without"
    statuses = collections.Counter(one["status"] for one in told["functions"])
    changed = sum(one["state"] == "changed" for one in told["units"])
    return {
        "program": f"{program['name']} {version}",
        "units": f"{changed}/{len(told['units'])}",
        **{status: statuses[status] for status in ("sliced", "pure", "whole", "refused")},
        "written": 0,
        "tests": tests if told["sliced"] else f"{tests}, left whole",
        "build s": f"{seconds[0]:.0f} → {seconds[1]:.0f}",
        "told": told,
    }


def work(program, plain, sliced, place, arguments):
    """The columns of the work: its output, and on a slow disk its time."""
    data = place / program["name"]
    data.mkdir()
    if not plain.script("data", DATA=str(data)):
        raise Failure(f"no data: {plain.home}/plain-data.log")
    times = collections.defaultdict(list)
    same = True
    for _ in range(arguments.rounds if arguments.cold else 1):
        outputs = []
        for build in (plain, sliced):
            make_cold(data)
            if arguments.cold:
                subprocess.run([FOREREAD, "slowdisk", "forget", place], check=True, capture_output=True)
            seconds, output = build.work(data)
            times[build.way].append(seconds)
            outputs.append(output)
        same = same and outputs[0] == outputs[1]
    return {"output": "same" if same else "DIFFERENT", **compared(sliced, data), **medians(times, arguments)}


def compared(sliced, data):
    """The column that compares the reads of the prefetch threads with those of their programs (addresses.py), for the same
    work once more."""
    traces = sliced.home / "traces"
    shutil.rmtree(traces, ignore_errors=True)
    sliced.work(data, **addresses.environment(OBSERVER, traces, {}))
    # A prefetch process may outlive its program by a moment.
    time.sleep(0.5)
    came = addresses.compare(traces)
    shutil.rmtree(traces)
    return {"reads": came.verdict, "compared": f"{came.counts['same']}/{came.counts['program_calls']}", "said": came.describe()}


def medians(times, arguments):
    """The columns of speed, if it was measured."""
    if not arguments.cold:
        return {}
    plain, sliced = (statistics.median(times[way]) for way in ("plain", "sliced"))
    return {"plain s": f"{plain:.2f}", "sliced s": f"{sliced:.2f}", "gain": f"{plain / sliced:.2f}x"}


def first_refusals(told):
    """Functions that were refused for a reason of their own, not because of another function."""
    if not told["sliced"]:
        yield f"not sliced: {told['why']}"
    for one in told["functions"]:
        why = one.get("why") or ""
        if one["status"] == "refused" and "left whole" not in why:
            yield f"{one['file']}:{one['line']}: {one['name']}: {why}"


def show(rows):
    """Prints the table, and the refusals below it."""
    columns = [column for column in max(rows, key=len) if column not in ("told", "said")]
    cells = [columns, *([str(row.get(column, "-")) for column in columns] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for row in rows:
        if row.get("reads") == "disagrees":
            print(f"{row['program']}: {row['said']}")
        for refusal in first_refusals(row["told"]):
            print(f"{row['program']}: {refusal}")


def row_file(program):
    return FOLDER / program["name"] / "row.json"


def last_row(program):
    """The last row of a program."""
    return json.loads(row_file(program).read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", metavar="MODEL", help="hdd-7200, network-ssd or nfs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="with what is built")
    parser.add_argument("--table", action="store_true", help="of what was tried last")
    parser.add_argument("names", nargs="*", help="these programs alone")
    arguments = parser.parse_args()
    programs = tomllib.loads(TABLE.read_text())["program"]
    if arguments.names:
        programs = [one for one in programs if one["name"] in arguments.names]
    if arguments.table:
        show([last_row(program) for program in programs if row_file(program).exists()])
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    with place_of_work(arguments.cold) as place:
        for program in programs:
            print(f"{program['name']}: {program['reads']} …", file=sys.stderr, flush=True)
            try:
                row = try_program(program, place, arguments)
            except Failure as why:
                print(f"{program['name']}: {why}")
                failed += 1
                continue
            rows.append(row)
            row_file(program).write_text(json.dumps(row))
            wrong = row["reads"] == "disagrees" and program["name"] not in addresses.named()
            failed += row["tests"].startswith("FAIL") or row["output"] != "same" or wrong
    if rows:
        show(rows)
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
