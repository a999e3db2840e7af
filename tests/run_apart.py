#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the integration tests apart, module by module, where they are slow or may hang: under Wine (`ci/windows test`), under
qemu (`ci/aarch64 test`).

    run_apart.py --device NAME --left-out FILE --logs DIR [--under NAME] [--starter PROGRAM] [--notes PATH] TESTS [MODULE ...]

TESTS is the program of the tests. --starter starts it, where the system does not by itself. --under names what it runs under in what is
printed. --notes is the file `notes` in DIR, in which tests say why they leave themselves out, by the name that it has for them.

Each module of tests runs in a process of its own, with a time limit: one that hangs or crashes takes no other with it, and its tests
that had not ended by then run again, one a process, so that the one that is to blame is named.

--left-out is a list of tests that do not run, or that may fail: a line `DEVICE VERDICT TEST: REASON`, where DEVICE is `cpu`, `llvmpipe`
or `*`; VERDICT is `skip` (not run) or `fail` (it runs, and failing is no failure of the run); TEST is its full name.

Prints counts, tests that leave themselves out with their reasons, and failures with what they printed. Exit status: 0, 1 if a test
failed that is not on the list, or a line of the list names no test.
"""

import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

# Seconds for a module, and for a test alone: some tests have children to which they give minutes.
MODULE = 600
ALONE = 450
RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)


def run(command, log, limit, folder):
    """Runs a command to its end, with what it prints in a file. None: it took longer, and was ended."""
    with open(log, "wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True)
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None


def results_of(log):
    """What the tests of a run came to. Behind `failures:` is what they printed, with results of their children."""
    return dict(RESULT.findall(log.read_text(errors="replace").split("\nfailures:\n")[0]))


def read_list(path, device):
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        names, reason = line.split(": ", 1)
        where, verdict, test = names.split()
        if where not in ("*", "cpu", "llvmpipe") or verdict not in ("skip", "fail"):
            sys.exit(f"{path}: {line}")
        if where in ("*", device):
            found[test] = (verdict, reason)
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("device", "left-out", "logs"):
        parser.add_argument("--" + name, required=True)
    for name in ("under", "starter", "notes"):
        parser.add_argument("--" + name)
    parser.add_argument("program")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    logs = pathlib.Path(options.logs)
    logs.mkdir(parents=True, exist_ok=True)
    # Tests look for files beside themselves.
    folder = pathlib.Path(__file__).resolve().parent
    program = str(pathlib.Path(options.program).resolve())
    base = [options.starter, program] if options.starter else [program]
    notes = logs / "notes"
    notes.unlink(missing_ok=True)
    os.environ["PUMICE_TESTS_LEFT_OUT"] = options.notes or str(notes.resolve())

    if run(base + ["--list", "--format", "terse"], logs / "list", 120, folder) != 0:
        sys.exit("the tests cannot be listed: " + (logs / "list").read_text(errors="replace"))
    tests = re.findall(r"^(\S+): test", (logs / "list").read_text(errors="replace"), re.MULTILINE)
    expected = read_list(options.left_out, options.device)
    unknown = sorted(set(expected) - set(tests))
    modules = collections.defaultdict(list)
    for test in tests:
        modules[test.split("::")[0]].append(test)
    verdicts, said = {}, {}

    def settle(test, verdict, log):
        verdicts[test], said[test] = verdict, log

    for module in options.modules or sorted(modules):
        if module not in modules:
            sys.exit(f"no module {module}")
        run_these = []
        for test in modules[module]:
            if expected.get(test, ("",))[0] == "skip":
                settle(test, "skipped", None)
            else:
                run_these.append(test)
        if not run_these:
            continue
        started = time.monotonic()
        log = logs / f"{module}.txt"
        # By full names: one is the beginning of another.
        status = run(base + ["--exact"] + run_these, log, MODULE, folder)
        results = results_of(log)
        ended = status is not None and set(results) >= set(run_these)
        for test in run_these:
            if test in results:
                settle(test, results[test], log)
        if not ended:
            # One that ended the process, or hangs, ends that of itself alone now.
            for test in run_these:
                if test in results:
                    continue
                alone = logs / (test.replace("::", ".") + ".txt")
                status = run(base + ["--exact", test], alone, ALONE, folder)
                result = results_of(alone).get(test)
                if result is None:
                    result = f"does not end in {ALONE} s" if status is None else f"ends the process ({status})"
                settle(test, result, alone)
        bad = [test for test in run_these if verdicts[test] not in ("ok", "ignored")]
        print(f"{module}: {len(run_these) - len(bad)} of {len(run_these)}, {time.monotonic() - started:.0f} s"
              + "".join(f"\n    {verdicts[test]}: {test}" for test in bad), flush=True)

    reasons = sorted(set(notes.read_text(errors="replace").splitlines())) if notes.exists() else []
    if reasons:
        print(f"{len(reasons)} left themselves out:")
        for line in reasons:
            print("    " + line)
    for test, (verdict, reason) in sorted(expected.items()):
        if test in verdicts:
            print(f"{'not run' if verdict == 'skip' else 'may fail: ' + verdicts[test]}: {test}: {reason}")
    failed = [test for test, verdict in verdicts.items()
              if verdict not in ("ok", "ignored", "skipped") and test not in expected]
    for test in failed:
        text = said[test].read_text(errors="replace")
        part = re.search(rf"^---- {re.escape(test)} .*?(?=^---- |^failures:$|\Z)", text, re.MULTILINE | re.DOTALL)
        print(f"{verdicts[test]}: {test}\n{(part.group() if part else text)[-4000:]}")
    count = collections.Counter(
        verdict if verdict in ("ok", "ignored", "skipped") else "failed as the list says" if test in expected else "failed"
        for test, verdict in verdicts.items())
    under = f" under {options.under}" if options.under else ""
    print(f"{options.device}{under}: {len(verdicts)} tests: " + ", ".join(f"{count[kind]} {kind}" for kind in sorted(count)))
    for test in unknown:
        print(f"{options.left_out}: there is no test {test}")
    sys.exit(1 if failed or unknown else 0)


main()
