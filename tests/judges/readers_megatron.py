#!/usr/bin/env python3
"""Reads --format megatron with megatron-core's own classes, and its own files with ours.

What it proves: IndexedDataset gives every sequence of every shard, id for id, and its lengths, pointers and documents are
what its builder would have written, byte for byte; GPTDataset of the sequence's length, without an extra token, gives
each sequence as one sample; two ranks of two workers see each once. Whole documents are byte for byte the files that its
builder makes by preprocess_data.py's rules, for vocabularies on each side of its borders of width, and GPTDataset's samples of
them are the same. And what IndexedDatasetBuilder has written, in its
types, documents of several sequences too, is read as the same documents, decomposed, written back, and read by it.
"""
import glob
import importlib.util
import os
import sys
import tempfile
import types
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

warnings.simplefilter("ignore")


def import_megatron():
    """The data sets alone: megatron.core's own __init__ imports all of its models and optimizers."""
    spec = importlib.util.find_spec("megatron")
    if not spec:
        raise ImportError("no megatron-core")
    for name in ("core", "core.datasets"):
        module = types.ModuleType("megatron." + name)
        module.__path__ = [os.path.join(d, name.replace(".", "/")) for d in spec.submodule_search_locations]
        sys.modules[module.__name__] = module
    import megatron.core.parallel_state  # noqa: F401 (it and utils import each other)


try:
    import numpy
    import torch
    import_megatron()
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import DType, IndexedDataset, IndexedDatasetBuilder
    from megatron.core.datasets.utils import Split
except ImportError as e:
    print("skip readers_megatron: %s" % e)
    raise SystemExit(0)


def prefixes(folder, name):
    return [p[:-4] for p in sorted(glob.glob("%s/%s/*.bin" % (folder, name)))]


def rebuilt(prefix, data):
    """The same by its builder."""
    builder = IndexedDatasetBuilder("again.bin", dtype=data.index.dtype)
    for i in range(len(data)):
        builder.add_document(torch.from_numpy(data[i].astype(numpy.int64)), [len(data[i])])
    builder.finalize("again.idx")
    return all(open("again" + x, "rb").read() == open(prefix + x, "rb").read() for x in (".bin", ".idx"))


def check_set(folder, buckets):
    same = True
    for name, want in sorted(buckets.items()):
        data = [IndexedDataset(p) for p in prefixes(folder, name)]
        got = [d[i].tolist() for d in data for i in range(len(d))]
        result(got == [r["tokens"] for r in want], "%s: %d sequences of %d shards, every id" % (name, len(want), len(data)))
        same = same and all(rebuilt(p, d) for p, d in zip(prefixes(folder, name), data))
    result(same, "every file is what IndexedDatasetBuilder writes")


def check_ranks(folder, buckets):
    name, want = max(buckets.items(), key=lambda b: len(b[1]))
    data = torch.utils.data.ConcatDataset([IndexedDataset(p) for p in prefixes(folder, name)])
    seen = sets.read_by_ranks(data, lambda s: tuple(s.tolist()))
    result(sets.once(seen, [tuple(r["tokens"]) for r in want]),
           "%s: IndexedDataset, 2 ranks of 2 workers: each of %d sequences once" % (name, len(want)))


class Tokenizer:
    vocab_size, eod, pad, unique_identifiers = None, 256, 60000, {"class": "bytes"}


def gpt_datasets(paths, length, cut=False, reset=False):
    """cut: samples overlap by a token, as in a training on documents. reset: with --reset-position-ids, without which a
    data set computes one loss mask for all samples."""
    config = GPTDatasetConfig(random_seed=3, sequence_length=length, blend=(list(paths), None), split="1,0,0",
                              path_to_cache=os.path.abspath("cache"), tokenizer=Tokenizer(), reset_position_ids=reset,
                              reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
                              add_extra_token_to_sequence=cut, num_dataset_builder_threads=1)
    for p in paths:
        low = GPTDataset.build_low_level_dataset(p, config)
        yield GPTDataset(low, p, numpy.arange(len(low), dtype=numpy.int32), None, Split.train, config)


def check_gpt(folder, buckets):
    for name in ("D_10", "D_8"):
        want = [tuple(r["tokens"]) for r in buckets[name]]
        data = torch.utils.data.ConcatDataset(list(gpt_datasets(prefixes(folder, name), 2 ** int(name[2:]))))
        seen = sets.read_by_ranks(data, lambda s: tuple(s["tokens"].tolist()))
        result(sets.once(seen, want), "%s: GPTDataset, 2 ranks of 2 workers: each of %d sequences a sample, once"
               % (name, len(want)))


def build(prefix, docs, dtype, multimodal):
    """docs: lists of lists of ids; every other one item by item."""
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype, multimodal=multimodal)
    for i, sequences in enumerate(docs):
        if i % 2:
            builder.add_document(torch.tensor([t for s in sequences for t in s], dtype=torch.int64), list(map(len, sequences)),
                                 [0] * len(sequences))  # of 0.16 the default of modes cannot be used
        else:
            for s in sequences:
                builder.add_item(torch.tensor(s, dtype=torch.int64))
            builder.end_document()
    builder.finalize(prefix + ".idx")


def check_inputs(found):
    ids = {"uint8": 256, "int8": 128, "int16": 32768, "uint16": 60000, "int32": 60000, "int64": 60000}
    docs = {}
    for dtype, below in ids.items():
        docs[dtype] = [[[(b * 229 + i) % below for b in t.encode()[k:k + 700]] for k in range(0, min(len(t.encode()), 2800), 700)]
                       for i, t in enumerate(found[:150]) if t]
        build(dtype, docs[dtype], getattr(numpy, dtype), dtype == "int32")
        got = sets.records("--vocab-size", "60000", dtype + ".idx")
        result([r["tokens"] for r in got] == [[t for s in d for t in s] for d in docs[dtype]],
               "%s: %d documents of %d sequences, every id" % (dtype, len(got), sum(map(len, docs[dtype]))))
    merged = IndexedDatasetBuilder("merged.bin", dtype=numpy.uint16)
    merged.add_index("uint16")
    merged.add_index("uint16")
    merged.finalize("merged.idx")
    names = ["int64.idx", "merged.bin"]
    places = {(r["segments"][0]["source_number"], r["segments"][0]["document"]): r["tokens"]
              for r in sets.records("--vocab-size", "60000", *names)}
    for vocab, bits in (("60000", "u16"), ("100000", "i32")):
        folder = "back-" + bits
        pieces = sets.run("decompose", "-q", "--min", "16", "--max", "256", "--tail", "drop", "--vocab-size", vocab, *names)
        sets.run("shuffle", "-q", "--format", "megatron", "-o", folder, "--shard-sequences", "500", stdin=pieces)
        buckets = sets.by_bucket(folder)
        good, n = True, 0
        for name, want in buckets.items():
            got = [d[i].tolist() for d in map(IndexedDataset, prefixes(folder, name)) for i in range(len(d))]
            good = good and len(got) == len(want)
            for ids_, r in zip(got, want):
                (s,) = r["segments"]
                doc = places[(s["source_number"], s["document"])]
                good = good and ids_ == doc[s["offset"]:s["offset"] + s["length"]] == r["tokens"]
                n += len(ids_)
        result(good and n > 0, "merged sets decomposed and written back as %s: %d tokens, each from its place" % (bits, n))


def preprocess(prefix, docs, vocab_size):
    """What tools/preprocess_data.py --append-eod does with the ids of each document."""
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=DType.optimal_dtype(vocab_size))
    for ids in docs:
        builder.add_document(torch.tensor(ids, dtype=torch.int64), [len(ids)])
    builder.finalize(prefix + ".idx")


def check_documents(found):
    docs = [list(t.encode()) + [256] for t in found if t]
    for vocab_size in (65499, 65500, 65536, 65537):
        preprocess("theirs", docs, vocab_size)
        build("source", [[d] for d in docs], numpy.int64, False)
        sets.run("shuffle", "-q", "--replace-set", "--documents", "--order", "keep", "--format", "megatron", "--vocab-size",
                 str(vocab_size), "-o", "whole", "source.idx")
        result(all(open("whole/documents/shard-0000000" + x, "rb").read() == open("theirs" + x, "rb").read()
                   for x in (".bin", ".idx")), "documents, a vocabulary of %d ids: the files of its builder" % vocab_size)
    sets.run("shuffle", "-q", "--seed", "6", "--documents", "--format", "megatron", "--shard-size", "500K", "-o", "mixed",
             stdin=sets.run("tokenize", "-q", "-t", "bytes", "c.jsonl"))
    data = [IndexedDataset(p) for p in prefixes("mixed", "documents")]
    got = [d[i].tolist() for d in data for i in range(len(d))]
    result(len(data) > 2 and got == [r["tokens"] for r in sets.records("mixed")] and sorted(got) == sorted(docs),
           "documents in random order, %d shards: IndexedDataset gives all %d" % (len(data), len(got)))
    whole, theirs = (next(gpt_datasets([p], 512, cut=True)) for p in ("whole/documents/shard-0000000", "theirs"))
    stream = [i for d in theirs.document_index for i in docs[d]]
    good = len(whole) == len(theirs) == (len(stream) - 1) // 512 and all(
        torch.equal(whole[i]["tokens"], theirs[i]["tokens"]) and torch.equal(whole[i]["labels"], theirs[i]["labels"])
        for i in range(len(whole)))
    order = theirs.shuffle_index
    good = good and all(whole[i]["tokens"].tolist() == stream[512 * int(order[i]):512 * (int(order[i]) + 1)] for i in range(len(whole)))
    result(good, "documents: GPTDataset cuts %d samples of 512, the same of both, each from its place" % len(whole))


def main(scratch):
    os.chdir(scratch)
    found = sets.texts(1500000)
    sets.write_texts("c.jsonl", found)
    labels = sets.make_set("labels", "megatron", "c.jsonl", True, 200)
    check_set("labels", labels)
    check_ranks("labels", labels)
    check_documents(found)
    check_gpt("plain", sets.make_set("plain", "megatron", "c.jsonl", False, 200))
    check_inputs(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
        os.chdir("/")
    sets.finish()
