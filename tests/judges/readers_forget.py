#!/usr/bin/env python3
"""What `forget` took out of sets, as the packages that people train with read them.

What it proves: documents are taken out of a set of each format that forget takes, and others of the new set. The real
reader of the format gives, of all three sets, the same ids and says the same of what is trained on, at each token of the
documents that stay; so a sequence without such a document is the same. Where one was, it gives the id of padding, and
nothing is trained on:
  - parquet: datasets and TRL's collator: the label is -100;
  - olmo: OLMo-core's NumpyFSLDataset with label_mask_paths, also of a set that had none;
  - mds, litdata, wds: loss_mask, of the packages' own data sets; without masks by the id alone: of mds as llm-foundry,
    with transformers' collator and a tokenizer whose padding it is; of wds as OpenLM with --target-mask-individual, of
    litdata as a loss that ignores the id, both by hand, since their trainers are no packages;
  - megatron: megatron-core's GPTDataset, whose tokenizer has this padding, with --reset-position-ids: its loss_mask; and
    what it leaves out besides without that option;
  - megatron-sft: by pyarrow, as Megatron-Bridge makes a batch of a row (its package needs a GPU).
Which tokens are whose comes from the segments of the first set, as tokstream.py reads them.

    readers_forget.py [FORMAT...]
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../props"))
sys.path.insert(0, os.path.join(HERE, "lib"))
import readers  # noqa: E402
import sets  # noqa: E402
import tokstream  # noqa: E402
from sets import result  # noqa: E402

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["SLUICE_CACHE_DIR"] = ""
PAD = 258
N, SHARD = 300, 8
DROP = [range(3, N, 11), range(7, N, 40)]  # of the first forget, of the second


# ---- readers of sets without masks: by the id ----

def wds_by_id(bucket, _length):
    import webdataset
    for sample in webdataset.WebDataset(sorted(glob.glob(bucket + "/*.tar")), shardshuffle=False):
        ids = np.array(json.loads(sample["txt"]))
        yield ids, ids != PAD


def litdata_by_id(bucket, length):
    import litdata
    data = litdata.StreamingDataset(bucket, item_loader=litdata.streaming.TokensLoader(block_size=length))
    for i in range(len(data)):
        ids = np.array(data[i])
        yield ids, ids != PAD


def mds_by_id(bucket, _length):
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast
    collate = DataCollatorForLanguageModeling(PreTrainedTokenizerFast(tokenizer_file="t.json", pad_token="<|pad|>"), mlm=False)
    data = sets.streaming().StreamingDataset(local=bucket, batch_size=1)
    for i in range(len(data)):
        batch = collate([{"input_ids": data[i]["tokens"].tolist()}])
        yield batch["input_ids"][0].numpy(), batch["labels"][0].numpy() != -100


def megatron_by_id(bucket, length, reset=True):
    """A label is the token behind. GPTDataset reads padding as 0."""
    import readers_megatron
    readers_megatron.Tokenizer.pad = PAD
    for data in readers_megatron.gpt_datasets(sorted(p[:-4] for p in glob.glob(bucket + "/*.bin")), length, reset=reset):
        for i in np.argsort(data.document_index[data.shuffle_index]):  # in the set's order
            sample = data[i]
            ids, trained = sample["tokens"].numpy(), np.zeros(length, bool)
            trained[1:] = sample["loss_mask"].numpy()[:-1]
            yield np.where(ids == 0, PAD, ids), trained


def megatron_without_reset(folder):
    """Of each shard, the padding of the sample that is read first is left out of all its samples (forget(1))."""
    lost = wrong = 0
    for bucket in json.load(open(folder + "/report.json"))["buckets"]:
        bits = [np.array([t for _, t in megatron_by_id("%s/%s" % (folder, bucket["name"]), bucket["length"], reset)])
                for reset in (True, False)]
        for at in range(0, len(bits[0]), SHARD):
            good, has = (b[at:at + SHARD] for b in bits)
            wrong += np.count_nonzero((has != good) & good[0])
            lost += np.count_nonzero(has != good)
    result(lost and not wrong, "megatron without --reset-position-ids: %d more tokens are not trained on, where the first sample of a "
           "shard has padding" % lost)


MASKED, PLAIN = "m", "c"
# format, stream, options of forget, reader
TABLE = [
    ("parquet", PLAIN, [], readers.parquet),
    ("parquet", MASKED, [], readers.parquet),
    ("megatron-sft", PLAIN, [], readers.megatron_sft),
    ("megatron-sft", MASKED, [], readers.megatron_sft),
    ("olmo", PLAIN, [], readers.olmo),
    ("olmo", MASKED, [], readers.olmo),
    ("mds", PLAIN, ["--accept-mismatch"], mds_by_id),
    ("mds", MASKED, [], readers.mds),
    ("litdata", PLAIN, ["--accept-mismatch"], litdata_by_id),
    ("litdata", MASKED, [], readers.litdata),
    ("wds", PLAIN, [], wds_by_id),
    ("wds", MASKED, [], readers.wds),
    ("megatron", PLAIN, [], megatron_by_id),
]


# ---- the sets ----

def make_streams():
    made = json.loads(subprocess.run([sys.executable, sets.TOP + "/tests/cli/make_tokenizer.py"], stdout=subprocess.PIPE,
                                     check=True).stdout)
    made["added_tokens"].append({**made["added_tokens"][0], "id": PAD, "content": "<|pad|>"})
    made["model"]["vocab"]["<|pad|>"] = PAD
    with open("t.json", "w") as f:
        json.dump(made, f)
    r = random.Random(7)
    with open("c.jsonl", "w") as f:
        for i in range(N):
            text = " ".join(r.choice("the then that quick brown fox jumps".split()) for _ in range(r.choice([2, 3, 5, 8, 30, 80])))
            f.write(json.dumps({"id": "d%d" % i, "text": text, "spans": [[0, len(text) // 2]]}) + "\n")
    for name, options in ((PLAIN, []), (MASKED, ["--spans-field", "spans"])):
        stream = sets.run("tokenize", "-q", "-t", "t.json", "--id-field", "id", *options, "c.jsonl")
        for label in (False, True):
            pieces = sets.run("decompose", "-q", "--min", "32", "--max", "256", *(["--label-token"] if label else []), stdin=stream)
            with open("%s%d.tks" % (name, label), "wb") as f:
                f.write(sets.run("pack", "-q", "--mix-domains", "--long", "split", "--length", "256", stdin=pieces))
    for i, drop in enumerate(DROP):
        with open("drop%d" % i, "w") as f:
            f.writelines("d%d\n" % k for k in drop)


def places(path):
    """Of each token of a bucket: the document, -1 for padding; and the number of its sequences."""
    document, length, n = [], [], 0
    with open(path, "rb") as f:
        for q in tokstream.Reader(f, hashes=False):
            n += 1
            document += [-1 if s.source == tokstream.PADDING else int(s.id[1:]) for s in q.segments]
            length += [s.length for s in q.segments]
    return np.repeat(document, length), n


def read(reader, folder, bucket):
    ids, trained = zip(*reader(os.path.abspath("%s/%s" % (folder, bucket["name"])), bucket["length"]))
    return np.concatenate(ids).astype(int), np.concatenate(trained).astype(bool)


def check(kind, stream, options, reader):
    name = "%s%s" % (kind, " with masks" if stream == MASKED else "")
    try:
        sets.run("shuffle", "-q", "--seed", "3", "--format", kind, "--shard-sequences", str(SHARD), "-o", name + ".0",
                 "%s%d.tks" % (stream, kind == "wds"))
    except subprocess.CalledProcessError:
        return print("skip readers_forget: %s: this build has none" % name)
    for i in range(len(DROP)):
        sets.run("forget", "-q", *options, "--pad-id", str(PAD), "--ids-drop", "drop%d" % i, "-o", "%s.%d" % (name, i + 1),
                 "%s.%d" % (name, i))
    counts, bad = np.zeros(3, int), []
    for bucket in json.load(open(name + ".0/report.json"))["buckets"]:
        document, n_seq = places("%s.0/segments/%s.tks" % (name, bucket["name"]))
        was = read(reader, name + ".0", bucket)
        for k in range(1, len(DROP) + 1):
            now = read(reader, "%s.%d" % (name, k), bucket)
            gone = np.isin(document, [d for drop in DROP[:k] for d in drop])
            stay = ~gone & (document >= 0)
            if len(now[0]) != len(document) or len(was[0]) != len(document):
                bad.append("%s of set %d has %d tokens, must have %d" % (bucket["name"], k, len(now[0]), len(document)))
                continue
            for what, wrong in (("ids", ((now[0] != was[0]) & ~gone)), ("trained on", (now[1] != was[1]) & stay),
                                ("ids of padding", (now[0] != PAD) & gone), ("trained on padding", now[1] & gone)):
                if wrong.any():
                    bad.append("%s of set %d: %s differ at %d of %d tokens" % (bucket["name"], k, what, wrong.sum(), len(wrong)))
        changed = gone.reshape(n_seq, -1).any(axis=1)  # of the last set
        counts += [n_seq, changed.sum(), gone.sum()]
    result(not bad and 0 < counts[1] < counts[0], "%s: %d sequences, and padding in %d of them, %d tokens%s" % (
        name, *counts, "".join("; " + b for b in bad[:4])))
    if kind == "megatron":
        megatron_without_reset(name + ".1")


with tempfile.TemporaryDirectory(prefix="sluice-forget-", dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
    os.chdir(scratch)
    make_streams()
    for row in TABLE:
        if not sys.argv[1:] or row[0] in sys.argv[1:]:
            try:
                check(*row)
            except (ImportError, SystemExit) as e:
                print("skip readers_forget: %s: %s" % (row[0], e))
sys.exit(sets.failed)
