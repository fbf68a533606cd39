#!/usr/bin/env python3
"""A document's score passes through every program, and shuffle sorts by scores as a simple sort does.

Scores of all kinds: missing, null, equal, negative, tiny, huge. The test compares the scores of all segments after
decompose, pack, dedup and in shards, with little and with much memory, and the order of every sequence for --order
ascending, descending and bands:N, with and without --max-tokens, from files and from pipes.
check-more: whole
"""
import json
import math
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import finish, need, result, run, stats  # noqa: E402

need("tokenize", "dedup", "decompose", "pack", "shuffle", "inspect")
try:
    import xxhash
except ImportError:
    print("skip scores: needs the package xxhash")
    sys.exit(0)


def u64(*v):
    return b"".join(x.to_bytes(8, "little") for x in v)


def records(stream):
    return [json.loads(line) for line in run("inspect", "--records", "-", stdin=stream).splitlines()]


def corpus(r, n):
    """JSONL, and the score that each document must have, by its place."""
    lines, want, at = [], {}, 0
    for i in range(n):
        d = {"text": "%d " % i + "x" * r.choice([0, 10, r.randint(1, 900)])}
        kind = r.random() if i else 0  # a corpus in which no document has a score is refused
        if kind < 0.8:
            d["q"] = r.choice([0, 1, 2, 3, -5, 0.25, r.uniform(-9, 9), 1e300, -1e300, -0.0, 5e-324, 2**70])
        elif kind < 0.9:
            d["q"] = None
        line = json.dumps(d).encode() + b"\n"
        want[at] = d.get("q")
        lines.append(line)
        at += len(line)
    return b"".join(lines), want


def carried(what, recs, want):
    wrong = [s for x in recs for s in x["segments"]
             if not s.get("padding") and s.get("score") != want[s["document"]] or "score" in s and s.get("padding")]
    result(not wrong and any("score" in s for x in recs for s in x["segments"]), "scores %s" % what, wrong[:3])


def score(x):
    """A sequence's: the mean by tokens of the segments that have one."""
    have = [s for s in x["segments"] if "score" in s]
    if len(have) == 1 and len(x["segments"]) == 1:
        return float(have[0]["score"])
    total = weight = 0.0
    for s in have:
        total += s["score"] * s["length"]
        weight += s["length"]
    return total / weight if weight else math.nan


def key(x, seed, what=b"sluperm1"):
    rows = b"".join(u64(2**64 - 1, 0, 0, s["length"]) if s.get("padding") else
                    u64(0, s["document"], s["offset"], s["length"]) for s in x["segments"])
    return xxhash.xxh3_128_intdigest(what + u64(seed, 0) + rows)


def orders(r, stream, recs, number):
    seed = r.randint(0, 2**64 - 1)
    value = [score(x) for x in recs]
    k = [key(x, seed) for x in recs]
    # Which of equal scores are in a band says nothing about their places in it.
    choice = [key(x, seed, b"slublnd1") for x in recs]
    size = [len(x["tokens"]) for x in recs]
    total = sum(size)

    def by(sign, ties):
        return sorted(range(len(recs)), key=lambda i: (math.isnan(value[i]), 0 if math.isnan(value[i]) else sign *
                                                       value[i], ties[i] >> 64))
    for order in "ascending", "descending", "bands:%d" % r.choice([1, 2, 3, 10, 500]), "bands":
        limit = r.choice([None, None, total, total // 3, 1])
        line, left = by(-1 if order == "descending" else 1, choice if order.startswith("bands") else k), total if limit is None else limit
        want, used = [], 0
        for i in line:
            if used + size[i] > left:
                break
            used += size[i]
            want.append(i)
        if order.startswith("bands"):
            n = int(order[6:] or 10) if ":" in order else 10
            ends, band, used = [min(left, total) * (j + 1) // n for j in range(n)], {}, 0
            for i in want:
                used += size[i]
                band[i] = next(j for j in range(n) if used <= ends[j])
            want.sort(key=lambda i: (band[i], k[i]))
        args = ["--seed", seed, "--order", order] + ([] if limit is None else ["--max-tokens", limit])
        out = stats("shuffle", *args, stdin=stream)[0]
        good = records(out) == [recs[i] for i in want]
        with tempfile.NamedTemporaryFile() as f:
            f.write(stream)
            f.flush()
            good = good and run("shuffle", *args, "-M32M", "-T3", f.name) == out
        result(good, "case %d: %s" % (number, " ".join(map(str, args))))


def ties():
    """Two bands of 450 of 300 low and 600 high scores: the 150 high ones of the first band are anywhere in it. The mean
    place of n of N has the variance (N + 1)(N - n) / 12n; within five standard deviations."""
    lines = b"".join(b'{"text": "%04d", "q": %d}\n' % (i, i >= 300) for i in range(900))
    stream = run("tokenize", "-t", "bytes", "--format", "jsonl", "--score-field", "q", stdin=lines)
    band = [score(x) for x in records(run("shuffle", "--seed", 1, "--order", "bands:2", stdin=stream))][:450]
    high = [i for i, v in enumerate(band) if v == 1]
    most = 5 * math.sqrt(451 * 300 / 12 / 150)
    result(len(high) == 150 and abs(sum(high) / 150 - 449 / 2) < most, "equal scores are anywhere in their band", (len(high), sum(high) / 150, most))


def holds(v, text):
    op = text.rstrip("0123456789.-")
    x = float(text[len(op):])
    return {">=": v >= x, "<=": v <= x, ">": v > x, "<": v < x, "=": v == x}[op]


def bands(r, stream, recs, number):
    """shuffle --mix over bands: how often each sequence comes, from a file, a pipe, in little memory and in stages."""
    line = r.sample([">=2", "<0", ">1", "=0", "<=0.25", ">=-5", ">9"], r.choice([1, 2, 4]))
    repeats = [r.choice([0, 1, 2, 3, 0.5, 2.5]) for _ in line]
    args = ["--mix", r.choice([",", ", ", " , "]).join("score%s:%s" % x for x in zip(line, repeats)), "--seed", r.randrange(9)]
    out, s = stats("shuffle", *args, stdin=stream)
    got, want, size = {}, {}, {}
    for x in recs:
        k, v = json.dumps(x), score(x)
        band = next((i for i, text in enumerate(line) if holds(v, text)), len(line))
        want[k], size[k] = band, len(x["tokens"])
    for x in records(out):
        k = json.dumps(x)
        got[k] = got.get(k, 0) + 1
    good = set(got) <= set(want)
    for i, n in enumerate(repeats + [1]):
        here = [k for k in want if want[k] == i]
        most, took = int(sum(size[k] for k in here) * n), sum(got.get(k, 0) * size[k] for k in here)
        good = good and all(int(n) <= got.get(k, 0) <= -int(-n // 1) for k in here)
        good = good and took <= most and (n != int(n) or took == most) and most - took < max([size[k] for k in here] + [1])
    result(good, "case %d: %s" % (number, " ".join(map(str, args))))
    mix = s["mix"]
    result(mix["by"] == "score" and [x["name"] for x in mix["sources"]] == ["score" + x for x in line] + ["others"] and
           sum(x["taken"]["sequences"] for x in mix["sources"]) == sum(got.values()), "case %d: the report" % number, mix)
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/s", "wb") as f:
            f.write(stream)
        result(run("shuffle", *args, "-M32M", "-T3", d + "/s") == out, "case %d: from a file" % number)
        stage = ["shuffle", "-q", *args, "--work", d + "/w", "--stage"]
        for name in "count", "mix", "scatter":
            run(*stage, name, *([] if name == "mix" else ["--part", "0/1", "--ranges", 2][:4 if name == "scatter" else 2] + [d + "/s"]))
        parts = b"".join(run(*stage, "gather", "--part", "%d/2" % i) for i in (0, 1))
        result(records(parts) == records(out), "case %d: in stages" % number)


def tokenize(data, *args):
    return run("tokenize", "-q", "-t", "bytes", "--format", "jsonl", *args, stdin=data)


def through(r):
    data, want = corpus(r, 600)
    out, s = stats("tokenize", "-q", "-t", "bytes", "--format", "jsonl", "--score-field", "q", stdin=data)
    result(s["scored"] == sum(v is not None for v in want.values()), "tokenize counts the documents with scores")
    carried("are those of the records", records(out), want)
    carried("come through dedup", records(run("dedup", "-q", stdin=out)), want)
    carried("come through dedup --near", records(run("dedup", "-q", "--near", "--no-verify", stdin=out)), want)
    carried("come through dedup --substring", records(run("dedup", "-q", "--substring", "300", stdin=out)), want)
    pieces = run("decompose", "-q", "--min", 32, "--max", 256, "--label-token", stdin=out)
    carried("come through decompose", records(pieces), want)
    carried("come through decompose --mixture", records(
        run("decompose", "-q", "--min", 32, "--max", 256, "--mixture", "equal", "--tail", "drop", stdin=out)), want)
    for method in "bfd", "ffd", "concat":
        for memory in "32M", "1G":
            packed = run("pack", "-q", "--method", method, "-M", memory, stdin=pieces)
            carried("come through pack --method %s -M %s" % (method, memory), records(packed), want)
    packed = run("pack", "-q", stdin=pieces)
    carried("come through a shuffle past -M", records(run("shuffle", "-M32M", stdin=packed)), want)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "set")
        run("shuffle", "-q", "--format", "wds", "--order", "ascending", "-o", path, stdin=packed)
        recs = [json.loads(line) for line in run("inspect", "--records", path).splitlines()]
        carried("come into shards", recs, want)
        for n in {len(x["tokens"]) for x in recs}:
            v = [score(x) for x in recs if len(x["tokens"]) == n]
            v = [(math.isnan(x), 0 if math.isnan(x) else x) for x in v]
            result(v == sorted(v), "shards of %d tokens ascend" % n)
    long = json.dumps({"text": "y" * 3000000, "q": 0.5}).encode() + b"\n"
    carried("of a document larger than a frame", records(tokenize(long, "--score-field", "q")), {0: 0.5})
    plain = tokenize(data)
    result(not any("score" in x for y in records(plain) for x in y["segments"]) and
           struct.unpack_from("<I", plain, 64 + 12)[0] == 0, "a stream that nobody asked for scores has none")


def refusals(r):
    data = corpus(r, 20)[0]
    p = run("shuffle", "--order", "ascending", stdin=tokenize(data), check=False)
    result(p.returncode == 1 and b"--score-field" in p.stderr, "--order ascending without scores", p.stderr)
    for bad in b'"3"', b"true", b"[1]", b"{}", b"1e999", b"nan":
        line = b'{"text": "a", "q": ' + bad + b"}\n"
        p = run("tokenize", "-t", "bytes", "--format", "jsonl", "--score-field", "q", stdin=line, check=False)
        result(p.returncode == 1 and p.stderr.count(b"\n") == 1 and
               (b"not a number" in p.stderr or bad in (b"nan", b"1e999")), "a score %s" % bad.decode(), p.stderr)
    p = run("shuffle", "--mix", "score>=1:2", stdin=tokenize(data), check=False)
    result(p.returncode == 1 and b"no scores to mix by" in p.stderr, "bands of a stream without scores", p.stderr)
    for bad in "score>=1:2,", "score>=1:2,web=1", "score>1:x", "score>1:1001", "score>1:1,score>1:2", "score>1:", "score>1:1.1234567":
        p = run("shuffle", "--mix", bad, stdin=tokenize(data, "--score-field", "q"), check=False)
        result(p.returncode == 2 and p.stderr.count(b"\n") == 1, "--mix '%s'" % bad, p.stderr)
    for bad in "score>=1", "score<1,score>1:2", "score>1:2, score<1":
        p = run("shuffle", "--mix", bad, stdin=tokenize(data, "--score-field", "q"), check=False)
        result(p.returncode == 2 and b"is not EXPRESSION:TIMES, as score>=4:2" in p.stderr, "bands without times: '%s'" % bad, p.stderr)
    for more in ["--max-tokens", 5], ["--max-epochs", 2], ["--mix-by", "input"], ["--mix-by", "domain"]:
        p = run("shuffle", "--mix", "score>1:2", *more, stdin=tokenize(data, "--score-field", "q"), check=False)
        result(p.returncode == 2 and b"leave --mix-by" in p.stderr, "bands with " + more[0], p.stderr)
    for bad in "up", "bands:0", "bands:x", "ascending:3", "bands:5000", "bands:":
        p = run("shuffle", "--order", bad, stdin=tokenize(data), check=False)
        result(p.returncode == 2, "--order %s" % bad, p.stderr)
    p = run("shuffle", "--order", "bands", "--mix", "=1", stdin=tokenize(data, "--score-field", "q"), check=False)
    result(p.returncode == 2 and p.stderr.count(b"\n") == 1, "bands with a mix", p.stderr)
    with tempfile.TemporaryDirectory() as d:
        for name, args in ("a", []), ("b", ["--score-field", "q"]):
            with open(os.path.join(d, name), "wb") as f:
                f.write(tokenize(data, *args))
        p = run("shuffle", os.path.join(d, "a"), os.path.join(d, "b"), check=False)
        result(p.returncode == 1 and b"scores" in p.stderr, "streams with and without do not mix", p.stderr)


r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
through(r)
for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 8):
    stream = tokenize(corpus(r, r.choice([1, 5, 100, 800]))[0], "--score-field", "q")
    if number % 2:
        stream = run("pack", "-q", "--length", 256, stdin=run("decompose", "-q", "--min", 32, "--max", 256, stdin=stream))
    orders(r, stream, records(stream), number)
    bands(r, stream, records(stream), number)
ties()
refusals(r)
finish()
