#!/usr/bin/env python3
"""Masks that were changed behind the programs' back are noticed, wherever they lie.

What it proves: of dialogues of equal ids with other masks, the masks are exchanged; and a bit is set, or lost. In a stream
(whose frames get hashes that fit, and ENDS the count of trained tokens), in the columns of a set, in its segments, in both,
and in the work files of stages: each time a program that reads them fails, and says of what.

    check_planted.py     BIN names the folder of the programs
"""
import glob
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import xxhash
except ImportError:
    print("skip planted: needs the package xxhash")
    sys.exit(0)

BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
N = 200  # pairs of dialogues
bad = 0


def say(good, what):
    global bad
    bad += not good
    print("%s planted: %s" % ("ok" if good else "not ok", what))


def run(*argv):
    return subprocess.run([os.path.join(BIN, argv[0]), "-q", *map(str, argv[1:])], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(*argv):
    p = run(*argv)
    if p.returncode:
        raise SystemExit("not ok planted: %s: %s" % (" ".join(map(str, argv)), p.stderr.decode()))
    return p.stdout


def noticed(what, *argv):
    p = run(*argv)
    say(p.returncode == 1 and p.stderr.count(b"\n") == 1, "%s: %s%s" % (what, argv[0], "" if p.returncode else " takes it"))


# The three faults, of a list of masks (bytearrays of 0 and 1). The first two masks are of equal ids.
def exchange(masks):
    masks[0][:], masks[1][:] = masks[1][:], masks[0][:]


def flip(masks):
    masks[0][masks[0].index(0)] = 1


def drop(masks):
    masks[1][masks[1].index(1)] = 0


FAULTS = (exchange, flip, drop)


class Stream:
    """The frames of a stream of one DATA frame, not compressed."""

    def __init__(self, path):
        self.path, self.b = path, bytearray(open(path, "rb").read())
        self.at, at = {}, 0
        while at < len(self.b):
            self.at[bytes(self.b[at + 4:at + 8])] = at
            at += 64 + -(-struct.unpack_from("<Q", self.b, at + 32)[0] // 64) * 64
        p = self.at[b"DATA"] + 64
        n_seq, n_seg, n_tok, n_id = struct.unpack_from("<4Q", self.b, p)
        self.p, self.n_tok = p, n_tok
        sizes, col = [64, 4 * n_seq, 8 * n_seg, 8 * n_seg, 8 * n_seg, 8 * n_seg, 4 * n_seg, 4 * n_seg, n_id], [p]
        for n in sizes:
            col.append(col[-1] + -(-n // 64) * 64)
        self.mask = col[-1]
        segs = struct.unpack_from("<%dI" % n_seq, self.b, col[1])
        lengths = iter(struct.unpack_from("<%dQ" % n_seg, self.b, col[5]))
        self.lengths = [sum(next(lengths) for _ in range(n)) for n in segs]

    def masks(self):
        bits = [self.b[self.mask + i // 8] >> i % 8 & 1 for i in range(self.n_tok)]
        at = 0
        for n in self.lengths:
            yield bytearray(bits[at:at + n])
            at += n

    def put(self, masks):
        """Stores the masks, their number of 1s, and the hashes of both frames."""
        bits = b"".join(masks)
        for i, v in enumerate(bits):
            byte = self.mask + i // 8
            self.b[byte] = self.b[byte] & ~(1 << i % 8) | v << i % 8
        struct.pack_into("<Q", self.b, self.at[b"ENDS"] + 64 + 96, sum(bits))
        for at in (self.at[b"DATA"], self.at[b"ENDS"]):
            n = -(-struct.unpack_from("<Q", self.b, at + 32)[0] // 64) * 64
            struct.pack_into("<Q", self.b, at + 48, xxhash.xxh3_64_intdigest(bytes(self.b[at + 64:at + 64 + n])))
            struct.pack_into("<Q", self.b, at + 56, xxhash.xxh3_64_intdigest(bytes(self.b[at:at + 56])))
        open(self.path, "wb").write(self.b)


def pair(path):
    """The places of two sequences of equal ids and other masks, whose first has a 0, as inspect reads them, and all masks."""
    seen, masks, found = {}, [], None
    for i, line in enumerate(good("inspect", "--records", path).splitlines()):
        q = json.loads(line)
        masks.append(bytearray(q["mask"]))
        j = seen.setdefault(tuple(q["tokens"]), i)
        if found is None and masks[j] != masks[i]:
            found = j, i
    return found, masks


def in_stream(path, fault):
    """Plants a fault in a stream. The segments of a set have no ids: which are the two is said by `at`."""
    s = Stream(path)
    masks = list(s.masks())
    (i, j), _ = in_stream.at or pair(path)
    fault([masks[i], masks[j]])
    s.put(masks)


in_stream.at = None


def in_bytes(paths, fault, old, encode):
    """Plants a fault in files that hold both sequences, each encoded in a piece."""
    new = [bytearray(m) for m in old]
    fault(new)
    pieces = [(bytes(encode(a, k)), bytes(encode(b, k))) for k, (a, b) in enumerate(zip(old, new)) if a != b]
    files = {path: open(path, "rb").read() for path in paths}
    places = []
    for a, b in pieces:
        path = next(p for p in paths if a in files[p])
        places.append((path, files[path].index(a), b))
    for path, at, b in places:
        files[path] = files[path][:at] + b + files[path][at + len(b):]
    for path, _, _ in places:
        open(path, "wb").write(files[path])


def stream():
    for fault in FAULTS:
        shutil.copy("a.tks", "b.tks")
        in_stream("b.tks", fault)
        what = "a stream, %s" % fault.__name__
        noticed(what, "inspect", "--verify", "b.tks")
        noticed(what, "shuffle", "-f", "-o", "out.tks", "b.tks")
        noticed(what, "pack", "--length", 64, "--long", "error", "-f", "-o", "out.tks", "b.tks")


def sets(format, *more):
    good("shuffle", "--format", format, *more, "-o", "whole", "k.tks")
    good("inspect", "--verify", "whole")
    (i, j), masks = at = pair("whole")
    shards = [p for p in glob.glob("whole/*_*/**", recursive=True) if os.path.isfile(p)]
    for fault in FAULTS:
        for where in ("columns", "segments", "both"):
            shutil.rmtree("set", ignore_errors=True)
            shutil.copytree("whole", "set")
            if where != "segments":
                in_bytes([p.replace("whole", "set", 1) for p in shards], fault, [masks[i], masks[j]], lambda m, _: m)
            if where != "columns":
                in_stream.at = at
                in_stream(glob.glob("set/segments/*.tks")[0], fault)
                in_stream.at = None
            noticed("%s, %s: %s" % (format, where, fault.__name__), "inspect", "--verify", "set")
    subprocess.run(["rm", "-rf", "whole", "set"], check=True)


def work_files(program, stages, *options):
    """Plants faults in the files that scatter wrote; ids have four bytes there, and the mask is their top bit."""
    (i, j), masks = pair("a.tks")
    ids = [json.loads(line)["tokens"] for line in good("inspect", "--records", "a.tks").splitlines()]
    for stage in stages:
        good(program, "--stage", stage, "--work", "whole", *options, *([] if stage == "plan" else ["--part", "0/1", "a.tks"]))
    files = [p for p in glob.glob("whole/scatter*") if os.path.isfile(p)]
    for fault in FAULTS:
        shutil.rmtree("work", ignore_errors=True)
        shutil.copytree("whole", "work")
        in_bytes([p.replace("whole", "work", 1) for p in files], fault, [masks[i], masks[j]],
                 lambda m, k: struct.pack("<%dI" % len(m), *(t | v << 31 for t, v in zip(ids[(i, j)[k]], m))))
        noticed("work files of %s: %s" % (program, fault.__name__), program, "--stage", "gather", "--work", "work", *options,
                "--part", "0/1", "-f", "-o", "out.tks")
    shutil.rmtree("work")
    good(program, "--stage", "gather", "--work", "whole", *options, "--part", "0/1", "-f", "-o", "out.tks")
    subprocess.run(["rm", "-rf", "whole"], check=True)


def main():
    rng = random.Random(1)
    os.environ["SLUICE_CACHE_DIR"] = ""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("a.jsonl", "w") as f:
            for k in range(N):
                text = "".join(rng.choice("abcdef gh") for _ in range(40))
                for _ in range(2):
                    spans = [sorted(rng.sample(range(40), 2)) for _ in range(3)]
                    f.write(json.dumps({"text": text, "spans": spans}) + "\n")
        good("tokenize", "-t", "bytes", "--no-eos", "--spans-field", "spans", "--no-vocab", "-o", "a.tks", "a.jsonl")
        good("pack", "--length", 40, "--long", "error", "-o", "k.tks", "a.tks")
        stream()
        sets("olmo")
        sets("mds", "--compress", "none")
        sets("litdata")
        work_files("shuffle", ["scatter"], "--seed", 3)
        work_files("pack", ["count", "plan", "scatter"], "--length", 64, "--long", "error")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
