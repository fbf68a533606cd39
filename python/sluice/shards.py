"""Shards of every format that `shuffle` writes, as rows of ids.

Files that have the ids as they are (olmo, ds, megatron, litdata and mds without compression) are mapped. Of the
others (wds, parquet, compressed ones) a shard's ids are written once, when it is first used, to a file that is mapped
from then on; sluice.open says where.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._base import Array, SluiceError, check_hash, damaged, map_file, need, reads, unzstd, xxh3

# The suffix of the file that has a shard's ids.
FORMATS = {
    "wds": (".tar",),
    "olmo": (".npy",),
    "ds": (".ds",),
    "megatron": (".bin",),
    "mds": (".mds", ".mds.zstd"),
    "litdata": (".bin",),
    "parquet": (".parquet",),
    "megatron-sft": (".parquet",),
}


class Rows:
    """A shard's sequences: sequence i is array[at[i]], or array[i] where at is None."""

    def __init__(self, array: Array, at: Array | None = None) -> None:
        self._array, self._at = array, at

    def row(self, i: int) -> Array:
        """The ids of sequence i, a view."""
        out: Array = self._array[i if self._at is None else self._at[i]]
        return out

    def block(self, a: int, b: int) -> Array:
        """Sequences a to b as an array of two dimensions; a view where they lie side by side."""
        return self._array[a:b] if self._at is None else self._array[self._at[a:b]]

    def take(self, numbers: Array) -> Array:
        """Sequences by their numbers, copied."""
        return self._array.take(numbers if self._at is None else self._at[numbers], axis=0)


class Documents(Rows):
    """A shard of whole documents: document i has the ids of bytes begin[i] to begin[i] + size[i]."""

    def __init__(self, data: Array, dtype: np.dtype[np.unsignedinteger], begin: Array, size: Array) -> None:
        super().__init__(data)
        self._dtype, self._begin, self._size = dtype, begin, size

    def row(self, i: int) -> Array:
        out: Array = self._array[self._begin[i] : self._begin[i] + self._size[i]].view(self._dtype)
        return out

    def block(self, a: int, b: int) -> Array:
        """Documents a to b, one behind another."""
        return np.concatenate([np.zeros(0, self._dtype), *(self.row(i) for i in range(a, b))])


def _offsets(data: Array, n_seq: int, path: str) -> Array:
    """u32 n, u32 offset[n + 1]: how MDS and LitData begin."""
    if len(data) < 4 * (n_seq + 2) or int(data[:4].view("<u4")[0]) != n_seq:
        raise damaged(path, f"its head does not say that it has {n_seq} sequences")
    at: Array = data[4 : 4 * (n_seq + 2)].view("<u4").astype(np.int64)
    if at[0] < 4 * (n_seq + 2) or (np.diff(at) < 0).any() or at[-1] != len(data):
        raise damaged(path, "its offsets do not lie within it")
    return at


def _rows(
    kind: str, data: Array, dtype: np.dtype[np.unsignedinteger], n_seq: int, lengths: int | Array, path: str
) -> Rows:
    """The sequences in a shard's bytes; `lengths` in ids, one for all or one for each."""
    size = lengths * dtype.itemsize
    if kind in ("mds", "litdata"):
        at = _offsets(data, n_seq, path)
        room = np.diff(at)
        if kind == "mds":  # the size of seq_lengths, with masks a byte of mask an id, seq_lengths, and the ids
            begin, wrong = at[1:] - size, room < size
        else:  # the ids; with masks the sizes of ids and mask (u32), both, and a byte of mask an id
            begin = at[:-1] + np.where(room == size, 0, 8)
            wrong = (room != size) & (room != 8 + size + lengths)
        if wrong.any():
            raise damaged(path, f"sequence {int(wrong.argmax())} is not as long as its ids")
        if isinstance(size, np.ndarray):
            return Documents(data, dtype, begin, size)
        if (room != size).any():
            every = len(data) - size + 1  # places at which ids could begin
            return Rows(np.ndarray((every, lengths), dtype, data.data, 0, (1, dtype.itemsize)), begin)
        data = data[at[0] :]
    total = int(size.sum()) if isinstance(size, np.ndarray) else n_seq * size
    if len(data) != total:
        raise damaged(path, f"it has {len(data)} bytes where the ids of its {n_seq} sequences have {total}")
    if isinstance(size, np.ndarray):
        return Documents(data, dtype, np.cumsum(size) - size, size)
    return Rows(data.view(dtype).reshape(n_seq, lengths))


def _wds(data: Array, n_seq: int, most: int, path: str) -> Array:
    """The ids of a shard's members, none of which has more than `most`."""
    texts = []
    limit = 16 * most + 1024  # bytes of a member; an id has at most 12
    with tarfile.open(fileobj=io.BytesIO(data.tobytes())) as tar:
        for m in tar:
            f = tar.extractfile(m)
            if ".loss_mask." not in m.name:
                text = f.read(limit) if f else b""
                texts.append(zlib.decompressobj(31).decompress(text, limit) if m.name.endswith(".gz") else text)
            if not m.name.startswith(f"{len(texts) - 1:012d}."):
                raise damaged(path, f"member {m.name} where {len(texts) - 1:012d} must be")
    if len(texts) != n_seq:
        raise damaged(path, f"it has {len(texts)} sequences where {n_seq} must be")
    joined = b",".join(t.strip()[1:-1] for t in texts).decode("ascii", "replace")
    ids: Array = np.fromstring(joined, dtype=np.int64, sep=",")
    return ids


def _parquet(path: str, n_seq: int) -> Array:
    table = need("pyarrow.parquet", f"{path}: a Parquet file").read_table(path, columns=["input_ids"])
    if table.num_rows != n_seq:
        raise damaged(path, f"it has {table.num_rows} rows where {n_seq} must be")
    parts = [c.flatten().to_numpy(zero_copy_only=False) for c in table["input_ids"].chunks]
    return np.concatenate([np.zeros(0, np.int32), *parts])


def _keep(path: str, ids: Array) -> None:
    """Writes ids and their XXH3-64 (or what never is one, without xxhash) to a file that is whole once it is there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd, tmp = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(fd, "wb") as f:
            ids.tofile(f)
            f.write((xxh3(ids) or "-" * 16).encode())
        os.replace(tmp, path)
    except BaseException:
        os.unlink(tmp)
        raise


@dataclass
class Shards:
    """Opens the shards of a set: files as manifest.jsonl describes them."""

    kind: str
    path: str  # of the set
    dtype: np.dtype[np.unsignedinteger]
    index: str | None  # folder for ids that cannot be mapped; None: one is chosen
    key: str  # checksum of the report
    checked: set[str] = field(default_factory=set)  # files of ids that are as they were written

    @reads
    def open(self, file: dict[str, Any], lengths: int | Array) -> Rows:
        """The sequences of a shard; `lengths` in ids, one for all or one for each."""
        path, n_seq = os.path.join(self.path, file["file"]), file["sequences"]
        packed = path.endswith((".zstd", ".zstd.bin"))
        if self.kind not in ("wds", "parquet", "megatron-sft") and not packed:
            return _rows(self.kind, map_file(path, file["bytes"]), self.dtype, n_seq, lengths, path)
        if isinstance(lengths, int):
            longest, n_id = lengths, lengths * n_seq
        else:
            longest, n_id = int(lengths.max(initial=0)), int(lengths.sum())
        n_byte = n_id * self.dtype.itemsize
        places = self._places(f"{file['file'].replace('/', '-')}.{file['xxh3_64']}.ids")
        for kept in places:
            data = self._kept(kept, n_byte)
            if data is not None:
                return _rows("", data, self.dtype, n_seq, lengths, kept)
        data = map_file(path, file["bytes"])
        check_hash(data, file["xxh3_64"], path)
        if packed:
            # Each id, its byte of mask, its segment's length; the sizes of each sequence; the head, with MDS's columns.
            most = n_id * (self.dtype.itemsize + 5) + 64 * n_seq + 1024
            data = np.frombuffer(unzstd(data.tobytes(), most, path), np.uint8)
            ids = _rows(self.kind, data, self.dtype, n_seq, lengths, path).block(0, n_seq)
        else:
            ids = _wds(data, n_seq, longest, path) if self.kind == "wds" else _parquet(path, n_seq)
        if ids.size != n_id:
            raise damaged(path, f"it has {ids.size} ids where {n_id} must be")
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) <= np.iinfo(self.dtype).max:
            raise damaged(path, "an id past the vocabulary")
        error = OSError()
        for kept in places:
            try:
                _keep(kept, np.ascontiguousarray(ids, self.dtype))
                return _rows("", map_file(kept)[:n_byte], self.dtype, n_seq, lengths, kept)
            except OSError as e:
                error = e
        raise SluiceError(
            f"{places[-1]}: cannot be written: {error}; ids of shards that cannot be mapped are kept there: "
            "sluice.open(..., index=FOLDER), or set SLUICE_CACHE_DIR to a folder with room for them"
        )

    def _places(self, name: str) -> list[str]:
        """Where ids may be kept, best first."""
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cache = os.path.join(os.environ.get("SLUICE_CACHE_DIR") or os.path.join(home, "sluice"), "ids")
        if self.index:
            return [os.path.join(self.index, self.key, name)]
        own = os.path.join(self.path, ".sluice-ids")
        places = [os.path.join(folder, self.key, name) for folder in (own, cache)]
        # A link in a set would lead what is written, or read, to another place.
        linked = any(os.path.islink(p) for p in (own, os.path.dirname(places[0]), places[0]))
        return places[linked:]

    def _kept(self, path: str, n_byte: int) -> Array | None:
        """The bytes of ids in a file that _keep wrote; None if it is missing, or not as it was written."""
        if not os.path.exists(path):
            return None
        data = map_file(path)
        hash = None if path in self.checked else xxh3(data[:-16])
        if len(data) != n_byte + 16 or (hash and data[-16:].tobytes() != hash.encode()):
            return None
        self.checked.add(path)
        return data[:n_byte]
