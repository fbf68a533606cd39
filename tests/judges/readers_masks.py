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
Parquet and Megatron-Bridge have no label at the first token of a segment.

    readers_masks.py [DIALOGUES [FORMAT...]]
"""
import glob
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../props"))
import check_masks  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["SLUICE_CACHE_DIR"] = ""
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + "readers_masks: " + what, flush=True)


def run(*argv):
    p = subprocess.run([os.path.join(BIN, argv[0]), "-q", *map(str, argv[1:])], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode:
        raise RuntimeError("%s: %s" % (" ".join(map(str, argv)), p.stderr.decode()[-300:]))
    return p.stdout


# ---- readers: (ids, trained) of each sequence of a bucket, in the order of the set ----

def parquet(bucket, _length):
    import datasets
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
    datasets.disable_progress_bars()
    rows = datasets.load_dataset("parquet", data_files=sorted(glob.glob(bucket + "/*.parquet")), split="train",
                                 cache_dir="cache")
    collate = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    for row in rows:
        batch = collate([row])
        ids, labels = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
        assert all(b in (-100, a) for a, b in zip(ids, labels))
        yield ids, [v != -100 for v in labels]


def olmo(bucket, length):
    import numpy as np
    from olmo_core.data.numpy_dataset import NumpyFSLDataset
    paths = sorted(glob.glob(bucket + "/*.npy"))
    data = NumpyFSLDataset(*paths, sequence_length=length, pad_token_id=0, eos_token_id=256, vocab_size=257, dtype=np.uint16,
                           label_mask_paths=sorted(glob.glob(bucket + "/*.label_mask")))
    for i in range(len(data)):
        item = data[i]
        yield item["input_ids"].tolist(), item["label_mask"].tolist()


def mds(bucket, _length):
    import streaming
    streaming.base.util.clean_stale_shared_memory()
    data = streaming.StreamingDataset(local=bucket, batch_size=1)
    for i in range(len(data)):
        yield data[i]["tokens"].tolist(), data[i]["loss_mask"].tolist()


def litdata(bucket, _length):
    import litdata
    data = litdata.StreamingDataset(bucket)
    for i in range(len(data)):
        yield data[i]["input_ids"].tolist(), data[i]["loss_mask"].tolist()


def wds(bucket, _length):
    import webdataset
    for sample in webdataset.WebDataset(sorted(glob.glob(bucket + "/*.tar")), shardshuffle=False):
        yield json.loads(sample["txt"]), json.loads(sample["loss_mask.txt"])


def megatron_sft(bucket, _length):
    import pyarrow as pa
    import pyarrow.parquet as pq
    for path in sorted(glob.glob(bucket + "/*.idx.parquet")):
        table = pq.read_table(path)
        assert [table.schema.field(c).type.value_type for c in ("input_ids", "loss_mask", "seq_start_id")] == [
            pa.int32(), pa.int8(), pa.int32()]
        for row in table.to_pylist():
            ids, mask, start = row["input_ids"], row["loss_mask"], row["seq_start_id"]
            trained = [0] * len(ids)
            for a, b in itertools.pairwise(start + [len(ids)]):
                for k, bit in enumerate(mask[a:b - 1]):  # of the label ids[a + 1 + k]
                    trained[a + 1 + k] = bit
            yield ids, trained


READERS = {"parquet": parquet, "olmo": olmo, "mds": mds, "litdata": litdata, "wds": wds, "megatron-sft": megatron_sft}
NO_FIRST = {"parquet", "megatron-sft"}


# ---- sets ----

def ways(n_part):
    """Streams: their names, and what makes them."""
    yield "decompose", lambda: run("pack", "--mix-domains", "p.tks", "-o", "k.tks")
    for method in ("bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "concat"):
        yield method, lambda: run("pack", "--method", method, "--length", 512, "a.tks", "-o", "k.tks")
    yield "multi", lambda: run("pack", "--method", "multi", "--buckets", "64,512", "a.tks", "-o", "k.tks")
    yield "--balance", lambda: run("pack", "--length", 512, "--balance", 4, "a.tks", "-o", "k.tks")
    for n in n_part:
        yield "stages, N = %d" % n, lambda: packed_in_stages(n)


def packed_in_stages(n):
    options = ["--work", "pack.work", "--length", 512]
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
    options = ["--format", name, "--shard-sequences", 50, *(["--accept-mismatch"] if name == "wds" else []), *options]
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


def records():
    """{bucket: [record, …]} of the set."""
    report, found = json.load(open("set/report.json")), {}
    length = {b["length"]: b["name"] for b in report["buckets"]}
    for line in run("inspect", "--records", "set").splitlines():
        r = json.loads(line)
        found.setdefault(length[len(r["tokens"])], []).append(r)
    return found


def compare(name, way, want):
    keys = {(s, d, o) for (s, d), offsets in want.items() for o in offsets}
    seen, bad, n_seq, first = {}, 0, 0, set()
    for bucket, rows in records().items():
        got = READERS[name](os.path.abspath("set/" + bucket), len(rows[0]["tokens"]))
        for row, pair in itertools.zip_longest(rows, got):
            ids, trained = pair if pair else ([], [])
            bad += not row or ids != row["tokens"] or len(trained) != len(ids)
            at, n_seq = 0, n_seq + 1
            for s in row["segments"] if row else []:
                padding = s.get("padding", False)
                key = () if padding else (s["source"].encode(), s["document"])
                bad += padding and any(trained[at:at + s["length"]])
                for k in range(0 if padding else s["length"]):
                    if trained[at + k]:
                        seen[key + (s["offset"] + k,)] = seen.get(key + (s["offset"] + k,), 0) + 1
                if not padding and name in NO_FIRST:
                    first.add(key + (s["offset"],))
                at += s["length"]
    good = not bad and set(seen) == keys - first and set(seen.values()) == {1}
    result(good, "%s, %s: %d trained tokens of %d sequences%s"
           % (name, way, len(seen), n_seq, "" if good else "; %d sequences are wrong, %d tokens" %
              (bad, len(set(seen) ^ (keys - first)))))


def packed_documents(want):
    """OLMo-core packs whole documents itself."""
    import numpy as np
    from olmo_core.data import NumpyPackedFSLDatasetConfig, TokenizerConfig
    shutil.rmtree("set", ignore_errors=True)
    run("shuffle", "--documents", "--format", "olmo", "-o", "set", "a.tks")
    texts = {}
    for line in run("inspect", "--records", "set").splitlines():
        r = json.loads(line)
        key = (r["segments"][0]["source"].encode(), r["segments"][0]["document"])
        pair = tuple(r["tokens"]), tuple(k in want[key] for k in range(len(r["tokens"])))
        texts[pair] = texts.get(pair, 0) + 1
    longest = max(len(ids) for ids, _ in texts)
    data = NumpyPackedFSLDatasetConfig(
        tokenizer=TokenizerConfig(vocab_size=257, eos_token_id=256, pad_token_id=0),
        paths=sorted(os.path.abspath(p) for p in glob.glob("set/documents/*.npy")), dtype="uint16",
        label_mask_paths=sorted(os.path.abspath(p) for p in glob.glob("set/documents/*.label_mask")),
        sequence_length=1 << (longest - 1).bit_length(), work_dir=os.path.abspath("olmo.work")).build()
    data.prepare()
    for i in range(len(data)):
        ids, mask, at = data[i]["input_ids"].numpy(), data[i]["label_mask"].tolist(), 0
        for end in np.flatnonzero(ids == 256) + 1:
            pair = tuple(ids[at:end].tolist()), tuple(mask[at:end])
            texts[pair] = texts.get(pair, 0) - 1
            at = end
    result(not any(texts.values()) and len(texts) > 10, "olmo, NumpyPackedFSLDataset: %d documents with their masks" % len(texts))


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    names = sys.argv[2:] or list(READERS)
    want = {key: {o for o in offsets} for key, offsets in check_masks.make("a.jsonl", n, random.Random(5)).items()}
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
                compare(name, way, want)
            except (ImportError, RuntimeError) as e:
                if isinstance(e, RuntimeError) and "not built in" not in str(e):
                    raise
                print("skip readers_masks: %s: %s" % (name, e))
                names = [x for x in names if x != name]
    if "olmo" in names:
        packed_documents(want)


with tempfile.TemporaryDirectory(prefix="sluice-masks-", dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
    os.chdir(scratch)
    main()
sys.exit(failed)
