#!/usr/bin/env python3
"""Random records with metadata of all types go through random lines of programs; at the end each segment must have the
values of its record.

    fields.py [--seed S] [--lines N] [--only I] [-j N] [-v]

A line: two files of records, tokenize with some fields, then some of dedup, choose, decompose, pack and shuffle, in a
pipe or in N parts and stages (sluice-batch), where a run is killed now and then and started again. The result is a
stream, or a set in any format that the build has, which is read back as a stream, now and then joined with a stream
without some of the fields. tests/props/tokstream.py reads it, by source and document finds the record, and compares.

Line I of a seed is the same for every N, but for the moments of kills. Prints "ok" and "not ok"; exit 1 if one failed.
"""
import argparse
import concurrent.futures
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

BIN = os.environ.get("BIN") or os.path.join(HERE, "../../build/bin")
BIN = os.path.abspath(BIN)
ENV = dict(os.environ, PATH=BIN + ":" + os.environ["PATH"], LC_ALL="C", SLUICE_CACHE_DIR="")
NAMES = ["licence", "url", "lang", "quality", "n", "meta.source", "a b", "größe", "x.y.z", "é", "Z", "_"]
TYPES = ["name", "text", "u8", "u32", "u64", "f32", "i64", "f64", "float", "int"]
FORMATS = [f for f in ("mds", "wds", "ds", "olmo", "megatron", "litdata", "parquet", "megatron-sft")]


class Bad(Exception):
    pass


def run(command, timeout=120):
    p = subprocess.run(["bash", "-c", "set -o pipefail; " + command], env=ENV, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def draw(rng, kind):
    """A value for JSON, and the bytes that a segment must have; None: null."""
    if rng.random() < 0.2:
        return rng.choice([None, ...]), None  # ...: the field is missing
    if kind in ("name", "text"):
        v = rng.choice(["mit", "gpl-3.0", "", "日本", "a,b=c", True, False, 7, -3, 2**53]) if kind == "name" or rng.random() < 0.3 \
            else "http://host-%d/%s" % (rng.randrange(9), "x" * rng.choice([0, 3, 40, 700, 65000]))
        return v, ({True: "true", False: "false"}[v] if v is True or v is False else str(v)).encode()
    if kind in ("f32", "f64", "float"):
        v = rng.choice([0.0, 1.5, -2.25e-8, rng.random(), rng.randrange(-99, 99), 1e30])
        return v, struct.pack("<f" if kind == "f32" else "<d", v)
    if kind == "u8" and rng.random() < 0.2:
        v = rng.random() < 0.5
        return v, bytes([v])
    v = {"u8": rng.choice([0, 1, 254]), "u32": rng.choice([0, 2**32 - 2, 77]), "u64": rng.choice([0, 2**53, 2**33])}.get(
        kind, rng.choice([0, -1, -2**53, 2**53, 12]))
    return v, struct.pack({"u8": "<B", "u32": "<I", "u64": "<Q"}.get(kind, "<q"), v)


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
        return "ok"

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
        import glob
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
