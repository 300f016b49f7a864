#!/usr/bin/env python3
"""How foreread-slice ends: with an error that names the faulty source, file or stream, or with 0.

    ends.py path/to/foreread-slice

Exit status: 0 as expected, 1 not.
"""

import json
import os
import subprocess
import sys
import tempfile

READS = """#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
  char page[4096];
  int file = open(words[1], O_RDONLY);
  for (long at = 100; at > 0; at--)
    pread(file, page, sizeof page, at * 8192);
  return 0;
}
"""
SOURCES = {
    "reads.c": READS,
    "computes.c": "int main(void) { return 0; }\n",
    "wrong.c": "int main(void) { retrun 0; }\n",
    "lacks.c": '#include "none.h"\nint main(void) { return 0; }\n',
    "wrong.h": "int f(void) { retrun 0; }\n",
    "includes.c": '#include "wrong.h"\nint main(void) { return 0; }\n',
    "start.s": ".text\n",
}


class Ends:
    def __init__(self, tool, folder):
        self.tool, self.folder, self.failed = tool, folder, False
        for name, text in SOURCES.items():
            with open(self.path(name), "w") as out:
                out.write(text)
        os.mkdir(self.path("folder.c"))
        commands = [{"directory": folder, "file": "reads.c", "arguments": ["cc", "-c", "reads.c"]}]
        with open(self.path("compile_commands.json"), "w") as out:
            json.dump(commands, out)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ends(self, words, status, *said, writes=(), out=subprocess.PIPE):
        """Runs the tool and checks its status, its lines on standard error, and the files that it writes."""
        before = set(os.listdir(self.folder))
        done = subprocess.run([self.tool, *words], cwd=self.folder, stdout=out, stderr=subprocess.PIPE, text=True)
        lines = done.stderr.splitlines()
        written = set(os.listdir(self.folder)) - before
        for name in written:
            os.remove(self.path(name))
        if done.returncode != status or (said and lines != list(said)) or written != set(writes):
            print(f"FAILED: {words}: status {done.returncode}, writes {written}: {done.stderr}")
            self.failed = True
        return done.stdout

    def run(self):
        self.ends(["reads.c", "-o", "out.c"], 0, writes=["out.c"])
        # Nothing to translate, and no error.
        self.ends(["computes.c", "-o", "out.c"], 0)
        self.ends(["start.s", "-o", "out.c"], 0)
        errors = {
            "none.c": "none.c: No such file or directory",
            "none.s": "none.s: No such file or directory",
            "folder.c": "folder.c: Is a directory",
            "wrong.c": "wrong.c:1:18: use of undeclared identifier 'retrun'",
            "lacks.c": "lacks.c:1:10: 'none.h' file not found",
            "includes.c": "includes.c: ./wrong.h:1:15: use of undeclared identifier 'retrun'",
        }
        for name, error in errors.items():
            self.ends([name, "-o", "out.c"], 1, f"foreread-slice: {error}")
            self.ends([name], 1, f"foreread-slice: {error}")
            # Other sources are translated nevertheless.
            self.ends([name, "reads.c", "--out-dir", "."], 1, f"foreread-slice: {error}", writes=["1.c"])
            # For the driver, which has compiled the program already.
            account = json.loads(self.ends(["--json", name], 0))
            if account["units"][0].get("why") != error:
                print(f"FAILED: {account}")
                self.failed = True
        self.ends(["-p", ".", "reads.c", "-o", "out.c"], 0, writes=["out.c"])
        missing = "foreread-slice: computes.c: no command in ./compile_commands.json compiles this source"
        self.ends(["-p", ".", "computes.c", "reads.c", "--out-dir", "."], 2, missing)
        # Too little memory for anything.
        self.ends(["--memory", "1", "reads.c", "-o", "out.c"], 1)
        self.ends(["--memory", "1", "--json", "reads.c"], 0)
        full = "foreread-slice: standard output: No space left on device"
        for words in (["reads.c"], ["--json", "reads.c"]):
            with open("/dev/full", "w") as out:
                self.ends(words, 1, full, out=out)
        self.ends(["reads.c", "-o", "/dev/full"], 1, "foreread-slice: /dev/full: No space left on device")


def main():
    with tempfile.TemporaryDirectory() as folder:
        ends = Ends(os.path.abspath(sys.argv[1]), folder)
        ends.run()
    sys.exit(1 if ends.failed else 0)


if __name__ == "__main__":
    main()
