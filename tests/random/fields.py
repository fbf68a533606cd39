#!/usr/bin/env python3
"""Random records with metadata of all types go through random lines of programs; at the end each segment must have the
values of its record.

    fields.py [--seed S] [--lines N] [--only I] [-j N] [-v]

A line: two files of records, tokenize with some fields, then some of dedup, choose, decompose, pack and shuffle, in a
pipe or in N parts and stages (sluice-batch), where a run is killed now and then and started again. The result is a
stream, or a set in any format that the build has, which is read back as a stream, now and then joined with a stream
without some of the fields. tests/props/tokstream.py reads it, by source and document finds the record, and compares.

Of each line's documents some are chosen by an expression, the best by a field of each value of another, in one process and
in 1, 3 or 8 parts, and a stream for each value; inspect counts values; forget takes documents out of a set. Python chooses too.
Where Python has pyarrow, the columns of a Parquet set are compared too. At last shuffle mixes the result, by a field or in
bands by expressions, and what it takes must be what the values say.

Line I of a seed is the same for every N, but for the moments of kills. Prints "ok" and "not ok"; exit 1 if one failed.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "props"))
import tokstream  # noqa: E402

try:
    import pyarrow.parquet as parquet
except ImportError:
    parquet = None

BIN = os.environ.get("BIN") or os.path.join(HERE, "../../build/bin")
BIN = os.path.abspath(BIN)
ENV = dict(os.environ, PATH=BIN + ":" + os.environ["PATH"], LC_ALL="C", SLUICE_CACHE_DIR="")
NAMES = ["licence", "url", "lang", "quality", "n", "meta.source", "a b", "größe", "x.y.z", "é", "Z", "_"]
TYPES = ["name", "text", "u8", "u32", "u64", "f32", "i64", "f64", "float", "int"]
FORMATS = [f for f in ("mds", "wds", "ds", "olmo", "megatron", "litdata", "parquet", "megatron-sft")]


class Bad(Exception):
    pass


def value_of(kind, b):
    """A value as Python has it, from its bytes; None: null."""
    if b is None:
        return None
    if kind in ("name", "text"):
        return b.decode()
    return struct.unpack({"u8": "<B", "u32": "<I", "u64": "<Q", "f32": "<f", "f64": "<d", "float": "<d"}.get(kind, "<q"), b)[0]


def run(command, timeout=120):
    p = subprocess.run(["bash", "-c", "set -o pipefail; " + command], env=ENV, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def draw(rng, kind):
    """A value for JSON, and the bytes that a segment must have; None: null."""
    if rng.random() < 0.2:
        return rng.choice([None, ...]), None  # ...: the field is missing
    if kind in ("name", "text"):
        v = rng.choice(["mit", "gpl-3.0", "", "日本", "a,b=c", True, False, 7, -3, 2**53 + 1]) if kind == "name" or rng.random() < 0.3 \
            else "http://host-%d/%s" % (rng.randrange(9), "x" * rng.choice([0, 3, 40, 700, 65000]))
        return v, ({True: "true", False: "false"}[v] if v is True or v is False else str(v)).encode()
    if kind in ("f32", "f64", "float"):
        v = rng.choice([0.0, 1.5, -2.25e-8, rng.random(), rng.randrange(-99, 99), 1e30])
        return v, struct.pack("<f" if kind == "f32" else "<d", v)
    if kind == "u8" and rng.random() < 0.2:
        v = rng.random() < 0.5
        return v, bytes([v])
    v = {"u8": rng.choice([0, 1, 254]), "u32": rng.choice([0, 2**32 - 2, 77]), "u64": rng.choice([0, 2**53, 2**53 + 1, 2**64 - 2, 2**33])}.get(
        kind, rng.choice([0, -1, 1 - 2**63, 2**53, 2**53 + 1, 2**63 - 1, 12]))
    return v, struct.pack({"u8": "<B", "u32": "<I", "u64": "<Q"}.get(kind, "<q"), v)


class Unknown(Exception):
    """A null where a number is asked for."""


def term(rng, name, kind, values):
    """A comparison with one of the values: its text, and what it is of a document's values."""
    field = "`%s`" % name
    known = [v for v in values if v is not None and len(str(v)) < 100]
    if not known or rng.random() < 0.2:
        return rng.choice([("%s == null" % field, lambda d: d.get(name) is None), ("%s != null" % field, lambda d: d.get(name) is not None)])
    x = rng.choice(known)
    literal = json.dumps(x, ensure_ascii=False)
    if isinstance(x, str) or rng.random() < 0.3:
        return rng.choice([("%s == %s" % (field, literal), lambda d: d.get(name) == x), ("%s != %s" % (field, literal), lambda d: d.get(name) != x)])

    def least(d):
        if d.get(name) is None:
            raise Unknown
        return d[name] >= x
    return "%s >= %s" % (field, literal), least


def expression(rng, fields, docs):
    """An expression, and its value for a document."""
    terms = [term(rng, n, k, [d.get(n) for d in docs]) for n, k in rng.choices(sorted(fields.items()), k=rng.choice([1, 2, 3]))]
    text, holds = terms[0]
    for more, also in terms[1:]:
        if rng.random() < 0.5:
            text, holds = "(%s) or %s" % (text, more), lambda d, a=holds, b=also: a(d) or b(d)
        else:
            text, holds = "not (%s) and %s" % (text, more), lambda d, a=holds, b=also: not a(d) and b(d)

    def known(d):
        try:
            return holds(d)
        except Unknown:
            return False
    return text, known


def put(record, name, value):
    if value is ...:
        return
    if "." in name and not name.startswith("."):
        first, rest = name.split(".", 1)
        put(record.setdefault(first, {}), rest, value)
    else:
        record[name] = value


class Line:
    def __init__(self, seed, i):
        self.rng = random.Random("%s/%d" % (seed, i))
        rng = self.rng
        self.fields = {n: rng.choice(TYPES) for n in rng.sample(NAMES, rng.randrange(1, 9))}
        if rng.random() < 0.5:
            self.fields["licence"] = "name"
        self.want, self.log = {}, []  # (source, document) -> {name: bytes}

    def corpus(self):
        rng = self.rng
        os.mkdir("in")
        for f in range(2):
            with open("in/%d.jsonl" % f, "wb") as out:
                for i in range(rng.randrange(5, 60)):
                    text = " ".join(rng.choice(["the", "quick", "brown", "fox", "ein", "kleiner"]) for _ in range(rng.choice([1, 9, 60])))
                    record = {"id": "%d-%d" % (f, i), "text": text + str(rng.randrange(40))}
                    want = {}
                    for name, kind in self.fields.items():
                        v, b = draw(rng, kind)
                        put(record, name, v)
                        if b is not None:
                            want[name.encode()] = b
                    self.want["%d.jsonl" % f, out.tell()] = want
                    out.write(json.dumps(record, ensure_ascii=rng.random() < 0.5).encode() + b"\n")

    def sh(self, command):
        self.log.append(command)
        status, out, err = run(command)
        self.log.append("  %d %s" % (status, (err or out).strip()[:1000]))
        return status, out, err

    def steps(self):
        rng, steps = self.rng, []
        if rng.random() < 0.5:
            steps.append(("dedup", rng.choice(["--exact", "--near", "--substring 30"])))
        if rng.random() < 0.4:
            steps.append(("choose", rng.choice(["--length 8..", "--top 50% --by hash", "--length ..200"])))
        label = rng.random() < 0.5
        bucket = rng.random() < 0.7
        if bucket:
            steps.append(("decompose", "--min 8 --max %d%s" % (rng.choice([16, 64]), " --label-token" if label else "")))
            if rng.random() < 0.6:
                steps.append(("pack", ""))
        set_ = bucket and rng.random() < 0.8
        if set_:
            steps.append(("shuffle", "--accept-mismatch --tails drop --format " + rng.choice(FORMATS)))
        elif rng.random() < 0.5:
            steps.append(("shuffle", ""))
        return steps, set_

    def go(self):
        rng = self.rng
        self.corpus()
        steps, is_set = self.steps()
        options = "--id-field id --metadata " + shlex.quote(",".join(n if k == "name" and rng.random() < 0.5 else n + "=" + k
                                                                     for n, k in self.fields.items()))
        if rng.random() < 0.5:
            self.choosing(options)
        if rng.random() < 0.35 and steps and steps[-1][0] == "shuffle":
            result = self.batch(options, steps, is_set)
        else:
            line = "tokenize -q -t bytes %s in/*.jsonl | " % options + " | ".join("%s -q %s" % s for s in steps + [("cat", "")])
            line = line.replace("cat -q ", "cat")
            result = "set" if is_set else "out.tks"
            if is_set:
                line = line.rsplit(" | ", 1)[0] + " -o set"
            else:
                line += " >out.tks"
            status, _, err = self.sh(line)
            if status:
                if "not built in" in err or "no bucket" in err or "no sequence" in err or "empty" in err:
                    return "refused"
                raise Bad("the line failed: " + err)
        if result is None:
            return "refused"
        if is_set:
            if self.sh("inspect --verify %s" % result)[0]:
                raise Bad("the set is not whole")
            if self.sh("shuffle -q --order keep %s -o out.tks" % result)[0]:
                raise Bad("the set cannot be read")
            self.columns(result)
            result = "out.tks"
        dropped = ""
        if rng.random() < 0.25:
            dropped = rng.choice(sorted(self.fields))
            if self.sh("choose -q --length 1.. --drop-metadata %s %s -o less.tks" % (shlex.quote(dropped), result))[0]:
                raise Bad("--drop-metadata")
            result = "less.tks"
        elif rng.random() < 0.3:  # a join with a stream that has none
            self.sh("shuffle -q --seed 5 --drop-metadata %s %s -o none.tks" % (shlex.quote(",".join(self.fields)), result))
            if self.sh("choose -q --length 1.. none.tks %s -o both.tks" % result)[0] == 0:
                self.compare("both.tks", "", True)
        self.compare(result, dropped)
        if rng.random() < 0.5:
            self.mix(result, {n: k for n, k in self.fields.items() if n != dropped})
        return "ok"

    def must(self, command):
        status, out, err = self.sh(command)
        if status:
            raise Bad("%s: %s" % (command, err))
        return out

    def documents(self, *paths):
        """(source, document) of each first segment, with the values that its record had."""
        out = []
        for line in self.must("inspect -q --records " + " ".join(map(shlex.quote, paths))).splitlines():
            q = json.loads(line)
            s = next(s for s in q["segments"] if not s.get("padding"))
            at = os.path.basename(s["source"]), s["document"]
            has = {n: value_of(self.fields[n.decode()], b) for n, b in self.want[at].items()}
            out.append((at, {"source": s["source"], "id": s.get("id"), "length": len(q["tokens"]), **{n.decode(): v for n, v in has.items()}}))
        return out

    def choosing(self, options):
        rng = self.rng
        self.must("tokenize -q -t bytes %s in/*.jsonl -o docs.tks" % options)
        docs = self.documents("docs.tks")
        text, holds = expression(rng, self.fields, [d for _, d in docs])
        self.must("choose -q --where %s docs.tks -o where.tks" % shlex.quote(text))
        if self.documents("where.tks") != [(at, d) for at, d in docs if holds(d)]:
            raise Bad("choose --where " + text)
        per = rng.choice(sorted(self.fields) + ["source", "id", "length"])
        groups = {}
        for at, d in docs:
            groups.setdefault(d.get(per), []).append((at, d))
        self.best(docs, groups, per, options)
        self.must("choose -q --partition parted --per %s docs.tks" % shlex.quote(per))
        with open("parted/values.json", encoding="utf-8") as f:
            parts = {self.key(per, x["value"]): self.documents("parted/" + x["file"]) for x in json.load(f)}
        if parts != {self.key(per, v): x for v, x in groups.items()}:
            raise Bad("choose --partition --per " + per)
        got = json.loads(self.must("inspect --groups %s --json docs.tks" % shlex.quote(per)))
        if {self.key(per, g["value"]): (g["documents"], g["tokens"]) for g in got["groups"]} != {
                self.key(per, v): (len(x), sum(d["length"] for _, d in x)) for v, x in groups.items()}:
            raise Bad("inspect --groups " + per)
        self.forget(docs, text, holds)

    def key(self, name, v):
        """What stands for a value, whose text may be that of another double."""
        return struct.pack("<f", v) if v is not None and self.fields.get(name) == "f32" else v

    def best(self, docs, groups, per, options):
        rng = self.rng
        numbers = [n for n, k in self.fields.items() if k not in ("name", "text")] + ["length"]
        by, n, parts = rng.choice(sorted(numbers)), rng.choice([1, 2, 5]), rng.choice([1, 3, 8])
        args = "choose -q --top %d --unit documents --by %s --per %s" % (n, shlex.quote(by), shlex.quote(per))
        self.must(args + " docs.tks -o best.tks")
        best = self.documents("best.tks")
        if [x for x in docs if x in best] != best:
            raise Bad("%s: not in the order of the stream" % args)
        for v, x in groups.items():
            order = sorted((d.get(by) is None, -float(d.get(by) or 0)) for _, d in x)[:n]
            if sorted((d.get(by) is None, -float(d.get(by) or 0)) for _, d in best if d.get(per) == v) != order:
                raise Bad("%s: the best of %r" % (args, v))
        for i in range(parts):
            self.must("tokenize -q -t bytes %s --part %d/%d in/*.jsonl -o part.%d" % (options, i, parts, i))
            self.must("%s --stage rank --work w --part %d/%d part.%d" % (args, i, parts, i))
        self.must(args + " --stage cut --work w")
        for i in range(parts):
            self.must("%s --stage filter --work w --part %d/%d part.%d -o best.%d" % (args, i, parts, i, i))
        if self.documents(*("best.%d" % i for i in range(parts))) != best:
            raise Bad("%s: in %d parts" % (args, parts))

    def forget(self, docs, text, holds):
        rng = self.rng
        kind = rng.choice(["wds", "olmo", "megatron"])
        self.must("decompose -q --min 8 --max 64%s docs.tks -o pieces.tks" % (" --label-token" if kind == "wds" else ""))
        self.must("pack -q --length 64 pieces.tks | shuffle -q --accept-mismatch --tails drop --format %s -o full" % kind)
        segments = [[(os.path.basename(s["source"]), s["document"], s["offset"]) for s in json.loads(line)["segments"] if not s.get("padding")]
                    for line in self.must("inspect --records full").splitlines()]
        gone = {at for at, d in docs if holds(d)}
        left = [[s for s in q if s[:2] not in gone] for q in segments]
        status, _, err = self.sh("forget -q --accept-mismatch --pad-id 0 --where %s -o rest full" % shlex.quote(text))
        if left == segments:
            if status != 1 or "is true of none of its documents" not in err:
                raise Bad("forget: %d, but no document goes: %s" % (status, err))
            return
        if status:
            raise Bad("forget: " + err)
        if [[(os.path.basename(s["source"]), s["document"], s["offset"]) for s in json.loads(line)["segments"] if not s.get("padding")]
                for line in self.must("inspect --records rest").splitlines()] != left:
            raise Bad("forget --where " + text)
        self.must("inspect --verify rest")

    def batch(self, options, steps, is_set):
        rng = self.rng
        parts = rng.choice([1, 3, 8])
        if any(p == "choose" and "--top" in o for p, o in steps):
            return None
        with open("recipe", "w", encoding="utf-8") as f:
            f.write("input = in/*.jsonl\nparts = %d\ntokenizer = bytes\ntokenize = %s\n" % (parts, options))
            for p, o in steps:
                f.write("%s = %s\n" % (p, o))
        if rng.random() < 0.4:
            p = subprocess.Popen(["sluice-batch", "--local", "2", "recipe", "job"], env=ENV, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                p.wait(rng.random() * 2)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            while subprocess.run(["pgrep", "-g", str(p.pid)], stdout=subprocess.DEVNULL, check=False).returncode == 0:
                time.sleep(0.02)
            self.log.append("killed")
        status, _, err = self.sh("sluice-batch --local 2 recipe job")
        if status:
            if "not built in" in err or "no bucket" in err or "no sequence" in err or "expected" in err or "needs" in err:
                return None
            raise Bad("sluice-batch failed: " + err)
        return "job/shards" if is_set else "job/stream/*.tks"

    def compare(self, path, dropped, half=False):
        """half: half of the segments have no metadata."""
        n = empty = 0
        for file in sorted(glob.glob(path)):
            with open(file, "rb") as f:
                reader = tokstream.Reader(f)
                for q in reader:
                    for s in q.segments:
                        if s.source == tokstream.PADDING:
                            if s.meta:
                                raise Bad("padding has metadata")
                            continue
                        source = reader.sources[s.source].decode()
                        want = dict(self.want[os.path.basename(source), s.document])
                        want.pop(dropped.encode(), None)
                        got = {name: b for name, _, b in s.meta}
                        n += 1
                        empty += not got
                        if got != want and not (half and not got):
                            raise Bad("%s, document %d, offset %d: has %r, expected %r" % (source, s.document, s.offset, got, want))
        if half and n and empty < n // 2:
            raise Bad("of %d segments only %d have no metadata" % (n, empty))
        self.log.append("  %d segments compared" % n)


    def read(self, pattern):
        """The sequences: what they are, by which repeats are known, and the lengths of their segments and records' values."""
        out = []
        for file in sorted(glob.glob(pattern)):
            with open(file, "rb") as f:
                reader = tokstream.Reader(f)
                for q in reader:
                    rows = []
                    for s in q.segments:
                        name = None if s.source == tokstream.PADDING else os.path.basename(reader.sources[s.source].decode())
                        rows.append((name, s.document, s.offset, s.length))
                    out.append((tuple(rows), [(r[3], {} if r[0] is None else self.want[r[0], r[1]], r[0] is None) for r in rows]))
        return out

    def columns(self, folder):
        """The columns of a Parquet set, in the order of its sequences, against the values of the records."""
        files = glob.glob(folder + "/*/*.parquet")
        if not files or parquet is None:
            return
        files.sort(key=lambda f: (int(os.path.basename(os.path.dirname(f)).split("_")[1]), f))
        rows = [r for f in files for r in parquet.read_table(f).to_pylist()]
        sequences = self.read("out.tks")
        if len(rows) != len(sequences):
            raise Bad("%d rows of %d sequences" % (len(rows), len(sequences)))
        for row, (_, segments) in zip(rows, sequences):
            if [length for length, _, _ in segments] != row.get("seq_lengths", [length for length, _, _ in segments]):
                raise Bad("seq_lengths are %r" % row["seq_lengths"])
            for name, kind in self.fields.items():
                want = [value_of(kind, values.get(name.encode())) for _, values, _ in segments]
                if row[name] != want:
                    raise Bad("column %s has %r, expected %r" % (name, row[name], want))
        self.log.append("  %d rows compared" % len(rows))

    def mix(self, path, fields):
        """Mixes the stream by a field, or in bands; each sequence must be there as often as its values say."""
        rng = self.rng
        if not fields:
            return
        sequences = self.read(path)
        name = rng.choice(sorted(fields))
        kind, key = fields[name], name.encode()

        def most(pick):
            """Each sequence's pick, that of most of its tokens; the first of equal ones."""
            out = []
            for what, segments in sequences:
                sums = {}
                for length, values, padding in segments:
                    if not padding:
                        k = pick(values)
                        sums[k] = sums.get(k, 0) + length
                out.append((what, sums))
            return out

        has = sorted({values[key] for _, segments in sequences for _, values, _ in segments if values.get(key)})
        if rng.random() < 0.5 and has and not any(b"," in b for b in has if kind in ("name", "text")):
            # by the field: what has no weight is out, nothing is repeated, and the scarcest source is used up
            some = rng.sample(has, min(len(has), rng.randrange(1, 4)))
            names = {b: b.decode() if kind in ("name", "text") else repr(value_of(kind, b)) for b in some}
            picked = most(lambda values: values.get(key) or b"")
            taken = {what: max(sums, key=sums.get) if sums else b"" for what, sums in picked}
            there = collections.Counter(taken.values())
            if not all(there[b] for b in some):
                return
            command = "shuffle -q --seed %d --mix-by %s --mix %s %s -o mixed.tks" % (
                rng.randrange(5), shlex.quote(name), shlex.quote(",".join("%s=1" % n for n in names.values())), path)
            if self.sh(command)[0]:
                raise Bad("the mix failed")
            got = collections.Counter(what for what, _ in self.read("mixed.tks"))
            all_ = collections.Counter(what for what, _ in sequences)
            bad = [what for what in got if taken[what] not in names or got[what] > all_[what]]
            if bad:
                raise Bad("mixed by %s: %r" % (name, bad[:3]))
            tokens, out = collections.Counter(), collections.Counter()
            for what, n in all_.items():
                tokens[taken[what]] += n * sum(r[3] for r in what)
            for what, n in got.items():
                out[taken[what]] += n * sum(r[3] for r in what)
            least, longest = min(tokens[b] for b in some), max(sum(r[3] for r in what) for what, _ in sequences)
            if any(not least - longest <= out[b] <= least for b in some):
                raise Bad("mixed by %s: takes %r of %r" % (name, out, tokens))
            self.log.append("  %d sequences mixed by %s" % (sum(got.values()), name))
            return
        field = "`%s`" % name
        value = rng.choice(has) if has else None
        literal = json.dumps(value_of(kind, value), ensure_ascii=rng.random() < 0.5) if has else "null"
        compare = lambda values: value_of(kind, values.get(key))  # noqa: E731
        v = value_of(kind, value)
        tests = [(field + " == null", lambda x: x is None), (field + " != null", lambda x: x is not None)]
        if has:
            tests = [("%s == %s" % (field, literal), lambda x: x == v), ("%s in [%s]" % (field, literal), lambda x: x == v),
                     ("%s >= %s" % (field, literal), lambda x: x is not None and (x.encode() >= v.encode() if isinstance(x, str) else x >= v)),
                     ("not (%s < %s)" % (field, literal), lambda x: x is not None and not (x.encode() < v.encode() if isinstance(x, str) else x < v)),
                     ] + tests
        tests = rng.sample(tests, min(len(tests), rng.randrange(1, 3)))
        times = [rng.choice([0, 1, 2, 3]) for _ in tests]
        command = "shuffle -q --seed 1 --mix %s %s -o mixed.tks" % (
            shlex.quote(", ".join("%s:%d" % (t[0], n) for t, n in zip(tests, times))), path)
        if len(command) > 100000:
            return
        if self.sh(command)[0]:
            raise Bad("the bands failed")
        want = collections.Counter()
        for what, sums in most(lambda values: next((i for i, t in enumerate(tests) if t[1](compare(values))), len(tests))):
            band = max(sorted(sums), key=sums.get) if sums else len(tests)
            n = (times + [1])[band]
            if n:
                want[what] += n
        got = collections.Counter(what for what, _ in self.read("mixed.tks"))
        if got != want:
            raise Bad("bands: %r are there more often, %r less often" % (list((got - want).items())[:3], list((want - got).items())[:3]))
        self.log.append("  %d sequences in bands" % sum(got.values()))


def one(task):
    seed, i, verbose = task
    line = Line(seed, i)
    folder = tempfile.mkdtemp(prefix="sluice-fields.")
    os.chdir(folder)
    try:
        result, why = line.go(), ""
    except Bad as e:
        result, why = "not ok", str(e)
    except subprocess.TimeoutExpired as e:
        result, why = "not ok", "no end: " + str(e)
    os.chdir("/")
    if result != "not ok":
        shutil.rmtree(folder)
    return i, result, why[:2000], line.log if verbose or result == "not ok" else [], folder


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--seed", default="1")
    p.add_argument("--lines", type=int, default=2000)
    p.add_argument("--only", type=int)
    p.add_argument("-v", action="store_true", help="print all commands")
    p.add_argument("-j", type=int, default=os.cpu_count())
    o = p.parse_args(argv)
    tasks = [(o.seed, i, o.v) for i in ([o.only] if o.only is not None else range(o.lines))]
    n = {"ok": 0, "refused": 0, "not ok": 0}
    with concurrent.futures.ProcessPoolExecutor(o.j) as pool:
        for i, result, why, log, folder in pool.map(one, tasks):
            n[result] += 1
            if result == "not ok":
                print("not ok fields: line %s/%d: %s (in %s)" % (o.seed, i, why, folder))
            for line in log:
                print("# " + line)
            sys.stdout.flush()
    print("%s fields: %d lines as their records say, %d refused" % ("not ok" if n["not ok"] else "ok", n["ok"], n["refused"]))
    return 1 if n["not ok"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
