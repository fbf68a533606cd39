#!/usr/bin/env python3
"""forget.py OLD NEW IDS [LIST] (see forget.sh): compares the sequences of two sets, given as the output of
`inspect --records`: of NEW all are those of OLD, but that the segments of the records in IDS are padding."""
import json
import os
import sys

old, new, ids = sys.argv[1:4]
PAD = int(os.environ["PAD"])
with open(ids) as f:
    drop = set(f.read().split())


def expected(q):
    """What becomes of a sequence, and the runs of tokens that go."""
    at, segments, tokens, mask, gone = 0, [], list(q["tokens"]), q.get("mask"), []
    for s in q["segments"]:
        n = s["length"]
        if s.get("id") in drop:
            gone.append((s["id"], n))
            tokens[at : at + n] = [PAD] * n
            if mask is not None:
                mask[at : at + n] = [0] * n
            s = {"padding": True, "length": n}
        at += n
        if s.get("padding") and segments and segments[-1].get("padding"):
            segments[-1]["length"] += n
        else:
            segments.append(s)
    return {"segments": segments, "tokens": tokens, **({"mask": mask} if mask is not None else {})}, gone


def mask_of_all(q):
    """Of a set that gets masks: all tokens but padding are trained on."""
    return [0 if s.get("padding") else 1 for s in q["segments"] for _ in range(s["length"])]


n, listed = 0, []
with open(old) as a, open(new) as b:
    for x, y in zip(a, b, strict=True):
        x, y = json.loads(x), json.loads(y)
        if "mask" in y and "mask" not in x:
            x["mask"] = mask_of_all(x)
        if "mask" in x and "mask" not in y:
            y["mask"] = mask_of_all(y)
        want, gone = expected(x)
        if y != want:
            sys.exit(f"sequence {n} is {json.dumps(y)[:300]}, must be {json.dumps(want)[:300]}")
        n += 1
        listed += gone
if not n or not listed:
    sys.exit("nothing was compared")
if len(sys.argv) > 4:
    with open(sys.argv[4]) as f:
        said = [(r["id"], r["tokens"]) for r in map(json.loads, f)]
    if said != listed:
        sys.exit(f"the list has {said[:5]}, must have {listed[:5]}")
print(n, "sequences,", len(listed), "runs of tokens gone")
