"""Compares the reads of a prefetch thread with those of its program: thread, call ID, file, offset and length.

    slicer/suites/addresses.py FOLDER      compares the traces in a folder, and prints the result for each

A trace has the format of runtime/src/trace.h. It is written by a program that runs with FOREREAD_PREEXEC_TRACE=FOLDER and
a preloaded observer.c.

A read of the prefetch thread has a call ID. It stands for the read that the program counts with that ID, and must be of
the same bytes of the same file. Exceptions:

    short      the prefetch thread ends before its program: the reads that it made are compared
    clipped    lengths are those of the existing bytes: of a read across the end of a file, its result
    no place   both read nothing with a place in a file (an error, a pipe, the end of a file): not compared
    no read    a call that counts iterations of a loop, or loads from a mapped file, which nobody sees: not compared
    unseen     the program's read is in no call (getc_unlocked in place): not compared

Reads of the prefetch thread beyond the program's last read are a disagreement, unless the program failed: a program's
failures are assumed not to happen (docs/io-related.md). A run in which nothing could be compared is no agreement.
"""

import collections
import os
import pathlib
import re
import struct
import sys

HEAD = struct.Struct("<QQQIIII")
HEAD_BYTES = 4096
ENTRY = struct.Struct("<IIQQQQQQQ")
MAGIC = 0x6563617274657266
PROGRAM, READ, LOOK, CALL, WHOLE, UNCOUNT, OBSERVED, END = range(1, 9)
# Table of known disagreements, with lines of the form | `name` | reason |.
NAMED = pathlib.Path(__file__).resolve().parents[1] / "docs/semantics.md"
# Number of disagreements that are described.
SHOWN = 3


class Comparison:
    """The result for one trace, or the sum of several."""

    def __init__(self):
        self.counts = collections.Counter()
        self.found = []

    def __iadd__(self, other):
        self.counts += other.counts
        self.found += other.found[:SHOWN]
        return self

    def differs(self, what):
        self.counts["differing"] += 1
        if len(self.found) < SHOWN:
            self.found.append(what)

    @property
    def verdict(self):
        if self.counts["differing"] or self.counts["beyond"]:
            return "disagrees"
        return "agrees" if self.counts["same"] else "empty"

    @property
    def whole(self):
        """True if the prefetch thread reached the program's end."""
        return self.counts["calls"] == self.counts["program_calls"]

    def describe(self):
        named = ("same", "differing", "beyond", "no place", "no read", "unseen", "lost")
        parts = [f"{self.counts[name]} {name}" for name in named if self.counts[name]]
        return f"{', '.join(parts) or 'nothing read'}{''.join('; ' + each for each in self.found)}"


def entries(path):
    """The entries of a trace, and the number of entries that did not fit into it."""
    with open(path, "rb") as file:
        magic, room, used, *_ = HEAD.unpack(file.read(HEAD.size))
        if magic != MAGIC:
            raise ValueError(f"{path}: no trace")
        file.seek(HEAD_BYTES)
        data = file.read(min(used, room) * ENTRY.size)
    return [each for each in ENTRY.iter_unpack(data) if each[0] != 0], max(0, used - room)


class Thread:
    """The reads of one thread of the program, and of the prefetch thread that stands for it."""

    def __init__(self):
        # Places, or None for a read without one, by the ID that they have if they are counted next.
        self.program = collections.defaultdict(list)
        self.observed = collections.defaultdict(list)
        # (kind, place or None), by ID.
        self.prefetch = []
        self.calls = self.program_calls = None

    def enter(self, kind, number, place):
        if kind == PROGRAM:
            self.program[number].append(place)
        elif kind == OBSERVED:
            self.observed[number].append(place)
        elif kind == UNCOUNT:
            self.prefetch.pop()
        elif kind == END:
            self.calls = number
        else:
            self.prefetch.append((kind, place))

    def reads(self, made, kinds):
        """The read for which each ID of these kinds stands, by ID. Of several reads made before they are counted, the last;
        reads that are counted one after the other are in the order in which they are made."""
        meant = {}
        number = 0
        while number < len(self.prefetch):
            end = number + 1
            while end < len(self.prefetch) and end not in made:
                end += 1
            numbers = [n for n in range(number, end) if self.prefetch[n][0] in kinds]
            places = made.get(number, [])
            if len(places) >= len(numbers):
                meant.update(zip(numbers, places[len(places) - len(numbers):]))
            number = end
        return meant

    def compare(self, name, into):
        counts = into.counts
        # A thread that never read has no counter, and its program may have ended unnoticed.
        program_calls = self.program_calls
        if program_calls is None:
            program_calls = len(self.prefetch)
            counts["no end"] += 1
        counts["calls"] += self.calls if self.calls is not None else len(self.prefetch)
        counts["program_calls"] += program_calls
        own = self.reads(self.program, (READ, WHOLE))
        there = self.reads(self.observed, (WHOLE,))
        for number, (kind, place) in enumerate(self.prefetch):
            if number >= program_calls:
                counts["beyond"] += len(self.prefetch) - number
                break
            if kind == WHOLE:
                place = there.get(number)
            if kind in (CALL, LOOK):
                counts["no read"] += 1
            elif number not in own:
                counts["unseen"] += 1
            elif place == own[number] and place is not None:
                counts["same"] += 1
            elif empty(place) and empty(own[number]):
                counts["no place"] += 1
            else:
                into.differs(f"thread {name} call {number}: {said(place)} for {said(own[number])}")


def empty(place):
    return place is None or place[3] == 0


def said(place):
    return "no file" if place is None else "{3} bytes at {2} of {0:x}:{1}".format(*place)


def compare_trace(path):
    """The result for a trace."""
    threads = collections.defaultdict(Thread)
    found, lost = entries(path)
    for kind, placed, name, number, dev, ino, offset, size, _ in found:
        thread = threads[name]
        thread.enter(kind, number, (dev, ino, offset, size) if placed else None)
        if kind == END:
            thread.program_calls = offset
    result = Comparison()
    result.counts["lost"] = lost
    for name, thread in sorted(threads.items()):
        if thread.prefetch:
            thread.compare(name, result)
        elif thread.program_calls:
            result.counts["program_calls"] += thread.program_calls
    return result


def compare(folder, failed=False):
    """The result for all traces of a folder, possibly of several programs. One of a failed program may end early."""
    total = Comparison()
    for path in sorted(pathlib.Path(folder).iterdir()):
        total += compare_trace(path)
    if failed and total.counts["beyond"]:
        total.counts["beyond after failure"] = total.counts.pop("beyond")
    return total


def named():
    """The programs for which the document explains why their reads differ."""
    return set(re.findall(r"^\| `([^`]+)` \|", NAMED.read_text(), re.M))


def environment(observer, folder, variables):
    """The environment of a traced run."""
    os.makedirs(folder, exist_ok=True)
    return {**variables, "LD_PRELOAD": str(observer), "FOREREAD_PREEXEC": "1", "FOREREAD_PREEXEC_TRACE": str(folder)}


if __name__ == "__main__":
    for each in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        came = compare_trace(each)
        print(f"{each.name}: {came.verdict}: {came.describe()}")
