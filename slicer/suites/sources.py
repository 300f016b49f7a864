"""Where the programs of semantics.py come from; none of them is kept in the repository."""

import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

NEEDS = {"torture": "gcc-12-source", "csmith": "csmith (and libcsmith-dev)"}
TARBALLS = pathlib.Path("/usr/src/gcc-12")
TESTS = "gcc/testsuite/gcc.c-torture/execute"
CSMITH_HEADERS = pathlib.Path("/usr/include/csmith")
# Seconds csmith may take for a seed.
CSMITH_LIMIT = 30


@dataclass
class Program:
    """A C source whose main returns, exits or aborts."""

    name: str
    source: pathlib.Path
    flags: list = field(default_factory=list)


def torture(cache, arguments):
    """The execution tests of GCC's C torture suite; None without the package."""
    found = sorted(TARBALLS.glob("gcc-12*.tar.xz"))
    if not found:
        return None
    folder = cache / "torture"
    if not folder.is_dir():
        partial = cache / "torture.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        subprocess.run(["tar", "xf", found[-1], "-C", partial, "--strip-components=5",
                        "--wildcards", f"*/{TESTS}/*"], check=True)
        for test in (*partial.glob("*.c"), *partial.glob("ieee/*.c")):
            with open(test, "a") as text:
                text.write(run_by(test.read_text(errors="replace")))
        partial.rename(folder)
    tests = sorted(folder.glob("*.c")) + sorted(folder.glob("ieee/*.c"))
    return [Program(test.relative_to(folder).as_posix(), test, options(test))
            for test in tests[:: arguments.every]]


def run_by(text):
    """The function that the harness calls, for a test whose main has these parameters.

    A main that ends without a return statement returns 0, but only under that name.
    """
    text = re.sub(r"__attribute__\s*\(\(\w+\)\)", "", text)
    found = re.search(r"\bmain\s*\(([^)]*)\)", text)
    parameters = found.group(1).strip() if found else ""
    count = 0 if parameters in ("", "void") else parameters.count(",") + 1
    passed = ", ".join(("argc", "argv", "environment")[:count])
    returns = found is not None and "return" in text[found.end():]
    call = f"return test_main({passed});" if returns else f"test_main({passed}); return 0;"
    # Some tests include themselves.
    return ("\n#ifndef TEST_RUN\n#define TEST_RUN\n"
            f"int test_run(int argc, char **argv, char **environment) {{ {call} }}\n#endif\n")


def options(test):
    """The options a test asks for on every machine."""
    text = test.read_text(errors="replace")
    asked = re.findall(r'dg-(?:additional-)?options\s+"([^"]*)"\s*}', text)
    return " ".join(asked).split()


def csmith(cache, arguments):
    """Programs that csmith makes; None without it. Each checksum on the way decides where is read."""
    if shutil.which("csmith") is None or not CSMITH_HEADERS.is_dir():
        return None
    folder = cache / "csmith"
    folder.mkdir(parents=True, exist_ok=True)
    programs = []
    for seed in range(1, arguments.csmith + 1):
        name, source = f"csmith-{seed}", folder / f"{seed}.c"
        if arguments.names and name not in arguments.names:
            continue
        if not source.exists():
            made = subprocess.run(["csmith", "--seed", str(seed), "--max-funcs", "5"],
                                  capture_output=True, text=True, timeout=CSMITH_LIMIT,
                                  cwd=folder, check=True).stdout
            source.write_text("void harness_look(unsigned long);\n" + re.sub(
                r"(\n\s*transparent_crc\([^;]*;)", r"\1 harness_look(crc32_context);", made) + run_by(made))
        programs.append(Program(name, source, ["-I", str(CSMITH_HEADERS)]))
    return programs
