"""stages.py - shared by the cases of --stage: runs a program, and reports its result."""
import glob
import hashlib
import os
import re
import struct
import subprocess
import sys

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
FULL = os.environ.get("FULL") == "1"
MORE = FULL or os.environ.get("MORE") == "1"
SHIM = os.environ.get("SHIM", "")
CASE = os.environ.get("case_name") or os.path.basename(sys.argv[0]).removesuffix(".py")


def result(good, what, why=""):
    if not good:
        for line in str(why).splitlines()[:8]:
            print("  " + line[:300])
    print("%s %s: %s" % ("ok" if good else "not ok", CASE, what), flush=True)


class Run:
    def __init__(self, argv, env=None, stdin=b"", file=None):
        self.argv = argv
        p = subprocess.run([BIN + argv[0]] + argv[1:], **({"stdin": file} if file else {"input": stdin}),
                           capture_output=True,
                           env=dict(os.environ, **(env or {})), timeout=300)
        self.status, self.out, self.err = p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")

    def __str__(self):
        return "%s\nexit status %s\n%s" % (" ".join(self.argv), self.status, self.err)

    def line(self, status):
        """It ended with that status and one line of its own."""
        return self.status == status and re.fullmatch(self.argv[0] + r": .{3}.*\n", self.err)

    def clear_failure(self):
        return self.line(1)


def must(argv, env=None):
    r = Run(argv, env)
    if r.status != 0:
        result(False, "a program that must work", r)
        sys.exit(1)
    return r


def sha(*paths):
    h = hashlib.sha256()
    for p in paths:
        with open(p, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def refuses(what, argv, say, status, work, absent=None):
    """One line that says why; no file of the folder `work` is another than before, and none of the name `absent` is there."""
    def kept():
        return {f: sha(f) for f in glob.glob(work + "/*")}

    before = kept()
    r = Run(argv)
    result(r.line(status) and re.search(say, r.err) and kept() == before and not (absent and os.path.exists(absent)), what, r)


def sections(path):
    """(name, first byte, end) of the parts of a file, as lib/flow/workfile.h describes them."""
    with open(path, "rb") as f:
        d = f.read()
    tail, = struct.unpack("<Q", d[-32:-24])
    n_param, n_section = struct.unpack("<QQ", d[tail + 112:tail + 128])
    rows = tail + 128 + (n_param + 7) // 8 * 8
    yield "head", 0, 16
    at = 16
    for i in range(n_section):
        n, = struct.unpack("<Q", d[rows + 24 * i:rows + 24 * i + 8])
        if n:
            yield "section %d" % i, at, at + n
        at += n
    assert at == tail
    yield "tail", tail, len(d) - 32
    yield "foot", len(d) - 32, len(d)
