#!/usr/bin/env python3
"""A shard set of --format ds or megatron against `inspect --records` of the same set, byte by byte, by struct alone.

  check_raw.py ds|megatron DIR RECORDS.json TOKENIZER WIDTH

What it proves: the ids of every shard are those of the records in order; .ds.index is the ends of all segments,
.ds.metadata three lines; .idx is the header, lengths, pointers and documents that IndexedDataset reads; no other files.
"""
import glob
import json
import os
import struct
import sys

kind, folder, records, tokenizer, width = sys.argv[1:]
width = int(width)
rows = [json.loads(line) for line in open(records)]
suffixes = {"ds": [".ds", ".ds.index", ".ds.metadata"], "megatron": [".bin", ".idx"]}[kind]
at = 0
buckets = sorted(glob.glob(folder + "/[DL]_*"), key=lambda d: int(d.split("_")[-1]) if "/D_" in d else len(d))
for bucket in buckets:
    names = sorted(os.listdir(bucket))
    shards = sorted({n.split(".")[0] for n in names})
    assert names == sorted(s + x for s in shards for x in suffixes), names
    assert shards == ["shard-%07d" % i for i in range(len(shards))], shards
    for s in shards:
        path = bucket + "/" + s
        ids = open(path + suffixes[0], "rb").read()
        n_id = len(rows[at]["tokens"])
        n, rest = divmod(len(ids), n_id * width)
        here = rows[at:at + n]
        at += n
        assert not rest and n
        assert ids == b"".join(struct.pack("<%d%s" % (n_id, "H" if width == 2 else "I"), *r["tokens"]) for r in here), path
        if kind == "ds":
            ends, end = [], 0
            for r in here:
                for g in r["segments"]:
                    end += g["length"]
                    ends.append(end)
            assert open(path + ".ds.index", "rb").read() == struct.pack("<%dQ" % len(ends), *ends), path
            text = open(path + ".ds.metadata").read().split("\n")
            assert text[:2] == ["%s|%d" % (tokenizer, width), str(n * n_id)] and len(text) == 3, text
            number, unit = text[2].split(" ")
            scale = {"T": 1, "kT": 1e3, "MT": 1e6}[unit]
            assert len(number.replace(".", "")) == 3 and abs(float(number) * scale - n * n_id) <= 0.005 * n * n_id, text
        else:
            want = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8 if width == 2 else 4, n, n + 1)
            want += struct.pack("<%di" % n, *[n_id] * n)
            want += struct.pack("<%dq" % n, *range(0, n * n_id * width, n_id * width))
            want += struct.pack("<%dq" % (n + 1), *range(n + 1))
            assert open(path + ".idx", "rb").read() == want, path
assert at == len(rows) > 0, (at, len(rows))
