#!/usr/bin/env python3
"""Ids with an index (Megatron's .idx, datatrove's .ds.index and .ds.metadata) compared with an oracle, and forged.

What it proves: random documents, of sequences of random lengths, some or all of them empty, in every width, in
several files, are read as they were written, numbered by their entry. If any byte of a small index is changed, or the
index or the ids are cut anywhere, the result is documents whose counts agree, or one line and exit status 1 or 2, and
never an allocation by a count that the file states; of the bytes every seventh, in check-full each. check-more: whole
"""
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

from streams import PREFIX, finish, need, result
from streams import BIN as BIN_

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from make_index import ds, megatron, split  # noqa: E402

BIN = os.path.abspath(BIN_)
LIMIT = None if os.environ.get("SAN") else 1 << 30


def limit():
    if LIMIT:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def call(program, *args):
    p = subprocess.run([os.path.join(BIN, PREFIX + program), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, preexec_fn=limit)
    return p.returncode, p.stdout, p.stderr.decode(errors="replace")


def records(*args):
    rc, out, err = call("inspect", "--records", "-q", *args)
    rows = [json.loads(r) for r in out.splitlines()]
    return rc, [(s["source_number"], s["document"], r["tokens"]) for r in rows for s in r["segments"]]


def check_random(rng, trials):
    below = {"u8": 256, "i8": 128, "i16": 32768, "u16": 65536, "i32": 2**31, "i64": 2**32}
    good = True
    for t in range(trials):
        kind = rng.choice(list(below) + ["ds2", "ds4"])
        want, names = [], []
        for i in range(rng.choice([1, 1, 2, 5])):
            most = rng.choice([0, 1, 5, 300, 9000])
            top = below.get(kind, 2 ** (8 * int(kind[2:])) if kind[:2] == "ds" else 0)
            docs = [[rng.randrange(top) for _ in range(rng.randrange(most + 1))] for _ in range(rng.choice([0, 1, 7, 90]))]
            if kind[:2] == "ds":
                names.append("%d.ds" % i)
                ds(names[-1], docs, int(kind[2:]), meta=rng.random() < 0.5 or not any(docs))
            else:
                names.append(rng.choice(["%d", "%d.idx", "%d.bin"]) % i)
                seqs = [split(d, rng.choice([0, 1, 17])) for d in docs]
                megatron(str(i), seqs, kind, [0] * sum(map(len, seqs)) if rng.random() < 0.3 else None)
            want += [(i, n, d) for n, d in enumerate(docs) if d]
        rc, got = records("-T", rng.choice("123"), *names)
        if rc or got != want:
            print("  trial %d: %s %s: exit status %d" % (t, kind, names, rc))
            good = False
    result(good, "index: %d random sets" % trials)


def sound(args):
    rc, out, err = call(*args)
    if rc in (1, 2):
        return not out and re.fullmatch(r"[a-z]+: [^\n]+\n", err) is not None and "memory" not in err
    return rc == 0


def check_forged(what, name, files):
    """files: names, all of whose bytes are tried in check-full, else every seventh."""
    step = 1 if os.environ.get("CHECK_FULL") else 7
    bad, n = [], 0
    for file in files:
        whole = open(file, "rb").read()
        tries = [whole[:i] for i in range(0, len(whole), step)]
        for i in range(0, len(whole), step):
            for x in (1, 0x80, 0xff):
                b = bytearray(whole)
                b[i] ^= x
                tries.append(bytes(b))
        for b in tries:
            with open(file, "wb") as f:
                f.write(b)
            n += 1
            for args in (["inspect", "--json"], ["inspect", "--histogram"]):
                if not sound(args + ["-q", "-T", "1", "-M", "64M", name]):
                    bad.append((file, args, b))
        with open(file, "wb") as f:
            f.write(whole)
    for b in bad[:3]:
        print("  %r: %r" % (b, call(*b[1], "-q", name)))
    result(not bad, "index: %s: %d forged files" % (what, n))


need("inspect")
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    check_random(random.Random(3), 60)
    megatron("f", [[[1, 2], [3]], [], [[4, 5, 6, 7]], [[8]]], "u16", [0, 0, 0, 0])
    check_forged("megatron", "f.idx", ["f.idx", "f.bin"])
    ds("f.ds", [[1, 2, 3], [], [4, 5], [6]], 2)
    check_forged("ds", "f.ds", ["f.ds.index", "f.ds.metadata", "f.ds"])
finish()
