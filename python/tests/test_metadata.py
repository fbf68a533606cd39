"""The metadata of documents: what Segments.metadata gives, and the columns of Parquet, against the records."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import FORMATS, needs, path, refused, run

import sluice

FIELDS = {"lang": "name", "url": "text", "u.8": "u8", "u32": "u32", "u64": "u64", "f32": "f32", "i64": "i64"}
FIELDS["größe"] = "f64"
ARROW = {"name": "string", "text": "string", "f32": "float", "f64": "double", "i64": "int64"}
ARROW.update({"u8": "uint8", "u32": "uint32", "u64": "uint64"})
OPTION = "--metadata=" + ",".join(f"{n}={t}" for n, t in FIELDS.items())
Values = dict[str, Any]


@lru_cache(None)
def values() -> dict[str, Values]:
    """What each record has, by its id; None: it is null, or the record has no such field."""
    r = random.Random(9)

    def number(*some: float) -> float | None:
        return r.choice([None, 0, *some])

    return {
        f"r-{i}": {
            "lang": r.choice([None, "en", "zh", "", "größe"]),
            "url": r.choice([None, f"http://host/{i}", "x" * 5000, "日本"]),
            "u.8": number(1, 254),
            "u32": number(2**32 - 2),
            "u64": number(2**53),
            "f32": number(0.5, -2.25, 1e30),
            "i64": number(-1, -(2**53)),
            "größe": number(0.1, 1e-300),
        }
        for i in range(300)
    }


@lru_cache(None)
def lines() -> bytes:
    """The records; field u.8 is in an object."""
    r = random.Random(3)
    out = []
    for name, v in values().items():
        text = " ".join(f"word{r.randrange(99)}" for _ in range(int(2 ** r.uniform(1, 8))))
        record = {"id": name, "text": text, "spans": [[0, 4]]}
        record.update((k, x) for k, x in v.items() if k != "u.8" and (x is not None or r.random() < 0.5))
        out.append(json.dumps({**record, "u": {"8": v["u.8"]}}))
    return "\n".join(out).encode()


def tokenized(*options: str) -> bytes:
    return run("tokenize", "-q", "-t", "bytes", "--id-field=id", OPTION, *options, stdin=lines())


@lru_cache(None)
def packed(*options: str) -> bytes:
    return run("pack", "-q", "--long=split", "--length=256", *options, stdin=tokenized())


def as_stored(name: str, v: Any) -> Any:
    return float(np.float32(v)) if v is not None and FIELDS[name] == "f32" else v


def wanted(s: sluice.Segments, name: str) -> list[Any]:
    return [as_stored(name, values()[i][name]) if i else None for i in s.record_ids]


def compare(where: str) -> int:
    """Segments.metadata of each bucket, in one piece and in small ones, against the records. The number of values."""
    n = 0
    for b in sluice.open(where):
        for a, z in ((0, len(b)), (len(b) // 3, len(b) // 3 + 2), (0, 0)):
            s = b.segments(a, min(z, len(b)))
            for name in FIELDS:
                got = s.metadata(name)
                assert got == wanted(s, name), (where, b.name, a, z, name)
                assert all(v is None for v, p in zip(got, s.padding.tolist()) if p)
                n += sum(v is not None for v in got)
    return n


def test_stream() -> None:
    needs("zstandard")
    Path(path("meta.tks")).write_bytes(tokenized())
    (b,) = sluice.open(path("meta.tks"))
    assert b.segments(0, 1).stream.metadata == dict(sorted(FIELDS.items(), key=lambda f: f[0].encode()))
    assert compare(path("meta.tks")) > 1000
    Path(path("packed.tks")).write_bytes(packed())
    assert compare(path("packed.tks")) > 1000
    with refused("no metadata field 'nope'", "it has", "größe", "u.8"):
        b.segments(0, 1).metadata("nope")


def test_joined() -> None:
    """A stream behind it that has none, and one that has another field: null is what a stream does not have."""
    needs("zstandard")
    plain = run("tokenize", "-q", "-t", "bytes", "--id-field=id", stdin=lines())
    other = run("tokenize", "-q", "-t", "bytes", "--id-field=id", "--metadata=lang", stdin=lines())
    Path(path("joined.tks")).write_bytes(tokenized() + plain + other)
    (b,) = sluice.open(path("joined.tks"))
    s = b.segments(0, len(b))
    n = len(values())
    assert len(s.length) == 3 * n
    for name in FIELDS:
        want = wanted(s, name)
        rest = want[2 * n :] if name == "lang" else [None] * n
        assert s.metadata(name) == want[:n] + [None] * n + rest, name
    Path(path("plain.tks")).write_bytes(plain)
    with refused("no metadata field 'lang'", "it has none"):
        sluice.open(path("plain.tks"))["stream"].segments(0, 1).metadata("lang")


def test_sets() -> None:
    needs("xxhash", "zstandard")
    for name in FORMATS:
        if name in common.PARQUET and not common.have_parquet():
            continue
        where = path(f"meta-{name}")
        how = [f"--format={name.split('.')[0]}", *FORMATS[name], "--accept-mismatch", "--shard-sequences=9"]
        run("shuffle", "-q", *how, "-o", where, stdin=packed())
        assert compare(where) > 1000, name


def needs_parquet() -> None:
    if not common.have_parquet():
        raise common.Skip("Parquet is not built into these programs, or pyarrow is not there")


def rows(where: str) -> list[Values]:
    """The rows of a set's shards in their order, and that the columns have the types of the fields."""
    import pyarrow.parquet as pq

    out: list[Values] = []
    for f in sorted(Path(where).glob("[DLd]*/*.parquet")):
        t = pq.read_table(f)
        single = f.parent.name == "documents"
        for name, kind in FIELDS.items():
            has = t.schema.field(name)
            assert str(has.type) == (ARROW[kind] if single else f"list<element: {ARROW[kind]}>"), has
        out += t.to_pylist()
    return out


def test_parquet() -> None:
    needs_parquet()
    cut = run("decompose", "-q", "--min=16", "--max=64", stdin=tokenized())
    masked = tokenized("--spans-field=spans")
    for kind, at in ("parquet", "seq_lengths"), ("megatron-sft", "seq_start_id"):
        long = run("pack", "-q", "--long=split", "--length=256", stdin=masked)
        streams = packed(), run("pack", "-q", stdin=cut), long
        for i, stream in enumerate(streams):
            where = path(f"columns-{kind}-{i}")
            run("shuffle", "-q", f"--format={kind}", "--shard-sequences=20", "-o", where, stdin=stream)
            table = rows(where)
            sequences = [q for b in sluice.open(where) for q in b]
            assert len(table) == len(sequences)
            for row, q in zip(table, sequences):
                assert row["input_ids"] == q.ids.tolist()
                for name in FIELDS:
                    assert row[name] == wanted(q.segments, name), (where, name)
                    assert len(row[name]) == len(row[at])
    for i, stream in enumerate((tokenized(), masked)):
        where = path(f"columns-documents-{i}")
        run("shuffle", "-q", "--documents", "--format=parquet", "--shard-size=8000", "-o", where, stdin=stream)
        table = rows(where)
        ids = [q.record_ids[0] or "" for b in sluice.open(where) for q in b]
        assert sorted(ids) == sorted(values()) and len(table) == len(ids)
        assert [[r[n] for n in FIELDS] for r in table] == [[as_stored(n, values()[i][n]) for n in FIELDS] for i in ids]


def test_parquet_read() -> None:
    """The columns are no input: the segments have the values, and a set as input gives them again."""
    needs_parquet()
    where = path("columns-again")
    run("shuffle", "-q", "--documents", "--format=parquet", "-o", where, stdin=tokenized())
    run("shuffle", "-q", "-o", path("again.tks"), where)
    assert compare(path("again.tks")) > 1000


def test_names() -> None:
    """A field with the name of a column is refused, and only where there is this column."""
    needs_parquet()
    record = json.dumps({"text": "some text", "input_ids": "a", "labels": "b", "input_ids.list.element": "c"}).encode()
    for kind, name in [(k, n) for k in common.PARQUET for n in ("input_ids", "labels")]:
        docs = run("tokenize", "-q", "-t", "bytes", f"--metadata={name}", stdin=record)
        cut = run("decompose", "-q", "--min=4", "--max=8", "--tail=drop", stdin=docs)
        try:
            run("shuffle", "-q", f"--format={kind}", "-o", path(f"names-{kind}-{name}"), stdin=cut)
        except RuntimeError as e:
            assert name == "input_ids" or kind == "parquet"
            assert str(e).endswith(
                f"shuffle: format {kind} has a column '{name}' of its own, and the stream a metadata field of this "
                f"name; leave it out with --drop-metadata\n"
            )
            assert not Path(path(f"names-{kind}-{name}")).exists()
        else:
            assert (kind, name) == ("megatron-sft", "labels")
    docs = run("tokenize", "-q", "-t", "bytes", "--metadata=labels,input_ids.list.element", stdin=record)
    where = path("names-documents")
    run("shuffle", "-q", "--documents", "--format=parquet", "-o", where, stdin=docs)
    run("inspect", "--verify", where)
    import pyarrow.parquet as pq

    (row,) = pq.read_table(next(Path(where).glob("documents/*.parquet"))).to_pylist()
    assert (row["labels"], row["input_ids.list.element"]) == ("b", "c") and len(row["input_ids"]) > 8


if __name__ == "__main__":
    common.main(globals())
