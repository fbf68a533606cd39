#!/usr/bin/env python3
"""Checks the promises of dedup --substring --stage: dedup_stages_substring.py PART... in an empty folder (see
dedup_stages_substring.sh and dedup_stages_substring_faults.sh).

Parts: equal packed memory refused damaged killed. FULL=1: as in dedup_stages.py.
"""
import json
import os
import random
import shutil
import sys

import dedup_stages as base
from dedup_stages import FULL, must, normal, refuses, result, sha, tokenize, whole

N_TOK = 20
MODE = ["--substring", str(N_TOK)]


def steps(mode, work, n, ranges, extra=()):
    """Every stage but filter: (stage, argv) in order."""
    argv = ["dedup"] + mode + list(extra) + ["--work", work, "--stage"]
    for i in range(n):
        yield "sign", argv + ["sign", "--part", "%d/%d" % (i, n), "--ranges", str(ranges), "p%d-%d.tks" % (n, i)]
    for j in range(ranges):
        yield "group", argv + ["group", "--part", "%d/%d" % (j, ranges)]
    for i in range(n):
        yield "ask", argv + ["ask", "--part", "%d/%d" % (i, n), "p%d-%d.tks" % (n, i)]
    for j in range(ranges):
        yield "match", argv + ["match", "--part", "%d/%d" % (j, ranges)]


def planted(path, n, seed, long=0):
    """Random texts with pieces of any earlier text, of lengths around N_TOK and longer, pieces of themselves, pieces
    joined end to end, overlapping and nested copies, runs, short periods, whole copies; `long`: a text of so many
    letters in the middle, and pieces of it behind."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz "

    def fresh(k):
        return "".join(rng.choice(letters) for _ in range(k))

    texts = []
    with open(path, "w") as f:
        for i in range(n):
            t = fresh(rng.randrange(1, 120))
            if long and i == n // 2:
                t += fresh(long // 3) * 2 + fresh(long // 3)
            for _ in range(rng.choice((0, 0, 1, 2, 5))):
                old = rng.choice(texts) if texts and rng.random() < 0.8 else t
                a = rng.randrange(len(old))
                t += old[a:a + rng.choice((N_TOK - 1, N_TOK, N_TOK + 1, 2 * N_TOK, rng.randrange(1, 400)))]
                t += fresh(rng.choice((0, 0, 1, N_TOK - 1, 30)))
            if rng.random() < 0.05:
                t += rng.choice(("=", "ab", "xyzzy")) * rng.randrange(1, 200)
            if texts and rng.random() < 0.03:
                t = rng.choice(texts)
            texts.append(t[:5000])
            f.write(json.dumps({"text": t, "domain": rng.choice("abc")}) + "\n")


def summary(path):
    s = json.loads(must(["inspect", "--json", path]).out)
    return [s[k] for k in ("sequences", "tokens", "checksum", "trace_checksum")]


def one_pass(n, extra=()):
    """The streams of n parts in one pass: records, bytes, sums."""
    must(["dedup"] + MODE + list(extra) + ["-o", "one.tks", "--stats", "one.json"] + ["p%d-%d.tks" % (n, i) for i in range(n)])
    return must(["inspect", "--records", "one.tks"]).out, normal("one.tks"), summary("one.tks")


def equal():
    planted("c.jsonl", 500 if not FULL else 40000, 5, 1300000)
    for n in (1, 3, 8):
        tokenize(n)
    want = one_pass(1)
    books = json.load(open("one.json"))
    result(books["passages"] > 300 and books["asked_blocks"] > 300, "there are passages, and questions", books)
    for n in (1, 3, 8):
        for ranges in (1, 2, 5):
            got = whole(MODE, "w%d-%d" % (n, ranges), n, ranges)
            result(must(["inspect", "--records", got]).out == want[0], "N = %d, R = %d: records and order of one pass" % (n, ranges))
            result((normal(got), summary(got)) == want[1:], "N = %d, R = %d: bytes and checksums of one pass" % (n, ranges))
            if n == 1:
                result(sha(got) == sha("one.tks"), "N = 1, R = %d: the file of one pass" % ranges)
    for extra in (["-T", "1", "-M", "300M"], ["-T", "2", "-M", "32M"]):
        got = whole(MODE, "other", 3, 2, extra)
        files = sorted(os.listdir("w3-2"))
        same = files == sorted(os.listdir("other")) and all(sha("w3-2/" + f) == sha("other/" + f) for f in files)
        result(same and normal(got) == want[1], "every stage's files are the same with %s" % " ".join(extra))
        shutil.rmtree("other")
    # The accounts of the parts add up to those of one pass.
    sums = {}
    for _, argv in steps(MODE, "books", 3, 2):
        must(argv + ["--stats", "s.json"])
        for k, v in json.load(open("s.json")).items():
            if k in ("blocks", "repeated_blocks", "asked_blocks"):
                sums[k] = sums.get(k, 0) + v
    for argv in base.filters(MODE, "books", 3):
        must(argv + ["--stats", "s.json"])
        s = json.load(open("s.json"))
        for k in ("passages", "passage_tokens", "documents_cut", "documents_gone"):
            sums[k] = sums.get(k, 0) + s[k]
        for what in ("tokens", "sequences", "documents"):
            sums[what] = sums.get(what, 0) + s[what]["dropped"].get("repeated-passage", 0)
    result(all(v == (books[k]["dropped"]["repeated-passage"] if isinstance(books[k], dict) else books[k]) for k, v in sums.items()),
           "the account of all parts are those of one pass", "%s\n%s" % (sums, books))
    # Of a cut document short stretches go too.
    want = one_pass(1, ["--min-keep", "15"])
    for _, argv in steps(MODE, "keep", 3, 2):
        must(argv)
    for argv in base.filters(MODE, "keep", 3, ["--min-keep", "15"]):
        must(argv)
    result(must(["inspect", "--records", base.cat("keep", 3)]).out == want[0], "filter --min-keep: the records of one pass")


def packed():
    """Sequences of several segments with padding, long windows, and parts without any token."""
    planted("c.jsonl", 400, 9)
    tokenize(3, prefix="d")
    for i in range(3):
        out = must(["decompose", "--min", "16", "--max", "64", "d3-%d.tks" % i]).out
        open("pieces.tks", "wb").write(out)
        must(["pack", "--length", "256", "-o", "p3-%d.tks" % i, "pieces.tks"])
    for mode in (["--substring", str(N_TOK)], ["--substring", "2"], ["--substring", "40"]):
        MODE[:] = mode
        want = one_pass(3)
        got = whole(mode, "w", 3, 2)
        result(must(["inspect", "--records", got]).out == want[0] and summary(got) == want[2], "packed, %s: one pass" % " ".join(mode))
        shutil.rmtree("w")
    MODE[:] = ["--substring", str(N_TOK)]
    open("none.jsonl", "w").close()
    must(["tokenize", "--no-provenance", "-t", "bytes", "--domain-field", "domain", "--on-error", "skip", "-o", "p4-1.tks", "none.jsonl"])
    for i, k in ((0, 0), (2, 1), (3, 2)):
        shutil.copy("d3-%d.tks" % k, "p4-%d.tks" % i)
    want = one_pass(4)
    got = whole(MODE, "w", 4, 7)
    result(must(["inspect", "--records", got]).out == want[0], "a part without a sequence, more ranges than parts")


def memory():
    """Blocks, windows and what is found spill with -M 32M, and memory stays in bounds."""
    rng = random.Random(5)
    words = ["%x" % rng.getrandbits(24) for _ in range(400)]
    kept = []
    with open("c.jsonl", "w") as f:
        for i in range(4500 if not FULL else 20000):
            t = " ".join(rng.choices(words, k=200))
            if kept and i % 2:
                old = rng.choice(kept)
                a = rng.randrange(len(old))
                t = t[:rng.randrange(len(t))] + old[a:a + rng.randrange(1500)] + t
            if len(kept) < 900:
                kept.append(t)
            f.write('{"text":"%s"}\n' % t)
        f.write('{"text":"%s"}\n' % ("-" * 1500000))
    must(["tokenize", "--no-provenance", "-t", "bytes", "-o", "p1-0.tks", "c.jsonl"])
    want = one_pass(1)
    spilled = {}
    todo = list(steps(MODE, "w", 1, 1, ["-M", "32M"])) + [("filter", x) for x in base.filters(MODE, "w", 1, ["-M", "32M"])]
    for stage, argv in todo:
        must(argv + ["--stats", "s.json"])
        s = json.load(open("s.json"))
        spilled[stage] = s["spill_bytes"]
        if not os.environ.get("SAN"):
            result(s["peak_rss_bytes"] <= 96 << 20, "-M 32M: %s stays within 64 MiB more" % stage, s["peak_rss_bytes"])
    result(sha("w-f0.tks") == sha("one.tks"), "-M 32M: the file of one pass")
    result(all(spilled[x] for x in ("sign", "group", "ask", "match")), "-M 32M: sign, group, ask and match spill", spilled)


def small_set(n=120, work="good", mode=MODE):
    planted("c.jsonl", min(n, 120), 6)
    tokenize(3)
    must(["dedup"] + mode + ["-o", "one.tks", "p3-0.tks", "p3-1.tks", "p3-2.tks"])
    shutil.rmtree(work, ignore_errors=True)
    return normal(whole(mode, work, 3, 2)), normal("one.tks")


def refused():
    got, want = small_set()
    result(got == want, "three streams in one pass: the same")

    def no(what, argv, say, status=1, work="good"):
        refuses(what, ["dedup"] + argv, say, status, work, "x.tks")

    def stage(name, part=None, mode=MODE, extra=(), work="good", stream=None):
        return (mode + list(extra) + ["--work", work, "--stage", name] + (["--part", part] if part else []) +
                ([stream] if stream else []))

    out = ["-o", "x.tks"]
    for ph, argv in steps(MODE, "good", 3, 2):
        path = "good/%s.%s" % (ph, argv[argv.index("--part") + 1].replace("/", "-of-"))
        before = os.stat(path).st_mtime_ns
        r = must(argv + ["--stats", "s.json"])
        result(json.load(open("s.json"))["skipped"] and os.stat(path).st_mtime_ns == before, "%s: is skipped where it is there" % path, r)
    # Parameters, other modes' files.
    other = ["--substring", "21"]
    for ph, part, stream, extra in (("sign", "0/3", "p3-0.tks", ()), ("group", "0/2", None, ()), ("ask", "0/3", "p3-0.tks", ()),
                                    ("match", "1/2", None, ()), ("filter", "0/3", "p3-0.tks", out)):
        no("%s of other passages" % ph, stage(ph, part, mode=other, stream=stream, extra=extra), "was made with --substring=20, now --substring=21")
    for ph, part, stream, mode in (("sign", "0/3", "p3-0.tks", ["--near"]), ("verify", "0/3", None, ["--near"])):
        no("%s %s where passages were" % (mode[0], ph), stage(ph, part, mode=mode, stream=stream), "was made with --substring=20, now without|was made without --near, now --near")
    no("--exact group where passages were", stage("group", "0/2", mode=["--exact"]), "was made with --substring=20, now without")
    no("other ranges", stage("sign", "0/3", extra=["--ranges", "4"], stream="p3-0.tks"), "was made with --ranges=2, now --ranges=[34]")
    no("group with other ranges", stage("group", "0/3"), "has 2 ranges, so part 0/3 does not exist")
    no("match with other ranges", stage("match", "0/3"), "has 2 ranges, so part 0/3 does not exist")
    # Streams and tokenizers.
    sign = ["--ranges", "2"]
    no("sign of another stream", stage("sign", "0/3", extra=sign, stream="p3-1.tks"), "was made from another stream")
    no("ask of another stream", stage("ask", "0/3", stream="p3-1.tks"), "was made from another stream")
    no("ask of another stream, -f", stage("ask", "0/3", extra=["-f"], stream="p3-1.tks"), "differs from the one that good/sign.0-of-3 was made from")
    no("filter of another stream", stage("filter", "0/3", extra=out, stream="p3-1.tks"), "differs from the one that good/sign.0-of-3 was made from")
    must(["tokenize", "-t", "builtin", "--part", "0/3", "-o", "b.tks", "c.jsonl"])
    no("sign with another tokenizer", stage("sign", "0/3", extra=sign, stream="b.tks"), "another tokenizer")
    no("ask with another tokenizer", stage("ask", "0/3", stream="b.tks"), "another tokenizer")
    no("filter with another tokenizer", stage("filter", "0/3", extra=out, stream="b.tks"), "another tokenizer")
    # A sign file that was made again from another stream: what came of the old one does not go with it.
    shutil.copytree("good", "mixed")
    must(["dedup"] + stage("sign", "2/3", work="mixed", extra=sign + ["-f"], stream="p3-1.tks"))
    other_files = "%s: was made from other files than the ones here now"
    no("group where a sign file was exchanged", stage("group", "0/2", work="mixed"), other_files % "group.0-of-2", work="mixed")
    no("ask of that stream", stage("ask", "2/3", work="mixed", stream="p3-1.tks"), "ask.2-of-3: was made from another stream", work="mixed")
    for j in range(2):
        must(["dedup"] + stage("group", "%d/2" % j, work="mixed", extra=["-f"]))
    no("ask where group files were made again", stage("ask", "1/3", work="mixed", stream="p3-1.tks"), other_files % "ask.1-of-3", work="mixed")
    no("filter where group files were made again", stage("filter", "1/3", work="mixed", extra=out, stream="p3-1.tks"), other_files % "match.0-of-2", work="mixed")
    for i, p in enumerate((0, 1, 1)):
        must(["dedup"] + stage("ask", "%d/3" % i, work="mixed", extra=["-f"], stream="p3-%d.tks" % p))
    no("match where ask files were made again", stage("match", "0/2", work="mixed"), other_files % "match.0-of-2", work="mixed")
    no("filter where ask files were made again", stage("filter", "1/3", work="mixed", extra=out, stream="p3-1.tks"), other_files % "match.0-of-2", work="mixed")
    for j in range(2):
        must(["dedup"] + stage("match", "%d/2" % j, work="mixed", extra=["-f"]))
    must(["dedup"] + stage("filter", "1/3", work="mixed", extra=["-o", "y.tks"], stream="p3-1.tks"))
    result(True, "all made again: it goes on")
    # What is missing.
    for f, ph, part, stream in (("sign.2-of-3", "group", "0/2", None), ("group.1-of-2", "ask", "2/3", "p3-2.tks"),
                                ("ask.0-of-3", "match", "1/2", None), ("group.1-of-2", "filter", "1/3", "p3-1.tks"),
                                ("match.0-of-2", "filter", "1/3", "p3-1.tks")):
        os.rename("good/" + f, "gone")
        no("%s without %s" % (ph, f), stage(ph, part, stream=stream, extra=out if ph == "filter" else ()),
           "%s is missing; run stage %s for part %s" % (f, f.split(".")[0], f.split(".")[1].replace("-of-", "/")))
        os.rename("gone", "good/" + f)
    # What is not.
    for f, ph in (("sign.1-of-3", "ask"), ("ask.1-of-3", "filter")):
        os.rename("good/" + f, "gone")
        must(["dedup"] + stage(ph, "1/3", stream="p3-1.tks", extra=["-o", "z.tks"] if ph == "filter" else ()))
        os.rename("gone", "good/" + f)
    # Parts of streams that do not mix: the same tokenizer, other special ids.
    must(["tokenize", "--no-provenance", "-t", "bytes", "--domain-field", "domain", "--eos", "a", "--part", "1/3", "-o", "e.tks", "c.jsonl"])
    shutil.copytree("good", "other")
    must(["dedup"] + stage("sign", "1/3", work="other", extra=sign + ["-f"], stream="e.tks"))
    no("group of parts with other special ids", stage("group", "0/2", work="other"), "sign.1-of-3: its stream has other special ids", work="other")
    # Usage.
    for what, argv in (("verify", stage("verify", "0/3")), ("cluster", stage("cluster")), ("ask of --near", stage("ask", "0/3", mode=["--near"], stream="p3-0.tks")),
                       ("match of --exact", stage("match", "0/2", mode=["--exact"])), ("a stream for match", stage("match", "0/2", stream="p3-0.tks")),
                       ("-o for ask", stage("ask", "0/3", extra=out, stream="p3-0.tks")), ("--substring 1", stage("group", "0/2", mode=["--substring", "1"])),
                       ("--pairs", stage("filter", "0/3", extra=["--pairs", "x"], stream="p3-0.tks")),
                       ("--annotate", stage("filter", "0/3", extra=["--annotate"], stream="p3-0.tks"))):
        no("usage: " + what, argv, ".", status=2)
    for argv in (["--ngrams", "--stage", "sign", "--work", "w", "--part", "0/2", "p3-0.tks"], ["--ngrams", "--part", "0/2", "p3-0.tks"]):
        no("usage: " + " ".join(argv[:2]), argv, "whole stream", status=2)


def damaged():
    base.damaged()


def killed():
    base.killed()


base.MODES = ((MODE, ["sign", "group", "ask", "match"], "substring"),)
base.NEAR[:] = MODE
base.steps, base.small_set = steps, small_set

if __name__ == "__main__":
    for part_name in sys.argv[1:]:
        globals()[part_name]()
