"""The lab itself: how a test ends that goes through the extensions."""

import unittest

from lab import Lab


class Skipped(Lab):
    def runTest(self):
        for _ in self.each_extension():
            self.skipTest("on purpose")


class Failed(Lab):
    def runTest(self):
        for _ in self.each_extension():
            self.fail("on purpose")


def result_of(test):
    result = unittest.TestResult()
    test.run(result)
    return result


class Ends(unittest.TestCase):
    def test_a_skipped_test_has_not_failed(self):
        result = result_of(Skipped())
        self.assertEqual((len(result.skipped), result.failures, result.errors), (1, [], []))

    def test_a_failed_test_has_failed_once(self):
        result = result_of(Failed())
        self.assertEqual((len(result.failures), result.errors), (1, []))


def load_tests(loader, _tests, _pattern):
    return loader.loadTestsFromTestCase(Ends)
