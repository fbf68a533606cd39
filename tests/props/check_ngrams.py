#!/usr/bin/env python3
"""dedup --ngrams compared with an oracle with exact sets, written only from dedup(1) and lib/dedup/ngrams/ngrams.h.

What it proves: the tokens of each paragraph, its words, the n-grams that were seen, and the dropped and kept tokens
are right, token by token: for whole documents, pieces and packed sequences, for both kinds of words, for --ngram 0,
1, 3 and 13, and for thresholds that are met exactly. The report and the account are right, too. With a false-positive
rate of 10^-6, the filter makes no error on a few thousand n-grams; test_bloom.c tests its rate.
"""
import io
import json
import os
import random
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from near_oracle import SCRIPTS, changed, chars, script_text, words as text_words  # noqa: E402
from streams import finish, need, result, run, stats  # noqa: E402
from tokstream import PADDING, Reader  # noqa: E402

need("tokenize", "dedup", "decompose", "pack")


def words_of(data, unit="word"):
    """Lower-case words of bytes."""
    return {"word": text_words, "char": chars}[unit](data.decode("utf-8", "surrogateescape"))


class Stream:
    def __init__(self, data):
        r = Reader(io.BytesIO(data))
        self.sequences = list(r)
        h = r.first_header or r.members[0][0]
        self.vocab = r.vocab
        self.special = {i for i, f in enumerate(r.vocab_flags) if f & 1} | {h.eos, h.bos, h.pad}

    def paragraphs(self, tokens):
        """[(first token, behind the last)] of what is no special token."""
        out, begin = [], 0
        for i, t in enumerate(tokens):
            if t in self.special or b"\n" in self.vocab[t]:
                end = i if t in self.special else i + 1
                if begin < end:
                    out.append((begin, end))
                begin = i + 1
        if begin < len(tokens):
            out.append((begin, len(tokens)))
        return out

    def words(self, tokens, unit, trained=None):
        if trained is not None:
            tokens = [t for t, on in zip(tokens, trained) if on]
        tokens = [t for t in tokens if t not in self.special]
        return tokens if unit == "token" else words_of(b"".join(self.vocab[t] for t in tokens), unit)


def grams(words, n, least):
    if not words or len(words) < least:
        return []
    if n == 0 or len(words) < n:
        return [tuple(words)]
    return [tuple(words[i:i + n]) for i in range(len(words) - n + 1)]


def oracle(s, by, n, least, overlap, unit, on):
    """What stays: [[(source, document, offset, length)], tokens]; what went: rows of the report."""
    seen, out, rows, left_counts = set(), [], [], {"document": 0, "paragraph": 0}

    def repeats(of, known):
        k = sum(g in known for g in of)
        return bool(of) and Fraction(k, len(of)) >= overlap, k

    for q in s.sequences:
        tokens = list(q.tokens)
        mask = list(q.mask) if on == "trained" else [1] * len(tokens)
        place = [(g, g.offset + i) for g in q.segments for i in range(g.length)]

        def row(what, at, length, of, k):
            g, offset = place[at]
            rows.append((what, g.source, g.document, offset, length, of, k))
            left_counts[what] += length

        gone = set()
        if by == "document":
            of = grams(s.words(tokens, unit, mask), n, least)
            drop, k = repeats(of, seen)
            if drop:
                row("document", 0, len(tokens), len(of), k)
                continue
            seen |= set(of)
        else:
            units = [(a, b, s.words(tokens[a:b], unit, mask[a:b])) for a, b in s.paragraphs(tokens)]
            each = [grams(w, n, least) for _, _, w in units]
            everything = [g for of in each for g in of]
            drop, k = repeats(everything, seen)
            if by == "both" and drop:
                row("document", 0, len(tokens), len(everything), k)
                continue
            own, left, mine = set(), False, []
            for (a, b, w), of in zip(units, each):
                drop, k = repeats(of, seen | own)
                if drop:
                    mine.append((a, b - a, len(of), k))
                    gone |= set(range(a, b))
                else:
                    own |= set(of)
                    left |= bool(w)
            if mine and not left:
                row("document", 0, len(tokens), 0, 0)
                continue
            for a, length, of, k in mine:
                row("paragraph", a, length, of, k)
            seen |= own
        segments = []
        for g, at in [p for i, p in enumerate(place) if i not in gone]:
            if segments and segments[-1][0] is g and segments[-1][1] + segments[-1][2] == at:
                segments[-1][2] += 1
            else:
                segments.append([g, at, 1])
        out.append(([(g.source, g.document, at, length, g.domain, g.id) for g, at, length in segments],
                    [t for i, t in enumerate(tokens) if i not in gone]))
    return out, rows, left_counts


def compare(name, data, by, n=13, least=None, overlap="0.8", unit="word", on="all"):
    s = Stream(data)
    want, want_rows, left = oracle(s, by, n, n if least is None else least, Fraction(overlap), unit, on)
    args = ["--ngrams=" + by, "--ngram", n, "--overlap", overlap, "--unit", unit, "--fp-rate", "0.000001", "--on", on]
    if least is not None:
        args += ["--min-words", least]
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "report")
        out, st = stats("dedup", *args, "--report", path, stdin=data)
        rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    got = [([(g.source, g.document, g.offset, g.length, g.domain, g.id) for g in q.segments], list(q.tokens))
           for q in Reader(io.BytesIO(out))]
    rows = [(r["what"], r["dropped"]["source_number"], r["dropped"]["document"], r["dropped"]["offset"], r["tokens"],
             r["ngrams"], r["seen"]) for r in rows]
    name = "%s, %s, %s-grams of %ss, at least %s words, %s" % (name, by, n, unit, n if least is None else least, overlap)
    some = len(want) < len(s.sequences) and (by == "document" or any(r[0] == "paragraph" for r in rows))
    bad = [i for i, (a, b) in enumerate(zip(got, want)) if a != b]
    result(got == want and some, "%s: what stays" % name,
           "%d in, %d out, %d wanted; first other: %s" % (len(s.sequences), len(got), len(want), bad[:1]))
    result(rows == want_rows, "%s: the report" % name,
           [r for r in zip(rows, want_rows) if r[0] != r[1]][:1] or (len(rows), len(want_rows)))
    dropped = st["tokens"]["dropped"]
    result(dropped.get("repeated-document", 0) == left["document"] and
           dropped.get("repeated-paragraph", 0) == left["paragraph"], "%s: the account" % name, (dropped, left))


# ---- a corpus that repeats in every way ----

rng = random.Random(4)
vocabulary = ["word%d" % i for i in range(400)] + ["Straße", "ÉCOLE", "東京", "naïve", "İstanbul", "x,", "\U0001F600", "A.B"]
spaces = [" "] * 20 + ["  ", "\t", "\u3000", "\xa0", " \v"]
ends = ["\n"] * 6 + ["\n\n", "\r\n", ".\n\n", "\n    ", " \n\t\n", "\u2028\n"]


def paragraph():
    k = rng.choice([1, 2, 3, 5, 8, 12, 13, 14, 17, 20, 30, 60])
    return [rng.choice(vocabulary) for _ in range(k)]


def spelled(words):
    text = "".join(w + rng.choice(spaces) for w in words).strip(" ")
    return rng.choice([text, text, text.upper() if "ß" not in text and "\u0130" not in text else text])


pool = [paragraph() for _ in range(150)]
docs = []
for i in range(420 if os.environ.get("CHECK_FULL") else 200 if os.environ.get("CHECK_MORE") else 80):
    kind, parts = rng.random(), []
    for _ in range(rng.choice([1, 1, 2, 3, 5, 9])):
        words = list(rng.choice(pool)) if rng.random() < 0.5 else paragraph()
        if rng.random() < 0.3 and len(words) > 5:  # a few words differ: some n-grams are new
            words[rng.choice([0, len(words) // 2, -1])] = "new%d" % i
        parts.append(words)
    if kind < 0.1:
        parts += parts  # repeats itself
    text = "".join(spelled(w) + rng.choice(ends) for w in parts)
    if kind > 0.9 and docs:
        text = rng.choice(docs)
    if kind < 0.02:
        text = rng.choice(["\n \n", "   ", "\n"]) + (text if kind < 0.01 else "")
    docs.append(text)
for name in SCRIPTS:
    some = [script_text(rng, name, rng.choice([5, 12, 13, 30, 80])) for _ in range(8)]
    docs += ["\n".join(changed(rng, name, rng.choice(some), rng.choice([0, 0, 0.01, 0.1])) for _ in range(4)) for _ in range(8 if os.environ.get("CHECK_MORE") else 3)]
lines = b"".join(json.dumps({"text": t, "id": "d%d" % i, "domain": "ab"[i % 2]}, ensure_ascii=False).encode() + b"\n"
                 for i, t in enumerate(docs))
options = ["--id-field", "id", "--domain-field", "domain"]
builtin = run("tokenize", *options, stdin=lines)
plain = run("tokenize", "-t", "bytes", *options, stdin=lines)

for way in "both", "paragraph", "document":
    compare("documents", builtin, way)
    compare("documents", builtin, way, n=3, overlap="0.5")
    compare("documents", builtin, way, n=13, least=2)
    compare("documents", builtin, way, n=0, least=1, overlap="1")
    compare("documents", builtin, way, n=4, unit="token", overlap="0.75")
compare("characters", builtin, "both", n=20, unit="char")
compare("bytes", plain, "both", n=1, overlap="0.9")
compare("bytes", plain, "paragraph", n=5, least=3, overlap="0.6")
compare("bytes", plain, "document", n=13)
# Pieces begin and end within words and characters; packed sequences are of several documents, and padded.
pieces = run("decompose", "--min", 16, "--max", 256, stdin=plain)
compare("pieces", pieces, "both", n=3, overlap="0.5")
packed = run("pack", "--length", 600, "--mix-domains", stdin=plain)
if not any(g.source == PADDING for q in Stream(packed).sequences for g in q.segments):
    result(False, "packed sequences are padded")
compare("packed", packed, "paragraph", n=5, overlap="0.7")
compare("packed", packed, "both", n=3)
# Of dialogues what is trained on: the same texts behind one prompt, answer and prompt in turns within lines.
lines, prompt = [], "%s\n" % " ".join(vocabulary[:60])
for i, text in enumerate(docs):
    at = sorted(rng.choices(range(len(text) + 1), k=4))
    spans = [[0, len(text)] if i % 3 else [at[0], at[1]], [at[2], at[3]]]
    lines.append(json.dumps({"text": prompt + text, "spans": [[len(prompt) + a, len(prompt) + b] for a, b in spans]}).encode() + b"\n")
for tokenizer in "builtin", "bytes":
    masked = run("tokenize", "-t", tokenizer, "--spans-field", "spans", "--no-eos", stdin=b"".join(lines))
    for way in "both", "paragraph", "document":
        compare("what is trained on, " + tokenizer, masked, way, n=3, overlap="0.5", on="trained")
        compare("what is trained on, " + tokenizer, masked, way, n=0, least=1, overlap="1", on="trained")
pieces = run("decompose", "--min", 16, "--max", 256, stdin=masked)
compare("what is trained on, pieces", pieces, "both", n=3, overlap="0.5", on="trained")
compare("what is trained on, pieces", pieces, "document", n=4, unit="token", on="trained")
finish()
