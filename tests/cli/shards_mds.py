#!/usr/bin/env python3
"""shards_mds.py PART... in an empty folder (see shards_mds.sh): sets of format mds and litdata, byte by byte."""
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import mds

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
CASE = os.environ.get("case_name", "shards_mds")
COLUMNS = {"seq_lengths": "ndarray:uint32", "tokens": "ndarray:uint%d:%d"}


def result(good, what, why=""):
    if not good:
        for line in str(why).splitlines()[:8]:
            print("  " + line[:300])
    print("%s %s: %s" % ("ok" if good else "not ok", CASE, what), flush=True)


def run(*argv, stdin=None):
    p = subprocess.run([BIN + argv[0], *argv[1:]], input=stdin or b"", capture_output=True, timeout=120)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def must(*argv, stdin=None):
    status, out, err = run(*argv, stdin=stdin)
    if status:
        result(False, "a program that must work", "%s\n%s" % (argv, err))
        sys.exit(1)
    return out


def stream(width=2, *pack):
    """Packed sequences of 8 and 32 ids."""
    most = 60000 if width == 2 else 2**31
    docs = [[(7919 * i * (k + 1)) % most for k in range(1 + i % 41)] for i in range(400)]
    shutil.rmtree("docs%d" % width, ignore_errors=True)
    mds.write("docs%d" % width, [[{"tokens": d} for d in docs]], {"tokens": "ndarray:uint32"})
    pieces = must("decompose", "--min", "8", "--max", "32", "--eos-id", "5", "--vocab-size", str(most), "docs%d" % width)
    return must("pack", *pack, stdin=pieces)


def sequences(folder):
    return [json.loads(line) for line in must("inspect", "--records", folder).splitlines()]


def shuffle(folder, data, *options):
    return run("shuffle", "-q", "--seed", "4", "-o", folder, *options, stdin=data)


def one_frame(data):
    """The size that a zstd frame says; -1 where it is none, or more than one."""
    magic, descriptor = struct.unpack_from("<IB", data)
    fields = {0: 1 if descriptor & 32 else 0, 1: 2, 2: 4, 3: 8}[descriptor >> 6]
    if magic != 0xFD2FB528 or not fields or descriptor & 3:
        return -1
    at = 5 if descriptor & 32 else 6
    size = int.from_bytes(data[at:at + fields], "little") + (256 if fields == 2 else 0)
    at += fields
    last = 0
    while not last:
        head = int.from_bytes(data[at:at + 3], "little")
        last = head & 1
        at += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    return size if at + (4 if descriptor & 4 else 0) == len(data) else -1


def split(rows, n):
    return [rows[i:i + n] for i in range(0, len(rows), n)]


def check_mds(width):
    data = stream(width)
    for name in ("plain", "zip"):
        options = ["--compress", "none"] if name == "plain" else ["--compress", "zstd:5"]
        status, _, err = shuffle(name, data, "--format", "mds", "--shard-sequences", "30", *options)
        result(status == 0, "%s, ids of %d bytes: written" % (name, width), err)
    rows = sequences("plain")
    result(max(len(r["segments"]) for r in rows) > 3 and len(rows) > 100, "packed sequences are among them")
    compression = {"plain": None, "zip": "zstd:5"}
    good, merged = True, {"plain": [], "zip": []}
    for bucket in ("D_3", "D_4", "D_5"):
        n = 1 << int(bucket[2:])
        columns = dict(COLUMNS, tokens=COLUMNS["tokens"] % (8 * width, n))
        mine = [r for r in rows if len(r["tokens"]) == n]
        shards = split([{"tokens": r["tokens"], "seq_lengths": [s["length"] for s in r["segments"]]} for r in mine], 30)
        index = {k: json.load(open("%s/%s/index.json" % (k, bucket))) for k in merged}
        for i, samples in enumerate(shards):
            path = "%s/%s/shard.%05d.mds" % ("%s", bucket, i)
            raw = mds.shard(samples, columns, None, ["xxh3_64"])
            good = good and open(path % "plain", "rb").read() == raw
            stored = open(path % "zip" + ".zstd", "rb").read()
            good = good and one_frame(stored) == len(mds.shard(samples, columns, "zstd:5", ["xxh3_64"]))
            for k in merged:
                entry = index[k]["shards"][i]
                want = dict(mds.config(columns, compression[k], ["xxh3_64"]), samples=len(samples), raw_data=entry["raw_data"],
                            zip_data=entry["zip_data"])
                base = "shard.%05d.mds" % i
                size = len(raw) if k == "plain" else one_frame(stored)
                good = good and entry == want and (entry["raw_data"]["basename"], entry["raw_data"]["bytes"]) == (base, size)
                good = good and (entry["zip_data"] is None if k == "plain" else
                                 (entry["zip_data"]["basename"], entry["zip_data"]["bytes"]) == (base + ".zstd", len(stored)))
        for k in merged:
            good = good and index[k]["version"] == 2 and len(index[k]["shards"]) == len(shards)
            for entry in index[k]["shards"]:
                for key in ("raw_data", "zip_data"):
                    if entry[key]:
                        entry[key]["basename"] = bucket + "/" + entry[key]["basename"]
                merged[k].append(entry)
    result(good, "every byte of shards and indexes, ids of %d bytes" % width)
    for k in merged:
        result(json.load(open(k + "/index.json")) == {"shards": merged[k], "version": 2}, k + ": the merged index")
        result(sequences(k) == rows, k + ": inspect reads it back")
        ids = [json.loads(line)["tokens"] for line in must("inspect", "--records", "--input-format", "mds", k).splitlines()]
        result(ids == [r["tokens"] for r in rows], k + ": read as documents, its hashes checked")
    hashes = [json.loads(line) for line in open("plain/manifest.jsonl")]
    named = {h["file"]: h["xxh3_64"] for h in hashes}
    result(all(named[e["raw_data"]["basename"]] == e["raw_data"]["hashes"]["xxh3_64"] for e in merged["plain"]) and
           "index.json" in named and "D_3/index.json" in named, "its hashes are the manifest's, and the manifest has the indexes")


def check_fixed():
    """--max-segments: lengths up to the padding in an array of one shape, filled with 0."""
    data = stream(2, "--max-segments", "3")
    status, _, err = shuffle("few", data, "--format", "mds", "--max-segments", "2")
    result(status == 1 and "segments, and the array of lengths has room for 2; use a larger --max-segments" in err,
           "more segments than asked for are refused", err)
    for most in (10, 1000):
        name = "fixed%d" % most
        status, _, err = shuffle(name, data, "--format", "mds", "--max-segments", str(most), "--compress", "none", "--shard-sequences", "30")
        result(status == 0, "--max-segments %d: written" % most, err)
        rows, good, padded = sequences(name), True, 0
        for bucket in ("D_3", "D_4", "D_5"):
            n = 1 << int(bucket[2:])
            width = min(n, most)
            columns = {"seq_lengths": "ndarray:uint32:%d" % width, "tokens": "ndarray:uint16:%d" % n}
            samples = []
            for r in (r for r in rows if len(r["tokens"]) == n):
                lengths = [s["length"] for s in r["segments"] if not s.get("padding")]
                padded += sum(lengths) < n
                samples.append({"tokens": r["tokens"], "seq_lengths": lengths + [0] * (width - len(lengths))})
            for k, part in enumerate(split(samples, 30)):
                good = good and open("%s/%s/shard.%05d.mds" % (name, bucket, k), "rb").read() == mds.shard(part, columns, None, ["xxh3_64"])
        result(good and padded > 3, "  every byte of its shards; %d sequences have padding" % padded)
        must("inspect", "--verify", name)
        ids = [json.loads(line)["tokens"] for line in must("inspect", "--records", "--input-format", "mds", name).splitlines()]
        result(ids == [r["tokens"] for r in rows], "  read as documents")
    shuffle("usual", data, "--format", "mds", "--compress", "none", "--shard-sequences", "30")
    result(sequences("usual") == sequences("fixed10"), "  the same sequences as without it")
    status, _, err = shuffle("other", data, "--format", "litdata", "--max-segments", "12")
    result(status == 2 and "mds has" in err, "another format has no such array", err)


def check_litdata(width):
    data = stream(width)
    for name, options in (("plain", []), ("zip", ["--compress", "zstd:5"])):
        status, _, err = shuffle(name, data, "--format", "litdata", "--shard-sequences", "30", *options)
        result(status == 0, "%s, ids of %d bytes: written" % (name, width), err)
    rows = [r["tokens"] for r in sequences("plain")]
    result(sequences("zip") == sequences("plain") and len(rows) > 100, "inspect reads both back")
    good = True
    for bucket in ("D_3", "D_4", "D_5"):
        n = 1 << int(bucket[2:])
        shards = split([r for r in rows if len(r) == n], 30)
        for name in ("plain", "zip"):
            suffix = ".zstd.bin" if name == "zip" else ".bin"
            raw = [struct.pack("<%dI" % (len(s) + 2), len(s), *[4 * (len(s) + 2) + i * n * width for i in range(len(s) + 1)]) +
                   b"".join(struct.pack("<%d%s" % (n, "H" if width == 2 else "I"), *r) for r in s) for s in shards]
            files = [open("%s/%s/chunk-0-%d%s" % (name, bucket, i, suffix), "rb").read() for i in range(len(shards))]
            good = good and (files == raw if name == "plain" else [one_frame(f) for f in files] == [len(r) for r in raw])
            want = {"chunks": [{"chunk_bytes": len(r), "chunk_size": len(s), "dim": len(s) * n, "filename": "chunk-0-%d%s" % (i, suffix)}
                               for i, (r, s) in enumerate(zip(raw, shards))],
                    "config": {"chunk_bytes": None, "chunk_size": 30, "compression": "zstd" if name == "zip" else None,
                               "data_format": ["no_header_numpy:%d" % (5 if width == 2 else 6)],
                               "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]', "encryption": None,
                               "item_loader": "TokensLoader"}}
            good = good and json.load(open("%s/%s/index.json" % (name, bucket))) == want
    result(good, "every byte of chunks and indexes, ids of %d bytes" % width)
    status, _, err = run("shuffle", "-o", "noted", "--format", "litdata", stdin=data)
    result(status == 0 and "cannot say where the documents of a packed sequence begin" in err, "boundaries that are lost are said", err)


def check_both():
    data = stream()
    for form, least in (("mds", "shard.00000.mds"), ("litdata", "chunk-0-0.bin")):
        sums = set()
        for i, more in enumerate((["-T", "1"], ["-T", "2"], ["-T", "7"], ["-M", "32M"])):
            for compress in ("none", "zstd:9"):
                folder = "%s_%d_%s" % (form, i, compress)
                status, _, err = shuffle(folder, data, "--format", form, "--shard-sequences", "40", "--compress", compress, *more)
                if status:
                    result(False, folder, err)
                h = hashlib.sha256()
                for d, _, files in sorted(os.walk(folder)):
                    for f in sorted(files):
                        if f not in ("report.json", "manifest.jsonl") and not f.endswith(".tks"):
                            h.update((d[len(folder):] + f).encode() + open(d + "/" + f, "rb").read())
                sums.add((compress, h.hexdigest()))
        result(len(sums) == 2, "%s: the same bytes whatever -T and -M" % form, sums)
        # The 4 GiB of the offsets are met before anything is written.
        status, _, err = shuffle("big_" + form, data, "--format", form, "--shard-sequences", "1000Mi")
        found = re.fullmatch(r"shuffle: [^\n]*4 GiB[^\n]*at most (\d+) fit[^\n]*\n", err)
        result(status == 2 and found and not os.path.exists("big_" + form), "%s: a shard of more than 4 GiB is refused" % form, err)
        # Label tokens, and lengths that are no powers of two.
        pieces = must("decompose", "--buckets", "10,20", "--label-token", "--tail", "drop", "--eos-id", "5", "--vocab-size", "65536", "docs2")
        status, _, err = shuffle("odd_" + form, pieces, "--format", form, "--compress", "none")
        result(status == 0 and {len(r["tokens"]) for r in sequences("odd_" + form)} == {11, 21}, form + ": 10 + 1 and 20 + 1 ids", err)
        # Damage is one line.
        path = "odd_%s/L_10/%s" % (form, least)
        good = open(path, "rb").read()
        bad = []
        for n in list(range(0, len(good), max(1, len(good) // 25))) + [len(good) + 1]:
            with open(path, "wb") as f:
                f.write(good[:n] if n <= len(good) else good + b"\0")
            status, _, err = run("inspect", "--records", "odd_" + form)
            if status != 1 or not re.fullmatch(r"inspect: [^\n]*L_10/%s: [^\n]+\n" % re.escape(least), err):
                bad.append((n, status, err))
        result(not bad, form + ": a shard that was cut or added to is one line", bad)
        # --replace-set takes away the other format's files, the merged index too, and nothing else.
        other = "litdata" if form == "mds" else "mds"
        open("odd_%s/L_10/mine.txt" % form, "w").close()
        status, _, err = shuffle("odd_" + form, data, "--format", other, "--replace-set", "--compress", "none", "--shard-sequences", "40")
        left = sorted(os.listdir("odd_%s/L_10" % form)) if os.path.exists("odd_%s/L_10" % form) else []
        result(status == 0 and left == ["mine.txt"] and os.path.exists("odd_%s/index.json" % form) == (other == "mds"),
               "%s: --replace-set replaces it by %s" % (form, other), "%s %s" % (left, err))
    for value in ("zstd:0", "zstd:20", "zstd:x", "gzip", ""):
        status, _, err = shuffle("x", data, "--format", "mds", "--compress", value)
        result(status == 2 and err.count("\n") == 1, "--compress '%s' is refused" % value, err)
    os.makedirs("theirs")
    with open("theirs/index.json", "w") as f:
        f.write("{}")
    status, _, err = shuffle("theirs", data, "--format", "litdata", "--replace-set", "--shard-sequences", "40")
    result(status == 0 and open("theirs/index.json").read() == "{}", "another's index.json stays where no set of ours was", err)


for part in sys.argv[1:]:
    os.makedirs(part)
    os.chdir(part)
    {"mds2": lambda: check_mds(2), "mds4": lambda: check_mds(4), "litdata2": lambda: check_litdata(2),
     "litdata4": lambda: check_litdata(4), "both": check_both, "fixed": check_fixed}[part]()
    os.chdir("..")
