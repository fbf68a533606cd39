"""Are the ids that other people's tools wrote ours? For tests/bench/shards; reads what they wrote with their readers or from its bytes.

truth(): the ids of our tokenize. check(): (ids that a trainer gets, what is to be said); a difference raises Differs.
"""
import collections
import csv
import glob
import gzip
import hashlib
import json
import os
import sys
import tarfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "props"))
import tokstream  # noqa: E402

BLOCK = 2048


class Differs(Exception):
    pass


class Truth:
    """ids: u16, all documents; end: their ends; file: the number of each one's file."""

    def __init__(self, path):
        parts, end, file, n = [], [], [], 0
        with open(path, "rb") as f:
            for q in tokstream.Reader(f, hashes=False):
                parts.append(np.frombuffer(q.tokens, dtype="u%d" % q.tokens.itemsize))
                n += len(q.tokens)
                end.append(n)
                file.append(q.segments[0].source)
        self.ids = np.concatenate(parts).astype("<u2")
        self.end, self.file = np.array(end), np.array(file)
        self.begin = np.concatenate([[0], self.end[:-1]])

    def documents(self):
        return (self.ids[a:b] for a, b in zip(self.begin, self.end))

    def of_files(self, numbers):
        return np.concatenate([self.ids[a:b] for n in numbers for a, b, f in zip(self.begin, self.end, self.file) if f == n] or [self.ids[:0]])


def same(a, b, what):
    if len(a) != len(b) or not np.array_equal(a, b):
        raise Differs("%s: %d ids, ours %d" % (what, len(a), len(b)))


def counted(documents):
    return collections.Counter(hashlib.blake2b(np.ascontiguousarray(d).tobytes(), digest_size=16).digest() for d in documents)


def same_documents(theirs, ours, what):
    a, b = counted(theirs), counted(ours)
    if a != b:
        raise Differs("%s: %d documents of theirs are not ours, %d of ours not theirs" % (what, (a - b).total(), (b - a).total()))


def tokenizer(out, facts, t, files):
    if facts["ids"] != len(t.ids):
        raise Differs("tokenizer: %d ids, ours %d" % (facts["ids"], len(t.ids)))
    return len(t.ids)


def megatron(out, facts, t, files):
    with open(os.path.join(out, "x.idx"), "rb") as f:
        index = f.read()
    n = int(np.frombuffer(index, "<u8", 1, 18)[0])
    same(np.frombuffer(index, "<i4", n, 34), np.diff(t.end, prepend=0), "megatron's lengths")
    same(np.fromfile(os.path.join(out, "x.bin"), "<u2"), t.ids, "megatron")
    return len(t.ids)


def datatrove(out, facts, t, files):
    documents = []
    for path in glob.glob(os.path.join(out, "*.ds")):
        ids, end = np.fromfile(path, "<u2"), np.fromfile(path + ".index", "<u8")
        documents += np.split(ids, end[:-1].astype(np.int64))
    same_documents(documents, t.documents(), "datatrove")
    return sum(map(len, documents))


def dolma(out, facts, t, files):
    """t: of texts without white space around them"""
    documents = []
    for path in glob.glob(os.path.join(out, "tokens", "*.npy")):
        ids = np.fromfile(path, "<u2")
        with gzip.open(path[:-4] + ".csv.gz", "rt") as f:
            documents += [ids[int(a):int(b)] for a, b, *_ in csv.reader(f)]
    same_documents(documents, t.documents(), "dolma")
    return sum(map(len, documents))


def mds(out, facts, t, files):
    import zstandard
    from streaming import LocalDataset
    for path in glob.glob(os.path.join(out, "0*", "*.mds.zstd")):  # LocalDataset takes plain ones
        with open(path, "rb") as f, open(path[:-5], "wb") as g:
            zstandard.ZstdDecompressor().copy_stream(f, g)
    n, folders = 0, sorted(glob.glob(os.path.join(out, "0*")))
    for i, folder in enumerate(folders):
        d = LocalDataset(local=folder)
        theirs = np.concatenate([d[k]["tokens"] for k in range(len(d))] or [np.zeros(0, np.int32)])
        ours = t.of_files(range(i, len(files), len(folders)))
        same(theirs, ours[:len(ours) // BLOCK * BLOCK], "mds")
        n += len(theirs)
    return n


def litdata(out, facts, t, files):
    with open(os.path.join(out, "set", "index.json")) as f:
        chunks = json.load(f)["chunks"]
    ranks = collections.defaultdict(dict)
    for c in chunks:
        rank, k = c["filename"].split(".")[0].split("-")[1:3]
        with open(os.path.join(out, "set", c["filename"]), "rb") as f:
            data = f.read()
        n = int(np.frombuffer(data, "<u4", 1)[0])
        at = np.frombuffer(data, "<u4", n + 1, 4)
        ranks[int(rank)][int(k)] = np.frombuffer(data[int(at[0]):int(at[-1])], "<i4")
    left = {i: t.of_files([i]) for i in range(len(files))}
    for r in ranks:  # which files a worker had is its own choice
        theirs = np.concatenate([ranks[r][k] for k in sorted(ranks[r])])
        while len(theirs):
            i = next((i for i, x in left.items() if len(x) and np.array_equal(theirs[:len(x)], x)), None)
            if i is None:
                raise Differs("litdata: worker %d: %d ids are none of a file's of ours" % (r, len(theirs)))
            theirs = theirs[len(left.pop(i)):]
    if left:
        raise Differs("litdata: %d files are in no chunk" % len(left))
    return sum(c["dim"] // BLOCK * BLOCK for c in chunks)


def reference(out, facts, t, files):
    """Each piece is somewhere within one of our documents: found by a hash of its first 257 ids, compared whole."""
    window, odd = 257, 0x9E3779B97F4A7C15
    ids = t.ids.astype(np.uint64) + np.uint64(1)
    power = np.empty(len(ids), np.uint64)
    power[0] = 1
    if len(ids) > 1:
        power[1:] = odd
        np.multiply.accumulate(power, out=power)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(ids * power, dtype=np.uint64)])
    inverse = np.full(len(ids), pow(odd, -1, 1 << 64), np.uint64)
    inverse[0] = 1
    np.multiply.accumulate(inverse, out=inverse)
    begins = len(ids) - window + 1
    if begins <= 0:
        return 0
    found = (total[window:] - total[:begins]) * inverse[:begins]
    order = np.argsort(found, kind="stable")
    found, last = found[order], np.repeat(t.end, np.diff(t.end, prepend=0))
    n = 0
    for path in glob.glob(os.path.join(out, "D_*", "*.tar")):
        with tarfile.open(path) as tar:
            for m in tar:
                piece = np.array(json.loads(tar.extractfile(m).read()), np.uint64)
                h = ((piece[:window] + np.uint64(1)) * power[:window]).sum(dtype=np.uint64)
                for at in order[np.searchsorted(found, h):np.searchsorted(found, h, "right")]:
                    if at + len(piece) <= last[at] and np.array_equal(ids[at:at + len(piece)], piece + np.uint64(1)):
                        break
                else:
                    raise Differs("reference: %s of %s is in none of our documents" % (m.name, path))
                n += len(piece)
    if n != len(ids) - facts["tails"] - facts["short"]:
        raise Differs("reference: %d ids in its shards, %d expected" % (n, len(ids) - facts["tails"] - facts["short"]))
    return n


def check(name, out, facts, t, files):
    return globals()[name](out, facts, t, files)
