#!/usr/bin/env python3
"""The dolma toolkit's own program `dolma tokens` and `shuffle --documents --format olmo`: the same documents, as sets.

What it proves: from the same texts and the same vocabulary, the rows of its .csv.gz and of ours cut the same documents
out of the .npy beside them, each as often. Its order, of 10,000 documents at a time, and its ids of documents are its
own. It strips texts and drops those that are then empty, so the texts given have no white space around them.
"""
import collections
import csv
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

DOLMA = sets.JUDGES + "/dolma/bin/dolma"
EOS = 50256


def texts():
    with open("all.jsonl", "wb") as f:
        subprocess.run(["zstd", "-dcq", sets.JUDGES + "/corpus/docs-en-0000.jsonl.zst"], stdout=f, check=True)
    os.mkdir("in")
    with open("all.jsonl", encoding="utf-8") as f, gzip.open("in/text.jsonl.gz", "wt", encoding="utf-8") as out:
        for i, line in zip(range(700), f):
            text = json.loads(line)["text"].strip()
            if text:
                out.write(json.dumps({"id": "d%d" % i, "text": text}) + "\n")


def vocabulary():
    """GPT-2's; its merges are strings, because dolma's tokenizers is older than lists of two."""
    with open(sets.JUDGES + "/vocab/gpt2.json", encoding="utf-8") as f:
        model = json.load(f)
    model["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in model["model"]["merges"]]
    with open("gpt2.json", "w", encoding="utf-8") as f:
        json.dump(model, f)


def documents(folder):
    """How often each document is there: its ids as bytes, which the rows beside the ids cut out."""
    found = collections.Counter()
    for path in glob.glob(folder + "/*.npy"):
        with open(path, "rb") as f, gzip.open(path[:-4] + ".csv.gz", "rt", newline="") as rows:
            ids = f.read()
            found.update(ids[2 * int(begin):2 * int(end)] for begin, end, *_ in csv.reader(rows))
    return found


def main(folder):
    os.chdir(folder)
    texts()
    vocabulary()
    subprocess.run([sets.JUDGES + "/dolma/bin/python", DOLMA, "tokens", "--documents", "in/*.jsonl.gz", "--destination", "theirs",
                    "--tokenizer.name_or_path", "gpt2.json", "--tokenizer.eos_token_id", str(EOS), "--tokenizer.pad_token_id", str(EOS),
                    "--processes", "1", "--dtype", "uint16", "--seed", "1"], check=True, capture_output=True)
    stream = sets.run("tokenize", "-q", "-t", "gpt2.json", "in/text.jsonl.gz")
    ours = sets.shards(stream, "ours", "--documents", "--format", "olmo", "--shard-size", "1M")
    want, got = documents("theirs"), documents(ours + "/documents")
    result(want == got and sum(want.values()) > 500, "dolma tokens: its %d documents are our %d, id for id" %
           (sum(want.values()), sum(got.values())))


if __name__ == "__main__":
    if not os.path.exists(DOLMA) or not shutil.which("zstd"):
        print("skip readers_dolma: no dolma (make judges)")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
    sys.exit(sets.failed)
