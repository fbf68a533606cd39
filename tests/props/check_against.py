#!/usr/bin/env python3
"""dedup --ngrams --save-index and --against compared with an oracle with a dictionary, written only from dedup(1).

What it proves: the right documents share an n-gram with an evaluation item, also with items shorter than an n-gram;
--cut and --window drop the right paragraphs; the report by item is right. An index of words serves a stream of
another tokenizer, an index of tokens does not. Threads and memory change nothing.
"""
import io
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from near_oracle import SCRIPTS, chars, role, script_text, words as text_words  # noqa: E402
from streams import finish, need, result, run, stats  # noqa: E402
from tokstream import Reader  # noqa: E402

need("tokenize", "dedup", "inspect")


class Stream:
    def __init__(self, data):
        r = Reader(io.BytesIO(data))
        self.sequences = list(r)
        h = r.first_header or r.members[0][0]
        self.vocab = r.vocab
        self.special = {i for i, f in enumerate(r.vocab_flags) if f & 1} | {h.eos, h.bos, h.pad}

    def text(self, tokens):
        return b"".join(self.vocab[t] for t in tokens if t not in self.special).decode("utf-8", "surrogateescape")

    def words(self, tokens, unit):
        if unit == "token":
            return [t for t in tokens if t not in self.special]
        return chars(self.text(tokens)) if unit == "char" else text_words(self.text(tokens))

    def grams(self, tokens, unit, n, least):
        """The n-grams of an item. Where most of its words are graphemes, 12 do for 13; and if the punctuation at its ends
        leaves less than n, what is left is the n-gram, or all runs of 12 that have it within."""
        w = self.words(tokens, unit)
        k, marks = min(len(w), n), []
        if unit == "word":
            found, n_sign = text_words(self.text(tokens), signs=True)
            if 2 * n_sign > len(found):
                least -= least // 13
                marks = [len(x) == 1 and role(x) == "mark" for x in w]
        if not w or len(w) < least:
            return set()
        runs = [(i, i + k) for i in range(len(w) - k + 1)]
        if marks and not all(marks):
            a, b = marks.index(False), len(w) - marks[::-1].index(False)
            m = max(b - a, least)
            if m < k:
                runs = [(i, i + m) for i in range(len(w) - m + 1) if i <= a and b <= i + m]
        return {tuple(w[i:j]) for i, j in runs}

    def paragraphs(self, tokens):
        out, begin = [], 0
        for i, t in enumerate(tokens):
            if t in self.special or b"\n" in self.vocab[t]:
                end = i if t in self.special else i + 1
                if begin < end:
                    out.append((begin, end))
                begin = i + 1
        return out + [(begin, len(tokens))] if begin < len(tokens) else out


def rows(q):
    return [(g.source, g.document, g.offset, g.length) for g in q.segments]


def compare(name, items, train, n=13, least=None, unit="word", cut=False, window=0):
    e, t = Stream(items), Stream(train)
    least = n if least is None else least
    grams, lengths = [], set()
    for q in e.sequences:
        mine = e.grams(q.tokens, unit, n, least)
        grams.append(mine)
        lengths |= {len(g) for g in mine}
    have = {}
    for i, mine in enumerate(grams):
        for g in mine:
            have.setdefault(g, set()).add(i)
    matched, documents, want = set(), [0] * len(grams), []
    for q in t.sequences:
        tokens, words, paras = list(q.tokens), [], []
        for a, b in t.paragraphs(tokens) if cut else [(0, len(tokens))]:
            w = t.words(tokens[a:b], unit)
            paras.append((a, b, len(words), len(w)))
            words += w
        spans = [(i, i + k) for k in lengths for i in range(len(words) - k + 1) if tuple(words[i:i + k]) in have]
        found = {tuple(words[a:b]) for a, b in spans}
        matched |= found
        for i in {i for g in found for i in have[g]}:
            documents[i] += 1
        gone, left = set(), not spans
        for a, b, at, k in paras if cut else []:
            if k and any(x - window < at + k and y + window > at for x, y in spans):
                gone |= set(range(a, b))
            elif k:
                left = True
        if not left:
            continue
        segments = []
        for i in range(len(tokens)):
            if i in gone:
                continue
            if segments and segments[-1][0] + segments[-1][1] == i:
                segments[-1][1] += 1
            else:
                segments.append([i, 1])
        g = q.segments[0]
        want.append(([(g.source, g.document, g.offset + a, k) for a, k in segments],
                     [x for i, x in enumerate(tokens) if i not in gone]))
    with tempfile.TemporaryDirectory() as d:
        index, report = os.path.join(d, "index"), os.path.join(d, "report")
        passed = run("dedup", "--ngrams", "--ngram", n, "--min-words", least, "--unit", unit, "--save-index", index, "-q",
                     "--no-provenance", stdin=items)
        result([rows(q) for q in Reader(io.BytesIO(passed))] == [rows(q) for q in e.sequences], name + ": items pass")
        options = ["--against", index, "--report", report] + (["--cut", "--window", window] if cut else [])
        out, st = stats("dedup", *options, "-T", 1, stdin=train)
        lines = [json.loads(x) for x in open(report, encoding="utf-8")]
        again = run("dedup", *options, "-T", 3, "-M", "32M", stdin=train)
    got = [(rows(q), list(q.tokens)) for q in Reader(io.BytesIO(out))]
    some = 0 < len(matched) and len(want) < len(t.sequences) if not cut else any(len(w[0]) > 1 for w in want)
    result(got == want and some, name + ": the kept sequences", "%d in, %d out, %d wanted" % (
        len(t.sequences), len(got), len(want)))
    result(out == again, name + ": -T 3 -M 32M")
    wanted = [{"item": {"source": "-", "source_number": 0, "document": q.segments[0].document, "offset": 0,
                        "id": q.segments[0].id.decode(), "domain": q.segments[0].domain.decode()},
               "ngrams": len(mine), "matched": len(mine & matched),
               "covered": round(len(mine & matched) / len(mine), 6) if mine else 0, "documents": documents[i]}
              for i, (q, mine) in enumerate(zip(e.sequences, grams))]
    for x in lines:
        x["item"]["source"] = "-"
    bad = [(a, b) for a, b in zip(lines, wanted) if a != b]
    result(lines == wanted, name + ": the report", bad[:1] or (len(lines), len(wanted)))
    result(st["items_matched"] == sum(k > 0 for k in documents) and st["ngrams_matched"] == len(matched) and
           st["index_ngrams"] == len(have), name + ": the figures", st)


rng = random.Random(11)
common = ["w%d" % i for i in range(3000)]


def words(n):
    return [rng.choice(common) for _ in range(n)]


questions = [words(rng.choice([2, 5, 9, 12, 13, 14, 20, 40, 80])) for _ in range(200)]
questions[7] = questions[8] = questions[9]  # asked three times
docs = []
for i in range(400):
    parts = [words(rng.choice([4, 10, 15, 30, 60])) for _ in range(rng.randrange(1, 9))]
    if rng.random() < 0.3:
        q = rng.choice(questions)
        a = rng.randrange(len(q))
        piece = q if rng.random() < 0.6 else q[a:a + rng.randrange(1, 30)]
        if rng.random() < 0.5:  # a paragraph of its own
            parts.insert(rng.randrange(len(parts) + 1), piece)
        else:  # within one, or across a border
            k = rng.randrange(len(parts))
            parts[k:k + 1] = [parts[k] + piece[:7], piece[7:] + parts[k]] if rng.random() < 0.5 else [parts[k] + piece]
    docs.append("\n".join(" ".join(p) for p in parts if p))


def stream(texts, *options):
    lines = b"".join(json.dumps({"text": x, "id": "d%d" % i, "domain": "mmlu" if i % 3 else "arc"}).encode() + b"\n"
                     for i, x in enumerate(texts))
    return run("tokenize", "--id-field", "id", "--domain-field", "domain", *options, stdin=lines)


def scripts():
    """Items of every script, and documents that quote some: whole between others, or a part."""
    items = [(name, script_text(rng, name, k)) for name in SCRIPTS for k in (3, 9, 10, 11, 12, 13, 14, 40)]
    for before, stop in (("", "。"), ("「", "？」"), ("…", "!")):
        items += [(name, before + script_text(rng, name, k) + stop) for name in SCRIPTS for k in (8, 11)]
    quoted = []
    for name, item in items * 2:
        around = [script_text(rng, name, 60) for _ in range(2)]
        if rng.random() < 0.5:
            item = item.strip("。「」？…!")
        piece = item if rng.random() < 0.6 else item[rng.randrange(len(item)):]
        quoted.append(rng.choice(["", " ", "\n"]).join([around[0], piece, around[1]]))
    return [item for _, item in items], quoted


evaluation, train = stream([" ".join(q).upper() for q in questions]), stream(docs)
compare("words", evaluation, train)
compare("words of 5", evaluation, train, n=5)
compare("short items", evaluation, train, least=1)
compare("cut", evaluation, train, n=8, cut=True)
compare("cut with a window", evaluation, train, n=8, cut=True, window=11)
compare("other tokenizers", evaluation, stream(docs, "-t", "bytes"))
items, quoted = scripts()
items, quoted = stream(items), stream(quoted)
compare("scripts", items, quoted)
compare("scripts, cut", items, quoted, n=9, cut=True)
compare("characters", items, quoted, n=15, unit="char")
lower = stream([" ".join(q) for q in questions])
compare("tokens", lower, train, n=11, unit="token")
with tempfile.TemporaryDirectory() as d:
    index = os.path.join(d, "index")
    run("dedup", "--ngrams", "--unit", "token", "--save-index", index, "-q", stdin=lower)
    p = run("dedup", "--against", index, stdin=stream(docs, "-t", "bytes"), check=False)
    result(p.returncode == 1 and b"another tokenizer" in p.stderr and p.stderr.count(b"\n") == 1,
           "tokens of another tokenizer are refused", p.stderr)
finish()
