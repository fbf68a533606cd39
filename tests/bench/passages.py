#!/usr/bin/env python3
"""dedup --substring beside a suffix array truncated at N tokens, in numpy: passages.py STREAM [N]

Ranks of all substrings of 1, 2, 4, … N tokens by sorting pairs of ranks (Karp, Miller, Rosenberg 1972; the
doubling of Manber and Myers): exact, no hashes. Compares the passages and prints CPU seconds of both. Needs
numpy, and 60 bytes of memory a token.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

BIN = os.environ.get("BIN", "build/bin")


def cpu(who):
    r = resource.getrusage(who)
    return r.ru_utime + r.ru_stime


def read(stream):
    """All ids, the document and start of each sequence, and the special ids."""
    info = json.loads(subprocess.check_output([BIN + "/inspect", "--json", stream]))
    special = {info[k] for k in ("eos_id", "bos_id", "pad_id")} - {None}
    parts, documents, starts, at = [], [], [], 0
    with subprocess.Popen([BIN + "/inspect", "--records", stream], stdout=subprocess.PIPE) as p:
        for line in p.stdout:
            r = json.loads(line)
            parts.append(np.array(r["tokens"], dtype=np.int64))
            documents.append(r["segments"][0]["document"])
            starts.append(at)
            at += len(r["tokens"])
    return np.concatenate(parts), np.array(documents), np.array(starts), special


def ranks(ids, n):
    """Equal numbers for equal substrings of n ids from each place on."""
    rank, have = np.unique(ids, return_inverse=True)[1], 1
    while have < n:
        step = min(have, n - have)
        pair = rank[:len(rank) - step] * (int(rank.max()) + 1) + rank[step:]
        rank, have = np.unique(pair, return_inverse=True)[1], have + step
    return rank


def passages(ids, starts, special, n):
    """(start, length) of the unions of windows that came before and ended before they begin."""
    rank = ranks(ids, n)
    sequence = np.zeros(len(ids), dtype=np.int64)
    sequence[starts[1:]] = 1
    np.cumsum(sequence, out=sequence)
    ends = np.append(starts[1:], len(ids))[sequence]
    bad = np.concatenate([[0], np.cumsum(np.isin(ids, list(special)))])
    m = len(rank)
    i = np.arange(m)
    ok = (i + n <= ends[:m]) & (bad[n:n + m] == bad[:m])
    i = i[ok]
    order = i[np.argsort(rank[i], kind="stable")]
    new = np.concatenate([[True], rank[order[1:]] != rank[order[:-1]]])
    first = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    again = order[(sequence[order] != sequence[first]) | (order - first >= n)]
    depth = np.zeros(len(ids) + 1, dtype=np.int64)
    np.add.at(depth, again, 1)
    np.add.at(depth, again + n, -1)
    covered = np.cumsum(depth[:-1]) > 0
    # Windows of two sequences may touch: a passage ends with its sequence.
    edge = np.diff(np.concatenate([[0], covered.astype(np.int8), [0]]))
    cut = np.zeros(len(ids) + 1, dtype=bool)
    cut[starts[1:]] = covered[starts[1:]] & covered[starts[1:] - 1]
    begin = np.flatnonzero((edge == 1) | cut)
    end = np.flatnonzero((edge == -1) | cut)
    return begin, end - begin


def main(stream, n):
    ids, documents, starts, special = read(stream)
    t = cpu(resource.RUSAGE_SELF)
    begin, length = passages(ids, starts, special, n)
    ours = cpu(resource.RUSAGE_SELF) - t
    with tempfile.TemporaryDirectory() as tmp:
        t = cpu(resource.RUSAGE_CHILDREN)
        subprocess.check_call([BIN + "/dedup", "--substring", str(n), "--annotate", "--pairs", tmp + "/p", "-T", "1",
                               "-M", "2G", "-o", tmp + "/out", stream])
        dedup = cpu(resource.RUSAGE_CHILDREN) - t
        got = [json.loads(x) for x in open(tmp + "/p")]
    at = {d: s for d, s in zip(documents.tolist(), starts.tolist())}
    found = np.array([[at[p["document"]] + p["offset"], p["length"]] for p in got]).reshape(-1, 2)
    same = len(found) == len(begin) and bool((found[:, 0] == begin).all() and (found[:, 1] == length).all())
    print("%s: %.1f M tokens, %d passages of %d tokens, %d tokens in them: %s" %
          (stream, len(ids) / 1e6, len(begin), n, length.sum(), "the same" if same else "DIFFERENT"))
    print("CPU seconds: suffix ranks in numpy %.1f, dedup --substring %.2f (all of it, one thread): %.0f times" %
          (ours, dedup, ours / dedup))
    return not same


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50))
