#!/usr/bin/env python3
"""pack --plan compared with the sequences that pack then writes.

What it proves: for each method, the figures of the table (bins, full bins, certificate, fill, the ratios, mean
context, attention cost) are those that the definitions in lib/pack/packing_table.h give for the sequences that pack
writes with that method: every token once, documents whole if they fit, for several domains, limits on segments, long
documents and, for concat-and-chunk, the order of the documents. A method that the table calls unsuitable is refused.
"""
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run, stats  # noqa: E402

need("tokenize", "pack", "inspect")
rng = random.Random(2407)


def measure(docs, capacity, sequences):
    """The figures of lib/pack/packing_table.h from the records themselves."""
    segments, cuts = [], {}
    for q in sequences:
        for i, _, n in q:
            if i is not None:
                segments.append(n)
                cuts[i] = cuts.get(i, 0) + 1
    tok, bins = sum(segments), len(sequences)
    bound = {}
    for i, text in enumerate(docs.texts):
        d = docs.domains[i] if docs.domains else ""
        bound[d] = bound.get(d, 0) + len(text)
    return {
        "bins": bins,
        "full_bins": sum(q[-1][0] is not None for q in sequences),
        "certificate": bins - sum(-(-n // capacity) for n in bound.values()),
        "fill": tok / (bins * capacity),
        "padding_ratio": (bins * capacity - tok) / tok,
        "truncation_ratio": sum(n > 1 for n in cuts.values()) / len(docs.texts),
        "concatenation_ratio": len(docs.texts) / bins,
        "mean_context": sum(n * (n - 1) for n in segments) / (2 * tok),
        "squares": sum(n * n for n in segments),
        "lost": sum(n for q in sequences if q[-1][0] is None for i, _, n in q if i is not None),
    }, tok


def trial(name, docs, capacity, args):
    stream = docs.stream()
    _, s = stats("pack", "--plan", "--length", capacity, *args, stdin=stream)
    squares = 0
    rows = {m["method"]: m for m in s["methods"]}
    for method in ["concat"] + sorted(set(rows) - {"concat"}):
        row = rows[method]
        if "unsuitable" in row:
            if "takes long" not in row["unsuitable"]:
                p = run("pack", "--length", capacity, *args, "--method", method, stdin=stream, check=False)
                result(p.returncode == 2, "%s: %s is refused as the table says" % (name, method), p.stderr)
            continue
        out = run("pack", "--length", capacity, *args, "--method", method, stdin=stream)
        records, _ = docs.records(out)
        want, tok = measure(docs, capacity, records)
        if tok != sum(len(t) for t in docs.texts):
            result(False, "%s: %s: every token once" % (name, method), tok)
        squares = want["squares"] if method == "concat" else squares
        if squares:
            want["attention_cost"] = want["squares"] / squares
        del want["squares"]
        bad = [(k, v, row[k]) for k, v in want.items() if not math.isclose(v, row[k], rel_tol=1e-8, abs_tol=1e-12)]
        result(not bad, "%s: %s comes out as the table says" % (name, method), bad)
        longest = max(sum(i is not None for i, _, _ in q) for q in records)
        if "--max-segments" in args:
            result(longest <= int(args[args.index("--max-segments") + 1]), "%s: %s: segments" % (name, method), longest)
    result(json.dumps(s).count('"chosen": true') == 1, name + ": one method is the chosen one")


for capacity in 1, 17, 64, 100, 300:
    lengths = [max(1, int(capacity * 1.5 * rng.random() ** rng.choice([1, 3, 6]))) for _ in range(400)]
    trial("one domain, bins of %d" % capacity, Corpus(lengths), capacity, [])
    domains = ["d%d" % rng.randrange(7) for _ in lengths]
    trial("seven domains, bins of %d" % capacity, Corpus(lengths, domains), capacity, [])
lengths = [1 + int(99 * rng.random() ** 3) for _ in range(600)]
domains = ["d%d" % rng.randrange(3) for _ in lengths]
for most in "1", "2", "3", "5":
    trial("at most %s segments" % most, Corpus(lengths, domains), 100, ["--max-segments", most])
trial("documents of many bins", Corpus([rng.randrange(1, 2000) for _ in range(100)]), 64, [])
trial("bins of which the ways are too many", Corpus([rng.randrange(1, 3000) for _ in range(100)]), 2500, [])
finish()
