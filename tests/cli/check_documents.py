#!/usr/bin/env python3
"""A set of whole documents against `inspect --records` of the stream in the set's order, by struct and csv alone.

  check_documents.py megatron|ds|olmo|mds|litdata|parquet DIR RECORDS.json WIDTH bytes|documents SIZE

What it proves: shard k has the documents that begin in [k SIZE, (k + 1) SIZE), bytes of ids or documents; every byte of its
files is that of the trainer's layout, of which a document has one entry; the set has no other files. mds and litdata are not
compressed; of parquet the judge reads the values. A document of these three is 128 bytes longer than its ids.
"""
import csv
import gzip
import json
import os
import struct
import sys

kind, folder, records, width, unit, size = sys.argv[1:]
width, size = int(width), int(size)
rows = [json.loads(line) for line in open(records)]
built = kind in ("mds", "litdata", "parquet")
masks = "mask" in json.loads(open(records).readline())
files = {"ds": ["shard-%07d.ds", "shard-%07d.ds.index", "shard-%07d.ds.metadata"], "olmo": ["shard-%07d.csv.gz", "shard-%07d.npy"],
         "megatron": ["shard-%07d.bin", "shard-%07d.idx"], "mds": ["shard.%05d.mds"], "litdata": ["chunk-0-%d.bin"],
         "parquet": ["shard-%07d.parquet"]}[kind]
shards, place = {}, 0
for r in rows:
    shards.setdefault(place // size, []).append(r)
    place += len(r["tokens"]) * width + 128 * built if unit == "bytes" else 1
assert rows and sorted(shards) == list(range(len(shards))), sorted(shards)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def table(items, head=0):
    """How mds and litdata begin: u32 n, and where n items begin and the last ends, the first `head` bytes behind them."""
    at = [4 * (len(items) + 2) + head]
    for item in items:
        at.append(at[-1] + len(item))
    return struct.pack("<%dI" % (len(at) + 1), len(items), *at)


def packed(r):
    return struct.pack("<%d%s" % (len(r["tokens"]), "H" if width == 2 else "I"), *r["tokens"])


def array(n, values):
    """An ndarray of one dimension as MDS has it: 1 << 2 | log2 of the bytes of n, n, the values."""
    code, of = (0, "B") if n < 256 else (1, "H") if n < 65536 else (2, "I")
    return struct.pack("<B" + of, 4 | code, n) + values


def sample(r):
    columns = ([array(len(r["tokens"]), bytes(r["mask"]))] if masks else []) + [array(len(r["tokens"]), packed(r))]
    return struct.pack("<%dI" % len(columns), *map(len, columns)) + b"".join(columns)


def item(r):
    ids = packed(r)
    return struct.pack("<2I", len(ids), len(r["mask"])) + ids + bytes(r["mask"]) if masks else ids


for k, here in shards.items():
    path = "%s/documents/shard-%07d" % (folder, k)
    lengths = [len(r["tokens"]) for r in here]
    n, begins = len(here), [sum(lengths[:i]) for i in range(len(here) + 1)]
    ids = b"".join(map(packed, here))
    if built:
        data = read("%s/documents/%s" % (folder, files[0] % k))
        if kind == "mds":
            config = {"column_encodings": ["ndarray:uint8"] * masks + ["ndarray:uint%d" % (8 * width)], "column_names":
                      ["loss_mask"] * masks + ["tokens"], "column_sizes": [None] * (masks + 1), "compression": None,
                      "format": "mds", "hashes": ["xxh3_64"], "size_limit": None, "version": 2}
            text = json.dumps(config, sort_keys=True).encode()
            assert data == table(list(map(sample, here)), len(text)) + text + b"".join(map(sample, here)), (kind, k)
        elif kind == "litdata":
            assert data == table(list(map(item, here))) + b"".join(map(item, here)), (kind, k)
        continue
    assert read(path + {"ds": ".ds", "megatron": ".bin", "olmo": ".npy"}[kind]) == ids, path
    if kind == "ds":
        assert read(path + ".ds.index") == struct.pack("<%dQ" % n, *begins[1:]), path
        assert read(path + ".ds.metadata").split(b"\n")[1] == str(begins[-1]).encode(), path
    elif kind == "megatron":
        want = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8 if width == 2 else 4, n, n + 1) + struct.pack("<%di" % n, *lengths)
        want += struct.pack("<%dq" % n, *[b * width for b in begins[:-1]]) + struct.pack("<%dq" % (n + 1), *range(n + 1))
        assert read(path + ".idx") == want, path
    else:
        with gzip.open(path + ".csv.gz", "rt", newline="") as f:
            got = [row[:3] for row in csv.reader(f)]
        assert got == [[str(a), str(b), r["segments"][0].get("id", "")] for a, b, r in zip(begins, begins[1:], here)], path
names = sorted(os.listdir(folder + "/documents"))
assert names == sorted([x % k for k in shards for x in files] + ["index.json"] * (kind in ("mds", "litdata"))), names
assert sorted(os.listdir(folder + "/segments")) == ["documents.tks"]
if "index.json" in names:
    index = json.load(open(folder + "/documents/index.json"))
    index = [[s["raw_data"]["basename"], s["raw_data"]["bytes"], s["samples"], None] for s in index["shards"]] if kind == "mds" \
        else [[c["filename"], c["chunk_bytes"], c["chunk_size"], c["dim"]] for c in index["chunks"]]
    for k, got in enumerate(index):
        name, n_tok = files[0] % k, sum(len(r["tokens"]) for r in shards[k])
        dim = n_tok if kind == "litdata" and not masks else None
        assert got == [name, os.path.getsize("%s/documents/%s" % (folder, name)), len(shards[k]), dim], got
    assert len(index) == len(shards)
report = json.load(open(folder + "/report.json"))
assert report["buckets"] == [] and report["documents"] == len(rows) and report["whole_documents"]["shards"] == len(shards)
assert report["whole_documents"]["shard_bytes" if unit == "bytes" else "shard_sequences"] == size
