"""Reads a schedule's file by formats/SCHEDULE.md alone, checking all that it promises; makes manifests."""
import json
import os
import struct

import xxhash

MAGIC = b"\xf5SLSCHD\n"
FIELDS = "seed cycles epochs tokens step_tokens world pass_steps total_steps first_step n_steps block_steps".split()
ROW = "length sequences per_step unit odds runs used_steps".split()
M = (1 << 64) - 1
DROPS = "remainder odds cycles balance tokens".split()


def digest(buckets):
    d = (0, 0)
    for length, sequences, manifest in buckets:
        m = xxhash.xxh3_128_intdigest(manifest)
        row = struct.pack("<6Q", d[0], d[1], length, sequences, m & (1 << 64) - 1, m >> 64)
        h = xxhash.xxh3_128_intdigest(row)
        d = (h & (1 << 64) - 1, h >> 64)
    return d


def parse(data):
    """(header dictionary with "buckets", list of (first, cycle, bucket))."""
    assert data[:8] == MAGIC
    version, header_bytes, record, n_bucket, method, flags = struct.unpack_from("<6I", data, 8)
    assert version in (1, 2) and (record, header_bytes) == (16, 256 + 128 * n_bucket)
    h = dict(zip(FIELDS, struct.unpack_from("<11Q", data, 48)))
    h.update(version=version, method=method, flags=flags, curriculum=data[32:48].rstrip(b"\0").decode())
    h["digest"], h["checksum"] = struct.unpack_from("<2Q", data, 136), struct.unpack_from("<2Q", data, 152)
    h["seal"] = struct.unpack_from("<Q", data, 168)[0]
    assert not any(data[176:248]) and (flags >> 16 & 1 or (*h["checksum"], h["seal"]) == (0, 0, 0))
    shapes = ["grow-", "shrink-"]
    assert h["curriculum"] in ["odds", "natural", "uniform"] + [s + k for s in shapes for k in ("linear", "p2", "p100")]
    head = bytearray(data[:header_bytes])
    head[248:256] = bytes(8)
    assert struct.unpack_from("<Q", data, 248)[0] == xxhash.xxh3_64_intdigest(bytes(head))
    h["buckets"] = []
    for i in range(n_bucket):
        at = 256 + 128 * i
        row = dict(zip(ROW, struct.unpack_from("<7Q", data, at)))
        row["dropped"] = dict(zip(DROPS, struct.unpack_from("<5Q", data, at + 56)))
        row["block"] = struct.unpack_from("<Q", data, at + 96)[0]
        assert not any(data[at + 104:at + 128]) and (row["block"] > 0) == (version == 2)
        h["buckets"].append(row)
    n, blocks = h["n_steps"], -(-h["n_steps"] // 65536)
    end = header_bytes + 16 * n
    assert h["block_steps"] == 65536 and len(data) == end + 8 * blocks + 16
    table = data[end:end + 8 * blocks]
    for j in range(blocks):
        block = data[header_bytes + 16 * 65536 * j:min(end, header_bytes + 16 * 65536 * (j + 1))]
        assert struct.unpack_from("<Q", table, 8 * j)[0] == xxhash.xxh3_64_intdigest(block)
    assert data[end + 8 * blocks:] == struct.pack("<Q", xxhash.xxh3_64_intdigest(table)) + b"SLSCHEND"
    return h, list(struct.iter_unpack("<QII", data[header_bytes:end]))


def mix(x):
    x = x + 0x9e3779b97f4a7c15 & M
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M
    x = (x ^ x >> 27) * 0x94d049bb133111eb & M
    return x ^ x >> 31


def feistel(x, n, f):
    """A permutation of 0 … n - 1 by the function f of a round and a number."""
    h = max(1, -(-(n - 1).bit_length() // 2))
    mask = (1 << h) - 1
    while True:
        left, right = x >> h, x & mask
        for i in range(4):
            left, right = right, left ^ (f(i, right) & mask)
        x = left << h | right
        if x < n:
            return x


def permuted(key, x, n):
    return feistel(x, n, lambda i, q: mix(mix(key + i & M) ^ q))


def sequence(h, bucket, place):
    """The number of the sequence at a place of a bucket, as a record's `first` counts places."""
    row = h["buckets"][bucket]
    n, block = row["sequences"], row["block"]
    if h["version"] == 1 or place < n:
        return place
    epoch, place = divmod(place, n)
    key = mix(mix(mix(h["seed"]) ^ epoch) ^ bucket)
    full, tail = divmod(n, block)
    begin = (mix(key ^ 1) * (full + 1) >> 64) * block
    if begin <= place < begin + tail:
        return full * block + permuted(mix(key ^ (full + 2)), place - begin, tail)
    place -= tail if place >= begin else 0
    b = permuted(key, place // block, full)
    return b * block + permuted(mix(key ^ (b + 2)), place % block, block)


def sets(where, counts):
    """Manifests under folder `where`: {length: [sequences of each shard]}. Returns what digest() takes."""
    out = []
    for length, shards in sorted(counts.items()):
        power = length & (length - 1) == 0
        folder = os.path.join(where, "D_%d" % (length.bit_length() - 1) if power else "L_%d" % length)
        os.makedirs(folder, exist_ok=True)
        text = "".join(json.dumps({"shard": "shard-%07d" % i, "num_sequences": n}) + "\n" for i, n in enumerate(shards))
        with open(os.path.join(folder, "manifest.jsonl"), "w") as f:
            f.write(text)
        if sum(shards):
            out.append((length, sum(shards), text.encode()))
    return out
