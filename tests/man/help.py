#!/usr/bin/env python3
"""Compares each program's --help with its manual page, both ways.

What it proves: every option that --help lists is described (an ".It Fl" entry of man/PROGRAM.1, or of
the section COMMON OPTIONS of sluice(7)), and every option that the page describes exists. Also that
each page has the sections that a page must have, that -V prints a version, and that -h is --help; and that each format of shuffle
has a row in READERS of sluice(7) and its reader in tests/judges/readers_defaults.py.
"""
import glob
import os
import re
import subprocess
import sys

BIN = os.environ.get("BIN", "build/bin")
PREFIX = os.environ.get("PROGRAM_PREFIX", "")
PROGRAMS = "tokenize dedup choose decompose pack shuffle forget schedule inspect sluice-chat".split()
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
failed = False


def result(good, what, why=""):
    global failed
    if not good:
        print("  " + why)
        failed = True
    print(("ok " if good else "not ok ") + what)


def command(program):
    """The program's command. [] if it cannot be run."""
    if program == "sluice-chat":
        return [sys.executable, "-m", "sluice.chat"]
    path = os.path.join(BIN, PREFIX + program)
    return [path] if os.path.exists(path) else []


def run(*argv):
    env = dict(os.environ, PYTHONPATH="python")
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def help_options(text):
    """Options at the beginning of lines: "  -o, --output FILE   description"."""
    found = set()
    for line in text.splitlines():
        m = re.match(r"\s+(-.*)", line)
        if m:
            head = re.split(r"\s{2,}", m.group(1))[0]
            found.update(re.findall(r"(?:^|[\s,\[|])(--[a-z][a-z0-9-]*|-[A-Za-z])", head))
    return found


def page_options(source, section=None):
    """Options with an .It entry, of the whole page or of one section."""
    found, here = set(), section is None
    for line in source.splitlines():
        if line.startswith(".Sh") and section is not None:
            here = line[3:].strip().strip('"') == section
        if here and line.startswith(".It "):
            for word in re.findall(r"\bFl ((?:\\-|-|\\&)?[A-Za-z][A-Za-z0-9-]*)", line):
                word = word.replace("\\-", "-").replace("\\&", "")
                found.add("-" + word)
    return found


def check_readers():
    """The formats of shuffle, the rows of the page, and what the judges try."""
    if not command("shuffle"):
        return
    names = re.search(r"--format=([a-z|-]+)", run(*command("shuffle"), "--help")[1])
    formats = set(names.group(1).split("|")) if names else set()
    rows = re.search(r"(?ms)^\.Sh READERS$(.*?)^\.Sh ", open("man/sluice.7").read())
    rows = set(re.findall(r"(?m)^\.It Cm ([a-z-]+)", rows.group(1))) if rows else set()
    tried = re.search(r"(?ms)^    kinds = \{(.*?)\}$", open("tests/judges/readers_defaults.py").read())
    tried = set(re.findall(r'"([a-z-]+)": \(', tried.group(1))) if tried else set()
    result(len(formats) >= 8 and formats == rows, "each format has a row in READERS of sluice(7)", "%s, and rows of %s" % (formats, rows))
    result(formats == tried, "each format is tried with its reader's defaults", "%s, tried are %s" % (formats, tried))


def main():
    try:
        common = page_options(open("man/sluice.7").read(), "COMMON OPTIONS")
    except OSError:
        common = set()
        result(False, "sluice.7", "man/sluice.7 is missing")
    for program in PROGRAMS:
        argv = command(program)
        page = "man/%s.1" % program
        if not argv:
            print("skip %s: %s" % (program, "no Python has NumPy (make python)" if "chat" in program else "not built"))
            continue
        code, out, err = run(*argv, "--help")
        result(code == 0 and out and not err, program + " --help", "exit status %d, stderr: %s" % (code, err))
        code, short, _ = run(*argv, "-h")
        result(code == 0 and short == out, program + " -h", "-h prints something else than --help")
        code, version, _ = run(*argv, "-V")
        result(code == 0 and re.search(r"\d+\.\d+\.\d+", version), program + " -V", "no version: " + version)
        wide = max((len(x) for x in out.splitlines()), default=0)
        result(wide <= 100, program + " --help fits", "a line has %d columns" % wide)
        if not os.path.exists(page):
            result(False, page, "there is no manual page")
            continue
        source = open(page).read()
        described, offered = page_options(source), help_options(out)
        result(len(offered) >= 8, program + " --help lists options", "read only %s" % sorted(offered))
        missing = offered - described - common
        result(not missing, page + " describes what --help lists", "not described: %s" % " ".join(sorted(missing)))
        invented = described - offered
        result(not invented, "--help lists what %s describes" % page, "not in --help: %s" % " ".join(sorted(invented)))
        have = set(re.findall(r'(?m)^\.Sh "?(.*?)"?\s*$', source))
        lacking = [s for s in SECTIONS if s not in have]
        result(not lacking, page + " has its sections", "lacks " + ", ".join(lacking))
    check_readers()
    for page in sorted(glob.glob("man/*.[1357]")):
        name = os.path.basename(page).rsplit(".", 1)[0]
        source = open(page).read()
        result(re.search(r"(?m)^\.Nm " + re.escape(name) + r"\b", source), page + " names itself", ".Nm is not " + name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
