"""MDS sets as MosaicML's writer makes them, without any package: written from the layout (formats/mds/mds.h)."""
import json
import os
import struct

KINDS = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "uint64": "Q", "int64": "q"}
CODES = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "uint32": 32, "int32": 33, "uint64": 64, "int64": 65}


def xxh64(data, seed=0):
    """XXH64 of the xxHash specification."""
    m = (1 << 64) - 1
    p1, p2, p3, p4, p5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
                          2870177450012600261)

    def rotl(x, r):
        return ((x << r) | (x >> (64 - r))) & m

    def round_(acc, lane):
        return rotl((acc + lane * p2) & m, 31) * p1 & m
    at, n = 0, len(data)
    if n >= 32:
        v = [(seed + p1 + p2) & m, (seed + p2) & m, seed, (seed - p1) & m]
        while at + 32 <= n:
            v = [round_(a, lane) for a, lane in zip(v, struct.unpack_from("<4Q", data, at))]
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & m
        for a in v:
            h = ((h ^ round_(0, a)) * p1 + p4) & m
    else:
        h = (seed + p5) & m
    h = (h + n) & m
    while at + 8 <= n:
        h = (rotl(h ^ round_(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & m
        at += 8
    if at + 4 <= n:
        h = (rotl(h ^ (struct.unpack_from("<I", data, at)[0] * p1 & m), 23) * p2 + p3) & m
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ (byte * p5 & m), 11) * p1 & m
    h = (h ^ (h >> 33)) * p2 & m
    h = (h ^ (h >> 29)) * p3 & m
    return "%016x" % (h ^ (h >> 32))


def zstd(data):
    """One frame of stored blocks that says its size (RFC 8878)."""
    out = struct.pack("<IBQ", 0xFD2FB528, 3 << 6 | 1 << 5, len(data))
    blocks = [data[i:i + 100000] for i in range(0, len(data), 100000)] or [b""]
    for i, block in enumerate(blocks):
        out += struct.pack("<I", len(block) << 3 | (i == len(blocks) - 1))[:3] + block
    return out


def encode(encoding, value):
    if encoding == "bytes":
        return value
    if encoding == "str":
        return value.encode()
    parts = encoding.split(":")
    out, kind = b"", parts[1] if len(parts) > 1 else "int32"
    if isinstance(value, tuple):  # a type of its own
        kind, value = value
    if len(parts) == 1:
        out += bytes([CODES[kind]])
    if len(parts) < 3:
        k = 0 if len(value) < 256 else 1 if len(value) < 65536 else 2
        out += bytes([1 << 2 | k]) + struct.pack("<" + "BHI"[k], len(value))
    return out + struct.pack("<%d%s" % (len(value), KINDS[kind]), *value)


def size_of(encoding):
    parts = encoding.split(":")
    if parts[0] != "ndarray" or len(parts) < 3:
        return None
    n = 1
    for d in parts[2].split(","):
        n *= int(d)
    return n * struct.calcsize(KINDS[parts[1]])


def config(columns, compression=None, hashes=("xxh64",)):
    names = list(columns)
    return {"column_encodings": [columns[n] for n in names], "column_names": names,
            "column_sizes": [size_of(columns[n]) for n in names], "compression": compression, "format": "mds",
            "hashes": list(hashes), "size_limit": None, "version": 2}


def shard(samples, columns, compression=None, hashes=("xxh64",)):
    head = json.dumps(config(columns, compression, hashes), sort_keys=True).encode()
    rows = []
    for sample in samples:
        data = [encode(columns[n], sample[n]) for n in columns]
        sizes = [len(d) for n, d in zip(columns, data) if size_of(columns[n]) is None]
        rows.append(struct.pack("<%dI" % len(sizes), *sizes) + b"".join(data))
    offsets = [8 + 4 * len(rows) + len(head)]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return struct.pack("<I", len(rows)) + struct.pack("<%dI" % len(offsets), *offsets) + head + b"".join(rows)


def info(name, data):
    return {"basename": name, "bytes": len(data), "hashes": {"xxh64": xxh64(data)}}


def write(folder, shards, columns, zipped=False):
    """shards: lists of samples. The order of columns is that of the dict."""
    os.makedirs(folder)
    index = []
    compression = "zstd:3" if zipped else None
    for i, samples in enumerate(shards):
        name = "shard.%05d.mds" % i
        raw = shard(samples, columns, compression)
        data = zstd(raw) if zipped else raw
        entry = config(columns, compression)
        entry.update(samples=len(samples), raw_data=info(name, raw), zip_data=info(name + ".zstd", data) if zipped else None)
        index.append(entry)
        with open("%s/%s" % (folder, name + (".zstd" if zipped else "")), "wb") as f:
            f.write(data)
    with open(folder + "/index.json", "w") as f:
        json.dump({"shards": index, "version": 2}, f, sort_keys=True)
