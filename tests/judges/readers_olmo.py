#!/usr/bin/env python3
"""OLMo-core's own data set and loader of variable sequence lengths on `shuffle --format olmo` and `schedule --olmo-cache`.

What it proves, with the real ai2-olmo-core and torch, on a set of several shards a bucket made from real text:
  - prepare() builds nothing: every function that would is made to raise, and no file of the cache is touched;
  - every instance has our tokens, the top bucket of 256 too, which the original's length type would empty;
  - the loader's batches are our schedule's, for 2 ranks of 2 workers, every instance of the steps once an epoch:
    Algorithm 1's order handed over as `natural`, and grow-linear with counts at which the original's rounding fails;
  - its reader of .csv.gz takes our rows, and ours those that it and the dolma toolkit's layout write: decomposed,
    written as olmo again, and put together, the documents are the same.
"""
import csv
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
try:
    import numpy as np
    import olmo_core.data.data_loader as loader_module
    import olmo_core.data.numpy_dataset as dataset_module
    import olmo_core.data.utils as utils
    from olmo_core.data import (DataCollator, NumpyVSLDatasetConfig, TokenizerConfig, VSLCurriculumConfig)
    from olmo_core.data.data_loader import NumpyDataLoaderBase
except ImportError as e:
    print("skip readers_olmo: " + repr(e))
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("BIN", "build/bin")) + "/" + os.environ.get("PROGRAM_PREFIX", "")
# Documents of the first set; JUDGES_FULL=1: all that the others have.
ALL, FEW = 700, 700 if os.environ.get("JUDGES_FULL") else 300
TEXT = os.path.abspath(os.path.join(os.environ.get("O", "build"), "judges/corpus/docs-en-0000.jsonl.zst"))
failed = False


def result(good, what, why=""):
    global failed
    failed |= not good
    if not good and why:
        print("  " + str(why)[:600])
    print(("ok " if good else "not ok ") + "readers_olmo: " + what)


def run(*argv, stdin=None):
    p = subprocess.run([BIN + argv[0], *map(str, argv[1:])], input=stdin, stdout=subprocess.PIPE, check=True)
    return p.stdout


def records(path, *argv):
    return [json.loads(line) for line in run("inspect", "-q", "--records", *argv, path).splitlines()]


def no(*args, **kwargs):
    raise AssertionError("the loader builds what should be there")


def shut(shut_order=True):
    """Whatever builds raises."""
    for module in (dataset_module, loader_module, utils):
        for name in ("bucket_documents", "memmap_to_write", "write_array_to_disk", "run_worker_func"):
            if hasattr(module, name):
                setattr(module, name, no)
    for c in (dataset_module.VSLNaturalCurriculum, dataset_module.VSLGrowthCurriculum):
        c.get_batch_indices = no
    loader_module.NumpyVSLDataLoader._get_bucket_indices = no


def snapshot(folder):
    return {p: (os.stat(p).st_mtime_ns, os.stat(p).st_ino) for p in glob.glob(folder + "/**", recursive=True)}


def dataset(work, name):
    d = json.load(open(os.path.join(work, name + ".json")))
    config = NumpyVSLDatasetConfig(
        tokenizer=TokenizerConfig(**d["tokenizer"]), paths=d["paths"], dtype=d["dtype"],
        min_sequence_length=d["min_sequence_length"], max_sequence_length=d["max_sequence_length"],
        vsl_curriculum=VSLCurriculumConfig(**d["vsl_curriculum"]), work_dir=work)
    data = config.build()
    data.prepare()
    return data, d


def buckets(shards):
    """{length: [tokens, …]} in the order of the shards."""
    out = {}
    for r in records(shards):
        out.setdefault(len(r["tokens"]), []).append(r["tokens"])
    return out


def check_instances(data, want, what):
    order = sorted(want, key=lambda n: "D_%d" % (n.bit_length() - 1))
    flat = [t for n in order for t in want[n]]
    good = len(data) == len(flat) and all(data[i]["input_ids"].tolist() == t for i, t in enumerate(flat))
    counts = {n: c for n, c in data.instances_per_bucket if c}
    result(good and counts == {n: len(want[n]) for n in want}, "%s: all %d instances" % (what, len(flat)), counts)
    return flat


def check_loader(work, name, shards, want, tokens, world, workers, epochs, seed, what, *argv):
    plan = os.path.join(work, "..", "steps.json")
    run("schedule", "-q", "--batch-tokens", tokens, "--world", world, "--epochs", epochs, "--seed", seed, "--olmo-cache",
        work, "--json", plan, *argv, shards)
    plan = json.load(open(plan))
    before = snapshot(work)
    data, _ = dataset(work, name)
    per_pass = plan["steps_per_pass"]
    # What each rank must get, step by step.
    bad, n = "", 0
    for rank in range(world):
        loader = NumpyDataLoaderBase.wrap_numpy_dataset(
            data, global_batch_size=tokens, collator=DataCollator(pad_token_id=data.pad_token_id), work_dir=work, seed=seed,
            dp_world_size=world, dp_rank=rank, num_workers=workers, num_threads=0, fs_local_rank=0)
        for epoch in range(1, epochs + 1):
            loader.reshuffle(epoch=epoch)
            got = [b["input_ids"].tolist() for b in loader]
            steps = plan["steps"][(epoch - 1) * per_pass:epoch * per_pass]
            if len(got) != len(steps) or len(loader) != len(steps):
                bad = bad or "rank %d, epoch %d: %d batches of %d" % (rank, epoch, len(got), len(steps))
            for k, (have, (b, first, _)) in enumerate(zip(got, steps)):
                length = plan["buckets"][b]["length"]
                part = tokens // length // world
                if have != want[length][first + rank * part:first + (rank + 1) * part]:
                    bad = bad or "rank %d, epoch %d, step %d" % (rank, epoch, k)
                n += len(have)
            loader.reset()
    once = all(len({(b, first) for b, first, _ in plan["steps"][e * per_pass:(e + 1) * per_pass]}) == per_pass
               for e in range(epochs))
    result(not bad and once and snapshot(work) == before, "%s: %d batches for %d ranks x %d workers are our steps (%d rows)" %
           (what, per_pass * epochs, world, workers, n), bad)


def check_rows(shards, flat):
    good, n = True, 0
    segments = {}
    for r in records(shards):
        segments.setdefault(len(r["tokens"]), []).append(r["segments"])
    for length, every in segments.items():
        want, at = [], 0
        for sequence in every:
            for s in sequence:
                if "padding" not in s and s.get("source") is not None:
                    want.append((at, at + s["length"], s))
                at += s["length"]
        got, base = [], 0
        for path in sorted(glob.glob("%s/D_%d/*.npy" % (shards, length.bit_length() - 1))):
            rows = utils.iter_document_indices(path, use_array_if_local=False, dtype=np.uint16)
            got += [(base + a, base + b) for a, b in rows]
            base += os.path.getsize(path) // 2
        good = good and got == [w[:2] for w in want]
        n += len(got)
    result(good, "its reader of .csv.gz gives our %d segments" % n)
    path = sorted(glob.glob(shards + "/D_*/*.csv.gz"))[0]
    row = next(csv.reader(gzip.open(path, "rt", newline="")))
    length = int(os.path.basename(os.path.dirname(path))[2:])
    s = segments[2**length][0][0]
    result(row == ["0", str(s["length"]), s.get("id", ""), s["source"], str(s["document"])], "start,end,id,src,loc", (row, s))


def check_documents():
    """A file of whole documents: the array that memory-maps, and the rows that OLMo-core's own function finds by the EOS."""
    texts = records("doc.tks")
    eos = json.loads(run("inspect", "--json", "doc.tks"))["eos_id"]
    run("shuffle", "-q", "--documents", "--order", "keep", "--format", "olmo", "-o", "whole", "doc.tks")
    ours = "whole/documents/shard-0000000"
    want = np.concatenate([np.array(r["tokens"], np.uint16) for r in texts])
    result(open(ours + ".npy", "rb").read() == want.tobytes(), "whole documents: the .npy is the array of %d ids" % len(want))
    shutil.copy(ours + ".npy", "found.npy")
    from pathlib import Path
    real_write_document_indices(Path("found.npy"), dtype=np.uint16, eos_token_id=eos)
    rows = [[row[:2] for row in csv.reader(gzip.open(p, "rt", newline=""))] for p in (ours + ".csv.gz", "found.csv.gz")]
    result(rows[0] == rows[1] and len(rows[0]) == len(texts), "whole documents: its rows are those that OLMo-core finds (%d)" %
           len(texts))


def check_input(folder):
    """Documents as the dolma toolkit lays them out, and rows by OLMo-core's own function."""
    texts = records("few.tks")
    ids = np.concatenate([np.array(r["tokens"], np.uint16) for r in texts])
    eos = json.loads(run("inspect", "--json", "few.tks"))["eos_id"]
    m = np.memmap("dolma.npy", mode="w+", dtype=np.uint16, shape=ids.shape)
    m[:] = ids
    m.flush()
    with gzip.open("dolma.csv.gz", "wt", newline="") as f:
        w, at = csv.writer(f), 0
        for i, r in enumerate(texts):
            w.writerow((at, at + len(r["tokens"]), r["segments"][0].get("id", ""), "s3://b/x,y.json.gz", i + 1))
            at += len(r["tokens"])
    shutil.copy("dolma.npy", "core.npy")
    from pathlib import Path
    real_write_document_indices(Path("core.npy"), dtype=np.uint16, eos_token_id=eos)
    for name in ("dolma", "core"):
        ours = records(name + ".npy", "--token-bytes", 2, "--vocab-size", 40000)
        good = [r["tokens"] for r in ours] == [r["tokens"] for r in texts]
        if name == "dolma":
            good = good and [r["segments"][0].get("id") for r in ours] == [r["segments"][0].get("id") for r in texts]
        result(good, "%s.csv.gz: our %d documents" % (name, len(ours)))
        pieces = run("decompose", "-q", "--min", 64, "--max", 1024, "--token-bytes", 2, "--vocab-size", 40000, "--eos-id", eos,
                     name + ".npy")
        out = name + "-set"
        run("shuffle", "-q", "--format", "olmo", "-o", out, "--shard-sequences", 50, "--seed", 3,
            stdin=run("pack", "-q", stdin=pieces))
        again = {}
        for r in records(out):
            at = 0
            for s in r["segments"]:
                if s.get("source") is not None:
                    again.setdefault(s["document"], []).append((s["offset"], r["tokens"][at:at + s["length"]]))
                at += s["length"]
        starts = np.cumsum([0] + [len(r["tokens"]) for r in texts])
        whole = all(sum((t for _, t in sorted(again.get(int(a), []))), []) == r["tokens"] for a, r in zip(starts, texts))
        result(whole and len(again) == len(texts), "%s: decomposed, written as olmo, put together: the same documents" % name)


real_write_document_indices = utils.write_document_indices


def main(folder):
    os.chdir(folder)
    with open("text.jsonl", "wb") as f:
        p = subprocess.Popen(["zstd", "-dcq", TEXT], stdout=subprocess.PIPE)
        for line, _ in zip(p.stdout, range(ALL)):
            f.write(line)
        p.kill()
    run("tokenize", "-q", "-o", "doc.tks", "text.jsonl")
    with open("text.jsonl", "rb") as f:
        few = b"".join(line for line, _ in zip(f, range(FEW)))
    run("tokenize", "-q", "-o", "few.tks", stdin=few)
    pieces = run("decompose", "-q", "--min", 32, "--max", 1024, "few.tks")
    run("shuffle", "-q", "--seed", 2, "--format", "olmo", "-o", "set", "--shard-sequences", 300 * FEW // ALL,
        stdin=run("pack", "-q", stdin=pieces))
    check_input(folder)
    check_documents()
    shut()
    work = os.path.join(folder, "set/olmo-cache")
    want = buckets("set")
    before = snapshot(work)
    data, d = dataset(work, "vsl-natural")
    result(data.fingerprint == d["fingerprint"] and snapshot(work) == before, "prepare() rebuilds nothing of %d files" %
           len(d["paths"]))
    found = sorted(glob.glob(folder + "/set/D_*/shard-*.npy"))
    result(d["paths"] == found, "files in the order in which it sorts what a pattern finds")
    flat = check_instances(data, want, "the cache of shuffle")
    check_rows("set", flat)
    check_loader(work, "vsl-natural", "set", want, 4096, 2, 2, 2, 7, "Algorithm 1 as natural", "--trainer", "generic",
                 "--curriculum", "grow-p2", "--cycles", 3)
    check_loader(work, "vsl-grow-p2-2-cycle-balanced", "set", want, 4096, 2, 0, 1, 9, "grow-p2", "--trainer", "olmo",
                 "--curriculum", "grow-p2", "--cycles", 2, "--balanced")
    # Moved, with another cache elsewhere; lengths at which the original fails.
    run("shuffle", "-q", "--seed", 2, "--format", "olmo", "-o", "low", "--shard-sequences", 500, "--tails", "drop",
        stdin=run("decompose", "-q", "--min", 32, "--max", 256, "--tail", "drop", "doc.tks"))
    os.rename("low", "moved")
    want = buckets("moved")
    check_loader(folder + "/w", "vsl-grow-linear-3-cycle", "moved", want, 2048, 2, 2, 1, 1, "a set that moved, up to 256",
                 "--trainer", "olmo", "--curriculum", "grow-linear", "--cycles", 3)
    check_instances(dataset(folder + "/w", "vsl-grow-linear-3-cycle")[0], want, "256 on top")


if not os.path.exists(TEXT) or not shutil.which("zstd"):
    print("skip readers_olmo: no corpus (make judges), or no zstd")
    sys.exit(0)
with tempfile.TemporaryDirectory(prefix="sluice-olmo-", dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
    main(scratch)
sys.exit(failed)
