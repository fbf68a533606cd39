#!/usr/bin/env python3
"""LitData chunks as litdata's StreamingDataset reads them with TokensLoader.

What it proves: every id of every sequence of every bucket comes out, in order, from chunks that are compressed or not, of
two and of four bytes. Two ranks of two workers each, real processes with the variables that a launcher sets, see every
sequence once: with drop_last=False, or with LitData's default, drop_last=True, but for those that it drops so that
workers get equally many, which are counted.
"""
import collections
import json
import multiprocessing
import os
import shutil
import sys
import tempfile

scratch = tempfile.TemporaryDirectory()
os.environ.update(HOME=scratch.name, LITDATA_DISABLE_VERSION_CHECK="1")  # where it decompresses chunks
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

try:
    import numpy as np
    import torch
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter
except ImportError as e:
    print("skip readers_litdata: no %s" % e.name)
    sys.exit(0)


def dataset(folder, n, **more):
    return StreamingDataset(folder, item_loader=TokensLoader(block_size=n), shuffle=False, **more)


def check_set(folder, name, kind, label=0):
    want = sets.sequences(folder)
    folder = shutil.copytree(folder, folder + "_read")  # where it puts raw chunks in place of compressed ones
    good, total = True, 0
    for bucket in sets.buckets(folder):
        data = dataset("%s/%s" % (folder, bucket), (1 << int(bucket[2:])) + label)
        n = 0
        for row in data:
            ids, _ = next(want, (None, None))
            good = good and ids is not None and np.array_equal(row, ids) and row.dtype == kind
            n += 1
        good = good and n == len(data)
        total += n
    result(good and next(want, None) is None, "%s: every id of %d sequences in %d buckets" % (name, total, len(sets.buckets(folder))))


def check_documents(stream):
    """Whole documents: LitData cuts those of a shard, one after the other, into blocks; its writer makes the same bytes."""
    made = sets.shards(stream, "whole", "--documents", "--order", "keep", "--format", "litdata", "--shard-size", "200K")
    docs, n = [ids for ids, _ in sets.sequences(made)], 64
    index = json.load(open(made + "/documents/index.json"))["chunks"]
    want, at = [], 0
    for chunk in index:
        ids = [i for d in docs[at:at + chunk["chunk_size"]] for i in d]
        at += chunk["chunk_size"]
        want += [ids[i:i + n] for i in range(0, len(ids) // n * n, n)]
    got = [row.tolist() for row in dataset(made + "/documents", n)]
    result(at == len(docs) and got == want and len(index) > 3, "whole documents: %d blocks of %d shards" % (len(got), len(index)))
    theirs = made + "/items"
    os.mkdir(theirs)
    writer = BinaryWriter(theirs, chunk_bytes=1 << 30, item_loader=TokensLoader(block_size=n))
    for i, ids in enumerate(docs[:index[0]["chunk_size"]]):
        writer.add_item(i, np.array(ids, np.uint16))
    writer.done()
    ours, its = (open(f, "rb").read() for f in (made + "/documents/chunk-0-0.bin", theirs + "/chunk-0-0.bin"))
    result(ours == its, "whole documents: a shard has the bytes of LitData's writer")


def one_rank(rank, folder, n, drop_last, queue):
    os.environ.update(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", RANK=str(rank), LOCAL_RANK=str(rank), NNODES="1",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    loader = StreamingDataLoader(dataset(folder, n, drop_last=drop_last), batch_size=4, num_workers=2, drop_last=drop_last)
    queue.put([row.tobytes() for batch in loader for row in batch.numpy()])
    queue.close()
    queue.join_thread()
    torch.distributed.barrier()
    os._exit(0)


def check_ranks(folder, bucket, drop_last):
    n = 1 << int(bucket[2:])
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    ranks = [context.Process(target=one_rank, args=(r, "%s/%s" % (folder, bucket), n, drop_last, queue)) for r in range(2)]
    for r in ranks:
        r.start()
    seen, each = collections.Counter(), []
    for _ in ranks:
        rows = queue.get(timeout=90)
        each.append(len(rows))
        seen.update(rows)
    for r in ranks:
        r.join()
    want = collections.Counter(np.array(ids, np.uint16).tobytes() for ids, _ in sets.sequences(folder) if len(ids) == n)
    lost, total = sum((want - seen).values()), sum(want.values())
    # A batch for each of two workers of two ranks.
    result(not seen - want and (lost < 2 * 2 * 4 if drop_last else not lost),
           "2 ranks x 2 workers, drop_last=%s: none of %d sequences twice; %s of a rank, %d dropped by the loader"
           % (drop_last, total, " and ".join(map(str, each)), lost))


def main(folder):
    os.chdir(folder)
    stream = sets.documents()
    narrow = sets.packed(stream)
    wide = sets.widened(stream)
    check_set(sets.shards(narrow, "plain", "--format", "litdata", "--shard-sequences", "20"), "plain", np.uint16)
    check_set(sets.shards(narrow, "zip", "--format", "litdata", "--shard-sequences", "20", "--compress", "zstd:9"), "zstd", np.uint16)
    check_set(sets.shards(wide, "wide", "--format", "litdata", "--shard-sequences", "20"), "four bytes", np.uint32)
    labels = sets.packed(stream, "--label-token")
    check_set(sets.shards(labels, "labels", "--format", "litdata"), "label tokens", np.uint16, 1)
    check_documents(stream)
    check_ranks("plain", "D_6", False)
    check_ranks("plain", "D_8", True)
    sets.run("inspect", "--verify", "plain")
    result(not os.path.exists("zip_read/D_6/chunk-0-0.zstd.bin") and os.path.exists("zip_read/D_6/chunk-0-0.bin"),
           "it takes compressed chunks of a local folder away, as shuffle(1) says")


if __name__ == "__main__":
    with scratch:
        main(scratch.name)
    sys.exit(sets.failed)
