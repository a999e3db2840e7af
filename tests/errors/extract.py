#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which errors the OpenCL specification lists for which entry point, and for how many conditions.

    extract.py [--text] DOCS EXTENSION ... > specification.txt

DOCS is a repository of KhronosGroup/OpenCL-Docs; the extensions are those whose errors are wanted beside those of the core
(what `pumice info` prints for CL_DEVICE_EXTENSIONS). A line of what it prints: entry point, code, number of conditions. The
words of the specification are not kept; --text prints them, to write rows from.
"""

import re
import subprocess
import sys

CHAPTERS = ["opencl_platform_layer", "opencl_runtime_layer"]
START = re.compile(r"\{(cl[A-Z]\w+)\}")
CODE = re.compile(r"^\s*\* \{(CL_\w+)\}(.*)")
CONDITION = re.compile(r"^\s*\*\* (.*)")
OLD_CODE = re.compile(r"^\s*\* `(CL_\w+)`(.*)")
# Neither errors nor of this driver: these return no code, or are the loader's.
NOT_OURS = {"clSVMAlloc", "clSVMFree", "clIcdSetPlatformDispatchDataKHR"}


def text(docs, path):
    command = ["git", "-C", docs, "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")


def chosen(lines, extensions):
    """The lines that are left once the conditions on extensions are decided."""
    stack = []
    for line in lines:
        start = re.match(r"^(ifdef|ifndef)::([^\[]*)\[\]", line)
        if start:
            names = re.split(r"[,+]", start[2])
            known = [n in extensions or not n.startswith("cl_") for n in names]
            holds = all(known) if "+" in start[2] else any(known)
            stack.append(holds if start[1] == "ifdef" else not holds)
        elif line.startswith("endif::"):
            stack.pop()
        elif all(stack):
            yield line


class Errors:
    """(entry point, code) -> the conditions."""

    def __init__(self):
        self.conditions = {}

    def add(self, functions, code, words):
        words = " ".join(words.split())
        only = re.match(r"if \{(cl[A-Z]\w+)\} is called", words)
        for function in [only[1]] if only and only[1] in functions else functions:
            self.conditions.setdefault((function, code), []).extend(re.split(r" or if ", words))


def chapter(lines, errors):
    """Lists of codes after `{clName} return ... {CL_SUCCESS}` or `// refError`, until the end of the block."""
    aliases, functions, code, words, active = {}, [], None, None, False

    def end_of_condition():
        nonlocal words
        if code and words:
            errors.add(functions, code, words)
        words = None

    for line in lines + ["--"]:
        page = re.match(r"^\[open,refpage='(\w+)'.*alias='([^']*)'", line)
        if page:
            aliases[page[1]] = page[2].split()
        starts = re.match(r"^(\{cl[A-Z]\w+\})( and \{cl\w+\})* (will )?returns? ", line)
        if line.startswith("// refError") or (starts and code):
            end_of_condition()
            functions, code, active = [], None, True
        elif starts:
            # Other functions may have been mentioned on the way.
            functions, code, active = [], None, True
        if not active:
            continue
        if line.strip() == "--":
            end_of_condition()
            active, code = False, None
        elif CODE.match(line):
            end_of_condition()
            code, words = CODE.match(line).groups()
        elif code and CONDITION.match(line):
            end_of_condition()
            words = CONDITION.match(line)[1]
        elif code and line.startswith("  ") and words is not None and not line.startswith("//"):
            words += " " + line
        elif not line.strip() or line.startswith("//"):
            end_of_condition()
        elif not code and (starts or not functions):
            functions += [f for f in START.findall(line) if f not in functions]
    for (function, code), words in list(errors.conditions.items()):
        for alias in aliases.get(function, []):
            errors.conditions.setdefault((alias, code), words)


def old_extension(lines, errors):
    """Extensions as separate documents: `*clName* returns ...`, then lines of the form "* `CODE` if ..."."""
    functions = []
    for line in lines:
        if re.match(r"^(\*cl[A-Z]\w+\*.* (will )?return|The following errors may be returned)", line):
            functions = re.findall(r"\*(cl[A-Z]\w+)\*", line)
        elif OLD_CODE.match(line):
            code, words = OLD_CODE.match(line).groups()
            if functions:
                errors.add(functions, code, words)
        elif line.startswith("=="):
            functions = []


def main():
    arguments = sys.argv[1:]
    with_text = "--text" in arguments
    docs, *extensions = [a for a in arguments if a != "--text"]
    errors = Errors()
    for name in CHAPTERS:
        chapter(list(chosen(text(docs, f"api/{name}.asciidoc"), set(extensions))), errors)
    for name in sorted(extensions):
        if name.startswith("cl_intel_"):
            old_extension(text(docs, f"extensions/{name}.asciidoc"), errors)
    for (function, code), words in sorted(errors.conditions.items()):
        if function not in NOT_OURS:
            print(function, code, len(words))
            if with_text:
                print(*(f"        {w}" for w in words), sep="\n")


main()
