"""Reads a schedule's file by formats/SCHEDULE.md alone, checking all that it promises; makes manifests."""
import json
import os
import struct

import xxhash

MAGIC = b"\xf5SLSCHD\n"
FIELDS = "seed cycles epochs tokens step_tokens world pass_steps total_steps first_step n_steps block_steps".split()
ROW = "length sequences per_step unit odds runs used_steps".split()
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
    assert (version, record, header_bytes) == (1, 16, 256 + 128 * n_bucket)
    h = dict(zip(FIELDS, struct.unpack_from("<11Q", data, 48)))
    h.update(method=method, flags=flags, curriculum=data[32:48].rstrip(b"\0").decode())
    h["digest"], h["checksum"] = struct.unpack_from("<2Q", data, 136), struct.unpack_from("<2Q", data, 152)
    assert not any(data[168:248]) and (flags >> 16 & 1 or h["checksum"] == (0, 0))
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
        assert not any(data[at + 96:at + 128])
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
