"""Sources of semantics.py's programs; none of them is kept in the repository."""

import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

NEEDS = {"torture": "gcc-12-source", "csmith": "csmith (and libcsmith-dev)",
         "gxx": "gcc-12-source", "libstdcxx": "gcc-12-source"}
TARBALLS = pathlib.Path("/usr/src/gcc-12")
TESTS = "gcc/testsuite/gcc.c-torture/execute"
GXX = "gcc/testsuite/g++.dg"
LIBSTDCXX = "libstdc++-v3/testsuite"
# Features that tests may require.
HERE = {"pthread", "c++11", "c++14", "c++17", "c++20", "cxx11_abi", "lp64", "hosted"}
CSMITH_HEADERS = pathlib.Path("/usr/include/csmith")
# Longest time that csmith may take for a seed, in seconds.
CSMITH_LIMIT = 30


@dataclass
class Program:
    """A C source whose main returns, exits or aborts."""

    name: str
    source: pathlib.Path
    flags: list = field(default_factory=list)
    language: str = "c"
    # The same with its values reported, tried first: not every test can be changed by its text.
    telling: pathlib.Path | None = None


def torture(cache, arguments):
    """The execution tests of GCC's C torture suite; None without the package."""
    folder = unpacked(cache, "torture", TESTS)
    if folder is None:
        return None
    for test in (*folder.glob("*.c"), *folder.glob("ieee/*.c")):
        text = test.read_text(errors="replace")
        if "TEST_RUN" not in text:
            with open(test, "a") as more:
                more.write(run_by(text))
    tests = sorted(folder.glob("*.c")) + sorted(folder.glob("ieee/*.c"))
    programs = []
    for test in tests[:: arguments.every]:
        name = test.relative_to(folder).as_posix()
        if arguments.names and name not in arguments.names:
            continue
        told = telling(cache / "torture-telling" / name.replace("/", "-"), test.read_text(errors="replace"), "c")
        programs.append(Program(name, test, ["-iquote", str(test.parent), *options(test)], telling=told))
    return programs


# The functions by which a test reports its values.
DECLARED = """int harness_if(int); void harness_bytes(const void *, unsigned long); void harness_look(unsigned long);
"""
CHECKED = re.compile(r"\bif\s*\(")
FAILS = re.compile(r"\s*\{?\s*(?:\w+\s*\(\s*\)\s*;\s*)?(?:__builtin_|::|std::|test_)?abort\s*\(")
# A line that declares an integer variable, or an array of integers, outside of all functions.
NUMBERS = re.compile(r"^(?:(?:static|volatile|unsigned|signed|long|short|int|char|size_t|u?int(?:8|16|32|64)_t)\s+)+"
                     r"(\w+)\s*(?:\[[\w\s+*-]*\]\s*)*(?:=.*)?;\s*$", re.M)


def telling(path, text, language):
    """A copy of a test that reports each condition that leads to abort(), and at the end its integer variables."""
    made, at = [], 0
    for found in CHECKED.finditer(text):
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        condition = text[found.end():end - 1]
        if found.start() < at or "\n#" in condition or not FAILS.match(text, end):
            continue
        made += [text[at:found.end()], f"harness_if (({condition}) != 0)"]
        at = end - 1
    made.append(text[at:])
    changed = "".join(made)
    # The line of the function that the harness calls, at the end of the text.
    call = re.search(r"\{ (return )?(test_main\([^;]*\));.*\}\s*(?:#endif\s*)?$", changed)
    # NUMBERS matches neither const, which decides nothing, nor extern, which may be another's.
    names = sorted(set(NUMBERS.findall(changed)))
    if call and (names or len(made) > 1):
        said = " ".join(f"harness_bytes((const void *)&{name}, sizeof {name});" for name in names)
        ending = call.group(0)[call.group(0).index("}"):]
        before = "int harness_status = " if call.group(1) else ""
        after = "return harness_status;" if call.group(1) else "return 0;"
        changed = changed[:call.start()] + f"{{ {before}{call.group(2)}; {said} {after} " + ending
    declared = f'extern "C" {{ {DECLARED.strip()} }} ' if language == "c++" else DECLARED
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(declared + changed)
    return path


def run_by(text):
    """The function that the harness calls, for a test whose main has these parameters.

    A main that ends without a return statement returns 0, but only if it is named main.
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
    """The options that a test needs on every machine."""
    text = test.read_text(errors="replace")
    asked = re.findall(r'dg-(?:additional-)?options\s+"([^"]*)"\s*}', text)
    return " ".join(asked).split()


def csmith(cache, arguments):
    """Programs that csmith generates; None without csmith. Each intermediate checksum decides where the file is read."""
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


# The library's tests check with VERIFY: here the checked value decides where the file is read.
CHECK = """
extern "C" void harness_look(unsigned long);
extern "C" void test_abort(void);
#undef VERIFY
#define VERIFY(fn) \\
    do { bool harness_ok = (fn) ? true : false; harness_look(harness_ok + __LINE__); if (!harness_ok) test_abort(); } while (false)
"""


def gxx(cache, arguments):
    """The execution tests of G++ that consist of one file; None without the package."""
    folder = unpacked(cache, "gxx", GXX)
    if folder is None:
        return None
    # Tests of the sanitizers have undefined behaviour.
    tests = [test for test in sorted(folder.rglob("*.C"))
             if "dg-do run" in test.read_text(errors="replace") and "san" not in test.parent.name]
    return cxx_programs(cache / "gxx-tests", folder, tests[:: arguments.every], arguments.names, [])


def libstdcxx(cache, arguments):
    """The execution tests of the C++ library; None without the package."""
    folder = unpacked(cache, "libstdcxx", LIBSTDCXX)
    if folder is None:
        return None
    hooks = folder / "util/testsuite_hooks.h"
    if "harness_look" not in hooks.read_text():
        text = hooks.read_text().replace("_VERIFY_PRINT(\"", "(void)(\"")
        at = text.index("#ifdef _GLIBCXX_HAVE_UNISTD_H")
        hooks.write_text(text[:at] + CHECK + text[at:])
    tests = [test for test in sorted(folder.rglob("*.cc"))
             if "util" not in test.parts and runs(test.read_text(errors="replace"))]
    return cxx_programs(cache / "libstdcxx-tests", folder, tests[:: arguments.every], arguments.names,
                        ["-I", str(folder / "util")])


def runs(text):
    """True if a test of the library is executed, which is the default."""
    asked = re.search(r"dg-do\s+(\w+)", text)
    return re.search(r"\bmain\s*\(", text) is not None and (asked is None or asked.group(1) == "run")


def unpacked(cache, name, part):
    """A part of GCC's source; None without the package."""
    found = sorted(TARBALLS.glob("gcc-12*.tar.xz"))
    if not found:
        return None
    folder = cache / name
    if not folder.is_dir():
        partial = cache / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        subprocess.run(["tar", "xf", found[-1], "-C", partial, f"--strip-components={part.count('/') + 2}",
                        "--wildcards", f"*/{part}/*"], check=True)
        partial.rename(folder)
    return folder


def cxx_programs(cache, folder, tests, names, flags):
    """Copies of the tests that the harness can run; their own headers are found in the original folder."""
    cache.mkdir(parents=True, exist_ok=True)
    programs = []
    for test in tests:
        name = test.relative_to(folder).as_posix()
        text = test.read_text(errors="replace")
        # Tests of several files, or with features that this machine's compiler lacks or has only by special options.
        wants = set(re.findall(r"dg-require-effective-target\s+([\w+-]+)", text))
        if (names and name not in names) or "dg-additional-sources" in text or wants - HERE:
            continue
        made = with_test_main(text)
        if made is None:
            continue
        source = cache / f"{name.replace('/', '-')}.cpp"
        if not source.exists():
            source.write_text(made)
        told = telling(source.with_suffix(".telling.cpp"), made, "c++")
        programs.append(Program(name, source, [*flags, "-iquote", str(test.parent), *standard(text), *options(test)],
                                "c++", told))
    return programs


def standard(text):
    """The option for the lowest standard that a test needs, unless it has such an option itself."""
    least = [int(each) for each in re.findall(r"target c\+\+(\d\d)", text) if int(each) > 17 and int(each) < 90]
    return [f"-std=gnu++{max(least)}"] if least and "-std=" not in text else []


def with_test_main(text):
    """A test whose main the harness can call, or None if it has no main, or one of another form.

    In C++ the end of main returns 0 only under that name, so the return is written out.
    """
    # The system's headers undefine macros with these names.
    for ending, parameter in (("abort", "void"), ("exit", "int")):
        declared = re.search(rf"\bvoid\s+{ending}\s*\(", text)
        text = re.sub(rf"(?:\bstd::|\b__builtin_|::|(?<![\w.>]))\b{ending}\s*\(", f"test_{ending} (", text)
        if not declared:
            text = f'extern "C" void test_{ending}({parameter}); {text}'
    found = list(re.finditer(r"\bint\s+main\s*\(([^)]*)\)\s*{", text))
    if len(found) != 1:
        return None
    parameters = found[0].group(1).strip()
    count = 0 if parameters in ("", "void") else parameters.count(",") + 1
    depth, end = 1, found[0].end()
    while end < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    passed = ", ".join(("argc", "argv", "environment")[:count])
    start = found[0].start()
    head = text[start:found[0].end()].replace("main", "test_main", 1)
    return (text[:start] + head + text[found[0].end():end - 1] + "; return 0; }" + text[end:]
            + "\nextern \"C\" int test_run(int argc, char **argv, char **environment)\n"
              f"{{ return test_main({passed}); }}\n")
