"""sluice.open: sets of shards and stream files, as sequences by bucket and number."""

from __future__ import annotations

import json
import os
from bisect import bisect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate
from operator import getitem, index
from typing import Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np

from ._base import (
    Array,
    SluiceError,
    WrongNumber,
    check_hash,
    count,
    damaged,
    digits,
    inner,
    local,
    map_file,
    need,
    unpickle,
)  # fmt: skip
from .shards import FORMATS, Rows, Shards
from .stream import MAGIC, Segments, StreamFile, groups, joined, places, starts

_T = TypeVar("_T")

_BEGUN = (".partial", "manifest.jsonl", "report.json", "segments")  # one is in every set
_SEAL = 31  # bytes of ,"xxh3_64": … at the end of a report
_KEPT_SHARDS = 256  # mapped at once by a set; each takes a file descriptor


class _OfSegments(Generic[_T]):
    """A property of a sequence: what `of` makes of its segments."""

    def __init__(self, of: Callable[[Segments], _T]) -> None:
        self._of = of

    def __get__(self, q: Sequence, _: Any = None) -> _T:
        return self._of(q.segments)


class Sequence:
    """A sequence: its ids, and what each part of it is.

    Everything is made when it is asked for. What has one entry a segment (lengths, sources,
    documents, offsets, domains, record_ids) has padding, if any, last.
    """

    __slots__ = ("_segments", "bucket", "index")

    def __init__(self, bucket: Bucket, index: int) -> None:
        self.bucket, self.index = bucket, index
        self._segments: Segments | None = None

    @property
    def ids(self) -> Array:
        """The ids, as they are stored: read-only, not copied. With label tokens one more than the length."""
        return self.bucket.ids(self.index)

    @property
    def segments(self) -> Segments:
        if self._segments is None:
            self._segments = self.bucket.segments(self.index, self.index + 1)
        return self._segments

    lengths = _OfSegments(lambda s: s.length)
    documents = _OfSegments(lambda s: s.known(s.document))
    offsets = _OfSegments(lambda s: s.known(s.offset))
    sources = _OfSegments(lambda s: s.sources)
    domains = _OfSegments(lambda s: s.domains)
    record_ids = _OfSegments(lambda s: s.record_ids)
    padding = _OfSegments(lambda s: int(s.length[s.padding].sum()))  #: how many ids are padding
    position_ids = _OfSegments(lambda s: places(starts(s.length), s.length))  #: place of each id in its segment; int64
    cu_seqlens = _OfSegments(lambda s: starts(s.length).astype(np.int32))  #: where segments begin, and the end; int32

    @property
    def trained(self) -> Array:
        """True for ids that are trained on, as the masks say; without masks all but padding."""
        return self.bucket.trained(self.index, self.index + 1)

    @property
    def loss_mask(self) -> Array:
        """True for ids that are to be predicted: those that are trained on, but for the first of a
        segment, which nothing in its document comes before."""
        out: Array = self.trained & (self.position_ids > 0)
        return out

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> Any:
        return getitem, (self.bucket, self.index)


class Bucket:
    """The sequences of one length, in the order of their shards; of a stream, all of them."""

    def __init__(self, owner: Set, name: str, length: int | None, n_ids: int | None, n_seq: int) -> None:
        self._owner, self._n_seq = owner, n_seq
        self.name = name
        self.length = length  #: nominal length in tokens; None in a stream, and of whole documents
        self.n_ids = n_ids  #: ids of a sequence: one more with label tokens

    def __len__(self) -> int:
        return self._n_seq

    def __reduce__(self) -> Any:
        return getitem, (self._owner, self.name)

    def _number(self, i: SupportsIndex) -> int:
        i = index(i)
        if not -self._n_seq <= i < self._n_seq:
            raise WrongNumber(f"sequence {i} of the {self._n_seq} of {self.name}")
        return i % self._n_seq

    @overload
    def __getitem__(self, i: SupportsIndex) -> Sequence: ...
    @overload
    def __getitem__(self, i: slice) -> list[Sequence]: ...
    def __getitem__(self, i: SupportsIndex | slice) -> Sequence | list[Sequence]:
        if type(i) is int and 0 <= i < self._n_seq:  # a fifth faster
            return Sequence(self, i)
        if isinstance(i, slice):
            return [Sequence(self, k) for k in range(*i.indices(self._n_seq))]
        return Sequence(self, self._number(i))

    def __iter__(self) -> Iterator[Sequence]:
        return (Sequence(self, i) for i in range(self._n_seq))

    def ids(self, i: int) -> Array:
        """The ids of sequence i: read-only, not copied."""
        return self._owner._stream(self.name).ids(self._number(i))

    def segments(self, a: int, b: int) -> Segments:
        """The segments of sequences a to b, b not among them."""
        return self._owner._stream(self.name).segments(a, b)

    def trained(self, a: int, b: int) -> Array:
        """True for the ids of sequences a to b, one behind another, that are trained on."""
        return self._owner._stream(self.name).trained(a, b)


class ShardBucket(Bucket):
    """A bucket of a set of shards; or its whole documents, whose length is None and n_ids 0."""

    n_ids: int
    length: int
    _owner: ShardSet

    def __init__(self, owner: ShardSet, row: dict[str, Any], shards: list[dict[str, Any]]) -> None:
        super().__init__(owner, row["name"], row["length"], row["ids"], row["sequences"])
        self._shards = shards
        self._first = [0, *accumulate(s["sequences"] for s in shards)]  # sequence of each shard, and the end
        if (len(shards), self._first[-1]) != (row["shards"], self._n_seq):
            found = f"manifest.jsonl has {len(shards)} shards of {self._first[-1]} sequences for {self.name}"
            raise damaged(owner.path, f"{found}, report.json {row['shards']} of {self._n_seq}")
        self._open: dict[int, Rows] = {}

    def ids(self, i: int) -> Array:
        if not 0 <= i < self._n_seq:
            i = self._number(i)
        k = bisect(self._first, i) - 1
        return (self._open.get(k) or self._owner._open_shard(self, k)).row(i - self._first[k])

    def _rows(self, k: int) -> Rows:
        return self._open.get(k) or self._owner._open_shard(self, k)

    def block(self, a: int, b: int) -> Array:
        """Ids of sequences a to b as rows: not copied where one shard has them side by side."""
        if not self.n_ids:
            raise SluiceError(f"{self._owner.path}: documents are not of one length; take each by its number")
        if not 0 <= a <= b <= self._n_seq:
            raise WrongNumber(f"sequences {a} to {b} of the {self._n_seq} of {self.name}")
        parts = []
        while a < b:
            k = bisect(self._first, a) - 1
            first, end = self._first[k], min(b, self._first[k + 1])
            parts.append(self._rows(k).block(a - first, end - first))
            a = end
        return joined(parts or [np.zeros((0, self.n_ids), self._owner.dtype)])

    def take(self, numbers: range | Array) -> Array:
        """Ids of sequences in any order, as rows; of a range as block() gives them."""
        if isinstance(numbers, range):
            return self.block(numbers.start, numbers.stop)
        parts = [(here, self._rows(k).take(numbers[here] - self._first[k])) for k, here in groups(self._first, numbers)]
        if len(parts) == 1:
            return parts[0][1]
        out = np.empty((len(numbers), self.n_ids), self._owner.dtype)
        for here, rows in parts:
            out[here] = rows
        return out

    def documents(self, numbers: range | Array) -> tuple[Array, Array, Array | None]:
        """See StreamFile.documents."""
        return self._owner._stream(self.name).documents(numbers)


class Set:
    """What sluice.open gives: buckets, by name (`D_8`), by length, or in order of length.

    It can be shared by threads and forked processes, as nothing in it is locked, and pickled.
    """

    path: str
    format: str  #: "wds", …, or "stream"
    report: dict[str, Any]  #: report.json; of a stream, what its header says
    buckets: list[Any]
    dtype: np.dtype[np.unsignedinteger]  #: of stored ids
    label_tokens: bool  #: sequences have one id more than their bucket's length
    masks: bool  #: it says of each token whether it is trained on
    checksum: str | None  #: of the set's contents, in any order
    same_places: tuple[str, ...] = ()  #: checksum and identity of each set that `forget` made it of
    identity: str  #: of the set as it was written: contents, order and files
    eos_id: int | None
    pad_id: int | None
    vocab_size: int

    def __init__(self, path: str, index: str | None = None) -> None:
        self.path, self._index = path, index
        self._streams: dict[str, StreamFile] = {}
        self._by_key: dict[Any, Any] = {}

    def __reduce__(self) -> Any:
        return unpickle, (partial(open, index=self._index), self.path, "set", "identity", self.identity)

    def __getitem__(self, key: str | int) -> Any:
        if not self._by_key:
            self._by_key = {k: b for b in self.buckets for k in (b.name, b.length) if k is not None}
        try:
            return self._by_key[key]
        except KeyError:
            raise KeyError(f"{key!r}: the buckets are {', '.join(b.name for b in self.buckets)}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.buckets)

    def __len__(self) -> int:
        return len(self.buckets)

    @property
    def lengths(self) -> list[int]:
        """The buckets' lengths, ascending."""
        return [b.length for b in self.buckets if b.length is not None]

    def _stream(self, name: str) -> StreamFile:
        return self._streams[name]

    def verify(self) -> None:
        """Reads everything and compares it with its hashes; SluiceError says what is wrong where."""
        raise NotImplementedError

    def __repr__(self) -> str:
        n = sum(len(b) for b in self.buckets)
        return f"<sluice {self.format} {self.path}: {n} sequences in {len(self.buckets)} buckets>"


class Stream(Set):
    """A stream file: one bucket, "stream", with the sequences as they come, of any length."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        f = StreamFile(path)
        h = f.header
        self.format, self.checksum, self.identity = "stream", None, f.identity
        self.report = {**vars(h), "sequences": len(f)}
        self.dtype = np.dtype(f"<u{h.token_bytes}")
        self.label_tokens, self.masks, self.vocab_size = h.label_tokens, h.masks, h.vocab_size
        self.eos_id, self.pad_id = h.eos_id, h.pad_id
        self._streams["stream"] = f
        self.buckets = [Bucket(self, "stream", None, None, len(f))]

    def verify(self) -> None:
        need("xxhash", "verify")
        self._streams["stream"].verify()


class ShardSet(Set):
    """A folder of shards that `shuffle` wrote."""

    def __init__(self, path: str, index: str | None = None) -> None:
        super().__init__(path, index)
        self._opened: deque[tuple[ShardBucket, int]] = deque()  # oldest first
        if not any(os.path.exists(os.path.join(path, name)) for name in _BEGUN):
            raise _not_one(path)
        where = self._report = os.path.join(path, "report.json")
        if not os.path.exists(where) and os.path.exists(os.path.join(path, ".partial", "ready")):
            what = "the set is being replaced; open it again; if that shuffle was stopped, run it again"
            raise SluiceError(f"{path}: {what}")
        try:
            self._stamp = _stamp(where)
            manifest, rows = self._read_report(map_file(where).tobytes())
            self._shards = Shards(self.format, path, self.dtype, index, self.identity)
            where = os.path.join(path, "manifest.jsonl")
            lines = map_file(where, count(manifest["bytes"])).tobytes()
            check_hash(lines, digits(manifest["xxh3_64"]), where)
            self._files: list[dict[str, Any]] = json.loads(b"[" + b",".join(lines.splitlines()) + b"]")
            self.buckets = self._make_buckets(rows)
        except SluiceError:
            raise
        except Exception as e:  # of libraries too: any bytes can be there
            raise SluiceError(f"{where}: is not what shuffle writes ({e!r}); make the set again") from e
        self._check_identity()

    def _read_report(self, text: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Takes the report's facts; returns what it says of manifest.jsonl and of each bucket."""
        r = json.loads(text)
        self.identity, self._seal = digits(r["xxh3_64"]), text[-_SEAL:]
        t, whole = r["tokenizer"], r.get("whole_documents")
        self.report, self.format, self.label_tokens = r, r["format"], r["label_tokens"]
        self.checksum, self.vocab_size = digits(r["checksum"], 32), count(t["vocab_size"])
        self.eos_id, self.pad_id = (None if t[k] is None else count(t[k]) for k in ("eos_id", "pad_id"))
        self.masks = "mask_checksum" in r
        before = r.get("forgotten", {}).get("same_places", ())
        self.same_places = tuple(digits(c, 32 if len(c) > 16 else 16) for c in before)
        check_hash(text[: text.rindex(b',\n  "xxh3_64"')], self.identity, self._report)
        if self.format not in FORMATS:
            raise SluiceError(f"{self.path}: format {self.format}: this version reads {', '.join(FORMATS)}")
        self.dtype = np.dtype({2: "<u2", 4: "<u4"}[whole["id_bytes"] if whole else t["token_bytes"]])
        if whole:
            documents = {"name": "documents", "length": None, "ids": 0, "sequences": r["sequences"]}
            return r["manifest"], [{**whole, **documents}]
        rows = []
        for b in r["buckets"]:  # names follow from lengths, as in C
            length = count(b["length"] or -1, 1 << 40)
            name = f"L_{length}" if length & (length - 1) else f"D_{length.bit_length() - 1}"
            rows.append({**b, "name": name, "ids": length + {True: 1, False: 0}[self.label_tokens]})
        return r["manifest"], sorted(rows, key=lambda b: int(b["length"]))

    def _check_identity(self) -> None:
        """Refuse a set that has taken the place of the one that was opened: called after each try to open a file."""
        stamp = _stamp(self._report)
        if stamp == self._stamp:
            return
        cure = "the set was removed or replaced after it was opened; open it again"
        text = map_file(self._report, cure=cure).tobytes()
        if text[-_SEAL:] != self._seal:
            raise SluiceError(f"{self.path}: is another set than the one that was opened ({self.identity}); {cure}")
        self._stamp = stamp

    def _make_buckets(self, rows: list[dict[str, Any]]) -> list[ShardBucket]:
        """From the files of the manifest, each of which must be there."""
        shards: dict[str, list[dict[str, Any]]] = {}
        there: dict[str, set[str]] = {}
        for f in self._files:
            folder, _, base = inner(f["file"]).rpartition("/")
            count(f["bytes"])
            digits(f["xxh3_64"])
            if folder not in there:
                where = os.path.join(self.path, folder)
                there[folder] = set(os.listdir(where)) if os.path.isdir(where) else set()
            if base not in there[folder]:
                map_file(os.path.join(self.path, f["file"]))  # says that it is missing
            if "shard" in f and base.endswith(FORMATS[self.format]):
                of_bucket = shards.setdefault(folder, [])
                count(f["sequences"], 1 << 40)
                if f["shard"] != len(of_bucket):
                    raise SluiceError(f"{self.path}/manifest.jsonl: {f['file']} is not shard {len(of_bucket)}")
                of_bucket.append(f)
        return [ShardBucket(self, r, shards.get(r["name"], [])) for r in rows]

    def _open_shard(self, bucket: ShardBucket, k: int) -> Rows:
        a, b = bucket._first[k : k + 2]
        lengths = bucket.n_ids or self._stream(bucket.name).lengths(a, b)
        try:
            rows = self._shards.open(bucket._shards[k], lengths)
        finally:
            self._check_identity()
        bucket._open[k] = rows
        self._opened.append((bucket, k))  # each line is one operation, so threads need no lock
        if len(self._opened) > _KEPT_SHARDS:
            of, oldest = self._opened.popleft()
            of._open.pop(oldest, None)
        return rows

    def _stream(self, name: str) -> StreamFile:
        f = self._streams.get(name)
        if f is None:
            file = f"segments/{name}.tks"
            size = next((m["bytes"] for m in reversed(self._files) if m["file"] == file), None)
            try:
                f = StreamFile(os.path.join(self.path, file), size)
            finally:
                self._check_identity()
            if f.header.label_tokens != self.label_tokens or f.header.has_tokens:
                raise damaged(f.path, "its header is not that of this set's segments")
            if len(f) != len(self[name]):
                raise damaged(f.path, f"it has {len(f)} sequences, the shards {len(self[name])}")
            if self.masks and not f.header.masks:
                raise damaged(f.path, "it has no masks, and the set has")
            self._streams[name] = f
        return f

    def verify(self) -> None:
        need("xxhash", "verify")
        for f in self._files:
            path = os.path.join(self.path, f["file"])
            check_hash(map_file(path, f["bytes"]), f["xxh3_64"], path)


def open(path: str | os.PathLike[str], *, verify: bool = False, index: str | None = None) -> Set:
    """A set of shards (a folder that `shuffle` wrote) or a stream file.

    verify: read every file and compare its hash first (needs xxhash).
    index: folder for ids of shards that cannot be mapped (wds, parquet, compressed ones), which are
        written there once, 2 or 4 bytes an id. The default is `.sluice-ids` in the set's folder, or,
        where that cannot be written, a folder in $SLUICE_CACHE_DIR or the user's cache.
    """
    where = os.path.abspath(local(os.fspath(path)))
    local(index or "")
    if os.path.isdir(where):
        s: Set = ShardSet(where, index=index)
    elif os.path.isfile(where) and map_file(where)[:4].tobytes() == MAGIC:
        s = Stream(where)
    else:
        raise _not_one(os.fspath(path))
    if verify:
        s.verify()
    return s


def _stamp(path: str) -> tuple[int, ...]:
    """What changes when another file takes the place of this one, or its bytes are written again; () without one."""
    with suppress(OSError):
        s = os.stat(path)
        return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns
    return ()


def _not_one(path: str) -> SluiceError:
    """Neither a set nor a stream: what it is, and what helps."""
    folder = os.path.dirname(os.path.abspath(path))
    around = [f for f in (folder, os.path.dirname(folder)) if os.path.isfile(os.path.join(f, "report.json"))]
    if not os.path.exists(path):
        what = "there is no such file or folder on this machine"
    elif around:
        return SluiceError(f"{path}: is a part of a set; open that: {around[0]}")
    elif os.path.isdir(path):
        what = "is not a set of shards, which has a report.json"
    else:
        what = "is not a token stream" if os.path.isfile(path) else "is neither a folder nor a file"
    return SluiceError(f"{path}: {what}; name the folder of a set that shuffle wrote, or a file with a stream")
