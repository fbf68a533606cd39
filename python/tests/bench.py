#!/usr/bin/env python3
"""Samples a second beside LitData, MosaicML streaming and datasets, on the same sequences, alternating.

    bench.py [ROUNDS]      by `make bench-python`; peers that are not installed are left out

One process; its processors' seconds count, as other work disturbs the clock. "random" takes
sequences by number in random order, "in order" all of them by
the reader's own iterator; of each the first and the last id are looked at. "batches" are those of
sluice.Batches: int64 ids, labels, positions, boundaries. Medians and maxima of all rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from common import path, run

import sluice

N_ID = 1 << 24


def make(length: int) -> dict[str, str]:
    rng = np.random.default_rng(length)
    ids = rng.integers(1, 60000, (N_ID // length, length)).astype("<u2")
    ids[:, -1] = 0
    ids.tofile(path("ids.npy"))
    cut = ["decompose", "-q", "--eos-id=0", "--token-bytes=2", path("ids.npy")]
    run(*cut, f"--buckets={length}", "-o", path("cut.tks"))
    out = {}
    for name in ("olmo", "megatron", "mds", "litdata", "parquet"):
        out[name] = path(f"{name}-{length}")
        options = ["--compress=none"] if name in ("mds", "litdata", "parquet") else []
        run("shuffle", "-q", f"--format={name}", *options, "-o", out[name], path("cut.tks"))
    out["ds"] = path(f"ds-{length}")
    labelled = run(*cut, f"--buckets={length - 1}", "--label-token")
    run("shuffle", "-q", "--format=ds", "-o", out["ds"], stdin=labelled)
    return out


def look(x: Any) -> int:
    return int(x[0]) + int(x[-1])


def readers(sets: dict[str, str], length: int) -> dict[str, tuple[Callable[[int], Any], Callable[[], Any]]]:
    out: dict[str, Any] = {}
    for name in ("olmo", "megatron", "mds", "litdata"):
        b = sluice.open(sets[name]).buckets[0]
        out["sluice " + name] = (lambda i, b=b: b[i].ids, lambda b=b: (q.ids for q in b))
    folder = os.listdir(sets["mds"])
    sub = next(f for f in folder if f[:2] in ("D_", "L_"))
    try:
        import litdata

        copy = path(f"litdata-copy-{length}")
        shutil.copytree(os.path.join(sets["litdata"], sub), copy)
        d = litdata.StreamingDataset(copy, item_loader=litdata.TokensLoader(block_size=length))
        out["LitData"] = (lambda i: d[i], lambda: iter(d))
    except ImportError as e:
        print("without LitData:", e)
    try:
        import streaming

        s = streaming.StreamingDataset(local=os.path.join(sets["mds"], sub), batch_size=1, shuffle=False)
        out["streaming"] = (lambda i: s[i]["tokens"], lambda: (x["tokens"] for x in s))
    except ImportError as e:
        print("without streaming:", e)
    try:
        import datasets

        files = os.path.join(sets["parquet"], sub, "*.parquet")
        h = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=path("hf"))
        h = h.select_columns(["input_ids"]).with_format("numpy")
        out["datasets"] = (lambda i: h[i]["input_ids"], lambda: (x["input_ids"] for x in h))
    except ImportError as e:
        print("without datasets:", e)
    return out


def main(rounds: int) -> None:
    for length in (512, 8192):
        sets = make(length)
        n = N_ID // length
        every = readers(sets, length)
        numbers = np.random.default_rng(0).permutation(n).tolist()
        rate: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, (get, walk) in every.items():
                few = numbers if "sluice" in name else numbers[:2000]
                begin = time.process_time()
                for i in few:
                    look(get(i))
                rate.setdefault(name + ", random", []).append(len(few) / (time.process_time() - begin))
                begin, k = time.process_time(), 0
                for x in walk():
                    look(x)
                    k += 1
                    if "sluice" not in name and k == 5000:
                        break
                rate.setdefault(name + ", in order", []).append(k / (time.process_time() - begin))
            for name in ("olmo", "megatron", "mds", "ds", "litdata"):
                data = sluice.open(sets[name])
                b = data.buckets[0]
                to = np.empty((64, b.n_ids), data.dtype)
                b.block(0, len(b)).max()
                begin = time.process_time()
                for i in range(0, len(b) - 63, 64):
                    np.copyto(to, b.block(i, i + 64))
                seconds = time.process_time() - begin
                rate.setdefault(f"sluice {name}, blocks, GB/s", []).append(len(b) // 64 * to.nbytes / seconds / 1e9)
                batches = sluice.Batches(data, batch_tokens=b.length * 16)
                begin = time.process_time()
                for k in range(len(batches)):
                    batches[k]
                seconds = time.process_time() - begin
                rate.setdefault(f"sluice {name}, batches", []).append(len(batches) * 16 / seconds)
        print(f"{length} tokens: median, most")
        for name, r in rate.items():
            print(f"  {name:32} {statistics.median(r):12.1f} {max(r):12.1f}")
    many = path("many")
    ids = np.ones((10000, 64), "<u2")
    ids[:, -1] = 0
    ids.tofile(path("ids.npy"))
    run("decompose", "-q", "--eos-id=0", "--token-bytes=2", "--buckets=64", "-o", path("cut.tks"), path("ids.npy"))
    run("shuffle", "-q", "--format=olmo", "--shard-sequences=1", "-o", many, path("cut.tks"))
    shards = sum(len(b._shards) for b in sluice.open(many))
    seconds: dict[str, list[float]] = {}
    for _ in range(5):
        for what, how in (("opening", lambda: sluice.open(many)), ("reading the manifest of", lambda: manifest(many))):
            begin = time.process_time()
            how()
            seconds.setdefault(what, []).append(time.process_time() - begin)
    for what, s in seconds.items():
        print(f"{what} {shards} shards: {statistics.median(s):.3f} s, at best {min(s):.3f}")


def manifest(where: str) -> None:
    """The least that tells which shards there are: the manifest's lines, and the names of files."""
    with open(os.path.join(where, "manifest.jsonl"), "rb") as f:
        for line in f:
            json.loads(line)
    for _ in os.walk(where):
        pass


if __name__ == "__main__":
    try:
        main(int((sys.argv[1:] or ["5"])[0]))
    finally:
        shutil.rmtree(common.TMP)
