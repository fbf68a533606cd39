#!/usr/bin/env python3
"""The table of sluice(7), READERS: each format as its reader takes it with its defaults, without our metadata.

What it proves: every format, of packed sequences and of whole documents, with and without masks, EOS and BOS, is either
refused by shuffle or read by the package with its defaults, and then all ids are ours. For OLMo-core's Packed, Padded and VSL data
sets the configuration is the one that the set's card prints; the switches of the card are tried on sets without EOS. Then what
each reader makes of documents, masks and padding by default, a line for each row of the page.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import sets  # noqa: E402
from sets import result  # noqa: E402

os.environ.update(LOGURU_LEVEL="ERROR", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", SLUICE_CACHE_DIR="")
LABELS = ("wds", "ds")
LINES = ("one two", "three", "four five six", "seven eight nine ten eleven", "twelve " * 9)
BOSES = {"none": ["-t", "bytes"], "another": ["-t", "llama3.tiktoken", "--bos"],
         "EOS": ["-t", "llama3.tiktoken", "--bos", "--eos", "<|begin_of_text|>"]}
REFUSED = {"wds whole": "cannot take whole documents", "megatron-sft whole": "cannot take whole documents",
           "megatron masks": "cannot carry masks", "ds masks": "cannot carry masks", "olmo whole no EOS": "--accept-mismatch"}


def program(*argv, stdin=None):
    return subprocess.run([sets.BIN + argv[0], "-q", *argv[1:]], input=stdin, capture_output=True)


def write(folder, kind, whole=False, masks=False, eos=True, bos="none", more=()):
    """Writes a set; returns what shuffle says if it refuses."""
    stream = program("tokenize", *BOSES[bos], *([] if eos else ["--no-eos"]), *(["--spans-field", "spans"] if masks else []),
                     "c.jsonl").stdout
    if not whole:
        stream = program("decompose", "--min", "8", "--max", "64", *(["--label-token"] if kind in LABELS else []), stdin=stream).stdout
        stream = program("pack", "--length", "32", "--long", "split", "--fill", "pad", stdin=stream).stdout
    p = program("shuffle", "--format", kind, "-o", folder, *(["--documents", "--order", "keep"] if whole else []), *more, stdin=stream)
    return p.stderr.decode() if p.returncode else None


def ours(folder):
    """{folder of a bucket: [record, …]} in the order of the shards."""
    found = collections.defaultdict(list)
    whole = os.path.isdir(folder + "/documents")
    for r in sets.records(folder):
        n = len(r["tokens"])
        found["documents" if whole else "D_%d" % ((n - n % 2).bit_length() - 1)].append(r)
    return found


def files(folder, suffix):
    return sorted(os.path.abspath(p) for p in glob.glob(folder + "/*" + suffix))


def cut(records, n):
    """All ids, in runs of n; what is left is dropped."""
    ids = [i for r in records for i in r["tokens"]]
    return [ids[i:i + n] for i in range(0, len(ids) // n * n, n)]


# ---- (what the reader gives, what it must be) of a bucket, with the reader's defaults ----

def ds(path, records, whole):
    from datatrove.utils.dataset import DatatroveFolderDataset
    n = 16 if whole else len(records[0]["tokens"])
    data = DatatroveFolderDataset(path, seq_len=n - 1)
    return [data[i]["input_ids"].tolist() for i in range(len(data))], cut(records, n)


def megatron(path, records, _whole):
    sys.argv[0] = "readers_megatron.py"
    from readers_megatron import IndexedDataset, prefixes
    data = [IndexedDataset(p) for p in prefixes(os.path.dirname(path), os.path.basename(path))]
    return [d[i].tolist() for d in data for i in range(len(d))], [r["tokens"] for r in records]


def mds(path, records, _whole):
    data = sets.streaming().StreamingDataset(local=path, batch_size=1)
    return [row["tokens"].tolist() for row in data], [r["tokens"] for r in records]


def litdata(path, records, whole):
    from litdata import StreamingDataset, TokensLoader
    if "mask" in records[0]:  # LitData's default loader
        return [row["input_ids"].tolist() for row in StreamingDataset(path)], [r["tokens"] for r in records]
    n = 16 if whole else len(records[0]["tokens"])
    return [row.tolist() for row in StreamingDataset(path, item_loader=TokensLoader(block_size=n))], cut(records, n)


def wds(path, records, _whole):
    import webdataset
    shards = files(path, ".tar")
    return [json.loads(s["txt"]) for s in webdataset.WebDataset(shards, shardshuffle=False)], [r["tokens"] for r in records]


def parquet(path, records, _whole):
    import datasets
    datasets.disable_progress_bars()
    data = datasets.load_dataset("parquet", data_files=files(path, ".parquet"), split="train", cache_dir=path + ".cache")
    return data["input_ids"][:], [r["tokens"] for r in records]


def megatron_sft(path, records, _whole):
    import pyarrow.parquet
    rows = [ids for p in files(path, ".idx.parquet") for ids in pyarrow.parquet.read_table(p)["input_ids"].to_pylist()]
    return rows, [r["tokens"] for r in records]


def olmo(path, records, whole):
    if not whole:
        data = olmo_data("FSL", tokenizer_of(257, 256), path, sequence_length=len(records[0]["tokens"]))
        return [data[i]["input_ids"].tolist() for i in range(len(data))], [r["tokens"] for r in records]
    got, want = [], []
    for kind in ("Packed", "Padded", "VSL"):
        g, w = olmo_documents(kind, path, records, card_tokenizer(path))
        got.append(g)
        want.append(w)
    return got, want


# ---- OLMo-core ----

def tokenizer_of(vocab, eos, bos=None):
    from olmo_core.data import TokenizerConfig
    return TokenizerConfig(vocab_size=vocab, eos_token_id=eos, pad_token_id=eos, bos_token_id=bos)


def card_tokenizer(path):
    """What the card prints, as it stands there."""
    from olmo_core.data import TokenizerConfig
    text = open(os.path.dirname(path) + "/README.md").read()
    return eval(re.search(r"```python\n(TokenizerConfig\(.*\))\n```", text).group(1), {"TokenizerConfig": TokenizerConfig})


def olmo_data(kind, tokenizer, path, **more):
    """kind: FSL, Packed, Padded or VSL."""
    import olmo_core.data as data
    config = getattr(data, "Numpy%sDatasetConfig" % (kind if kind.endswith("SL") else kind + "FSL"))
    made = config(tokenizer=tokenizer, paths=files(path, ".npy"), work_dir=os.path.abspath(tempfile.mkdtemp(dir=".")), **more).build()
    made.prepare()
    return made


def powers(ids):
    """As VSL cuts a document."""
    parts = []
    while ids:
        n = 1 << (len(ids).bit_length() - 1)
        parts.append(ids[:n])
        ids = ids[n:]
    return parts


def olmo_documents(kind, path, records, tokenizer, **more):
    """Sorted documents that a data set reads, and ours."""
    docs, eos, bos = [r["tokens"] for r in records], tokenizer.eos_token_id, tokenizer.bos_token_id
    longest = 1 << (max(map(len, docs)) - 1).bit_length()
    if kind != "Packed" and bos == eos:  # as the card says
        docs = [part for d in docs for part in (d[:1], d[1:])]
    if kind == "VSL":
        data = olmo_data(kind, tokenizer_of(tokenizer.vocab_size, eos), path, min_sequence_length=1, max_sequence_length=longest)
        return sorted(data[i]["input_ids"].tolist() for i in range(len(data))), sorted(p for d in docs for p in powers(d))
    data = olmo_data(kind, tokenizer, path, sequence_length=longest, **more)
    got = []
    for i in range(len(data)):
        ids = data[i]["input_ids"][data[i]["label_mask"]].tolist()
        if kind == "Padded":
            got.append(ids)
            continue
        ends = [k + 1 for k, t in enumerate(ids) if t == eos and (bos is None or k + 1 == len(ids) or ids[k + 1] == bos)]
        got += [ids[a:b] for a, b in zip([0] + ends, ends)]
    return sorted(got), sorted(docs)


def check_olmo():
    """What is refused is lost or joined by OLMo-core, and the card's switches read it."""
    import olmo_core.data  # noqa: F401
    what = "olmo, whole documents"
    write("plain", "olmo", True)
    records = ours("plain")["documents"]
    for bos, name in ((256, "EOS"), (9, "another")):
        data = olmo_data("Packed", tokenizer_of(257, 256, bos), "plain/documents", sequence_length=64)
        n = sum(int(data[i]["label_mask"].sum()) for i in range(len(data)))
        all_ids = sum(len(r["tokens"]) for r in records)
        result(len(data) == 1 and n == 64 < all_ids, "%s without BOS: Packed with a BOS of %s reads one of %d, %d of %d ids; so the "
               "card says None" % (what, name, len(records), n, all_ids))
    write("bare", "olmo", True, eos=False, more=["--accept-mismatch"])
    records, path = ours("bare")["documents"], "bare/documents"
    docs, t = sorted(r["tokens"] for r in records), tokenizer_of(257, 256)
    for kind, options in (("Padded", {"sequence_length": 128}), ("VSL", {"min_sequence_length": 1, "max_sequence_length": 128})):
        try:
            olmo_data(kind, t, path, **options)
            result(False, "%s without EOS: %s reads them" % (what, kind))
        except RuntimeError:
            result(True, "%s without EOS: %s raises" % (what, kind))
    try:
        n = len(olmo_data("Packed", t, path, sequence_length=128))
    except Exception as e:  # of no documents
        n = repr(e)[:60]
    result(n == 0 or isinstance(n, str), "%s without EOS: Packed has none: %s" % (what, n))

    def real(data):
        return sorted(data[i]["input_ids"][data[i]["label_mask"]].tolist() for i in range(len(data)))

    got = real(olmo_data("Packed", t, path, sequence_length=128, use_array_if_local=False))
    result(collections.Counter(x for d in got for x in d) == collections.Counter(x for d in docs for x in d),
           "%s without EOS: Packed with use_array_if_local=False: every id" % what)
    os.environ["OLMO_DATA_PREP_USE_ARRAY_IF_LOCAL"] = "false"
    got = real(olmo_data("Padded", t, path, sequence_length=128))
    del os.environ["OLMO_DATA_PREP_USE_ARRAY_IF_LOCAL"]
    result(got == docs, "%s without EOS: Padded with OLMO_DATA_PREP_USE_ARRAY_IF_LOCAL=false: every document" % what)
    write("masked", "olmo", True, masks=True)
    data = olmo_data("Padded", t, "masked/documents", sequence_length=128)
    n = sum(int(data[i]["label_mask"].sum()) for i in range(len(data)))
    result(n == sum(len(r["tokens"]) for r in ours("masked")["documents"]),
           "olmo ignores .label_mask without label_mask_paths: all %d ids are trained on, and no padding" % n)
    write("cut", "olmo", masks=True)
    items = [olmo_data("FSL", t, "cut/" + k, sequence_length=len(v[0]["tokens"]))[0] for k, v in ours("cut").items()]
    result(all("label_mask" not in i for i in items), "olmo, NumpyFSLDataset: neither mask nor padding by default")


# ---- other readers: documents, masks and padding ----

def starts(records):
    """Positions that begin again with each document."""
    return [k for r in records for k in range(len(r["tokens"]))]


def check_ds():
    from datatrove.utils.dataset import DatatroveFolderDataset
    write("ds.bare", "ds", True, eos=False)
    records = ours("ds.bare")["documents"]
    item = DatatroveFolderDataset("ds.bare/documents", seq_len=31)[0]
    result(set(item) == {"input_ids"}, "ds, datatrove: no documents by default")
    item = DatatroveFolderDataset("ds.bare/documents", seq_len=31, return_positions=True)[0]
    result(item["positions"].tolist() == starts(records)[:32], "ds without EOS, datatrove with return_positions: documents from .ds.index")
    item = DatatroveFolderDataset("ds.bare/documents", seq_len=31, return_positions=True, positions_from_eos_token_id=256)[0]
    result(item["positions"].tolist() == list(range(32)), "ds without EOS, as nanotron asks for positions: one document")
    write("ds.eos", "ds", True)
    item = DatatroveFolderDataset("ds.eos/documents", seq_len=31, return_positions=True, positions_from_eos_token_id=256)[0]
    result(item["positions"].tolist() == starts(ours("ds.eos")["documents"])[:32], "ds with EOS, as nanotron: each document")


def check_megatron():
    import readers_megatron as m
    for eos in (True, False):
        folder = "megatron.%d" % eos
        write(folder, "megatron", True, eos=eos)
        ids = [i for r in ours(folder)["documents"] for i in r["tokens"]]
        path = m.prefixes(folder, "documents")[0]
        item = next(m.gpt_datasets([path], 32, cut=True))[0]
        one = item["position_ids"].tolist() == list(range(32)) and item["loss_mask"].tolist() == [1] * 32
        result(one and len(ids) > 64, "megatron, %s: GPTDataset's samples are one document, all trained on" % ("EOS" if eos else "no EOS"))
    for pad, what in ((256, "EOS: it is trained on"), (32, "another id: it is read as 0, and not trained on")):
        m.Tokenizer.pad = pad
        data = next(m.gpt_datasets(m.prefixes("megatron.1", "documents"), 32, cut=True))
        labels = [pair for k in range(len(data)) for pair in zip(data[k]["labels"].tolist(), data[k]["loss_mask"].tolist())]
        result((256, 1) in labels if pad == 256 else (0, 0) in labels and 32 not in dict(labels),
               "megatron, GPTDataset with a tokenizer whose pad is " + what)


def check_mds():
    write("mds.m", "mds", masks=True)
    name = sorted(ours("mds.m"))[0]
    row = sets.streaming().StreamingDataset(local="mds.m/" + name, batch_size=1)[0]
    result(set(row) == {"tokens", "seq_lengths", "loss_mask"}, "mds: masks and documents are columns, for the collator to take")


def check_wds():
    import webdataset
    write("wds.m", "wds", masks=True)
    name = sorted(ours("wds.m"))[0]
    sample = next(iter(webdataset.WebDataset(files("wds.m/" + name, ".tar"), shardshuffle=False)))
    result({"txt", "loss_mask.txt"} <= set(sample), "wds: the mask is a member of its own, for the trainer to take")


def check_parquet():
    from trl import SFTConfig
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
    import datasets
    if write("parquet.m", "parquet", masks=True):
        return
    name, records = max(ours("parquet.m").items(), key=lambda b: len(b[1]))
    data = datasets.load_dataset("parquet", data_files=files("parquet.m/" + name, ".parquet"), split="train", cache_dir="parquet.cache")
    out = DataCollatorForLanguageModeling(pad_token_id=0)([data[i] for i in range(len(data))])
    bits = [[int(b) for b in r["mask"]] for r in records]
    trained = [[int(x != -100) for x in row] for row in out["labels"].tolist()]
    begins = [{sum(s["length"] for s in r["segments"][:k]) for k in range(len(r["segments"]))} for r in records]
    result(trained == [[b * (k not in first) for k, b in enumerate(row)] for row, first in zip(bits, begins)],
           "parquet, TRL's collator: labels have our masks; no label at padding and the first token of a document")
    result("position_ids" not in out and "cu_seq_lens_q" not in out, "parquet, TRL's collator: no documents without padding_free")
    result(SFTConfig.__dataclass_fields__["max_length"].default == 1024, "parquet, TRL keeps 1024 ids of a sequence, but for max_length=None")
    said = re.search(r"\nargs = SFTConfig\((.*)\)\n", open("parquet.m/README.md").read())
    options = eval("dict(%s)" % said.group(1)) if said else {}
    result(options.get("max_length", 0) is None and options.get("padding_free") and set(options) <= set(SFTConfig.__dataclass_fields__),
           "parquet, the card has the options with which TRL keeps all ids and documents apart")


def check_litdata():
    from litdata import StreamingDataset
    write("litdata.m", "litdata", masks=True)
    name = sorted(ours("litdata.m"))[0]
    result(set(StreamingDataset("litdata.m/" + name)[0]) == {"input_ids", "loss_mask"}, "litdata: the mask is an array beside the ids")


# ---- the table ----

def expected(kind, whole, masks, eos):
    for key, words in REFUSED.items():
        if set(key.split()) <= {kind, *(["whole"] * whole), *(["masks"] * masks), *([] if eos else ["no", "EOS"])}:
            return words
    return None


def check_table(kind, read):
    for whole in (False, True):
        for masks in (False, True):
            for eos in (True, False):
                for bos in BOSES if eos else list(BOSES)[:2]:
                    what = "%-12s %-6s %-8s %-6s BOS %-7s" % (kind, "whole" if whole else "packed", "masks" if masks else "no masks",
                                                             "EOS" if eos else "no EOS", bos)
                    folder = "t." + re.sub(r"\W+", ".", what)
                    said = write(folder, kind, whole, masks, eos, bos)
                    if said and "is not built in" in said:
                        return print("skip readers_defaults: %s: this build has none" % kind)
                    want = expected(kind, whole, masks, eos)
                    if said or want:
                        result(bool(said and want and want in said), what + (": refused" if said else ": not refused"))
                        continue
                    good, n = True, 0
                    for name, records in ours(folder).items():
                        got, have = read(folder + "/" + name, records, whole)
                        good, n = good and got == have, n + len(records)
                    result(good and n > 0, what + ": read equal, %d" % n)


def main():
    with open("llama3.tiktoken", "w") as f:
        import base64
        f.writelines("%s %d\n" % (base64.b64encode(bytes([i])).decode(), i) for i in range(256))
    with open("c.jsonl", "w") as f:
        for text in LINES:
            f.write(json.dumps({"text": text, "spans": [[1, 4]]}) + "\n")
    kinds = {"olmo": (olmo, check_olmo), "megatron": (megatron, check_megatron), "megatron-sft": (megatron_sft, None),
             "parquet": (parquet, check_parquet), "mds": (mds, check_mds), "litdata": (litdata, check_litdata), "wds": (wds, check_wds),
             "ds": (ds, check_ds)}
    for kind in sys.argv[1:] or kinds:
        read, more = kinds[kind]
        try:
            check_table(kind, read)
            if more:
                more()
        except ImportError as e:
            print("skip readers_defaults: %s: %s" % (kind, e))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HOME"] = scratch  # where LitData decompresses chunks
        os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"
        os.chdir(scratch)
        main()
        os.chdir("/")
    sets.finish()
