"""Runs modules of CPython's test suite and writes a line for each test to RESULTS: `python3 python_tests.py RESULTS [-PATTERN...] MODULE...`.

Tests whose names match a pattern do not run.
"""

import fnmatch
import sys
import unittest

import test.support

# Tests must not use other machines. Only test_socketserver needs the resource "network" for its local connections.
test.support.use_resources = ["network"] if "test.test_socketserver" in sys.argv else []


class Result(unittest.TextTestResult):
    def note(self, outcome, test):
        print(outcome, test.id(), file=results, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.note("begun", test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note("ok", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note("ok", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note("failed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.note("failed", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note("failed", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note("failed", test)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        elif not any(fnmatch.fnmatch(test.id(), pattern) for pattern in left_out):
            yield test


if __name__ == "__main__":
    results = open(sys.argv[1], "w")
    left_out = [argument[1:] for argument in sys.argv[2:] if argument.startswith("-")]
    names = [argument for argument in sys.argv[2:] if not argument.startswith("-")]
    loaded = unittest.defaultTestLoader.loadTestsFromNames(names)
    unittest.TextTestRunner(resultclass=Result, verbosity=2).run(unittest.TestSuite(tests_of(loaded)))
