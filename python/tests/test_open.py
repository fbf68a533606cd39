"""sluice.open against what `inspect` says of the same files."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import FORMATS, copy_of, needs, path, pieces, records, refused, run, shards

import sluice


def compare(q: sluice.Sequence, r: dict[str, Any], where: Any) -> None:
    s = r["segments"]
    lengths = [x["length"] for x in s]
    assert q.ids.tolist() == r["tokens"], where
    assert len(q) == len(r["tokens"])
    assert q.lengths.tolist() == lengths, where
    for name in ("source", "document", "offset", "domain", "id"):
        mine = getattr(q, "record_ids" if name == "id" else name + "s")
        assert mine == [x.get(name) for x in s], (where, name)
    padding = sum(x["length"] for x in s if x.get("padding"))
    assert q.padding == padding
    assert q.cu_seqlens.tolist() == [0, *accumulate(lengths)]
    positions = np.concatenate([np.arange(n) for n in lengths])
    assert np.array_equal(q.position_ids, positions)
    real = len(positions) - padding
    trained = np.array(r.get("mask", np.arange(len(positions)) < real), bool)
    assert np.array_equal(q.trained, trained), where
    assert np.array_equal(q.loss_mask, trained & (positions > 0)), where


def compare_set(where: str, verify: bool) -> None:
    data = sluice.open(where, verify=verify)
    info = json.loads(run("inspect", "--json", where))
    all_records = records(where)
    assert sum(len(b) for b in data) == len(all_records) == info["sequences"]
    at = 0
    for b in data:
        assert data[b.name] is b
        for i, q in enumerate(b):
            compare(q, all_records[at + i], (where, b.name, i))
        compare(b[-1], all_records[at + len(b) - 1], (where, b.name, -1))
        at += len(b)
    if info["kind"] == "shards":
        assert data.format == info["format"] and data.checksum == info["checksum"]
        assert [[b.name, len(b)] for b in data] == [[b["name"], b["sequences"]] for b in info["buckets"]]
        for b in data:
            whole = b.block(0, len(b))
            assert whole.shape == (len(b), b.n_ids) == (len(b), b.length + data.label_tokens)
            for a, z in ((0, 0), (1, 50), (49, 51), (3, len(b)), (len(b), len(b))):
                z = min(z, len(b))
                assert np.array_equal(b.block(min(a, z), z), whole[min(a, z) : z])
                s = b.segments(min(a, z), z)
                assert s.length.sum() == (z - min(a, z)) * b.n_ids and len(s.counts) == z - min(a, z)
                trained = [b[i].trained.tolist() for i in range(min(a, z), z)]
                assert b.trained(min(a, z), z).tolist() == [t for row in trained for t in row]


def test_formats() -> None:
    needs("xxhash", "zstandard")
    for name in FORMATS:
        if name not in common.PARQUET:
            compare_set(shards(name), verify=True)
            compare_set(shards(name), verify=False)  # from ids that were kept, where they are


def test_small() -> None:
    """One sequence, of 8 ids: a shard's head is larger than they are."""
    needs("xxhash", "zstandard")
    for text in ({"text": "hello w"}, {"text": "hello w", "spans": [[0, 5]]}):
        masks = ["--spans-field=spans"] * (len(text) - 1)
        docs = run("tokenize", "-q", "-t", "bytes", *masks, stdin=json.dumps(text).encode())
        cut = run("decompose", "-q", "--min=8", "--max=8", stdin=docs)
        for name in ("mds.zstd", "litdata.zstd", "mds", "litdata", "olmo"):
            where = path(f"small-{name}-{len(text)}")
            run("shuffle", "-q", f"--format={name.split('.')[0]}", *FORMATS[name], "-o", where, stdin=cut)
            compare_set(where, verify=True)


def test_parquet() -> None:
    needs("pyarrow", "xxhash", "zstandard")
    for name in common.PARQUET:
        compare_set(shards(name), verify=True)


def test_masks() -> None:
    """What is trained on: in a stream, in two of which one has no masks, in every format that takes masks."""
    needs("xxhash", "zstandard")
    stream = Path(common.masked(False)).read_bytes()
    compare_set(common.masked(False), verify=True)
    Path(path("documents.tks")).write_bytes(common.masked_documents())
    compare_set(path("documents.tks"), verify=True)
    docs = run("tokenize", "-q", "-t", "bytes", common.corpus(30))
    plain = run("pack", "-q", "-z", stdin=run("decompose", "-q", "--min=16", "--max=256", stdin=docs))
    Path(path("both.tks")).write_bytes(stream + plain)
    both, one = sluice.open(path("both.tks"))["stream"], sluice.open(common.masked(False))["stream"]
    n = len(one)
    assert np.array_equal(both.trained(0, n), one.trained(0, n)) and 0 < one.trained(0, n).mean() < 1
    rest = [both[i] for i in range(n, len(both))]
    assert all(q.trained.tolist() == [i < len(q) - q.padding for i in range(len(q))] for q in rest)
    padded = [q for q in one if q.padding]
    assert padded and not any(q.trained[len(q) - q.padding :].any() for q in padded)
    some = []
    for name in FORMATS:
        where = common.masked_shards(name)
        if where and (name not in common.PARQUET or common.have_parquet()):
            compare_set(where, verify=False)
            data = sluice.open(where)
            assert data.masks and sum(int(b.trained(0, len(b)).sum()) for b in data) == data.report["loss_tokens"]
            some.append(name)
    assert not sluice.open(shards("olmo")).masks
    assert {"olmo", "mds", "mds.zstd", "litdata", "litdata.zstd", "wds", "wds.json.gz"} <= set(some), some


def test_documents() -> None:
    """Sets of whole documents, by number and in order; damage; and that no steps are taken from them."""
    needs("xxhash", "zstandard")
    for name in ("parquet", "mds.zstd", "litdata.zstd", "mds", "litdata", "megatron", "ds", "olmo"):
        if name in common.PARQUET and not common.have_parquet():
            continue
        for masks in (True, False):
            if masks and name in ("megatron", "ds"):  # have no place for them
                continue
            where = common.documents(name, masks)
            data = sluice.open(where, verify=True)
            (documents,) = data
            n = len(records(where))
            assert len(documents) == n >= 400 and len(documents._shards) > 5 and not data.lengths
            assert data.masks == masks
            for i in random.Random(1).sample(range(-n, n), 2 * n):
                compare(documents[i], records(where)[i], (where, i))
            lengths = [len(r["tokens"]) for r in records(where)]
            stream = data._stream("documents")
            assert stream.lengths(0, n).tolist() == lengths and stream.lengths(7, 9).tolist() == lengths[7:9]
            with refused(where, "documents"):
                sluice.Loader(data, batch_tokens=1024)
            with refused(where, "not of one length"):
                documents.block(0, 2)
    shard = documents._shards[1]["file"]
    flip(os.path.join(where, shard), 0.5)
    with refused(shard):
        sluice.open(where, verify=True)


def test_wide_ids() -> None:
    """Ids of four bytes; and a bucket whose length is no power of two."""
    rng = np.random.default_rng(1)
    ids = rng.integers(1, 90000, 40000).astype("<u4")
    ids[rng.integers(0, len(ids), 300)] = 0
    ids[-1] = 0
    ids.tofile(path("wide.npy"))
    cut = run(
        "decompose", "-q", "--eos-id=0", "--token-bytes=4", "--vocab-size=90000", "--buckets=24,64,200",
        path("wide.npy"),
    )  # fmt: skip
    run("pack", "-q", "-o", path("wide.tks"), stdin=cut)
    for kind in ("olmo", "mds", "megatron", "litdata"):
        where = path(f"wide-{kind}")
        run("shuffle", "-q", f"--format={kind}", "-o", where, path("wide.tks"))
        compare_set(where, verify=False)
        assert sluice.open(where)["L_24"] is sluice.open(where)[24] or sluice.open(where).dtype.itemsize == 4


def test_streams() -> None:
    """Frames that sequences go on in, several members, compressed frames."""
    rng = np.random.default_rng(2)
    lengths = [5, 1 << 20, 7, 2_500_000, 3, 1, 1_200_000, 2]
    ids = np.concatenate([np.append(rng.integers(1, 60000, n - 1), 0) for n in lengths]).astype("<u2")
    ids.tofile(path("long.npy"))
    long = run("dedup", "-q", "--eos-id=0", "--token-bytes=2", path("long.npy"))
    short = run("tokenize", "-q", common.corpus())
    small = Path(pieces(False)).read_bytes()
    packed = run("pack", "-q", "--length=3000000", "-z", stdin=long)
    for name, stream in {"long": long, "short": short, "packed": packed, "two": small + small}.items():
        with open(path(name + ".tks"), "wb") as f:
            f.write(stream)
        compare_set(path(name + ".tks"), verify=True)
    assert sluice.open(path("long.tks"))._stream("stream").lengths(0, len(lengths)).tolist() == lengths
    every = sluice.open(path("long.tks"))["stream"].segments(0, len(lengths))
    assert every.length.tolist() == lengths and every.counts.tolist() == [1] * len(lengths)
    for n in (0, 1, 63, 64, 100, 500, len(small) - 64, len(small) - 1):
        with open(path("cut.tks"), "wb") as f:
            f.write(small[:n])
        with refused("cut.tks"):
            sluice.open(path("cut.tks"))
    damaged = bytearray(small)
    damaged[len(small) // 2] ^= 4
    with open(path("flipped.tks"), "wb") as f:
        f.write(damaged)
    needs("xxhash")
    with refused("flipped.tks", "byte"):
        sluice.open(path("flipped.tks"), verify=True)
    at = 0
    while at < len(small):  # a byte of each frame
        (stored,) = struct.unpack_from("<Q", small, at + 32)
        if stored:
            with open(path("flipped.tks"), "wb") as f:
                f.write(small[: at + 64] + bytes([small[at + 64] ^ 4]) + small[at + 65 :])
            with refused("flipped.tks", f"byte {at + 64}"):
                sluice.open(path("flipped.tks"), verify=True)
        at += 64 + (stored + 63 & ~63)


def test_joined() -> None:
    """Streams that sluice's programs refuse to join are refused here too."""
    whole, other = (run("tokenize", "-q", *options, common.corpus(30)) for options in (["-t", "bytes"], []))
    cut = {n: run("decompose", "-q", "--min=16", f"--max={n}", stdin=whole) for n in (64, 128)}
    label = run("decompose", "-q", "--min=16", "--max=64", "--label-token", stdin=whole)
    for a, b, words in (
        (whole, other, ("another tokenizer", "cannot be joined")),
        (cut[64], cut[128], ("other bucket lengths",)),
        (cut[64], label, ("other bucket lengths",)),
    ):
        Path(path("joined.tks")).write_bytes(a + b)
        with refused("joined.tks", f"byte {len(a)}", *words):
            sluice.open(path("joined.tks"))
        try:
            run("inspect", stdin=a + b)
        except RuntimeError:
            continue
        raise AssertionError("inspect joins them")
    for good in (whole, cut[64], label):
        Path(path("joined.tks")).write_bytes(good + good)
        assert len(sluice.open(path("joined.tks"))["stream"]) > 0


def test_incomplete() -> None:
    for gone, words in {
        "report.json": ("incomplete", "shuffle"),
        "manifest.jsonl": ("incomplete", "manifest.jsonl"),
        "D_5/shard-0000001.npy": ("D_5/shard-0000001.npy", "missing"),
        "segments/D_4.tks": ("segments/D_4.tks", "missing"),
    }.items():
        where = copy_of("olmo")
        os.remove(os.path.join(where, gone))
        with refused(where, *words):
            sluice.open(where)
    where = copy_of("olmo")
    os.makedirs(os.path.join(where, ".partial"))
    Path(where, ".partial", "ready").touch()
    assert len(sluice.open(where)) > 0  # the old set is whole
    os.remove(os.path.join(where, "report.json"))
    with refused(where, "being replaced", "again"):
        sluice.open(where)
    with refused("no-such-set"):
        sluice.open(path("no-such-set"))
    with refused("is not a token stream", "name the folder of a set"):
        sluice.open(common.corpus())


def test_wrong_places() -> None:
    """What is no set and no stream is named, with what helps."""
    where = shards("olmo")
    os.makedirs(path("folder", "of-sets"))
    os.mkfifo(path("pipe"))
    Path(path("nothing")).touch()
    for wrong in ("D_4", "segments", "report.json", "D_4/shard-0000000.npy"):
        with refused(f"{where}/{wrong}: is a part of a set; open that: {where}"):
            sluice.open(os.path.join(where, wrong))
    for wrong, what in (("folder", "report.json"), ("nothing", "stream"), ("pipe", "neither a folder nor a file")):
        with refused(path(wrong) + ": is ", what, "name the folder of a set"):
            sluice.open(path(wrong))
    with refused(path("missing") + ": there is no such file or folder on this machine", "name the folder"):
        sluice.open(path("missing"))
    with refused("s3://bucket/set: is an address", "use a pipe"):
        sluice.open("s3://bucket/set")
    with refused(repr(where), "sluice.open"):
        sluice.Loader(where, batch_tokens=1024)


def test_slices() -> None:
    bucket = sluice.open(shards("olmo"))[16]
    for part in (slice(2, 5), slice(-3, None), slice(None, None, -40), slice(5, 5), slice(0, 10**9, 50)):
        want = range(len(bucket))[part]
        assert [q.index for q in bucket[part]] == list(want)
        assert all(np.array_equal(q.ids, bucket.ids(i)) for q, i in zip(bucket[part], want))
    assert bucket[np.int64(7)].ids.tolist() == bucket[7].ids.tolist()
    for wrong, error in ((len(bucket), IndexError), (1.0, TypeError), ("1", TypeError)):
        try:
            bucket[wrong]
        except error:
            continue
        raise AssertionError(wrong)


def test_damaged() -> None:
    """A byte changed: found by verify everywhere, and before a wrong id is given where that is possible."""
    needs("xxhash", "zstandard")
    for name in ("olmo", "mds.zstd", "wds", "litdata.zstd"):
        for file in ("report.json", "manifest.jsonl", "segments/D_6.tks", "README.md"):
            where = copy_of(name)
            flip(os.path.join(where, file), 0.6)
            with refused(where, file):
                sluice.open(where, verify=True)
        where = copy_of(name)
        k = sluice.open(where)[64]._shards[1]["file"]
        flip(os.path.join(where, k), 0.5)
        with refused(k):
            sluice.open(where, verify=True)
        if name != "olmo":
            data = sluice.open(where, index=path("fresh-" + name))
            os.makedirs(path("fresh-" + name))
            with refused(k):
                data[64].ids(60)
            assert data[64].ids(20) is not None
    for name in ("olmo", "ds", "megatron", "mds", "litdata", "wds"):
        where = copy_of(name)
        k = os.path.join(where, sluice.open(where)[64]._shards[1]["file"])
        os.truncate(k, os.path.getsize(k) - 4)
        with refused(k, "bytes", "were written"):
            sluice.open(where, index=TMP_INDEX)[64].ids(60)
    for name, at in (("mds", 8), ("litdata", 0)):
        where = copy_of(name)
        k = os.path.join(where, sluice.open(where)[64]._shards[0]["file"])
        with open(k, "r+b") as f:
            f.seek(at)
            f.write(struct.pack("<I", 1 << 31))
        with refused(k, "damaged"):
            sluice.open(where)[64].ids(0)


def flip(file: str, share: float) -> None:
    with open(file, "r+b") as f:
        at = int(os.path.getsize(file) * share)
        f.seek(at)
        b = f.read(1)[0]
        f.seek(at)
        f.write(bytes([b ^ 1]))


TMP_INDEX = path("index")
os.makedirs(TMP_INDEX)


def test_index() -> None:
    """Where ids that cannot be mapped are kept, and that a set stays sound with them beside it."""
    needs("zstandard")
    where = copy_of("wds")
    assert sluice.open(where)[16].ids(0).size == 17
    assert os.listdir(os.path.join(where, ".sluice-ids"))
    run("inspect", "--verify", where)
    where = copy_of("wds")
    Path(where, ".sluice-ids").touch()  # as where it cannot be made
    first = sluice.open(where)[16].ids(0)
    (key,) = os.listdir(path("cache", "ids"))
    assert key == sluice.open(where).report["xxh3_64"]
    chosen = path("chosen", "new")
    assert np.array_equal(sluice.open(where, index=chosen)[16].ids(0), first) and os.listdir(chosen)
    with refused("cannot be written", "index=FOLDER"):
        sluice.open(where, index=path("corpus-500-1.jsonl", "no-folder"))[16].ids(0)
    # What is kept is not used if it is not as it was written, or of another set.
    needs("xxhash")
    where, index = copy_of("wds"), path("kept")
    want = [q.ids.tolist() for q in sluice.open(where, index=index)[16]]
    (kept,) = Path(index).rglob("D_4-shard-0000000*")
    for damage in (lambda: flip(str(kept), 0.3), lambda: flip(str(kept), 0.999), lambda: os.truncate(kept, 100)):
        damage()
        assert [q.ids.tolist() for q in sluice.open(where, index=index)[16]] == want
    assert kept.parent.name == sluice.open(where).report["xxh3_64"]
    # What is kept beside a set that cannot be written is used.
    where, kept = copy_of("wds"), os.listdir(path("cache", "ids"))
    assert np.array_equal(sluice.open(where)[16].ids(0), first)
    access, os.access = os.access, lambda *_: False
    try:
        os.rename(path("cache"), path("cache-before"))
        assert np.array_equal(sluice.open(where)[16].ids(0), first) and not os.path.exists(path("cache"))
    finally:
        os.access = access
        os.rename(path("cache-before"), path("cache"))
    assert os.listdir(path("cache", "ids")) == kept


def test_shared() -> None:
    """Pickled, and by many threads."""
    for name in ("megatron", "wds"):
        where = shards(name)
        want = [r["tokens"] for r in records(where)]
        data = pickle.loads(pickle.dumps(sluice.open(where)))
        q = data[64][3]
        again = pickle.loads(pickle.dumps([q, q.lengths, q]))[2]
        assert again.ids.tolist() == q.ids.tolist() and again.index == 3 and len(pickle.dumps(q)) < 1000
        every = [(b.name, i) for b in data for i in range(len(b))]

        def one(at: tuple[str, int], data: sluice.Set = data) -> Any:
            return data[at[0]][at[1]].ids.tolist(), len(data[at[0]][at[1]].sources)

        with ThreadPoolExecutor(8) as pool:
            assert [r for r, _ in pool.map(one, every)] == want
    try:
        data[16].ids(0)[0] = 1
    except ValueError:
        return
    raise AssertionError("ids can be written")


def test_replaced() -> None:
    """A pickle is of the set, not of the path: another one there, of whatever contents or order, is refused."""
    needs("xxhash")
    where, stream = path("replaced"), path("replaced.tks")
    command = ["shuffle", "-q", "--force", "--format=olmo", "-o", where, pieces(False)]
    run(*command, "--seed=1")
    shutil.copy(pieces(False), stream)
    both = [sluice.open(where), sluice.open(stream)]
    pickles = [pickle.dumps(x) for s in both for x in (s, s.buckets[0], s.buckets[0][3])]
    assert [type(pickle.loads(p)).__name__ for p in pickles[:3]] == ["ShardSet", "ShardBucket", "Sequence"]
    shutil.rmtree(where)
    run(*command, "--seed=2")
    shutil.copy(common.masked(False), stream)
    assert sluice.open(where).checksum == both[0].checksum  # the same contents in another order
    for p, name in zip(pickles, [where] * 3 + [stream] * 3):
        with refused(name, "another set", "pickled"):
            pickle.loads(p)
    shutil.rmtree(where)
    run(*command, "--seed=1")
    assert np.array_equal(pickle.loads(pickles[2]).ids, both[0].buckets[0].ids(3))


def test_forks() -> None:
    """Children of a process whose threads read: nothing that a thread held when it was forked stops them."""
    data = sluice.open(pieces(False, 3000))
    stream, n, over = data["stream"], len(data["stream"]), threading.Event()
    file = data._streams["stream"]

    def read() -> None:
        while not over.is_set():
            for k in range(len(file._frames)):
                file._columns(k)

    every, threads = sys.getswitchinterval(), [threading.Thread(target=read) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for _ in range(2000 if os.environ.get("CHECK_FULL") else 50):
            common.fork(lambda: [stream.ids(i) for i in range(0, n, n // 9)])
    finally:
        over.set()
        sys.setswitchinterval(every)
        for t in threads:
            t.join()
    # Names are read once, which takes long where there are many.
    read_frame, begun = file._payload, threading.Event()

    def slowly(p: Any) -> Any:
        begun.set()
        over.wait(1)
        return read_frame(p)

    over.clear()
    file._payload = slowly  # type: ignore[method-assign]
    asks = threading.Thread(target=lambda: stream[0].sources)
    asks.start()
    begun.wait()
    file._payload = read_frame  # type: ignore[method-assign]
    common.fork(lambda: stream[0].sources)
    over.set()
    asks.join()


def test_modules() -> None:
    """The package's modules, without an import of their own."""
    code = "import sluice; print(sluice.grain.Source.__name__, sluice.masks.sdpa_mask.__name__)"
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(sluice.__file__ or ""))}
    r = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert r.stdout.split() == ["Source", "sdpa_mask"], r.stderr


def test_numpy_alone() -> None:
    """Without any other package: ids, boundaries and batches of what is mapped; else what is needed is said."""
    needs("zstandard")
    where, packed = shards("olmo"), copy_of("mds.zstd")
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", "-o", path("alone.sched"), where)
    kept = {m: sys.modules.pop(m, None) for m in ("xxhash", "zstandard")}
    sys.modules.update(dict.fromkeys(kept))  # so that importing them fails
    try:
        data = sluice.open(where)
        compare(data[16][0], records(where)[0], where)
        assert len(list(sluice.Loader(data, path("alone.sched")))) > 100
        with refused("pip install zstandard"):
            sluice.open(packed)[16].ids(0)
        with refused("pip install xxhash"):
            sluice.open(where, verify=True)
        with refused("pip install xxhash"):
            sluice.open(pieces(False), verify=True)
    finally:
        sys.modules.update({m: module for m, module in kept.items() if module})
        for m, module in kept.items():
            if not module:
                del sys.modules[m]


if __name__ == "__main__":
    common.main(globals())
