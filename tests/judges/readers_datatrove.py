#!/usr/bin/env python3
"""Reads --format ds with datatrove's own loader, and its own files with ours.

What it proves: DatatroveFolderDataset gives every sequence of every shard, id for id, and positions that begin again with
each segment of a packed one; two ranks of two workers see each sequence once; datatrove's merger takes our shards, and
our metadata are the text that it writes. Whole documents are byte for byte the files of its DocumentTokenizer. And what TokenizedFile and DocumentTokenizer have written is read as the same
documents, decomposed, written as shards, and read back by it: every token.
"""
import glob
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

os.environ.setdefault("LOGURU_LEVEL", "ERROR")
try:
    from datatrove.data import Document
    from datatrove.pipeline.tokens.merger import DocumentTokenizerMerger
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer, TokenizedFile
    from datatrove.utils.dataset import DatatroveFileDataset, DatatroveFolderDataset
except ImportError as e:
    print("skip readers_datatrove: %s" % e)
    raise SystemExit(0)


def folder_dataset(path, i, width=2):
    return DatatroveFolderDataset(path, seq_len=2**i, recursive=False, token_size=width, return_positions=True)


def positions(record):
    return [p for s in record["segments"] for p in range(s["length"])]


def check_set(folder, buckets, width):
    for name, want in sorted(buckets.items()):
        data = folder_dataset("%s/%s" % (folder, name), int(name[2:]), width)
        got = [data[i] for i in range(len(data))]
        shards = len(glob.glob("%s/%s/*.ds" % (folder, name)))
        result([g["input_ids"].tolist() for g in got] == [r["tokens"] for r in want],
               "%s of %d bytes: %d sequences of %d shards, every id" % (name, width, len(want), shards))
        result([g["positions"].tolist() for g in got] == [positions(r) for r in want],
               "%s of %d bytes: positions of %d segments" % (name, width, sum(len(r["segments"]) for r in want)))


def check_ranks(folder, buckets):
    name, want = max(buckets.items(), key=lambda b: len(b[1]))
    data = folder_dataset("%s/%s" % (folder, name), int(name[2:]))
    seen = sets.read_by_ranks(data, lambda s: tuple(s["input_ids"].tolist()))
    result(sets.once(seen, [tuple(r["tokens"]) for r in want]),
           "%s: 2 ranks of 2 workers: each of %d sequences once" % (name, len(want)))


def check_metadata(folder):
    good = True
    for path in glob.glob(folder + "/*/*.ds"):
        ours = open(path + ".metadata").read()
        first, count, _ = ours.split("\n")
        tokenizer, width = first.split("|")
        theirs = TokenizedFile(os.path.dirname(path), "theirs.ds", save_index=False, tokenizer_name_or_path=tokenizer,
                               token_size=int(width))
        theirs.close()
        theirs.write_final_metadata(int(count))
        good = good and open(os.path.dirname(path) + "/theirs.ds.metadata").read() == ours
        os.remove(os.path.dirname(path) + "/theirs.ds")
        os.remove(os.path.dirname(path) + "/theirs.ds.metadata")
    result(good, "metadata is what TokenizedFile writes")


def check_merger(folder, buckets):
    name, want = max(buckets.items(), key=lambda b: len(b[1]))
    DocumentTokenizerMerger("%s/%s" % (folder, name), "merged", save_filename="all", shuffle=False).run()
    (path,) = glob.glob("merged/*.ds")
    data = DatatroveFileDataset(path, seq_len=2 ** int(name[2:]), return_positions=True)
    got = [data[i] for i in range(len(data))]
    result([g["input_ids"].tolist() for g in got] == [r["tokens"] for r in want]
           and [g["positions"].tolist() for g in got] == [positions(r) for r in want],
           "DocumentTokenizerMerger takes %s: every id and position" % name)


def check_back(kind, docs, paths, width):
    """Their files -> our documents -> pieces -> shards -> their loader."""
    options = ["--vocab-size", "60000" if width == 2 else "100000"]
    got = sets.records(*options, *paths)
    result([r["tokens"] for r in got] == [d for d in docs if d], "%s: %d documents, every id" % (kind, len(docs)))
    places = {(r["segments"][0]["source_number"], r["segments"][0]["document"]): r["tokens"] for r in got}
    folder = "back-" + kind
    pieces = sets.run("decompose", "-q", "--min", "16", "--max", "256", "--label-token", "--tail", "drop", *options, *paths)
    sets.run("shuffle", "-q", "--format", "ds", "-o", folder, "--shard-sequences", "300", stdin=pieces)
    buckets = sets.by_bucket(folder)
    good, n = True, 0
    for r in (r for want in buckets.values() for r in want):
        (s,) = r["segments"]
        doc = places[(s["source_number"], s["document"])]
        good = good and r["tokens"] == doc[s["offset"]:s["offset"] + s["length"]]
        n += s["length"]
    result(good and n > 0, "%s: %d tokens of pieces, each from its place in its document" % (kind, n))
    good = True
    for name, want in buckets.items():
        data = folder_dataset("%s/%s" % (folder, name), int(name[2:]), width)
        good = good and [data[i]["input_ids"].tolist() for i in range(len(data))] == [r["tokens"] for r in want]
    result(good, "%s: written back, ids of %d bytes, and read by datatrove: every id" % (kind, width))


def check_inputs(found):
    rng_docs = [[b % 50000 for b in t.encode()[:3000]] for t in found[:300]] + [[7]]
    for width in (2, 4):
        f = TokenizedFile(".", "file%d.ds" % width, save_final_metadata=True, tokenizer_name_or_path="bytes", token_size=width)
        for d in rng_docs:
            f.write(d, None)
        f.close()
    check_back("TokenizedFile", rng_docs + rng_docs, ["file2.ds", "file4.ds"], 4)
    vocabulary = sets.JUDGES + "/vocab/gpt2.json"
    if not os.path.exists(vocabulary):
        print("skip readers_datatrove: DocumentTokenizer: no vocabulary (make judges)")
        return
    step = DocumentTokenizer("tokenized", vocabulary, eos_token=None, shuffle_documents=False)
    step.run([Document(text=t, id=str(i)) for i, t in enumerate(found[:200])], rank=0, world_size=1)
    (path,) = glob.glob("tokenized/*.ds")
    from tokenizers import Tokenizer
    check_documents(vocabulary, found[:200])
    theirs = Tokenizer.from_file(vocabulary)
    docs = [theirs.encode(t).ids for t in found[:200]]
    check_back("DocumentTokenizer", docs, [path], 2)


def check_documents(vocabulary, found):
    sets.write_texts("few.jsonl", found)
    step = DocumentTokenizer("whole-theirs", vocabulary, eos_token="<|endoftext|>", shuffle_documents=False)
    step.run([Document(text=t, id=str(i)) for i, t in enumerate(found)], rank=0, world_size=1)
    (path,) = glob.glob("whole-theirs/*.ds")
    sets.run("shuffle", "-q", "--documents", "--order", "keep", "--format", "ds", "-o", "whole",
             stdin=sets.run("tokenize", "-q", "-t", vocabulary, "few.jsonl"))
    result(all(open("whole/documents/shard-0000000.ds" + x, "rb").read() == open(path + x, "rb").read() for x in ("", ".index")),
           "whole documents: .ds and .ds.index of %d are DocumentTokenizer's" % len(found))


def main(scratch):
    os.chdir(scratch)
    found = sets.texts(1500000)
    sets.write_texts("c.jsonl", found)
    buckets = sets.make_set("set2", "ds", "c.jsonl", True, 200)
    check_set("set2", buckets, 2)
    check_ranks("set2", buckets)
    check_metadata("set2")
    check_merger("set2", buckets)
    check_inputs(found)
    print("skip readers_datatrove: nanotron: its release on PyPI (0.4) has no reader of .ds")


with tempfile.TemporaryDirectory() as scratch:
    main(scratch)
    os.chdir("/")
sets.finish()
