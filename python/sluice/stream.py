"""Token streams (formats/STREAM.md), with random access: what `tokenize` to `shuffle` write, and
the `segments` folder of a set, which says where every token of the shards came from."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ._base import Array, SluiceError, WrongNumber, check_hash, damaged, map_file, reads, unzstd

PADDING = (1 << 64) - 1
MAGIC = b"\xf5TKS"
_LABELS, _NO_TOKENS, _SCORES, _MASKS, _INNER_PADDING, _METADATA = 1, 2, 4, 8, 16, 32
_FLAGS = _LABELS | _NO_TOKENS | _SCORES | _MASKS | _INNER_PADDING | _METADATA
# Types of metadata, in the order of their numbers, from 1: a column, and the bits of the element that means null.
_TYPES = {
    "name": ("<u4", 0xFFFFFFFF), "text": ("<u4", 0xFFFFFFFF), "u8": ("u1", 0xFF), "u32": ("<u4", 0xFFFFFFFF),
    "u64": ("<u8", PADDING), "f32": ("<f4", 0x7FC00000), "i64": ("<i8", 1 << 63), "f64": ("<f8", 0x7FF8000000000000),
}  # fmt: skip
_ZSTD, _SEQ_CONTINUES, _SEG_CONTINUES = 1, 2, 4
_HEAD = struct.Struct("<4s4sIIQQQQQQ")
_LIMIT = 1 << 26
_KEPT_FRAMES = 16
_IDS = {"vocab_size", "eos_id", "bos_id"}  # of a Header
# What Segments has an entry a segment of: a frame's columns, in their order (no domain is -1), and what they give.
_STORED = {"source": "<u8", "document": "<u8", "offset": "<u8", "length": "<i8", "domain": "<i4"}
_ROWS = {**_STORED, "member": "<i4", "id_at": "<i8", "id_size": "<i8", "frame": "<i4", "row": "<i8"}


def starts(n: Array) -> Array:
    """Where each begins of what are so long, and the end."""
    out = np.zeros(len(n) + 1, np.int64)
    np.cumsum(n, out=out[1:])
    return out


_upto = lru_cache(4)(np.arange)  # batches of one size need the same again and again


def places(at: Array, n: Array) -> Array:
    """The place that each part has in its whole, of wholes that begin at `at` and are so long."""
    out: Array = np.repeat(at[:-1], n)
    np.subtract(_upto(int(at[-1])), out, out=out)
    return out


def spread(begin: Array, n: Array) -> Array:
    """The numbers begin to begin + n of each part, one part behind another."""
    at = starts(n)
    out: Array = np.arange(at[-1]) + np.repeat(begin - at[:-1], n)
    return out


def groups(first: list[int], numbers: Array) -> Iterator[tuple[int, Any]]:
    """Of parts that begin at the numbers `first`: each that has some of `numbers`, and where these are."""
    k = bisect(first, int(numbers.min())) - 1
    if k + 1 == len(first) or numbers.max() < first[k + 1]:
        yield k, slice(None)
        return
    part = np.searchsorted(first, numbers, "right") - 1
    for k in np.unique(part).tolist():
        yield k, np.flatnonzero(part == k)


def joined(parts: list[Array]) -> Array:
    """The parts one behind another; one alone is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass
class Header:
    """What a stream's HEAD frame says."""

    token_bytes: int
    label_tokens: bool
    has_tokens: bool
    extras: int  # columns of segments that may be left out; 1: scores
    masks: bool  # it says of each token whether it is trained on
    vocab_size: int
    eos_id: int | None
    bos_id: int | None
    pad_id: int | None
    fingerprint: str
    buckets: list[int]
    metadata: dict[str, str]  # fields of documents, with their types


class _Frame(NamedTuple):
    kind: bytes
    at: int  # of its payload
    stored: int
    raw: int
    flags: int
    hash: str
    member: int
    first: int  # ordinal of the first sequence that begins in it or after it
    n_begin: int
    continues: bool  # its first sequence began in an earlier frame


@dataclass
class _Columns:
    n_seq: int
    seg_at: Array  # n_seq + 1
    tok_at: Array  # n_seg + 1
    rows: dict[str, Array]  # those of Segments, of all segments of the frame
    id_bytes: bytes
    padded: bool  # it has segments of padding
    mask: Array | None  # a bit a token
    tokens: Array | None
    metadata: dict[str, tuple[Array, bytes]]  # a column, and the bytes of its texts


@dataclass
class Segments:
    """The segments of one or several sequences, a row each; `counts` has how many each sequence has.

    source is the ordinal of the input file, document the record's place in it, offset the segment's
    first token in its document, length in tokens. A row of padding has source PADDING.
    """

    stream: StreamFile
    counts: Array
    id_bytes: bytes
    length: Array
    source: Array
    document: Array
    offset: Array
    domain: Array
    member: Array
    id_at: Array  # of the record's id in id_bytes
    id_size: Array
    frame: Array  # the first frame that has it, and its row in it
    row: Array

    def metadata(self, name: str) -> list[str | int | float | None]:
        """A field of metadata of each segment's document, None where it is null."""
        out = np.full(len(self.length), None, object)
        for k in np.unique(self.frame).tolist():
            here = np.flatnonzero(self.frame == k)
            out[here] = self.stream.metadata_of(k, name)[self.row[here]]
        values: list[str | int | float | None] = out.tolist()
        return values

    @property
    def padding(self) -> Array:
        """True for rows of padding."""
        return np.asarray(self.source == PADDING)

    @property
    def sources(self) -> list[str | None]:
        """Names of the input files; None for padding."""
        names = self.stream.names(b"SRCS")
        rows = zip(self.member.tolist(), self.source.tolist())
        return [None if s == PADDING else names[m].get(s) for m, s in rows]

    @property
    def domains(self) -> list[str | None]:
        """Domains, None where there is none."""
        names = self.stream.names(b"DOMS")
        rows = zip(self.member.tolist(), self.domain.tolist())
        try:
            return [None if d < 0 else names[m][d] for m, d in rows]
        except KeyError as e:
            raise damaged(self.stream.path, f"domain {e} has no name") from e

    @property
    def record_ids(self) -> list[str | None]:
        """The records' own ids, None where there is none."""
        rows = zip(self.id_at.tolist(), self.id_size.tolist())
        return [self.id_bytes[i : i + n].decode("utf-8", "surrogateescape") if n else None for i, n in rows]

    def known(self, column: Array) -> list[int | None]:
        """The numbers of a column; None for padding."""
        return [None if p else n for p, n in zip(self.padding.tolist(), column.tolist())]


class StreamFile:
    """A stream in a file: sequences by their number, segments and (where it has them) ids.

    Opening walks the frames' headers; a frame's contents are read, checked and kept when a sequence
    of it is asked for. Threads may share one, and it has no lock that a fork could leave shut in the child.
    """

    def __init__(self, path: str, n_byte: int | None = None) -> None:
        self.path = path
        self._map = map_file(path, n_byte)
        self._columns = lru_cache(_KEPT_FRAMES)(self._decode)
        self.names = lru_cache(None)(self._read_names)  #: by ordinal, for each member: SRCS of files, DOMS of domains
        self.headers: list[Header] = []
        self._frames: list[_Frame] = []  # with sequences
        self._others: list[_Frame] = []
        self._walk()
        self.header = self.headers[0]
        self._first = [f.first for f in self._frames]
        self.metadata_of = lru_cache(_KEPT_FRAMES)(self._metadata)  #: a field's values in a frame

    def __len__(self) -> int:
        return self._n_seq

    def _bad(self, at: int, what: str) -> SluiceError:
        return SluiceError(f"{self.path}: byte {at}: {what}; copy or make it again")

    @reads
    def _walk(self) -> None:
        data, at, n = self._map, 0, len(self._map)
        n_seq, started = 0, False
        seal = hashlib.sha256()
        while at < n or started or not n:
            if at + 64 > n:
                raise self._bad(at, "the stream is truncated")
            head = data[at : at + 64].tobytes()
            magic, kind, flags, _, no, raw, stored, aux, payload_hash, head_hash = _HEAD.unpack(head)
            if magic != MAGIC:
                raise self._bad(at, "is not a token stream" if at == 0 else "no frame begins here")
            check_hash(head[:56], f"{head_hash:016x}", f"{self.path}: byte {at}: frame header")
            if not started:
                number, ended, continues = 0, False, False
            seal.update(head)
            end = at + 64 + ((stored + 63) & ~63)
            if no != number or raw > _LIMIT or stored > _LIMIT or (kind == b"HEAD") != (not started):
                raise self._bad(at, "a frame that cannot stand here")
            if end > n:
                raise self._bad(at, "the stream is truncated")
            number, started = number + 1, True
            place = at + 64, stored, raw, flags, f"{payload_hash:016x}", len(self.headers) - (kind != b"HEAD")
            f = _Frame(kind, *place, n_seq, aux, continues)
            (self._frames if kind == b"DATA" else self._others).append(f)
            if kind == b"HEAD":
                self._head(at, self._payload(f))
            elif kind == b"DATA":
                if aux > raw:
                    raise self._bad(at, f"a frame of {raw} bytes in which {aux} sequences begin")
                n_seq += aux
                continues = bool(flags & _SEQ_CONTINUES)
            elif kind == b"ENDS":
                if continues:
                    raise self._bad(at, "the stream ends within a sequence")
                ended = True
            elif kind == b"FOOT":
                if not ended:
                    raise self._bad(at, "the stream ends without its end frame")
                started = False
            elif kind not in (b"SRCS", b"DOMS", b"VALS", b"INDX") and not kind[:1].islower():
                raise self._bad(at, f"unknown frame {kind!r}")
            at = end
        self._n_seq = n_seq
        self.identity = seal.hexdigest()[:32]  #: of the frames' headers, which have the hashes of their contents

    def _payload(self, f: _Frame) -> Array:
        body = self._map[f.at : f.at + ((f.stored + 63) & ~63)]
        where = f"{self.path}: byte {f.at}: frame"
        check_hash(body, f.hash, where)
        if not f.flags & _ZSTD:
            return body[: f.stored]
        raw = unzstd(body[: f.stored].tobytes(), f.raw, where)
        if len(raw) != f.raw:
            raise damaged(where, f"it has {len(raw)} bytes where {f.raw} must be")
        return np.frombuffer(raw, np.uint8)

    def verify(self) -> None:
        """Reads every frame and compares it with its hash."""
        for f in self._others:
            self._payload(f._replace(flags=0))
        for k in range(len(self._frames)):
            self._decode(k)

    def _head(self, at: int, p: Array) -> None:
        b = p.tobytes()
        major, _, tok, flags, vocab, eos, bos, pad, finger, n_bucket = struct.unpack_from("<IIIIQQQQ16sQ", b)
        if major != 1 or flags & ~_FLAGS or tok not in (2, 4) or n_bucket > 64:
            raise SluiceError(f"{self.path}: a stream of another version; a newer sluice reads it")
        eos, bos, pad = (None if v == PADDING else int(v) for v in (eos, bos, pad))
        buckets = list(struct.unpack_from(f"<{n_bucket}Q", b, 128))
        labels, tokens, masks = bool(flags & _LABELS), not flags & _NO_TOKENS, bool(flags & _MASKS)
        fields = self._fields(b, 128 + 8 * n_bucket) if flags & _METADATA else {}
        extras, print_ = int(bool(flags & _SCORES)), finger.hex()
        h = Header(tok, labels, tokens, extras, masks, vocab, eos, bos, pad, print_, buckets, fields)
        before = self.headers[0] if self.headers else h
        other = {name for name, value in vars(h).items() if value != getattr(before, name)}
        if "fingerprint" in other:
            what = f"another tokenizer (fingerprint {h.fingerprint}) than the one before it ({before.fingerprint})"
            raise self._bad(at, f"a stream of {what}; streams of different tokenizers cannot be joined")
        if other & _IDS:
            raise self._bad(at, "a stream with another vocabulary size, EOS or BOS than the one before it")
        if other - {"masks", "metadata", "pad_id"}:
            raise self._bad(at, "a stream with other bucket lengths, label tokens or columns than the one before it")
        self.headers.append(h)

    def _fields(self, b: bytes, at: int) -> dict[str, str]:
        n_step, n_field = struct.unpack_from("<QQ", b, 72)
        for _ in range(n_step):
            at += (24 + sum(struct.unpack_from("<III", b, at + 8)) + 7) & ~7
        out = {}
        for _ in range(n_field):
            kind, scope, _, n = struct.unpack_from("<BBHI", b, at)
            if scope or not 1 <= kind <= len(_TYPES):
                raise SluiceError(f"{self.path}: metadata of another version; a newer sluice reads it")
            out[b[at + 8 : at + 8 + n].decode("utf-8", "surrogateescape")] = list(_TYPES)[kind - 1]
            at += (8 + n + 7) & ~7
        return out

    @property
    def metadata(self) -> dict[str, str]:
        """Names and types of the fields that documents may have (Segments.metadata)."""
        return {name: kind for h in self.headers for name, kind in h.metadata.items()}

    @reads
    def _metadata(self, k: int, name: str) -> Array:
        if name not in self.metadata:
            known = ", ".join(self.metadata) or "none"
            raise SluiceError(f"{self.path}: no metadata field {name!r}; it has {known}")
        c, member = self._columns(k), self._frames[k].member
        out = np.full(len(c.tok_at) - 1, None, object)
        kind = self.headers[member].metadata.get(name)
        if kind is None:
            return out
        column, texts = c.metadata[name]
        has = np.flatnonzero(column.view(f"<u{column.itemsize}") != _TYPES[kind][1])
        if kind == "name":
            values = self.names(b"VALS")[member]
            out[has] = [values[n] for n in column[has].tolist()]
        elif kind == "text":
            at = starts(column[has].astype(np.int64)).tolist()
            out[has] = [texts[a:b].decode("utf-8", "surrogateescape") for a, b in zip(at, at[1:])]
        else:
            out[has] = column[has].tolist()
        return out

    @reads
    def _decode(self, k: int) -> _Columns:
        f = self._frames[k]
        h = self.headers[f.member]
        p = self._payload(f)
        at = 0

        def column(dtype: str, n: int) -> Array:
            nonlocal at
            size = n * np.dtype(dtype).itemsize
            if at + size > len(p):
                raise self._bad(f.at, f"a frame of {len(p)} bytes is shorter than its columns")
            c: Array = p[at : at + size].view(dtype)
            at += (size + 63) & ~63
            return c

        n_seq, n_seg, n_tok, n_id = (int(v) for v in column("<u8", 8)[:4])
        seg_at = starts(column("<u4", n_seq))
        rows = {name: column(dtype, n_seg) for name, dtype in _STORED.items()}
        id_at = starts(column("<u4", n_seg))
        rows.update(id_at=id_at[:-1], id_size=np.diff(id_at), member=np.full(n_seg, f.member, np.int32))
        if h.extras:
            column("<u8", n_seg)
        rows.update(frame=np.full(n_seg, k, np.int32), row=np.arange(n_seg))
        ids = column("u1", n_id).tobytes()
        metadata = {}
        for name, kind in h.metadata.items():
            size, none = _TYPES[kind]
            of = column(size, n_seg)
            n_text = int(of[of != none].sum(dtype=np.int64)) if kind == "text" else 0
            metadata[name] = of, column("u1", n_text).tobytes()
        mask = column("u1", -(-n_tok // 8)) if h.masks else None
        tokens = column(f"<u{h.token_bytes}", n_tok) if h.has_tokens else None
        tok_at = starts(rows["length"])
        if n_seg and rows["length"].min() < 0:
            raise self._bad(f.at, "a segment's length is not possible")
        for what, found, expected in (
            ("segments of the sequences", seg_at[-1], n_seg), ("bytes of ids", id_at[-1], n_id),
            ("tokens of the segments", tok_at[-1], n_tok),
            ("sequences that begin here", n_seq - f.continues, f.n_begin),
        ):  # fmt: skip
            if found != expected:
                raise self._bad(f.at, f"the {what} are {found}, and the frame's head says {expected}")
        padded = bool((rows["source"] == PADDING).any())
        return _Columns(n_seq, seg_at, tok_at, rows, ids, padded, mask, tokens, metadata)

    @reads
    def _read_names(self, wanted: bytes) -> list[dict[int, str]]:
        out: list[dict[int, str]] = [{} for _ in self.headers]
        for f in self._others:
            if f.kind != wanted:
                continue
            p, i = self._payload(f).tobytes(), 8
            for _ in range(struct.unpack_from("<Q", p)[0]):
                ordinal, size = struct.unpack_from("<QI", p, i)
                out[f.member][ordinal] = p[i + 12 : i + 12 + size].decode("utf-8", "surrogateescape")
                i += 12 + size
        return out

    def _pieces(self, a: int, b: int) -> list[tuple[_Frame, _Columns, int, int]]:
        """(frame, columns, first, behind the last of its sequences) that make sequences a to b."""
        if not 0 <= a <= b <= self._n_seq:
            raise WrongNumber(f"sequences {a} to {b} of {self._n_seq}")
        out: list[tuple[_Frame, _Columns, int, int]] = []
        k = bisect(self._first, a) - 1
        while a < b and k < len(self._frames):
            f, c = self._frames[k], self._columns(k)
            lo = a - f.first + f.continues if not out else 0
            hi = min(c.n_seq, b - f.first + f.continues)
            out.append((f, c, lo, hi))
            if f.first + f.n_begin >= b and not (hi == c.n_seq and f.flags & _SEQ_CONTINUES):
                break
            k += 1
        return out

    @reads
    def segments(self, a: int, b: int) -> Segments:
        """The segments of sequences a to b, b not among them."""
        parts, sequence, segment, n_id, last = [], [], [], 0, 0  # two: whether one begins in its frame
        for f, c, lo, hi in self._pieces(a, b):
            s, e = int(c.seg_at[lo]), int(c.seg_at[hi])
            counts = np.diff(c.seg_at[lo : hi + 1])
            parts.append(Segments(self, counts, c.id_bytes, **{name: row[s:e] for name, row in c.rows.items()}))
            sequence.append(np.ones(hi - lo, bool))
            segment.append(np.ones(e - s, bool))
            if len(parts) > 1:  # it may go on with the last sequence of the frame before, and its last segment
                parts[-1].id_at = parts[-1].id_at + n_id
                sequence[-1][:1] = not f.continues
                segment[-1][:1] = not (f.continues and last & _SEG_CONTINUES)
            n_id, last = n_id + len(c.id_bytes), f.flags
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Segments(self, np.zeros(0, np.int64), b"", **{name: np.zeros(0, t) for name, t in _ROWS.items()})
        begins = joined(segment)
        rows = {name: joined([getattr(p, name) for p in parts])[begins] for name in _ROWS}
        rows["length"] = np.add.reduceat(joined([p.length for p in parts]), np.flatnonzero(begins))
        at = starts(joined([p.counts for p in parts]))[np.append(joined(sequence), True)]
        return Segments(self, np.diff(starts(begins)[at]), b"".join(p.id_bytes for p in parts), **rows)

    @reads
    def lengths(self, a: int, b: int) -> Array:
        """Tokens of each of the sequences a to b."""
        s = self.segments(a, b)
        out: Array = np.diff(starts(s.length)[starts(s.counts)])
        return out

    @reads
    def trained(self, a: int, b: int) -> Array:
        """True for each token of sequences a to b that is trained on: all but padding, in a stream without masks."""
        parts: list[Array] = []
        for _, c, lo, hi in self._pieces(a, b):
            s, e = int(c.seg_at[lo]), int(c.seg_at[hi])
            if c.mask is None:
                parts.append(np.repeat(c.rows["source"][s:e] != PADDING, c.rows["length"][s:e]))
            else:
                first, last = int(c.tok_at[s]), int(c.tok_at[e])
                bits = np.unpackbits(c.mask[first // 8 : -(-last // 8)], bitorder="little")
                parts.append(bits[first % 8 :][: last - first].view(bool))
        return joined(parts or [np.zeros(0, bool)])

    @reads
    def documents(self, numbers: range | Array) -> tuple[Array, Array, Array | None]:
        """Of sequences in any order: how many segments each has, the segments' lengths, and whether each token is
        trained on (None: all are)."""
        if isinstance(numbers, range):
            a, b = numbers.start, numbers.stop
            s = self.segments(a, b)
            return s.counts, s.length, self.trained(a, b) if self.header.masks or s.padding.any() else None
        parts: list[tuple[Any, Array, _Columns]] = []
        counts = np.empty(len(numbers), np.int64)
        for k, here in groups(self._first, numbers):
            f, c = self._frames[k], self._columns(k)
            at = numbers[here] - (f.first - f.continues)
            if f.flags & _SEQ_CONTINUES and at.max() == c.n_seq - 1:  # one goes on in the next frame
                each = [self.documents(range(i, i + 1)) for i in numbers.tolist()]
                every = [np.ones(int(n.sum()), bool) if t is None else t for _, n, t in each]
                return joined([n for n, _, _ in each]), joined([n for _, n, _ in each]), joined(every)
            first = c.seg_at[at]
            counts[here] = c.seg_at[at + 1] - first
            parts.append((here, first, c))
        begin = starts(counts)
        length, real = np.empty(begin[-1], np.int64), np.ones(begin[-1], bool)
        for here, first, c in parts:
            of = spread(first, counts[here])
            to = here if isinstance(here, slice) else spread(begin[:-1][here], counts[here])
            length[to] = c.rows["length"][of]
            if c.padded:
                real[to] = c.rows["source"][of] != PADDING
        if not self.header.masks and real.all():
            return counts, length, None
        trained, begin = np.repeat(real, length), starts(length)[begin]
        for here, first, c in parts:
            if c.mask is not None:
                n = np.diff(begin)[here]
                of = spread(c.tok_at[first], n)
                trained[spread(begin[:-1][here], n)] = c.mask[of >> 3] >> (of & 7).astype(np.uint8) & 1
        return counts, length, trained

    @reads
    def ids(self, i: int) -> Array:
        """The ids of sequence i: a view where they lie in one frame."""
        parts = []
        for _, c, lo, hi in self._pieces(i, i + 1):
            if c.tokens is None:
                raise SluiceError(f"{self.path}: a stream without tokens")
            parts.append(c.tokens[c.tok_at[c.seg_at[lo]] : c.tok_at[c.seg_at[hi]]])
        return joined(parts)
