#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of tests/run_apart.py with a program of tests that is a shell script."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN_APART = pathlib.Path(__file__).resolve().parent / "run_apart.py"

# In the format of Rust's test programs. Each start is noted in the file `starts`.
TESTS = r"""#!/bin/sh
cd "$(dirname "$0")"
if [ "$1" = --list ]; then
    printf 'first::good: test\nfirst::bad: test\nfirst::away: test\nsecond::good: test\nsecond::crashes: test\nsecond::later: test\n'
    exit
fi
shift
echo "$@" >>starts
status=0
for test do
    case $test in
    first::bad) echo "test $test ... FAILED"; status=101 ;;
    first::away) echo "$test: no device" >>"$PUMICE_TESTS_LEFT_OUT"; echo "test $test ... ok" ;;
    second::crashes) kill -SEGV $$ ;;
    *) echo "test $test ... ok" ;;
    esac
done
[ $status = 0 ] || printf '\nfailures:\n\n%s\nwhat it printed\n\nfailures:\n' '---- first::bad stdout ----'
exit $status
"""


class RunApart(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name).resolve()
        self.write("tests", TESTS)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_apart(self, left_out, *words):
        listed = self.write("left-out.txt", left_out)
        (self.dir / "starts").unlink(missing_ok=True)
        options = ["--device", "cpu", "--left-out", listed, "--logs", self.dir / "logs"]
        words = [sys.executable, RUN_APART, *options, *words]
        result = subprocess.run([str(word) for word in words], cwd=self.dir, capture_output=True, text=True, timeout=60)
        starts = self.dir / "starts"
        return result.returncode, result.stdout + result.stderr, starts.read_text().splitlines() if starts.exists() else []

    def test_one_that_crashes_takes_no_other_with_it(self):
        status, said, starts = self.run_apart("", "tests")
        self.assertEqual(status, 1, said)
        self.assertEqual(starts, ["first::good first::bad first::away", "second::good second::crashes second::later",
                                  "second::crashes", "second::later"])
        self.assertIn("first: 2 of 3", said)
        self.assertIn("second: 2 of 3", said)
        self.assertIn("ends the process (-11): second::crashes", said)
        self.assertIn("FAILED: first::bad\n---- first::bad stdout ----\nwhat it printed", said)
        self.assertIn("1 left themselves out:\n    first::away: no device", said)
        self.assertIn("cpu: 6 tests: 2 failed, 4 ok", said)

    def test_the_list(self):
        listed = "# a comment\ncpu skip second::crashes: it crashes\n* fail first::bad: it is bad\nllvmpipe skip first::good: not here\n"
        status, said, starts = self.run_apart(listed, "tests")
        self.assertEqual(status, 0, said)
        self.assertEqual(starts, ["first::good first::bad first::away", "second::good second::later"])
        self.assertIn("not run: second::crashes: it crashes", said)
        self.assertIn("may fail: FAILED: first::bad: it is bad", said)
        self.assertIn("cpu: 6 tests: 1 failed as the list says, 4 ok, 1 skipped", said)
        status, said, _ = self.run_apart(listed + "* skip first::gone: it was here\n", "tests")
        self.assertEqual(status, 1, said)
        self.assertIn("there is no test first::gone", said)
        status, said, starts = self.run_apart("cpu never first::bad: no verdict\n", "tests")
        self.assertEqual((status, starts), (1, []), said)

    def test_one_module_by_a_starter(self):
        starter = self.write("starter", '#!/bin/sh\necho "starter $PUMICE_TESTS_LEFT_OUT" >>"$(dirname "$0")/starts"\nexec "$@"\n')
        # Another name of the same file.
        os.symlink(self.dir / "logs", self.dir / "seen")
        words = ["--under", "Wine", "--starter", starter, "--notes", self.dir / "seen/notes"]
        status, said, starts = self.run_apart("* fail first::bad: it is bad\n", *words, "tests", "first")
        self.assertEqual(status, 0, said)
        self.assertEqual(starts, [f"starter {self.dir}/seen/notes"] * 2 + ["first::good first::bad first::away"])
        self.assertIn("first::away: no device", said)
        self.assertIn("cpu under Wine: 3 tests: 1 failed as the list says, 2 ok", said)
        status, said, _ = self.run_apart("", "tests", "third")
        self.assertEqual(status, 1, said)
        self.assertIn("no module third", said)


if __name__ == "__main__":
    unittest.main()
