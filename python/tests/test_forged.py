"""Forged, damaged and replaced sets: only SluiceError is raised, nothing outside the set is read or written, and no
batch is of two sets. FORGE_SECONDS: how long the random ones go on; SEED: other ones."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import FORMATS, needs, path, refused, run, shards

import sluice
from sluice import loader

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/cli"))
import forged_sets  # noqa: E402


@contextmanager
def without(*modules: str) -> Iterator[None]:
    """Importing them fails inside."""
    kept = {m: sys.modules.get(m) for m in modules}
    sys.modules.update(dict.fromkeys(modules))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for m, module in kept.items():
            if module:
                sys.modules[m] = module
            else:
                del sys.modules[m]


def linked_copy(folder: str) -> str:
    """A copy by hard links: only for files that are replaced, not written to."""
    where = os.path.join(tempfile.mkdtemp(dir=path()), "set")
    shutil.copytree(folder, where, copy_function=os.link, ignore=shutil.ignore_patterns(".sluice-ids"))
    return where


def replace(file: str, data: bytes) -> None:
    Path(file + ".new").write_bytes(data)
    os.replace(file + ".new", file)


def everything(where: str, index: str) -> None:
    """Asks for all that a set has."""
    data = sluice.open(where, index=index)
    for b in data:
        n = len(b)
        for i in sorted({0, 1, n // 2, n - 1} & set(range(n))):
            q = b[i]
            for name in ("ids", "lengths", "sources", "documents", "offsets", "domains", "record_ids", "padding"):
                getattr(q, name)
            for name in ("position_ids", "cu_seqlens", "trained", "loss_mask"):
                getattr(q, name)
        s = b.segments(0, n)
        assert len(s.sources) == len(s.domains) == len(s.record_ids)
        b.trained(0, n)
        if getattr(b, "n_ids", None):
            b.block(0, n)
            loader._tensors(b, range(n), data.label_tokens)
            loader._tensors(b, np.arange(n)[::-1], data.label_tokens)


def test_table() -> None:
    """The sets that inspect --verify refuses are refused here, with xxhash and without, and nothing is left outside."""
    for name in ("olmo", "wds"):
        folder = os.path.join(tempfile.mkdtemp(dir=path()), "set")
        shutil.copytree(shards(name, 60), folder, ignore=shutil.ignore_patterns(".sluice-ids"))
        for kind in forged_sets.ALL:
            where = forged_sets.make(folder, kind)
            before = sorted(os.listdir(path()))
            for modules in ((), ("xxhash",)):
                with without(*modules), refused(where):
                    everything(where, os.path.join(where, "index"))
            assert sorted(os.listdir(path())) == before, kind
            shutil.rmtree(where)


def test_links() -> None:
    """Ids are never kept, or taken, through a link in the set; FIFOs do not hang."""
    where, outside = common.copy_of("wds"), tempfile.mkdtemp(dir=path())
    os.symlink(outside, os.path.join(where, ".sluice-ids"))
    first = sluice.open(where)[16].ids(0).tolist()
    assert not os.listdir(outside)
    os.remove(os.path.join(where, ".sluice-ids"))
    shutil.rmtree(path("cache", "ids"))
    assert sluice.open(where)[16].ids(0).tolist() == first
    (key,) = os.listdir(os.path.join(where, ".sluice-ids"))
    kept = os.path.join(where, ".sluice-ids", key)
    (name, *_) = os.listdir(kept)
    forged = bytearray(Path(kept, name).read_bytes())
    forged[:2] = b"\7\7"
    Path(outside, "ids").write_bytes(forged)
    os.remove(os.path.join(kept, name))
    os.symlink(os.path.join(outside, "ids"), os.path.join(kept, name))
    with without("xxhash"):
        assert sluice.open(where)[16].ids(0).tolist() == first
    for file in ("report.json", "manifest.jsonl", "segments/D_4.tks"):
        where = common.copy_of("olmo")
        os.remove(os.path.join(where, file))
        os.mkfifo(os.path.join(where, file))
        with refused(file, "not a regular file"):
            everything(where, path("index"))


def test_replaced_while_open() -> None:
    """Nothing is taken from a set that has taken the place of the one that was opened, whatever was mapped before."""
    new = common.copy_of("olmo")
    shutil.rmtree(new)
    run("shuffle", "-q", "--format=olmo", "--shard-sequences=50", "--seed=9", "-o", new, common.pieces(False))
    for gone in (False, True):
        where = common.copy_of("olmo")
        data = sluice.open(where)
        want = data[16].ids(3).tolist(), data[16][3].lengths.tolist()
        shutil.rmtree(where)
        if not gone:
            shutil.copytree(new, where)
        assert (data[16].ids(3).tolist(), data[16][3].lengths.tolist()) == want  # of what is mapped
        with refused(where, "open it again"):
            data[16].ids(60)
        with refused(where, "open it again"):
            data[64].segments(0, 1)
        with refused(where, "open it again"):
            data[32].block(0, 9)
    where = common.copy_of("olmo")
    data = sluice.open(where)
    os.utime(os.path.join(where, "report.json"))  # the same set, copied again
    assert len(data[64][0].sources)


def test_names() -> None:
    """What messages quote cannot control a terminal; names of other scripts stay as they are."""
    bad = "".join(map(chr, (*range(32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F))))
    bad += "".join(map(chr, (*range(0x2066, 0x206A), 0xD800, 0xDFFF)))
    good = "über 文書 ישן हिन्दी 🙂\u200d"
    assert str(sluice.SluiceError(f"{good}{bad}.")) == good + "?" * len(bad) + "."
    where = os.path.join(path(), "set\x1b[31m\u202e文")
    with refused("set?[31m?文"):
        sluice.open(where)


# ---- random ones


def some(r: random.Random) -> Any:
    """A value that a forger would try."""
    n = r.choice((0, 1, 2, 7, 15, 16, 17, 255, 1 << 31, 1 << 32, (1 << 40) + 1, 1 << 63, 1 << 64, 10**40))
    values = n, -n, float(n), str(n), None, True, [], {}, "", "../x", "/", "\0", "D_4", [n], {"length": n}, 1e308
    return r.choice(values)


def forge_json(r: random.Random, v: Any) -> None:
    """Changes something within a JSON value."""
    while True:
        keys = list(v) if isinstance(v, dict) else list(range(len(v)))
        if not keys:
            return
        k = r.choice(keys)
        if isinstance(v[k], (dict, list)) and r.random() < 0.8:
            v = v[k]
            continue
        if r.random() < 0.2:
            del v[k]
        else:
            v[k] = v[k] + r.choice((-1, 1)) if type(v[k]) is int and r.random() < 0.3 else some(r)
        return


def forge_bytes(r: random.Random, data: bytes) -> bytes:
    """Some bytes changed, lost or added."""
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 5))):
        at = r.randrange(len(out) + 1)
        kind = r.randrange(5)
        if kind == 0:
            out[at : at + 1] = bytes([r.randrange(256)])
        elif kind == 1:
            del out[at : at + r.choice((1, 4, 64))]
        elif kind == 2:
            out[at:at] = r.choice((b"\0", bytes(64), b"\xff" * 8))
        else:
            width = r.choice((4, 8))
            at -= at % width
            n = r.choice((0, 1, 2, 255)) * r.choice((1, 1 << 20, 1 << 31, 1 << 32, 1 << 62, 1 << 63)) - r.randrange(2)
            out[at : at + width] = (n % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(out)


def forge_stream(r: random.Random, data: bytes) -> bytes:
    """A stream whose frames' heads and contents are changed, with hashes that fit."""
    import xxhash

    out, at = bytearray(), 0
    while at + 64 <= len(data):
        (stored,) = struct.unpack_from("<Q", data, at + 32)
        end = at + 64 + (stored + 63 & ~63)
        head, body = bytearray(data[at : at + 56]), data[at + 64 : end]
        at = end
        if r.random() < 0.3:
            body = forge_bytes(r, body)
            body += bytes(-len(body) % 64)
            head[32:40] = struct.pack("<Q", max(0, len(body) - r.randrange(64)))
        if r.random() < 0.2:
            k = r.choice((4, 8, 12, 16, 24, 32, 40))
            head[k : k + 4] = struct.pack("<I", r.choice((0, 1, 2, 3, 4, 6, 1 << 26, (1 << 26) + 1, (1 << 32) - 1)))
        if r.random() < 0.05:
            continue
        head[48:56] = struct.pack("<Q", xxhash.xxh3_64_intdigest(body))
        frame = bytes(head) + struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(head))) + body
        out += frame * (1 + (r.random() < 0.03))
    return bytes(out)


def forged(r: random.Random, source: str) -> str:
    """A forged copy of a set."""
    where = linked_copy(source)
    report = json.loads(Path(where, "report.json").read_bytes())
    lines = [json.loads(line) for line in Path(where, "manifest.jsonl").read_bytes().splitlines()]
    kind = r.randrange(6)
    if kind == 0:
        forge_json(r, report)
    elif kind == 1:
        forge_json(r, lines)
    else:
        files = [line for line in lines if line["file"].startswith("segments/") == (kind < 4)]
        line = r.choice(files)
        data = Path(where, line["file"]).read_bytes()
        data = forge_stream(r, data) if kind < 4 else forge_bytes(r, data)
        if kind < 4 and r.random() < 0.3:
            data = forge_bytes(r, data)
        replace(os.path.join(where, line["file"]), data)
        line.update(bytes=len(data), xxh3_64=forged_sets.xxh3(data))
    if r.random() < 0.95:
        for name in ("report.json", "manifest.jsonl"):
            os.remove(os.path.join(where, name))
        forged_sets.write(where, report, lines)
    else:
        name = r.choice(("report.json", "manifest.jsonl"))
        replace(os.path.join(where, name), forge_bytes(r, Path(where, name).read_bytes()))
    return where


def test_random() -> None:
    """Forged sets of each format, streams and schedules: whatever is raised is a SluiceError, and memory is bounded."""
    needs("xxhash", "zstandard")
    seed, seconds = int(os.environ.get("SEED", "1")), float(os.environ.get("FORGE_SECONDS", "30"))
    sources = [shards(name, 60) for name in FORMATS if name not in common.PARQUET]
    sources += [common.documents(name, masks) for name, masks in (("mds", True), ("olmo", False), ("mds.zstd", True))]
    sources += [s for s in map(common.masked_shards, ("olmo", "wds", "litdata.zstd")) if s]
    if common.have_parquet():
        sources += [shards("parquet", 60)]
    plan = path("random.sched")
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", "-o", plan, sources[0])
    stream, steps = Path(common.pieces(False, 60)).read_bytes(), Path(plan).read_bytes()
    for source in sources:
        everything(source, path("index"))
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, limits[1]))
    end, n, n_refused = time.monotonic() + seconds, 0, 0
    try:
        while time.monotonic() < end:
            r = random.Random(f"{seed}-{n}")
            n += 1
            where = forged(r, r.choice(sources))
            replace(path("forged.tks"), forge_stream(r, stream))
            replace(path("forged.sched"), forge_bytes(r, steps))
            modules = ("xxhash",) if r.random() < 0.5 else ()
            with without(*modules):
                for ask in (
                    lambda: everything(where, where + ".ids"),  # noqa: B023
                    lambda: everything(path("forged.tks"), path("index")),
                    lambda: list(sluice.Loader(sluice.open(sources[0]), path("forged.sched"), threads=0)),
                ):
                    try:
                        ask()
                    except sluice.SluiceError as e:
                        n_refused += 1
                        assert "MemoryError" not in str(e), f"SEED={seed}, number {n}: {e}"
                    except Exception as e:
                        raise AssertionError(f"SEED={seed}, number {n}: {where}") from e
            shutil.rmtree(os.path.dirname(where))
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)
    print(f"  {n} forged sets, streams and schedules; {n_refused} refused")
    assert n > 5 and n < n_refused < 3 * n, (n, n_refused)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        common.main(globals())
