#!/usr/bin/env python3
"""Every stage with one failing call: stages_faults.py CALLS [JOB...] in an empty folder (see stages_faults.sh).

CALLS: io, memory, or names of tests/shim/fault.c, separated by commas. Call 1, 2, 3 … of a stage's last part fails,
until a run reaches its end; without FULL=1, only a sample of the calls. Each run names the failure in one line and
exits with 1, or succeeds. Then no file of the work folder or output differs from that of a good run, except for the
files of an unfinished set of shards; and the same run without a fault makes the missing files.
"""
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys

from stages import BIN, FULL, MORE, SHIM, result
from stages_jobs import JOBS, must, prepare

GROUPS = {"io": ["read", "write", "open", "sync", "close", "name", "truncate", "mkdir", "stdio"] if FULL else ["io"],
          "memory": ["memory", "map", "thread"]}
FAILS = {"memory": errno.ENOMEM, "map": errno.ENOMEM, "thread": errno.EAGAIN, "write": errno.ENOSPC}


def run(argv, env=None, again=True):
    try:
        p = subprocess.run([BIN + argv[0]] + argv[1:], stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                           env=dict(os.environ, **(env or {})))
    except subprocess.TimeoutExpired:
        return run(argv, env, False) if again else ("hangs", "")  # the machine may have been away
    return p.returncode, p.stderr.decode("utf-8", "replace")


def tree():
    """All files but inputs, reports (they have times in them), locks and journals (where they are)."""
    files = {}
    for at, _, names in os.walk("."):
        for name in names:
            path = os.path.join(at, name)
            if not re.search(r"^\./(c.jsonl|old.idx|older.idx|[tdp][01]\.tks|log|.*\.lock|w/shards.*jsonl)$", path):
                files[path] = hashlib.sha256(open(path, "rb").read()).hexdigest()
    return files


def copy(a, b):
    shutil.rmtree(b, ignore_errors=True)
    shutil.copytree(a, b, copy_function=os.link)


def fault(argv, at, how, before, good, again):
    """(fired, what is wrong or None) of one run from the folder `before`."""
    copy(before, "try")
    os.chdir("try")
    try:
        status, err = run(argv, {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at, "SHIM_DO": str(how), "SHIM_LOG": "log"})
        fired = os.path.exists("log")
        said = "%s, SHIM_DO=%d: %s\nexit status %s\n%s" % (at, how, " ".join(argv), status, err)
        lines = err.splitlines()
        if status == 0 or not fired:
            return fired, None if status == 0 and tree() == good else said + "\nand the files are others"
        if status != 1 or not 1 <= len(lines) <= 3 or not all(re.match("[a-z]+: .{3}", x) for x in lines):
            return fired, said
        left = [p for p, h in tree().items() if good.get(p) != h and not p.startswith("./set/")]
        if left:
            return fired, said + "\nleft: " + " ".join(left)
        if again:
            status, err = run(argv)
            if status or tree() != good:
                return fired, said + "\nand then again: exit status %s\n%s" % (status, err)
        return fired, None
    finally:
        os.chdir("..")


def loop(argv, call, before, good):
    """(runs, those that are bad)"""
    bad, n, tried, fired = [], 1, 0, True
    most = 400 if FULL else 6 if MORE else 3
    while fired and len(bad) < 10:
        fired, problem = fault(argv, "%s:%d" % (call, n), FAILS.get(call, errno.EIO), before, good, FULL or tried % 3 == 0)
        tried += 1
        if problem:
            bad.append(problem)
        n += 1 if tried < most else max(1, n // (20 if FULL else 3))
    return tried, bad


def job(name, calls):
    os.mkdir("now")
    os.chdir("now")
    prepare()
    steps = list(JOBS[name]())
    for i, (stage, argv) in enumerate(steps):
        last = i + 1 == len(steps) or steps[i + 1][0] != stage
        if last:
            os.chdir("..")
            copy("now", "before")
            os.chdir("now")
        must(argv)
        if not last:
            continue
        good = tree()
        os.chdir("..")
        for call in calls:
            tried, bad = loop(argv, call, "before", good)
            result(not bad, "%s --stage %s: %s fails (%d runs)" % (name, stage, call, tried),
                   "%d bad\n%s" % (len(bad), "\n".join(bad[:2])))
        os.chdir("now")
    os.chdir("..")
    for d in ("now", "before", "try"):
        shutil.rmtree(d)


if __name__ == "__main__":
    for one in sys.argv[2:] or JOBS:
        job(one, [c for g in sys.argv[1].split(",") for c in GROUPS.get(g, [g])])
