#!/usr/bin/env python3
"""dedup --near on real documents with planted near duplicates, against an exact join of all pairs.

What it proves: of planted pairs of each similarity, as many share a band as the formula 1-(1-s^rows)^bands says, within
three standard deviations in each bin of 0.05, for four published choices of bands and rows; with verification nothing
is dropped that is less similar than the threshold to what is kept for it; without, a share that is printed is. The
table has precision, recall and macro F1 of "has an earlier document with J >= 0.8", which the join knows.

The documents are pieces of the judges' corpus, $CORPUS elsewhere. JUDGES_FULL=1: 60 MB and 1,000 planted pairs a bin.
"""
import glob
import io
import json
import math
import os
import random
import sys
import tempfile

import numpy as np
import zstandard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../props"))
from near_oracle import words  # noqa: E402
from streams import finish, need, result, run, stats  # noqa: E402

FULL = bool(os.environ.get("JUDGES_FULL"))
MEGABYTES = 64 if FULL else 12
PAIRS = 1140 if FULL else 160  # planted for a bin
LOW, STEP, N = 0.6, 0.05, 5
CONFIGS = [(14, 8), (20, 13), (26, 11), (93, 15)]


def pieces(folder, n_byte):
    """Runs of lines, of 150 to 600 words."""
    draw, out, total = random.Random(3), [], 0
    texts = []
    for path in sorted(glob.glob(folder + "/*.jsonl.zst")):
        with open(path, "rb") as f:
            reader = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(f), encoding="utf-8")
            texts += [json.loads(line)["text"] for line in reader]
    draw.shuffle(texts)
    for text in texts:
        piece, n, want = [], 0, draw.randrange(150, 600)
        for line in text.splitlines(True):
            piece.append(line)
            n += len(line.split())
            if n >= want:
                out.append("".join(piece))
                total += len(out[-1].encode())
                piece, n, want = [], 0, draw.randrange(150, 600)
        if n:
            out.append("".join(piece))
            total += len(out[-1].encode())
        if total >= n_byte:
            break
    return out, total


class Sets:
    """Documents' n-grams as numbers: a word's is random, an n-gram's a sum of products modulo 2^64."""

    def __init__(self):
        self.random = np.random.default_rng(9)
        self.factor = self.random.integers(0, 1 << 64, N, dtype=np.uint64) | np.uint64(1)
        self.number, self.value = {}, np.zeros(0, np.uint64)

    def of(self, text):
        number = self.number
        w = np.fromiter((number.setdefault(x, len(number)) for x in words(text)), np.int64)
        if len(number) > len(self.value):
            more = self.random.integers(0, 1 << 64, max(len(number), 1 << 16), dtype=np.uint64)
            self.value = np.concatenate([self.value, more])
        v = self.value[w]
        if len(v) < N:
            return np.array([v.sum()], np.uint64) if len(v) else v
        m = len(v) - N + 1
        return np.unique(sum(v[i:i + m] * self.factor[i] for i in range(N)))


def jaccard(a, b):
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def change(text, target, draw):
    """About target similar: a run of words, or words apart, become words that are nowhere else."""
    w = text.split()
    lost = (len(w) - N + 1) * (1 - target) / (1 + target)  # n-grams
    fresh = ("q%dz" % draw.getrandbits(60) for _ in iter(int, 1))
    if draw.random() < 0.5:
        k = max(1, round(lost) - N + 1)
        at = draw.randrange(max(1, len(w) - k))
        w[at:at + k] = [next(fresh) for _ in range(k)]
    else:
        for at in draw.sample(range(0, len(w) // N), min(len(w) // N, max(1, round(lost / N)))):
            w[at * N + N // 2] = next(fresh)
    return " ".join(w)


def plant(base, sets, make, draw):
    """For each bin PAIRS copies (base, text, J), each of a base of its own."""
    order = list(range(len(base)))
    draw.shuffle(order)
    order = iter(i for i in order if len(sets[i]) >= 100)
    planted = []
    for b in range(round((1 - LOW) / STEP)):
        n = 0
        while n < PAIRS:
            i = next(order, None)
            if i is None:
                sys.exit("not ok near: too few documents to plant %d pairs a bin" % PAIRS)
            text = change(base[i], LOW + STEP * (b + draw.random()), draw)
            s = make.of(text)
            j = jaccard(sets[i], s)
            if LOW + STEP * b <= j < LOW + STEP * (b + 1):
                planted.append((i, text, s, j))
                n += 1
    draw.shuffle(planted)
    return planted


def join(sets, threshold):
    """{(k, d): J} of all pairs with J >= threshold (prefix filter: Chaudhuri, Ganti and Kaushik 2006)."""
    n = np.array([len(s) for s in sets])
    gram, doc = np.concatenate(sets), np.repeat(np.arange(len(sets)), n)
    _, inverse, count = np.unique(gram, return_inverse=True, return_counts=True)
    order = np.lexsort((inverse, count[inverse], doc))  # in each document rare n-grams first
    doc, inverse = doc[order], inverse[order]
    rank = np.arange(len(doc)) - np.repeat(np.cumsum(n) - n, n)
    prefix = n - np.ceil(threshold * n - 1e-9).astype(np.int64) + 1
    keep = (rank < prefix[doc]) & (count[inverse] > 1)
    doc, inverse = doc[keep], inverse[keep]
    order = np.lexsort((doc, inverse))
    doc, inverse = doc[order], inverse[order]
    found = []
    for distance in range(1, len(doc)):  # the pairs of a group, by their distance in it
        same = inverse[distance:] == inverse[:-distance]
        if not same.any():
            break
        k, d = doc[:-distance][same], doc[distance:][same]
        near = np.minimum(n[k], n[d]) >= threshold * np.maximum(n[k], n[d])
        found.append(np.unique(k[near] * len(sets) + d[near]))
        if len(found) > 64:
            found = [np.unique(np.concatenate(found))]
    out = {}
    for code in np.unique(np.concatenate(found)).tolist():
        k, d = divmod(code, len(sets))
        j = jaccard(sets[k], sets[d])
        if j >= threshold:
            out[k, d] = j
    return out


def dedup(path, place, *args):
    """{dropped: (kept, similarity)} and the statistics."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = os.path.join(folder, "pairs")
        _, s = stats("dedup", "--near", "-q", "-M", "4G", *args, "--pairs", pairs, "-o", "/dev/null", path)
        with open(pairs) as f:
            lines = [json.loads(line) for line in f]
    return {place[p["dropped"]["document"]]: (place[p["kept"]["document"]], p["similarity"]) for p in lines}, s


def check_bins(name, bands, rows, gone, planted, n_base):
    """Planted pairs that share a band. A copy's witness is the first document that it shares one with; where that is
    before the copy's base, or the base is not kept, nothing is known of the pair."""
    worst, sizes = 0, []
    for b in range(round((1 - LOW) / STEP)):
        want = variance = hit = n = 0
        for v, (base, _, _, j) in enumerate(planted, n_base):
            if not LOW + STEP * b <= j < LOW + STEP * (b + 1) or base in gone or gone.get(v, (base,))[0] < base:
                continue
            p = 1 - (1 - j**rows)**bands
            want += p
            variance += p * (1 - p)
            hit += gone.get(v, (-1,))[0] == base
            n += 1
        sigma = abs(hit - want) / math.sqrt(variance + 0.25)
        worst = max(worst, sigma)
        sizes.append(n)
        print("  %s: similarity %.2f to %.2f: %d of %d share a band, %.1f expected, %.1f sigma" %
              (name, LOW + STEP * b, LOW + STEP * (b + 1), hit, n, want, sigma))
    result(worst <= 3 and min(sizes) >= (1000 if FULL else 130),
           "near: %s: recall in each bin of %d pairs or more is the formula's (%.1f sigma)" % (name, min(sizes), worst))


def scores(gone, truth, n):
    """Precision, recall, and F1 averaged over "duplicate" and "not"."""
    tp = len(gone.keys() & truth)
    fp, fn = len(gone) - tp, len(truth) - tp
    tn = n - tp - fp - fn
    f1 = [2 * x / (2 * x + fp + fn) for x in (tp, tn)]
    return tp / len(gone), tp / len(truth), sum(f1) / 2


def main():
    need("tokenize", "dedup")
    folder = os.environ.get("CORPUS", os.environ.get("O", "build") + "/judges/corpus")
    if not os.path.exists(folder + "/packages.tsv"):
        print("skip near: no %s (make judges)" % folder)
        return
    draw, make = random.Random(4), Sets()
    base, n_byte = pieces(folder, MEGABYTES << 20)
    sets = [make.of(t) for t in base]
    planted = plant(base, sets, make, draw)
    texts, sets = base + [p[1] for p in planted], sets + [p[2] for p in planted]
    truth_pairs = join(sets, 0.8)
    truth = {d for _, d in truth_pairs}
    print("  %d documents of %.1f MB, %d planted; %d pairs and %d documents at or above 0.8" %
          (len(base), n_byte / 1e6, len(planted), len(truth_pairs), len(truth)))
    result(not FULL or n_byte >= 60e6, "near: enough text")
    with tempfile.TemporaryDirectory() as d:
        place, at = {}, 0
        with open(d + "/c.jsonl", "wb") as f:
            for i, t in enumerate(texts):
                place[at] = i
                at += f.write(json.dumps({"text": t}, ensure_ascii=False).encode() + b"\n")
        run("tokenize", "-t", "builtin", "-o", d + "/c.tks", d + "/c.jsonl")
        table = []
        for bands, rows in CONFIGS:
            name = "%dx%d" % (bands, rows)
            args = ["--bands", bands, "--rows", rows]
            loose, _ = dedup(d + "/c.tks", place, *args, "--no-verify")
            check_bins(name, bands, rows, loose, planted, len(base))
            strict, _ = dedup(d + "/c.tks", place, *args)
            for kind, gone in (("verified", strict), ("not", loose)):
                below = [j for _, j in gone.values() if j < 0.8]
                table.append((name, kind, len(gone), *scores(gone, truth, len(texts)), len(below) / len(gone)))
            result(all(j >= 0.8 for _, j in strict.values()), "near: %s: nothing below the threshold is dropped" % name)
            wrong = [x for x, (k, j) in strict.items() if abs(jaccard(sets[x], sets[k]) - j) > 1e-6 or k in strict]
            result(not wrong, "near: %s: for what is kept, with its similarity" % name, wrong[:5])
            result(table[-2][3] == 1, "near: %s: and every one of them is in the join" % name)
        print("  bands    check     dropped precision  recall   macro F1  below 0.8")
        for row in table:
            print("  %-8s %-9s %7d %9.4f %8.4f %9.4f %9.1f %%" % (*row[:6], 100 * row[6]))
        result(min(r[6] for r in table if r[1] == "not") > 0, "near: without verification some are below the threshold")
    finish()


main()
