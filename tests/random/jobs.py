#!/usr/bin/env python3
"""Random jobs, each run in several ways that must give the same.

    jobs.py [--seed S] [--jobs N] [--seconds N] [--other DIR [--strict-messages]] [--only I] [--keep DIR] [-j N]

A job is a random corpus (inputs.py) and random programs with random options (draws.py). It is run program by program
with one thread and much memory, and then with more threads and little memory, as one pipe, in parts and stages
(parts.py), in one process, and with --other by the programs of another build in DIR: outputs must be the same bytes, statuses the
same, books must balance, one program's "in" be the last one's "out", nothing may stay in --tmpdir, and a failure is
one line and status 1 or 2. With --other options that only one of the two builds knows are left out.

The programs are those of $BIN. Job I of seed S is the same for every N. A job that fails is made smaller while it
still fails; the line "not ok" names it, and a shell script that stands alone shows it. Messages that differ from the other
build's are printed, and are a failure with --strict-messages alone.
Prints "ok", "not ok" and "# " lines; exit 1 if anything failed.
"""
import argparse
import base64
import copy
import io
import json
import multiprocessing
import os
import random
import shutil
import sys
import tarfile
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import draws  # noqa: E402
import inputs  # noqa: E402
from parts import Parts  # noqa: E402
from ways import BIG, Bad, Build, Files, Job, Line, Pipe  # noqa: E402

WAYS = ["small", "pipe", "line", "parts", "other"]
SHRINK_S = 40


def job_of(seed, i):
    rng = random.Random("%s/%d" % (seed, i))
    return draws.job(rng, inputs.draw(rng))


def all_ways(j, ways):
    """Runs the job of `j` in all these ways, beside the plainest."""
    job, base = j.job, Files(j, "base", 1, BIG, j.build)
    base.run()
    j.base = base
    j.look(base)
    for name in ways:
        if name in ("pipe", "line"):
            (Pipe if name == "pipe" else Line)(j, name, job["threads"], BIG, j.build).run()
        elif name == "parts":
            Parts(j, name, 1, BIG, j.build).run()
        elif name == "small" or j.other:
            way = Files(j, name, *((job["threads"], job["memory"], j.build) if name == "small" else (1, BIG, j.other)))
            way.run()
            j.compare(base, way)
        shutil.rmtree(name, ignore_errors=True)


def attempt(job, ways, args, folder):
    """Runs it in an empty folder: the fault or None, and the Job."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    here, j, bad = os.getcwd(), None, None
    os.chdir(folder)
    try:
        j = Job(job, args.build, args.other)
        all_ways(j, ways)
    except Bad as b:
        bad = b
    except Exception:  # of the driver itself, or a report that cannot be understood
        bad = Bad("driver", traceback.format_exc())
    finally:
        os.chdir(here)
    return bad, j


# ---- a failure, made smaller ----

def smaller(job, ways):
    """Jobs a little smaller than this, with their ways."""
    for w in ways if len(ways) > 1 else []:
        yield job, [w]
    if ways and len(ways) == 1:
        yield job, []
    c = job["corpus"]
    for n in (c["bytes"] // 10, c["bytes"] // 2):
        yield dict(job, corpus=dict(c, bytes=n)), ways
    if c["files"] > 1:
        yield dict(job, corpus=dict(c, files=1)), ways
    if c["codec"]:
        yield dict(job, corpus=dict(c, codec=None)), ways
    for k in reversed(range(len(job["steps"]))):
        if job["steps"][k]["program"] != "tokenize":
            yield dict(job, steps=job["steps"][:k] + job["steps"][k + 1:]), ways
    for k, step in enumerate(job["steps"]):
        for g in range(len(step["groups"])):
            less = copy.deepcopy(job)
            del less["steps"][k]["groups"][g]
            yield less, ways
    for key, least in (("parts", 1), ("parts", 2), ("ranges", 1), ("threads", 1), ("threads", 2), ("again", False)):
        if job[key] > least:
            yield dict(job, **{key: least}), ways


def shrink(job, ways, bad, args, folder):
    """The smallest job found in SHRINK_S that fails in the same way."""
    end, found = time.time() + SHRINK_S, True
    while found and time.time() < end:
        found = False
        for less, w in smaller(job, ways):
            b = attempt(less, w, args, folder)[0]
            if b and b.kind == bad.kind:
                job, ways, bad, found = less, w, b, True
                break
            if time.time() > end:
                break
    return job, ways


def script(path, name, job, bad, log, folder):
    """A shell script with the corpus and the commands."""
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w:xz") as z:
        for given in ("in", "side", "list"):
            if os.path.exists(os.path.join(folder, given)):
                z.add(os.path.join(folder, given), given)
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n# Job %s: %s\n# %s\n" % (name, json.dumps(job, ensure_ascii=True), str(bad).replace("\n", "\n# ")))
        f.write('BIN=${BIN:?folder of the programs} OTHER=${OTHER:-$BIN} SLUICE_CACHE_DIR=\nexport SLUICE_CACHE_DIR\n')
        f.write('cd "$(mktemp -d)" && pwd && mkdir tmp base small pipe parts other && base64 -d <<\'EOF\' | tar xJ\n')
        f.write(base64.encodebytes(b.getvalue()).decode() + "EOF\nset -x\n" + "\n".join(log) + "\n")


def one(task):
    """A worker: runs a job, and if it fails makes it smaller and writes the script."""
    i, args = task
    if time.time() > args.end:
        return None
    name, folder = "%s/%d" % (args.seed, i), os.path.join(args.folder, str(i))
    job = job_of(args.seed, i)
    bad, j = attempt(job, WAYS, args, folder)
    repro = None
    if bad:
        first = bad
        job, ways = shrink(job, WAYS, bad, args, folder)
        bad, less = attempt(job, ways, args, folder)
        if bad is None:  # it does not fail each time
            bad, job = first, job_of(args.seed, i)
        repro = os.path.join(args.keep, "job-%s-%d.sh" % (args.seed, i))
        os.makedirs(args.keep, exist_ok=True)
        script(repro, name, job, bad, less.log if less else [], folder)
    shutil.rmtree(folder, ignore_errors=True)
    return (name, bad and str(bad), repro) + ((j.count, j.refused, j.messages) if j else ({}, [], []))


def options(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", default="1")
    p.add_argument("--jobs", type=int)
    p.add_argument("--seconds", type=float)
    p.add_argument("--only", type=int, help="that job alone")
    p.add_argument("--other", help="programs of another build")
    p.add_argument("--strict-messages", action="store_true")
    p.add_argument("--keep", default=os.path.join(os.environ.get("O", "build"), "random"), help="folder of the scripts")
    p.add_argument("-v", action="store_true", help="why steps were refused")
    p.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    args = p.parse_args(argv)
    if args.jobs is None:
        args.jobs = 10**9 if args.seconds else 320
    args.build = Build(os.environ.get("BIN", "build/bin"), os.environ.get("PROGRAM_PREFIX", ""))
    args.other = Build(args.other) if args.other else None
    args.end = time.time() + (args.seconds or 10**9)
    args.keep = os.path.abspath(args.keep)
    return args


def room_for_jobs():
    """In memory where there is enough: each output is synced to its disk."""
    if "TMPDIR" in os.environ:
        return os.environ["TMPDIR"]
    shm = "/dev/shm"
    if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 4 << 30:
        return shm
    return "/var/tmp"


def main(argv):
    args = options(argv)
    if args.other and args.build.version() != args.other.version():
        sys.exit("jobs.py: the other build is %s, and this %s: make it with today's VERSION"
                 % (args.other.version().strip(), args.build.version().strip()))
    args.folder = tempfile.mkdtemp(prefix="sluice-random.", dir=room_for_jobs())
    began, n, failed, differ, total = time.time(), 0, 0, 0, {}
    try:
        room = threading.Semaphore(2 * args.j)  # the pool would take all tasks at once

        def tasks():
            for i in [args.only] if args.only is not None else range(args.jobs):
                room.acquire()
                yield i, args

        with multiprocessing.Pool(args.j) as pool:
            for r in pool.imap_unordered(one, tasks()):
                room.release()
                if r is None:
                    break
                name, bad, repro, count, refused, messages = r
                n += 1
                for key, v in count.items():
                    total[key] = total.get(key, 0) + v
                for m in refused if args.v else []:
                    print("# job %s, refused: %s" % (name, m))
                for m in messages:
                    differ += 1
                    print("# job %s, another message: %s" % (name, m.replace("\n", "\n#   ")))
                if bad:
                    failed += 1
                    print("not ok random: job %s: %s: sh %s" % (name, bad.split("\n")[0][:200], repro), flush=True)
                    print("\n".join("#   " + line for line in bad.splitlines()[:12]), flush=True)
            pool.terminate()
    finally:
        shutil.rmtree(args.folder, ignore_errors=True)
    print("# %d jobs in %.0f s: %s" % (n, time.time() - began, ", ".join("%s %d" % kv for kv in sorted(total.items()))))
    if args.strict_messages and differ:
        failed += 1
        print("not ok random: %d messages are others" % differ)
    if not failed and n:
        print("ok random: %d jobs of seed %s in all ways" % (n, args.seed))
    sys.exit(1 if failed or not n else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
