#!/usr/bin/env python3
"""dedup --near compared with an exact join of all pairs of texts, on a few thousand real documents.

What it proves: with so many bands that every similar pair shares one, dedup drops exactly the documents that the
definition drops, with the same witnesses and similarities, at several thresholds. With the bands that people use,
each dropped document is at or above the threshold to its witness; the witness is kept, comes earlier, and is the
first that shares a band, as far as the larger run can tell; and the number of similar documents that stay fits the
probability of the bands. --audit over all documents counts the pairs of the join, bin by bin. --no-verify drops pairs
below the threshold.
"""
import glob
import json
import os
import random
import sys
import sysconfig
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from near_oracle import SCRIPTS, changed, chars, grams, greedy, pairs_of, script_text, similarity, words  # noqa: E402
from streams import finish, need, result, run, stats  # noqa: E402

need("tokenize", "dedup", "inspect")
BINS = 20
MORE = os.environ.get("CHECK_MORE")


def documents(n):
    """Pieces of Python's own library, in random order; a third is a changed copy of another, a little or a lot."""
    draw = random.Random(16)
    pieces = []
    for path in sorted(glob.glob(sysconfig.get_path("stdlib") + "/*.py")):
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines(True)
        at = 0
        while at < len(lines):
            k = draw.randrange(5, 80)
            pieces.append("".join(lines[at:at + k]))
            at += k
        if len(pieces) > n:
            break
    texts = pieces[:n * 2 // 3]
    vocabulary = sorted({w for t in texts[:200] for w in t.split()})
    while len(texts) < n - 40:
        word = draw.choice(texts).split()
        if len(word) < 8:
            continue
        for _ in range(draw.choice([0, 1, 1, 2, 3, 5, 8])):
            i = draw.randrange(len(word))
            word[i:i + draw.choice([0, 1, 1, 6])] = [draw.choice(vocabulary)]
        text = " ".join(word)
        texts.append(draw.choice([text, text, text.upper(), text.replace(" ", "\n\t ")]))
    texts += ["", " \n", "one", "One ", "four words are here", "four words are  HERE", "Straße ΣΑΣ İ", "straße σασ i̇",
              "a\x1cb c d e f", "a\x1cb c d e f\u2003", "ΑΣ Σ", "ας ς"] + [""] * 28
    for name in SCRIPTS:
        for _ in range(8):
            text = script_text(draw, name, draw.randrange(50, 400))
            texts += [text] + [changed(draw, name, text, share) for share in (0.005, 0.02, 0.03, 0.05)]
    draw.shuffle(texts)
    return texts


def stream_of(texts):
    place, lines, at = {}, [], 0
    for i, text in enumerate(texts):
        line = json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n"
        place[at] = i
        at += len(line)
        lines.append(line)
    return run("tokenize", "-t", "builtin", "--format", "jsonl", stdin=b"".join(lines)), place


def dedup(stream, place, *args):
    """(numbers of what is left, {dropped: (kept, similarity)}, statistics)."""
    with tempfile.TemporaryDirectory() as d:
        pairs = os.path.join(d, "pairs")
        out, s = stats("dedup", "--near", "-q", *args, "--pairs", pairs, stdin=stream)
        with open(pairs) as f:
            lines = [json.loads(line) for line in f]
    left = [place[json.loads(line)["segments"][0]["document"]]
            for line in run("inspect", "--records", "-", stdin=out).splitlines()]
    gone = {place[p["dropped"]["document"]]: (place[p["kept"]["document"]], p["similarity"]) for p in lines}
    return left, gone, s


def by_char():
    """--unit char: each code point is a word."""
    draw = random.Random(8)
    texts = [script_text(draw, name, 300) for name in SCRIPTS for _ in range(4)]
    texts += [changed(draw, name, texts[4 * i + k], share) for i, name in enumerate(SCRIPTS) for k in range(4) for share in (0.003, 0.01)]
    stream, place = stream_of(texts)
    sets = [grams(chars(t), 20) for t in texts]
    left, gone, _ = dedup(stream, place, "--unit", "char", "--ngram", "20", "--bands", "300", "--rows", "4")
    want = greedy(sets, pairs_of(sets, 8, 10))
    result({d: (w[0], similarity(*w[1:])) for d, w in want.items()} == gone and len(gone) > 20,
           "characters: the %d documents of the definition go" % len(want), sorted(gone.keys() ^ want.keys())[:10])
    result(left == [d for d in range(len(texts)) if d not in want], "characters: the rest stays")


def recall():
    """Of copies in scripts without spaces as many share a band as 1-(1-s^8)^14 says, within two standard deviations."""
    draw, texts, chance = random.Random(20), [], {}
    for name in ("Han", "kana", "Thai", "Khmer"):
        for i in range(400):
            text = "".join(draw.choices(SCRIPTS[name][0] + SCRIPTS[name][1], k=300))
            texts += [text, changed(draw, name, text, draw.choice([0.004, 0.01, 0.02, 0.03]))]
            a, b = (grams(words(t)) for t in texts[-2:])
            chance[len(texts) - 1] = (name, 1 - (1 - (len(a & b) / len(a | b))**8)**14)
    stream, place = stream_of(texts)
    _, gone, _ = dedup(stream, place, "--no-verify")
    for name in ("Han", "kana", "Thai", "Khmer"):
        p = {d: q for d, (of, q) in chance.items() if of == name}
        found, want, sigma = sum(d in gone for d in p), sum(p.values()), sum(q * (1 - q) for q in p.values())**0.5
        result(abs(found - want) <= 2 * sigma and sigma > 3, "%s: %d of 400 copies share a band, %.1f +- %.1f by the formula" % (name, found, want, sigma))


def main():
    texts = documents(3000 if MORE else 2000)
    full = [t for t in texts if t]  # tokenize drops empty texts
    stream, place = stream_of(texts)
    numbers = {i: k for k, i in enumerate(i for i, t in enumerate(texts) if t)}
    place = {at: numbers[i] for at, i in place.items() if i in numbers}
    sets = [grams(words(t)) for t in full]
    everything = pairs_of(sets, 1, 2)
    wide = ["--bands", "300", "--rows", "4", "--band-cap", "100000"]  # J = 0.5: missed with 4e-9

    for num, den in ((8, 10), (6, 10), (95, 100), (1, 2)) if MORE else ((8, 10), (1, 2)):
        pairs = {d: [p for p in ps if p[1] * den >= p[2] * num] for d, ps in everything.items()}
        want = greedy(sets, pairs)
        left, gone, s = dedup(stream, place, *wide, "--threshold", num / den)
        what = "threshold %g, every pair in a band: " % (num / den)
        result(gone.keys() == want.keys(), what + "the %d documents of the definition go" % len(want),
               sorted(gone.keys() ^ want.keys())[:10])
        wrong = [d for d in gone if d in want and (want[d][0], similarity(*want[d][1:])) != gone[d]]
        result(not wrong, what + "for the same witnesses", [(d, gone[d], want[d]) for d in wrong[:5]])
        result(left == [d for d in range(len(full)) if d not in want], what + "the rest stays, in order")
        result(len(want) > 150 and s["capped_documents"] == 0, what + "enough to see, and no cap")

    sure = greedy(sets, {d: [p for p in ps if 10 * p[1] >= 8 * p[2]] for d, ps in everything.items()})
    exact = {(d, k): (c, u) for d, ps in everything.items() for k, c, u in ps}
    for bands, rows in ((14, 8), (20, 13)) if MORE else ((14, 8),):
        left, gone, s = dedup(stream, place, "--bands", bands, "--rows", rows)
        what = "%dx%d: " % (bands, rows)
        bad = [d for d, (k, j) in gone.items() if k in gone or k >= d or (d, k) not in exact
               or similarity(*exact[d, k]) != j or exact[d, k][0] * 10 < exact[d, k][1] * 8]
        result(not bad, what + "what goes is similar enough to a kept one before it", [(d, gone[d]) for d in bad[:5]])
        # A kept k' before the witness that is as similar can only have been missed by every band.
        kept = set(left)
        missed = [(c / u) for d in range(len(full)) for k, c, u in everything.get(d, ())
                  if 10 * c >= 8 * u and k in kept and (d in kept or k < gone[d][0])]
        chance = sum((1 - (c / u)**rows)**bands for ps in everything.values() for k, c, u in ps if 10 * c >= 8 * u)
        result(len(missed) <= chance + 5 * chance**0.5 + 1,
               what + "%d pairs missed, no more than bands may miss (%.1f)" % (len(missed), chance), missed[:10])
        result(len(gone) >= 0.9 * len(sure), what + "most of what is similar goes")

    by_char()
    if MORE:
        recall()

    left, gone, s = dedup(stream, place, *wide, "--audit=%d" % len(full))
    audit = s["audit"]
    bins = [0] * BINS
    for ps in everything.values():
        for _, c, u in ps:
            if c != u:
                bins[min(BINS - 1, BINS * c // u)] += 1
    result(audit["pairs_by_similarity"][10:] == bins[10:], "the audit of all documents counts the pairs of the join",
           (audit["pairs_by_similarity"], bins))
    result(audit["pairs"] == sum(10 * c >= 8 * u and c != u for ps in everything.values() for _, c, u in ps),
           "and those at or above the threshold")
    result(audit["found"] == audit["pairs"] > 100 and audit["found_by_similarity"][10:] == bins[10:], "all share a band")
    drops = [0] * BINS
    for d, (k, j) in gone.items():
        c, u = exact[d, k]
        drops[min(BINS - 1, BINS * c // u)] += 1
    result(audit["dropped_by_similarity"] == drops and audit["below_threshold"] == 0, "and what is dropped, by similarity")

    left, gone, s = dedup(stream, place, "--no-verify", "--bands", 20, "--rows", 4)
    below = [d for d, (k, j) in gone.items() if (d, k) not in exact or 10 * exact[d, k][0] < 8 * exact[d, k][1]]
    wrong = [d for d, (k, j) in gone.items() if similarity(*both(sets, d, k)) != j or k in gone or k >= d]
    result(not wrong, "--no-verify: similarities are right, whatever they are", [(d, gone[d]) for d in wrong[:5]])
    result(len(below) > 50, "--no-verify drops %d of %d below the threshold" % (len(below), len(gone)))
    finish()


def both(sets, d, k):
    common = len(sets[d] & sets[k])
    return common, len(sets[d]) + len(sets[k]) - common


main()
