#!/usr/bin/env python3
"""Runs one case: translates its C or C++, checks the printed text, and runs the result.

A case is a file in C or C++.  Lines of the form `//: WORD rest` are its expectations:

    UNIT name          the lines up to the next UNIT are a separate source file
    ARGS options       options for foreread-slice
    CFLAGS options     options for the compiler
    KEEPS text         the prefetch functions contain this text (spaces do not matter)
    DROPS text         … do not contain it
    PROGRAM text       the computation thread contains this text
    STATUS name word   the account of this function: sliced, whole, pure, refused
    WHY name text      … and the reason
    FILE path word     the account of this file: data, configuration, output, input, unused
    ASSUMED text       an assumption that is reported
    LOOKS text         loads that are not announced are reported with this text
    UNCHANGED          no unit is changed
    DATA path n        before running: a file of n bytes, byte i being i * 7 + i / 256
    TEXT path text     … or of this text (with \\n)
    INPUT text         standard input
    RUN arguments      the translated program has the output and status of the original, and its prefetch thread
                       makes the program's reads: thread, call ID, file, offset and length (suites/addresses.py)
    COUNTS             … and the prefetch thread makes as many counted calls as the program
    UNSEEN reason      … but none of its reads can be compared
    DIFFERS reason     … but some reads differ, for a reason in docs/semantics.md
    SHORT n            the prefetch functions have at most n lines

Exit status: 0 as expected, 1 not, 77 if the result or its prefetch thread could not be run because the runtime is not
built.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "suites"))
import addresses  # noqa: E402  (it lies with the suites, which compare in the same way)


def flat(text):
    return re.sub(r"\s+", "", text)


class Case:
    def __init__(self, path, tool, runtime, compiler, observer):
        self.path, self.tool, self.compiler = path, tool, compiler
        self.observer = os.path.abspath(observer)
        self.runtime = [os.path.abspath(each) for each in runtime]
        self.failures, self.skipped = [], None
        self.units, self.expect = {}, []
        name, lines = os.path.basename(path), []
        for line in open(path):
            match = re.match(r"//: (\w+) ?(.*)", line)
            if match and match[1] == "UNIT":
                if lines:
                    self.units[name] = "".join(lines)
                name, lines = match[2].strip(), []
            elif match:
                self.expect.append((match[1], match[2].rstrip()))
            else:
                lines.append(line)
        self.units[name] = "".join(lines)

    def all(self, word):
        return [rest for key, rest in self.expect if key == word]

    def fail(self, what):
        self.failures.append(what)

    def translate(self, folder):
        sources = [name for name in self.units if name.endswith((".c", ".cpp"))]
        flags = shlex.split(" ".join(self.all("CFLAGS")))
        for name, text in self.units.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w") as out:
                out.write(text)
        commands = [{"directory": folder, "file": name, "arguments": ["cc", *flags, "-c", name]}
                    for name in sources]
        with open(os.path.join(folder, "commands.json"), "w") as out:
            json.dump(commands, out)
        line = [self.tool, "--json", "--out-dir", os.path.join(folder, "out"), "--compile-commands",
                os.path.join(folder, "commands.json"), *shlex.split(" ".join(self.all("ARGS")))]
        done = subprocess.run(line, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            self.fail(f"foreread-slice: status {done.returncode}: {done.stderr}")
            return sources, flags, None
        return sources, flags, json.loads(done.stdout)

    def check_text(self, program, slices):
        for text in self.all("KEEPS"):
            if flat(text) not in flat(slices):
                self.fail(f"not kept: {text}")
        for text in self.all("DROPS"):
            if flat(text) in flat(slices):
                self.fail(f"not dropped: {text}")
        for text in self.all("PROGRAM"):
            if flat(text) not in flat(program):
                self.fail(f"not in the program: {text}")
        for count in self.all("SHORT"):
            if len(slices.splitlines()) > int(count):
                self.fail(f"the prefetch functions have {len(slices.splitlines())} lines")

    def check_account(self, account):
        functions = {each["name"]: each for each in account["functions"]}
        for text in self.all("STATUS"):
            name, word = text.split()
            found = functions.get(name, {"status": "missing"})["status"]
            if found != word:
                self.fail(f"{name} is {found}, not {word}: {functions.get(name)}")
        for text in self.all("WHY"):
            name, why = text.split(None, 1)
            if why not in functions.get(name, {"why": ""})["why"]:
                self.fail(f"{name}: {functions.get(name)}, not: {why}")
        for text in self.all("FILE"):
            path, word = text.split()
            if not any(each["path"] == path and each["kind"] == word for each in account["files"]):
                self.fail(f"{path} is not {word}: {account['files']}")
        for text in self.all("ASSUMED"):
            if not any(text in each for each in account["assumed"]):
                self.fail(f"not assumed: {text}: {account['assumed']}")

        for text in self.all("LOOKS"):
            if not any(text in each for each in account["unannounced"]):
                self.fail(f"not said: {text}: {account['unannounced']}")

    def build(self, folder, name, sources, flags, extra):
        # The C compiler recognizes C++ by the file name, and lacks only the library.
        library = ["-lstdc++"] if any(each.endswith(".cpp") for each in sources) else []
        line = [self.compiler, "-w", *flags, *sources, "-o", os.path.join(folder, name), "-iquote", folder,
                *extra, *library]
        done = subprocess.run(line, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            self.fail(f"{name} does not compile: {done.stderr}")
        return done.returncode == 0

    def run_program(self, folder, name, arguments, report=None):
        work = os.path.join(folder, "work-" + name)
        os.makedirs(work, exist_ok=True)
        for text in self.all("DATA"):
            path, size = text.split()
            with open(os.path.join(work, path), "wb") as out:
                out.write(bytes((i * 7 + i // 256) & 255 for i in range(int(size))))
        for text in self.all("TEXT"):
            path, content = text.split(None, 1)
            with open(os.path.join(work, path), "w") as out:
                out.write(content.replace("\\n", "\n"))
        given = "".join(self.all("INPUT")).replace("\\n", "\n")
        environment = dict(os.environ)
        if report:
            environment = addresses.environment(self.observer, report + ".traces", environment)
            environment["FOREREAD_PREEXEC_REPORT"] = report
        done = subprocess.run([os.path.join(folder, name), *arguments], input=given, capture_output=True,
                              text=True, cwd=work, env=environment, timeout=60)
        left = {}
        for each in sorted(os.listdir(work)):
            with open(os.path.join(work, each), "rb") as file:
                left[each] = file.read()
        return done.returncode, done.stdout, done.stderr, left

    def run(self):
        # A prefetch process may outlive its program by a moment, and its report comes last.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            sources, flags, account = self.translate(folder)
            if account is None:
                return
            outputs = {unit["index"]: unit["output"] for unit in account["units"] if unit["output"]}
            program = slices = ""
            changed = []
            for index, name in enumerate(sources):
                if index not in outputs:
                    changed.append(name)
                    continue
                text = open(os.path.join(folder, outputs[index])).read()
                computation, _, prefetch = text.partition("/* The prefetch thread. */")
                program, slices = program + computation, slices + prefetch
                changed.append(outputs[index])
            if os.environ.get("FOREREAD_SHOW"):
                print(program, slices, json.dumps(account, indent=1))
            if any(key == "UNCHANGED" for key, _ in self.expect) and outputs:
                self.fail("units are changed: " + slices)
            self.check_text(program, slices)
            self.check_account(account)
            header, plain_flags = os.path.dirname(self.runtime[1]), flags
            if any(unit.get("names_private") for unit in account["units"]):
                flags = [*flags, "-fno-access-control"]
            if not outputs:
                return
            runs = self.all("RUN")
            if not runs or not os.path.exists(self.runtime[0]):
                for index, name in enumerate(changed):
                    if index in outputs:
                        self.build(folder, f"{index}.o", [name], flags, ["-c", "-idirafter", header])
                if runs:
                    self.skipped = "the runtime is not built"
                return
            libraries = ["-idirafter", header, self.runtime[0], "-ldl", "-lpthread", "-lm"]
            if not self.build(folder, "original", sources, plain_flags, ["-lm", "-lpthread"]) or \
                    not self.build(folder, "translated", changed, flags, libraries):
                return
            for number, text in enumerate(runs):
                report = os.path.join(folder, f"report{number}")
                plain = self.run_program(folder, "original", shlex.split(text))
                both = self.run_program(folder, "translated", shlex.split(text), report)
                for what, one, other in zip(("status", "output", "errors", "files"), plain, both):
                    if one != other:
                        self.fail(f"run {text}: {what} differs: {one!r} {other!r}")
                self.check_addresses(text, report, plain[0] != 0)

    def check_addresses(self, run, path, failed):
        # The report is written once the program has ended.
        for _ in range(100):
            if os.path.exists(path) and open(path).read().endswith("\n"):
                break
            time.sleep(0.02)
        else:
            self.fail(f"run {run}: no report")
            return
        report = json.loads(open(path).read().splitlines()[-1])
        if report["ended"] == "without libforeread":
            self.skipped = "libforeread.so.1 is not built"
            return
        came = addresses.compare(path + ".traces", failed)
        if os.environ.get("FOREREAD_SHOW"):
            print(came.verdict, came.describe(), report)
        if any(key == "COUNTS" for key, _ in self.expect) and (not came.whole or not report["calls"]):
            self.fail(f"run {run}: {report['program_calls']} reads, {report['calls']} calls: {report['ended']}")
        expected = "empty" if self.all("UNSEEN") else "disagrees" if self.all("DIFFERS") else "agrees"
        if came.verdict != expected:
            self.fail(f"run {run}: {came.verdict}: {came.describe()} ({report['ended']})")


def main():
    path, tool, library, header, compiler, observer = sys.argv[1:7]
    case = Case(path, tool, (library, header), compiler, observer)
    case.run()
    for failure in case.failures:
        print("FAILED:", failure)
    if not case.failures and case.skipped:
        print("skipped:", case.skipped)
    sys.exit(1 if case.failures else 77 if case.skipped else 0)


if __name__ == "__main__":
    main()
