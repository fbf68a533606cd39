#!/usr/bin/env python3
"""Parquet, in and out, beside those who know it: pyarrow, duckdb, datasets, TRL.

What it proves. In: files of pyarrow and duckdb with every compression, encoding and string type, nested columns, nulls,
dictionaries, several row groups, no rows, give the same documents as their texts in JSONL; a file cut at any length or
with a wrong byte is refused in one line, never a crash. Out: `datasets` and TRL's collator (padding_free) read every token,
label and boundary of a shard set of packed sequences; 2 ranks of 2 workers see each sequence once. The recipe of
sluice(7) with duckdb gives the same documents too. Without Parquet in the build (make arrow): the recipe alone.
"""
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("BIN", "build/bin") + "/" + os.environ.get("PROGRAM_PREFIX", "")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + "readers_parquet: " + what, flush=True)


def run(*argv, stdin=None, status=0):
    p = subprocess.run([BIN + argv[0], *argv[1:]], input=stdin, capture_output=True)
    if p.returncode != status:
        print("  %s: %d %s" % (" ".join(argv), p.returncode, p.stderr[-300:]))
        raise subprocess.CalledProcessError(p.returncode, argv)
    return p.stdout


def records(stream):
    return [json.loads(line) for line in run("inspect", "--records", stdin=stream).splitlines()]


def documents(path, *options):
    """(document, id, domain, tokens) of each."""
    out = []
    for r in records(run("tokenize", "-q", "-t", "bytes", "--on-error", "skip", *options, path)):
        s = r["segments"][0]
        out.append((s["document"], s.get("id"), s.get("domain"), r["tokens"]))
    return out


# ---- in ----

def make_rows(folder):
    corpus = os.path.join(folder, "corpus.jsonl")
    subprocess.run([sys.executable, os.path.join(HERE, "../cli/make_corpus.py"), corpus, "500000", "5"], check=True)
    rng = random.Random(6)
    rows = []
    for i, line in enumerate(open(corpus)):
        r = json.loads(line)
        rows.append({"id": r["id"], "n": i - 50, "domain": rng.choice(["web", "code", "math"]),
                     "text": None if rng.random() < 0.1 else "" if rng.random() < 0.05 else r["text"]})
    return rows


def want_of(folder, rows, key):
    """From JSONL, a record a row, those with a null left out; documents are numbered by row."""
    path = os.path.join(folder, "want.jsonl")
    kept = [i for i, r in enumerate(rows) if r["text"]]
    with open(path, "w") as f:
        for i in kept:
            f.write(json.dumps({"text": rows[i]["text"], "id": rows[i][key], "domain": rows[i]["domain"]}) + "\n")
    found = documents(path, "--id-field", "id", "--domain-field", "domain")
    return [(i, *d[1:]) for i, d in zip(kept, found)]


def check_in(folder, rows):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    want = want_of(folder, rows, "id")
    path = os.path.join(folder, "x.parquet")
    column = {k: [r[k] for r in rows] for k in rows[0]}
    table = pa.table({"noise": list(range(len(rows))), **column, "list": [[i, None] for i in range(len(rows))]})

    def same(what, *options, expect=want):
        try:
            for threads in ("1", "3"):
                got = documents(path, "-T", threads, *(options or ("--id-field", "id", "--domain-field", "domain")))
                if got != expect:
                    return result(False, "%s, -T %s: %d documents, want %d" % (what, threads, len(got), len(expect)))
            result(True, what)
        except subprocess.CalledProcessError:
            result(False, what)

    for z in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        pq.write_table(table, path, compression=z, row_group_size=70)
        same("pyarrow, " + z)
    pq.write_table(table, path, use_dictionary=False, data_page_size=3000, data_page_version="2.0")
    same("pyarrow, pages v2, small, plain")
    pq.write_table(table, path, row_group_size=1, write_page_index=True, write_page_checksum=True)
    same("pyarrow, a row group a row, page index, checksums")
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        pq.write_table(table, path, use_dictionary=False, row_group_size=100,
                       column_encoding={"text": encoding, "id": encoding, "domain": encoding})
        same("pyarrow, " + encoding)
    for kind in (pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        try:
            cast = pa.table({k: pa.array(column[k], pa.string()).cast(kind) for k in ("id", "text", "domain")})
            pq.write_table(cast, path, row_group_size=64)
        except pa.ArrowException as e:
            print("  %s cannot be written: %s" % (kind, e))
            continue
        same("pyarrow, " + str(kind))
    for name, kind in (("n", pa.int64()), ("n", pa.int32()), ("n", pa.int8())):
        small = [r[name] % 100 for r in rows] if kind == pa.int8() else [r[name] for r in rows]
        pq.write_table(pa.table({**column, name: pa.array(small, kind)}), path)
        expect = want_of(folder, [{**r, name: v} for r, v in zip(rows, small)], name)
        same("pyarrow, ids of " + str(kind), "--id-field", "n", "--domain-field", "domain", expect=expect)
    big = [2**63 + i for i in range(len(rows))]
    pq.write_table(pa.table({**column, "n": pa.array(big, pa.uint64())}), path)
    got = documents(path, "--id-field", "n")
    result([d[1] for d in got] == [str(big[d[0]]) for d in got] and len(got) == len(want), "pyarrow, ids of uint64")
    nested = pa.table({"doc": [None if i % 9 == 0 else {"body": {"text": r["text"]}, "id": r["id"]} for i, r in enumerate(rows)],
                       "domain": column["domain"]})
    pq.write_table(nested, path, row_group_size=33)
    same("pyarrow, structs", "--field", "doc.body.text", "--id-field", "doc.id", "--domain-field", "domain",
         expect=[d for d in want if d[0] % 9])
    pq.write_table(table.slice(0, 0), path)
    same("pyarrow, no rows", expect=[])
    duckdb.from_arrow(table).to_parquet(path, row_group_size=2048, compression="zstd")
    same("duckdb, zstd")
    duckdb.from_arrow(nested).to_parquet(path, compression="snappy")
    same("duckdb, structs", "--field", "doc.body.text", "--id-field", "doc.id", "--domain-field", "domain",
         expect=[d for d in want if d[0] % 9])
    for field, why in (("list", "is a struct or a list"), ("list.list.element", "is a list"), ("noise", "holds no strings"), ("nothing", "no column")):
        pq.write_table(table, path)
        p = subprocess.run([BIN + "tokenize", "-t", "bytes", "--field", field, "-o", os.devnull, path], capture_output=True, text=True)
        result(p.returncode == 1 and p.stderr.count("\n") == 1 and why in p.stderr, "--field %s: %s" % (field, why))


def check_damage(folder):
    """Every length, every byte of a small file: a line each, and the run goes on."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = os.path.join(folder, "small.parquet")
    table = pa.table({"text": ["one", None, "three three three", "four"], "id": [1, 2, 3, 4]})
    pq.write_table(table, path, row_group_size=2, compression="zstd", write_page_checksum=True)
    whole = open(path, "rb").read()
    rng = random.Random(1)
    for what, make, most in (("cut", lambda i: whole[:i], len(whole)),
                             ("one byte wrong", lambda i: whole[:i] + bytes([rng.randrange(256)]) + whole[i + 1:], None)):
        into = os.path.join(folder, what.replace(" ", "-"))
        os.mkdir(into)
        for i in range(len(whole)):
            open("%s/%05d.parquet" % (into, i), "wb").write(make(i))
        p = subprocess.run([BIN + "tokenize", "-t", "bytes", "--on-error", "skip", "-o", os.devnull, into],
                           capture_output=True, text=True)
        lines = [l for l in p.stderr.splitlines() if "going on after it" in l]
        none = "no record can be taken" in p.stderr  # which is an error, with each file told before
        good = p.returncode == (1 if most or none else 0) and (most is None or none and len(lines) == most)
        if not good:
            print("  ", p.returncode, len(lines), p.stderr[-300:])
        result(good, "%s: %d files, %d refused" % (what, len(whole), len(lines)))
        bad = 0
        for i in range(0, len(whole), 29):
            p = subprocess.run([BIN + "tokenize", "-t", "bytes", "-o", os.devnull, "%s/%05d.parquet" % (into, i)],
                               capture_output=True, text=True)
            bad += not (p.returncode == 1 and p.stderr.count("\n") == 1 or most is None and p.returncode == 0)
        result(bad == 0, "%s: one line each" % what)


# ---- out ----

def make_set(folder, rows):
    path = os.path.join(folder, "out.jsonl")
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps({"text": r["text"] or "x"}) + "\n")
    pieces = run("decompose", "-q", "--min", "32", "--max", "256", stdin=run("tokenize", "-q", path))
    packed = run("pack", "-q", "--length", "128", stdin=pieces)
    shards = os.path.join(folder, "set")
    run("shuffle", "-q", "--seed", "2", "--format", "parquet", "-o", shards, "--shard-sequences", "60", stdin=packed)
    return shards


def expected(shards):
    """By bucket: (tokens, lengths of segments, padding) of each sequence, in order."""
    out = {}
    for line in run("inspect", "--records", shards).splitlines():
        r = json.loads(line)
        lengths = [s["length"] for s in r["segments"]]
        padding = [s["length"] for s in r["segments"] if s.get("padding") or s.get("source") is None]
        out.setdefault(len(r["tokens"]), []).append((r["tokens"], lengths, sum(padding)))
    return out


def labels_of(tokens, lengths, padding):
    labels, at = list(tokens), 0
    for n in lengths:
        labels[at] = -100
        at += n
    return labels[:len(tokens) - padding] + [-100] * padding


def check_out(folder, shards):
    import torch
    from datasets import Features, List, Value, load_dataset
    from datasets.distributed import split_dataset_by_node
    from torch.utils.data import DataLoader
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    run("inspect", "--verify", shards)
    want = expected(shards)
    collator = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    packed = padded = 0
    for bucket in sorted(glob.glob(shards + "/D_*"), key=lambda d: int(d.rsplit("_", 1)[1])):
        name = os.path.basename(bucket)
        rows = want[2**int(name[2:])]
        files = sorted(glob.glob(bucket + "/*.parquet"))
        data = load_dataset("parquet", data_files=files, split="train", cache_dir=folder + "/cache")
        columns = ("input_ids", "labels", "seq_lengths", "position_ids")
        result(data.features == Features({c: List(Value("int32")) for c in columns}), name + ": features")
        good = len(data) == len(rows)
        for got, (tokens, lengths, padding) in zip(data, rows):
            packed += len(lengths) > 1
            padded += padding > 0
            good = good and got["input_ids"] == tokens and got["seq_lengths"] == lengths and \
                got["labels"] == labels_of(tokens, lengths, padding) and \
                got["position_ids"] == [i for n in lengths for i in range(n)]
        result(good, "%s: datasets, every token of %d sequences in %d shards" % (name, len(rows), len(files)))
        good = True
        for i in range(0, len(rows), 7):
            some = rows[i:i + 7]
            out = collator([data[k] for k in range(i, i + len(some))])
            flat = [t for tokens, _, _ in some for t in tokens]
            lengths = [n for _, l, _ in some for n in l]
            labels = [t for row in some for t in labels_of(*row)]
            good = good and out["input_ids"].tolist() == [flat] and out["labels"].tolist() == [labels] and \
                out["position_ids"].tolist() == [[i for n in lengths for i in range(n)]] and \
                out["cu_seq_lens_q"].tolist() == [0, *torch.tensor(lengths).cumsum(0).tolist()]
        result(good, name + ": TRL's collator, every token, label and boundary")
    result(packed > 0 and padded > 0, "%d packed sequences, %d with padding" % (packed, padded))

    name, rows = max(((len(r[0][0]), r) for r in want.values()), key=lambda x: len(x[1]))
    files = sorted(glob.glob("%s/D_%d/*.parquet" % (shards, name.bit_length() - 1)))
    all_of_them = sorted(r[0] for r in rows)
    for streaming in (True, False):
        data = load_dataset("parquet", data_files=files, split="train", streaming=streaming, cache_dir=folder + "/cache")
        seen = []
        for rank in range(2):
            part = split_dataset_by_node(data, rank=rank, world_size=2)
            loader = DataLoader(part, batch_size=None if streaming else 4, num_workers=2, collate_fn=keep)
            for batch in loader:
                seen += [r["input_ids"] for r in (batch if isinstance(batch, list) else [batch])]
        result(sorted(seen) == all_of_them, "2 ranks of 2 workers see each of %d sequences once%s" %
               (len(rows), ", streaming" if streaming else ""))


def check_documents(folder):
    from datasets import Features, List, Value, load_dataset
    made = os.path.join(folder, "whole")
    stream = run("tokenize", "-q", os.path.join(folder, "out.jsonl"))
    run("shuffle", "-q", "--documents", "--order", "keep", "--format", "parquet", "--shard-size", "60K", "-o", made, stdin=stream)
    run("inspect", "--verify", made)
    files = sorted(glob.glob(made + "/documents/*.parquet"))
    data = load_dataset("parquet", data_files=files, split="train", cache_dir=folder + "/cache")
    want = [r["tokens"] for r in records(stream)]
    result(data.features == Features({"input_ids": List(Value("int32"))}) and data["input_ids"][:] == want and len(files) > 3,
           "whole documents: datasets, every token of %d in %d shards" % (len(want), len(files)))


def check_metadata(folder):
    """Columns of metadata: datasets has their types, and the values of the records."""
    from datasets import List, Value, load_dataset
    rows = [{"text": "text %d" % i, "id": "i%d" % i, "lang": [None, "en", "zh"][i % 3], "n": [None, 7][i % 2], "q": i / 8} for i in range(40)]
    stream = run("tokenize", "-q", "-t", "bytes", "--id-field", "id", "--metadata", "lang,n=u8,q=f32", "-",
                 stdin="".join(json.dumps(r) + "\n" for r in rows).encode())
    types = {"lang": Value("string"), "n": Value("uint8"), "q": Value("float32")}
    for name, made, options in (("documents", stream, ["--documents"]), ("packed", run("pack", "-q", "--length", "64", stdin=stream), [])):
        where = "%s/metadata-%s" % (folder, name)
        run("shuffle", "-q", "--format", "parquet", *options, "-o", where, stdin=made)
        data = load_dataset("parquet", data_files=glob.glob(where + "/*/*.parquet"), split="train", cache_dir=folder + "/cache")
        result(all(data.features[k] == (t if options else List(t)) for k, t in types.items()), "metadata of %s: datasets has the types" % name)
        of = {r["id"]: r for r in rows}
        want = [[of[s["id"]] if "id" in s else {} for s in json.loads(line)["segments"]] for line in run("inspect", "--records", where).splitlines()]
        got = {k: [x if isinstance(x, list) else [x] for x in data[k]] for k in types}
        result(len(want) > 1 and all(got[k] == [[r.get(k) for r in q] for q in want] for k in types), "metadata of %s: and the values" % name)


def keep(x):
    return x


# ---- the recipe ----

def check_recipe(folder, rows):
    import duckdb

    page = " ".join(open(os.path.join(HERE, "../../man/sluice.7")).read().split())  # the page may break its lines
    recipe = "COPY (SELECT text FROM \\(aqcorpus.parquet\\(aq) TO \\(aq/dev/stdout\\(aq (FORMAT json)"
    result(recipe in page, "the recipe is in sluice(7)")
    path = os.path.join(folder, "corpus.parquet")
    kept = [r["text"] or "x" for r in rows]
    duckdb.execute("CREATE OR REPLACE TABLE t AS SELECT unnest(?) AS text", [kept])
    duckdb.execute("COPY t TO '%s' (FORMAT parquet)" % path)
    command = recipe.replace("\\(aq", "'")
    p = subprocess.run([sys.executable, "-c", "import duckdb, sys; duckdb.execute(sys.argv[1])", command], cwd=folder,
                       capture_output=True, check=True)
    got = [r["tokens"] for r in records(run("tokenize", "-t", "bytes", "-", stdin=p.stdout))]
    want = os.path.join(folder, "recipe.jsonl")
    with open(want, "w") as f:
        for text in kept:
            f.write(json.dumps({"text": text}) + "\n")
    result(got == [d[3] for d in documents(want)], "duckdb as a pipe: %d documents, in order" % len(got))


def main():
    try:
        import datasets, duckdb, pyarrow, torch, trl  # noqa: F401
    except ImportError as e:
        print("skip readers_parquet: %s (make judges)" % e)
        return 0
    folder = tempfile.mkdtemp(prefix="sluice-parquet.")
    os.environ["HF_HOME"] = folder + "/hf"
    try:
        rows = make_rows(folder)
        check_recipe(folder, rows)
        p = subprocess.run([BIN + "tokenize", "--format", "parquet", "-o", os.devnull, os.devnull], capture_output=True, text=True)
        if "has no Parquet" in p.stderr:
            print("skip readers_parquet: this build has no Parquet (make arrow)")
            return int(failed)
        check_in(folder, rows)
        check_damage(folder)
        check_out(folder, make_set(folder, rows))
        check_documents(folder)
        check_metadata(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
