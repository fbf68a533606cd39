#!/usr/bin/env python3
"""The line on real text, proved from the outside.

    corpus.py CORPUS [-M 64M,1G] [-t TOKENIZER] [--sample RATE] [--work DIR] [--bin DIR] [--keep]

CORPUS is a folder of *.jsonl.zst (tests/corpus/make-corpus). For each -M all five programs run in one pipe
from it to WebDataset shards. What is proved each time:

- every program ends with 0; the equation of conservation (DESIGN.md, Conservation) holds in every report, and
  each "in" is the last "out"; documents in are the corpus's records;
- peak memory is at most -M + 64 MiB, by the program's own report and by the kernel's (wait4);
- what does not fit in -M was spilled;
- `inspect --verify` passes on the packed stream and on the shards; checksums before and after shuffle are equal;
- the shards are the same bytes for every -M;
- each sequence in the shards is where its segments say: its ids are those that Hugging Face's `tokenizers`
  gives for the raw record at that byte offset of that file (EOS at the end), at that offset. Segments are read by
  tests/props/tokstream.py, the raw records by `zstd -dc`: no code of sluice's takes part;
- no token of a document is there twice, and all of a document is there or nothing of it.

--sample RATE compares only the documents whose hash falls below RATE (default 1: all).
Without the package `tokenizers` (or with -t bytes) ids are compared with the text's bytes.
Prints "ok …", "not ok …", "skip …" lines, figures as "# …"; exit 1 if anything failed.
"""
import argparse
import array
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "props"))
import tokstream  # noqa: E402

PROGRAMS = ("tokenize", "dedup", "decompose", "pack", "shuffle")
failed = 0


def result(good, what, why=""):
    global failed
    if not good:
        failed += 1
        for line in str(why).splitlines()[:6]:
            print("  " + line[:400])
    print(("ok " if good else "not ok ") + "corpus: " + what, flush=True)
    return good


def figure(text):
    print("# " + text, flush=True)


def size(text):
    m = re.fullmatch(r"(\d+)([KMGT]?)", text)
    return int(m.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m.group(2)]


def run_line(args, memory, folder):
    """All programs in one pipe; reports in FOLDER/*.json, shards in FOLDER/shards, pack's stream in FOLDER/4.tks.
    Returns (statuses, peak RSS of each by wait4, seconds)."""
    common = ["-M", memory]
    if args.threads:
        common += ["-T", args.threads]
    own = {
        "tokenize": ["-t", args.tokenizer, "--id-field", "id", "--domain-field", "domain"] + args.files,
        "dedup": ["--exact"],
        "decompose": ["--label-token", "--min", str(args.min), "--max", str(args.max)],
        "pack": [],
        "shuffle": ["--seed", "1", "-o", folder + "/shards", "--format", "wds", "--last", "keep"],
    }
    begin = time.time()
    prev, procs = subprocess.DEVNULL, []
    for name in PROGRAMS:
        argv = [os.path.join(args.bin, name)] + common + ["--tmpdir", args.work, "--stats",
                                                         "%s/%s.json" % (folder, name)] + own[name]
        p = subprocess.Popen(argv, stdin=prev, stdout=subprocess.DEVNULL if name == "shuffle" else subprocess.PIPE,
                             stderr=open("%s/%s.err" % (folder, name), "w"))
        if prev is not subprocess.DEVNULL:
            prev.close()
        procs.append(p)
        prev = p.stdout
        if name == "pack":
            tee = subprocess.Popen(["tee", folder + "/4.tks"], stdin=prev, stdout=subprocess.PIPE)
            prev.close()
            prev = tee.stdout
    status, rss, cpu = [], [], []
    for p in procs:
        _, st, usage = os.wait4(p.pid, 0)
        status.append(os.waitstatus_to_exitcode(st))
        rss.append(usage.ru_maxrss * 1024)
        cpu.append(usage.ru_utime + usage.ru_stime)
        p.returncode = status[-1]
    tee.wait()
    return status, rss, cpu, time.time() - begin


def check_reports(folder, tag, memory, status, rss, cpu, seconds, n_record):
    reports = []
    for name, st in zip(PROGRAMS, status):
        err = open("%s/%s.err" % (folder, name)).read()
        if not result(st == 0, "%s %s ends with 0" % (tag, name), "%d: %s" % (st, err)):
            return None
        reports.append(json.load(open("%s/%s.json" % (folder, name))))
    last = None
    for name, r, peak in zip(PROGRAMS, reports, rss):
        bad = []
        for what in ("tokens", "sequences", "documents"):
            d = r[what]
            left = d["in"] + d["created"] + d["repeated"] + d.get("padding", 0)
            right = d["out"] + sum(d["dropped"].values())
            if left != right:
                bad.append("%s: %d in, %d out and dropped" % (what, left, right))
            if last is not None and last[what]["out"] != d["in"]:
                bad.append("%s: in %d, the last program's out was %d" % (what, d["in"], last[what]["out"]))
        result(not bad, "%s %s: the books" % (tag, name), "\n".join(bad))
        limit = size(memory) + (64 << 20)
        result(r["peak_rss_bytes"] <= limit and peak <= limit,
               "%s %s: peak memory %.1f MiB (by the kernel %.1f) is within %s + 64 MiB"
               % (tag, name, r["peak_rss_bytes"] / 2**20, peak / 2**20, memory))
        last = r
    result(n_record == reports[0]["documents"]["in"] == reports[0]["sequences"]["in"],
           "%s tokenize: documents in are the %d records" % (tag, n_record), reports[0]["documents"]["in"])
    tok_out = reports[-1]["tokens"]["out"]
    spilled = {n: r["spill_bytes"] for n, r in zip(PROGRAMS, reports) if r["spill_bytes"]}
    if tok_out * 2 > size(memory):
        result(spilled.get("shuffle", 0) > 0, "%s what exceeds the budget was spilled: %s" % (tag, spilled), spilled)
    text = reports[0]["tokens"]["in"]
    for name, r, c in zip(PROGRAMS, reports, cpu):
        figure("%s %-9s %8.1f s alive, %8.1f s of CPU, %6.1f Mtok/s of CPU, spilled %.0f MiB"
               % (tag, name, r["seconds"], c, r["tokens"]["in"] / 1e6 / max(c, 1e-9), r["spill_bytes"] / 2**20))
    figure("%s the line: %.1f s, %.1f M text tokens, %.2f Mtok/s" % (tag, seconds, text / 1e6, text / 1e6 / seconds))
    return reports


def digest(folder):
    h = hashlib.sha256()
    for d, dirs, files in sorted(os.walk(folder)):
        dirs.sort()
        for f in sorted(files):
            if f == "report.json":
                continue
            h.update(os.path.relpath(os.path.join(d, f), folder).encode() + b"\0")
            with open(os.path.join(d, f), "rb") as g:
                while True:
                    b = g.read(1 << 20)
                    if not b:
                        break
                    h.update(b)
    return h.hexdigest()


def sampled(key, rate):
    if rate >= 1:
        return True
    x = hashlib.blake2b(("%d:%d" % key).encode(), digest_size=8).digest()
    return int.from_bytes(x, "little") < rate * 2**64


def shard_sequences(folder):
    """(segments, ids) of each sequence of the set: rows from segments/D_i.tks, ids from the tars, in the same order.
    Yields also the reader, for names. Checks counts against the manifests."""
    for d in sorted(glob.glob(folder + "/D_*"), key=lambda p: int(p.rsplit("_", 1)[1])):
        i = int(d.rsplit("_", 1)[1])
        reader = tokstream.Reader(open("%s/segments/D_%d.tks" % (folder, i), "rb"))
        rows = iter(reader)
        manifest = [json.loads(x) for x in open(d + "/manifest.jsonl")]
        n = 0
        for m in manifest:
            with tarfile.open("%s/%s.tar" % (d, m["shard"])) as tar:
                count = 0
                for member in tar:
                    ids = array.array("I", json.loads(tar.extractfile(member).read()))
                    q = next(rows)
                    yield i, reader, q, ids
                    count += 1
                if count != m["num_sequences"]:
                    raise ValueError("%s has %d sequences, its manifest says %d" % (m["shard"], count, m["num_sequences"]))
                n += count
        if next(rows, None) is not None:
            raise ValueError("D_%d has more segment rows than sequences" % i)


def expected_ids(args, wanted, eos, source_path):
    """{(source, document): array of ids} of the wanted documents, from the raw text."""
    tokenizer = None
    if args.tokenizer != "bytes":
        import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(args.tokenizer)
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
    out, n_byte = {}, 0
    begin = time.time()
    for source, path in sorted(source_path.items()):
        p = subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE) if path.endswith(".zst") else None
        f = p.stdout if p else open(path, "rb")
        at, keys, texts = 0, [], []

        def flush():
            if tokenizer is None:
                for k, t in zip(keys, texts):
                    out[k] = array.array("I", t.encode("utf-8"))
            elif texts:
                for k, e in zip(keys, tokenizer.encode_batch(texts, add_special_tokens=False)):
                    out[k] = array.array("I", e.ids)
            keys.clear()
            texts.clear()

        for line in f:
            if (source, at) in wanted:
                t = json.loads(line)["text"]
                n_byte += len(t.encode("utf-8"))
                keys.append((source, at))
                texts.append(t)
                if len(texts) >= 256:
                    flush()
            at += len(line)
        flush()
        if p:
            p.wait()
    seconds = time.time() - begin
    figure("reference: %d documents, %.1f MB of text in %.1f s (%.2f MB/s on %d cores, zstd and JSON included)"
           % (len(out), n_byte / 1e6, seconds, n_byte / 1e6 / max(seconds, 1e-9), os.cpu_count()))
    if eos is not None:
        for ids in out.values():
            ids.append(eos)
    return out


def trace(args, folder, tag):
    """Every sequence's tokens, found again in the raw text."""
    sources, wanted, sequences, padding_id = {}, set(), [], None
    n_seq, wrong_len, bad = 0, 0, []
    try:
        for i, reader, q, ids in shard_sequences(folder + "/shards"):
            n_seq += 1
            if len(ids) != 2**i + 1 or q.length != len(ids):
                wrong_len += 1
            at, keep = 0, []
            for s in q.segments:
                if s.source == tokstream.PADDING:
                    padding_id = reader.header.pad
                    if any(x != padding_id for x in ids[at:at + s.length]):
                        bad.append("padding is not the pad id")
                else:
                    sources.setdefault(s.source, reader.sources[s.source].decode())
                    if sampled((s.source, s.document), args.sample):
                        wanted.add((s.source, s.document))
                        keep.append((s.source, s.document, s.offset, ids[at:at + s.length]))
                at += s.length
            sequences += keep
        header = reader.header
    except (ValueError, tokstream.StreamError, StopIteration) as e:
        result(False, "%s shards and their segments are read" % tag, e)
        return
    result(n_seq > 0 and wrong_len == 0, "%s %d sequences, each of 2^i+1 ids" % (tag, n_seq), "%d are not" % wrong_len)
    eos = None if header.eos == tokstream.NONE64 else header.eos
    path = {}
    for ordinal, name in sources.items():
        found = [p for p in glob.glob(args.corpus + "/**", recursive=True) if p.endswith("/" + os.path.basename(name))]
        if len(found) == 1:
            path[ordinal] = found[0]
    result(len(path) == len(sources), "%s every source name leads to a file" % tag, sources)
    want = expected_ids(args, wanted, eos, path)
    result(len(want) == len(wanted), "%s every document is a record's byte offset" % tag,
           sorted(wanted - set(want))[:5])
    covered, n_tok = {}, 0
    for source, document, offset, ids in sequences:
        doc = want.get((source, document))
        if doc is None:
            continue
        n_tok += len(ids)
        if doc[offset:offset + len(ids)] != ids:
            bad.append("source %d document %d offset %d: %s, must be %s"
                       % (source, document, offset, list(ids[:8]), list(doc[offset:offset + 8])))
        covered.setdefault((source, document), []).append((offset, len(ids)))
    result(not bad and n_tok > 0, "%s %d tokens of %d segments are those of the raw records" % (tag, n_tok, len(sequences)),
           "%d segments are not\n%s" % (len(bad), "\n".join(bad[:4])))
    holes = 0
    for key, parts in covered.items():
        parts.sort()
        at = 0
        for offset, n in parts:
            if offset != at:
                holes += 1
                break
            at += n
        else:
            holes += at != len(want[key])
    result(holes == 0, "%s each of %d documents is there from its first to its last token, once" % (tag, len(covered)),
           "%d are not" % holes)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("corpus")
    p.add_argument("-M", dest="memory", default="64M,1G")
    p.add_argument("-T", dest="threads")
    p.add_argument("-t", dest="tokenizer", default="bytes")
    p.add_argument("--sample", type=float, default=1.0)
    p.add_argument("--min", type=int, default=256)
    p.add_argument("--max", type=int, default=8192)
    p.add_argument("--work", default=None)
    p.add_argument("--bin", default=os.environ.get("BIN", os.path.join(HERE, "../../build/bin")))
    p.add_argument("--keep", action="store_true")
    args = p.parse_args()
    args.corpus = os.path.abspath(args.corpus)
    args.bin = os.path.abspath(args.bin)
    if args.tokenizer != "bytes":
        try:
            import tokenizers  # noqa: F401
        except ImportError:
            print("skip corpus: ids of %s: no package tokenizers" % args.tokenizer)
            args.tokenizer = "bytes"
    made = args.work is None
    args.work = os.path.abspath(args.work or "/var/tmp/sluice-corpus-%d" % os.getpid())
    os.makedirs(args.work, exist_ok=True)
    files = args.files = sorted(glob.glob(args.corpus + "/*.jsonl*"))
    n_record = 0
    for f in files:
        cat = subprocess.Popen(["zstd", "-dcq", f] if f.endswith(".zst") else ["cat", f], stdout=subprocess.PIPE)
        n_record += int(subprocess.run(["wc", "-l"], stdin=cat.stdout, stdout=subprocess.PIPE, check=True).stdout)
        if cat.wait() != 0:
            sys.exit("%s cannot be read" % f)
    figure("%d files, %.1f MB as stored, %d records" % (len(files), sum(map(os.path.getsize, files)) / 1e6, n_record))
    # All lines first, while this process is small: Linux hands its peak memory on to what it starts.
    first, first_folder = None, None
    for memory in args.memory.split(","):
        folder, tag = "%s/M%s" % (args.work, memory), "-M %s" % memory
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        status, rss, cpu, seconds = run_line(args, memory, folder)
        if check_reports(folder, tag, memory, status, rss, cpu, seconds, n_record) is None:
            continue
        seen = []
        for what in ("4.tks", "shards"):
            v = subprocess.run([args.bin + "/inspect", "--verify", folder + "/" + what], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
            result(v.returncode == 0, "%s inspect --verify %s" % (tag, what), v.stderr.decode())
            j = subprocess.run([args.bin + "/inspect", "--json", folder + "/" + what], stdout=subprocess.PIPE)
            d = json.loads(j.stdout) if j.returncode == 0 else {}
            seen.append([d.get(k) for k in ("checksum", "tokens", "sequences", "segments", "documents")])
        result(seen[0] == seen[1] and seen[0][0], "%s checksum and counts are the same before shuffle and in the shards" % tag,
               seen)
        all_bytes = digest(folder + "/shards") + digest_file(folder + "/4.tks")
        if first is None:
            first, first_folder = all_bytes, folder
        else:
            result(all_bytes == first, "%s the same bytes as with the first -M" % tag)
            if not args.keep:
                shutil.rmtree(folder)
    if first_folder:
        trace(args, first_folder, "-M " + args.memory.split(",")[0])
        if not args.keep:
            shutil.rmtree(first_folder)
    if made and not args.keep:
        shutil.rmtree(args.work)
    figure("this script's own peak memory: %.0f MiB" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    sys.exit(1 if failed else 0)


def digest_file(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while True:
            b = f.read(1 << 20)
            if not b:
                return h.hexdigest()
            h.update(b)


if __name__ == "__main__":
    main()
