#!/usr/bin/env python3
"""Work files that say something else, with their checksums right: forge.py SECONDS [SEED] [PROGRAM...]

For each program of stages a small job is run to its end; then, again and again, one file of its work folder is
changed in one or a few places (a number made large, small or another one, a number taken out or put in, sections
exchanged, counts of its tail, bytes of its parameters' text), its checksums are mended, and the stages behind it run.
Each must end with 0 or 1, with one line where it is 1, without a sanitizer's report, and within 60 s. Made for
programs with SAN=address,undefined, in the folder $BIN; needs the package xxhash. Where something is found the
folder stays, and its name is printed.
"""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../cli")
from stages import BIN
from stages_jobs import JOBS, must, prepare
from shuffle_stages import Work

LIMIT = 60


class Fault(Exception):
    pass


def run(argv, again=True):
    try:
        p = subprocess.run([BIN + argv[0]] + argv[1:], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        if again:  # the machine may have been away
            return run(argv, False)
        raise Fault("hangs: %s" % " ".join(argv))
    err = p.stderr.decode("utf-8", "replace")
    line = re.fullmatch(r"[a-z]+: .{3}.*\n", err)
    if "Sanitizer" in err or "runtime error" in err or p.returncode not in (0, 1) or (p.returncode == 1 and not line):
        raise Fault("%s\nexit status %s\n%s" % (" ".join(argv), p.returncode, err[:4000]))
    return p.returncode


def change_numbers(rng, b):
    """Bytes of a section, or of a part of the tail."""
    v = list(struct.unpack("<%dQ" % (len(b) // 8), b[:len(b) // 8 * 8]))
    rest = b[len(v) * 8:]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        what = rng.randrange(8)
        if not v:
            v.append(rng.randrange(1 << 64))
            continue
        i = rng.randrange(len(v)) if rng.random() < 0.6 else rng.randrange(min(len(v), 12))
        if what == 0:
            v[i] = rng.choice((0, 1, (1 << 64) - 1, 1 << 63, 1 << 32, (1 << 32) - 1, 1 << 40, len(v), (1 << 61) + 1))
        elif what == 1:
            v[i] = (v[i] + rng.choice((1, -1, 8, -8, 1 << 32))) % (1 << 64)
        elif what == 2:
            v[i] ^= 1 << rng.randrange(64)
        elif what == 3:
            v[i] = rng.choice(v)
        elif what == 4:
            del v[i:i + rng.choice((1, 1, 2, 5, len(v)))]
        elif what == 5:
            v[i:i] = [rng.choice(v)] * rng.choice((1, 1, 3))
        elif what == 6:
            j = rng.randrange(len(v))
            v[i], v[j] = v[j], v[i]
        else:
            v[i] = rng.randrange(1 << rng.randrange(1, 65))
    return struct.pack("<%dQ" % len(v), *v) + rest


def forge(rng, path):
    w = Work(path)
    if rng.random() < 0.8 and w.section:
        k = rng.randrange(len(w.section))
        if rng.random() < 0.1:
            j = rng.randrange(len(w.section))
            w.section[k], w.section[j] = w.section[j], w.section[k]
        else:
            w.section[k] = change_numbers(rng, w.section[k])
    elif rng.random() < 0.8:
        w.tail = w.tail[:48] + change_numbers(rng, w.tail[48:112])[:64].ljust(64, b"\0") + w.tail[112:]
    else:
        t = bytearray(w.tail)
        t[rng.randrange(len(t))] ^= 1 << rng.randrange(8)
        n_param, = struct.unpack("<Q", t[112:120])
        if n_param > 4096:
            t[112:120] = w.tail[112:120]
        w.tail = bytes(t)
    if len(w.tail) % 8:
        return
    with open(path, "wb") as f:
        f.write(w.bytes())


def clean(folder):
    for name in os.listdir(folder):
        if name not in ("good", "c.jsonl", "old.idx", "older.idx") and not re.fullmatch(r"[tdp][01]\.tks", name):
            (shutil.rmtree if os.path.isdir(name) else os.unlink)(name)


def job(name, seconds, seed):
    rng = random.Random("%s %s" % (name, seed))
    top = tempfile.mkdtemp(prefix="sluice-forge-")
    os.chdir(top)
    prepare(seed)
    steps = list(JOBS[name]())
    for _, argv in steps:
        must(argv)
    files = sorted(f for f in os.listdir("w") if b"SLUNEAR1" == open("w/" + f, "rb").read(8))
    # What the work folder is before each stage: a change comes behind the stage that wrote the file.
    os.rename("w", "good")
    end, n, refused = time.time() + seconds, 0, 0
    while time.time() < end:
        clean(top)
        victim = rng.choice(files)
        kind = victim.split(".")[0]
        at = max(i for i, (k, _) in enumerate(steps) if k == kind)
        later = {k for k, _ in steps[at + 1:]} - {kind}
        os.mkdir("w")
        for f in os.listdir("good"):
            if f.split(".")[0] not in later and not f.startswith("rows."):
                os.link("good/" + f, "w/" + f) if f != victim else shutil.copy("good/" + f, "w/" + f)
        forge(rng, "w/" + victim)
        shutil.copy("w/" + victim, "victim")
        try:
            for k, argv in steps[at + 1:]:
                n += 1
                if run(argv):
                    refused += 1
                    if rng.random() < 0.7:
                        break
        except Fault as e:
            kept = tempfile.mkdtemp(prefix="sluice-forged-") + "/job"
            shutil.copytree(top, kept)
            print("not ok forge/%s: %s/victim in the place of w/%s\n%s" % (name, kept, victim, e), flush=True)
            FOUND.append(name)
    print("ok forge/%s: %d runs, %d refused" % (name, n, refused), flush=True)
    os.chdir("/")
    shutil.rmtree(top)


FOUND = []


def main():
    seconds = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    names = sys.argv[3:] or list(JOBS)
    print("seed %d" % seed, flush=True)
    for name in names:
        job(name, seconds / len(names), seed)
    sys.exit(1 if FOUND else 0)


if __name__ == "__main__":
    main()
