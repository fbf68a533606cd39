#!/usr/bin/env python3
"""pack compared with a plain best-fit decreasing, item by item.

What it proves: 200 random trials (and more with --max-segments) give the bins of the plain algorithm in which the bin
opened first wins a tie: the same bins in the same order with the same contents, hence the same multiset of residuals.
Bins are padded or dropped as asked; domains mix only if they may; sequences that are too long are split, dropped or
refused; concat-and-chunk follows its definition; label tokens, the account and the figures are right.

Each domain of a stream is packed separately, so one run of pack is 40 trials.
check-more: whole
"""
import bisect
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run, stats  # noqa: E402

need("tokenize", "decompose", "pack", "inspect")


def best_fit(items, capacity, most=None):
    """items: (name, length). Bins, each a list of items, in the order in which they were opened."""
    bins, rooms = [], []  # rooms: sorted list of (room, number of the bin) of bins that may take more
    for name, length in sorted(items, key=lambda x: -x[1]):  # stable: equal lengths as they arrived
        at = bisect.bisect_left(rooms, (length, 0))
        if at < len(rooms):
            room, b = rooms.pop(at)
        else:
            room, b = capacity, len(bins)
            bins.append([])
        bins[b].append((name, length))
        if room > length and (most is None or len(bins[b]) < most):
            bisect.insort(rooms, (room - length, b))
    return bins


def chunks(items, capacity):
    bins, room = [], 0
    for (i, offset), length in items:
        while length:
            if not room:
                bins.append([])
                room = capacity
            n = min(length, room)
            bins[-1].append(((i, offset), n))
            offset, length, room = offset + n, length - n, room - n
    return bins


def padded(bins, capacity):
    """As Corpus.records gives them."""
    out = []
    for b in bins:
        row = [(i, offset, n) for (i, offset), n in b]
        room = capacity - sum(n for _, n in b)
        out.append(row + ([(None, 0, room)] if room else []))
    return out


def by_domain(docs, split=None, drop=None):
    """Items of each domain, domains in order of their first item; longer ones cut to `split` or left out."""
    domains = {}
    for i, text in enumerate(docs.texts):
        if drop and len(text) > drop:
            continue
        items = domains.setdefault(docs.domains[i] if docs.domains else "", [])
        for offset in range(0, len(text), split or len(text)):
            items.append(((i, offset), min(len(text) - offset, split or len(text))))
    return domains


def mixture(rng, capacity, n_domain, n, most=None):
    """A corpus of n_domain domains in random order, each with lengths of its own kind."""
    lengths, domains = [], []
    for d in range(n_domain):
        kind, top = rng.randrange(4), most or capacity
        for _ in range(rng.randrange(1, n)):
            x = rng.random()
            length = [x * top, top * x**4, top * (1 - x**2), rng.choice([3, 5, 8, 13, 21])][kind]
            lengths.append(max(1, min(top, int(length))))
            domains.append("d%d" % d)
    order = list(range(len(lengths)))
    rng.shuffle(order)
    return Corpus([lengths[i] for i in order], [domains[i] for i in order])


def compare(name, docs, capacity, args, want, pad=True):
    out, s = stats("pack", "--length", capacity, *args, stdin=docs.stream())
    got, pads = docs.records(out)
    if not pad:
        want = [b for b in want if b[-1][0] is not None]
    result(got == want, name, next(((g, w) for g, w in zip(got, want) if g != w), (len(got), len(want))))
    result(len(pads) <= 1, name + ": one padding token", pads)
    return out, s


# ---- 200 trials, and 80 with a limit on segments ----

rng = random.Random(2404)
for capacity in 16, 37, 64, 100, 257:
    docs = mixture(rng, capacity, 40, 120)
    domains = by_domain(docs)
    bins = {d: best_fit(items, capacity) for d, items in domains.items()}
    want = [b for d in domains for b in padded(bins[d], capacity)]
    out, s = compare("40 trials, bins of %d" % capacity, docs, capacity, [], want)
    rooms = sorted(b[-1][2] if b[-1][0] is None else 0 for b in want)
    records, _ = docs.records(out)
    result(sorted(b[-1][2] if b[-1][0] is None else 0 for b in records) == rooms, "residuals, bins of %d" % capacity)
    bound = sum(-(-sum(n for _, n in items) // capacity) for items in domains.values())
    tok = sum(len(t) for t in docs.texts)
    result((s["bins"], s["certificate"], s["full_bins"]) == (len(want), len(want) - bound, rooms.count(0)) and
           abs(s["fill"] - tok / (len(want) * capacity)) < 1e-8 and
           abs(s["padding_ratio"] - (len(want) * capacity - tok) / tok) < 1e-8, "figures, bins of %d" % capacity, s)
    result(s["tokens"]["padding"] == sum(rooms), "padding is counted, bins of %d" % capacity)
    for other in ["-T", "1"], ["-T", "7"], ["-M", "32M"]:
        same = run("pack", "--length", capacity, *other, stdin=docs.stream())
        result(same == out, "the same bytes with %s, bins of %d" % (" ".join(other), capacity))
for most in 1, 3:
    docs = mixture(rng, 64, 40, 60)
    want = [b for items in by_domain(docs).values() for b in padded(best_fit(items, 64, most), 64)]
    compare("40 trials, at most %d segments" % most, docs, 64, ["--max-segments", most], want)

# ---- options ----

docs = mixture(rng, 128, 5, 200)
want = padded(best_fit([x for x in [((i, 0), len(t)) for i, t in enumerate(docs.texts)]], 128), 128)
compare("--mix-domains", docs, 128, ["--mix-domains"], want)
_, s = compare("--fill drop", docs, 128, ["--fill", "drop", "--mix-domains"], want, pad=False)
lost = sum(128 - b[-1][2] for b in want if b[-1][0] is None)
result(s["tokens"]["dropped"].get("not-full") == lost and s["tokens"]["padding"] == 0, "--fill drop is counted", s["tokens"])

docs = mixture(rng, 128, 4, 100, most=700)
want = [b for items in by_domain(docs, 128).values() for b in padded(best_fit(items, 128), 128)]
_, s = compare("--long split", docs, 128, [], want)
cut = sum(len(t) > 128 for t in docs.texts)
result(abs(s["truncation_ratio"] - cut / len(docs.texts)) < 1e-8, "truncation ratio", (s["truncation_ratio"], cut))
want = [b for items in by_domain(docs, drop=128).values() for b in padded(best_fit(items, 128), 128)]
_, s = compare("--long drop", docs, 128, ["--long", "drop"], want)
result(s["sequences"]["dropped"].get("too-long") == cut, "--long drop is counted", s["sequences"])
p = run("pack", "--length", 128, "--long", "error", stdin=docs.stream(), check=False)
result(p.returncode == 1 and p.stderr.count(b"\n") == 1 and b"document" in p.stderr, "--long error", p.stderr)

want = [b for items in by_domain(docs).values() for b in padded(chunks(items, 128), 128)]
out, s = compare("--method concat", docs, 128, ["--method", "concat"], want)
result(s["certificate"] == 0, "concat: no bin too many")
compare("--method concat --fill drop", docs, 128, ["--method", "concat", "--fill", "drop"], want, pad=False)
one = Corpus([len(t) for t in docs.texts])
compare("concat of one domain", one, 100, ["--method", "concat"], padded(chunks(by_domain(one)[""], 100), 100))

# ---- past the budget: the same bins, by way of files ----

if os.environ.get("CHECK_MORE"):
    lengths = [max(1, min(48, int(rng.lognormvariate(2.5, 0.8)))) for _ in range(120000)]
    docs = Corpus(lengths, ["d%d" % rng.randrange(3) for _ in lengths])
    want = [b for items in by_domain(docs).values() for b in padded(best_fit(items, 48), 48)]
    out, s = compare("past the budget", docs, 48, ["-M", "32M"], want)
    result(s["spill_bytes"] > 0, "past the budget: it was", s["spill_bytes"])
    result(run("pack", "--length", 48, "-M", "1G", stdin=docs.stream()) == out, "past the budget: as in memory")
    want = [b for items in by_domain(docs).values() for b in padded(chunks(items, 48), 48)]
    _, s = compare("past the budget: concat", docs, 48, ["-M", "32M", "--method", "concat"], want)
    result(s["spill_bytes"] > 0, "past the budget: concat, it was", s["spill_bytes"])

# ---- behind decompose: what has a bucket's length passes, with and without label tokens ----

docs = mixture(rng, 1, 3, 150, most=900)
for label in 0, 1:
    cut = run("decompose", "--min", 64, "--max", 256, *["--label-token"] * label, stdin=docs.stream())
    pieces, _ = docs.records(cut)
    lengths = {64 + label, 128 + label, 256 + label}
    passed = [q for q in pieces if q[0][2] in lengths]
    for bin_length, args in (64, []), (256, ["--length", 256]), (100, ["--length", 100]):
        domains = {}
        for q in pieces:
            if q[0][2] not in lengths:
                items = domains.setdefault(docs.domains[q[0][0]], [])
                items.append(((q[0][0], q[0][1]), q[0][2]))
        ids = bin_length + label
        want = passed + [b for items in domains.values() for b in padded(best_fit(items, ids), ids)]
        out, s = stats("pack", *args, stdin=cut)
        name = "behind decompose%s, bins of %d" % (" --label-token" * label, bin_length)
        result(docs.records(out)[0] == want, name)
        result(all(sum(n for _, _, n in q) in lengths | {ids} for q in docs.records(out)[0]), name + ": only bucket lengths")
        result(s["passed"] == len(passed), name + ": passed")
        result(run("pack", "--no-provenance", *args, stdin=run("pack", *args, "--no-provenance", stdin=cut)) ==
               run("pack", "--no-provenance", *args, stdin=cut), name + ": packing twice is packing once")
finish()
