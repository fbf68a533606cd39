#!/usr/bin/env python3
"""MDS sets as mosaicml-streaming reads and writes them.

What it proves: StreamingDataset reads every sequence of every bucket, compressed or not, of two and of four bytes, and
of the merged index, with its hashes checked; ids and lengths of segments are those of `inspect --records`. Two ranks of
two DataLoader workers each, real processes, see every sequence once, but for those that the loader repeats so that
ranks get equally many, which are counted. An uncompressed set is, byte for byte, what MDSWriter makes of the same
samples. With --max-segments torch's own collator makes batches, which say where padding begins. What MDSWriter writes is read as the same documents, and our whole documents are its bytes, decomposed, written back and read again.
"""
import collections
import glob
import json
import multiprocessing
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

try:
    import numpy as np
    import torch
    from streaming import MDSWriter, StreamingDataset
    sets.streaming()
except ImportError as e:
    print("skip readers_mds: no %s" % e.name)
    sys.exit(0)


def dataset(folder, **more):
    return StreamingDataset(local=folder, batch_size=4, shuffle=False, validate_hash="xxh3_64", **more)


def same(data, want):
    """Every sample of the data set is the next one that sluice has."""
    if len(data) == 0:
        return False
    for i in range(len(data)):
        ids, lengths = next(want, (None, None))
        sample = data[i]
        if ids is None or not np.array_equal(sample["tokens"], ids) or not np.array_equal(sample["seq_lengths"], lengths):
            return False
    return True


def check_set(folder, name, kind):
    want = sets.sequences(folder)
    n = 0
    good = True
    for bucket in sets.buckets(folder):
        data = dataset("%s/%s" % (folder, bucket))
        good = good and same(data, want) and data[0]["tokens"].dtype == kind
        n += len(data)
    result(good and next(want, None) is None, "%s: every id of %d sequences in %d buckets" % (name, n, len(sets.buckets(folder))))
    merged = dataset(folder)
    result(len(merged) == n and same(merged, sets.sequences(folder)), name + ": the merged index")


def tokens_alone(rows):
    """As llm-foundry does: lengths of segments are not equally many."""
    return torch.from_numpy(np.stack([row["tokens"] for row in rows]).astype(np.int64))


def one_rank(rank, folder, queue, port):
    os.environ.update(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", RANK=str(rank), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    data = dataset(folder)
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, drop_last=False, collate_fn=tokens_alone)
    queue.put([row.tobytes() for batch in loader for row in batch.numpy()])
    queue.close()
    queue.join_thread()
    os._exit(0)  # its resource tracker would take away what the other rank still reads


def check_ranks(folder, bucket):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    ranks = [context.Process(target=one_rank, args=(r, "%s/%s" % (folder, bucket), queue, 29517)) for r in range(2)]
    for r in ranks:
        r.start()
    seen = collections.Counter()
    each = []
    for r in ranks:
        rows = queue.get(timeout=60)
        each.append(len(rows))
        seen.update(rows)
    for r in ranks:
        r.join()
    n = int(bucket[2:])
    want = collections.Counter(np.array(ids, np.int64).tobytes() for ids, _ in sets.sequences(folder) if len(ids) == 1 << n)
    again = seen - want
    total = sum(want.values())
    # Each worker of each rank gets equally many batches, the last ones filled with samples that come again.
    result(not want - seen and sum(again.values()) == -total % 2,
           "2 ranks x 2 workers: each of %d sequences once; %s of a rank, %d repeated by the loader"
           % (total, " and ".join(map(str, each)), sum(again.values())))


def check_collated(stream, folder):
    """A plain DataLoader: no collator of ours."""
    packed = sets.run("pack", "-q", "--max-segments", "6", stdin=sets.run("decompose", "-q", "--min", "64", "--max", "1024", stdin=stream))
    sets.shards(packed, folder, "--format", "mds", "--max-segments", "6")
    want, good, n, padded = sets.sequences(folder), True, 0, 0
    for bucket in sets.buckets(folder):
        loader = torch.utils.data.DataLoader(dataset("%s/%s" % (folder, bucket)), batch_size=4)
        for batch in loader:
            good = good and batch["seq_lengths"].shape == (len(batch["tokens"]), 6)
            for ids, lengths in zip(batch["tokens"].numpy(), batch["seq_lengths"].numpy()):
                all_ids, segments = next(want)
                begins = int(lengths.sum())
                good = good and np.array_equal(ids, all_ids) and np.array_equal(lengths[lengths > 0], segments[:(lengths > 0).sum()])
                good = good and len(segments) - (lengths > 0).sum() == (begins < len(ids))
                padded += begins < len(ids)
                n += 1
    result(good and padded > 0 and next(want, None) is None,
           "--max-segments: torch's default collator batches %d sequences; %d have padding, after the sum of their lengths" % (n, padded))


def check_bytes(stream, folder):
    """MDSWriter, given our samples, writes our bytes."""
    sets.shards(stream, folder, "--format", "mds", "--compress", "none", "--shard-sequences", "2000")
    good = True
    for bucket in sets.buckets(folder):
        data = dataset("%s/%s" % (folder, bucket))
        out = folder + "_" + bucket
        with MDSWriter(out=out, columns={"tokens": "ndarray:uint16:%d" % (1 << int(bucket[2:])), "seq_lengths": "ndarray:uint32"},
                       hashes=["xxh3_64"], size_limit=None) as writer:
            for i in range(len(data)):
                writer.write({k: v.copy() for k, v in data[i].items()})
        for name in sorted(set(os.listdir(out) + os.listdir("%s/%s" % (folder, bucket)))):
            a, b = ("%s/%s" % (d, name) for d in (out, "%s/%s" % (folder, bucket)))
            good = good and open(a, "rb").read() == open(b, "rb").read()
    result(good, "MDSWriter writes the same bytes, shards and index")


def check_documents(stream, docs):
    """Whole documents: what MDSWriter writes of them, and what StreamingDataset reads."""
    made = sets.shards(stream, "whole", "--documents", "--order", "keep", "--format", "mds", "--compress", "none")
    with MDSWriter(out="theirs", columns={"tokens": "ndarray:uint16"}, hashes=["xxh3_64"], size_limit=None) as writer:
        for ids in docs:
            writer.write({"tokens": np.array(ids, np.uint16)})
    names = sorted(os.listdir("theirs"))
    result(names == sorted(os.listdir(made + "/documents")) and
           all(open("%s/%s" % ("theirs", n), "rb").read() == open("%s/documents/%s" % (made, n), "rb").read() for n in names),
           "whole documents: MDSWriter's bytes, shard and index, of %d" % len(docs))
    made = sets.shards(stream, "whole-zip", "--documents", "--order", "keep", "--format", "mds", "--shard-size", "200K")
    for folder in (made + "/documents", made):
        data = dataset(folder)
        result(len(data) == len(docs) and all(np.array_equal(data[i]["tokens"], ids) for i, ids in enumerate(docs)) and
               len(glob.glob(made + "/documents/*.zstd")) > 3, "whole documents, zstd, %s: every id" % folder)


def check_input(folder, docs, compression, encoding, columns, vocab_size=32768):
    """What MDSWriter writes comes back, and goes through decompose and shuffle to StreamingDataset."""
    docs = [[i + vocab_size - 32768 for i in ids] for ids in docs]
    kind = encoding.split(":")[1] if ":" in encoding else "int64"
    columns = dict(columns, tokens=encoding)
    with MDSWriter(out=folder, columns=columns, compression=compression, hashes=["sha1", "xxh64"], size_limit=1 << 16) as writer:
        for i, ids in enumerate(docs):
            array = np.array(ids, kind)
            row = {"tokens": array.tobytes() if encoding == "bytes" else array, "name": "d%d" % i, "mask": np.ones(i % 5 + 1, np.uint8)}
            writer.write({c: row[c] for c in columns})
    options = ["--vocab-size", str(vocab_size)] + (["--token-bytes", "8"] if encoding == "bytes" else [])
    got = [ids for ids, _ in sets.sequences(folder, *options)]
    shard_count = len(json.load(open(folder + "/index.json"))["shards"])
    result(got == docs and shard_count > 3, "MDSWriter's %s, %s: %d documents in %d shards" % (encoding, compression, len(docs), shard_count))
    pieces = sets.run("decompose", "-q", "--min", "64", "--max", "2048", "--tail", "drop", *options, folder)
    back = sets.shards(pieces, folder + "_back", "--format", "mds", "--shard-sequences", "20")
    good, n = True, 0
    rows = (json.loads(line) for line in sets.run("inspect", "-q", "--records", back).splitlines())
    for bucket in sets.buckets(back):
        data = dataset("%s/%s" % (back, bucket))
        for i in range(len(data)):
            (s,) = next(rows)["segments"]
            want = docs[s["document"]][s["offset"]:s["offset"] + s["length"]]
            good = good and np.array_equal(data[i]["tokens"], want)
            good = good and data[i]["tokens"].dtype == (np.uint16 if vocab_size <= 65536 else np.uint32)
            n += s["length"]
    result(good, "and after decompose and shuffle StreamingDataset has the %d ids at their places" % n)


def main(folder):
    os.chdir(folder)
    stream = sets.documents()
    narrow = sets.packed(stream)
    check_set(sets.shards(narrow, "zip", "--format", "mds", "--shard-sequences", "30"), "zstd", np.uint16)
    check_set(sets.shards(narrow, "plain", "--format", "mds", "--shard-sequences", "30", "--compress", "none"), "plain", np.uint16)
    check_set(sets.shards(sets.packed(stream, "--label-token"), "labels", "--format", "mds", "--compress", "zstd:19"), "label tokens", np.uint16)
    sets.run("inspect", "--verify", "zip")
    result(glob.glob("zip/*/*.mds") != [], "the raw shards that StreamingDataset leaves do no harm")
    check_ranks("plain", "D_6")
    check_ranks("zip", "D_11")
    check_bytes(narrow, "one")
    check_collated(stream, "fixed")
    docs = [json.loads(line)["tokens"] for line in sets.run("inspect", "--records", stdin=stream).splitlines()]
    check_documents(stream, docs)
    check_input("in_zip", docs, "zstd:7", "ndarray:int32", {"name": "str", "mask": "ndarray:uint8"}, 100000)
    check_input("in_plain", docs, None, "ndarray:uint16", {"name": "str"})
    check_input("in_bytes", docs, None, "bytes", {})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
    sys.exit(sets.failed)
