#!/usr/bin/env python3
"""Checks the promises of dedup --stage: dedup_stages.py PART... in an empty folder (see dedup_stages.sh).

Parts: equal index index_exact refused refused_exact forged damaged killed. FULL=1: more places of damage, more fail-points.
"""
import glob
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

from stages import BIN, FULL, Run, SHIM, must, refuses, result, sections, sha
from shuffle_stages import Work

NEAR = ["--near", "--ngram", "2", "--bands", "10", "--rows", "4", "--threshold", "0.75"]
EXACT = ["--exact"]
NEAR_KINDS = ["sign", "group", "verify", "cluster"]
EXACT_KINDS = ["sign", "group"]
MODES = (NEAR, NEAR_KINDS, "near"), (EXACT, EXACT_KINDS, "exact")


def corpus(path, n, words, seed):
    """Texts of a few words; a third of them are others with a few words changed; some repeat, some are empty."""
    rng = random.Random(seed)
    seen = []
    with open(path, "w") as f:
        for _ in range(n):
            if seen and rng.random() < 0.4:
                d = list(rng.choice(seen[-300:]))
                for _ in range(rng.choice((0, 0, 1, 2, 3))):
                    d[rng.randrange(len(d))] = "x%d" % rng.randrange(5000)
            else:
                d = ["w%d" % rng.randrange(2000) for _ in range(rng.randrange(1, words))]
            seen.append(d)
            f.write(json.dumps({"text": " ".join(d) if rng.random() < 0.98 else "  ",
                                "domain": rng.choice("abc")}) + "\n")


def tokenize(n_part, source="c.jsonl", prefix="p"):
    for i in range(n_part):
        must(["tokenize", "-f", "--no-provenance", "-t", "bytes", "--domain-field", "domain", "--part", "%d/%d" % (i, n_part), "-o", "%s%d-%d.tks" % (prefix, n_part, i),
              source])


def steps(mode, work, n, ranges, extra=()):
    """Every stage but filter: (stage, argv) in order."""
    base = ["dedup"] + mode + list(extra) + ["--work", work, "--stage"]
    for i in range(n):
        yield "sign", base + ["sign", "--part", "%d/%d" % (i, n), "--ranges", str(ranges), "p%d-%d.tks" % (n, i)]
    for j in range(ranges):
        yield "group", base + ["group", "--part", "%d/%d" % (j, ranges)]
    if mode is NEAR:
        for i in range(n):
            yield "verify", base + ["verify", "--part", "%d/%d" % (i, n)]
        yield "cluster", base + ["cluster"]
    if "--save-index" in extra:
        yield "index", base + ["index"]


def filters(mode, work, n, extra=()):
    for i in range(n):
        yield ["dedup"] + mode + list(extra) + ["--work", work, "--stage", "filter", "-f", "--part", "%d/%d" % (i, n), "-o",
                                               "%s-f%d.tks" % (work, i), "p%d-%d.tks" % (n, i)]


def cat(work, n):
    with open(work + ".tks", "wb") as f:
        for i in range(n):
            f.write(open("%s-f%d.tks" % (work, i), "rb").read())
    return work + ".tks"


def normal(path):
    """One stream's bytes, however it was cut: through a pass that changes nothing (equal texts are gone but for
    empty ones, which are alike wherever they are)."""
    return hashlib.sha256(must(["dedup", "--exact", "--no-provenance", path]).out).hexdigest()


def whole(mode, work, n, ranges, extra=()):
    for _, argv in steps(mode, work, n, ranges, extra):
        must(argv)
    for argv in filters(mode, work, n, extra):
        must(argv)
    return cat(work, n)


def equal():
    corpus("c.jsonl", 9000 if not FULL else 300000, 14, 5)
    for n in (1, 3, 8):
        tokenize(n)
    for mode, name in ((NEAR, "near"), (EXACT, "exact")):
        must(["dedup"] + mode + ["-o", "one.tks", "--stats", "one.json", "p1-0.tks"])
        one = json.load(open("one.json"))
        result(sum(one["sequences"]["dropped"].values()) > 1000, name + ": the corpus has duplicates", one["sequences"])
        want, records = normal("one.tks"), must(["inspect", "--records", "one.tks"]).out
        for n, ranges in ((1, 3), (3, 2), (8, 3)):
            got = whole(mode, "w%d" % n, n, ranges)
            result(normal(got) == want, "%s, N = %d, %d ranges: the bytes of one pass" % (name, n, ranges))
            result(must(["inspect", "--records", got]).out == records, "%s, N = %d: records and order" % (name, n))
            if n == 1:
                result(sha(got) == sha("one.tks"), "%s, N = 1: the file of one pass" % name)
            if (n, ranges) != (3, 2):
                shutil.rmtree("w%d" % n)
        for extra in (["-T", "1", "-M", "300M"], ["-T", "7", "-M", "64M" if mode is NEAR else "32M"]):
            whole(mode, "other", 3, 2, extra)
            files = sorted(os.listdir("w3"))
            same = files == sorted(os.listdir("other")) and all(sha("w3/" + f) == sha("other/" + f) for f in files)
            result(same, "%s: every stage's files are the same with %s" % (name, " ".join(extra)))
            shutil.rmtree("other")
        shutil.rmtree("w3")
    for extra in (["--keep", "longest"], ["--keep", "domain-order", "--domains", "c,a"], ["--band-cap", "3"], ["--no-verify"],
                  ["--unit", "token"]):
        must(["dedup"] + NEAR + extra + ["-o", "one.tks", "p1-0.tks"])
        result(normal(whole(NEAR, "other", 3, 2, extra)) == normal("one.tks"), "%s: the bytes of one pass" % " ".join(extra))
        shutil.rmtree("other")
    spilled = []
    for mode, mib in ((NEAR, 64), (EXACT, 32)):
        extra = ["-M", "%dM" % mib]
        work = "small%d" % mib
        for stage, argv in list(steps(mode, work, 1, 1, extra)) + [("filter", x) for x in filters(mode, work, 1, extra)]:
            must(argv + ["--stats", "s.json"])
            s = json.load(open("s.json"))
            if mode is NEAR:
                spilled.append("%s %d" % (stage, s["spill_bytes"]))
            if not os.environ.get("SAN"):
                result(s["peak_rss_bytes"] <= (mib + 64) << 20, "-M %dM: %s %s stays within 64 MiB more" % (mib, mode[0], stage),
                       s["peak_rss_bytes"])
    r = Run(["dedup"] + NEAR + ["-M", "32M", "--work", "none", "--stage", "cluster"])
    result(r.status == 2 and "-M: --near needs at least 64M" in r.err, "near duplicates want more than 32M", r.err)
    if FULL:
        result(all(not x.endswith(" 0") for x in spilled[:2]), "-M 64M: sign and group spill", spilled)


def index():
    """A crawl against two older ones, which are indexes: the bytes of one run, stream and index."""
    corpus("all.jsonl", 8000, 14, 5)
    lines = open("all.jsonl").readlines()
    for name, part in (("old", lines[::4]), ("mid", lines[2::4]), ("other", lines[:99]), ("c", lines[1::2])):
        open(name + ".jsonl", "w").writelines(part)
    tokenize(1, "old.jsonl", "old")
    tokenize(1, "mid.jsonl", "mid")
    tokenize(1, "other.jsonl", "other")
    for n in (1, 3, 8):
        tokenize(n)
    def older(extra=()):
        must(["dedup", *NEAR, *extra, "--save-index", "old.idx", "-o", "old.tks", "old1-0.tks"])
        must(["dedup", *NEAR, *extra, "--against", "old.idx", "--save-index", "mid.idx", "-o", "mid.tks", "mid1-0.tks"])

    older()
    must(["dedup"] + NEAR + ["--save-index", "other.idx", "-o", "other.tks", "other1-0.tks"])
    must(["dedup"] + NEAR + ["--bands", "9", "--save-index", "nine.idx", "-o", "other.tks", "other1-0.tks"])
    against = ["--against", "old.idx", "--against", "mid.idx"]
    two = against + ["--save-index", "new.idx"]
    for extra in ([], ["--keep", "longest"], ["--band-cap", "3", "--unit", "token"]):
        title = "older indexes%s%s" % (", " if extra else "", " ".join(extra))
        if "token" in extra:
            older(extra)
        must(["dedup"] + NEAR + extra + against + ["--save-index", "one.idx", "--stats", "one.json", "--pairs", "one.pairs", "-o", "one.tks", "p1-0.tks"])
        one, want = json.load(open("one.json")), normal("one.tks")
        result(open("one.pairs").read().count('"kept":{"index":') > 300, title + ": much is dropped for it")
        for n, ranges in ((1, 3), (3, 2), (8, 3)):
            dropped = indexed = 0
            for _, argv in steps(NEAR, "good", n, ranges, extra + two):
                must(argv + ["--stats", "s.json"])
                s = json.load(open("s.json"))
                indexed += s.get("index_documents", 0) if "sign" in argv else 0
            for argv in filters(NEAR, "good", n, extra + two):
                must(argv + ["--stats", "s.json"])
                dropped += sum(json.load(open("s.json"))["sequences"]["dropped"].values())
            what = "%s, N = %d, %d ranges: " % (title, n, ranges)
            result(normal(cat("good", n)) == want, what + "the bytes of one pass")
            result(sha("new.idx") == sha("one.idx"), what + "the same index")
            result(dropped == one["sequences"]["dropped"]["near-duplicate"] and indexed == one["index_documents"],
                   what + "the parts' reports add up", (dropped, indexed, one))
            if n == 1:
                result(sha("good.tks") == sha("one.tks"), what + "the file of one pass")
            shutil.rmtree("good")
    index_refused()


def index_refused():
    def no(what, name, say, extra=(), part=None, stream=None, status=1, mode=NEAR):
        refuses("an older index: " + what, ["dedup", *mode, *extra, "--work", "good", "--stage", name] + (["--part", part] if part else []) +
                ([stream] if stream else []), say, status, "good", absent="x.tks")

    must(["dedup"] + NEAR + ["--save-index", "old.idx", "-o", "old.tks", "old1-0.tks"])
    against, save = ["--against", "old.idx"], ["--save-index", "new.idx"]
    must(["dedup"] + NEAR + against + ["--save-index", "one.idx", "-o", "one.tks", "p3-0.tks", "p3-1.tks", "p3-2.tks"])
    whole(NEAR, "good", 3, 2, against)
    must(["dedup"] + NEAR + against + save + ["--work", "good", "--stage", "index"])
    result(sha("new.idx") == sha("one.idx"), "the index of a folder that was made without --save-index")
    stages = [("sign", "0/3", "p3-0.tks", ["--ranges", "2"], "sign.0-of-3"), ("sign", "1/3", "p3-1.tks", ["--ranges", "2"], "sign.1-of-3"),
              ("group", "0/2", None, [], "sign.0-of-3"), ("verify", "1/3", None, [], "sign.0-of-3"), ("cluster", None, None, [], "verify.0-of-3"),
              ("index", None, None, [], "cluster"), ("filter", "0/3", "p3-0.tks", ["-o", "x.tks"], "cluster")]
    for name, part, stream, extra, file in stages:
        extra = extra + (["--save-index", "x.tks"] if name == "index" else [])
        no("another one in %s %s" % (name, part), name, "good/%s: was made with other contents of the file of --against; remove it" % file,
           ["--against", "other.idx"] + extra, part, stream)
        no("two in %s %s" % (name, part), name, "good/%s: was made with fewer files of --against; remove it" % file,
           against + ["--against", "other.idx"] + extra, part, stream)
        no("none in %s %s" % (name, part), name, "good/%s: was made with --against, now without; remove it" % file, extra, part, stream)
        no("one of other bands in %s %s" % (name, part), name, "nine.idx: was made with bands=9, and this run has bands=10", ["--against", "nine.idx"] + extra, part, stream)
        no("one that is gone in %s %s" % (name, part), name, "gone.idx", ["--against", "gone.idx"] + extra, part, stream)
    no("a part of stage index", "index", "is one job for all parts", against + save, "0/3", status=2)
    no("stage index without --save-index", "index", "the stages are sign, group, verify, cluster, filter", against, status=2)
    # The index that a manifest tells of is the one that is there.
    one = ["dedup"] + NEAR + against + ["--work", "good", "--stage", "filter", "--part", "0/3", "-o", "kept.tks", "p3-0.tks"]
    must(one)
    must(one + ["--stats", "s.json"])
    result(json.load(open("s.json"))["skipped"], "filter: is skipped where its stream is there")
    good = open("old.idx", "rb").read()
    shutil.copy("other.idx", "old.idx")
    refuses("an older index: exchanged before filter runs again", one, "kept.tks: was made with other contents of the file of --against; remove it", 1, "good")
    no("exchanged before group runs again", "group", "was made with other contents of the file of --against; remove it", against + ["-f"], "0/2")
    # Damage, wherever.
    for name in ("sign.0-of-3", "sign.2-of-3", "cluster"):
        data, bad = open("good/" + name, "rb").read(), []
        open("old.idx", "wb").write(good)
        for part, a, b in sections("good/" + name):
            for at in {a, (a + b) // 2, b - 1}:
                os.unlink("good/" + name)
                open("good/" + name, "wb").write(data[:at] + bytes([data[at] ^ 4]) + data[at + 1:])
                if os.path.exists("x.idx"):
                    os.unlink("x.idx")
                r = Run(["dedup"] + NEAR + against + ["--save-index", "x.idx", "--work", "good", "--stage", "index"])
                if r.status and (not r.clear_failure() or name not in r.err or os.path.exists("x.idx")) or not r.status and sha("x.idx") != sha("one.idx"):
                    bad.append("%s, byte %d: %s" % (part, at, r))
        os.unlink("good/" + name)
        open("good/" + name, "wb").write(data)
        result(not bad, "stage index: a byte of %s is another" % name, "\n".join(bad[:3]))
    bad = []
    for at in range(len(good) // 3, len(good), len(good) // 7):
        open("old.idx", "wb").write(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
        r = Run(["dedup"] + NEAR + against + ["--work", "bad", "--stage", "sign", "--part", "0/3", "p3-0.tks"])
        if not r.clear_failure() or "old.idx: damaged" not in r.err or os.path.isdir("bad") and os.listdir("bad"):
            bad.append("byte %d: %s" % (at, r))
    result(not bad, "sign: a byte of the index is another", "\n".join(bad[:3]))
    open("old.idx", "wb").write(good)
    # Killed: nothing, or all of it.
    bad, save = [], ["dedup"] + NEAR + against + ["--save-index", "k.idx", "--work", "good", "--stage", "index"]
    for at in ("start:1", "read:9", "write:1", "sync:1", "name:1", "end:1") if SHIM else ():
        Run(save, {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at})
        if os.path.exists("k.idx") and sha("k.idx") != sha("one.idx") or glob.glob(".sluice*"):
            bad.append("%s: left something else" % at)
        if Run(save).status or sha("k.idx") != sha("one.idx"):
            bad.append("%s: the rerun" % at)
        os.unlink("k.idx")
    result(not bad, "stage index: kill -9, and a rerun", bad)


def index_exact():
    """The same of exact duplicates."""
    for folder in ("good", "lean"):
        shutil.rmtree(folder, ignore_errors=True)
    corpus("all.jsonl", 3000, 5, 7)
    lines = open("all.jsonl").readlines()
    for name, part in (("old", lines[::4]), ("mid", lines[2::4]), ("c", lines[1::2])):
        open(name + ".jsonl", "w").writelines(part)
    for name in ("old", "mid"):
        tokenize(1, name + ".jsonl", name)
    tokenize(3)
    streams = ["p3-%d.tks" % i for i in range(3)]
    must(["dedup", *EXACT, "--save-index", "old.idx", "-o", "x.tks", "old1-0.tks"])
    must(["dedup", *EXACT, "--against", "old.idx", "--save-index", "mid.idx", "-o", "x.tks", "mid1-0.tks"])
    os.unlink("x.tks")
    both = ["--against", "old.idx", "--against", "mid.idx"]
    save = ["--save-index", "new.idx"]
    must(["dedup", *EXACT, *both, "--save-index", "one.idx", "--stats", "one.json", "-o", "one.tks", *streams])
    result(normal(whole(EXACT, "good", 3, 2, both + save)) == normal("one.tks"), "exact: two older indexes: the bytes of one pass")
    result(sha("new.idx") == sha("one.idx"), "exact: the same index")
    dropped = [json.load(open("one.json"))[k] for k in ("sequences", "index_documents")]
    result(dropped[0]["dropped"]["exact-duplicate"] > 300 and dropped[1] > 300, "exact: much is dropped, of much", dropped)
    got = normal(whole(EXACT, "lean", 3, 2, both))
    result(got == normal("one.tks") and os.path.getsize("lean/sign.1-of-3") < os.path.getsize("good/sign.1-of-3"), "exact: without --save-index sign writes less")
    for what, extra, say in (("sign files of no index", both + ["--save-index", "x.idx", "--stage", "index"], "lean/sign.0-of-3: was made without --save-index, now --save-index; remove it"),
                             ("one index fewer", both[:2] + ["--stage", "group", "--part", "0/2"], "lean/sign.0-of-3: was made with more files of --against; remove it"),
                             ("none", ["--stage", "filter", "--part", "1/3", "-o", "x.idx", "p3-1.tks"], "lean/group.0-of-2: was made with --against, now without; remove it")):
        refuses("exact: " + what, ["dedup", *EXACT, "--work", "lean", *extra], say, 1, "lean", absent="x.idx")
    for name in ("sign.0-of-3", "group.1-of-2"):
        data, bad = open("good/" + name, "rb").read(), []
        for part, a, b in sections("good/" + name):
            for at in {a, (a + b) // 2, b - 1}:
                os.unlink("good/" + name)
                open("good/" + name, "wb").write(data[:at] + bytes([data[at] ^ 4]) + data[at + 1:])
                r = Run(["dedup", *EXACT, *both, "--save-index", "x.idx", "--work", "good", "--stage", "index"])
                if r.status and (not r.clear_failure() or name not in r.err or os.path.exists("x.idx")) or not r.status and sha("x.idx") != sha("one.idx"):
                    bad.append("%s, byte %d: %s" % (part, at, r))
                if not r.status:
                    os.unlink("x.idx")
        open("good/" + name, "wb").write(data)
        result(not bad, "exact: stage index: a byte of %s is another" % name, "\n".join(bad[:3]))


def small_set(n=1500, work="good", mode=NEAR):
    corpus("c.jsonl", n, 14, 6)
    tokenize(3)
    must(["dedup"] + mode + ["-o", "one.tks", "p3-0.tks", "p3-1.tks", "p3-2.tks"])
    shutil.rmtree(work, ignore_errors=True)
    return normal(whole(mode, work, 3, 2)), normal("one.tks")


def refused():
    got, want = small_set()
    result(got == want, "three streams in one pass: the same")

    def no(what, argv, say, status=1, work="good"):
        refuses(what, ["dedup"] + argv, say, status, work)

    def stage(name, part=None, mode=NEAR, extra=(), work="good", stream=None):
        return (mode + list(extra) + ["--work", work, "--stage", name] + (["--part", part] if part else []) +
                ([stream] if stream else []))

    # What is there is skipped.
    for ph, argv in steps(NEAR, "good", 3, 2):
        path = sorted(glob.glob("good/%s*" % ph))[0]
        before = os.stat(path).st_mtime_ns
        r = must(argv + ["--stats", "s.json"])
        skipped = json.load(open("s.json"))["skipped"]
        result(skipped and os.stat(path).st_mtime_ns == before, "%s: is skipped where it is there" % " ".join(argv[-4:]), r)
    # Parameters.
    for option, value, at in (("--bands", "9", "sign"), ("--rows", "5", "sign"), ("--ngram", "3", "sign"), ("--seed", "1", "sign"),
                              ("--band-cap", "99", "group"), ("--threshold", "0.9", "verify")):
        extra = [option, value]
        was = "was made without --band-cap, now --band-cap=99; remove it" if option == "--band-cap" else \
            "was made with %s=[0-9.]+, now %s=%s; remove it" % (option, option, value)
        no("sign with other %s" % option if at == "sign" else "%s with other %s" % (at, option),
           stage(at, "0/2" if at == "group" else "0/3", extra=extra, stream="p3-0.tks" if at == "sign" else None),
           was)
        no("filter with other %s" % option, stage("filter", "0/3", extra=extra + ["-o", "x.tks"], stream="p3-0.tks"),
           was)
    no("verify with --no-verify", stage("verify", "0/3", extra=["--no-verify"]), "was made without --no-verify, now --no-verify; remove it")
    no("other --unit", stage("sign", "0/3", extra=["--unit", "token"], stream="p3-0.tks"), "was made without --unit, now --unit=token")
    no("exact where near was", stage("group", "0/2", mode=EXACT), "was made with --near, now without; remove it and run stage sign again")
    no("other ranges", stage("sign", "0/3", extra=["--ranges", "4"], stream="p3-0.tks"), "was made with --ranges=2, now --ranges=4")
    no("group with other ranges", stage("group", "0/3"), "has 2 ranges, so part 0/3 does not exist")
    result(not os.path.exists("x.tks"), "filter leaves no output")
    # Streams and tokenizers.
    no("sign of another stream", stage("sign", "0/3", extra=["--ranges", "2"], stream="p3-1.tks"), "was made from another stream")
    no("filter of another stream", stage("filter", "0/3", extra=["-o", "x.tks"], stream="p3-1.tks"), "differs from the one that good/sign.0-of-3 was made from")
    must(["tokenize", "-f", "-t", "builtin", "--part", "0/3", "-o", "b.tks", "c.jsonl"])
    no("sign with another tokenizer", stage("sign", "0/3", extra=["--ranges", "2"], stream="b.tks"), "another tokenizer")
    no("filter with another tokenizer", stage("filter", "0/3", extra=["-o", "x.tks"], stream="b.tks"), "another tokenizer")
    result(not os.path.exists("x.tks"), "and neither leaves an output")
    shutil.copytree("good", "mixed")
    for f in glob.glob("mixed/*"):
        if "sign" not in f or ".1-of" in f:
            os.unlink(f)
    must(["tokenize", "-f", "-t", "builtin", "--part", "1/3", "-o", "b.tks", "c.jsonl"])
    must(["dedup"] + stage("sign", "1/3", work="mixed", extra=["--ranges", "2"], stream="b.tks"))
    no("group of two tokenizers", stage("group", "0/2", work="mixed"), "sign.1-of-3: was made with another tokenizer", work="mixed")
    # A sign file that was made again from another stream: what came of the old one does not go with it.
    shutil.rmtree("mixed")
    shutil.copytree("good", "mixed")
    os.unlink("mixed/sign.2-of-3")
    must(["dedup"] + stage("sign", "2/3", work="mixed", extra=["--ranges", "2"], stream="p3-1.tks"))
    for ph, part in (("group", "0/2"), ("verify", "0/3")):
        no("%s where a sign file was exchanged" % ph, stage(ph, part, work="mixed"), "from other files than the ones here now",
           work="mixed")
    must(["dedup"] + stage("group", "0/2", work="mixed", extra=["-f"]))
    result(sha("mixed/group.0-of-2") != sha("good/group.0-of-2"), "-f makes it again")
    # What is missing.
    for f, ph, part in (("sign.2-of-3", "group", "0/2"), ("sign.0-of-3", "verify", "1/3"), ("group.1-of-2", "verify", "2/3"),
                        ("verify.1-of-3", "cluster", None)):
        os.rename("good/" + f, "gone")
        no("%s without %s" % (ph, f), stage(ph, part), "%s is missing; run stage %s for part %s" % (
            f, f.split(".")[0], f.split(".")[1].replace("-of-", "/")))
        os.rename("gone", "good/" + f)
    os.rename("good/cluster", "gone")
    no("filter without cluster", stage("filter", "1/3", extra=["-o", "x.tks"], stream="p3-1.tks"), "cluster is missing; run stage cluster")
    os.rename("gone", "good/cluster")
    os.mkdir("empty")
    no("group of nothing", stage("group", "0/2", work="empty"), "no sign files", work="empty")
    no("a folder that does not exist", stage("group", "0/2", work="no-such"), "no-such", work="no-such")
    shutil.copy("good/sign.0-of-3", "good/sign.0-of-4")
    no("sign files of two numbers of parts", stage("group", "0/2"), "of 3 parts and of 4")
    os.unlink("good/sign.0-of-4")
    os.rename("good/sign.1-of-3", "gone")
    shutil.copy("good/sign.0-of-3", "good/sign.1-of-3")
    no("a part under another's name", stage("group", "0/2"), "is part 0/3; expected part 1/3")
    os.rename("gone", "good/sign.1-of-3")
    # Usage.
    for what, argv in (("no --work", NEAR + ["--stage", "sign", "--part", "0/3", "p3-0.tks"]),
                       ("no --part", stage("group")), ("--part 3/3", stage("group", "3/3")), ("--part x", stage("group", "x")),
                       ("--part with cluster", stage("cluster", "0/3")), ("verify of --exact", stage("verify", "0/3", mode=EXACT)), ("cluster of --exact", stage("cluster", mode=EXACT)),
                       ("merge, which there was", stage("merge", "0/2")),
                       ("a stream for group", stage("group", "0/2", stream="p3-0.tks")),
                       ("-o for sign", stage("sign", "0/3", extra=["-o", "x.tks"], stream="p3-0.tks")),
                       ("--work without --stage", NEAR + ["--work", "good", "p3-0.tks"]),
                       ("--pairs", stage("filter", "0/3", extra=["--pairs", "x"], stream="p3-0.tks")),
                       ("a stage that is none", stage("sort", "0/3")), ("-M 16M", stage("group", "0/2", extra=["-M", "16M"]))):
        no("usage: " + what, argv, ".", status=2)
    env = {"SLURM_ARRAY_TASK_ID": "11"}
    r = must(["dedup"] + stage("group", "auto/2", extra=["--part-base", "10", "--stats", "s.json"]), env)
    result(json.load(open("s.json"))["skipped"], "--part auto/2 with --part-base", r)
    no("-o where cluster is", stage("filter", "0/3", extra=["-o", "good/cluster"], stream="p3-0.tks"), "would replace the input", status=2)
    # A work folder of one's own cannot be written.
    r = Run(["dedup"] + stage("sign", "0/3", work="/dev/null/x", stream="p3-0.tks"))
    result(r.clear_failure(), "a work folder that cannot be made", r)


def forged():
    """Checksums are right, and what is said cannot be."""
    small_set(300)
    shutil.rmtree("bad", ignore_errors=True)
    shutil.copytree("good", "bad")
    w = Work("good/sign.1-of-3")
    rows = struct.unpack("<%dQ" % (len(w.section[6]) // 8), w.section[6])
    w.section[6] = struct.pack("<%dQ" % len(rows), *(v | 0xff << 48 if i % 3 == 2 else v for i, v in enumerate(rows)))
    open("bad/sign.1-of-3", "wb").write(w.bytes())
    os.unlink("bad/group.0-of-2")
    refuses("group: a band that there is not", ["dedup"] + NEAR + ["--work", "bad", "--stage", "group", "--part", "0/2"],
            "bad/sign.1-of-3: damaged", 1, "bad")


def refused_exact():
    """What exact duplicates, which are a flow, say of the same."""
    got, want = small_set(mode=EXACT)
    result(got == want, "exact: three streams in one pass: the same")

    def no(what, name, part, say, extra=(), stream=None, work="good"):
        refuses("exact: " + what, ["dedup", "--exact", *extra, "--work", work, "--stage", name, "--part", part] +
                ([stream] if stream else []), say, 1, work)

    two, out = ["--ranges", "2"], ["-o", "x.tks"]
    for ph, argv in steps(EXACT, "good", 3, 2):
        path = sorted(glob.glob("good/%s*" % ph))[0]
        before = os.stat(path).st_mtime_ns
        must(argv + ["--stats", "s.json"])
        result(json.load(open("s.json"))["skipped"] and os.stat(path).st_mtime_ns == before, "exact: %s is skipped where it is there" % ph)
    no("other ranges", "sign", "0/3", "was made with --ranges=2, now --ranges=4", ["--ranges", "4"], "p3-0.tks")
    no("group with other ranges", "group", "0/3", "has 2 ranges, so part 0/3 does not exist")
    no("sign of another stream", "sign", "0/3", "was made from another stream", two, "p3-1.tks")
    no("filter of another stream", "filter", "0/3", "differs from the one that good/sign.0-of-3 was made from", out, "p3-1.tks")
    no("filter of another number of parts", "filter", "0/4", "is of 3 parts, and this run is part 0/4", out, "p3-0.tks")
    must(["tokenize", "-f", "-t", "builtin", "--part", "0/3", "-o", "b.tks", "c.jsonl"])
    no("sign with another tokenizer", "sign", "0/3", "another tokenizer", two, "b.tks")
    no("filter with another tokenizer", "filter", "0/3", "another tokenizer", out, "b.tks")
    for f, ph, part, stream in (("sign.2-of-3", "group", "0/2", None), ("group.1-of-2", "filter", "1/3", "p3-1.tks"),
                                ("group.0-of-2", "filter", "1/3", "p3-1.tks")):
        os.rename("good/" + f, "gone")
        no("%s without %s" % (ph, f), ph, part, "%s is missing; run stage %s for part %s" % (
            f, f.split(".")[0], f.split(".")[1].replace("-of-", "/")), out if stream else (), stream)
        os.rename("gone", "good/" + f)
    os.mkdir("none")
    no("group of nothing", "group", "0/2", "no sign files; run stage sign first", work="none")
    no("filter of nothing", "filter", "0/3", "no group files; run stage group first", out, "p3-0.tks", "none")
    for f, ph, stream in (("sign.0-of-3", "sign.0-of-4", None), ("group.0-of-2", "group.0-of-5", "p3-0.tks")):
        shutil.copy("good/" + f, "good/" + ph)
        no("%s and %s" % (f, ph), "filter" if stream else "group", "0/3" if stream else "0/2", "of %s parts and of %s" % (f[-1], ph[-1]),
           out if stream else (), stream)
        os.unlink("good/" + ph)
    shutil.rmtree("mixed", ignore_errors=True)
    shutil.copytree("good", "mixed")
    must(["dedup", "--exact", "--stage", "sign", "-f", "--work", "mixed", "--part", "2/3", *two, "p3-1.tks"])
    no("group where a sign file was exchanged", "group", "0/2", "from other files than the ones here now", work="mixed")
    must(["dedup", "--exact", "--stage", "group", "-f", "--work", "mixed", "--part", "0/2"])
    no("filter of groups of two times", "filter", "0/3", "from other files than the ones here now", out, "p3-0.tks", "mixed")
    must(["dedup", "--exact", "--stage", "group", "-f", "--work", "mixed", "--part", "1/2"])
    no("filter of the stream before", "filter", "2/3", "differs from the one that mixed/sign.2-of-3 was made from", out, "p3-2.tks", "mixed")
    result(not os.path.exists("x.tks"), "exact: and none leaves an output")
    for f in glob.glob("good/sign*"):
        os.unlink(f)
    for argv in filters(EXACT, "good", 3):
        must(argv)
    result(normal(cat("good", 3)) == want, "exact: sign's files may go when groups are known")


def later(mode, kinds, kind):
    """The stages behind that which writes `kind`, from good files."""
    stages = [x for x in steps(mode, "bad", 3, 2) if kinds.index(x[0]) > kinds.index(kind)]
    return [argv for _, argv in stages] + list(filters(mode, "bad", 3))


def one_bad(mode, kinds, kind, name, data, want):
    """Puts `data` in the place of a good file; None, or what is wrong with what the later stages make of it."""
    shutil.rmtree("bad", ignore_errors=True)
    os.mkdir("bad")
    for f in os.listdir("good"):
        if kinds.index(f.split(".")[0]) <= kinds.index(kind):
            os.link("good/" + f, "bad/" + f)
    os.unlink("bad/" + name)
    open("bad/" + name, "wb").write(data)
    for argv in later(mode, kinds, kind):
        out = argv[argv.index("-o") + 1] if "-o" in argv else None
        if out and os.path.exists(out):
            os.unlink(out)
        r = Run(argv)
        if r.status:
            left = out and os.path.exists(out)
            return None if r.clear_failure() and name in r.err and not left else "%s\nleft an output: %s" % (r, left)
    return None if normal(cat("bad", 3)) == want else "nobody noticed, and the output is another"


def damaged():
    for mode in MODES:
        damaged_of(*mode)


def damaged_of(mode, kinds, title):
    want, _ = small_set(300, mode=mode)
    rng = random.Random(7)
    for kind in kinds:
        name = next(f for f in sorted(os.listdir("good")) if f == kind or f.startswith(kind + ".1-of-"))
        data = open("good/" + name, "rb").read()
        bad, n = [], 0
        unnoticed = 0
        for part, a, b in sections("good/" + name):
            places = {a, b - 1} | {rng.randrange(a, b) for _ in range(20 if FULL else 1)}
            if part in ("tail", "foot", "head"):
                places |= set(range(a, b, 1 if FULL else 24))
            for at in sorted(places):
                flipped = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
                problem = one_bad(mode, kinds, kind, name, flipped, want)
                n += 1
                if problem:
                    bad.append("%s, byte %d: %s" % (part, at, problem))
            for cut in {a, b - 1} | ({a + 1, (a + b) // 2} if FULL else set()):
                problem = one_bad(mode, kinds, kind, name, data[:cut], want)
                n += 1
                if problem:
                    bad.append("%s, cut at %d: %s" % (part, cut, problem))
        for more in (b"\0", data[-32:], data):
            problem = one_bad(mode, kinds, kind, name, data + more, want)
            n += 1
            if problem:
                bad.append("%d bytes too many: %s" % (len(more), problem))
        result(not bad, "%s, %s: flipped bits, cuts and garbage in every part of the file (%d)" % (title, name, n), "\n".join(bad[:3]))
        # A rerun of the stage itself refuses what it finds, and -f mends it.
        shutil.rmtree("bad", ignore_errors=True)
        shutil.copytree("good", "bad")
        open("bad/" + name, "wb").write(data[:-1])
        argv = [x for ph, x in steps(mode, "bad", 3, 2) if ph == kind][1 if kind != "cluster" else 0]
        r = Run(argv)
        result(r.clear_failure() and name in r.err, "%s, %s: a rerun refuses a truncated file" % (title, kind), r)
        must(argv + ["-f"])
        result(sha("bad/" + name) == sha("good/" + name), "%s, %s: -f makes it again" % (title, kind))


def killed():
    for mode in MODES:
        killed_of(*mode)
    stopped()


def killed_of(mode, kinds, title):
    small_set(600, mode=mode)
    good = {f: sha("good/" + f) for f in os.listdir("good")}
    points = ["start:1", "read:9", "write:1", "sync:1", "name:1", "close:2", "end:1"]
    if FULL:
        points += ["%s:%d" % (c, n) for c in ("read", "open", "close") for n in range(1, 40, 3)]
    for kind in kinds:
        bad, fired = [], []
        mine = [argv for ph, argv in steps(mode, "kill", 3, 2) if ph == kind]
        for at in points:
            shutil.rmtree("kill", ignore_errors=True)
            os.mkdir("kill")
            for f in good:
                if kinds.index(f.split(".")[0]) < kinds.index(kind):
                    os.link("good/" + f, "kill/" + f)
            log = "kill.log"
            r = Run(mine[-1], {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at, "SHIM_LOG": log})
            if os.path.exists(log):
                os.unlink(log)
                fired.append(at)
                if r.status != -9:
                    bad.append("%s: not killed: %s" % (at, r))
            for f in os.listdir("kill"):
                if good.get(f) != sha("kill/" + f):
                    bad.append("%s: left %s behind" % (at, f))
            for argv in mine:
                r = Run(argv)
                if r.status:
                    bad.append("%s, then again: %s" % (at, r))
            for f in good:
                if f.startswith(kind) and (not os.path.exists("kill/" + f) or sha("kill/" + f) != good[f]):
                    bad.append("%s, then again: %s is another" % (at, f))
        need = {"start:1", "write:1", "sync:1", "name:1", "end:1"}
        if not need <= set(fired):
            bad.append("not reached: %s" % sorted(need - set(fired)))
        result(not bad, "%s, %s: kill -9 at %s, and a rerun" % (title, kind, " ".join(fired)), "\n".join(bad[:3]))
    # The filter leaves nothing, or everything.
    bad = []
    argv = list(filters(mode, "good", 3))[1]
    out = argv[argv.index("-o") + 1]
    want = sha(out)
    for at in ("start:1", "read:3", "write:1", "sync:1", "name:1", "end:1"):
        os.unlink(out)
        Run(argv, {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at})
        if os.path.exists(out) and sha(out) != want:
            bad.append("%s: left something else" % at)
        if Run(argv).status or sha(out) != want:
            bad.append("%s: the rerun" % at)
    result(not bad, "%s, filter: kill -9, and a rerun" % title, bad)
    # Calls that fail.
    for kind in kinds:
        bad = []
        mine = [argv for ph, argv in steps(mode, "kill", 3, 2) if ph == kind][-1]
        for call in ("io", "memory", "map"):
            n, gap = 1, 1
            while True:
                shutil.rmtree("kill", ignore_errors=True)
                os.mkdir("kill")
                for f in good:
                    if kinds.index(f.split(".")[0]) < kinds.index(kind):
                        os.link("good/" + f, "kill/" + f)
                r = Run(mine, {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": "%s:%d" % (call, n), "SHIM_LOG": "kill.log",
                               "SHIM_DO": "5" if call == "io" else "12"})
                if not os.path.exists("kill.log"):
                    break
                os.unlink("kill.log")
                left = [f for f in os.listdir("kill") if good.get(f) != sha("kill/" + f)]
                if left or (r.status and not r.clear_failure()):
                    bad.append("%s:%d: %s\nleft: %s" % (call, n, r, left))
                gap = gap if FULL or n < 8 else max(gap, n // 3)
                n += gap
        result(not bad, "%s, %s: calls that fail one by one" % (title, kind), "\n".join(bad[:2]))


def stopped():
    """SIGTERM: 75, and nothing is left."""
    corpus("c.jsonl", 40000, 200, 8)
    must(["tokenize", "-t", "bytes", "-o", "big.tks", "c.jsonl"])
    p = subprocess.Popen([BIN + "dedup"] + NEAR + ["--stage", "sign", "--part", "0/1", "--work", "term", "big.tks"],
                         stderr=subprocess.PIPE)
    while not os.path.isdir("term") and p.poll() is None:
        time.sleep(0.001)
    time.sleep(0.05)
    p.send_signal(signal.SIGTERM)
    err = p.stderr.read()
    result(p.wait() == 75 and err.count(b"\n") == 1 and not os.listdir("term"), "sign: SIGTERM: 75, one line, no file",
           "%s %r" % (p.returncode, err))


if __name__ == "__main__":
    for part_name in sys.argv[1:]:
        globals()[part_name]()
