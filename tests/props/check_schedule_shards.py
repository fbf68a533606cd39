#!/usr/bin/env python3
"""A trainer that knows only formats/SCHEDULE.md follows a schedule through a real shard set.

What it proves: from text to shards to a schedule, the records lead each rank to sequences of the bucket's length, to
every one of them once, and to none that the schedule leaves out; header and report name the same shards.
"""
import json
import os
import random
import shutil
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run  # noqa: E402

need("tokenize", "decompose", "shuffle", "schedule", "inspect")
try:
    from schedulefile import digest, parse, sequence
except ImportError:
    print("skip schedule on shards: needs the package xxhash")
    sys.exit(0)

TMP = tempfile.mkdtemp(prefix="sluice-follow-", dir=os.environ.get("TMPDIR", "/var/tmp"))
rng = random.Random(3)
pieces = run("decompose", "--min", 16, "--max", 128, "--label-token", "--tail", "drop",
             stdin=Corpus([rng.randint(10, 900) for _ in range(300)]).stream())
shards = os.path.join(TMP, "shards")
run("shuffle", "--seed", 5, "-o", shards, "--format", "wds", "--shard-sequences", 50, stdin=pieces)


class Bucket:
    """Sequence s of a bucket, by its manifest."""

    def __init__(self, folder):
        self.text = open(os.path.join(folder, "manifest.jsonl"), "rb").read()
        rows = [json.loads(x) for x in self.text.splitlines()]
        self.sequences = []
        for row in rows:
            with tarfile.open(os.path.join(folder, row["shard"] + ".tar")) as tar:
                ids = [json.loads(tar.extractfile(m).read()) for m in tar.getmembers()]
            assert len(ids) == row["num_sequences"]
            self.sequences += ids


bucket = {2**i: Bucket(os.path.join(shards, "D_%d" % i)) for i in range(4, 8)}
report = json.load(open(os.path.join(shards, "report.json")))
for args in (["--cycles", 3, "--seed", 1], ["--bricks"], ["--curriculum", "natural", "--epochs", 2, "--reorder"],
             ["--epochs", 3]):
    world, name = 2, " ".join(map(str, args))
    path = os.path.join(TMP, "steps")
    run("schedule", "--trainer", "generic", "--batch-tokens", 512, "--world", world, "-o", path, *args, shards)
    h, steps = parse(open(path, "rb").read())
    result(h["digest"] == digest([(n, len(b.sequences), b.text) for n, b in sorted(bucket.items())]) and
           "%016x%016x" % h["checksum"][::-1] == report["checksum"] and "%016x" % h["seal"] == report["xxh3_64"], "names its shards, " + name)
    taken, wrong = {}, []
    for k, (first, cycle, b) in enumerate(steps):
        row = h["buckets"][b]
        here, part = bucket[row["length"]].sequences, row["per_step"] // world
        for rank in range(world):
            for place in range(first * row["unit"] + rank * part, first * row["unit"] + (rank + 1) * part):
                s = sequence(h, b, place)
                epoch = cycle // h["cycles"] if h["version"] == 1 else place // row["sequences"]
                taken.setdefault((epoch, row["length"]), []).append(s)
                if len(here[s]) != row["length"] + 1:
                    wrong.append((k, s))
    result(not wrong, "  every rank gets sequences of the step's length", wrong[:3])
    bad = []
    for epoch in range(h["epochs"]):
        for row in h["buckets"]:
            n = row["sequences"] - sum(row["dropped"].values())
            seen = sorted(taken[epoch, row["length"]])
            if h["version"] == 2 and epoch + 1 == h["epochs"]:  # without the remainder
                n = row["used_steps"] * row["per_step"] - epoch * row["sequences"]
                good = len(seen) == len(set(seen)) == n
            else:
                good = seen == list(range(n))
            if not good:
                bad.append((epoch, row))
    result(not bad, "  each once a pass, but for what it says it drops", bad[:1])
    result(run("inspect", "--verify", path, shards).startswith(b"ok:"), "  inspect agrees")
shutil.rmtree(TMP)
finish()
