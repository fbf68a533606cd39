#!/usr/bin/env python3
"""shuffle --mix takes the sequences that a simple model takes, in the model's order.

The model sorts each source's sequences by their hash once for each epoch and walks along that list; the program never
sorts them. The test compares every sequence and its position, the report's figures and the account, on random corpora:
missing and unwanted sources, weight 0, 0.01 to 7 epochs, schedules, packed sequences of several domains, equal
documents from several inputs; from a file, from a pipe, and beyond -M.
"""
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import finish, need, result, run, stats  # noqa: E402

need("tokenize", "decompose", "pack", "shuffle", "inspect")
try:
    import xxhash
except ImportError:
    print("skip mix: needs the package xxhash")
    sys.exit(0)

ONE = 10**6


def u64(*v):
    return b"".join(x.to_bytes(8, "little") for x in v)


def h128(data):
    return xxhash.xxh3_128_intdigest(data)


sources = {}  # the model's: name -> ordinal


def ordinal(name):
    return sources.get(os.path.basename(name), 0)


def identity(record):
    return b"".join(u64(2**64 - 1, 0, 0, s["length"]) if s.get("padding") else
                    u64(ordinal(s["source"]), s["document"], s["offset"], s["length"]) for s in record["segments"])


def turn(h, epoch):
    return h if epoch == 0 else h128(u64(h >> 64, h & (2**64 - 1), epoch))


def domain(record):
    n = {}
    for s in record["segments"]:
        if not s.get("padding"):
            n[s.get("domain", "")] = n.get(s.get("domain", ""), 0) + s["length"]
    return max(n, key=lambda d: n[d])  # the first of equals


def records(stream):
    return [json.loads(line) for line in run("inspect", "--records", "-", stdin=stream).splitlines()]


def model(recs, periods, targets, seed, source):
    """Output as (period, key, bytes) in order; what each period took of each source."""
    out, took = [], [dict.fromkeys(targets[0], 0) for _ in periods]
    for name in targets[0]:
        mine = [(h128(b"slublnd1" + u64(seed, 0) + identity(r)), i, r)
                for i, r in enumerate(recs) if source(r) == name]
        total = sum(t[name] for t in targets)
        if not mine or not total:
            continue
        has = sum(len(r["tokens"]) for _, _, r in mine)
        epoch, line = 0, []
        while epoch * has <= total:  # a naive line, longer than is needed
            line += [(r, epoch) for _, _, r in sorted((turn(h, epoch), i, r) for h, i, r in mine)]
            epoch += 1
        at, walked, wanted = 0, 0, 0
        for p, t in enumerate(targets):
            wanted += t[name]
            while at < len(line) and walked + len(line[at][0]["tokens"]) <= wanted:
                r, e = line[at]
                walked += len(r["tokens"])
                took[p][name] += len(r["tokens"])
                key = h128(b"sluperm1" + u64(seed, e) + identity(r))
                out.append((p, key, identity(r), u64(*r["tokens"]), r))
                at += 1
    return [r for *_, r in sorted(out, key=lambda x: x[:4])], took


def shares(n, periods):
    """Tokens of each source in each period of an output of n tokens; periods: (length in %, weights)."""
    out, before, cum, all_ = [], 0, 0, sum(x for x, _ in periods)
    for x, weights in periods:
        cum += x
        to = n * cum // all_
        w = sum(weights.values())
        out.append({k: (to - before) * v // w for k, v in weights.items()})
        before = to
    names = {k for _, weights in periods for k in weights}
    return [{k: t.get(k, 0) for k in names} for t in out]


def text(weights):
    return ",".join("%s=%s" % (k, ("%.6f" % (v / ONE)).rstrip("0").rstrip(".") or "0") for k, v in weights.items())


def case(r, number):
    names = ["web", "code", "math", "books"][:r.randint(1, 4)]
    docs = []
    for i in range(r.choice([3, 20, 200, 700])):
        d = {"text": "%d " % i + "x" * r.choice([0, 3, 40, r.randint(1, 500)])}
        if r.random() < 0.9:
            d["domain"] = r.choice(names)
        docs.append(d)
    stream = b""
    with tempfile.TemporaryDirectory() as d:
        for name, some in ("with", ["--domain-field", "domain"]), ("without", []):
            path = os.path.join(d, name)
            mine = [x for x in docs if ("domain" in x) == bool(some)]
            with open(path, "w") as f:
                f.writelines(json.dumps(x) + "\n" for x in mine)
            sources[name] = 1 if stream else 0  # of two sources 0, the second moves up
            if not mine:
                continue
            stream += run("tokenize", "-q", "-t", "bytes", "--format", "jsonl", *some, path)
    how = r.choice(["documents", "pieces", "packed"])
    if how != "documents":
        stream = run("decompose", "-q", "--min", 32, "--max", 256, stdin=stream)
    if how == "packed":
        stream = run("pack", "-q", "--mix-domains", "--length", 128, stdin=stream)
    recs = records(stream)
    has = {}
    for x in recs:
        has[domain(x)] = has.get(domain(x), 0) + len(x["tokens"])
    wanted = [k for k in has if r.random() < 0.8] or list(has)[:1]
    n_period = r.choice([1, 1, 2, 3])
    periods = []
    for p in range(n_period):
        weights = {k: r.choice([0, 1, ONE, r.randint(1, 2 * ONE)]) for k in wanted}
        if not any(weights.values()):
            weights[wanted[0]] = ONE
        periods.append((r.randint(1, 99 * ONE) if n_period > 1 else 100 * ONE, weights))
    if n_period > 1:  # shares with six decimals that are 100 % together
        cuts = sorted(r.sample(range(1, 100 * ONE), n_period - 1))
        periods = [(b - a, w) for (_, w), a, b in zip(periods, [0] + cuts, cuts + [100 * ONE])]
    seed, cap = r.randint(0, 2**64 - 1), r.choice([ONE // 2, ONE, 3 * ONE, 7300000])

    def fits(n):
        t = shares(n, periods)
        return all(sum(x[k] for x in t) * ONE <= has.get(k, 0) * cap for k in t[0])

    lo, hi = 0, 2**40
    while lo < hi:
        mid = (lo + hi + 1) // 2
        lo, hi = (mid, hi) if fits(mid) else (lo, mid - 1)
    most = lo
    n = r.choice([None, None, most, most // 2, r.randint(0, most), 1])
    args = ["--seed", seed, "--max-epochs", "%d.%06d" % (cap // ONE, cap % ONE)]
    if n is not None:
        args += ["--max-tokens", n]
    if n_period == 1:
        args += ["--mix", text(periods[0][1])]
    else:
        args += ["--mix-schedule", ";".join(
            "%s:%d.%06d%%" % (text(w), x // ONE, x % ONE) for x, w in periods)]
    what = "case %d (%s, %d sequences, %s)" % (number, how, len(recs), " ".join(map(str, args)))
    if n_period == 1 and n is None:
        lim = [((has.get(k, 0) * cap // ONE + 1) * sum(periods[0][1].values()) - 1) // v
               for k, v in periods[0][1].items() if v]
        if min(lim) != most:
            return result(False, what, "the model's own amounts differ: %d, %d" % (min(lim), most))
    want, took = model(recs, periods, shares(most if n is None else n, periods), seed, domain)
    out, s = stats("shuffle", *args, stdin=stream)
    if records(out) != want:
        return result(False, what, "%d sequences, the model has %d" % (len(records(out)), len(want)))
    got = s["mix"]
    for x in got["sources"]:
        for p, y in enumerate(x["periods"]):
            if y["tokens"] != took[p][x["name"]]:
                return result(False, what, "the report says %s of %s" % (y, x["name"]))
        if x["available"]["tokens"] != has[x["name"]]:
            return result(False, what, "available: %s" % x)
    for k in took[0]:  # short of what is asked for by less than a sequence
        t = sum(x[k] for x in shares(most if n is None else n, periods))
        longest = max(len(x["tokens"]) for x in recs if domain(x) == k)
        if not t - longest < sum(x[k] for x in took) <= t:
            return result(False, what, "%s: %s of %d" % (k, took, t))
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "in.tks")
        with open(path, "wb") as f:
            f.write(stream)
        for more in ["-T1"], ["-T3", "-M32M"]:
            if run("shuffle", *args, *more, path) != out:
                return result(False, what, "a file gives something else than a pipe (%s)" % more)
    result(True, what)


def refusals(stream, has):
    for args, word in (["--mix", "web=1,nowhere=1"], "nowhere"), (["--mix", "web=1", "--max-tokens", "1Gi"], "web' has"):
        p = run("shuffle", *args, stdin=stream, check=False)
        err = p.stderr.decode()
        result(p.returncode == 1 and err.count("\n") == 1 and word in err, "refused: %s" % " ".join(args), err)
    # What the message says would do does, and a little more does not.
    err = run("shuffle", "--mix", "web=3,code=1", "--max-tokens", "1Mi", stdin=stream, check=False).stderr.decode()
    most = int(err.split(" tokens in all")[0].split()[-1])
    result(run("shuffle", "--mix", "web=3,code=1", "--max-tokens", most, stdin=stream, check=False).returncode == 0 and
           run("shuffle", "--mix", "web=3,code=1", "--max-tokens", most + 2, stdin=stream,
               check=False).returncode == 1, "the amount that a refusal names is the largest", err)


def spread():
    """A source that is taken in part lies evenly in the output: the choice says nothing about the place."""
    docs = [{"text": "%06d" % i, "domain": "ab"[i % 2]} for i in range(20000)]
    stream = run("tokenize", "-q", "-t", "bytes", "--domain-field", "domain", "--format", "jsonl",
                 stdin="".join(json.dumps(d) + "\n" for d in docs).encode())
    out = records(run("shuffle", "--mix", "a=3,b=1", stdin=stream))
    tenth, n = [0] * 10, 0
    for i, x in enumerate(out):
        if domain(x) == "b":
            tenth[i * 10 // len(out)] += 1
            n += 1
    chi = sum((x - n / 10)**2 / (n / 10) for x in tenth)
    result(chi < 9 + 5 * 18**0.5, "sequences of a source taken in part are spread evenly: chi-square %.1f, 9 degrees of freedom" % chi)


r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 60 if os.environ.get("CHECK_MORE") else 25):
    case(r, number)
base = run("tokenize", "-q", "-t", "bytes", "--domain-field", "domain", "--format", "jsonl",
           stdin=b"".join(b'{"text": "some text %d", "domain": "%s"}\n' % (i, b"web" if i % 3 else b"code")
                          for i in range(500)))
refusals(base, None)
spread()
finish()
