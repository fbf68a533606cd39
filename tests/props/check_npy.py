#!/usr/bin/env python3
"""Files of ids compared with an oracle of a few lines, and forged headers.

What it proves: for random ids (none, few, many, only EOS; two and four bytes; with a header and without; several
files, pipes), the documents, their numbers and the histogram of the scan are those that a loop in Python finds.
Whatever bytes are changed in NumPy's header, and wherever a file is cut, the result is documents whose counts agree,
or one line and exit status 1 or 2.
check-more: whole
"""
import array
import collections
import json
import os
import random
import re
import struct
import subprocess
import tempfile

from streams import PREFIX, finish, need, result
from streams import BIN as BIN_

BIN = os.path.abspath(BIN_)

CODE = {2: "H", 4: "I"}


def call(program, *args, stdin=b""):
    p = subprocess.run([os.path.join(BIN, PREFIX + program), *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.returncode, p.stdout, p.stderr.decode(errors="replace")


def header(n, width):
    text = ("{'descr': '<u%d', 'fortran_order': False, 'shape': (%d,), }" % (width, n)).encode()
    text += b" " * (53 - (len(text) + 10) % 64 + 10) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def split(ids, eos):
    """(first, length) of each document."""
    at = 0
    for i, v in enumerate(ids):
        if v == eos:
            yield at, i + 1 - at
            at = i + 1
    if at < len(ids):
        yield at, len(ids) - at


def random_ids(rng, width):
    eos = rng.choice([0, 1, 255, 256, 50256, 65535] + [65536, 2**32 - 1] * (width == 4))
    n = rng.choice([1, 2, 31, 64, 65, 1000, 70000])
    rate = rng.choice([0, 1, 0.5, 0.02, 0.001])
    near = [eos ^ 1, eos ^ 0x100, eos ^ 0x8000, (eos + 1) % 2 ** (8 * width)]
    return eos, array.array(CODE[width], (eos if rng.random() < rate else rng.choice(near) for _ in range(n)))


def check_random(rng, trials):
    good = True
    for t in range(trials):
        width = rng.choice([2, 4])
        eos, ids = random_ids(rng, width)
        cut = rng.randrange(len(ids)) if rng.random() < 0.5 else 0  # two files
        parts = [p for p in (ids[:cut], ids[cut:]) if p]
        args = ["-q", "--eos-id", str(eos), "-T", rng.choice("123")]
        named = rng.random() < 0.5
        if not named:
            args += ["--token-bytes", str(width)]
        for i, p in enumerate(parts):
            with open("%d.npy" % i, "wb") as f:
                f.write((header(len(p), width) if named else b"") + p.tobytes())
            args.append("%d.npy" % i)
        want = [(i, a, n) for i, p in enumerate(parts) for a, n in split(p, eos)]
        rows = [json.loads(r) for r in call("inspect", "--records", *args)[1].splitlines()]
        got = [(s["source_number"], s["document"], s["length"]) for r in rows for s in r["segments"]]
        same = got == want and [v for r in rows for v in r["tokens"]] == list(ids)
        lengths = collections.Counter(n for _, _, n in want)
        call("decompose", "--plan", "--histogram", "h.csv", *args)
        csv = [tuple(map(int, r.split(","))) for r in open("h.csv").read().split()[1:]]
        same = same and csv == sorted(lengths.items())
        if len(parts) == 1 and not named:
            piped = call("inspect", "--json", *args[:-1], "-", stdin=parts[0].tobytes())[1]
            same = same and sorted(map(tuple, json.loads(piped)["lengths"])) == sorted(lengths.items())
        if not same:
            print("  trial %d: eos %d, %d ids of %d, args %s" % (t, eos, len(ids), width, args))
            good = False
    result(good, "npy: %d random files of ids" % trials)


def sound(args):
    rc, out, err = call(*args)
    if rc in (1, 2):
        return not out and re.fullmatch(r"[a-z]+: [^\n]+\n", err) is not None
    return rc == 0


def check_forged(rng, trials):
    ids = array.array("H", [5, 6, 0] * 50)
    whole = header(len(ids), 2) + ids.tobytes()
    bad = []
    for t in range(trials):
        b = bytearray(whole)
        if t % 3 == 0:
            del b[rng.randrange(len(b)):]
        else:
            for _ in range(rng.choice([1, 2, 8])):
                b[rng.randrange(128)] = rng.choice([0, 255, 10, 32, 39, 40, 41, 44, 48, 57, rng.randrange(256)])
        with open("f.npy", "wb") as f:
            f.write(b)
        for args in (["inspect", "--json"], ["inspect", "--histogram"]):
            if not sound(args + ["-q", "--eos-id", "0", "f.npy"]):
                bad.append((t, args, bytes(b[:128])))
    for b in bad[:3]:
        print("  " + repr(b))
    result(not bad, "npy: %d forged files" % trials)


need("inspect", "decompose")
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    check_random(random.Random(3), 60)
    check_forged(random.Random(4), 150)
finish()
