#!/usr/bin/env python3
"""tokens_mds.py PART... in an empty folder (see tokens_mds.sh): reading MDS sets."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import mds

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
CASE = os.environ.get("case_name", "tokens_mds")
FULL = os.environ.get("FULL") == "1"


def result(good, what, why=""):
    if not good:
        for line in str(why).splitlines()[:8]:
            print("  " + line[:300])
    print("%s %s: %s" % ("ok" if good else "not ok", CASE, what), flush=True)


def run(*argv):
    p = subprocess.run([BIN + argv[0], *argv[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def records(*argv):
    status, out, err = run("inspect", "-q", "--records", *argv)
    if status:
        return err
    rows = [json.loads(line) for line in out.splitlines()]
    return [(r["segments"][0]["source"], r["segments"][0]["document"], r["tokens"]) for r in rows]


def same(what, got, want):
    result(got == want, what, "got %.300s\nwant %.300s" % (got, want))


def refused(what, code, words, *argv):
    """Every program says it in one line, and leaves nothing."""
    good, why = True, ""
    for program in (["inspect", "--json"], ["decompose", "-o", "x.tks"]):
        status, _, err = run(*program, *argv)
        if status != code or not re.fullmatch(r"[a-z]+: [^\n]+\n", err) or not re.search(words, err) or os.path.exists("x.tks"):
            good, why = False, "%s\nexit status %d\n%s" % (program, status, err)
    result(good, "%s: %s" % (what, words), why)


def docs(seed, n=60, most=65535, longest=700):
    rng = random.Random(seed)
    return [[rng.randrange(most) for _ in range(rng.choice([1, 2, 255, 256, rng.randrange(1, longest)]))] for _ in range(n)]


def split(rows, n):
    k = (len(rows) + n - 1) // n
    return [rows[i:i + k] for i in range(0, len(rows), k)]


def want_of(folder, texts):
    return [(folder, i, ids) for i, ids in enumerate(texts)]


def good():
    texts = docs(1)
    for kind in mds.KINDS:
        most = 200 if kind == "uint8" else 127 if kind == "int8" else 30000 if kind == "int16" else 65535
        texts = docs(2, most=most)
        folder = "k_" + kind
        mds.write(folder, split([{"tokens": (kind, t)} for t in texts], 3), {"tokens": "ndarray:" + kind})
        for more in (["--vocab-size", "65536"], ["--vocab-size", "70000"]):
            same("%s %s" % (kind, more[1]), records(*more, folder), want_of(folder, texts))
    texts = docs(3)
    cols = {"zeta": "str", "tokens": "ndarray:uint16", "alpha": "bytes", "n": "ndarray:int64:3"}
    rows = [{"zeta": "z" * (i % 7), "tokens": t, "alpha": b"a" * (i % 300), "n": [1, 2, 3]} for i, t in enumerate(texts)]
    mds.write("cols", split(rows, 4), cols)
    same("other columns, in any order", records("cols"), want_of("cols", texts))
    mds.write("zip", split(rows, 4), cols, zipped=True)
    same("zstd", records("zip"), want_of("zip", texts))
    # streaming leaves the raw bytes beside the compressed ones, and may take these away
    shutil.copytree("zip", "both")
    with open("both/shard.00001.mds", "wb") as f:
        f.write(mds.shard(split(rows, 4)[1], cols, "zstd:3"))
    os.remove("both/shard.00001.mds.zstd")
    same("a shard that streaming has decompressed", records("both"), want_of("both", texts))
    fixed = [t[:1] * 256 for t in texts]
    mds.write("fixed", split([{"tokens": t, "a": t[:2]} for t in fixed], 3), {"tokens": "ndarray:uint16:256", "a": "ndarray:uint16"})
    same("a fixed shape", records("fixed"), want_of("fixed", fixed))
    mds.write("row", split([{"tokens": t} for t in fixed], 3), {"tokens": "ndarray:uint16:1,256"})
    same("a fixed shape of one row", records("row"), want_of("row", fixed))
    kinds = ["int32", "int64", "uint16", "uint32"]
    mds.write("any", split([{"tokens": (kinds[i // 3 % 4], t)} for i, t in enumerate(texts)], 2), {"tokens": "ndarray"})
    same("each sample has its own type", records("--vocab-size", "65536", "any"), want_of("any", texts))
    for width, kind in ((2, "H"), (4, "I"), (8, "q")):
        folder = "bytes%d" % width
        mds.write(folder, split([{"tokens": struct.pack("<%d%s" % (len(t), kind), *t)} for t in texts], 2), {"tokens": "bytes"})
        same("bytes of %d" % width, records("--token-bytes", str(width), "--vocab-size", "65536", folder), want_of(folder, texts))
    some = [[], [1, 2], [], [3], [], [60000], []]
    mds.write("some", split([{"tokens": struct.pack("<%dH" % len(t), *t)} for t in some], 2), {"tokens": "bytes"})
    same("bytes, and samples of none: left out, and numbered", records("--token-bytes", "2", "some"),
         [("some", i, t) for i, t in enumerate(some) if t])
    status, _, err = run("inspect", "--json", "--token-bytes", "2", "--vocab-size", "9", "some")
    result(status == 1 and "sample 1: 60000 " in err, "a bad id's sample is its own, behind samples of none", err)
    mds.write("named", [[{"input_ids": t, "labels": t[::-1]} for t in texts]], {"labels": "ndarray:uint16", "input_ids": "ndarray:uint16"})
    same("input_ids", records("named"), want_of("named", texts))
    same("--column", records("--column", "labels", "named"), want_of("named", [t[::-1] for t in texts]))
    mds.write("empty", [[], [{"tokens": [7]}], []], {"tokens": "ndarray:uint16"})
    same("shards without samples", records("empty"), [("empty", 0, [7])])
    mds.write("none", [], {"tokens": "ndarray:uint16"})
    same("no shards: --input-format names the format", records("--input-format", "mds", "none"), [])
    both = records("cols", "named")
    same("two folders: each with its own numbers", both, want_of("cols", texts) + want_of("named", texts))
    # merge_index: one index for several folders
    index = []
    for folder in ("cols", "zip"):
        for entry in json.load(open(folder + "/index.json"))["shards"]:
            for key in ("raw_data", "zip_data"):
                if entry[key]:
                    entry[key]["basename"] = "%s/%s" % (folder, entry[key]["basename"])
            index.append(entry)
    json.dump({"version": 2, "shards": index}, open("index.json", "w"))
    same("a merged index", records("."), want_of(".", texts + texts))
    header = json.loads(run("inspect", "--json", "cols")[1])
    same("kind, format, width, size of the vocabulary", [header[k] for k in ("kind", "format", "token_bytes", "vocab_size")],
         ["tokens", "mds", 2, 65536])
    sums = set()
    for more in (["-T", "1"], ["-T", "2"], ["-T", "7"], ["-M", "32M"], ["-M", "1G"]):
        sums.add(run("decompose", "--min", "16", "--max", "256", "--eos-id", "5", *more, "zip")[1])
    result(len(sums) == 1 and len(sums.pop()) > 10000, "the same bytes whatever -T and -M")
    for program in (["dedup"], ["pack", "--length", "1024"], ["shuffle"], ["decompose", "--plan"]):
        status, _, err = run(*program, "cols", "--eos-id", "5")
        result(status == 0, "%s reads it" % " ".join(program), err)
    result(run("inspect", "--verify", "zip")[0] == 0, "inspect --verify")


def edit(name, change, folder="cols"):
    """A copy of the set whose index `change` has changed."""
    shutil.copytree(folder, name)
    index = json.load(open(name + "/index.json"))
    change(index)
    json.dump(index, open(name + "/index.json", "w"))


def bad_index():
    texts = docs(4, n=20)
    mds.write("cols", split([{"tokens": t, "x": b"y"} for t in texts], 2), {"tokens": "ndarray:uint16", "x": "bytes"})
    mds.write("zip", split([{"tokens": t, "x": b"y"} for t in texts], 2), {"tokens": "ndarray:uint16", "x": "bytes"}, zipped=True)
    shards = lambda k, **new: lambda x: x["shards"][k].update(new)  # noqa: E731

    def one(name, words, change, folder="cols", *more, code=1):
        edit(name, change, folder)
        refused(name, code, words, *more, name)
    one("version3", "version 2", lambda x: x.update(version=3))
    one("no_shards", "not an index of MDS", lambda x: x.pop("shards") and x.update(format="mds"), "cols", "--input-format", "mds")
    one("shard_version", "shard 1: is not of format mds, version 2", shards(1, version=1))
    one("csv", "shard 1: is not of format mds", shards(1, format="csv"))
    one("no_column", "no column tokens or input_ids.*--column", shards(0, column_names=["a", "b"]))
    one("column_asked", "no column nope", lambda x: None, "cols", "--column", "nope")
    one("lists", "2 column_names, 2 column_encodings and 1 column_sizes", shards(1, column_sizes=[None]))
    one("size_negative", "column_sizes", shards(0, column_sizes=[None, -1]))
    one("size_wrong", "and column_sizes says 12", shards(0, column_sizes=[12, None]))
    one("float", "integers", shards(0, column_encodings=["ndarray:float32", "bytes"]))
    one("text", "is str", shards(0, column_encodings=["str", "bytes"]))
    one("pickle", "is pkl", shards(0, column_encodings=["pkl", "bytes"]))
    one("square", "one dimension", shards(0, column_encodings=["ndarray:uint16:2,2", "bytes"]))
    one("shape0", "one dimension", shards(0, column_encodings=["ndarray:uint16:0", "bytes"]))
    one("shape_long", "one dimension", shards(0, column_encodings=["ndarray:uint16:" + "9" * 40, "bytes"]))
    one("samples", "expected samples below 2\\^32", shards(0, samples=2**64 - 1))
    one("samples_off", "has 10 samples, and its index says 11", shards(1, samples=11))
    one("bytes_off", "its index says 17", lambda x: x["shards"][0]["raw_data"].update(bytes=17))
    one("outside", "and raw_data with basename", lambda x: x["shards"][0]["raw_data"].update(basename="../cols/shard.00000.mds"))
    one("absolute", "and raw_data with basename", lambda x: x["shards"][0]["raw_data"].update(basename="/etc/passwd"))
    one("nul", "and raw_data with basename", lambda x: x["shards"][0]["raw_data"].update(basename="a\x00b"))
    one("missing", "missing/nope.mds: cannot be opened", lambda x: x["shards"][1]["raw_data"].update(basename="nope.mds"))
    one("folder", "not a regular file", lambda x: x["shards"][1]["raw_data"].update(basename="."))
    one("hash", "raw bytes hash to [0-9a-f]{16}, and its index says 00: the file is damaged",
        lambda x: x["shards"][1]["raw_data"]["hashes"].update(xxh64="00"))
    one("hash_long", "no xxh64", lambda x: x["shards"][1]["raw_data"]["hashes"].update(xxh64="0" * 1000))
    one("hash_zip", "stored bytes hash", lambda x: x["shards"][1]["zip_data"]["hashes"].update(xxh64="00"), "zip")
    for name in ("gz", "gz:9", "br:11", "bz2", "snappy"):
        one("compressed_" + name.replace(":", "_"), "compressed with " + name + "; only zstd and uncompressed shards are read",
            lambda x: [s.update(compression=name) for s in x["shards"]], "zip")
    one("columns_swapped", "differ from those in its index", shards(1, column_names=["x", "tokens"], column_encodings=["bytes", "ndarray:uint16"]))
    edit("sha1", lambda x: [s["raw_data"].update(hashes={"sha1": "00"}) for s in x["shards"]])
    same("a hash that is not known is not checked", len(records("sha1")), 20)
    for n in (0, 1, 10, 200):
        shutil.copytree("cols", "json%d" % n)
        with open("json%d/index.json" % n, "r+b") as f:
            f.truncate(n)
        refused("index.json of %d bytes" % n, 1, "index.json", "--input-format", "mds", "json%d" % n)
    status, _, err = run("decompose", "..")
    result(status == 1 and "a folder, and not one that holds tokens" in err, "a folder of another kind", err)
    refused("--column without mds", 2, "ids.npy: this is not mds; only mds takes a column", "--column", "a", "--eos-id", "1", npy())
    refused("--token-bytes 8 without mds", 2, "only mds takes ids of 8 bytes", "--token-bytes", "8", "--eos-id", "1", npy())
    refused("--token-bytes against the column", 2, "leave --token-bytes out", "--token-bytes", "4", "cols")


def npy():
    with open("ids.npy", "wb") as f:
        f.write(struct.pack("<4H", 1, 2, 1, 3))
    return "ids.npy"


def bad_shard():
    texts = docs(5, n=12, longest=40)
    cols = {"tokens": "ndarray:uint16", "x": "bytes"}
    rows = [[{"tokens": t, "x": b"yy"} for t in texts]]
    for zipped in (False, True):
        base = "z" if zipped else "p"
        mds.write(base, rows, cols, zipped)
        edit(base + "_nohash", lambda x: [s[k].update(hashes={}) for s in x["shards"] for k in ("raw_data", "zip_data") if s[k]], base)
        path = "%s/shard.00000.mds%s" % (base + "_nohash", ".zstd" if zipped else "")
        data = open(path, "rb").read()
        # Cut anywhere: never a crash, never fewer documents in silence.
        bad = []
        # From byte 275 on a compressed shard ends within its first sample.
        for n in range(len(data)) if FULL else sorted({*range(0, len(data), 37), *range(275, 290)}):
            with open(path, "wb") as f:
                f.write(data[:n])
            status, out, err = run("inspect", "--json", base + "_nohash")
            if status != 1 or not re.fullmatch(r"inspect: %s: [^\n]+\n" % re.escape(path), err):
                bad.append((n, status, err))
        result(not bad, "%s: cut at any byte is one line" % base, bad)
        with open(path, "wb") as f:
            f.write(data + b"\0")
        status, _, err = run("inspect", "--json", base + "_nohash")
        result(status == 1 and err.count("\n") == 1, "%s: a byte too many" % base, err)
        # Flipped bits: refused, or read as as many samples of other ids; with hashes always refused.
        bad, rng = [], random.Random(9)
        for k in range(300 if FULL else 60):
            at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
            torn = data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]
            with open(path, "wb") as f:
                f.write(torn)
            status, out, err = run("inspect", "--records", base + "_nohash")
            if not (status == 0 and len(out.splitlines()) == 12 or status == 1 and re.fullmatch(r"inspect: [^\n]+\n", err)):
                bad.append((at, bit, status, err))
            with open(path.replace("_nohash", ""), "wb") as f:
                f.write(torn)
            status, out, err = run("inspect", "--json", base)
            if status != 1 or not re.fullmatch(r"inspect: [^\n]+\n", err):
                bad.append((at, bit, status, err))
        result(not bad, "%s: flipped bits" % base, bad)
        shutil.rmtree(base)
    # What a table may claim.
    raw = mds.shard(rows[0], cols)
    n = len(rows[0])

    def torn(name, words, change):
        mds.write(name, rows, cols)
        data = bytearray(raw)
        change(data)
        with open(name + "/shard.00000.mds", "wb") as f:
            f.write(data)
        index = json.load(open(name + "/index.json"))
        index["shards"][0]["raw_data"].update(hashes={}, bytes=len(data))
        json.dump(index, open(name + "/index.json", "w"))
        refused(name, 1, name + "/shard.00000.mds: .*" + words, name)
    first = struct.unpack_from("<I", raw, 4)[0]
    torn("n_large", "samples, and its index says", lambda d: struct.pack_into("<I", d, 0, 2**32 - 1))
    torn("first_in_table", "begins within its table", lambda d: struct.pack_into("<I", d, 4, 8))
    torn("descending", "sample 2 ends before it begins", lambda d: struct.pack_into("<I", d, 4 * 4, first))
    torn("end_off", "table of samples says|its index says", lambda d: struct.pack_into("<I", d, 4 * (n + 1), len(d) + 1))
    torn("config", "configuration", lambda d: d.__setitem__(slice(8 + 4 * n, 8 + 4 * n + 4), b"]]]]"))
    torn("size_large", "sample 0: the sizes of its columns", lambda d: struct.pack_into("<I", d, first, 2**32 - 1))
    torn("dims", "dimensions", lambda d: d.__setitem__(first + 8, 2 << 2 | 0))
    torn("no_dims", "dimensions", lambda d: d.__setitem__(first + 8, 0))
    torn("dim_64", "is not a list of|differ from the sample", lambda d: d.__setitem__(first + 8, 1 << 2 | 3))
    torn("length", "is not a list of", lambda d: d.__setitem__(first + 9, d[first + 9] ^ 1))
    # Values that are no ids.
    for kind, values, more, words in (
            ("int32", [1, 2, -1], ["--vocab-size", "65536"], r"sample 1: -1 at position 2 is not an id below the vocabulary size 65536"),
            ("int64", [1, 2, 2**40], ["--vocab-size", "65536"], "sample 1: %d at position 2" % 2**40),
            ("int64", [-2**63], ["--vocab-size", "4294967296"], "sample 1: -%d at position 0" % 2**63),
            ("int16", [-1], [], "sample 1: -1 at position 0"),
            ("int8", [-128], [], "sample 1: -128 at position 0"),
            ("uint16", [100], ["--vocab-size", "100"], "sample 1: 100 at position 0 is not an id below the vocabulary size 100"),
            ("uint32", [70000], ["--vocab-size", "70000"], "sample 1: 70000 at position 0")):
        name = "%s_%s" % (kind, values[-1])
        mds.write(name, [[], [{"tokens": [1]}, {"tokens": values}]], {"tokens": "ndarray:" + kind})
        refused(name, 1, re.escape(name) + "/shard.00001.mds: " + words, *more, name)
    mds.write("wide", [[{"tokens": [1]}]], {"tokens": "ndarray:uint32"})
    status, _, err = run("decompose", "wide")
    result(status == 2 and "--vocab-size N" in err, "four bytes: the vocabulary's size is asked for", err)
    result(records("wide") == [("wide", 0, [1])], "but not for a look")
    mds.write("odd", [[{"tokens": b"abc"}]], {"tokens": "bytes"})
    refused("odd bytes", 1, "is not a list of", "--token-bytes", "2", "odd")
    mds.write("nothing", [[{"tokens": b""}]], {"tokens": "bytes"})
    same("no bytes: a sample without ids", records("--token-bytes", "2", "nothing"), [])
    refused("bytes of a width that nobody said", 2, "--token-bytes", "nothing")
    mds.write("long", [[{"tokens": [1] * 3000000}]], {"tokens": "ndarray:uint16"})
    refused("a sample larger than memory", 1, "sample 0 has 3000000 ids, too many", "-M", "32M", "long")
    same("but not with more", len(records("-M", "4G", "long")[0][2]), 3000000)


for part in sys.argv[1:]:
    os.makedirs(part)
    os.chdir(part)
    {"good": good, "bad_index": bad_index, "bad_shard": bad_shard}[part]()
    os.chdir("..")
