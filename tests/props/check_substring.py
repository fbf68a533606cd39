#!/usr/bin/env python3
"""dedup --substring compared with an oracle that has every window of a real text in a dictionary.

What it proves: on the sources, tests and manual pages of this checkout, packed, cut and whole, the passages found are
exactly the unions of windows that occurred before and ended before they begin. Each passage names the first place of
its first window; the annotated passages are those that are cut; cutting twice changes nothing. The oracle has no
hash, anchor or block of ours: the dictionary's keys are the tokens.
"""
import array
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from streams import finish, need, result, run  # noqa: E402

need("tokenize", "dedup", "decompose", "pack", "inspect")

top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
tmp = tempfile.TemporaryDirectory(prefix="sluice-passages-")


def path(name):
    return os.path.join(tmp.name, name)


def text():
    """Documents: the files of this checkout, up to 900 KB of them."""
    size = 0
    with open(path("text.jsonl"), "w") as f:
        for pattern in ("lib/base/*.c", "man/*", "lib/dedup/*/*.c", "tests/cli/*.sh", "tools/*/*.c", "tests/unit/*.c", "lib/token/*.h"):
            for name in sorted(glob.glob(os.path.join(top, pattern))):
                with open(name, encoding="utf-8", errors="replace") as source:
                    body = source.read(40000)
                if size + len(body) < 900000:
                    f.write(json.dumps({"text": body}) + "\n")
                    size += len(body)


def records(stream):
    return [json.loads(x) for x in run("inspect", "--records", stream).decode().splitlines()]


def runs(record):
    """(document, offset, tokens) of neighbouring segments that continue one another."""
    found, at = [], 0
    for s in record["segments"]:
        tokens = record["tokens"][at:at + s["length"]]
        at += s["length"]
        if s.get("padding"):
            continue
        last = found[-1] if found else None
        if last and s["offset"] and last[0] == s["document"] and last[1] + len(last[2]) == s["offset"]:
            last[2].extend(tokens)
        else:
            found.append((s["document"], s["offset"], list(tokens)))
    return found


def oracle(sequences, n, special):
    """Passages as (document, offset, length, first), in stream order."""
    seen, passages = {}, []
    for number, r in enumerate(sequences):
        for document, offset, tokens in runs(r):
            start = 0
            while start < len(tokens):
                end = start
                while end < len(tokens) and tokens[end] not in special:
                    end += 1
                raw = array.array("I", tokens[start:end]).tobytes()
                open_end = -1
                for i in range(end - start - n + 1):
                    first = seen.setdefault(raw[4 * i:4 * (i + n)], (number, start + i, document, offset + start + i))
                    # The same sequence: places of one run; windows of two runs never overlap.
                    if first[0] == number and first[2] == document and first[3] > offset + start + i - n and \
                            first[3] <= offset + start + i:
                        continue
                    at = offset + start + i
                    if at <= open_end:
                        passages[-1][2] = at + n - passages[-1][1]
                    else:
                        passages.append([document, at, n, (first[2], first[3])])
                    open_end = at + n
                start = end + 1
    return passages


def annotated(stream, n):
    run("dedup", "--substring", n, "--annotate", "--pairs", path("p.jsonl"), "-o", path("same.tks"), stream)
    with open(path("p.jsonl")) as f:
        lines = [json.loads(x) for x in f]
    return [[p["document"], p["offset"], p["length"], (p["first"]["document"], p["first"]["offset"])] for p in lines]


text()
run("tokenize", "-o", path("text.tks"), path("text.jsonl"))
run("decompose", "--min", 64, "--max", 1024, "-o", path("pieces.tks"), path("text.tks"))
run("pack", "--length", 1024, "-o", path("packed.tks"), path("pieces.tks"))
info = json.loads(run("inspect", "--json", path("text.tks")))
special = {info[k] for k in ("eos_id", "bos_id", "pad_id")} - {None}
for stream, n in (("text", 50), ("text", 13), ("text", 2), ("text", 100), ("pieces", 20), ("packed", 30)):
    want = oracle(records(path(stream + ".tks")), n, special)
    got = annotated(path(stream + ".tks"), n)
    what = "%s: %d passages of %d tokens" % (stream, len(want), n)
    odd = next((x for x in zip(want, got) if x[0] != x[1]), (len(want), len(got)))
    result(want == got and len(want) > 3, what + ", where the dictionary has them", odd)

whole = records(path("text.tks"))
gone = {}
for document, offset, length, _ in annotated(path("text.tks"), 50):
    gone.setdefault(document, set()).update(range(offset, offset + length))
left = []
for r in whole:
    document = r["segments"][0]["document"]
    kept = [t for i, t in enumerate(r["tokens"]) if i not in gone.get(document, ())]
    if any(t not in special for t in kept):
        left.append(kept)
run("dedup", "--substring", 50, "-o", path("cut.tks"), path("text.tks"))
result([r["tokens"] for r in records(path("cut.tks"))] == left, "what is cut is what is annotated")
run("dedup", "--substring", 50, "--stats", path("s.json"), "-o", path("again.tks"), path("cut.tks"))
with open(path("s.json")) as f:
    result(json.load(f)["passages"] == 0, "cutting twice changes nothing")
finish()
