#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs sub-tests of a built OpenCL conformance test suite (CTS) and compares
the outcome with recorded expectations.

    ci/cts.py --cts DIR [--expect FILE] [--bless] [options] [SUITE[:SUBTEST] ...]

DIR is any directory above the built test executables; they are found by name
(`test_<suite>`), wherever below DIR they lie. The runner neither fetches nor
builds the CTS. It needs nothing outside Python's standard library.

Choosing the driver under test is the caller's business: the environment is
passed through to the tests (only TMPDIR is a fresh directory each time), so
set what the ICD loader in use reads (OCL_ICD_FILENAMES for the Khronos loader,
OCL_ICD_VENDORS for ocl-icd) and what the CTS harness reads (CL_DEVICE_TYPE,
CL_PLATFORM_INDEX, CL_DEVICE_INDEX). `--device-name TEXT` makes sure that it
worked: a test that ran on a device whose name lacks TEXT stops the whole run
with exit status 2.

Selection
    basic               every sub-test of test_basic
    basic:hostptr       one sub-test
    api:*kernel*        the sub-tests matching a shell pattern
    all                 every suite below DIR
    images/clFillImage  a suite may also be named by its directory
    nothing at all      exactly the sub-tests listed in the --expect file

Verdicts
    pass, skip   as the CTS harness reports them
    fail         the harness reports a failure, or the process ended with a
                 non-zero status or without naming a result
    timeout      the process outlived --timeout and was killed
    crash        the process was ended by a signal (at whatever point)

Each sub-test runs in a process of its own, so none can hide or spoil another.
What test_conversions calls its one sub-test, some 1,000 conversions, is taken
apart by types: conversions:uchar_half is every conversion of half to uchar.

Files
    --results FILE   what this run saw: {"suite": {"sub-test": verdict}},
                     sorted, one line a sub-test, so that differences stay
                     small. A verdict is a string, or, where there is
                     something to say, {"result": ..., "reason": ...}.
    --expect FILE    the same form. A "reason" there is written by hand and
                     survives --bless as long as the result stays the same.
                     The result "exclude" keeps a sub-test from being run at
                     all unless it is named in full on the command line.
    --junit FILE     the outcome in JUnit's XML, for a CI that shows it: a suite
                     is a testsuite, a sub-test a testcase. What fails as
                     expected, or must not run, counts as skipped, with its
                     reason; a regression is a failure with the end of its log.
    --logs DIR       DIR/<suite>/<sub-test>.log: command line, output, verdict.

Exit status: 0 as expected (or better), 1 a regression (or, without --expect,
anything other than pass and skip), 2 the run itself could not be done.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path

PREFIX = "test_"

# What test_conversions converts from and to.
FLOATING = ("half", "float", "double")
CONVERTED = (
    *("uchar", "char", "ushort", "short", "uint", "int", "ulong", "long"),
    *FLOATING,
)

# How good a verdict is. Going down is a regression, going up an improvement,
# staying level with another word is merely reported.
RANK = {"pass": 3, "skip": 2, "fail": 1, "timeout": 1, "crash": 0}
GOOD = ("pass", "skip")
EXCLUDE = "exclude"


class RunError(Exception):
    """The run cannot be done as asked; ends it with exit status 2."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one sub-test."""

    result: str
    reason: str = ""
    seconds: float = 0.0


# --------------------------------------------------------------------------
# Finding suites and sub-tests


def find_suites(root):
    """Maps suite names (`test_` stripped) to executables below `root`."""
    suites = {}
    for directory, subdirs, files in os.walk(root):
        subdirs[:] = sorted(d for d in subdirs if d != "CMakeFiles")
        for name in sorted(files):
            path = Path(directory, name)
            if (
                name.startswith(PREFIX)
                and not path.suffix
                and os.access(path, os.X_OK)
            ):
                suite = name[len(PREFIX):]
                if suite in suites:
                    raise RunError(
                        f"two executables are named {name}: "
                        f"{suites[suite]} and {path}"
                    )
                suites[suite] = path.resolve()
    if not suites:
        raise RunError(f"no {PREFIX}* executable below {root}")
    return suites


def find_suite(suites, name):
    """The suite called `name`, or living in the directory called `name`."""
    if name in suites:
        return name
    tail = tuple(Path(name).parts)
    by_directory = [
        suite
        for suite, path in suites.items()
        if path.parent.parts[-len(tail):] == tail
    ]
    if len(by_directory) == 1:
        return by_directory[0]
    known = " ".join(sorted(suites))
    raise RunError(f"no suite {name!r}; there are: {known}")


def list_subtests(executable):
    """Asks an executable for its sub-tests. This touches no device."""
    # `--list` prints one tab-indented name a line; CTS versions before it had
    # that option end their --help text with the same kind of list.
    for option in ("--list", "--help"):
        try:
            listing = subprocess.run(
                [str(executable), option],
                cwd=executable.parent,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunError(f"{executable} {option}: {error}") from error
        text = listing.stdout.rpartition("Test names:")[2]
        names = re.findall(r"^\t([A-Za-z0-9_.+-]+)$", text, re.MULTILINE)
        if listing.returncode == 0 and names:
            return sorted(set(names))
    tail = (listing.stderr or listing.stdout).strip().splitlines()[-1:]
    raise RunError(f"{executable} lists no sub-tests: {' '.join(tail)}")


def select(suites, wanted, excluded, expected):
    """Turns the command line into {suite: [sub-test]} plus the suites that
    were asked for whole."""
    selection, whole = {}, set()
    listed = {}

    def names_of(suite):
        if suite not in listed:
            listed[suite] = list_subtests(suites[suite])
            if listed[suite] == ["conversions"]:
                listed[suite] = [f"{to}_{of}" for to in CONVERTED for of in CONVERTED]
        return listed[suite]

    def barred(suite, name):
        if outcome_of(expected.get(suite, {}).get(name)) == EXCLUDE:
            return True
        return any(
            fnmatch.fnmatchcase(suite, pattern.partition(":")[0])
            and fnmatch.fnmatchcase(name, pattern.partition(":")[2] or "*")
            for pattern in excluded
        )

    if not wanted:
        if not expected:
            raise RunError("name a suite, or give --expect a file with some")
        # Sub-tests that are expected but no longer there are reported as gone
        # in the end; they simply cannot be selected here.
        for suite, tests in expected.items():
            known = names_of(find_suite(suites, suite))
            selection[suite] = {
                name for name in tests if name in known and not barred(suite, name)
            }
        return {s: sorted(t) for s, t in sorted(selection.items())}, set(expected)

    for item in wanted:
        if item == "all":
            for suite in suites:
                whole.add(suite)
                selection.setdefault(suite, set()).update(
                    name for name in names_of(suite) if not barred(suite, name)
                )
            continue
        name, _, pattern = item.partition(":")
        suite = find_suite(suites, name)
        chosen = selection.setdefault(suite, set())
        if pattern in names_of(suite):
            chosen.add(pattern)
            continue
        if pattern in ("", "*"):
            whole.add(suite)
        matching = fnmatch.filter(names_of(suite), pattern or "*")
        if not matching:
            raise RunError(f"{suite} has no sub-test {pattern!r}")
        chosen.update(test for test in matching if not barred(suite, test))
    return {s: sorted(t) for s, t in sorted(selection.items())}, whole


# --------------------------------------------------------------------------
# Running one sub-test


def arguments(suite, name):
    """What selects a sub-test: mostly its name. The arguments of
    test_conversions are names of conversions instead; with one that it does not
    know, as its own sub-test's is, it runs none, and passes."""
    return conversions(name) if suite == "conversions" else [name]


def conversions(pair):
    """The conversions of one type to another, by test_conversions' names."""
    to, of = pair.split("_")
    saturations = [""] if to in FLOATING else ["", "_sat"]
    return [
        f"{to}{saturation}{rounding}_{of}"
        for saturation in saturations
        for rounding in ("", "_rte", "_rtp", "_rtn", "_rtz")
    ]


class Runner:
    """Runs sub-tests, each in a process group of its own."""

    def __init__(self, options, suites):
        self.options = options
        self.suites = suites
        self.lock = threading.Lock()
        self.live = set()
        self.stopped = threading.Event()
        self.wrong_device = None

    def stop(self):
        """Ends every process that this runner started."""
        with self.lock:
            self.stopped.set()
            for process in self.live:
                kill_group(process)

    def run(self, suite, name):
        """Runs one sub-test; an unwelcome outcome may be given another try."""
        for attempt in range(self.options.retry + 1):
            outcome = self.run_once(suite, name, attempt)
            if outcome is None or outcome.result in GOOD:
                break
        return outcome

    def run_once(self, suite, name, attempt):
        # A directory of its own for temporary files keeps sub-tests that run
        # at the same time, and use fixed names there, out of each other's way.
        with tempfile.TemporaryDirectory(
            prefix="cts-", ignore_cleanup_errors=True
        ) as scratch:
            return self.run_in(Path(scratch), suite, name, attempt)

    def run_in(self, scratch, suite, name, attempt):
        executable = self.suites[suite]
        command = [str(executable), *arguments(suite, name), *self.options.cts_arg]
        if self.options.wimpy:
            command.append("--wimpy")
        log_path = self.options.logs / suite / f"{name}.log"
        log_path.parent.mkdir(parents=True, exist_ok=True)
        verdict_path = scratch / "verdict.json"
        environment = dict(
            os.environ,
            CL_CONFORMANCE_RESULTS_FILENAME=str(verdict_path),
            TMPDIR=str(scratch),
        )

        started = time.monotonic()
        timed_out = False
        with open(log_path, "ab" if attempt else "wb") as log:
            log.write(f"$ {shlex.join(command)}\n".encode())
            log.flush()
            with self.lock:
                if self.stopped.is_set():
                    return None
                # Some suites read files that the build put beside the
                # executable, hence the working directory.
                process = subprocess.Popen(
                    command,
                    cwd=executable.parent,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self.live.add(process)
            try:
                process.wait(self.options.timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                # Also ends whatever helpers a test or a driver left behind.
                kill_group(process)
                process.wait()
                with self.lock:
                    self.live.discard(process)
        if self.stopped.is_set():
            return None

        seconds = time.monotonic() - started
        output = log_path.read_text(errors="replace")
        called = "conversions" if suite == "conversions" else name
        reported = reported_result(called, verdict_path, output)
        if not self.device_is_right(output):
            return None
        if timed_out:
            outcome = Outcome("timeout", f"over {self.options.timeout:g} s", seconds)
        else:
            result, reason = judge(process.returncode, reported, output)
            outcome = Outcome(result, reason, seconds)
        with open(log_path, "a") as log:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            log.write(f"\n# {suite}:{name}: {outcome.result}{reason}, {seconds:.1f} s\n")
        return outcome

    def device_is_right(self, output):
        wanted = self.options.device_name
        found = re.search(r"Compute Device Name = (.*?), Compute Device Vendor", output)
        if wanted is None or found is None or wanted.lower() in found[1].lower():
            return True
        self.wrong_device = found[1]
        self.stop()
        return False


def kill_group(process):
    """Kills what is left of the session that `process` leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def reported_result(name, verdict_path, output):
    """The harness's own verdict: pass, fail, skip, or None if it gave none."""
    # The harness writes this file only at the end of an orderly run. It is
    # searched rather than parsed because older versions do not escape the
    # command line that they put into it.
    try:
        text = verdict_path.read_text(errors="replace")
    except OSError:
        text = ""
    found = re.search(rf'"{re.escape(name)}": "(pass|fail|skip)"', text)
    if found:
        return found[1]
    # CTS versions that write no such file print these lines.
    lines = set(output.splitlines())
    if f"{name} FAILED" in lines:
        return "fail"
    if f"{name} test not supported" in lines or any(
        line.startswith(f"{name} skipped (requires") for line in lines
    ):
        return "skip"
    if f"{name} passed" in lines:
        return "pass"
    return None


def judge(status, reported, output):
    """Joins exit status and reported result to one verdict and its reason."""
    if status < 0:
        try:
            reason = signal.Signals(-status).name
        except ValueError:
            reason = f"signal {-status}"
        if reported:
            reason += f" after reporting {reported}"
        return "crash", reason
    if reported == "fail" or "Unable to parse function name" in output:
        return "fail", first_complaint(output)
    if status != 0:
        complaint = first_complaint(output)
        said = f"exit status {status}, reported {reported or 'nothing'}"
        return "fail", f"{said}; {complaint}" if complaint else said
    if reported is None:
        # Some suites look for their extension before the harness begins.
        if "is not supported on this device. Skipping" in output:
            return "skip", ""
        return "fail", "exit status 0, reported nothing"
    return reported, ""


def first_complaint(output):
    """The first line of a log that reads like an error, or else the last one
    before the harness reports the failure; made short."""
    previous = ""
    for line in output.splitlines():
        if re.match(r"\s*ERROR\b", line) or re.search(
            r"\b(panicked at|[Aa]ssertion|failed[!:( ])", line
        ):
            return shortened(line)
        if re.fullmatch(r"\S+ FAILED", line):
            return shortened(previous)
        previous = line if line.strip() else previous
    return ""


def shortened(line):
    """A log line fit to be a reason."""
    line = re.sub(r"\s+", " ", line.strip())
    # Source paths are long, and differ from one machine to the next.
    line = re.sub(r"(?:/[^/\s:]+)+/([^/\s:]+)", r"\1", line)
    return line if len(line) <= 160 else line[:157] + "..."


# --------------------------------------------------------------------------
# Results and expectations


def outcome_of(entry):
    """The result word of an entry of a results file."""
    return entry.get("result") if isinstance(entry, dict) else entry


def read_results(path, must_exist):
    """Reads a results file; {} where it may be absent, and is."""
    try:
        with open(path) as file:
            results = json.load(file)
        for suite, tests in results.items():
            for name, entry in tests.items():
                if outcome_of(entry) not in (*RANK, EXCLUDE):
                    raise ValueError(f"{suite}:{name}: unknown result {entry!r}")
    except FileNotFoundError:
        if must_exist:
            raise RunError(f"{path} does not exist; --bless makes it") from None
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise RunError(f"{path}: {error}") from error
    return results


def write_results(path, results):
    """Writes a results file, one sorted line a sub-test."""
    suites = []
    for suite, tests in sorted(results.items()):
        if tests:
            lines = ",\n".join(
                f"    {json.dumps(name)}: {json.dumps(entry)}"
                for name, entry in sorted(tests.items())
            )
            suites.append(f"  {json.dumps(suite)}: {{\n{lines}\n  }}")
    text = "{\n" + ",\n".join(suites) + "\n}\n" if suites else "{}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def as_entry(outcome):
    """An outcome as an entry of a results file."""
    if outcome.reason:
        return {"result": outcome.result, "reason": outcome.reason}
    return outcome.result


def gone(expected, outcomes, whole):
    """Expected sub-tests of wholly selected suites that were not there."""
    return [
        (suite, name, outcome_of(entry))
        for suite in sorted(whole)
        for name, entry in sorted(expected.get(suite, {}).items())
        if name not in outcomes.get(suite, {}) and outcome_of(entry) != EXCLUDE
    ]


def compare(expected, outcomes, missing):
    """Sorts the differences into (regressions, improvements, other), each a
    list of lines to print."""
    worse, better, other = [], [], []
    for suite, tests in sorted(outcomes.items()):
        for name, outcome in sorted(tests.items()):
            before = outcome_of(expected.get(suite, {}).get(name))
            now = outcome.result
            if before == now:
                continue
            reason = f"  ({outcome.reason})" if outcome.reason else ""
            line = f"{suite}:{name}: {before or 'not listed'} -> {now}{reason}"
            if before in (None, EXCLUDE):
                (other if now in GOOD else worse).append(line)
            elif RANK[now] < RANK[before]:
                worse.append(line)
            elif RANK[now] > RANK[before]:
                better.append(line)
            else:
                other.append(line)
    worse += [f"{suite}:{name}: {was} -> gone" for suite, name, was in missing]
    return worse, better, other


def bless(expected, outcomes, missing):
    """The expectations with what this run saw written over them."""
    blessed = {suite: dict(tests) for suite, tests in expected.items()}
    for suite, name, _ in missing:
        del blessed[suite][name]
    for suite, tests in outcomes.items():
        entries = blessed.setdefault(suite, {})
        for name, outcome in tests.items():
            # The run's own reasons (first error line and the like) change too
            # easily to be recorded; reasons in expectations are people's.
            if outcome_of(entries.get(name)) != outcome.result:
                entries[name] = outcome.result
    return blessed


# --------------------------------------------------------------------------
# JUnit's XML

# Lines of a log that go into the file.
LOG_LINES = 60


def fit_for_xml(text):
    """A text without the characters that XML has no form for."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def junit_case(suite, name, outcome, entry, log, compared):
    """One sub-test. `entry`: what is expected of it; `compared`: there are expectations."""
    case = xml.Element("testcase", classname=suite, name=name, time=f"{outcome.seconds:.3f}")
    before, now = outcome_of(entry), outcome.result
    said = fit_for_xml(f"{now}: {outcome.reason}" if outcome.reason else now)
    why = entry.get("reason", "") if isinstance(entry, dict) else ""
    if now == "pass" or now == "skip" and before == "skip":
        worse = False
    elif compared and before in RANK:
        worse = RANK[now] < RANK[before]
    else:
        worse = now not in GOOD
    if worse:
        was = f", expected {before}" if compared else ""
        kind = "error" if now in ("crash", "timeout") else "failure"
        child = xml.SubElement(case, kind, type=now, message=said + was)
        try:
            lines = log.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        child.text = fit_for_xml("\n".join(lines[-LOG_LINES:]))
    elif now == "skip":
        xml.SubElement(case, "skipped", message=said)
    elif now != "pass":
        xml.SubElement(case, "skipped", message=fit_for_xml(f"fails as expected ({said}) {why}".strip()))
    return case


def write_junit(path, expected, outcomes, missing, logs, compared):
    """Writes the outcome of a run; a sub-test that is gone is a failure too."""
    root = xml.Element("testsuites", name="OpenCL-CTS")
    names = set(outcomes) | {suite for suite, _, _ in missing}
    for suite in sorted(names):
        tests = outcomes.get(suite, {})
        cases = [
            junit_case(suite, name, outcome, expected.get(suite, {}).get(name),
                       logs / suite / f"{name}.log", compared)
            for name, outcome in sorted(tests.items())
        ]
        for _, name, was in (entry for entry in missing if entry[0] == suite):
            case = xml.Element("testcase", classname=suite, name=name, time="0")
            xml.SubElement(case, "failure", type="gone", message=f"the suite has it no more, expected {was}")
            cases.append(case)
        counts = {
            kind: str(sum(case.find(kind) is not None for case in cases))
            for kind in ("failure", "error", "skipped")
        }
        element = xml.SubElement(
            root, "testsuite", name=suite, tests=str(len(cases)),
            failures=counts["failure"], errors=counts["error"], skipped=counts["skipped"],
            time=f"{sum(outcome.seconds for outcome in tests.values()):.3f}",
        )
        element.extend(cases)
    path.parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


# --------------------------------------------------------------------------
# Command line


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    add = parser.add_argument
    add("select", nargs="*", metavar="SUITE[:SUBTEST]")
    add("--cts", type=Path, required=True, metavar="DIR",
        help="directory of a built CTS")
    add("--expect", type=Path, metavar="FILE",
        help="expectations to compare with")
    add("--bless", action="store_true",
        help="write what this run saw into the --expect file")
    add("--results", type=Path, metavar="FILE",
        help="write what this run saw into this file")
    add("--junit", type=Path, metavar="FILE",
        help="write the outcome into this file, in JUnit's XML")
    add("--logs", type=Path, metavar="DIR",
        help="keep a log of each sub-test here (default: a temporary directory)")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
        help="sub-tests run at the same time (default: %(default)s)")
    add("--timeout", type=float, default=300.0, metavar="S",
        help="seconds a sub-test may take (default: %(default)g)")
    add("--retry", type=int, default=0, metavar="N",
        help="further tries for a sub-test that neither passed nor was skipped")
    add("--device-name", metavar="TEXT",
        help="stop unless the tests run on a device whose name contains TEXT")
    add("--exclude", action="append", default=[], metavar="SUITE[:PATTERN]",
        help="leave these out (repeatable)")
    add("--wimpy", action="store_true",
        help="the CTS's short mode, where a test has one")
    add("--cts-arg", action="append", default=[], metavar="ARG",
        help="pass ARG on to the tests, after the sub-test's name (repeatable)")
    add("--list", action="store_true",
        help="print the selected sub-tests and run nothing")
    add("--quiet", action="store_true",
        help="do not print a line for each sub-test that passed or was skipped")
    options = parser.parse_args(arguments)
    if options.bless and not options.expect:
        parser.error("--bless needs --expect")
    if options.jobs < 1 or options.timeout <= 0 or options.retry < 0:
        parser.error("--jobs, --timeout and --retry must make sense")
    return options


def keep_results(options, outcomes):
    """Writes what was seen, by a run that was interrupted too."""
    if options.results:
        write_results(options.results, {
            suite: {name: as_entry(outcome) for name, outcome in tests.items()}
            for suite, tests in outcomes.items()
        })


def run_all(options, suites, selection):
    """Runs the selection; returns {suite: {sub-test: Outcome}}."""
    runner = Runner(options, suites)
    total = sum(map(len, selection.values()))
    width = len(str(total))
    outcomes = {}

    def interrupted(number, _frame):
        raise KeyboardInterrupt(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, interrupted)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {
            pool.submit(runner.run, suite, name): (suite, name)
            for suite, names in selection.items()
            for name in names
        }
        try:
            done = 0
            for future in concurrent.futures.as_completed(futures):
                outcome = future.result()
                if outcome is None:
                    continue
                done += 1
                suite, name = futures[future]
                outcomes.setdefault(suite, {})[name] = outcome
                if not options.quiet or outcome.result not in GOOD:
                    reason = f"  ({outcome.reason})" if outcome.reason else ""
                    print(
                        f"[{done:{width}}/{total}] {outcome.result:7} "
                        f"{outcome.seconds:6.1f} s  {suite}:{name}{reason}",
                        flush=True,
                    )
        except BaseException:
            runner.stop()
            pool.shutdown(cancel_futures=True)
            keep_results(options, outcomes)
            raise
    if runner.wrong_device is not None:
        raise RunError(
            f"the tests run on {runner.wrong_device!r}, "
            f"which is not a {options.device_name!r}"
        )
    return outcomes


def print_counts(outcomes):
    """Prints a table of verdicts by suite."""
    def row(title, results):
        counts = "".join(f"{results.count(result) or '.':>9}" for result in RANK)
        print(f"{title:26}{len(results):>7}{counts}")

    print(f"\n{'suite':26}{'run':>7}" + "".join(f"{result:>9}" for result in RANK))
    every = []
    for suite, tests in sorted(outcomes.items()):
        results = [outcome.result for outcome in tests.values()]
        every += results
        row(suite, results)
    row("total", every)


def main(arguments=None):
    options = parse_arguments(arguments)
    expected = {}
    if options.expect:
        expected = read_results(options.expect, must_exist=not options.bless)
    suites = find_suites(options.cts)
    selection, whole = select(suites, options.select, options.exclude, expected)
    if options.list:
        for suite, names in selection.items():
            for name in names:
                print(f"{suite}:{name}")
        return 0
    if options.logs is None:
        options.logs = Path(tempfile.mkdtemp(prefix="cts-logs-"))
    options.logs = options.logs.resolve()

    outcomes = run_all(options, suites, selection)
    print_counts(outcomes)
    print(f"logs: {options.logs}")
    keep_results(options, outcomes)

    if not options.expect:
        if options.junit:
            write_junit(options.junit, {}, outcomes, [], options.logs, compared=False)
        bad = sum(
            outcome.result not in GOOD
            for tests in outcomes.values()
            for outcome in tests.values()
        )
        return 1 if bad else 0

    # A suite of which --exclude took something away was not run whole.
    whole -= {
        suite
        for suite in whole
        if any(
            fnmatch.fnmatchcase(suite, pattern.partition(":")[0])
            for pattern in options.exclude
        )
    }
    missing = gone(expected, outcomes, whole)
    worse, better, other = compare(expected, outcomes, missing)
    if options.junit:
        write_junit(options.junit, expected, outcomes, missing, options.logs, compared=True)
    for title, lines in (
        ("regressions", worse),
        ("improvements (record them with --bless)", better),
        ("other differences", other),
    ):
        if lines:
            print(f"\n{title}:")
            for line in lines:
                print(f"  {line}")
    if options.bless:
        write_results(options.expect, bless(expected, outcomes, missing))
        print(f"\nwrote {options.expect}")
        return 0
    print(f"\n{len(worse)} regressions, {len(better)} improvements")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RunError as error:
        print(f"cts.py: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("cts.py: interrupted", file=sys.stderr)
        sys.exit(2)
