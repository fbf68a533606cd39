#!/usr/bin/env python3
"""Checks the promises of shuffle --stage: shuffle_stages.py PART... in an empty folder (see shuffle_stages.sh).

Parts: streams shards mixes orders refused damaged forged killed. FULL=1: more parts and ranges, more places of damage.
"""
import glob
import json
import os
import random
import re
import shutil
import struct
import sys

from stages import FULL, Run, SHIM, must, result, sections, sha

PIECES = 8  # streams that all the input is in; some are empty
SEED = ["--seed", "4"]


def tree(folder):
    return {os.path.relpath(os.path.join(at, f), folder): sha(os.path.join(at, f))
            for at, _, files in os.walk(folder) for f in files}


def differs(got, want):
    """What differs between two trees; "" if nothing does."""
    return ", ".join(sorted(k for k in set(got) | set(want) if got.get(k) != want.get(k))[:5])


def pieces(prefix, label, n_byte=600000 if FULL else 150000):
    """PREFIX0.tks … PREFIX7.tks: documents of three domains, most with a score, cut and packed; two of the streams are empty."""
    rng, scores = random.Random(5), random.Random(6)
    words = ["w%d" % i for i in range(300)]
    with open(prefix + ".jsonl", "w") as f:
        n = 0
        while n < n_byte:
            text = " ".join(rng.choice(words) for _ in range(int(rng.lognormvariate(3.5, 1.2)) + 1))
            n += len(text)
            # each domain is more frequent in one part than in others, and comes first in one
            f.write(json.dumps({"id": "%d" % n, "text": text,
                                "score": scores.choice([None, 0, 1, 1, 2.5, -1, scores.gauss(2, 1)]), "domain": ("web", "code", "ünï")[(rng.randrange(4) + 3 * n // n_byte) % 3]}) + "\n")
    for k in range(PIECES):
        cut(prefix + ".jsonl", "%s%d.tks" % (prefix, k), label, ["--part", "%d/%d" % (k, PIECES)])
    for k in (2, 5):
        must(["shuffle", "--no-provenance", "--order", "keep", "--sample", "0", "%s%d.tks" % (prefix, k), "-o", "a.tks"])
        os.rename("a.tks", "%s%d.tks" % (prefix, k))
    return ["%s%d.tks" % (prefix, k) for k in range(PIECES)]


def cut(jsonl, tks, label, options=()):
    with open("a.tks", "wb") as f:
        f.write(must(["tokenize", "-t", "bytes", "--id-field", "id", "--domain-field", "domain", "--score-field", "score"] + list(options) + [jsonl]).out)
    must(["decompose", "--min", "32", "--max", "512", "a.tks", "-o", "b.tks"] + (["--label-token"] if label else []))
    must(["pack", "b.tks", "-o", tks])


def whole(prefix):
    """The documents of PREFIX.jsonl, which pieces() has made, as PREFIX0.doc … PREFIX7.doc."""
    for k in range(PIECES):
        must(["tokenize", "-t", "bytes", "--id-field", "id", "--domain-field", "domain", "--score-field", "score", "--part", "%d/%d" % (k, PIECES),
              prefix + ".jsonl", "-o", "%s%d.doc" % (prefix, k)])
    return ["%s%d.doc" % (prefix, k) for k in range(PIECES)]


def share(streams, n):
    """The streams of each of n parts: some parts have several, and past PIECES some have none but an empty one."""
    if n > len(streams):
        return [[s] for s in streams] + [[streams[2]]] * (n - len(streams))
    at = [i * len(streams) // n for i in range(n + 1)]
    return [streams[at[i]:at[i + 1]] for i in range(n)]


def scatters(streams, work, n, ranges, extra=()):
    for i, s in enumerate(share(streams, n)):
        yield ["shuffle", "-q"] + SEED + list(extra) + ["--work", work, "--stage", "scatter", "--part", "%d/%d" % (i, n),
                                                       "--ranges", str(ranges)] + s


def counts(streams, work, n, extra=(), plan="mix"):
    for i, s in enumerate(share(streams, n)):
        yield ["shuffle", "-q"] + SEED + list(extra) + ["--work", work, "--stage", "count", "--part", "%d/%d" % (i, n)] + s
    yield ["shuffle", "-q"] + SEED + list(extra) + ["--work", work, "--stage", plan]


def gathers(work, ranges, out, extra=()):
    for j in range(ranges):
        yield ["shuffle", "-q"] + SEED + list(extra) + ["--work", work, "--stage", "gather", "--part", "%d/%d" % (j, ranges),
                                                       "-o", out]


def finish(work, out, extra=()):
    return ["shuffle", "-q"] + SEED + list(extra) + ["--work", work, "--stage", "finish", "-o", out]


def account(argv, sums):
    """Runs it, and adds what its report says of tokens to sums."""
    must(argv + ["--stats", "s.json"])
    t = json.load(open("s.json"))["tokens"]
    for k in ("in", "out", "repeated", "from_work", "to_work"):
        sums[k] = sums.get(k, 0) + t.get(k, 0)
    sums["dropped"] = sums.get("dropped", 0) + sum(t["dropped"].values())


def balanced(s):
    return s["to_work"] == s["from_work"] and s["in"] + s["repeated"] == s["out"] + s["dropped"]


# ---- what must be equal ----

def one_stream(streams, what, n, ranges, extra=(), mix=None, options=()):
    shutil.rmtree("w", ignore_errors=True)
    for f in glob.glob("o.*"):
        os.unlink(f)
    must(["shuffle", "-q", "-o", "one.tks"] + SEED + list(extra) + streams)
    sums = {}
    for argv in list(counts(streams, "w", n, extra, mix) if mix else []):
        must(argv)
    for argv in list(scatters(streams, "w", n, ranges, list(extra) + list(options))) + list(
            gathers("w", ranges, "o.{part}", list(extra) + list(options))):
        account(argv, sums)
    parts = ["o.%d" % j for j in range(ranges)]
    want, got = must(["inspect", "--records", "one.tks"]).out, must(["inspect", "--records"] + parts).out
    result(want == got, "%s, N = %d, R = %d: the records of one shuffle, in order" % (what, n, ranges), "")
    result(balanced(sums), "%s, N = %d, R = %d: the account balances" % (what, n, ranges), sums)
    a, b = json.loads(must(["inspect", "--json", "one.tks"]).out), json.loads(must(["inspect", "--json"] + parts).out)
    result(a["provenance"] == b["provenance"] and (a["tokens"] > 0 or "0" in extra), "%s: provenance, with all counts" % what, "%s\n%s" % (a, b))
    return parts


def one_set(streams, what, n, ranges, extra=(), shards=(), want=None, mix=None, options=(), order=None):
    """The set in parts is the one of one run; gives its tree."""
    for d in ("w", "set"):
        shutil.rmtree(d, ignore_errors=True)
    if want is None:
        shutil.rmtree("want", ignore_errors=True)
        must(["shuffle", "-q", "-o", "want"] + SEED + list(extra) + list(shards) + streams)
        want = tree("want")
    sums = {}
    every = list(extra) + list(options)
    for argv in list(counts(streams, "w", n, every, mix) if mix else []):
        must(argv)
    for argv in scatters(streams, "w", n, ranges, every):
        account(argv, sums)
    last = list(gathers("w", ranges, "set", every + list(shards)))
    random.Random(n * 31 + ranges).shuffle(last)
    for argv in last:
        account(argv, sums)
    result(not os.path.exists("set/report.json"), "%s, N = %d, R = %d: incomplete before finish" % (what, n, ranges))
    must(finish("w", "set", every + list(shards)))
    why = differs(tree("set"), want)
    result(not why, "%s, N = %d, R = %d: the set of one shuffle" % (what, n, ranges), why)
    result(balanced(sums), "%s, N = %d, R = %d: the account balances" % (what, n, ranges), sums)
    return want


GRID = [(n, r) for n in (1, 3, 8) for r in (1, 2, 5, 9)]
if not FULL:
    GRID = [(1, 1), (1, 5), (3, 2), (8, 9)]


def streams():
    p = pieces("p", False)
    for n, r in GRID + [(11, 3)]:
        parts = one_stream(p, "a stream", n, r)
    sizes = [json.loads(must(["inspect", "--json", o]).out)["tokens"] for o in parts]
    result(min(sizes) * 2 > max(sizes), "ranges are about equal", sizes)
    last = list(gathers("w", 3, "o.{part}"))[2]
    must(last + ["--stats", "s.json"])
    result(json.load(open("s.json"))["skipped"] is True, "gather is skipped where its stream is there")
    must(list(scatters(p, "w", 11, 3))[-1][:-1] + ["-f", "p0.tks"])
    r = Run(last)
    result(r.clear_failure() and "o.2" in r.err, "and refused where a scatter file is another", r)
    one_stream(p, "--sample", 3, 5, ["--sample", "0.3"])
    one_stream(p, "--sample 0", 3, 2, ["--sample", "0"]) if FULL else None
    one_stream(p, "-T 1 -M 32M", 8, 2, options=["-T", "1", "-M", "32M"])
    one_stream(["p0.tks", "p0.tks", "p1.tks", "p0.tks", "p3.tks", "p3.tks", "p2.tks", "p0.tks"], "the same ones several times", 8, 5)
    files = {}
    for options in (["-T", "1"], ["-T", "7", "-M", "100M"]):
        shutil.rmtree("w", ignore_errors=True)
        for argv in scatters(p, "w", 3, 4, options):
            must(argv)
        files[options[1]] = tree("w")
    result(files["1"] == files["7"], "scatter files do not depend on -T and -M", differs(files["1"], files["7"]))


def builds(name, streams, more=()):
    """Whether the programs can write this format."""
    r = Run(["shuffle", "-q", "--format", name, "-o", "try"] + list(more) + streams)
    shutil.rmtree("try", ignore_errors=True)
    return "not built" not in r.err


def shards():
    label, plain = pieces("l", True), pieces("p", False)
    size = ["--shard-sequences", "32"]
    want = None
    for n, r in GRID:
        want = one_set(label, "wds", n, r, ["--format", "wds"], size, want)
    for name, s, extra in (("olmo", plain, ["--olmo-path", "/data/set"]), ("mds", plain, []), ("megatron", plain, []),
                           ("litdata", plain, []), ("ds", label, []), ("parquet", plain, []),
                           ("megatron-sft", plain, [])):
        if not builds(name, s):
            continue
        want = one_set(s, name, 3, 5, ["--format", name] + extra, size)
        if FULL or name in ("olmo", "mds"):  # one that streams, one that builds
            for n, ranges in GRID if FULL else ((8, 9),):
                one_set(s, name, n, ranges, ["--format", name] + extra, size, want)
    wds = ["--format", "wds"]
    one_set(label, "one sequence a shard", 3, 5, wds + ["--sample", "0.02"], ["--shard-sequences", "1"])
    one_set(label, "one shard a bucket", 3, 9, wds, ["--shard-sequences", "1000000"])
    one_set(label, "shards of auto", 3, 2, wds)
    one_set(label, "--last drop", 3, 5, wds, size + ["--last", "drop"])
    one_set(label, "--last drop, all of it", 3, 5, wds, ["--shard-sequences", "1000000", "--last", "drop"])
    one_set(label, "--sample", 8, 9, wds + ["--sample", "0.2"], size)
    one_set(label, "--sample, hardly any", 3, 9, wds + ["--sample", "0.004"], size)
    one_set(label, "-T 1 -M 64M", 3, 5, wds, size, options=["-T", "1", "-M", "64M"])
    one_set(label, "--no-provenance, --license", 3, 2, wds + ["--no-provenance", "--license", "CC0-1.0"], size)
    one_set(["l0.tks", "l0.tks", "l1.tks", "l0.tks", "l3.tks", "l3.tks", "l2.tks", "l0.tks"], "the same ones several times", 8, 5,
            wds + ["--sample", "0.03"], ["--shard-sequences", "1"])
    documents = whole("p")
    longest = max(len(json.loads(line)["tokens"]) for s in documents for line in must(["inspect", "--records", s]).out.splitlines())
    for name, more in (("megatron", ["--shard-size", "20000"]), ("megatron", []), ("megatron", ["--shard-size", str(2 * longest)]),
                       ("ds", ["--shard-sequences", "30"]), ("olmo", ["--shard-size", str(2 * longest + 1)]), ("mds", ["--shard-size", "21000"]),
                       ("litdata", ["--shard-size", str(2 * longest + 128)]), ("parquet", ["--shard-size", str(4 * longest + 128)]),
                       ("parquet", [])):
        if not builds(name, documents, ["--documents"]):
            continue
        want = None
        for n, ranges in GRID:
            want = one_set(documents, "documents %s %s" % (name, " ".join(more)), n, ranges, ["--format", name, "--documents"],
                           more, want)
    n_documents = sum(json.loads(must(["inspect", "--json", s]).out)["sequences"] for s in documents)
    one_set(documents, "documents, one after the first shard", 3, 7, ["--format", "olmo", "--documents"],
            ["--shard-sequences", str(n_documents - 1)])
    one_set(documents, "documents, --sample", 3, 9, ["--format", "megatron", "--documents", "--sample", "0.02"],
            ["--shard-size", "11001"])
    one_set(documents, "documents, --sample 0", 3, 2, ["--format", "megatron", "--documents", "--sample", "0"])
    # Buckets without any, tails that are dropped.
    must(["tokenize", "-t", "bytes", "--part", "0/2", "l.jsonl", "-o", "a0.tks"])
    must(["decompose", "--label-token", "--min", "32", "--max", "16384", "a0.tks", "-o", "t0.tks"])
    must(["tokenize", "-t", "bytes", "--part", "1/2", "l.jsonl", "-o", "a1.tks"])
    must(["decompose", "--label-token", "--min", "32", "--max", "16384", "a1.tks", "-o", "t1.tks"])
    one_set(["t0.tks", "t1.tks"], "--tails drop, buckets without any", 2, 3, wds + ["--tails", "drop"], size)
    r = Run(list(scatters(["t0.tks"], "w9", 1, 1, wds))[0])
    result(r.clear_failure() and "--tails drop" in r.err, "tails are refused in scatter", r)


def mixes():
    label = pieces("l", True)
    size = ["--shard-sequences", "64"]
    for what, extra, grid in (
            ("--mix", ["--mix", "web=0.6,code=0.4"], ((1, 2), (3, 5))),
            ("--mix with repeats", ["--mix", "web=0.2,code=0.8", "--max-tokens", "300000", "--max-epochs", "20"], ((3, 5), (8, 2))),
            ("--mix-schedule", ["--mix-schedule", "web=1:70%;code=0.7,ünï=0.3:30%", "--max-epochs", "web=2,4"], ((3, 9), (8, 5))),
            ("--mix --sample", ["--mix", "web=0.6,ünï=0.4", "--sample", "0.5"], ((3, 2),))):
        for n, r in grid:
            one_set(label, what, n, r, ["--format", "wds"] + extra, size, mix="mix")
        one_stream(label, what, 3, 5, extra, mix="mix")
    one_set(whole("l"), "documents, --mix", 3, 5, ["--format", "megatron", "--documents", "--mix", "web=0.2,code=0.8",
                                                   "--max-tokens", "200000", "--max-epochs", "20"], ["--shard-size", "20000"], mix="mix")
    # Equal places on a source's line: the order of the parts decides, as that of the input does.
    one_stream(["l0.tks", "l0.tks", "l1.tks", "l0.tks", "l3.tks", "l3.tks", "l2.tks", "l0.tks"], "equal sequences in a mix", 8, 5,
               ["--mix", "web=0.5,code=0.5", "--max-tokens", "53333"], mix="mix")
    one_set(["l0.tks", "l0.tks", "l0.tks"], "equal sequences in a mix", 3, 2,
            ["--format", "wds", "--mix", "web=0.5,code=0.5", "--max-tokens", "40001"], size, mix="mix")


def orders():
    plain, label = pieces("p", False), pieces("l", True)
    size = ["--shard-sequences", "32"]
    total = sum(json.loads(must(["inspect", "--json", s]).out)["tokens"] for s in plain)
    again = ["p0.tks", "p0.tks", "p1.tks", "p0.tks", "p3.tks", "p3.tks", "p2.tks", "p0.tks"]
    for extra in (["--order", "ascending"], ["--order", "descending", "--max-tokens", str(total // 3)], ["--order", "bands:3"],
                  ["--order", "bands:7", "--max-tokens", str(total // 2 + 1)], ["--max-tokens", str(total // 4)], ["--max-tokens", "0"],
                  ["--max-tokens", str(total)], ["--max-tokens", "99999", "--sample", "0.7"]):
        what = " ".join(extra)
        for n, r in GRID if FULL or "--order" in extra else [(3, 2), (8, 9)]:
            parts = one_stream(plain, what, n, r, extra, mix="cut")
        sizes = [json.loads(must(["inspect", "--json", o]).out)["tokens"] for o in parts]
        if "bands:3" in extra:  # thirds of a band, by a hash of each sequence: within five standard deviations
            squares = sum(len(json.loads(line)["tokens"]) ** 2 for s in plain for line in must(["inspect", "--records", s]).out.splitlines())
            most = 5 * (squares / 3 * 2 / 9) ** .5
            result(all(abs(n - total / 9) < most for n in sizes), "%s: ranges are about equal" % what, "%s, %d" % (sizes, most))
        elif "0" not in extra and "bands:7" not in extra:
            result(min(sizes) * 2 > max(sizes), "%s: ranges are about equal" % what, sizes)
        one_stream(again, what + ", equal sequences", 8, 5, extra, mix="cut")
        one_set(label, what, 3, 5, ["--format", "wds"] + extra, size, mix="cut")
    one_stream(plain, "--order descending, -T 1 -M 32M", 8, 2, ["--order", "descending", "--max-tokens", "50001"], mix="cut",
               options=["-T", "1", "-M", "32M"])
    one_set(whole("p"), "documents, by score", 3, 5, ["--format", "megatron", "--documents", "--order", "descending", "--max-tokens", "70001"],
            ["--shard-size", "20000"], mix="cut")
    for what, extra, stage, say in (
            ("cut of a mix", ["--mix", "web=1"], "cut", "--stage cut needs --order by score or --max-tokens"),
            ("mix of an order", ["--order", "ascending"], "mix", "begin with --stage count"),
            ("count of a plain order", [], "count", "--stage count needs --mix, --order by score or --max-tokens"),
            ("an order and a mix", ["--order", "ascending", "--mix", "web=1"], "mix", "cannot be combined with a mix")):
        r = Run(["shuffle"] + extra + ["--work", "w", "--stage", stage] + (["--part", "0/1", plain[0]] if stage == "count" else []))
        result(r.status == 2 and say in r.err and r.err.count("\n") == 1, "refused: " + what, r)
    must(list(counts(plain, "w2", 3, ["--order", "ascending"], "cut"))[0])
    r = Run(list(counts(plain, "w2", 3, ["--order", "descending"], "cut"))[0])
    result(r.clear_failure() and "was made with --order=ascending, now --order=descending" in r.err, "refused: another order", r)


# ---- what is refused ----

def good_work(n=3, ranges=4):
    label = pieces("l", True, 100000)
    shutil.rmtree("good", ignore_errors=True)
    for argv in scatters(label, "good", n, ranges, WDS):
        must(argv)
    shutil.rmtree("want", ignore_errors=True)
    must(["shuffle", "-q", "-o", "want"] + SEED + WDS + SIZE + label)
    return label, tree("want")


WDS = ["--format", "wds"]
SIZE = ["--shard-sequences", "16"]


def refused():
    label, want = good_work()

    def no(what, argv, say, status=1):
        before = tree("good")
        r = Run(["shuffle"] + argv)
        good = r.status == status and re.fullmatch(r"shuffle: .{3}.*\n", r.err) and re.search(say, r.err)
        result(good and before == tree("good") and not os.path.exists("x"), what, r)

    def stage(name, part=None, extra=(), stream=(), work="good", base=None):
        return (SEED + (WDS if base is None else base) + list(extra) + ["--work", work, "--stage", name] +
                (["--part", part] if part else []) + list(stream))

    first = share(label, 3)[0]
    gather = ["-o", "x"] + SIZE
    before = os.stat("good/scatter.0-of-3").st_mtime_ns
    r = must(["shuffle"] + stage("scatter", "0/3", ["--ranges", "4", "--stats", "s.json"], first))
    result(json.load(open("s.json"))["skipped"] and os.stat("good/scatter.0-of-3").st_mtime_ns == before, "scatter is skipped", r)
    no("another seed", ["--seed", "5"] + WDS + ["--work", "good", "--stage", "scatter", "--part", "0/3", "--ranges", "4"] + first,
       "was made with --seed=4, now --seed=5")
    no("another sample", stage("scatter", "0/3", ["--ranges", "4", "--sample", "0.5"], first), "sample=0.5")
    no("other ranges", stage("scatter", "0/3", ["--ranges", "5"], first), "was made with --ranges=4, now --ranges=5")
    no("another input", stage("scatter", "0/3", ["--ranges", "4"], share(label, 3)[1]), "was made from another stream")
    no("other ranges in gather", stage("gather", "0/3", gather), "has 4 ranges, so part 0/3 does not exist")
    no("another seed in gather", ["--seed", "5"] + WDS + gather + ["--work", "good", "--stage", "gather", "--part", "0/4"], "seed=4")
    no("a stream of what was scattered for shards", stage("gather", "0/4", ["-o", "x"], base=[]), "was made with order=buckets, now order=all")
    must(["tokenize", "-t", "builtin", "l.jsonl", "-o", "b.tks"])
    must(["decompose", "--label-token", "--min", "32", "--max", "512", "b.tks", "--tail", "drop", "-o", "b2.tks"])
    no("another tokenizer", stage("scatter", "0/3", ["--ranges", "4"], ["b2.tks"]), "another tokenizer")
    for f, part in (("scatter.2-of-3", "2/3"), ("scatter.0-of-3", "0/3")):
        os.rename("good/" + f, "gone")
        no("without " + f, stage("gather", "1/4", gather), "%s is missing; run stage scatter for part %s" % (f, part))
        no("finish without " + f, stage("finish", None, gather), "%s is missing" % f)
        os.rename("gone", "good/" + f)
    os.mkdir("empty")
    no("gather of nothing", stage("gather", "0/4", gather, work="empty"), "no scatter files")
    no("a folder that does not exist", stage("gather", "0/4", gather, work="no-such"), "no-such")
    shutil.copy("good/scatter.0-of-3", "good/scatter.0-of-4")
    no("two numbers of parts", stage("gather", "0/4", gather), "of 3 parts and of 4")
    os.unlink("good/scatter.0-of-4")
    os.rename("good/scatter.1-of-3", "gone")
    shutil.copy("good/scatter.0-of-3", "good/scatter.1-of-3")
    no("a part under another's name", stage("gather", "0/4", gather), "is part 0/3; expected part 1/3")
    open("good/scatter.1-of-3", "wb").write(b"something else entirely" * 20)
    no("a file that is none", stage("gather", "0/4", gather), "scatter.1-of-3")
    os.rename("gone", "good/scatter.1-of-3")
    no("finish before gather", stage("finish", None, gather), "x: holds no parts of this shuffle")
    # Usage.
    for what, argv in (
            ("no --work", SEED + WDS + ["--stage", "scatter", "--part", "0/3"] + first),
            ("no --part", stage("scatter", None, stream=first)), ("--part 3/3", stage("scatter", "3/3", stream=first)),
            ("--part with finish", stage("finish", "0/3", gather)), ("a stream for gather", stage("gather", "0/4", gather, first)),
            ("-o for scatter", stage("scatter", "0/3", ["-o", "x"], first)), ("--order keep", stage("scatter", "0/3", ["--order", "keep"], first)),
            ("--ranges in gather", stage("gather", "0/4", gather + ["--ranges", "4"])),
            ("--mix-by input", stage("count", "0/3", ["--mix", "0=1", "--mix-by", "input"], first)),
            ("count without a mix", stage("count", "0/3", stream=first)), ("mix without a mix", stage("mix")),
            ("finish of a stream", stage("finish", None, ["-o", "x"], base=[])), ("no folder for shards", stage("gather", "0/4")),
            ("--work without --stage", WDS + ["--work", "good", "-o", "x"] + first), ("a stage that is none", stage("sort", "0/3")),
            ("--part without --stage", ["--part", "0/3", "-o", "x", "l{part}.tks"])):
        no("usage: " + what, argv, ".", status=2)
    must(["tokenize", "-q", "-t", "bytes", "l.jsonl", "-o", "r.tks"])
    must(["decompose", "--label-token", "--min", "1", "--max", "1Mi", "--tail", "drop", "r.tks", "-o", "r2.tks"])
    no("more cells than a file has", SEED + ["--stage", "scatter", "--work", "good2", "--part", "0/1", "--ranges", "64Ki", "--format",
                                             "wds", "r2.tks"], "take [0-9]+ ranges or fewer")
    # A mix.
    mix = ["--mix", "web=0.5,code=0.5"]
    no("scatter before mix", stage("scatter", "0/3", mix + ["--ranges", "4"], first, work="m"), "m/mix is missing; run stage mix")
    no("mix before count", stage("mix", None, mix, work="m"), "no count files")
    for argv in counts(label, "m", 3, WDS + mix):
        must(argv)
    for argv in counts(label, "m", 3, WDS + mix):
        must(argv + ["--stats", "s.json"])
        result(json.load(open("s.json"))["skipped"], "%s is skipped" % argv[-1])
    no("another mix", stage("scatter", "0/3", ["--mix", "web=0.4,code=0.6"], first, work="m"), "was made with --mix=web=0.5,code=0.5, now --mix=web=0.4")
    no("a stream that was not counted", stage("scatter", "0/3", mix, share(label, 3)[1], work="m"), "differs from the one that m/count.0-of-3 was made from")
    no("a mix of other parts", stage("scatter", "0/2", mix, first, work="m"), "is of 3 parts, and this run is part 0/2")
    for i, s in enumerate(share(label, 3)):
        must(["shuffle"] + stage("scatter", "%d/3" % i, mix + ["--ranges", "2"], s, work="m"))
    must(["shuffle"] + stage("count", "0/3", ["-f", "--mix", "web=0.4,code=0.6"], first, work="m"))
    no("count files of two mixes", stage("mix", None, mix, work="m"), "was made with --mix=")


# ---- files that are not what they were ----

def one_bad(label, data, want, work="bad", name="scatter.1-of-3"):
    """Puts data in the place of a good file; None, or what is wrong with what gather and finish make of it."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree("set", ignore_errors=True)
    os.mkdir(work)
    for f in os.listdir("good"):
        os.link("good/" + f, work + "/" + f)
    os.unlink(work + "/" + name)
    open(work + "/" + name, "wb").write(data)
    for argv in list(gathers(work, 4, "set", WDS + SIZE)) + [finish(work, "set", WDS + SIZE)]:
        r = Run(argv)
        if r.status:
            whole = os.path.exists("set/report.json")
            return None if r.clear_failure() and not whole else "%s\ncomplete: %s" % (r, whole)
    return None if not differs(tree("set"), want) else "nobody noticed, and the set is another"


def damaged():
    label, want = good_work()
    rng = random.Random(7)
    data = open("good/scatter.1-of-3", "rb").read()
    bad, n = [], 0
    for part, a, b in sections("good/scatter.1-of-3"):
        places = {a + rng.randrange(b - a) for _ in range(20 if FULL else 1)}
        if part in ("tail", "foot", "head"):
            places |= set(range(a, b, 1 if FULL else 64))
        tries = [(at, data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]) for at in sorted(places)]
        tries += [(at, data[:at]) for at in ({b - 1, (a + b) // 2} if FULL else {b - 1})]
        for at, d in tries:
            problem = one_bad(label, d, want)
            n += 1
            if problem:
                bad.append("%s, byte %d: %s" % (part, at, problem))
    for more in (b"\0", data[-32:], data):
        problem = one_bad(label, data + more, want)
        n += 1
        if problem:
            bad.append("%d bytes too many: %s" % (len(more), problem))
    result(not bad, "flipped bits, cuts and garbage in every part of a scatter file (%d)" % n, "\n".join(bad[:3]))
    open("bad/scatter.1-of-3", "wb").write(data[:-1])
    argv = list(scatters(label, "bad", 3, 4, WDS))[1]
    r = Run(argv)
    result(r.clear_failure() and "scatter.1-of-3" in r.err, "a rerun refuses a truncated file", r)
    must(argv + ["-f"])
    result(sha("bad/scatter.1-of-3") == sha("good/scatter.1-of-3"), "-f makes it again")


def u64s(b):
    return list(struct.unpack("<%dQ" % (len(b) // 8), b))


class Work:
    """A file between stages, whose checksums are made right again when it is written."""

    def __init__(self, path):
        d = open(path, "rb").read()
        self.head, self.foot_off = d[:16], struct.unpack("<Q", d[-32:-24])[0]
        t = d[self.foot_off:-32]
        n_param, n = struct.unpack("<QQ", t[112:128])
        self.tail = t[:128 + (n_param + 7) // 8 * 8]
        rows, at, self.section = t[len(self.tail):], 16, []
        for i in range(n):
            size, = struct.unpack("<Q", rows[24 * i:24 * i + 8])
            self.section.append(d[at:at + size])
            at += size

    def bytes(self):
        from xxhash import xxh3_128_intdigest as h

        def low_high(v):
            return struct.pack("<QQ", v & (1 << 64) - 1, v >> 64)
        body, rows = self.head, b""
        for s in self.section:
            body += s
            rows += struct.pack("<Q", len(s)) + low_high(h(s))
        tail = self.tail + rows
        both = h(low_high(h(self.head)) + low_high(h(tail)))
        return body + tail + struct.pack("<Q", len(body)) + low_high(both) + b"SLUNEND1"


def forged():
    label, want = good_work()
    w = Work("good/scatter.1-of-3")
    result(w.bytes() == open("good/scatter.1-of-3", "rb").read(), "a file is what this test thinks it is")
    first, book, counts = 4, len(w.section) - 2, len(w.section) - 1
    k = max(range(first, book), key=lambda i: len(w.section[i]))
    s = w.section[k]
    size = 24 + (u64s(s[16:24])[0] + 7) // 8 * 8

    def found(what, how, say):
        f = Work("good/scatter.1-of-3")
        how(f)
        problem = one_bad(label, f.bytes(), want)
        result(not problem, what, problem)
        r = Run(list(gathers("bad", 4, "set", WDS + SIZE))[(k - first) % 4])
        r = r if r.status else Run(finish("bad", "set", WDS + SIZE))
        result(re.search(say, r.err), what + ": says so", r)

    ROW, OUT = 3, 14  # of the account: words before them, and where what went out is in them

    def remove(f):
        f.section[k] = f.section[k][size:]

    def remove_and_count(f):
        remove(f)
        c = u64s(f.section[counts])
        c[5 * (k - first) + 1] -= 1
        f.section[counts] = struct.pack("<%dQ" % len(c), *c)

    def remove_from_account(f):
        remove_and_count(f)
        b = u64s(f.section[book])
        b[ROW + OUT + 1] -= 1  # sequences that went out
        f.section[book] = struct.pack("<%dQ" % len(b), *b)

    def change(f):  # a token, in the middle of the record
        at = size // 2
        f.section[k] = f.section[k][:at] + bytes([f.section[k][at] ^ 1]) + f.section[k][at + 1:]

    def twice(f):
        f.section[k] = s[:size] + s

    def order(f):
        f.section[k] = s[size:] + s[:size]

    found("a record that was taken out", remove, "hold other sequences than the|are not what all parts read")
    found("and is not counted", remove_and_count, "damaged|add up")
    found("nor in the account", remove_from_account, "differ from those read")
    found("a token that was changed", change, "are not what all parts read")
    found("a record that is there twice", twice, "hold other sequences than the|are not what all parts read")
    found("records in another order", order, "damaged")
    forged_masks()


def forged_masks():
    """A bit of a mask moves to the next token between scatter and gather: the checksums say so, to a stream and to a set."""
    with open("m.jsonl", "w") as f:
        f.write("".join(json.dumps({"text": "question %d, answer" % i, "spans": [[9, 10]]}) + "\n" for i in range(20)))
    must(["tokenize", "-t", "bytes", "--spans-field", "spans", "m.jsonl", "-o", "m.tks"])
    for to in ([], ["--documents", "--format", "olmo"]):
        for d in ("work", "m.set"):
            shutil.rmtree(d, ignore_errors=True)
        stage = ["shuffle", *to, "--work", "work", "--stage"]
        must([*stage, "scatter", "--part", "0/1", "--ranges", "1", "m.tks"])
        w = Work("work/scatter.0-of-1")
        trained, moved = struct.pack("<II", 1 << 31 | ord("1"), ord(",")), struct.pack("<II", ord("1"), 1 << 31 | ord(","))
        k = next(i for i, s in enumerate(w.section) if trained in s)
        at = w.section[k].index(trained)
        for how, ids in (("moved", moved), ("as it was", trained)):
            w.section[k] = w.section[k][:at] + ids + w.section[k][at + 8:]
            with open("work/scatter.0-of-1", "wb") as f:
                f.write(w.bytes())
            r = Run([*stage, "gather", "--part", "0/1", "-f", "-o", "m.set" if to else "m.out"])
            if to and not r.status:
                r = Run([*stage, "finish", "-f", "-o", "m.set"])
            said = re.search("hold other sequences than their tables say|are not what all parts read", r.err)
            result(bool(said) if how == "moved" else not r.status, "a bit of a mask %s, to %s" % (how, "a set" if to else "a stream"), r)


# ---- kill -9 ----

def killed():
    label, want = good_work()
    points = ["start:1", "open:3", "write:1", "write:4", "sync:1", "name:1", "name:3", "close:4", "end:1"]
    if FULL:
        points += ["%s:%d" % (c, n) for c in ("read", "open", "close", "write", "name") for n in range(1, 60, 4)]
    mix = ["--mix", "web=0.2,code=0.8", "--max-tokens", "60000", "--max-epochs", "20"]

    def prepare(stage):
        shutil.rmtree("kill", ignore_errors=True)
        shutil.rmtree("set", ignore_errors=True)
        for argv in stage:
            must(argv)

    def tries(name, before, mine, after, want):
        fired, bad = [], []
        for at in points:
            prepare(before)
            log = "kill.log"
            r = Run(mine[0] + ["-T", "1"], {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at, "SHIM_LOG": log})
            if not os.path.exists(log):
                continue
            os.unlink(log)
            fired.append(at)
            if r.status != -9:
                bad.append("%s: not killed: %s" % (at, r))
            if name != "finish" and os.path.exists("set/report.json"):
                bad.append("%s: looks complete" % at)
            for argv in mine + after:
                r = Run(argv)
                if r.status:
                    bad.append("%s, then again: %s" % (at, r))
            why = differs(tree("set"), want)
            if why:
                bad.append("%s, then again: %s" % (at, why))
        result(not bad and len(fired) > 4, "%s: kill -9 at %s, and a rerun" % (name, " ".join(fired)), "\n".join(bad[:3]))

    for extra, names in ((WDS, ("scatter", "gather", "finish")), (WDS + mix, ("count", "mix", "scatter"))):
        if extra != WDS:
            shutil.rmtree("want")
            must(["shuffle", "-q", "-o", "want"] + SEED + extra + SIZE + label)
            want = tree("want")
            stages = {"count": list(counts(label, "kill", 2, extra))[:-1], "mix": list(counts(label, "kill", 2, extra))[-1:]}
        else:
            stages = {}
        stages["scatter"] = list(scatters(label, "kill", 2, 2, extra))
        stages["gather"] = list(gathers("kill", 2, "set", extra + SIZE))
        stages["finish"] = [finish("kill", "set", extra + SIZE)]
        order = list(stages)
        for name in names:
            at = order.index(name)
            tries(name, sum((stages[x] for x in order[:at]), []), stages[name], sum((stages[x] for x in order[at + 1:]), []), want)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        os.makedirs(name)
        os.chdir(name)
        globals()[name]()
        os.chdir("..")
        shutil.rmtree(name)
