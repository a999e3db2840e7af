#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of ci/cts.py with a suite made of a shell script, and of ci/on-pumice with a `pumice` that is one."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

CI = pathlib.Path(__file__).resolve().parents[2] / "ci"

SUITE = r"""#!/bin/sh
case $1 in
--list) printf 'Test names:\n\tgood\n\tbad\n\tknown\n\tcrashes\n\tskipped\n' ;;
good) echo "good passed" ;;
bad) printf 'ERROR: wrong \001 <value> & "x"\nbad FAILED\n'; exit 1 ;;
known) echo "known FAILED"; exit 1 ;;
skipped) echo "skipped test not supported" ;;
crashes) kill -SEGV $$ ;;
esac
"""

# As test_conversions is: it says `passed` when it has run nothing, too.
CONVERSIONS = r"""#!/bin/sh
[ "$1" != --list ] || { printf 'Test names:\n\tconversions\n'; exit; }
for name; do
    case $name in
    uchar_half | uchar_rte_half | uchar_rtp_half | uchar_rtn_half | uchar_rtz_half) ;;
    uchar_sat_half | uchar_sat_rte_half | uchar_sat_rtp_half | uchar_sat_rtn_half | uchar_sat_rtz_half) ;;
    half_uchar | half_rte_uchar | half_rtp_uchar | half_rtn_uchar | half_rtz_uchar) ;;
    *) echo "ERROR:  Unable to parse function name $name.  Skipping...." ;;
    esac
done
case "$*" in *half_uchar*) echo "conversions FAILED"; exit 1 ;; esac
echo "conversions passed"
"""

PUMICE = r"""#!/bin/sh
case $1 in
info) [ "$PUMICE_DEVICES" = none ] || echo "device 0: $PUMICE_DEVICES" ;;
doctor) [ "$PUMICE_DEVICES" != broken ] || { echo "  -> mend it"; exit 1; } ;;
run) shift; exec "$@" ;;
esac
"""


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Runner(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        script(self.dir / "cts/alpha/test_alpha", SUITE)
        script(self.dir / "pumice", PUMICE)

    def run_it(self, *words):
        environment = dict(os.environ, TMPDIR=str(self.dir))
        words = [str(word) for word in words]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)

    def cts(self, expected, *selected):
        file, junit = self.dir / "expect.json", self.dir / "out/junit.xml"
        words = ["--junit", junit]
        if expected is not None:
            file.write_text(json.dumps({"alpha": expected}))
            words += ["--expect", file]
        result = self.run_it(CI / "cts.py", "--cts", self.dir / "cts", *words, *selected)
        root = xml.parse(junit).getroot()
        cases = {case.get("name"): case for case in root.iter("testcase")}
        return result, root.find("testsuite"), cases

    def test_as_expected(self):
        expected = {"good": "pass", "bad": "fail", "crashes": "crash", "skipped": "skip",
                    "known": {"result": "fail", "reason": "a <reason>"}}
        result, suite, cases = self.cts(expected)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("5", "0", "0"))
        self.assertEqual(suite.get("skipped"), "4")
        self.assertIn("a <reason>", cases["known"].find("skipped").get("message"))
        self.assertEqual(len(cases["good"]), 0)

    def test_regressions(self):
        expected = {"good": "pass", "bad": "pass", "known": "fail", "crashes": "fail", "skipped": "pass", "old": "pass"}
        result, suite, cases = self.cts(expected)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual((suite.get("failures"), suite.get("errors"), suite.get("skipped")), ("3", "1", "1"))
        bad = cases["bad"].find("failure")
        self.assertIn('wrong ? <value> & "x"', bad.get("message"))
        self.assertIn("bad FAILED", bad.text)
        self.assertEqual(cases["old"].find("failure").get("type"), "gone")
        # Each is in the file if and only if the runner calls it a regression.
        for name, case in cases.items():
            worse = case.find("failure") is not None or case.find("error") is not None
            self.assertEqual(f"alpha:{name}: " in result.stdout.partition("regressions:")[2], worse, name)

    def test_conversions(self):
        script(self.dir / "cts/conversions/test_conversions", CONVERSIONS)
        result = self.run_it(CI / "cts.py", "--cts", self.dir / "cts", "conversions:uchar_half", "conversions:half_uchar")
        self.assertRegex(result.stdout, r"pass .*uchar_half")
        self.assertRegex(result.stdout, r"fail .*half_uchar")
        # Of no name that the suite knows not, a word of its own included, does anything pass.
        script(self.dir / "cts/conversions/test_conversions", CONVERSIONS.replace("_half", "_quarter"))
        result = self.run_it(CI / "cts.py", "--cts", self.dir / "cts", "conversions:uchar_half")
        self.assertRegex(result.stdout, r"fail .*uchar_half")

    def test_without_expectations(self):
        result, suite, cases = self.cts(None, "alpha")
        self.assertEqual(result.returncode, 1)
        self.assertEqual((suite.get("failures"), suite.get("errors"), suite.get("skipped")), ("2", "1", "1"))
        result, suite, cases = self.cts(None, "alpha:good")
        self.assertEqual((result.returncode, list(cases)), (0, ["good"]))

    def on_pumice(self, *words):
        return self.run_it(CI / "on-pumice", "--pumice", self.dir / "pumice", *words)

    def test_on_pumice(self):
        shown = self.on_pumice("--device", "lavapipe", "sh", "-c", "echo $PUMICE_DEVICES; exit 7")
        self.assertEqual((shown.returncode, shown.stdout), (7, "llvmpipe\n"))
        self.assertEqual(self.on_pumice("sh", "-c", "echo $PUMICE_DEVICES").stdout, "cpu\n")
        for device in "none", "broken":
            result = self.on_pumice("--device", device, "true")
            self.assertEqual(result.returncode, 2, device)
            self.assertIn("on-pumice: ", result.stderr)
        self.assertEqual(self.on_pumice().returncode, 2)
        self.assertEqual(self.on_pumice("--cts", self.dir / "cts", "alpha:good").returncode, 0)
        self.assertEqual(self.on_pumice("--cts", self.dir / "cts", "alpha:bad").returncode, 1)


if __name__ == "__main__":
    unittest.main()
