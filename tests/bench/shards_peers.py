#!/usr/bin/env python3
"""What tests/bench/shards runs beside ours: other people's ways from JSONL.zst to what a trainer reads.

    shards_peers.py NAME OUT WORKERS FILE...    reads FILEs (.jsonl.zst), writes OUT; one JSON object of extra facts on stdout

Each takes the libraries, batches and processes that its own tool takes, WORKERS of them. Where a tool exists as a program or
a class it is called; a script that is no package is reproduced step by step, and named. GPT-2's vocabulary from
$GPT2 (a tokenizer.json), one EOS behind every document.
"""
import io
import json
import os
import sys

GPT2, EOS = os.environ.get("GPT2"), 50256


def lines(path):
    import zstandard
    with open(path, "rb") as f, zstandard.ZstdDecompressor().stream_reader(f) as z:
        yield from io.TextIOWrapper(z, encoding="utf-8")


def texts(path):
    for line in lines(path):
        yield json.loads(line)["text"]


def transformers_fast():
    from transformers import PreTrainedTokenizerFast
    return PreTrainedTokenizerFast(tokenizer_file=GPT2, eos_token="<|endoftext|>", model_max_length=1 << 60)


def groups(files, workers):
    return [files[i::workers] for i in range(workers)]


# ---- the tokenizer alone ----

def encode_only(job):
    import tokenizers
    enc, n, batch = tokenizers.Tokenizer.from_file(GPT2), 0, []
    for path in job:
        for text in texts(path):
            batch.append(text)
            if len(batch) == 1000:
                n += sum(len(e.ids) + 1 for e in enc.encode_batch_fast(batch))
                batch = []
    return n + sum(len(e.ids) + 1 for e in enc.encode_batch_fast(batch))


def tokenizer(out, workers, files):
    """tokenizers' quickest call, encode_batch_fast, in as many processes; writes nothing: what no peer can be faster than."""
    import multiprocessing
    with multiprocessing.Pool(workers) as pool:
        return {"ids": sum(pool.map(encode_only, groups(files, workers)))}


# ---- the dataset decomposition paper's make_dd_buckets.py, its steps with its libraries ----

POOL, LOW, HIGH = 20, 8, 13
SHARD = {k: min(1 << (20 - k), 65536) for k in range(LOW, HIGH + 1)}


def decompose(ids):
    """(k, piece) of 2^k + 1 ids while one of 2^LOW + 1 fits; beyond 2^HIGH a random k, as likely as ids are long"""
    import math
    import numpy
    odds = 2.0 ** numpy.arange(HIGH + 1 - LOW)
    odds /= odds.sum()
    while len(ids) > 1:
        k = int(math.log2(len(ids) - 1))
        if k < LOW:
            return
        if k > HIGH:
            k = int(numpy.random.choice(numpy.arange(HIGH, LOW - 1, -1), p=odds))
        yield k, ids[:(1 << k) + 1]
        ids = ids[(1 << k) + 1:]


def reference_worker(number, files, out, enc):
    import random
    import jsonlines
    import webdataset
    writer, pool, n = {}, {k: [] for k in SHARD}, [0, 0, 0]
    for k in SHARD:
        folder = os.path.join(out, str(number), str(k))
        os.makedirs(folder)
        writer[k] = webdataset.ShardWriter(os.path.join(folder, "shard-%07d.tar"), maxcount=SHARD[k], verbose=0)

    def write(k, pieces):
        for i, ids in enumerate(pieces):
            writer[k].write({"__key__": "%012d" % i, "txt": str(ids)})

    for path in files:
        for item in jsonlines.Reader(lines(path)):
            ids = enc(item["text"]).input_ids + [EOS]
            n[0] += len(ids)
            for k, piece in decompose(ids):
                n[1] += len(piece)
                pool[k].append(piece)
                if len(pool[k]) == POOL * SHARD[k]:
                    random.shuffle(pool[k])
                    write(k, pool[k][:SHARD[k]])
                    pool[k] = pool[k][SHARD[k]:]
    for k, pieces in pool.items():
        random.shuffle(pieces)
        for i in range(0, len(pieces) - SHARD[k] + 1, SHARD[k]):
            write(k, pieces[i:i + SHARD[k]])
        n[2] += len(pieces) % SHARD[k] * ((1 << k) + 1)
        writer[k].close()
    return n


def reference(out, workers, files):
    import glob
    import multiprocessing
    import random
    import shutil
    sys.path.append(os.environ["MORE"])  # webdataset, jsonlines
    import numpy  # noqa: F401
    import jsonlines  # noqa: F401
    import webdataset  # noqa: F401
    enc = transformers_fast()
    random.seed(0)
    jobs = [(i, g, out, enc) for i, g in enumerate(groups(files, workers))]
    with multiprocessing.Pool(workers) as pool:
        n = pool.starmap(reference_worker, jobs)
    for k in SHARD:  # its merge: shards of all processes into D_k, numbered anew
        os.makedirs(os.path.join(out, "D_%d" % k))
        for i, tar in enumerate(glob.glob(os.path.join(out, "[0-9]*", str(k), "*.tar"))):
            shutil.move(tar, os.path.join(out, "D_%d" % k, "shard-%07d.tar" % i))
    for i in range(workers):
        shutil.rmtree(os.path.join(out, str(i)))
    a, b, c = (sum(x) for x in zip(*n))
    return {"tails": a - b, "short": c}


# ---- Megatron-LM's tools/preprocess_data.py --append-eod --workers N ----

def megatron_init():
    global enc
    enc = transformers_fast()


def megatron_encode(line):
    ids = enc(json.loads(line)["text"]).input_ids
    if ids:
        ids.append(EOS)
    return ids


def megatron(out, workers, files):
    import itertools
    import multiprocessing
    import transformers  # noqa: F401
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
    pool = multiprocessing.Pool(workers, initializer=megatron_init)
    builder = IndexedDatasetBuilder(os.path.join(out, "x.bin"), dtype=DType.optimal_dtype(EOS + 1))
    for ids in pool.imap(megatron_encode, itertools.chain.from_iterable(map(lines, files)), 32):
        builder.add_document(ids, [len(ids)])
    builder.finalize(os.path.join(out, "x.idx"))
    pool.close()
    pool.join()
    return {}


# ---- datatrove ----

def datatrove(out, workers, files):
    sys.path.append(os.environ["MORE"])  # orjson
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer
    log = os.path.join(out, "log")
    LocalPipelineExecutor(pipeline=[
        JsonlReader(os.path.dirname(files[0]), compression="zstd", glob_pattern="*.jsonl.zst"),
        DocumentTokenizer(out, tokenizer_name_or_path=GPT2, eos_token="<|endoftext|>", batch_size=1000, seed=1),
    ], tasks=workers, workers=workers, logging_dir=log, start_method="fork").run()
    import shutil
    shutil.rmtree(log)
    return {}


# ---- dolma tokens (in a Python of its own) ----

def dolma(out, workers, files):
    import subprocess
    # Its tokenizers is older than lists of two for merges.
    with open(GPT2, encoding="utf-8") as f:
        model = json.load(f)
    model["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in model["model"]["merges"]]
    path = os.path.join(out, "gpt2.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    program = os.path.join(os.path.dirname(sys.executable), "dolma")
    subprocess.run([sys.executable, program, "tokens", "--documents", os.path.join(os.path.dirname(files[0]), "*.jsonl.zst"),
                    "--destination", os.path.join(out, "tokens"), "--tokenizer.name_or_path", path, "--tokenizer.eos_token_id", str(EOS),
                    "--tokenizer.pad_token_id", str(EOS), "--processes", str(workers), "--dtype", "uint16", "--seed", "1"],
                   check=True, stdout=subprocess.DEVNULL)
    os.unlink(path)
    return {}


# ---- MosaicML: llm-foundry's way, documents put end to end, cut every 2048, MDSWriter with zstd, merge_index ----

BLOCK = 2048


def mds_worker(number, files, out):
    import numpy
    from streaming import MDSWriter
    enc, left, batch = transformers_fast(), [], []
    with MDSWriter(columns={"tokens": "ndarray:int32"}, out=os.path.join(out, "%05d" % number), compression="zstd") as writer:
        def put(batch):
            nonlocal left
            for ids in enc(batch).input_ids if batch else ():
                left += ids
                left.append(EOS)
                while len(left) >= BLOCK:
                    writer.write({"tokens": numpy.asarray(left[:BLOCK], dtype=numpy.int32)})
                    left = left[BLOCK:]

        for path in files:
            for text in texts(path):
                batch.append(text)
                if len(batch) == 256:
                    put(batch)
                    batch = []
        put(batch)
    return len(left)


def mds(out, workers, files):
    import multiprocessing
    import transformers  # noqa: F401
    import streaming  # noqa: F401
    from streaming.base.util import merge_index
    with multiprocessing.Pool(workers) as pool:
        tails = pool.starmap(mds_worker, [(i, g, out) for i, g in enumerate(groups(files, workers))])
    merge_index(out)
    return {"tails": sum(tails)}


# ---- LitData: optimize with TokensLoader, as LitGPT's data modules call it ----

def litdata_encode(path):
    import torch
    global fast
    if "fast" not in globals():
        fast = transformers_fast()
    batch = []
    for text in texts(path):
        batch.append(text)
        if len(batch) == 256:
            for ids in fast(batch).input_ids:
                yield torch.tensor(ids + [EOS], dtype=torch.int)
            batch = []
    for ids in fast(batch).input_ids if batch else ():
        yield torch.tensor(ids + [EOS], dtype=torch.int)


def litdata(out, workers, files):
    for i, name in enumerate(("DATA_OPTIMIZER_CACHE_FOLDER", "DATA_OPTIMIZER_DATA_CACHE_FOLDER")):
        os.environ[name] = os.path.join(out, "cache-%d" % i)
    import shutil
    import transformers  # noqa: F401
    from litdata import TokensLoader, optimize
    optimize(fn=litdata_encode, inputs=files, output_dir=os.path.join(out, "set"), num_workers=workers, chunk_size=BLOCK * 8192,
             item_loader=TokensLoader(block_size=BLOCK), reorder_files=False, start_method="fork", verbose=False)
    for i in range(2):
        shutil.rmtree(os.path.join(out, "cache-%d" % i), ignore_errors=True)
    return {}


PEERS = {f.__name__: f for f in (tokenizer, reference, megatron, datatrove, dolma, mds, litdata)}

if __name__ == "__main__":
    result = os.dup(1)
    os.dup2(2, 1)  # what they print is no result
    facts = PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    os.write(result, json.dumps(facts).encode())
