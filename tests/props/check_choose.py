#!/usr/bin/env python3
"""choose takes what a filter and a sort in Python take.

Documents of several sources, with domains, ids and scores that are often equal or missing, are chosen by random criteria,
and of these the best, in tokens and in documents, by score, length, hash or a field of metadata, of all and of each value
of a property. Each choice is made from files and from a
pipe, with little and with much memory, and in stages with 1, 3 and 8 parts: the same bytes, or for parts the same
sequences. In check-more the best of 300,000 documents, with three -M; in check-full of 10^6.
"""
import fnmatch
import json
import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import finish, need, result, run, stats  # noqa: E402

need("tokenize", "choose", "decompose", "inspect")
try:
    import xxhash
except ImportError:
    print("skip choose: needs the package xxhash")
    sys.exit()
MORE = os.environ.get("CHECK_MORE")
FIELDS = ["--id-field", "id", "--domain-field", "domain", "--score-field", "score", "--metadata", "lang,q=float,n=int"]
NAMES = ["web", "code", "ünï", "", "a b"]


def corpus(r, folder, n, n_source=3):
    """Files of documents, of which some have no id, domain or score."""
    paths = []
    for s in range(n_source):
        paths.append("%s/%s%d.jsonl" % (folder, r.choice(["web-", "code-"]), s))
        with open(paths[-1], "w") as f:
            for i in range(n // n_source + 1):
                first = not s and not i  # a corpus in which no document has a score is refused
                f.write(json.dumps({
                    "text": "x" * r.choice([0, 1, 7, r.randrange(80)]) + str(i % 7), "id": r.choice(["", "r%d" % r.randrange(n)]),
                    "domain": r.choice(NAMES) if r.random() < 0.9 else "d%d" % r.randrange(300),
                    "lang": "en" if first else r.choice(["en", "de", "", None, "ünï", "x%d" % r.randrange(500)]),
                    "q": 1 if first else r.choice([None, 0, -0.0, 2.5, -1e300, round(r.gauss(2, 1), 1)]),
                    "n": 1 if first else r.choice([None, 0, -1, 2**53, r.randrange(9)]),
                    "score": 3 if first else r.choice([None, 0, 1, 2.5, -1, -0.0, 1e300, r.gauss(2, 1), round(r.gauss(2, 1), 1)])}) + "\n")
    return paths


def sum_of(name):
    return xxhash.xxh3_64_intdigest(name.encode())


class Document:
    def __init__(self, line, number):
        x = json.loads(line)
        s = x["segments"][0]
        self.line, self.number, self.size = line, number, sum(y["length"] for y in x["segments"])
        self.source, self.domain, self.id = s["source"], s.get("domain") or "", s.get("id")
        self.score = float(s["score"]) if s.get("score") is not None else math.nan
        self.has = {"domain": s.get("domain"), "source": s["source"], "id": s.get("id"), "length": self.size, **s.get("metadata", {})}
        if not math.isnan(self.score):
            self.has["score"] = self.score
        self.place = (sum_of(s["source"]), s["document"], s["offset"])
        self.rows = b"".join(v.to_bytes(8, "little") for y in x["segments"] for v in (*self.place, y["length"]))


def documents(stream):
    return [Document(line, i) for i, line in enumerate(run("inspect", "--records", "-", stdin=stream).splitlines())]


def holds(score, text):
    compare = {">=": score.__ge__, "<=": score.__le__, ">": score.__gt__, "<": score.__lt__, "=": score.__eq__, "==": score.__eq__,
               "!=": lambda v: score < v or score > v}
    for part in text.split(","):
        op = part.rstrip("0123456789.e+- ").strip()
        if not compare[op](float(part.strip()[len(op):])):
            return False
    return True


def criteria(r, docs, folder):
    """Arguments, and what they keep."""
    args, tests = [], []
    if r.random() < 0.4:
        domains = r.sample(NAMES, r.randrange(1, 4))
        args += ["--domain", ",".join(domains)]
        tests.append(("domain", lambda d: d.domain in domains))
    if r.random() < 0.3:
        pattern = r.choice(["*web*", "code-?.jsonl,x", "*-[01].jsonl"])
        args += ["--source", pattern]
        tests.append(("source", lambda d: any(fnmatch.fnmatchcase(d.source, p) for p in pattern.split(","))))
    for option in "--ids-keep", "--ids-drop":
        if r.random() < 0.25:
            ids = {d.id for d in docs if d.id and r.random() < 0.5}
            path = folder + "/list"
            with open(path + option, "w") as f:
                f.write("".join(x + r.choice(["\n", "\r\n", "\n\n"]) for x in sorted(ids)))
            args += [option, path + option]
            keep = option == "--ids-keep"
            tests.append((option[2:], lambda d, ids=ids, keep=keep: (d.id in ids) == keep))
    if r.random() < 0.5:
        least, most = r.choice([("", 40), (5, ""), (3, 30)])
        args += ["--length", "%s..%s" % (least, most)]
        tests.append(("length", lambda d: (least or 0) <= d.size <= (most or 1e9)))
    if r.random() < 0.4:
        text = r.choice([">=2", "<1", ">0,<=2.5", "!=2.5", "=1", "== 1", ">-1"])
        args += ["--score", text]
        tests.append(("score", lambda d: holds(d.score, text)))
    return args, tests


def best(docs, by, seed, documents_count, amount):
    """The numbers of the best, by a sort."""
    def key(d):
        if by != "hash":
            return (d.has.get(by) is None, -d.has.get(by, 0))
        return xxhash.xxh3_128_intdigest(b"sluice choose\0\0\0" + seed.to_bytes(8, "little") + d.rows) >> 64
    total = len(docs) if documents_count else sum(d.size for d in docs)
    left = total * amount[0] // amount[1] if isinstance(amount, tuple) else amount
    chosen = set()
    for d in sorted(docs, key=lambda d: (key(d), d.place, d.number)):
        left -= 1 if documents_count else d.size
        if left < 0:
            break
        chosen.add(d.number)
    return chosen


def top(r, docs):
    """Arguments for the best, and their numbers among docs."""
    by = r.choice(["score", "length", "hash", "q", "n"])
    amount, text = r.choice([((1, 10), "10%"), ((1, 2), "50.000%"), ((1, 1), "100%"), ((0, 1), "0%"), ((25, 10000), ".25%"),
                             (1000, "1K"), (0, "0"), (50, "50"), (10**9, "1G")])
    unit, per, seed = r.choice([None, "tokens", "documents"]), r.choice([None, "domain", "lang", "q", "n", "id", "source", "score", "length"]), \
        r.randrange(2**64)
    args = ["--top", text, "--seed", seed] + (["--by", by] if by != "score" or r.random() < 0.5 else [])
    args += (["--unit", unit] if unit else []) + (["--per", per] if per else [])
    groups = {}
    for d in docs:
        groups.setdefault(d.has.get(per), []).append(d)
    return args, set().union(*(best(g, by, seed, unit == "documents", amount) for g in groups.values()))


def in_stages(args, paths, n, folder):
    """The streams of n parts, as one."""
    work, parts, out = "%s/w%d" % (folder, n), [], b""
    for i in range(n):
        parts.append("%s/p%d.%d" % (folder, i, n))
        run("tokenize", "-q", "-f", "-t", "bytes", *FIELDS, "--part", "%d/%d" % (i, n), "-o", parts[-1], *paths)
        run("choose", "-q", *args, "--stage", "rank", "--work", work, "--part", "%d/%d" % (i, n), parts[-1])
    run("choose", "-q", *args, "--stage", "cut", "--work", work)
    for i in range(n):
        out += run("choose", "-q", *args, "--stage", "filter", "--work", work, "--part", "%d/%d" % (i, n), parts[i])
    return out


def one(r, number, n):
    with tempfile.TemporaryDirectory() as folder:
        paths = corpus(r, folder, n)
        stream = run("tokenize", "-q", "-t", "bytes", *FIELDS, *paths)
        with open(folder + "/s.tks", "wb") as f:
            f.write(stream)
        docs = documents(stream)
        args, tests = criteria(r, docs, folder)
        dropped = {}
        for d in docs:
            why = next((name for name, test in tests if not test(d)), None)
            if why:
                dropped.setdefault(why, []).append(d)
        left = [d for d in docs if all(test(d) for _, test in tests)]
        chosen = {d.number for d in left}
        with_top = not tests or r.random() < 0.7
        if with_top:
            more, chosen = top(r, left)
            args += more
            dropped["top"] = [d for d in left if d.number not in chosen]
        what = "case %d: %s" % (number, " ".join(map(str, args)))
        out, s = stats("choose", "-q", *args, stdin=stream)
        result(run("inspect", "--records", "-", stdin=out).splitlines() == [d.line for d in docs if d.number in chosen], what)
        want = {why: sum(d.size for d in x) for why, x in dropped.items() if x}
        result(s["tokens"]["dropped"] == want, what + ": the account", (s["tokens"]["dropped"], want))
        for extra in ["-M32M", "-T3"], ["-M2G", "-T1"]:
            result(run("choose", "-q", *args, *extra, folder + "/s.tks") == out, what + ": from a file, " + " ".join(extra))
        if with_top and number % 3 == 0:
            for k in 1, 3, 8:
                parts = run("inspect", "--records", "-", stdin=in_stages(args, paths, k, folder))
                result(parts == run("inspect", "--records", "-", stdin=out), what + ": %d parts" % k)


def twins(r):
    """A stream twice: of records that are equal in all, the first is chosen, in one process and in parts."""
    with tempfile.TemporaryDirectory() as folder:
        paths = corpus(r, folder, 300)
        stream = run("tokenize", "-q", "-t", "bytes", *FIELDS, *paths)
        docs = documents(stream + stream)
        chosen = best(docs, "score", 0, True, (1, 4))
        args = ["--top", "25%", "--unit", "documents"]
        out = run("choose", "-q", *args, stdin=stream + stream)
        want = [d.line for d in docs if d.number in chosen]
        result(run("inspect", "--records", "-", stdin=out).splitlines() == want, "equal records: the first")
        for i in 0, 1:
            run("choose", "-q", *args, "--stage", "rank", "--work", folder + "/w", "--part", "%d/2" % i, stdin=stream)
        run("choose", "-q", *args, "--stage", "cut", "--work", folder + "/w")
        parts = b"".join(run("choose", "-q", *args, "--stage", "filter", "--work", folder + "/w", "--part", "%d/2" % i, stdin=stream)
                         for i in (0, 1))
        result(run("inspect", "--records", "-", stdin=parts).splitlines() == want, "equal records: the first, in parts")


def joined(r):
    """Streams of several runs, in any order of the inputs and of the parts: the same documents."""
    with tempfile.TemporaryDirectory() as folder:
        streams = []
        for path in corpus(r, folder, 600):
            streams.append(path + ".tks")
            run("tokenize", "-q", "-t", "bytes", *FIELDS, "-o", streams[-1], path)
        for by in "score", "length", "hash":
            def chosen(work, order):
                args = ["--top", "30%", "--by", by, "--unit", "documents", "-q"]
                if not work:
                    out = run("choose", *args, *order)
                else:
                    part = ["%d/%d" % (i, len(order)) for i in range(len(order))]
                    for p, s in zip(part, order):
                        run("choose", *args, "--stage", "rank", "--work", work, "--part", p, s)
                    run("choose", *args, "--stage", "cut", "--work", work)
                    out = b"".join(run("choose", *args, "--stage", "filter", "--work", work, "--part", p, s) for p, s in zip(part, order))
                return {(d.source, d.place) for d in documents(out)}
            want = chosen(None, streams)
            turned = streams[2:] + streams[:2]
            result(len(want) > 100, "joined streams by %s: some are chosen" % by)
            result(chosen(None, turned) == want, "joined streams by %s: in another order" % by)
            result(chosen(folder + "/w" + by, turned) == want, "joined streams by %s: as parts in another order" % by)


def groups(r):
    """More groups than have sums in memory, in one process and in parts."""
    with tempfile.TemporaryDirectory() as folder:
        paths = corpus(r, folder, 24000)
        stream = run("tokenize", "-q", "-t", "bytes", *FIELDS, *paths)
        docs, of = documents(stream), {}
        for d in docs:
            of.setdefault(d.has.get("id"), []).append(d)
        chosen = set().union(*(best(g, "q", 0, True, (1, 2)) for g in of.values()))
        want = [d.line for d in docs if d.number in chosen]
        args = ["--top", "50%", "--unit", "documents", "--by", "q", "--per", "id"]
        result(len(of) > 8192 and len(want) > 5000, "many groups: there are so many", (len(of), len(want)))
        result(run("inspect", "--records", "-", stdin=run("choose", "-q", "-M32M", *args, stdin=stream)).splitlines() == want, "many groups: the best")
        result(run("inspect", "--records", "-", stdin=in_stages(args, paths, 3, folder)).splitlines() == want, "many groups: in 3 parts")


def many(r, n):
    """The best of n documents, with three -M, from a file and a pipe, and in stages."""
    with tempfile.TemporaryDirectory() as folder:
        paths = corpus(r, folder, n, 4)
        run("tokenize", "-q", "-t", "bytes", *FIELDS, "-o", folder + "/s.tks", *paths)
        with open(folder + "/s.tks", "rb") as f:
            stream = f.read()
        docs = documents(stream)
        groups = {}
        for d in docs:
            groups.setdefault(d.domain, []).append(d)
        chosen = set().union(*(best(g, "score", 0, False, (1, 10)) for g in groups.values()))
        want = [d.line for d in docs if d.number in chosen]
        args = ["--top", "10%", "--per", "domain"]
        out, s = stats("choose", "-q", *args, "-M32M", stdin=stream)
        result(run("inspect", "--records", "-", stdin=out).splitlines() == want, "the best of %d documents" % n)
        result(s["spill_bytes"] > 64 * n, "with files for the rows", s["spill_bytes"])
        for extra in ["-M32M"], ["-M256M", "-T3"], ["-M4G", "-T1"]:
            result(run("choose", "-q", *args, *extra, folder + "/s.tks") == out, "the best of %d documents: %s" % (n, " ".join(extra)))
        for k in 1, 3, 8:
            parts = run("inspect", "--records", "-", stdin=in_stages(args, paths, k, folder))
            result(parts.splitlines() == want, "the best of %d documents: %d parts" % (n, k))


r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 60 if os.environ.get("CHECK_FULL") else 15):
    one(r, number, r.choice([3, 100, 1500]))
twins(r)
joined(r)
groups(r)
if MORE:
    many(r, 10**6 if os.environ.get("CHECK_FULL") else 300_000)
finish()
