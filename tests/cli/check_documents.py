#!/usr/bin/env python3
"""A set of whole documents against `inspect --records` of the stream in the set's order, by struct and csv alone.

  check_documents.py megatron|ds|olmo DIR RECORDS.json WIDTH bytes|documents SIZE

What it proves: shard k has the documents that begin in [k SIZE, (k + 1) SIZE), bytes of ids or documents; every byte of its
files is that of the trainer's layout, of which a document has one entry; the set has no other files.
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
suffixes = {"ds": [".ds", ".ds.index", ".ds.metadata"], "megatron": [".bin", ".idx"], "olmo": [".csv.gz", ".npy"]}[kind]
shards, place = {}, 0
for r in rows:
    shards.setdefault(place // size, []).append(r)
    place += len(r["tokens"]) * width if unit == "bytes" else 1
assert rows and sorted(shards) == list(range(len(shards))), sorted(shards)


def read(path):
    with open(path, "rb") as f:
        return f.read()


for k, here in shards.items():
    path = "%s/documents/shard-%07d" % (folder, k)
    lengths = [len(r["tokens"]) for r in here]
    n, begins = len(here), [sum(lengths[:i]) for i in range(len(here) + 1)]
    ids = b"".join(struct.pack("<%d%s" % (len(r["tokens"]), "H" if width == 2 else "I"), *r["tokens"]) for r in here)
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
assert names == sorted("shard-%07d%s" % (k, x) for k in shards for x in suffixes), names
assert sorted(os.listdir(folder + "/segments")) == ["documents.tks"]
report = json.load(open(folder + "/report.json"))
assert report["buckets"] == [] and report["documents"] == len(rows) and report["whole_documents"]["shards"] == len(shards)
assert report["whole_documents"]["shard_bytes" if unit == "bytes" else "shard_sequences"] == size
