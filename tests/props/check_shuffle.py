#!/usr/bin/env python3
"""shuffle is a random permutation, as far as statistics can tell.

What it proves: over many seeds every document is equally likely at every position (chi-square), neighbours of the
input are neighbours of the output as often as by chance, and two seeds give independent orders (rank correlation,
inversions). Records with equal contents but other positions move independently. All seeds are fixed, so the test
cannot fail by chance.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import Corpus, finish, need, result, run  # noqa: E402

need("tokenize", "shuffle", "inspect")


def order(corpus, stream, seed):
    out = run("shuffle", "--seed", seed, stdin=stream)
    return [s[0][0] for s in corpus.records(out)[0]]


def chi_square(table, expected):
    return sum((x - expected) ** 2 / expected for row in table for x in row)


def positions(n=100, seeds=200, bins=10):
    corpus = Corpus([24] * n)
    stream = corpus.stream("--no-vocab")
    table = [[0] * bins for _ in range(bins)]
    forward = fixed = 0
    for seed in range(seeds):
        o = order(corpus, stream, seed)
        if sorted(o) != list(range(n)):
            result(False, "seed %d: every document comes out once" % seed)
        for place, document in enumerate(o):
            table[document * bins // n][place * bins // n] += 1
        forward += sum(b == a + 1 for a, b in zip(o, o[1:]))
        fixed += sum(place == document for place, document in enumerate(o))
    # Rows and columns are fixed sums: (bins - 1)^2 degrees of freedom; five standard deviations.
    x, df = chi_square(table, n * seeds / bins**2), (bins - 1) ** 2
    result(abs(x - df) < 5 * (2 * df) ** 0.5, "places are uniform: chi-square %.1f, %d degrees of freedom" % (x, df))
    for what, got in ("neighbours that stay neighbours", forward), ("documents that stay in place", fixed):
        result(abs(got - seeds) < 5 * seeds**0.5, "%s: %d, expected about %d" % (what, got, seeds))


def inversions(o):
    """Pairs out of order, by merge sort."""
    if len(o) < 2:
        return 0, o
    a, left = inversions(o[:len(o) // 2])
    b, right = inversions(o[len(o) // 2:])
    n, merged, i, j = a + b, [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            n += len(left) - i
            j += 1
    return n, merged + left[i:] + right[j:]


def independence(n=8000):
    corpus = Corpus([20] * n)
    stream = corpus.stream("--no-vocab")
    orders = [order(corpus, stream, seed) for seed in (0, 1, 2, 2**63)]
    orders.insert(0, list(range(n)))
    sigma_inversions = (n * (n - 1) * (2 * n + 5) / 72) ** 0.5
    worst_r = worst_i = 0.0
    mean = (n - 1) / 2
    var = (n * n - 1) / 12
    for i, a in enumerate(orders):
        for b in orders[i + 1:]:
            place = [0] * n
            for k, document in enumerate(b):
                place[document] = k
            moved = [place[document] for document in a]
            r = sum((k - mean) * (m - mean) for k, m in enumerate(moved)) / n / var
            worst_r = max(worst_r, abs(r) * n**0.5)
            worst_i = max(worst_i, abs(inversions(moved)[0] - n * (n - 1) / 4) / sigma_inversions)
    result(worst_r < 5, "orders of different seeds do not correlate: at most %.1f standard deviations" % worst_r)
    result(worst_i < 5, "nor do they agree on pairs: at most %.1f standard deviations" % worst_i)


def equal_contents(n=300):
    corpus = Corpus([10] * n)
    corpus.texts = ["same texts"] * n
    line = b'{"text": "same texts"}\n'
    corpus.jsonl = line * n
    corpus.place = {i * len(line): i for i in range(n)}
    o = order(corpus, corpus.stream("--no-vocab"), 4)
    result(sorted(o) == list(range(n)) and sum(b == a + 1 for a, b in zip(o, o[1:])) < 10,
           "documents with the same text move on their own")


positions()
independence(8000 if os.environ.get("CHECK_MORE") else 4000)
equal_contents()
finish()
