#!/usr/bin/env python3
"""Writes start.ld: the functions of foreread that run where a program is run, to be laid together in its file.

A cold start reads the file in pieces of 128 KiB around each place that the processor comes to, and waits for each piece. Functions lie
in the file in the order of the objects they come from, so that 700 of 7000 functions lie in 50 pieces; laid together they
fill five.

    order.py FOREREAD > start.ld

FOREREAD is as `make build` leaves it: linked to a fixed address, with its symbols. Runs it under touched.c. Names in start.ld are without
the hashes that compilers add, so that they last; a function that has gone is no harm, a new one lies among the rest.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

# What is run, in the order in which its functions are laid: a start of a command of which nothing is known, the recording of reads,
# what follows patterns, what follows a record.
RUNS = [["true"], ["cat", "data"], ["tac", "data"], ["cat", "data"], ["tac", "data"]]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions(program):
    """The names of a program's functions, by address."""
    found = {}
    for line in output("nm", program).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tTwW":
            found.setdefault(int(fields[0], 16), []).append(fields[2])
    return found


def members():
    """Which file of the C library or the compiler's has a function: they are not compiled to sections of their own."""
    found = {}
    for name in ["crt1.o", "crtbeginT.o", "libc.a", "libgcc_eh.a", "libgcc.a"]:
        path = output("cc", f"-print-file-name={name}").strip()
        for line in output("nm", "-A", "--defined-only", path).splitlines():
            where, _, symbol = line.rpartition(":")
            kind, function = symbol.split()[-2:]
            if kind in "tTwWi":
                found.setdefault(function, "*" + name + where.removeprefix(path))
    return found


def called(program, addresses):
    """The addresses of functions in the order in which they are first called, run by run."""
    seen = {}
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        folder = pathlib.Path(folder)
        touched, listed, out = folder / "touched", folder / "listed", folder / "out"
        subprocess.run(["cc", "-O2", "-o", touched, HERE / "touched.c"], check=True)
        listed.write_text("".join(f"{address:x}\n" for address in addresses))
        data = folder / "data"
        data.write_bytes(b"a line of text\n" * (1 << 18))
        for command in RUNS:
            # Cold, so that all that reads are waited for is gone through.
            subprocess.run(["sync", data], check=True)
            subprocess.run(["dd", f"of={data}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"], check=True)
            run = [touched, listed, out, program, "run", "--quiet", "--", *command]
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
            subprocess.run(run, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            seen.update({int(line, 16): None for line in out.read_text().split()})
    return list(seen)


def pattern(name, others):
    """The section of a function, in whatever build."""
    if match := re.match(r"(_ZN.*17h)[0-9a-f]{16}E", name):
        section = match[1].replace("$", "?") + "*"
    elif name.startswith("_R"):
        section = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", re.sub(r"\.llvm\..*", "*", name))
    elif name in others:
        return f"{others[name]}(.text .text.*)"
    else:
        section = re.sub(r"\.(constprop|part|isra|llvm)\..*", "*", name)
    return f"*(.text.{section} .text.unlikely.{section})"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    names = functions(program)
    others = members()
    order = called(program, sorted(names))
    # The entry comes first: it says where the rest is (sys/src/own.rs).
    patterns = {pattern("_start", others): None}
    patterns |= {pattern(name, others): None for address in order for name in names[address]}
    print("/* Made by order.py. */\nSECTIONS\n{\n  .text.start :\n  {")
    for one in patterns:
        print(f"    {one}")
    print("  }\n}\nINSERT BEFORE .text;")


main()
