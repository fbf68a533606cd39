"""stages_jobs.py - a small job of every program with stages, for tests that run them all (stages_faults.py,
tests/fuzz/forge.py).

JOBS[NAME]() gives (stage, argv) of all its runs, in order, in a folder of prepare(), with the work folder w.
"""
import random

from stages import must

EXACT = ["--exact"]
NEAR = ["--near", "--ngram", "2", "--bands", "10", "--rows", "4", "--threshold", "0.75"]
INDEX = NEAR + ["--against", "old.idx", "--save-index", "new.idx"]
SUBSTRING = ["--substring", "20"]


def corpus(path, rng):
    """Texts of which some are others with a word changed."""
    seen = []
    with open(path, "w") as f:
        for i in range(120):
            d = [rng.choice("abcdefg") * rng.randrange(1, 6) for _ in range(rng.randrange(1, 40))]
            if seen and rng.random() < 0.4:
                d = list(rng.choice(seen))
                d[rng.randrange(len(d))] = "x%d" % i
            seen.append(d)
            values = '"lang": "%s", "url": "http://%d", "n": %s' % ("xyz"[i % 3], i, i if i % 4 else "null")
            f.write('{"text": "%s", "id": "%d", "domain": "%s", %s}\n' % (" ".join(d), i, rng.choice("abc"), values))


def prepare(seed=1):
    """c.jsonl; old.idx and older.idx (exact), of a third of it; of its two parts tI.tks (documents), dI.tks (pieces) and pI.tks (packed)."""
    corpus("c.jsonl", random.Random(seed))
    must(["tokenize", "-q", "-t", "bytes", "--part", "0/3", "-o", "t0.tks", "c.jsonl"])
    must(["dedup", "-q", *NEAR, "--save-index", "old.idx", "-o", "/dev/null", "t0.tks"])
    must(["dedup", "-q", *EXACT, "--save-index", "older.idx", "-o", "/dev/null", "t0.tks"])
    for i in range(2):
        must(["tokenize", "-q", "-f", "-t", "bytes", "--id-field", "id", "--domain-field", "domain", "--metadata",
              "lang,url=text,n=u8", "--part", "%d/2" % i, "-o", "t%d.tks" % i, "c.jsonl"])
        must(["decompose", "-q", "--min", "16", "--max", "128", "--label-token", "-o", "d%d.tks" % i, "t%d.tks" % i])
        must(["pack", "-q", "-o", "p%d.tks" % i, "d%d.tks" % i])


def part(i, n):
    return ["--part", "%d/%d" % (i, n)]


def dedup(mode):
    base = ["dedup", "-q"] + mode + ["--work", "w", "--stage"]
    for i in range(2):
        yield "sign", base + ["sign", "--ranges", "2"] + part(i, 2) + ["t%d.tks" % i]
    for i in range(2):
        yield "group", base + ["group"] + part(i, 2)
    if "--substring" in mode:
        for i in range(2):
            yield "ask", base + ["ask"] + part(i, 2) + ["t%d.tks" % i]
        for i in range(2):
            yield "match", base + ["match"] + part(i, 2)
    elif "--near" in mode:
        for i in range(2):
            yield "verify", base + ["verify"] + part(i, 2)
        yield "cluster", base + ["cluster"]
    if "--save-index" in mode:
        yield "index", base + ["index"]
    for i in range(2):
        yield "filter", base + ["filter", "-f", "-o", "out.%d" % i] + part(i, 2) + ["t%d.tks" % i]


def choose():
    base = ["choose", "-q", "--top", "30%", "--by", "length", "--per", "domain", "--length", "10..", "--work", "w", "--stage"]
    for i in range(2):
        yield "rank", base + ["rank"] + part(i, 2) + ["t%d.tks" % i]
    yield "cut", base + ["cut"]
    for i in range(2):
        yield "filter", base + ["filter", "-f", "-o", "out.%d" % i] + part(i, 2) + ["t%d.tks" % i]


def pack(kind="d", options=()):
    base = ["pack", "-q", *options, "--work", "w", "--stage"]
    for i in range(2):
        yield "count", base + ["count"] + part(i, 2) + ["%s%d.tks" % (kind, i)]
    yield "plan", base + ["plan"]
    for i in range(2):
        yield "scatter", base + ["scatter", "--ranges", "3", "-o", "passed.%d" % i] + part(i, 2) + ["%s%d.tks" % (kind, i)]
    for j in range(3):
        yield "gather", base + ["gather", "-f", "-o", "bins.%d" % j] + part(j, 3)


def shuffle(options):
    base = ["shuffle", "-q", "--seed", "4"] + options + ["--work", "w", "--stage"]
    if "--mix" in options:
        for i in range(2):
            yield "count", base + ["count"] + part(i, 2) + ["p%d.tks" % i]
        yield "mix", base + ["mix"]
    if "--max-tokens" in options:
        for i in range(2):
            yield "count", base + ["count"] + part(i, 2) + ["p%d.tks" % i]
        yield "cut", base + ["cut"]
    for i in range(2):
        yield "scatter", base + ["scatter", "--ranges", "3"] + part(i, 2) + ["p%d.tks" % i]
    shards = ["--shard-sequences", "4", "-o", "set"]
    for j in range(3):
        yield "gather", base + ["gather"] + part(j, 3) + (shards if "--format" in options else ["-f", "-o", "out.%d" % j])
    if "--format" in options:
        yield "finish", base + ["finish"] + shards


JOBS = {
    "choose": choose,
    "dedup-exact": lambda: dedup(EXACT),
    "dedup-exact-index": lambda: dedup(EXACT + ["--against", "older.idx", "--save-index", "new.idx"]),
    "dedup-near": lambda: dedup(NEAR),
    "dedup-near-index": lambda: dedup(INDEX),
    "dedup-substring": lambda: dedup(SUBSTRING),
    "pack": pack,
    "shuffle": lambda: shuffle([]),
    "shuffle-cut": lambda: shuffle(["--max-tokens", "3000"]),
    "shuffle-mix": lambda: shuffle(["--mix", "a=0.5,b=0.5"]),
    "shuffle-wds": lambda: shuffle(["--format", "wds"]),
}
