#!/usr/bin/env python3
"""documents.py - what README, DESIGN and CONTRIBUTING say that a program can compare: libraries, programs, options, make
targets, names of files, and the minutes of `make check`."""

import glob
import os
import re
import subprocess
import sys

BIN = os.environ.get("BIN", "build/bin")
PREFIX = os.environ.get("PROGRAM_PREFIX", "")
failed = False


def result(good, what, why):
    global failed
    if not good:
        print("  " + str(why))
        failed = True
    print(("ok " if good else "not ok ") + what)


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


make = text("Makefile") + text("tests/tests.mk") + text("packaging/packaging.mk")
pages = {p: text(p) for p in ("README.md", "DESIGN.md", "CONTRIBUTING.md", "python/README.md")}
programs = re.search(r"^PROGRAMS := (.*)$", make, re.M).group(1).split()

# Libraries: the table of DESIGN and PKGS of the Makefile, each the other's.
table = re.search(r"^## Libraries\n(.*?)^## ", pages["DESIGN.md"], re.M | re.S).group(1)
used = [row.split("|")[2].lower() for row in re.findall(r"^\|.*\|$", table, re.M)[2:]]
packages = re.search(r"^PKGS +:= (.*)$", make, re.M).group(1).split()
words = {"libpcre2-8": "pcre2", "libxxhash": "xxhash"}
names = [words.get(p, p) for p in packages]
for name in names:
    result(any(name in u for u in used), "DESIGN, Libraries: has %s" % name, used)
known = names + ["arrow", "cuda", "fasttext", "none: tables of our own", "none: a reader of our own"]
for u in used:
    result(any(n in u for n in known), "DESIGN, Libraries: the build uses %s" % u.strip(), "PKGS: %s" % packages)

# Programs.
numbers = "zero one two three four five six seven eight nine ten eleven twelve".split()
result("%s small programs" % numbers[len(programs)] in " ".join(pages["README.md"].split()), "README: the number of programs",
       programs)
for p in programs:
    result("man/%s.1" % p in pages["README.md"], "README: the table of programs has %s" % p, "")

# Options that a page names, by the help of all programs.
known = set()
for p in programs:
    out = subprocess.run([os.path.join(BIN, PREFIX + p), "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    known.update(re.findall(r"--[a-z][a-z0-9-]*", out))
scripts = " ".join(text(p) for p in glob.glob("tools/batch/*") + glob.glob("tools/sluice/*") + glob.glob("python/sluice/*.py") +
                   glob.glob("tests/random/*.py"))
for page, body in pages.items():
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]", body))
    wrong = sorted(o for o in named if o not in known and o not in scripts)
    result(not wrong, "%s: options exist" % page, wrong)

# Targets of make.
targets = set(re.findall(r"^([a-z][a-z0-9-]*):", make, re.M))
for page, body in pages.items():
    wrong = sorted(set(re.findall(r"(?:`|; |^)make ([a-z][a-z0-9-]*)", body, re.M)) - targets)
    result(not wrong, "%s: targets of make exist" % page, wrong)

# Files that a page names.
for page, body in pages.items():
    named = set(re.findall(r"`((?:lib|formats|kernels|tools|tests|man|python|packaging)/[\w./-]*\w)`", body))
    wrong = sorted(n for n in named if not os.path.exists(n) and not re.search("NAME|VERSION", n))
    result(not wrong, "%s: files exist" % page, wrong)

# Minutes.
minutes = {page: sorted(set(re.findall(r"(?:make check`?[^\n]*?|at most )(?:about |at most )?(\d+) minutes", body)))
           for page, body in pages.items() if page in ("README.md", "CONTRIBUTING.md")}
result(len({tuple(m) for m in minutes.values()}) == 1 and minutes["README.md"], "README and CONTRIBUTING: minutes of make check",
       minutes)
sys.exit(failed)
