#!/usr/bin/env python3
"""tokenize --rules and --c4-lines beside the filters of datatrove.

    tests/judges/readers_rules.py [--documents N] [--own] [--time]

What it proves: with our words and sentences (lib/filter/text.h, through $O/judges/words) put into datatrove, its
GopherQualityFilter, GopherRepetitionFilter, C4QualityFilter and FineWebQualityFilter keep and drop the same documents as
tokenize --rules, for the same reason; each threshold alone too, so that none hides behind another; and the text that
C4QualityFilter leaves is that of --c4-lines. The documents are paragraphs of the corpus (several languages, code, manual pages) and
the same with lines, paragraphs and words repeated, bullets, ellipses, hashes and C4's phrases put in.

--own: how many documents datatrove with its own splitter (spaCy) decides otherwise. --time: processor
seconds of both, of datatrove without the splitting.
"""
import argparse
import collections
import gzip
import json
import multiprocessing
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

os.environ.setdefault("LOGURU_LEVEL", "ERROR")
try:
    from datatrove.data import Document
    from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                            GopherRepetitionFilter)
    from datatrove.utils import text as their_text
    from datatrove.utils import word_tokenizers
except ImportError as e:
    print("skip readers_rules: %s" % e)
    raise SystemExit(0)

WORDS = os.environ.get("WORDS", os.path.abspath(os.environ.get("O", "build")) + "/judges/words")


class Ours(word_tokenizers.WordTokenizer):
    """Our splitters, as datatrove asks for them."""

    def __init__(self):
        super().__init__()
        self.p = subprocess.Popen([WORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, kind, text):
        raw = text.encode()
        self.p.stdin.write(kind + struct.pack("<I", len(raw)) + raw)
        self.p.stdin.flush()
        n, = struct.unpack("<I", self.p.stdout.read(4))
        return self.p.stdout.read(n if kind == b"w" else 4 * n)

    def word_tokenize(self, text):
        return self.ask(b"w", text).decode().split("\n")[:-1]

    def span_tokenize(self, text):
        ends = [e for e, in struct.iter_unpack("<I", self.ask(b"s", text))]
        return list(zip([0] + ends, ends))

    def sent_tokenize(self, text):
        return [text[a:b] for a, b in self.span_tokenize(text)]


# ---- the rules in both ----

QUALITY = {"gopher_short_doc": "min_doc_words", "gopher_long_doc": "max_doc_words",
           "gopher_below_avg_threshold": "min_avg_word_length", "gopher_above_avg_threshold": "max_avg_word_length",
           "gopher_too_many_hashes": "max_hash_word_ratio", "gopher_too_many_ellipsis": "max_ellipsis_word_ratio",
           "gopher_too_many_bullets": "max_bullet_lines_ratio", "gopher_too_many_end_ellipsis": "max_ellipsis_lines_ratio",
           "gopher_below_alpha_threshold": "min_alpha_words_ratio", "gopher_enough_stop_words": "min_stop_words"}
REPETITION = {**{k: k for k in ("dup_line_frac", "dup_line_char_frac", "dup_para_frac", "dup_para_char_frac")},
              **{"top_%d_gram" % n: "top_%d_gram" % n for n in (2, 3, 4)},
              **{"duplicated_%d_n_grams" % n: "dup_%d_gram" % n for n in range(5, 11)}}
C4 = {"lorem_ipsum": "lorem_ipsum", "curly_bracket": "curly_bracket", "too_few_sentences": "min_num_sentences"}
FINEWEB = {"empty": "line_punct_ratio", "line_punct_ratio": "line_punct_ratio", "short_line_ratio": "short_line_ratio",
           "char_dup_ratio": "char_duplicates_ratio", "list_ratio": "new_line_ratio"}
FAMILIES = {"gopher-quality": (GopherQualityFilter, QUALITY), "gopher-repetition": (GopherRepetitionFilter, REPETITION),
            "c4": (C4QualityFilter, C4), "fineweb": (FineWebQualityFilter, FINEWEB)}

GRAMS = ((2, 0.2), (3, 0.18), (4, 0.16)), ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
OFF = {"gopher-quality": dict.fromkeys("min_doc_words max_doc_words min_avg_word_length max_avg_word_length max_symbol_word_ratio "
                                       "max_bullet_lines_ratio max_ellipsis_lines_ratio max_non_alpha_words_ratio "
                                       "min_stop_words".split()),
       "gopher-repetition": dict(dup_line_frac=None, dup_para_frac=None, dup_line_char_frac=None, dup_para_char_frac=None,
                                 top_n_grams=(), dup_n_grams=()),
       "c4": dict(remove_citations=False, filter_no_terminal_punct=False, min_num_sentences=-1, min_words_per_line=-1,
                  max_word_length=-1, filter_lorem_ipsum=False, filter_javascript=False, filter_curly_bracket=False,
                  filter_policy=False),
       "fineweb": dict(line_punct_thr=0, short_line_thr=2, char_duplicates_ratio=2, new_line_ratio=1e9)}


def alone():
    """Each threshold alone: the family, theirs, ours."""
    q = "gopher-quality"
    for name, value in (("min_doc_words", 80), ("max_doc_words", 120), ("min_avg_word_length", 4), ("max_avg_word_length", 6),
                        ("max_bullet_lines_ratio", 0.2), ("max_ellipsis_lines_ratio", 0.1), ("min_stop_words", 3)):
        yield q, {name: value}, {name: value}
    yield q, {"max_non_alpha_words_ratio": 0.7}, {"min_alpha_words_ratio": 0.7}
    yield q, {"max_symbol_word_ratio": 0.02}, {"max_hash_word_ratio": 0.02, "max_ellipsis_word_ratio": 0.02}
    yield q, {"min_stop_words": 2, "stop_words": ["der", "die", "und", "的", "le", "de"]}, {
        "min_stop_words": 2, "stop_words": "der die und 的 le de"}
    r = "gopher-repetition"
    for name in ("dup_line_frac", "dup_para_frac", "dup_line_char_frac", "dup_para_char_frac"):
        yield r, {name: 0.05}, {name: 0.05}
    for n, f in GRAMS[0]:
        yield r, {"top_n_grams": ((n, f / 2),)}, {"top_%d_gram" % n: f / 2}
    for n, f in GRAMS[1]:
        yield r, {"dup_n_grams": ((n, f / 2),)}, {"dup_%d_gram" % n: f / 2}
    yield "c4", {"min_num_sentences": 7}, {"min_num_sentences": 7}
    for theirs, ours in (("filter_no_terminal_punct", "no_terminal_punct"), ("filter_javascript", "javascript"),
                         ("filter_policy", "policy"), ("remove_citations", "remove_citations")):
        yield "c4", {"min_num_sentences": 3, theirs: True}, {"min_num_sentences": 3, ours: "on"}
    yield "c4", {"min_num_sentences": 3, "min_words_per_line": 6}, {"min_num_sentences": 3, "min_words_per_line": 6}
    yield "c4", {"min_num_sentences": 3, "max_word_length": 20}, {"min_num_sentences": 3, "max_word_length": 20}
    yield "c4", {"filter_lorem_ipsum": True, "filter_curly_bracket": True}, {"lorem_ipsum": "on", "curly_bracket": "on"}
    f = "fineweb"
    yield f, {"line_punct_thr": 0.4}, {"line_punct_ratio": 0.4}
    yield f, {"line_punct_thr": 0.4, "line_punct_exclude_zero": True}, {"line_punct_ratio": 0.4, "line_punct_exclude_zero": "on"}
    yield f, {"short_line_thr": 0.4, "short_line_length": 40}, {"short_line_ratio": 0.4, "short_line_length": 40}
    yield f, {"char_duplicates_ratio": 0.002}, {"char_duplicates_ratio": 0.002}
    yield f, {"new_line_ratio": 0.15}, {"new_line_ratio": 0.15}


def write(path, found):
    with open(path, "w") as f:
        for i, text in enumerate(found):
            f.write(json.dumps({"id": i, "text": text}) + "\n")


def rules_file(path, family, values):
    with open(path, "w") as f:
        for line in sets.run("tokenize", "--rules", "help").decode().splitlines():
            if line.startswith(family + ".") and ".stop_words" not in line and "short_line_length" not in line:
                f.write(line.split(" = ")[0] + " = off\n")
        for name, value in values.items():
            f.write("%s.%s = %s\n" % (family, name, value))


# ---- documents ----

def mutant(rng, text):
    kind = rng.randrange(12)
    lines = text.split("\n")
    words = text.split(" ")
    k, n = rng.randrange(len(words)), rng.randrange(1, 12)
    if kind == 0:
        lines += [rng.choice(lines)] * rng.randrange(1, len(lines) + 1)
    elif kind == 1:
        return text + ("\n\n" + rng.choice(text.split("\n\n"))) * rng.randrange(1, 4) + rng.choice(["", "\n", " \n\n\n"])
    elif kind == 2:
        return " ".join(words[:k] + words[k:k + n] * rng.randrange(2, 30) + words[k:])
    elif kind == 3:
        lines = [rng.choice(["- ", " • ", "* ", "•"]) + s for s in lines]
    elif kind == 4:
        lines = [s + rng.choice(["...", "… ", "..", "", "…\r"]) for s in lines]
    elif kind == 5:
        return " ".join(w + rng.choice([" #", "", "", " ...", "..", "…"]) for w in words)
    elif kind == 6:
        put = rng.choice(["Lorem Ipsum", "{", "JavaScript", "Terms of Use", "uses coo\u212aies", "Cookie policy", "x" * 1001,
                          "[12] [edit]", "[]", "[citation needed]", "[٣]", "[x]", '."', "?'", "use cookİes", "[1]."])
        return " ".join(words[:k] + [put] + words[k:])
    elif kind == 7:
        lines = [s + rng.choice([".", "!", "?", '."', "", "", "。", " .", "?!\u2019", ". [3]"]) for s in lines]
    elif kind == 8:
        return rng.choice(["\r\n", "\u2028", "\x85", "\x1c", "\n\n", "\n\n\n"]).join(lines)
    elif kind == 9:
        return "\n" * rng.randrange(3) + text.replace(" ", rng.choice(["  ", "\u3000", "\x1f", "\u00a0", " "])) + " " * rng.randrange(3)
    elif kind == 10:
        return "".join(words[:20]) + rng.choice(["", " ", "\n"]) + text
    else:
        return " ".join(w if rng.random() < 0.6 else str(rng.randrange(1000)) for w in words)
    return "\n".join(lines)


def texts(n):
    """Those of the corpus, and for many documents also of the machine's documentation."""
    yield from sets.texts(10**9 if n > 20000 else n * 1000)
    for folder, _, names in sorted(os.walk("/usr/share/doc")) if n > 20000 else ():
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                with (gzip.open if name.endswith(".gz") else open)(path, "rb") as f:
                    yield f.read(1 << 20).decode()
            except (OSError, EOFError, UnicodeDecodeError, zlib.error):
                pass


def documents(n):
    """Paragraphs of real texts, some of them changed, and corner cases."""
    rng = random.Random(11)
    found = []
    for text in texts(n):
        part = ""
        most = rng.choice([80, 200, 400, 1200])
        for paragraph in text.split("\n\n"):
            part += ("\n\n" if part else "") + paragraph[:8000]
            if len(part) > most:
                found.append(part)
                part = ""
                most = rng.choice([80, 200, 400, 1200])
        if part.strip():
            found.append(part)
    rng.shuffle(found)
    found = [t if rng.random() < 0.7 else mutant(rng, t) for t in found[:n]]
    return found + [" ", "\n", "a", ".", "\n\n\n", "a\n", "a b c d e", "\u3000", "中文。中文。中文。中文。中文。", "a " * 60, "#" * 80,
                    "a bc ab c " * 30, "[1]", "x. " * 5, "the and.\n" * 9, "\u0e01\u0e33\u0e49 ก็", "\u200d", "e\u0301 " * 70]


# ---- both sides ----

def ours(rules, path, n):
    """By document: the rule it fails by, or None."""
    sets.run("tokenize", "-q", "-t", "bytes", "--rules", rules, "--rejects", "rejects", "-o", "ours.tks", path)
    decided = [None] * n
    with open("rejects") as f:
        for line in f:
            r = json.loads(line)
            decided[r["line"] - 1] = r["reason"]
    return decided


def theirs(job):
    family, options, found, ours_too = job
    make, names = FAMILIES[family]
    if ours_too:
        tokenizer = Ours()
        word_tokenizers.load_word_tokenizer = lambda language: tokenizer
    their_text.split_into_parts.cache_clear()
    step = make(**options)
    out = []
    start = time.process_time()
    for text in found:
        doc = Document(text=text, id="")
        kept = step.filter(doc)
        out.append((None if kept is True else family + "." + names[kept[1]], doc.text))
    return out, time.process_time() - start


def compare(pool, family, options, rules, found, path, what, ours_too=True):
    step = max(1, len(found) // 8)
    jobs = [(family, options, found[i:i + step], ours_too) for i in range(0, len(found), step)]
    want, seconds = [], 0
    for part, t in pool.imap(theirs, jobs):
        want += part
        seconds += t
    got = ours(rules, path, len(found))
    differ = [i for i in range(len(found)) if got[i] != want[i][0]]
    many = collections.Counter(w for w, _ in want if w)
    if ours_too:
        for i in differ[:3]:
            print("    document %d: %s, theirs %s: %r" % (i, got[i], want[i][0], found[i][:300]))
        result(not differ, "%s: %d documents, %d dropped (%s), %d decisions differ" % (
            what, len(found), sum(many.values()), ", ".join("%s %d" % (k.split(".")[1], v) for k, v in sorted(many.items())),
            len(differ)))
    else:
        kept = sum((got[i] is None) != (want[i][0] is None) for i in range(len(found)))
        print("    %s with spaCy's words: %d of %d documents kept by one only (%.2f %%)" % (
            what, kept, len(found), 100 * kept / len(found)))
    if pool_time:
        raw = b"".join(b"w" + struct.pack("<I", len(t)) + t for t in (t.encode() for t in found))
        fast = float(subprocess.run([WORDS, rules], input=raw, stdout=subprocess.PIPE, check=True).stdout)
        print("    %s: datatrove %.2f s, ours %.3f s of the processor, %.0f MB/s: %.0f times" % (
            what, seconds, fast, len(raw) / 1e6 / fast, seconds / fast))
    return want


def check_lines(want, path):
    """The texts that --c4-lines leaves are C4QualityFilter's."""
    sets.run("tokenize", "-q", "-t", "bytes", "--no-eos", "--c4-lines", "--id-field", "id", "--rejects", "rejects", "-o", "c4.tks", path)
    left = {int(r["segments"][0]["id"]): bytes(r["tokens"]).decode() for r in sets.records("c4.tks")}
    good = {i: text for i, (reason, text) in enumerate(want) if reason is None}
    result(left == good, "--c4-lines: the text of %d documents" % len(good))


def main(args):
    global pool_time
    pool_time = args.time
    if not os.path.exists(WORDS):
        raise SystemExit("not ok readers_rules: no %s (make check-judges builds it)" % WORDS)
    found = documents(args.documents)
    write("all.jsonl", found)
    # datatrove divides by zero where a text without words gets beyond the number of words.
    few = [t for t in found[:len(found) // 10] + found[-18:] if t.split()]
    write("few.jsonl", few)
    with multiprocessing.Pool(2, maxtasksperchild=1 if args.own else None) as pool:
        for family in FAMILIES:
            want = compare(pool, family, {}, family, found, "all.jsonl", family)
            if family == "c4":
                check_lines(want, "all.jsonl")
            if args.own:
                compare(pool, family, {}, family, few, "few.jsonl", family, False)
        for i, (family, values, names) in enumerate(alone()):
            rules_file("rules%d" % i, family, names)
            compare(pool, family, {**OFF[family], **values}, "rules%d" % i, few, "few.jsonl",
                    family + " with " + " ".join("%s=%s" % v for v in names.items()))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--documents", type=int, default=100000 if os.environ.get("JUDGES_FULL") else 4000)
    p.add_argument("--own", action="store_true")
    p.add_argument("--time", action="store_true")
    arguments = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        main(arguments)
        os.chdir("/")
    sets.finish()
