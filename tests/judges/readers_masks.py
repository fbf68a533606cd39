#!/usr/bin/env python3
"""Masks in every shard format, as the packages that people train with read them.

What it proves: dialogues with spans are cut, packed by each method, balanced, shuffled in one process and in stages, and
written in every format that carries masks. Then the real reader of each format gives each token that its text says is
trained on exactly once, by (document, offset), and no other; and all ids:
  - parquet: datasets and TRL's collator (padding_free): the labels that are not -100;
  - olmo: OLMo-core's NumpyFSLDataset with label_mask_paths, and NumpyPackedFSLDataset on whole documents;
  - mds, litdata, wds: the packages' own data sets;
  - megatron-sft: by pyarrow, as Megatron-Bridge's GPTSFTPackedParquetDataset makes a batch of a row (its package needs a
    GPU): labels are the tokens behind, each segment for itself, with the mask as it is stored.
Parquet and Megatron-Bridge have no label at the first token of a segment. What is expected comes from the text and
from the segments of the set, as tokstream.py reads them.

    readers_masks.py [DIALOGUES [FORMAT...]]      200 dialogues; JUDGES_FULL=1: 10^5 of a few turns
"""
import collections
import glob
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../props"))
sys.path.insert(0, os.path.join(HERE, "lib"))
import check_masks  # noqa: E402
import readers  # noqa: E402
import sets  # noqa: E402
import tokstream  # noqa: E402
from sets import result  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["SLUICE_CACHE_DIR"] = ""
EOS = readers.EOS


def run(*argv):
    p = subprocess.run([os.path.join(BIN, argv[0]), "-q", *map(str, argv[1:])], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode:
        raise RuntimeError("%s: %s" % (" ".join(map(str, argv)), p.stderr.decode()[-300:]))
    return p.stdout


# ---- sets ----

def ways(n_part):
    """Streams: their names, and what makes them."""
    yield "decompose", lambda: run("pack", "--long", "error", "--mix-domains", "p.tks", "-o", "k.tks")
    for method in ("bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "concat"):
        yield method, lambda: run("pack", "--method", method, "--length", 512, "--long", "split", "a.tks", "-o", "k.tks")
    yield "multi", lambda: run("pack", "--method", "multi", "--buckets", "64,512", "--long", "split", "a.tks", "-o", "k.tks")
    yield "--balance", lambda: run("pack", "--length", 512, "--long", "split", "--balance", 4, "a.tks", "-o", "k.tks")
    for n in n_part:
        yield "stages, N = %d" % n, lambda: packed_in_stages(n)


def packed_in_stages(n):
    options = ["--work", "pack.work", "--length", 512, "--long", "split"]
    os.mkdir("pack.work")
    for stage in ("count", "plan", "scatter", "gather"):
        for i in range(1 if stage == "plan" else n):
            part = [] if stage == "plan" else ["--part", "%d/%d" % (i, n)]
            ranges = ["--ranges", n] if stage == "scatter" else []
            more = ["-f", "-o", "k%d.tks" % i] if stage == "gather" else [] if stage == "plan" else ["part%d-%d.tks" % (n, i)]
            run("pack", "--stage", stage, *options, *part, *ranges, *more)
    shutil.rmtree("pack.work")
    return n


def make_set(name, n, *options):
    """k.tks, or the n streams k0.tks … in stages."""
    options = ["--format", name, "--shard-sequences", SHARD, *(["--accept-mismatch"] if name == "wds" else []), *options]
    shutil.rmtree("set", ignore_errors=True)
    if not n:
        run("shuffle", *options, "-o", "set", "k.tks")
        return
    os.mkdir("work")
    options += ["--work", "work"]
    for i in range(n):
        run("shuffle", "--stage", "scatter", *options, "--part", "%d/%d" % (i, n), "--ranges", n, "k%d.tks" % i)
    for i in range(n):
        run("shuffle", "--stage", "gather", *options, "--part", "%d/%d" % (i, n), "-o", "set")
    run("shuffle", "--stage", "finish", *options, "-o", "set")
    shutil.rmtree("work")


# ---- what the text says ----

class Corpus:
    """The documents that have something to train on, one behind the other: their ids, which of them are trained on, and
    where each document begins."""

    def __init__(self, path, n, lengths):
        ids, trained, self.begin, at = [], [], {}, 0
        for document, text, offsets in check_masks.dialogues(path, n, random.Random(5), lengths=lengths):
            if not offsets:
                continue
            ids.append(np.frombuffer(text.encode(), np.uint8).astype(np.uint16))
            ids.append(np.array([EOS], np.uint16))
            bits = np.zeros(len(ids[-2]) + 1, bool)
            bits[list(offsets)] = True
            trained.append(bits)
            self.begin[(path.encode(), document)] = at
            at += len(bits)
        self.ids, self.trained = np.concatenate(ids), np.concatenate(trained)


def segments(path, corpus):
    """Of a bucket: which token of the corpus each token is, -1 for padding; the first tokens of its segments; the number of
    its sequences."""
    begin, length, n_seq = [], [], 0
    with open(path, "rb") as f:
        reader = tokstream.Reader(f, hashes=False)
        for q in reader:
            n_seq += 1
            for s in q.segments:
                padding = s.source == tokstream.PADDING
                begin.append(-1 if padding else corpus.begin[(reader.sources[s.source], s.document)] + s.offset)
                length.append(s.length)
    begin, length = np.array(begin), np.array(length)
    first = np.cumsum(length) - length
    token = np.repeat(begin - first, length) + np.arange(length.sum())
    token[np.repeat(begin < 0, length)] = -1
    return token, begin[begin >= 0], n_seq


def compare(name, way, corpus):
    n_tok = len(corpus.ids)
    seen, trained, wrong, n_seq, want = np.zeros(n_tok, int), np.zeros(n_tok, int), 0, 0, corpus.trained.copy()
    for bucket in json.load(open("set/report.json"))["buckets"]:
        token, first, n = segments("set/segments/%s.tks" % bucket["name"], corpus)
        ids, bits = map(np.concatenate, zip(*readers.READERS[name](os.path.abspath("set/" + bucket["name"]), bucket["length"])))
        if len(token) != len(ids) or len(token) != len(bits):
            return result(False, "%s, %s: %s has %d tokens, its reader gives %d" % (name, way, bucket["name"], len(token),
                                                                                  len(ids)))
        n_seq, real, bits = n_seq + n, token >= 0, bits.astype(bool)
        wrong += np.count_nonzero(ids[real] != corpus.ids[token[real]]) + np.count_nonzero(bits[~real])
        seen += np.bincount(token[real], minlength=n_tok)
        trained += np.bincount(token[bits & real], minlength=n_tok)
        if name in readers.NO_FIRST:
            want[first] = False
    good = not wrong and (seen == 1).all() and (trained == want).all() and want.any()
    return result(good, "%s, %s: %d of %d tokens are trained on, in %d sequences%s" % (
        name, way, trained.sum(), n_tok, n_seq, "" if good else
        "; %d tokens are wrong, %d are not there once, %d are trained on wrongly" % (
            wrong, np.count_nonzero(seen != 1), np.count_nonzero(trained != want))))


def packed_documents(corpus):
    """OLMo-core packs whole documents itself."""
    from olmo_core.data import NumpyPackedFSLDatasetConfig, TokenizerConfig
    shutil.rmtree("set", ignore_errors=True)
    run("shuffle", "--documents", "--format", "olmo", "-o", "set", "a.tks")
    begins = sorted(corpus.begin.values())
    texts = collections.Counter((corpus.ids[a:b].tobytes(), corpus.trained[a:b].tobytes())
                                for a, b in itertools.pairwise([*begins, len(corpus.ids)]))
    longest, n_doc = max(len(ids) // 2 for ids, _ in texts), texts.total()
    data = NumpyPackedFSLDatasetConfig(
        tokenizer=TokenizerConfig(vocab_size=257, eos_token_id=EOS, pad_token_id=0),
        paths=sorted(os.path.abspath(p) for p in glob.glob("set/documents/*.npy")), dtype="uint16",
        label_mask_paths=sorted(os.path.abspath(p) for p in glob.glob("set/documents/*.label_mask")),
        sequence_length=1 << (longest - 1).bit_length(), work_dir=os.path.abspath("olmo.work")).build()
    data.prepare()
    for i in range(len(data)):
        row, at = data[i], 0
        ids, mask = row["input_ids"].numpy().astype(np.uint16), row["label_mask"].numpy()
        for end in np.flatnonzero(ids == EOS) + 1:
            texts[(ids[at:end].tobytes(), mask[at:end].tobytes())] -= 1
            at = end
    result(not any(texts.values()) and len(texts) > 10, "olmo, NumpyPackedFSLDataset: %d documents with their masks" % n_doc)


def main():
    full = os.environ.get("JUDGES_FULL") == "1"
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100000 if full else 200
    global SHARD
    SHARD = 50 if n < 5000 else n // 50
    names = sys.argv[2:] or list(readers.READERS)
    corpus = Corpus("a.jsonl", n, (1, 5, 40, 300) if n < 5000 else (1, 4, 12, 40))
    spans = ["tokenize", "-t", "bytes", "--spans-field", "spans", "--domain-field", "domain", "a.jsonl"]
    run(*spans, "-o", "a.tks")
    run("decompose", "--min", 32, "--max", 512, "a.tks", "-o", "p.tks")
    for parts in (1, 3, 8):
        for i in range(parts):
            run(*spans, "--part", "%d/%d" % (i, parts), "-o", "part%d-%d.tks" % (parts, i))
    for way, make in ways((1, 3, 8)):
        stages = make() or 0
        stages = stages if isinstance(stages, int) else 0
        for name in names:
            try:
                make_set(name, stages)
                compare(name, way, corpus)
            except (ImportError, RuntimeError) as e:
                if isinstance(e, RuntimeError) and "not built in" not in str(e):
                    raise
                print("skip readers_masks: %s: %s" % (name, e))
                names = [x for x in names if x != name]
    if "olmo" in names:
        packed_documents(corpus)


with tempfile.TemporaryDirectory(prefix="sluice-masks-", dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
    os.chdir(scratch)
    main()
sys.exit(sets.failed)
