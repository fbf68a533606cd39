"""Shared by the property tests: documents of exact lengths, and a stream's records.

With the tokenizer `bytes` and --no-eos a text of n ASCII characters is n tokens, and its tokens are its bytes. So a
test knows every token that must come out, wherever it ends up.
"""
import json
import os
import subprocess
import sys
import tempfile

BIN = os.environ.get("BIN", "build/bin")
PREFIX = os.environ.get("PROGRAM_PREFIX", "")
failed = False


def result(good, what, why=""):
    """One result line."""
    global failed
    if not good:
        failed = True
        if why:
            print("  " + str(why)[:400])
    print(("ok " if good else "not ok ") + what)


def need(*programs):
    """Ends the test with skip lines where a program has not been built."""
    lacking = [p for p in programs if not os.path.exists(os.path.join(BIN, PREFIX + p))]
    if lacking:
        print("skip props: needs " + " ".join(lacking))
        sys.exit(0)


def run(program, *args, stdin=b"", check=True):
    """Standard output of a program; where it fails, its message and the end of the test."""
    p = subprocess.run([os.path.join(BIN, PREFIX + program), *[str(a) for a in args]], input=stdin,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and p.returncode != 0:
        print("not ok %s %s: %s" % (program, " ".join(map(str, args)), p.stderr.decode().strip()))
        sys.exit(1)
    return p if not check else p.stdout


def text_of(length, number):
    """ASCII text of that length, different for every number."""
    unit = "%d:abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ " % number
    return (unit * (length // len(unit) + 1))[:length]


class Corpus:
    """Documents: lengths in tokens, with a domain each if wanted."""

    def __init__(self, lengths, domains=None):
        self.texts = [text_of(n, i) for i, n in enumerate(lengths)]
        self.domains = domains
        self.place, lines, at = {}, [], 0  # a document's byte offset -> its number
        for i, text in enumerate(self.texts):
            record = {"text": text}
            if domains:
                record["domain"] = domains[i]
            line = json.dumps(record).encode() + b"\n"
            self.place[at] = i
            lines.append(line)
            at += len(line)
        self.jsonl = b"".join(lines)

    def stream(self, *args):
        domain = ["--domain-field", "domain"] if self.domains else []
        if "--part" not in args:
            return run("tokenize", "-t", "bytes", "--no-eos", "--format", "jsonl", *domain, *args, stdin=self.jsonl)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:  # only a file can be shared between parts
            f.write(self.jsonl)
            f.flush()
            return run("tokenize", "-t", "bytes", "--no-eos", *domain, *args, f.name)

    def records(self, stream):
        """Sequences as lists of (document number, offset, length), padding as (None, 0, length); tokens are
        compared with the texts on the way. Also returns the ids of padding that were seen."""
        out, pads = [], set()
        for line in run("inspect", "--records", "-", stdin=stream).splitlines():
            r = json.loads(line)
            sequence, at = [], 0
            for s in r["segments"]:
                tokens = r["tokens"][at:at + s["length"]]
                at += s["length"]
                if s.get("padding"):
                    sequence.append((None, 0, s["length"]))
                    pads.update(tokens)
                    continue
                i = self.place[s["document"]]
                sequence.append((i, s["offset"], s["length"]))
                if bytes(tokens).decode("latin-1") != self.texts[i][s["offset"]:s["offset"] + s["length"]]:
                    result(False, "tokens are the text's", "document %d, offset %d" % (i, s["offset"]))
            if at != len(r["tokens"]):
                result(False, "segments cover the sequence", line)
            out.append(sequence)
        return out, pads


def stats(program, *args, stdin=b""):
    """(output, --stats object), with the account checked."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "stats.json")
        out = run(program, *args, "--stats", path, stdin=stdin)
        with open(path) as f:
            s = json.load(f)
    for what in "tokens", "sequences", "documents":
        b = s[what]
        if b["in"] + b["created"] + b["repeated"] + b.get("padding", 0) != b["out"] + sum(b["dropped"].values()):
            result(False, "%s balances its %s" % (program, what), b)
    return out, s


def finish():
    sys.exit(1 if failed else 0)
