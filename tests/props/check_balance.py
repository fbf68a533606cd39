#!/usr/bin/env python3
"""pack --balance compared with its definition (lib/pack/balance.h), sequence by sequence.

What it proves: the output has the sequences of the unbalanced stream, each once. It consists of whole steps of one
length, window by window in order of arrival, then of the sequences that make no step. The steps, and the sequences of
each rank, are those that dealing gives (dealt here by a plain program). Their order depends only on the seed. The
figures in --stats are those of the output. Neither threads nor memory change a byte.
check-more: whole
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run, stats  # noqa: E402

need("tokenize", "decompose", "pack", "inspect")


def deal(cost, n_step, ranks, per_rank):
    """Steps, each a list of ranks, each a list of numbers of sequences."""
    bundles = [[0, i, []] for i in range(n_step * ranks)]
    for i in sorted(range(len(cost)), key=lambda i: (-cost[i], i)):
        b = min((b for b in bundles if len(b[2]) < per_rank), key=lambda b: (b[0], b[1]))
        b[0] += cost[i]
        b[2].append(i)
    bundles.sort(key=lambda b: (-b[0], b[1]))
    steps = [bundles[s * ranks:(s + 1) * ranks] for s in range(n_step)]
    for step in steps:
        for _ in range(4 * ranks if per_rank > 1 else 0):
            hi = max(step, key=lambda b: b[0])
            lo = min(step, key=lambda b: b[0])
            apart, best = hi[0] - lo[0], None
            for x in hi[2]:
                for y in lo[2]:
                    d = cost[x] - cost[y]
                    if 0 < d < apart and (best is None or abs(2 * d - apart) < best[0]):
                        best = abs(2 * d - apart), x, y, d
            if best is None:
                break
            _, x, y, d = best
            hi[2][hi[2].index(x)], lo[2][lo[2].index(y)] = y, x
            hi[0] -= d
            lo[0] += d
            # the sequences of a rank from costly to cheap; where costs are equal it is the costs that are compared
            hi[2].sort(key=lambda i: -cost[i])
            lo[2].sort(key=lambda i: -cost[i])
    return [[sorted(b[2]) for b in step] for step in steps]


def expected(records, ranks, per_rank, window, a, b):
    """The output as a list of parts: a window is a list of steps, the remainder a list of records."""
    cost = [sum(a * n + (b * n * n if i is not None else 0) for i, _, n in q) for q in records]
    waiting, parts = {}, []

    def flush(length, of):
        size = ranks * of
        rows = waiting[length]
        n_step = len(rows) // size
        full = rows[:n_step * size]
        waiting[length] = rows[n_step * size:]
        if n_step:
            steps = deal([cost[i] for i in full], n_step, ranks, of)
            parts.append(([[[full[i] for i in rank] for rank in step] for step in steps], of, full))

    for i, q in enumerate(records):
        length = sum(n for _, _, n in q)
        of = per_rank(length)
        waiting.setdefault(length, []).append(i)
        if len(waiting[length]) == window(of) * ranks * of:
            flush(length, of)
    for length in sorted(waiting):
        flush(length, per_rank(length))
    return parts, [i for length in sorted(waiting) for i in waiting[length]], cost


def ratios(cost, steps):
    out = []
    for step in steps:
        loads = [sum(cost[i] for i in rank) for rank in step]
        out.append((max(loads), sum(loads) / len(loads)))
    return out


def figures(pairs):
    each = [m / e for m, e in pairs]
    return [sum(each) / len(each), max(each), sum(m for m, _ in pairs) / sum(e for _, e in pairs)] if each else [1, 1, 1]


def trial(name, stream, docs, ranks, args, per_rank, window, a=0, b=1, pack=()):
    plain, _ = docs.records(run("pack", *pack, stdin=stream))
    args = ["--balance", ranks, *args, *pack]
    out, s = stats("pack", *args, stdin=stream)
    got, _ = docs.records(out)
    parts, rest, cost = expected(plain, ranks, per_rank, window, a, b)
    at, good, levels, why = 0, True, [], ""
    by_costs = lambda steps: sorted(sorted(tuple(sorted(cost[i] for i in r)) for r in step) for step in steps)
    number = {}
    for i, q in enumerate(plain):
        number.setdefault(tuple(q), []).append(i)
    for q in got:
        if not number.get(tuple(q)):
            result(False, name + ": the same sequences", q)
            return out
    order = [number[tuple(q)].pop(0) for q in got]
    arrival = []
    for steps, of, full in parts:
        n = len(full)
        mine = order[at:at + n]
        cut = [[mine[(s_ * ranks + r) * of:(s_ * ranks + r + 1) * of] for r in range(ranks)] for s_ in range(len(steps))]
        arrival += [[full[(s_ * ranks + r) * of:(s_ * ranks + r + 1) * of] for r in range(ranks)]
                    for s_ in range(len(steps))]
        if good and (sorted(mine) != sorted(full) or by_costs(cut) != by_costs(steps) or
                     any(r != sorted(r) for step in cut for r in step)):
            good, why = False, (cut, steps)
        levels += cut
        at += n
    result(good, name + ": windows and steps", why)
    result(order[at:] == rest, name + ": the remainder")
    x = s["balance"]
    want = figures(ratios(cost, arrival)) + figures(ratios(cost, levels))
    have = [x[k][w] for k in ("before", "after") for w in ("mean", "worst", "overall")]
    result(all(abs(g - w) < 1e-5 for g, w in zip(have, want)) and x["steps"] == len(levels) and
           x["remainder"] == len(rest), name + ": figures", (x, want))
    result(not levels or want[5] <= want[2] + 1e-9, name + ": no worse than before", want)
    for other in ["-T", "1"], ["-T", "7"], ["-M", "64M"]:
        result(run("pack", *args, *other, stdin=stream) == out, name + ": the same bytes with " + " ".join(other))
    return out


rng = random.Random(2503)
default = lambda of: max(8, 64 // of)
lengths = [max(1, min(256, int(rng.lognormvariate(4, 1)))) for _ in range(4000)]
docs = Corpus(lengths)
whole = docs.stream()
one = trial("3 ranks", whole, docs, 3, [], lambda l: 1, default, pack=["--length", "256"])
two = run("pack", "--balance", 3, "--length", 256, "--seed", 1, stdin=whole)
result(one != two and sorted(docs.records(one)[0]) == sorted(docs.records(two)[0]), "another seed: another order")
trial("windows of 2 steps", whole, docs, 4, ["--balance-window", 2], lambda l: 1, lambda of: 2, pack=["--length", "256"])
trial("5 sequences a rank", whole, docs, 4, ["--balance-sequences", 5, "--balance-window", 3], lambda l: 5, lambda of: 3,
      pack=["--length", "256"])
trial("a cost with both parts", whole, docs, 2, ["--balance-cost", "300,1", "--balance-sequences", 2], lambda l: 2, default,
      300, 1, pack=["--length", "256"])
trial("one rank", whole, docs, 1, [], lambda l: 1, default, pack=["--length", "256"])
trial("more ranks than sequences", whole, docs, 2000, ["--balance-window", 8], lambda l: 1, lambda of: 8, pack=["--length", "256"])
cut = run("decompose", "--min", 16, "--max", 128, stdin=whole)
trial("buckets", cut, docs, 3, ["--balance-sequences", 2, "--balance-window", 5], lambda l: 2, lambda of: 5)
trial("tokens of a step", cut, docs, 2, ["--balance-tokens", 1024], lambda l: 1024 // l // 2, default)
label = run("decompose", "--label-token", "--min", 16, "--max", 128, stdin=whole)
trial("label tokens", label, docs, 2, ["--balance-tokens", 512], lambda l: 512 // (l - 1) // 2, default)
finish()
