"""Shards of every format that `shuffle` writes, as rows of ids.

Formats whose ids lie in the file as they are (olmo, ds, megatron, litdata and mds without
compression) are mapped. Of the others (wds, parquet, compressed ones) a shard's ids are written
once, when it is first used, to a file that is mapped from then on, named by the report's checksum and
the shard's: in the folder `.sluice-ids` of the set, or where that cannot be written in the user's cache.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from dataclasses import dataclass

import numpy as np

from ._base import Array, SluiceError, check_hash, map_file, need, unzstd, xxh3

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


@dataclass
class Shard:
    """A file of a set and what manifest.jsonl says of it."""

    file: str
    n_byte: int
    hash: str
    n_seq: int
    checked: bool = False  # ids that were kept for it are as they were written


class Rows:
    """A shard's sequences: each is `n` ids at array[at[i]], or at array[i] where at is None."""

    def __init__(self, array: Array, at: Array | None = None) -> None:
        self._array, self._at = array, at

    def row(self, i: int) -> Array:
        """The ids of sequence i, a view."""
        out: Array = self._array[i if self._at is None else self._at[i]]
        return out

    def block(self, a: int, b: int) -> Array:
        """Sequences a to b as an array of two dimensions; a view where they lie side by side."""
        return self._array[a:b] if self._at is None else self._array[self._at[a:b]]


class Documents(Rows):
    """A shard of whole documents: sequence i is array[begin[i] : begin[i + 1]]."""

    def __init__(self, array: Array, begin: Array) -> None:
        super().__init__(array)
        self._begin = begin

    def row(self, i: int) -> Array:
        out: Array = self._array[self._begin[i] : self._begin[i + 1]]
        return out


def _damaged(path: str, what: str) -> SluiceError:
    return SluiceError(f"{path}: damaged: {what}; copy or make the set again")


def _offsets(data: Array, n_seq: int, path: str) -> Array:
    """u32 n, u32 offset[n + 1]: how MDS and LitData begin."""
    if len(data) < 4 * (n_seq + 2) or int(data[:4].view("<u4")[0]) != n_seq:
        raise _damaged(path, f"its head does not say that it has {n_seq} sequences")
    at: Array = data[4 : 4 * (n_seq + 2)].view("<u4").astype(np.int64)
    if at[0] < 4 * (n_seq + 2) or (np.diff(at) < 0).any() or at[-1] != len(data):
        raise _damaged(path, "its offsets do not lie within it")
    return at


def _fixed(data: Array, dtype: np.dtype[np.unsignedinteger], n_seq: int, n_ids: int, path: str) -> Rows:
    if len(data) != n_seq * n_ids * dtype.itemsize:
        raise _damaged(path, f"its ids are not those of {n_seq} sequences of {n_ids}")
    return Rows(data.view(dtype).reshape(n_seq, n_ids))


def _items(data: Array, at: Array, dtype: np.dtype[np.unsignedinteger], n_ids: int) -> Rows:
    """Rows of ids that begin at these bytes."""
    if not len(at):
        return Rows(np.zeros((0, n_ids), dtype))
    every = len(data) - n_ids * dtype.itemsize + 1  # places at which ids could begin
    return Rows(np.ndarray((every, n_ids), dtype, data.data, 0, (1, dtype.itemsize)), at)


def _litdata(data: Array, dtype: np.dtype[np.unsignedinteger], n_seq: int, n_ids: int, path: str) -> Rows:
    """An item is its ids; with masks the sizes of ids and mask (u32), both, and a byte of mask an id."""
    at, size = _offsets(data, n_seq, path), n_ids * dtype.itemsize
    if (np.diff(at) != 8 + size + n_ids).any():
        return _fixed(data[at[0] :], dtype, n_seq, n_ids, path)
    return _items(data, at[:-1] + 8, dtype, n_ids)


def _mds(data: Array, dtype: np.dtype[np.unsignedinteger], n_seq: int, n_ids: int, path: str) -> Rows:
    """A sample is the size of seq_lengths, with masks a byte of mask an id, seq_lengths, and the ids at its end."""
    at, size = _offsets(data, n_seq, path), n_ids * dtype.itemsize
    if (np.diff(at) < size).any():
        raise _damaged(path, "a sample is shorter than its ids")
    return _items(data, at[1:] - size, dtype, n_ids)


def _wds(data: Array, n_seq: int, n_ids: int, path: str) -> Array:
    texts = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data.tobytes())) as tar:
            for m in tar:
                f = tar.extractfile(m)
                if ".loss_mask." not in m.name:
                    text = f.read() if f else b""
                    texts.append(gzip.decompress(text) if m.name.endswith(".gz") else text)
                if not m.name.startswith(f"{len(texts) - 1:012d}."):
                    raise _damaged(path, f"member {m.name} where {len(texts) - 1:012d} must be")
    except (tarfile.TarError, OSError, EOFError) as e:
        raise _damaged(path, str(e)) from e
    joined = b",".join(t.strip()[1:-1] for t in texts).decode("ascii", "replace")
    ids: Array = np.fromstring(joined, dtype=np.int64, sep=",")
    if len(texts) != n_seq or len(ids) != n_seq * n_ids:
        raise _damaged(path, f"its ids are not those of {n_seq} sequences of {n_ids}")
    return ids


def _parquet(path: str, n_seq: int, n_ids: int) -> Array:
    table = need("pyarrow.parquet", f"{path}: a Parquet file").read_table(path, columns=["input_ids"])
    parts = [c.flatten().to_numpy(zero_copy_only=False) for c in table["input_ids"].chunks]
    ids: Array = np.concatenate(parts or [np.zeros(0, np.int32)])
    if table.num_rows != n_seq or len(ids) != n_seq * n_ids:
        raise _damaged(path, f"its ids are not those of {n_seq} sequences of {n_ids}")
    return ids


def _cache() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.environ.get("SLUICE_CACHE_DIR") or os.path.join(home, "sluice"), "ids")


def _kept(path: str, n_byte: int, s: Shard) -> Array | None:
    """The bytes of ids in a file that _keep wrote; None if it is missing, or not as it was written."""
    if not os.path.exists(path):
        return None
    data = map_file(path)
    if len(data) != n_byte + 16:
        return None
    hash = None if s.checked else xxh3(data[:-16])
    if hash is not None and data[-16:].tobytes() != hash.encode():
        return None
    s.checked = True
    return data[:n_byte]


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


def open_documents(root: str, s: Shard, dtype: np.dtype[np.unsignedinteger], lengths: Array) -> Rows:
    """The documents of a shard, which are as long as the segments say."""
    path, begin = os.path.join(root, s.file), np.concatenate([[0], np.cumsum(lengths)])
    data = map_file(path, s.n_byte)
    if len(data) != begin[-1] * dtype.itemsize:
        raise _damaged(path, f"its {len(data)} bytes are not the {begin[-1]} ids of its documents")
    return Documents(data.view(dtype), begin)


def open_shard(
    kind: str, root: str, s: Shard, dtype: np.dtype[np.unsignedinteger], n_ids: int, index: str, key: str
) -> Rows:
    """The rows of a shard. `index` is the folder for what cannot be mapped, "" to choose one."""
    path = os.path.join(root, s.file)
    layout = {"mds": _mds, "litdata": _litdata}.get(kind, _fixed)
    packed = path.endswith((".zstd", ".zstd.bin"))
    if kind not in ("wds", "parquet", "megatron-sft") and not packed:
        return layout(map_file(path, s.n_byte), dtype, s.n_seq, n_ids, path)
    n_byte = s.n_seq * n_ids * dtype.itemsize
    name = os.path.join(key, f"{s.file.replace('/', '-')}.{s.hash}.ids")
    places = [os.path.join(p, name) for p in ([index] if index else [os.path.join(root, ".sluice-ids"), _cache()])]
    for kept in places:
        ids = _kept(kept, n_byte, s)
        if ids is not None:
            return _fixed(ids, dtype, s.n_seq, n_ids, kept)
    data = map_file(path, s.n_byte)
    check_hash(data, s.hash, path)
    if packed:
        raw = np.frombuffer(unzstd(data.tobytes(), None, path), np.uint8)
        ids = layout(raw, dtype, s.n_seq, n_ids, path).block(0, s.n_seq)
    elif kind == "wds":
        ids = _wds(data, s.n_seq, n_ids, path)
    else:
        ids = _parquet(path, s.n_seq, n_ids)
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) <= np.iinfo(dtype).max:
        raise _damaged(path, "an id past the vocabulary")
    ids, error = np.ascontiguousarray(ids, dtype), OSError()
    for kept in places:
        try:
            _keep(kept, ids)
            return _fixed(map_file(kept)[:n_byte], dtype, s.n_seq, n_ids, kept)
        except OSError as e:
            error = e
    raise SluiceError(
        f"{places[-1]}: cannot be written: {error}; ids of shards that cannot be mapped are kept there: "
        "sluice.open(..., index=FOLDER), or set SLUICE_CACHE_DIR to a folder with room for them"
    )
