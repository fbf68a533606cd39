"""inputs.py - random corpora for jobs.py: a few numbers decide every byte.

draw() chooses the numbers, make() writes the files. A corpus is texts (JSONL, plain files, tar, zip, compressed or
not) or ids that another tokenizer wrote (npy, Megatron, datatrove, MDS).
"""
import bz2
import gzip
import io
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli")]
import make_corpus  # noqa: E402
import make_index  # noqa: E402
import make_npy  # noqa: E402
import mds  # noqa: E402

KINDS = ("jsonl",) * 8 + ("text", "tar", "zip", "mixed", "npy", "megatron", "ds", "mds")
IDS = ("npy", "megatron", "ds", "mds")
SHAPES = ("mixed", "mixed", "tiny", "long", "copies", "near", "passages", "empty")
CODECS = {"gz": lambda b: gzip.compress(b, 1, mtime=0), "bz2": bz2.compress, "xz": lambda b: lzma.compress(b, preset=0)}
SUFFIX = {"zstd": "zst"}
BAD = (b"not json", b'{"text": 5}', b'{"no": "text"}', b"[1, 2]", b'{"text": "\\ud800"}', b'{"text": "\xff\xfe"}', b'{"text": "a"',
       b'{"text": "x", "score": "high"}', b'{"text": null}', b"\x00")
BAD_SPANS = (None, [], "[[0, 1]]", [[1, 0]], [[0, 10**9]], [[0, 2**64]], [0, 1], [[0.5, 1]])


def draw(rng):
    """The numbers of a corpus. About one in thirty is too large for the least memory."""
    size = rng.choices((0, 3000, 40000, 300000, 1500000, 12000000), (2, 24, 45, 20, 6, 3))[0]
    c = {"seed": rng.randrange(2**40), "kind": rng.choice(KINDS), "shape": rng.choice(SHAPES), "nested": rng.random() < 0.25,
         "bytes": rng.randrange(size // 2, size + 1), "files": rng.choice((1, 1, 2, 3, 5)), "bad": rng.random() < 0.12,
         "codec": rng.choice((None, None, None, "gz", "bz2", "xz", "zstd", "lz4"))}
    if size > 2000000:
        c.update(kind="jsonl", shape="wide", codec=None)
    if c["kind"] in IDS:
        c["bytes"] = min(c["bytes"], 300000)
    c["spans"] = c["kind"] == "jsonl" and rng.random() < 0.25
    return c


# ---- texts ----

def words(rng, n):
    """n words; some alphabets, code, control characters; paragraphs now and then."""
    out = rng.choices(make_corpus.WORDS, k=n)
    for i in range(12, n, 25):
        out[i] = "\n\n" if i % 2 else "w%d" % rng.randrange(10**6)
    return out


def length(rng, shape, left):
    """Words of the next document."""
    if shape in ("tiny", "wide", "empty"):
        return rng.randrange(1, 12)
    if shape == "long":
        return rng.choice((3, 40, max(left // 12, 1)))
    return 1 + rng.randrange(1 << rng.randrange(1, 11))


def texts(rng, shape, n_byte):
    """Documents as lists of words."""
    seen, n = [], 0
    while n < n_byte:
        roll = rng.random()
        w = words(rng, length(rng, shape, n_byte - n))
        if shape == "wide":
            w[0] = "%d" % n
        elif seen and roll < (0.4 if shape == "copies" else 0.05):
            w = list(rng.choice(seen))
        elif seen and roll < (0.6 if shape == "near" else 0.1):
            w = list(rng.choice(seen))
            for _ in range(rng.choice((1, 1, 2, 5))):
                w[rng.randrange(len(w))] = "x%d" % rng.randrange(5000)
        elif seen and roll < (0.8 if shape == "passages" else 0.15):
            for _ in range(rng.choice((1, 2, 4))):
                old, at = rng.choice(seen), rng.randrange(len(w) + 1)
                a = rng.randrange(len(old))
                w[at:at] = old[a:a + rng.choice((8, 30, 90))]
        elif roll > (0.6 if shape == "empty" else 0.98):
            w = [rng.choice(("", "", " ", "\n"))]
        if len(seen) < 400:
            seen.append(w)
        yield " ".join(w)
        n += sum(map(len, w)) + len(w) + 20


def spans(rng, text):
    """Ranges of characters: apart, side by side, empty, within each other, the whole text, none."""
    at = [rng.randrange(len(text) + 1) for _ in range(2 * rng.choice((0, 1, 1, 2, 5)))]
    if rng.random() < 0.5:
        at.sort()
    out = [sorted(at[i:i + 2]) for i in range(0, len(at), 2)]
    return out + [[0, len(text)]] * (rng.random() < 0.2)


def record(rng, number, text, bad, nested, trained=False):
    """A JSON record. A score may be missing, but not in all; another field is in bad records alone."""
    if trained and rng.random() < 0.5:
        text = text.replace(" ", "<|endoftext|>", 2)
    d = {"text": text}
    if trained:
        d["spans"] = rng.choice(BAD_SPANS) if bad and rng.random() < 0.05 else spans(rng, text)
    if not bad or rng.random() < 0.95:
        d["domain"] = rng.choice(("web", "web", "web", "code", "code", "ünï", ""))
    if not bad or rng.random() < 0.95:
        d["id"] = rng.choice((number, number / 7, number % 2 == 0, "d%d" % number, "repo%d/dir/%d.c" % (number % 7, number), "é" * (number % 40)))
    if rng.random() < 0.8:
        d["score"] = rng.choice((rng.random(), -rng.random() * 1e9, 0, 1, 0.5, None, rng.randrange(9)))
    if number % 4:
        d["lang"] = ("en", "größe", "zh", None)[number % 7 % 4]
    if number < 3 and d.get("score") is None:
        d["score"] = number
    if nested:
        d["meta"] = {"id": d.get("id"), "at.all": {k: d[k] for k in ("domain", "score", "spans", "lang") if k in d}}
    keys = sorted(d)
    rng.shuffle(keys)
    return json.dumps({k: d[k] for k in keys}, ensure_ascii=rng.random() < 0.5).encode()


def jsonl(rng, c, docs):
    lines = []
    for i, t in enumerate(docs):
        lines.append(record(rng, i, t, c["bad"], c["nested"], c.get("spans")))
        if c["bad"] and rng.random() < 0.02:
            lines.append(rng.choice(BAD))
        elif rng.random() < 0.005:
            lines.append(b"")
    return b"\n".join(lines) + (b"\n" if lines and rng.random() < 0.9 else b"")


def compress(name, data, codec, rng):
    """Writes NAME, or NAME.gz and so on; sometimes in two members."""
    if codec is None or (codec not in CODECS and not shutil.which(codec)):
        out = data
    else:
        name += "." + SUFFIX.get(codec, codec)
        f = CODECS.get(codec) or (lambda b: subprocess.run([codec, "-q", "-c", "-1"], input=b, stdout=subprocess.PIPE, check=True).stdout)
        at = rng.choice((0, len(data) // 2))
        out = f(data[:at]) + f(data[at:]) if at else f(data)
    with open(name, "wb") as file:
        file.write(out)
    return name


def archive(kind, name, members):
    b = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
            for n, t in members:
                z.writestr(zipfile.ZipInfo(n), t)
    else:
        with tarfile.open(fileobj=b, mode="w", format=tarfile.GNU_FORMAT) as z:
            for n, t in members:
                info = tarfile.TarInfo(n)
                info.size = len(t)
                z.addfile(info, io.BytesIO(t))
    with open(name, "wb") as f:
        f.write(b.getvalue())
    return name


def one_file(rng, c, kind, stem, docs):
    if kind == "text":
        os.makedirs(stem)
        for i, t in enumerate(docs[:80]):
            compress("%s/%03d.txt" % (stem, i), t.encode(), c["codec"] if i % 3 == 0 else None, rng)
    elif kind in ("tar", "zip"):
        members = [("d%d/%05d.txt" % (i % 5, i), t.encode()) for i, t in enumerate(docs)]
        if rng.random() < 0.4:  # files of records, of which some are compressed
            runs = [docs[i:i + 20] for i in range(0, len(docs), 20)]
            members = [("d%d/%05d.jsonl" % (i % 5, i), jsonl(rng, c, run)) for i, run in enumerate(runs)]
            members = [(n + ".gz", gzip.compress(b, 1, mtime=0)) if rng.random() < 0.3 else (n, b) for n, b in members]
        archive(kind, stem + "." + kind, members)
    else:
        compress(stem + ".jsonl", jsonl(rng, c, docs), c["codec"], rng)


# ---- ids ----

VOCAB, EOS = 1000, 0


def ids(rng, docs):
    """Documents of ids; equal words are equal ids, an EOS behind each."""
    return [[1 + sum(w.encode()) % (VOCAB - 1) for w in t.split(" ")] + [EOS] for t in docs]


def write_ids(rng, kind, folder, docs):
    """(inputs, options of the first program)"""
    if kind == "npy":
        width, version = rng.choice((2, 4)), rng.choice((0, 1))
        make_npy.write(folder + "/a.npy", [t for d in docs for t in d], width, version)
        options = [] if version else ["--token-bytes", str(width)]
        return [folder + "/a.npy"], options + ["--eos-id", str(EOS), "--vocab-size", str(VOCAB)]
    if kind == "megatron":
        make_index.megatron(folder + "/a", [[d] for d in docs], rng.choice(("u16", "i32")))
        return [folder + "/a.idx"], ["--eos-id", str(EOS), "--vocab-size", str(VOCAB)]
    if kind == "ds":
        make_index.ds(folder + "/a.ds", docs, 2)
        return [folder + "/a.ds"], ["--eos-id", str(EOS), "--vocab-size", str(VOCAB)]
    half = len(docs) // 2
    mds.write(folder + "/set", [[{"tokens": d} for d in part] for part in (docs[:half], docs[half:])], {"tokens": "ndarray:uint16"},
              zipped=rng.random() < 0.3)
    return [folder + "/set"], ["--eos-id", str(EOS), "--vocab-size", str(VOCAB)]


def make(c, folder):
    """Writes the corpus; (inputs, options that whoever reads them needs)."""
    rng = random.Random(c["seed"])
    os.makedirs(folder)
    docs = list(texts(rng, c["shape"], c["bytes"]))
    if c["kind"] in IDS:
        return write_ids(rng, c["kind"], folder, ids(rng, docs))
    n = c["files"]
    for k in range(n):
        kind = rng.choice(("jsonl", "text", "tar")) if c["kind"] == "mixed" else c["kind"]
        one_file(rng, c, kind, "%s/%c" % (folder, "abcde"[k]), docs[len(docs) * k // n:len(docs) * (k + 1) // n])
    return [folder], []
