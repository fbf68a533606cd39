#!/usr/bin/env python3
"""decompose compared with an oracle written only from the rule (arXiv 2405.13226; DESIGN.md, Decomposition).

What it proves: about 1,000 lengths around every power of two are cut as the rule says, with and without label tokens,
for power-of-two and other buckets. Random cuts keep every invariant and are distributed as P(L) ~ 1/L (chi-square).
Threads, memory and the division of a stream into parts change no byte. Filters, tails, packed input, the account and
the paper's means are right.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run, stats  # noqa: E402

need("tokenize", "decompose", "inspect")


def greedy(length, buckets, label):
    """Lengths of the pieces of a document, the tail last (0: none)."""
    pieces, left = [], length
    while True:
        fits = [b for b in buckets if b <= left - label]
        if not fits:
            return pieces, left
        pieces.append(max(fits) + label)
        left -= max(fits) + label


def powers(low, high):
    return [2**i for i in range(64) if low <= 2**i <= high]


def by_document(records):
    cuts = {}
    for sequence in records:
        if len(sequence) != 1:
            result(False, "a piece has one segment", sequence)
        i, offset, length = sequence[0]
        cuts.setdefault(i, []).append((offset, length))
    return cuts


def contiguous(cuts, length):
    at = 0
    for offset, n in cuts:
        if offset != at:
            return False
        at += n
    return at == length


# ---- greedy ----

near = sorted({2**i + d for i in range(14 if os.environ.get("CHECK_FULL") else 11) for d in range(-64, 72) if 0 < 2**i + d})
near = near + [20000, 65535, 65536, 65537]
docs = Corpus(near)
stream = docs.stream()
cases = [(powers(256, 8192), 0, []), (powers(256, 8192), 1, ["--label-token"]),
         (powers(1, 16), 0, ["--min", 1, "--max", 16]), (powers(64, 64), 1, ["--min", 64, "--max", 64, "--label-token"]),
         ([100, 256, 300, 1000], 0, ["--buckets", "1000,100,256,300"]),
         ([100, 256, 300, 1000], 1, ["--buckets", "100,256,300,1000", "--label-token"])]
for buckets, label, args in cases:
    out, s = stats("decompose", *args, stdin=stream)
    records, _ = docs.records(out)
    cuts = by_document(records)
    bad = []
    for i, n in enumerate(near):
        pieces, tail = greedy(n, buckets, label)
        if [length for _, length in cuts[i]] != pieces + [tail] * (tail > 0) or not contiguous(cuts[i], n):
            bad.append(n)
    name = " ".join(map(str, args)) or "defaults"
    result(not bad, "greedy, %d lengths, %s" % (len(near), name), "wrong for lengths %s" % bad[:20])
    order = [sequence[0][:2] for sequence in records]
    result(order == sorted(order), "pieces in input order, " + name)
    count = {b: 0 for b in buckets}
    tails = [0, 0]
    for n in near:
        pieces, tail = greedy(n, buckets, label)
        for p in pieces:
            count[p - label] += 1
        tails[0] += tail > 0
        tails[1] += tail
    got = {b["length"]: b["sequences"] for b in s["buckets"]}
    result(got == count and [s["tails"], s["tail_tokens"]] == tails, "statistics, " + name, (got, count, tails))
    tok = sum(b * c for b, c in count.items())
    mean, context = tok / sum(count.values()), sum(c * b * (b - 1) for b, c in count.items()) / (2 * tok)
    result(abs(s["mean_length"] - mean) < 1e-6 * mean and abs(s["mean_context"] - context) < 1e-6 * context + 1e-9,
           "mean length and mean context, " + name, (s["mean_length"], mean, s["mean_context"], context))

# ---- tails and filters ----

out, s = stats("decompose", "--tail", "drop", "--min-length", 500, "--max-length", 9000, stdin=stream)
want, lost = [], {"tail": 0, "too-short": 0, "too-long": 0}
for i, n in enumerate(near):
    if n < 500 or n > 9000:
        lost["too-short" if n < 500 else "too-long"] += n
        continue
    pieces, tail = greedy(n, powers(256, 8192), 0)
    want += [(i, p) for p in pieces]
    lost["tail"] += tail
got = [(q[0][0], q[0][2]) for q in docs.records(out)[0]]
result(got == want, "--tail drop, --min-length, --max-length")
result(s["tokens"]["dropped"] == lost, "what was dropped, by reason", (s["tokens"]["dropped"], lost))
again = run("decompose", "--no-provenance", stdin=run("decompose", "--no-provenance", stdin=stream))
result(again == run("decompose", "--no-provenance", stdin=stream), "cutting twice is cutting once")

# ---- random ----

buckets = powers(4, 64)
long = [3000 + 7 * i for i in range(500 if os.environ.get("CHECK_MORE") else 150)] + [127, 128, 129, 64, 65, 3, 4, 5, 1]
docs = Corpus(long)
stream = docs.stream()
for label, args in (0, []), (1, ["--label-token"]):
    args = ["--split", "random", "--min", 4, "--max", 64] + args
    out = run("decompose", "-T", 1, *args, stdin=stream)
    cuts = by_document(docs.records(out)[0])
    bad, draws = [], {b: 0 for b in buckets}
    for i, n in enumerate(long):
        left = n
        good = contiguous(cuts[i], n)
        for _, length in cuts[i]:
            b = length - label
            if left - label >= 128:
                good &= b in buckets
                draws[b] = draws.get(b, 0) + 1
            else:
                pieces, tail = greedy(left, buckets, label)
                good &= length == (pieces + [tail])[0]
            left -= length
        if not good:
            bad.append(n)
    name = "random%s" % (" with label tokens" if label else "")
    result(not bad, name + ": pieces", "wrong for lengths %s" % bad[:20])
    total, weights = sum(draws.values()), sum(1 / b for b in buckets)
    chi = sum((draws[b] - total / b / weights)**2 / (total / b / weights) for b in buckets)
    # 4 degrees of freedom: 33.4 has a probability of 1e-6.
    result(chi < 33.4, "%s: %d draws, chi-square %.2f" % (name, total, chi), draws)
    share = [b * draws[b] for b in buckets]
    result(max(share) < 1.2 * min(share), name + ": equal tokens a bucket", share)
    for other in [["-T", "7"]] + ([["-T", "2"], ["-M", "32M"]] if os.environ.get("CHECK_MORE") else []):
        result(run("decompose", *args, *other, stdin=stream) == out, "%s: the same with %s" % (name, " ".join(other)))
    result(run("decompose", *args, "--seed", 1, stdin=stream) != out, name + ": another seed, other cuts")
    alone = docs.records(run("decompose", *args, stdin=docs.stream("--part", "1/3")))[0]
    mine = {q[0][0] for q in alone}
    result(alone == [[(i, *c)] for i in sorted(mine) for c in cuts[i]], name + ": a part is cut as the whole is")

# ---- packed input: runs of one document ----

if not os.path.exists(os.path.join(os.environ.get("BIN", "build/bin"), os.environ.get("PROGRAM_PREFIX", "") + "pack")):
    print("skip packed input: needs pack")
    finish()
docs = Corpus([30 + 7 * i % 400 for i in range(300)])
packed = run("pack", "--length", 512, stdin=docs.stream())
out, s = stats("decompose", "--accept-mismatch", "--min", 16, "--max", 64, stdin=packed)
want = []
for sequence in docs.records(packed)[0]:
    for i, offset, length in sequence:
        pieces, tail = greedy(length, powers(16, 64), 0) if i is not None else ([], 0)
        for n in pieces + [tail] * (tail > 0):
            want.append([(i, offset, n)])
            offset += n
result(docs.records(out)[0] == want, "packed input is cut document by document")
p = run("decompose", "--min", 16, "--max", 64, stdin=packed, check=False)
result(p.returncode == 1 and p.stderr.count(b"\n") == 1, "other buckets are refused without --accept-mismatch", p.stderr)
finish()
