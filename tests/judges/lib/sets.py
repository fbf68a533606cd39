"""Shared by the judges of shard formats: real text, sets of it, their contents according to sluice, and the ids that a
loader must give.
"""
import collections
import fcntl
import glob
import io
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(os.path.join(HERE, "../../.."))
BIN = os.path.abspath(os.environ.get("BIN", "build/bin")) + "/" + os.environ.get("PROGRAM_PREFIX", "")
JUDGES = os.path.abspath(os.environ.get("O", "build")) + "/judges"
CORPUS = JUDGES + "/corpus"
NAME = os.path.basename(sys.argv[0]).removesuffix(".py")
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + NAME + ": " + what, flush=True)


def streaming_lock():
    """A file that is open while its holder alone may use the package mosaicml-streaming: its data sets number their
    shared memory by what is free when they look, and two processes that look at once take the same number."""
    f = open("/dev/shm/sluice-judges.lock", "w")
    fcntl.flock(f, fcntl.LOCK_EX)
    return f


def streaming():
    """The package mosaicml-streaming, for this process alone until it ends. Names that an earlier process left are
    removed first."""
    import streaming
    if not hasattr(streaming, "sluice_lock"):
        streaming.sluice_lock = streaming_lock()
    streaming.base.util.clean_stale_shared_memory()
    return streaming


def run(*argv, stdin=None):
    return subprocess.run([BIN + argv[0], *argv[1:]], input=stdin, stdout=subprocess.PIPE, check=True).stdout


def texts(n_byte):
    """Records of real text, about n_byte of it, from each of the corpus's files alike; made up where there are none."""
    files = sorted(glob.glob(CORPUS + "/*.jsonl.zst"))
    if not files:
        out = subprocess.run([sys.executable, TOP + "/tests/cli/make_corpus.py", "/dev/stdout", str(n_byte), "3"],
                             stdout=subprocess.PIPE, check=True).stdout
        return [json.loads(line)["text"] for line in out.splitlines()]
    import zstandard
    found = []
    for path in files:
        n = 0
        with open(path, "rb") as f:
            for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(f), encoding="utf-8"):
                found.append(json.loads(line)["text"])
                n += len(found[-1].encode())
                if n > n_byte / len(files):
                    break
    return found


def write_texts(path, found):
    with open(path, "w") as f:
        for text in found:
            f.write(json.dumps({"text": text}) + "\n")


def documents(n_tok=700000):
    """A stream of real documents."""
    return run("tokenize", "-q", "--max-tokens", str(n_tok), CORPUS + "/docs-en-0000.jsonl.zst")


def packed(stream, *options):
    """Pieces of powers of two, what is left packed."""
    return run("pack", "-q", stdin=run("decompose", "-q", "--min", "64", "--max", "2048", *options, stdin=stream))


def shards(stream, folder, *options):
    run("shuffle", "-q", "--seed", "3", "-o", folder, *options, stdin=stream)
    run("inspect", "--verify", folder)
    return folder


def records(*argv):
    return [json.loads(line) for line in run("inspect", "--records", "-q", *argv).splitlines()]


def sequences(folder, *options):
    """(ids, lengths of segments) of each sequence, in the order of the shards."""
    for r in records(*options, folder):
        yield r["tokens"], [s["length"] for s in r["segments"]]


def buckets(folder):
    """Names of its buckets, ascending by length."""
    return [b["name"] for b in json.load(open(folder + "/report.json"))["buckets"]]


def widened(stream):
    """Packed sequences of the same documents with ids of four bytes, some of them past 65536."""
    eos = json.loads(run("inspect", "--json", stdin=stream))["eos_id"] + 60000
    with tempfile.NamedTemporaryFile(suffix=".npy") as f:
        for line in run("inspect", "--records", stdin=stream).splitlines():
            ids = [i + 60000 for i in json.loads(line)["tokens"]]
            f.write(struct.pack("<%dI" % len(ids), *ids))
        f.flush()
        return packed(None, "--eos-id", str(eos), "--token-bytes", "4", "--vocab-size", "100000", f.name)


def make_set(folder, kind, texts_path, label, shard_sequences, options=()):
    """Documents, pieces, packed tails, shards: a folder. Returns it and its records by bucket."""
    pieces = run("decompose", "-q", "--min", "64", "--max", "1024", *(["--label-token"] if label else []),
                 stdin=run("tokenize", "-q", "-t", "bytes", texts_path))
    run("shuffle", "-q", "--seed", "4", "--format", kind, "-o", folder, "--shard-sequences", str(shard_sequences), *options,
        stdin=run("pack", "-q", "--length", "256", "--fill", "pad", stdin=pieces))
    return by_bucket(folder)


def by_bucket(folder):
    buckets = collections.defaultdict(list)
    extra = len(records(folder)[0]["tokens"]) % 2
    for r in records(folder):
        buckets["D_%d" % (len(r["tokens"]) - extra).bit_length().__sub__(1)].append(r)
    return dict(buckets)


def read_by_ranks(dataset, key, ranks=2, workers=2, seed=5):
    """What 2 ranks with 2 workers each are given, as torch's users do it: DistributedSampler, shuffling, DataLoader."""
    import torch
    seen = []
    for rank in range(ranks):
        sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=ranks, rank=rank, shuffle=True, seed=seed)
        loader = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=workers,
                                             collate_fn=lambda samples: [key(s) for s in samples])
        seen += [s for batch in loader for s in batch]
    return seen


def once(seen, want, ranks=2):
    """Every one exactly once; but a sampler that hands each rank as many repeats its first ones where they do not divide."""
    extra = collections.Counter(seen) - collections.Counter(want)
    missing = collections.Counter(want) - collections.Counter(seen)
    return not missing and sum(extra.values()) == -len(want) % ranks


def finish():
    sys.exit(failed)
