#!/usr/bin/env python3
"""shuffle beyond -M under faults (see shuffle_spill.sh); in an empty folder.

A call of the sorter's threads fails, the output's reader exits, its disk is full, the folder of temporary files is on
another kind of file system, all calls are late and short.
"""
import errno
import hashlib
import json
import os
import subprocess
import sys

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
SHIM = os.environ["SHIM"]
FULL = os.environ.get("FULL") == "1"
HERE = os.path.dirname(os.path.abspath(__file__))
M = ["-q", "-M", "32M", "--seed", "9"]


def result(good, what, why=""):
    if not good:
        print("\n".join("  " + x[:300] for x in str(why).splitlines()[:8]))
    print("%s %s: %s" % ("ok" if good else "not ok", os.environ.get("case_name", "shuffle_spill"), what), flush=True)


def sha(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def run(argv, env=None, **kw):
    """(status or "hangs", stderr)"""
    try:
        p = subprocess.run([BIN + argv[0]] + argv[1:], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120,
                           env=dict(os.environ, **(env or {})), **kw)
        return p.returncode, p.stderr.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return "hangs", ""


def shuffle(threads, env=None, more=()):
    """What is wrong with a run, or None; and whether it gave the output that was wanted (also one that failed may have,
    where it was to be synced only)."""
    status, err = run(["shuffle"] + M + ["-T", str(threads), "-o", "out.tks", *more, "all.tks"], env)
    there = os.path.exists("out.tks")
    good = there and sha("out.tks") == WANT
    bad = None
    if status == 0:
        bad = None if good else "success with another output"
    elif status != 1 or len(err.splitlines()) != 1 or not err.startswith("shuffle: "):
        bad = "status %s: %s" % (status, err)
    elif there and not good:
        bad = "failed, and left an output: %s" % err
    if there:
        os.unlink("out.tks")
    return bad, good


def make():
    subprocess.run([sys.executable, HERE + "/make_corpus.py", "base.jsonl", "4000000", "21"], check=True)
    with open("base.jsonl", encoding="utf-8") as f:
        lines = [json.loads(x) for x in f]
    with open("big.jsonl", "w", encoding="utf-8") as f:
        for n in range(7):
            for r in lines:
                f.write(json.dumps({"text": "%d %s" % (n, r["text"])}, ensure_ascii=False) + "\n")
    for argv in (["tokenize", "-q", "-t", "bytes", "big.jsonl", "-o", "1.tks"],
                 ["decompose", "-q", "--min", "64", "--max", "1024", "--label-token", "1.tks", "-o", "2.tks"],
                 ["pack", "-q", "2.tks", "-o", "all.tks"],
                 ["shuffle", "-q", "-T", "1", "--seed", "9", "-M", "1G", "all.tks", "-o", "want.tks"]):
        status, err = run(argv)
        if status != 0:
            result(False, "make the stream", err)
            sys.exit(1)
    for f in ("base.jsonl", "big.jsonl", "1.tks", "2.tks"):
        os.unlink(f)


def loop(call, do, numbers, may_fail, always=False):
    """Fails the n-th call for each of numbers, until one run has no such call."""
    bad, fired, passed, name = [], 0, 0, errno.errorcode[do]
    for n in numbers:
        env = {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": "%s:%d" % (call, n), "SHIM_DO": str(do), "SHIM_LOG": "log"}
        if always:
            env["SHIM_ALWAYS"] = "1"
        problem, good = shuffle(4 if n % 2 and call != "thread" else 2, env)
        passed += good
        if problem:
            bad.append("%s:%d: %s" % (call, n, problem))
        if not os.path.exists("log"):
            break
        os.unlink("log")
        fired += 1
        if not good and not may_fail:
            bad.append("%s:%d: it did not go on" % (call, n))
    result(not bad and fired > 0, "%s: %s, %d times%s" % (call, name, fired, " and for good" if always else ""),
           "%d fired, %d passed\n%s" % (fired, passed, "\n".join(bad[:4])))


def faults():
    loop("thread", errno.EAGAIN, range(1, 30), may_fail=False)
    loop("thread", errno.EAGAIN, range(1, 10), may_fail=False, always=True)
    step = 1 if FULL else 7
    loop("map", errno.ENOMEM, range(1, 60), may_fail=True)
    loop("open", errno.EINVAL, range(1, 40), may_fail=True)
    loop("write", errno.EIO, range(2, 200, step), may_fail=True)
    loop("write", errno.ENOSPC, range(3, 200, 2 * step), may_fail=True, always=True)
    loop("read", errno.EIO, range(3, 400, step // 2 + 1), may_fail=True)
    loop("read", errno.EINTR, range(3, 400, step), may_fail=False)


def late():
    bad = []
    for seed in range(1, 7 if FULL else 3):
        env = {"LD_PRELOAD": SHIM + "/delay.so", "SHIM_DELAY_US": "2000", "SHIM_SEED": str(seed), "SHIM_LOG": "delays"}
        if seed % 2:
            env["SHIM_SHORT"] = "1"
        problem, good = shuffle(2 + seed % 3, env)
        if problem or not good:
            bad.append("seed %d: %s" % (seed, problem or "it failed"))
    result(not bad and os.path.exists("delays"), "threads delayed, short reads and writes", "\n".join(bad))


def output():
    for t in ("1", "2", "4"):
        with open("/dev/full", "wb") as f:
            status, err = run(["shuffle"] + M + ["-T", t, "all.tks"], stdout=f)
        result(status == 1 and err.startswith("shuffle: "), "-T %s >/dev/full" % t, "status %s: %s" % (status, err))
        p = subprocess.Popen([BIN + "shuffle"] + M + ["-T", t, "all.tks"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(3000000)
        p.stdout.close()
        try:
            status, err = p.wait(60), p.stderr.read()
        except subprocess.TimeoutExpired:
            p.kill()
            status, err = "hangs", b""
        result(status == -13 and not err, "-T %s | head" % t, "status %s: %s" % (status, err))
        status, err = run(["shuffle"] + M + ["-T", t, "--max-tokens", "5000000", "-o", "some.tks", "all.tks"])
        result(status == 0, "-T %s --max-tokens: ends before all is read back" % t, err)


def small_disk():
    """Room for the temporary file and half of the output: what was read of the one must make room for the other."""
    size = os.path.getsize("all.tks")
    os.mkdir("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % (size + size // 2), "tmpfs", "disk"], stderr=subprocess.DEVNULL).returncode:
        print("skip %s: a small disk: no tmpfs can be mounted" % os.environ.get("case_name", "shuffle_spill"))
        return
    try:
        status, err = run(["shuffle"] + M + ["--tmpdir", "disk", "-o", "disk/out", "all.tks"])
        result(status == 0 and sha("disk/out") == WANT, "temporary file and output where only one and a half have room", err)
    finally:
        subprocess.run(["umount", "disk"], check=True)


def tmpdirs():
    for d in ("/dev/shm", "/proc/self", "/nonexistent"):
        if d == "/dev/shm" and not os.access(d, os.W_OK):
            continue
        problem, good = shuffle(2, more=["--tmpdir", d])
        result(not problem and good == (d == "/dev/shm"), "--tmpdir " + d, problem)


make()
WANT = sha("want.tks")
for n_thread in (1, 2, 5, 8):
    bad_run, same = shuffle(n_thread, more=["--stats", "s.json"])
    with open("s.json", encoding="utf-8") as stats:
        spilled = json.load(stats)["spill_bytes"]
    result(same and spilled > 30 << 20, "-T %d spills %d bytes" % (n_thread, spilled), bad_run)
faults()
late()
output()
tmpdirs()
small_disk()
