#!/usr/bin/env python3
"""Word n-grams of token streams (lib/dedup/near/shingle.h) against those of the text.

    tests/judges/shingles.py [--full] [-n N]

The text's n-grams are computed here from their definition: each character in lower case by itself, words apart by
White_Space, and in scripts without spaces each grapheme that the package `regex` finds (\\X), n in a row; a
shorter text has one, of all its words. Every n-gram must have one hash and every hash one n-gram, all documents taken
together, so that sets, their sizes and their similarity are those of the text; and the hashes
must be the same for the vocabularies of GPT-2, cl100k and o200k.

Texts: real ones in several languages and C code, every code point that Python knows in eight contexts, corner cases of
white space, random bytes repaired to UTF-8; and random ids, whose bytes are no UTF-8 to a large part: there, bytes that
are no characters are characters by themselves (Python's surrogateescape).
"""
import argparse
import functools
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata
from base64 import b64decode

import numpy
import regex

from parts import texts as made_of

O = os.environ.get("O", "build")
BIN = os.environ.get("BIN", O + "/bin")
RANKS = O + "/judges/vocab/gpt-tokenizer/package/data"
VOCABULARIES = (("r50k", "gpt2"), ("cl100k", "cl100k"), ("o200k", "o200k"))

WHITE = "".join(map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]))
BLANK = str.maketrans(dict.fromkeys(WHITE, " "))


class Lower(dict):
    """For str.translate: a character's lower case, whatever stands around it."""

    def __missing__(self, c):
        self[c] = low = chr(c).lower()
        return low


LOWER = Lower()


UNSPACED = """Ahom Balinese Batak Bopomofo Brahmi Cham Dives_Akuru Grantha Gurung_Khema Han Hiragana Javanese Katakana Kawi Khmer
    Lao Makasar Myanmar New_Tai_Lue Nushu Tai_Le Tai_Tham Tai_Viet Tangut Thai Tibetan Tulu_Tigalari Yi""".split()
SPACED = """Adlam Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hangul Hebrew Kannada Latin
    Malayalam Mongolian Oriya Phags_Pa Sinhala Syriac Tamil Telugu Chakma Buginese""".split()


def of(prop, scripts):
    return "".join(r"\p{%s=%s}" % (prop, s) for s in scripts)


SIGN = regex.compile(r"(?V1)[[%s[[%s]--[%s]]]--[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=Prepend}\p{Extended_Pictographic}]]"
                     % (of("Script", UNSPACED), of("Script_Extensions", UNSPACED), of("Script_Extensions", SPACED)))
MARK = regex.compile(r"(?V1)[\p{P}--\p{Extended_Pictographic}]")
GRAPHEME = regex.compile(r"\X")
# Where such a character is within a grapheme that began otherwise: behind another script's linker.
WITHIN = regex.compile(r"(?<=.)(?<!\p{GCB=Prepend})(?=%s)" % SIGN.pattern.removeprefix("(?V1)"), regex.V1)


def pieces(run):
    """The words of a run without white space, and whether each is a grapheme of a script without spaces."""
    words, own = [], False
    for x in GRAPHEME.findall(run):
        for g in [x] if SIGN.match(x) or own and MARK.match(x) else WITHIN.split(x, 1):
            before, own = own, bool(SIGN.match(g) or own and MARK.match(g))
            if own or before or not words:
                words.append([g, own])
            else:
                words[-1][0] += g
    return words


@functools.cache
def words_of(text):
    runs = (r for r in text.translate(BLANK).split(" ") if r)
    return [(w.translate(LOWER), own) for r in runs for w, own in ([(r, False)] if r.isascii() else pieces(r))]


def grams(text, n):
    words = [w for w, _ in words_of(text)]
    if len(words) < n:
        return [" ".join(words)] if words else []
    return [" ".join(words[i:i + n]) for i in range(len(words) - n + 1)]


def known(c):
    """Characters that Python's version of Unicode has: their lower case does not change any more."""
    return unicodedata.category(c) != "Cn"


def texts(full):
    some = 1 if full else 6
    docs = []
    for kind in ("docs-en", "docs-multi", "manual", "code"):
        r = subprocess.run(["zstd", "-dc", "%s/judges/corpus/%s-0000.jsonl.zst" % (O, kind)], stdout=subprocess.PIPE, check=True)
        docs += [json.loads(line)["text"] for line in r.stdout.splitlines()[::some]]
    docs += made_of.code_points(16)
    docs += list(made_of.soup())[::some]
    docs += list(made_of.white())[::some]
    docs += made_of.long_runs()
    docs = ["".join(c if known(c) else "\u2603" for c in d) if not d.isascii() else d for d in docs]
    return [d for d in docs if d]


class Failed(Exception):
    pass


def run(argv, **more):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)
    if r.returncode:
        raise Failed(r.stderr.decode(errors="replace").strip() or "%s: exit status %d" % (argv[0], r.returncode))
    return r.stdout


def shingles(stream, n, *more, **given):
    """An array of hashes a sequence."""
    out, pos, got = run([O + "/judges/shingles", stream, "-n", str(n), *more], **given), 0, []
    while pos < len(out):
        count, = struct.unpack_from("<I", out, pos)
        got.append(numpy.frombuffer(out, "<u8", count, pos + 4))
        pos += 4 + 8 * count
    return got


def compare(docs, got, n):
    """Counts of n-grams and of different ones."""
    hash_of, gram_of, total = {}, {}, 0
    if len(docs) != len(got):
        raise Failed("%d sequences for %d documents" % (len(got), len(docs)))
    for i, (d, hashes) in enumerate(zip(docs, got)):
        want = grams(d, n)
        if len(want) != len(hashes):
            raise Failed("document %d %r: %d n-grams, not %d" % (i, d[:60], len(hashes), len(want)))
        total += len(want)
        for g, h in zip(want, hashes.tolist()):
            if hash_of.setdefault(g, h) != h:
                raise Failed("document %d: two hashes of %r" % (i, g))
            if gram_of.setdefault(h, g) != g:
                raise Failed("document %d: one hash of %r and %r" % (i, gram_of[h], g))
    return total, len(hash_of)


def of_text(docs, n, folder):
    first = None
    path = os.path.join(folder, "in.jsonl")
    with open(path, "w") as f:
        for d in docs:
            f.write(json.dumps({"text": d}) + "\n")
    for ranks, pattern in VOCABULARIES:
        stream = os.path.join(folder, ranks + ".tks")
        run([BIN + "/tokenize", "-q", "-t", "%s/%s_base.tiktoken" % (RANKS, ranks), "--pattern", pattern, path, "-o", stream])
        got = shingles(stream, n)
        if first is None:
            first = got
            total, different = compare(docs, got, n)
        elif any(not numpy.array_equal(a, b) for a, b in zip(first, got)):
            i = [numpy.array_equal(a, b) for a, b in zip(first, got)].index(False)
            raise Failed("%s: document %d %r has other n-grams than with %s" % (ranks, i, docs[i][:60], VOCABULARIES[0][0]))
        print("ok judges/shingles/%s-%d: %d documents, %d n-grams, %d different" % (ranks, n, len(docs), total, different), flush=True)


def of_ids(n, folder, full):
    """Sequences of random ids, most of a few that are often within characters."""
    for ranks, _ in VOCABULARIES:
        rng = random.Random(ranks)
        tokens = [b64decode(line.split()[0]) for line in open("%s/%s_base.tiktoken" % (RANKS, ranks), "rb")]
        numbers = [int(line.split()[1]) for line in open("%s/%s_base.tiktoken" % (RANKS, ranks), "rb")]
        everything = range(len(tokens))
        split = [i for i in everything if not tokens[i].isascii() and "\udc00" <= max(tokens[i].decode("utf-8", "surrogateescape")) < "\ue000"]
        short = [i for i in everything if len(tokens[i]) == 1]
        docs, blob = [], []
        for k in range(40000 if full else 8000):
            few = rng.choice((everything, split, short, rng.choices(split, k=3) + rng.choices(short, k=4)))
            chosen = rng.choices(few, k=rng.choice((1, 2, 3, 6, 20, 200)))
            docs.append(b"".join(tokens[i] for i in chosen).decode("utf-8", "surrogateescape"))
            blob.append(struct.pack("<%dI" % (len(chosen) + 1), len(chosen), *(numbers[i] for i in chosen)))
        good = [i for i, d in enumerate(docs) if all(known(c) for c in set(d))]
        got = shingles(os.path.join(folder, ranks + ".tks"), n, "-i", input=b"".join(blob[i] for i in good))
        total, different = compare([docs[i] for i in good], got, n)
        print("ok judges/shingles/%s-ids-%d: %d sequences, %d n-grams, %d different" % (ranks, n, len(good), total, different), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--full", action="store_true", default=bool(os.environ.get("JUDGES_FULL")))
    a.add_argument("-n", type=int, default=0)
    a = a.parse_args()
    docs = texts(a.full)
    with tempfile.TemporaryDirectory() as folder:
        try:
            for n in [a.n] if a.n else [5, 1]:
                of_text(docs, n, folder)
                of_ids(n, folder, a.full)
        except Failed as e:
            print("not ok judges/shingles: %s" % e)
            sys.exit(1)


if __name__ == "__main__":
    main()
