#!/usr/bin/env python3
"""What a user of the extension may rely on, with the sqlite3 library and shell of this machine.

    run.py EXTENSION... [-k PATTERN]

Runs every test_*.py beside it with each extension, several tests at once: most of the time they wait for
a cold disk or for another process.
"""

import argparse
import concurrent.futures
import os
import sys
import time
import unittest

import lab

AT_ONCE = 4


def tests_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_in(test)
        else:
            yield test


def run(test):
    result = unittest.TestResult()
    began = time.monotonic()
    test.run(result)
    return test, result, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extensions", nargs="+")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name contains this")
    options = parser.parse_args()
    lab.EXTENSIONS.extend(map(os.path.abspath, options.extensions))
    loaded = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
    tests = [test for test in tests_in(loaded) if options.pattern in test.id()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        # The tests of every kind of database take longest.
        tests.sort(key=lambda test: "every_kind" not in test.id())
        for test, result, seconds in pool.map(run, tests):
            wrong = result.failures + result.errors
            word = "failed" if wrong else "skipped" if result.skipped else "ok"
            print(f"{word}: {test.id()} ({seconds:.1f} s)", flush=True)
            for _, reason in result.skipped:
                print(f"    {reason}")
            for at, text in wrong:
                print(f"{at}\n{text}")
            failed += bool(wrong)
    print(f"{len(tests)} tests, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
