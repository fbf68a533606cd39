"""Shared by the judges of shard formats: sets of real text, and their contents according to sluice."""
import fcntl
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("BIN", "build/bin")) + "/" + os.environ.get("PROGRAM_PREFIX", "")
JUDGES = os.path.abspath(os.environ.get("O", "build")) + "/judges"
NAME = os.path.basename(sys.argv[0]).removesuffix(".py")
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + NAME + ": " + what, flush=True)


def streaming():
    """The package mosaicml-streaming, for this process alone until it ends.

    Its data sets number their shared memory by what is free when they look, and two processes that look at once take
    the same number. Names that an earlier process left are removed first.
    """
    import streaming
    if not hasattr(streaming, "sluice_lock"):
        streaming.sluice_lock = open("/dev/shm/sluice-judges.lock", "w")
        fcntl.flock(streaming.sluice_lock, fcntl.LOCK_EX)
    streaming.base.util.clean_stale_shared_memory()
    return streaming


def run(*argv, stdin=None):
    return subprocess.run([BIN + argv[0], *argv[1:]], input=stdin, stdout=subprocess.PIPE, check=True).stdout


def documents(n_tok=700000):
    """A stream of real documents."""
    corpus = JUDGES + "/corpus/docs-en-0000.jsonl.zst"
    return run("tokenize", "-q", "--max-tokens", str(n_tok), corpus)


def packed(stream, *options):
    """Pieces of powers of two, what is left packed."""
    return run("pack", "-q", stdin=run("decompose", "-q", "--min", "64", "--max", "2048", *options, stdin=stream))


def shards(stream, folder, *options):
    run("shuffle", "-q", "--seed", "3", "-o", folder, *options, stdin=stream)
    run("inspect", "--verify", folder)
    return folder


def records(folder, *options):
    """(ids, lengths of segments) of each sequence, in the order of the shards."""
    for line in run("inspect", "-q", "--records", *options, folder).splitlines():
        r = json.loads(line)
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
