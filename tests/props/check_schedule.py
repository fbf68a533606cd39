#!/usr/bin/env python3
"""schedule --trainer generic compared with a model written only from the paper's Algorithm 1 and formats/SCHEDULE.md.

What it proves: with the same draws, every step is that of the model, over random sets, curricula, cycles, epochs,
worlds, token limits, bricks and reordering. The file agrees with its specification. Draws of buckets fit the odds
(chi-square; the bound refuses other odds). A pass takes every run once, and the ranks share it without a rest. The
end of a schedule equals the same steps of the whole. Each sequence is used, or dropped for a reason.
check-more: whole
"""
import collections
import json
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import finish, need, result, run  # noqa: E402

need("schedule")
try:
    import xxhash
    from schedulefile import digest, feistel, parse, sequence, sets
except ImportError:
    print("skip schedule: needs the package xxhash")
    sys.exit(0)

DRAW, ORDER = 0x7363686564756c65, 0x72756e6f72646572
TMP = tempfile.mkdtemp(prefix="sluice-schedule-", dir=os.environ.get("TMPDIR", "/var/tmp"))


def draw(*key):
    return xxhash.xxh3_64_intdigest(b"sludraw1" + b"".join(k.to_bytes(8, "little") for k in key))


def odds_of(curriculum, n):
    up = {"uniform": [1] * n, "linear": list(range(n, 0, -1)), "p2": [2**(n - 1 - i) for i in range(n)],
          "p100": [100**(n - 1 - i) for i in range(n)]}
    if curriculum in ("natural", "uniform"):
        return [1] * n
    if curriculum[0].isdigit():
        return [int(x) for x in curriculum.split(",")]
    how, shape = curriculum.split("-")
    return up[shape] if how == "grow" else up[shape][::-1]


def reordered(seed, epoch, bucket, r, runs):
    return feistel(r, runs, lambda i, q: draw(seed, ORDER, epoch, 4 * bucket + i, q))


def model(counts, c):
    """Algorithm 1: the steps (first, cycle, bucket), the runs of each bucket in the first epoch, and the version."""
    lengths = sorted(counts)
    odds = odds_of(c["curriculum"], len(lengths))
    per_step = [c["batch"] // n for n in lengths]
    runs = [sum(counts[n]) // p if o else 0 for n, p, o in zip(lengths, per_step, odds)]
    limit = c["tokens"] // c["batch"] if c["tokens"] else 10**9
    one = c["epochs"] == 1 or not c["epochs"] and (not c["tokens"] or limit <= sum(runs))
    version = 1 if one or c["reorder"] or c["bricks"] else 2
    steps, epoch = [], 0

    def before(i, e):  # runs of the epochs before e
        return sum(counts[lengths[i]]) * e // per_step[i] if version == 2 and runs[i] else e * runs[i]

    while len(steps) < limit and (epoch < c["epochs"] if c["epochs"] else c["tokens"] or epoch < 1):
        for cycle in range(c["cycles"]):
            here = [before(i, epoch + 1) - before(i, epoch) for i in range(len(runs))]
            subset = [[before(i, epoch) + k for k in range(cycle * r // c["cycles"], (cycle + 1) * r // c["cycles"])]
                      for i, r in enumerate(here)]
            t = 0
            while any(subset):
                live = [(len(s) if c["curriculum"] == "natural" else o) if s else 0 for s, o in zip(subset, odds)]
                x = draw(c["seed"], epoch, cycle, DRAW, t) * sum(live) >> 64
                i = 0
                while x >= live[i]:
                    x -= live[i]
                    i += 1
                r = subset[i].pop(0)
                if version == 1:
                    r -= epoch * runs[i]
                if c["reorder"] and epoch:
                    r = reordered(c["seed"], epoch, i, r, runs[i])
                steps.append((r * per_step[i], epoch * c["cycles"] + cycle, i))
                t += 1
        epoch += 1
    return steps[:limit], runs, version


def schedule(folder, c, *more):
    out, stats = os.path.join(TMP, "out"), os.path.join(TMP, "stats")
    args = ["--trainer", "generic", "--curriculum", c["curriculum"], "--seed", c["seed"], "--cycles", c["cycles"],
            "--batch-tokens", c["batch"], "--world", c["world"], "-q", "-o", out, "--stats", stats]
    args += ["--tokens", c["tokens"]] if c["tokens"] else []
    args += ["--epochs", c["epochs"]] if c["epochs"] else []
    args += ["--reorder"] if c["reorder"] else []
    run("schedule", *args, *more, folder)
    with open(stats) as f:
        return open(out, "rb").read(), json.load(f)


# ---- random schedules against the model ----

rng = random.Random(11)
wrong = {k: [] for k in "steps once uses ranks tail bricks books header threads".split()}
for trial in range(60):
    folder = os.path.join(TMP, "set%d" % trial)
    n = rng.randint(1, 6)
    low = rng.randint(2, 5)
    world = rng.choice([1, 1, 2, 3, 4, 7])
    counts = {2**(low + i): [rng.randint(0, 40 * 2**(n - i)) for _ in range(rng.randint(1, 3))] for i in range(n)}
    top = 2**(low + n - 1)
    counts[top][0] += 40 * world
    counts = {k: v for k, v in counts.items() if sum(v)}
    buckets = sets(folder, counts)
    n = len(counts)
    c = {"curriculum": rng.choice(["natural", "uniform", "grow-linear", "grow-p2", "grow-p100", "shrink-linear",
                                   "shrink-p2", "shrink-p100",
                                   ",".join(str(rng.choice([0, 1, 5, 10**15])) for _ in range(n - 1)) + ",3"]).lstrip(","),
         "seed": rng.choice([0, 1, 12345, 2**64 - 1]), "cycles": rng.randint(1, 9), "world": world,
         "batch": top * world * rng.randint(1, 3), "epochs": rng.choice([0, 1, 3]), "tokens": 0,
         "reorder": rng.random() < 0.3, "bricks": False}
    steps, runs, version = model(counts, c)
    if sum(runs) < c["cycles"]:
        continue
    if rng.random() < 0.5:
        c["tokens"] = c["batch"] * rng.randint(1, max(1, int(len(steps) * 1.5))) + rng.randint(0, c["batch"] - 1)
        steps, runs, version = model(counts, c)
    data, stats = schedule(folder, c)
    h, got = parse(data)
    name = (trial, c)
    if got != steps or h["version"] != version:
        wrong["steps"].append(name)
    again, _ = schedule(folder, c, "-T", 3)
    if again != data:
        wrong["threads"].append(name)
    # every run once a pass, in equal parts for the ranks
    passes = {}
    for k, (first, cycle, b) in enumerate(got):
        passes.setdefault(cycle // c["cycles"], []).append((b, first))
    whole = [p for p in passes.values() if len(p) == sum(runs)]
    epochs = h["epochs"] if version == 2 else 1
    every = sorted((b, r * h["buckets"][b]["per_step"]) for b in range(n) for r in range(runs[b]))
    if version == 1 and any(sorted(p) != every for p in whole) or any(len(set(p)) != len(p) for p in passes.values()):
        wrong["once"].append(name)
    # every sequence once an epoch, in version 2 as far as there are steps
    for b, row in enumerate(h["buckets"]):
        taken = [p for first, _, at in got if at == b for p in range(first, first + row["per_step"])]
        seen = {}
        for p in taken:
            seen.setdefault(p // row["sequences"], []).append(sequence(h, b, p))
        if version == 2 and (sorted(taken) != list(range(len(taken))) and len(passes) == h["epochs"] or any(
                len(set(s)) != len(s) or not 0 <= min(s) <= max(s) < row["sequences"] for s in seen.values())):
            wrong["once"].append((name, b))
        times = collections.Counter(collections.Counter(s for x in seen.values() for s in x).values())
        times[0] = row["sequences"] - sum(times.values())
        if sorted(map(tuple, stats["schedule"]["buckets"][b]["uses"])) != sorted(x for x in times.items() if x[1]):
            wrong["uses"].append((name, b))
    for b, first in set(x for p in passes.values() for x in p):
        row = h["buckets"][b]
        part = row["per_step"] // world
        mine = [range(first + r * part, first + (r + 1) * part) for r in range(world)]
        if sorted(s for m in mine for s in m) != list(range(first, first + row["per_step"])) or \
                first + row["per_step"] > row["sequences"] * epochs or row["per_step"] * row["length"] != c["batch"]:
            wrong["ranks"].append(name)
            break
    # the header and the account
    used = [sum(1 for s in got if s[2] == b) for b in range(n)]
    first_pass = [sum(1 for x in passes[0] if x[0] == b) * row["per_step"] for b, row in enumerate(h["buckets"])]
    if version == 2:
        first_pass = [min(row["sequences"], k * row["per_step"]) for k, row in zip(used, h["buckets"])]
    for b, row in enumerate(h["buckets"]):
        length, sequences, _ = buckets[b]
        if (row["length"], row["sequences"], row["used_steps"], row["runs"]) != (length, sequences, used[b], runs[b]) or \
                sequences != first_pass[b] + sum(row["dropped"].values()):
            wrong["header"].append((name, b))
    if h["digest"] != digest(buckets) or h["total_steps"] != len(got) or h["n_steps"] != len(got) or h["first_step"]:
        wrong["header"].append(name)
    for what in ("sequences", "tokens"):
        unit = [1] * n if what == "sequences" else [row["length"] for row in h["buckets"]]
        s = stats[what]
        want_in = sum(row["sequences"] * u for row, u in zip(h["buckets"], unit))
        want_out = sum(k * row["per_step"] * u for k, row, u in zip(used, h["buckets"], unit))
        want_again = want_out - sum(k * u for k, u in zip(first_pass, unit))
        if (s["in"], s["out"], s["repeated"]) != (want_in, want_out, want_again) or \
                s["in"] + s["repeated"] != s["out"] + sum(s["dropped"].values()):
            wrong["books"].append((name, what, s))
    # the tail from any step
    for k in {0, 1, len(got) - 1, len(got), rng.randint(0, len(got))}:
        tail, s = schedule(folder, c, "--from-step", k)
        th, steps_t = parse(tail)
        same = {x: th[x] for x in th if x not in ("first_step", "n_steps")} == \
            {x: h[x] for x in h if x not in ("first_step", "n_steps")}
        if steps_t != got[k:] or not same or (th["first_step"], th["n_steps"]) != (k, len(got) - k) or \
                s["sequences"]["in"] + s["sequences"]["repeated"] != s["sequences"]["out"] + \
                sum(s["sequences"]["dropped"].values()):
            wrong["tail"].append((name, k))
    # bricks: the steps of version 1, counted otherwise
    bricks, _ = schedule(folder, c, "--bricks")
    hb, steps_b = parse(bricks)
    unit = [row["unit"] for row in hb["buckets"]]
    if [(f * unit[b], cy, b) for f, cy, b in steps_b] != model(counts, {**c, "bricks": True})[0] or \
            any(u * row["length"] != max(counts) for u, row in zip(unit, hb["buckets"])) or \
            any(row["per_step"] % (u * world) for u, row in zip(unit, hb["buckets"])):
        wrong["bricks"].append(name)
    shutil.rmtree(folder)
for key, what in [("steps", "60 random schedules: every step is Algorithm 1's"),
                  ("header", "  header, digest and rows"), ("once", "  every run and sequence once a pass"),
                  ("uses", "  how often each sequence is taken"),
                  ("ranks", "  ranks are disjoint and cover the step"), ("books", "  in + repeated = out + dropped"),
                  ("tail", "  --from-step K is the whole's tail"), ("bricks", "  --bricks is version 1 in another unit"),
                  ("threads", "  the same bytes again, and with -T 3")]:
    result(not wrong[key], what, wrong[key][:2])

# ---- bucket draws against odds ----


def chi_square(seen, odds):
    total = sum(seen)
    want = [total * o / sum(odds) for o in odds]
    return sum((s - w)**2 / w for s, w in zip(seen, want))


folder = os.path.join(TMP, "large")
sets(folder, {2**i: [2**20] * 64 for i in range(6, 12)})  # nothing is used up in the steps looked at
BOUND = 22.1  # of chi-square with 5 degrees of freedom: 0.9995
seen_of = {}
for curriculum in ("uniform", "grow-linear", "grow-p2", "shrink-linear", "shrink-p2", "3,9,1,1,4,2"):
    for seed in (1, 2, 3):
        out = os.path.join(TMP, "large.out")
        run("schedule", "--trainer", "generic", "--curriculum", curriculum, "--seed", seed, "--batch-tokens", 2**15,
            "--tokens", 30000 * 2**15, "-o", out, folder)
        _, steps = parse(open(out, "rb").read())
        seen_of[curriculum, seed] = [sum(1 for s in steps if s[2] == b) for b in range(6)]
bad = [(k, v) for k, v in seen_of.items() if not chi_square(v, odds_of(k[0], 6)) < BOUND]
result(len(seen_of) == 18 and not bad, "30,000 draws fit the odds: 6 curricula, 3 seeds", bad)
other = [(k, o) for k, v in seen_of.items() for o in ("uniform", "grow-linear", "grow-p2", "shrink-p2", "3,9,1,1,4,2")
         if o != k[0] and chi_square(v, odds_of(o, 6)) < 10 * BOUND]
result(not other, "  and no other odds", other)
result(len(set(map(tuple, seen_of.values()))) == 18, "  seeds differ")

# natural: every order of the steps is as likely, so a bucket's steps lie evenly: their mean place is the middle.
folder = os.path.join(TMP, "even")
sets(folder, {64: [64000], 128: [8000], 256: [6000]})
worst = 0
for seed in range(20):
    out = os.path.join(TMP, "even.out")
    run("schedule", "--trainer", "generic", "--curriculum", "natural", "--seed", seed, "--batch-tokens", 256, "-o", out,
        folder)
    _, steps = parse(open(out, "rb").read())
    for b in range(3):
        places = [k for k, s in enumerate(steps) if s[2] == b]
        n, m = len(steps), len(places)
        sigma = ((n + 1) * (n - m) / (12 * m))**.5  # of the mean of m places out of n
        worst = max(worst, abs(sum(places) / m - (n - 1) / 2) / sigma)
result(worst < 4.2, "natural: no bucket comes earlier than another, 20 seeds", worst)
shutil.rmtree(TMP)
finish()
