#!/usr/bin/env python3
"""Writes start.ld: the functions of foreread that run where a program is run, to be laid together in its file.

A cold start reads the file in pieces of 128 KiB around each place that the processor comes to, and waits for each piece. Functions lie
in the file in the order of the objects they come from, so that 700 of 7000 functions lie in 50 pieces; laid together they
fill five. Those that are called before any command is started come first, and are asked for at once (entry.S); what records, follows
and keeps ahead comes after them, and is asked for when it is used (sys/src/own.rs).

    order.py FOREREAD > start.ld

FOREREAD is as `make build` leaves it: linked to a fixed address, with its symbols. Runs it under touched.c. Names in start.ld are without
the hashes that compilers add, so that they last; a function that has gone is no harm, a new one lies among the rest.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

# What is run, in the order in which its functions are laid: commands that read nothing, of which one is not observed; the recording of
# reads, what follows patterns, what follows a record; the same of names.
RUNS = [["true"], ["./unobserved"]]
RUNS += [["cat", "data"], ["tac", "data"], ["cat", "data"], ["tac", "data"]]
RUNS += [["ls", "-lR", "names"]] * 2
# A program that no library can be loaded into, and that runs until somebody has looked why it says nothing.
UNOBSERVED = "#include <unistd.h>\nint main(void) { return usleep(300000); }\n"


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


def drop_caches():
    """Drops what is in memory, where this may be done: as root. Else names are known, and nothing looks for them."""
    drop = pathlib.Path("/proc/sys/vm/drop_caches")
    if os.access(drop, os.W_OK):
        os.sync()
        drop.write_text("3")


def called(program, addresses):
    """The addresses of functions in the order in which they are first called: those called before a command is started of which nothing
    is known; and the others."""
    before, after = {}, {}
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        folder = pathlib.Path(folder)
        touched, listed, out = folder / "touched", folder / "listed", folder / "out"
        subprocess.run(["cc", "-O2", "-o", touched, HERE / "touched.c"], check=True)
        listed.write_text("".join(f"{address:x}\n" for address in addresses))
        compile = ["cc", "-static", "-o", folder / "unobserved", "-x", "c", "-"]
        subprocess.run(compile, check=True, input=UNOBSERVED, text=True)
        data = folder / "data"
        data.write_bytes(b"a line of text\n" * (1 << 18))
        for name in range(5000):
            path = folder / "names" / str(name % 50) / str(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        for command in RUNS:
            # Cold, so that all that reads are waited for is gone through.
            subprocess.run(["sync", data], check=True)
            drop_caches()
            subprocess.run(["dd", f"of={data}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"], check=True)
            run = [touched, listed, out, program, "run", "--quiet", "--", *command]
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
            subprocess.run(run, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            start, _, rest = out.read_text().partition("exec\n")
            before = before or {int(line, 16): None for line in start.split()}
            after.update({int(line, 16): None for line in (start + rest).split() if line != "exec"})
    return list(before), [address for address in after if address not in before]


def pattern(name, others):
    """The section of a function, in whatever build."""
    if name.startswith("_R"):
        # Crates have hashes, and what is named again is named by its place, which depends on their lengths.
        section = re.sub(r"\.llvm\..*", "*", name)
        section = re.sub(r"B[0-9A-Za-z]+_", "B*_", re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", section))
    elif name in others:
        return f"{others[name]}(.text .text.*)"
    else:
        section = re.sub(r"\.(constprop|part|isra|llvm)\..*", "*", name)
    return f"*(.text.{section} .text.unlikely.{section})"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    names = functions(program)
    others = members()
    before, after = called(program, sorted(names))
    # The entry comes first: it says where the rest is.
    patterns = {"*entry.o(.text)": None, pattern("_start", others): None}
    patterns |= {pattern(name, others): None for address in before for name in names[address]}
    patterns["foreread_start_end = .;"] = None
    patterns |= {pattern(name, others): None for address in after for name in names[address]}
    print("/* Made by order.py. */\nSECTIONS\n{\n  .text.start :\n  {")
    for one in patterns:
        print(f"    {one}")
    print("  }\n}\nINSERT BEFORE .text;")
    # These lie behind the constants and the first page of the unwinding tables (.eh_frame), which every start reads.
    print("SECTIONS\n{")
    for section in [".bpf_objects", ".gcc_except_table"]:
        print(f"  {section} : {{ *({section} {section}.*) }}")
    print("}\nINSERT AFTER .eh_frame;")
    print("foreread_constants_end = ADDR(.eh_frame) + 4096;")


main()
