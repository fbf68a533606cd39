#!/usr/bin/env python3
"""Reads a shard set with the webdataset package, as OpenLM's data loader does.

What it proves: every shard of the set is read to its end, each manifest's counts are what comes out, every
sequence has 2^i + 1 ids, keys restart in each shard, and ids and order are those of `inspect --records`.
With an argument: that shard set; without: one that is made here.
"""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import webdataset

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("BIN", "build/bin") + "/" + os.environ.get("PROGRAM_PREFIX", "")
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + "webdataset_read: " + what)


def run(*argv, stdin=None):
    return subprocess.run([BIN + argv[0], *argv[1:]], input=stdin, stdout=subprocess.PIPE, check=True).stdout


MEMBERS = ("txt", "json", "json.gz")


def make(folder, member):
    corpus = os.path.join(folder, "c.jsonl")
    subprocess.run([sys.executable, os.path.join(HERE, "../cli/make_corpus.py"), corpus, "2000000", "5"], check=True)
    pieces = run("decompose", "--min", "64", "--max", "2048", "--label-token", stdin=run("tokenize", corpus))
    shards = os.path.join(folder, "set-" + member)
    run("shuffle", "-q", "--seed", "2", "--format", "wds", "-o", shards, "--shard-sequences", "50", "--member", member,
        stdin=run("pack", stdin=pieces))
    return shards


def read_shard(path):
    """(key, ids) of each sample, through the same stages as OpenLM's loader: tar files to samples, then one field
    (the trainer's --data-key) decoded."""
    data = webdataset.DataPipeline(webdataset.SimpleShardList([path]), webdataset.tarfile_to_samples())
    for sample in data:
        (field,) = [k for k in sample if k in MEMBERS]
        text = gzip.decompress(sample[field]) if field.endswith(".gz") else sample[field]
        yield sample["__key__"], json.loads(text)


def check(shards):
    want = (json.loads(line)["tokens"] for line in run("inspect", "--records", shards).splitlines())
    n_seq = n_tok = 0
    for folder in sorted(glob.glob(shards + "/D_*"), key=lambda d: int(d.rsplit("_", 1)[1])):
        i = int(folder.rsplit("_", 1)[1])
        rows = [json.loads(line) for line in open(folder + "/manifest.jsonl")]
        good = len(rows) == len(glob.glob(folder + "/*.tar"))
        for row in rows:
            samples = list(read_shard("%s/%s.tar" % (folder, row["shard"])))
            good = good and len(samples) == row["num_sequences"]
            for k, (key, ids) in enumerate(samples):
                good = good and key == "%012d" % k and len(ids) == 2**i + 1 and ids == next(want, None)
                n_seq += 1
                n_tok += len(ids)
        result(good and rows != [], "D_%d: %d shards: keys, lengths, ids, order" % (i, len(rows)))
    result(next(want, None) is None, "all %d sequences of %d tokens were read" % (n_seq, n_tok))
    report = json.load(open(shards + "/report.json"))
    result((report["sequences"], report["tokens"]) == (n_seq, n_tok), "report.json says the same")


with tempfile.TemporaryDirectory() as scratch:
    for shards in sys.argv[1:2] or [make(scratch, m) for m in MEMBERS]:
        check(shards)
sys.exit(failed)
