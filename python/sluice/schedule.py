"""Schedules: which bucket and which of its sequences each step of a training takes.

`Schedule.read` follows a file of `schedule --trainer generic|olmo` (formats/SCHEDULE.md);
`Schedule.draw` runs that program.
"""

from __future__ import annotations

import hashlib
import os
import struct
import warnings
from collections.abc import Iterator
from functools import lru_cache
from shutil import which
from subprocess import run
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._base import Array, SluiceError, check_hash, map_file, printable, unpickle
from ._order import EpochOrder
from .stream import joined

if TYPE_CHECKING:
    from .dataset import Set

_MAGIC, _END = b"\xf5SLSCHD\n", b"SLSCHEND"
_BLOCK = 65536
_HEAD = struct.Struct("<8s6I16x3Q16x6Q16x2Q80xQ")  # without curriculum and the like
_RECORD = np.dtype([("first", "<u8"), ("cycle", "<u4"), ("bucket", "<u4")])
_KNOWN_FLAGS, _HAS_CHECKSUM = {1: 0x1000F, 2: 0x10001}, 1 << 16
_MOST_BLOCK = 1 << 20
_MAKE = "make it: schedule --trainer generic --batch-tokens N -o FILE SHARDS"
_UNUSED = {  # why, by the places of the row's counts of what is dropped
    8: "its odds are 0", 10: "another bucket has no step", 9: "it has less than one step for each cycle",
    11: "the training ends first", 7: "it has fewer sequences than a step takes",
}  # fmt: skip


class Step(NamedTuple):
    """What all ranks together take in a step: n sequences of a bucket, from place `first` on; see Schedule.numbers."""

    step: int
    length: int
    first: int
    n: int
    cycle: int
    epoch: int


class _Row(NamedTuple):
    length: int
    sequences: int
    per_step: int
    unit: int
    unused: str  # why, where it is not used
    left: int  # sequences that each epoch leaves out, or in version 2 the last
    block: int


class Schedule:
    """The steps of a training, by number: schedule[k]; those before `first_step` are not in it."""

    def __init__(self, where: str, m: Array) -> None:
        """Of the bytes of a file."""

        def check(good: bool, what: str) -> None:
            if not good:
                raise SluiceError(f"{where}: {what}; run schedule again")

        magic_is = len(m) >= _HEAD.size and m[:8].tobytes() == _MAGIC
        check(magic_is, "is not a schedule that `schedule --trainer generic|olmo -o FILE` wrote")
        _, version, header, record, n_bucket, _, flags, *v, low, high, own_hash = _HEAD.unpack_from(m.data)
        shape = version in _KNOWN_FLAGS and (record, header) == (16, 256 + 128 * n_bucket)
        check(shape and not flags & ~_KNOWN_FLAGS[version], "a schedule of another version")
        self.first_step: int
        self._seed, self._cycles, self._epochs, _, self._pass_steps, _, self.first_step, n_steps, block = v
        self._version = version
        end, n_hash = header + 16 * n_steps, 8 * -(-n_steps // _BLOCK)
        possible = block == _BLOCK and (self._pass_steps and self._cycles or not n_steps) and self.first_step < 1 << 62
        whole = possible and len(m) == end + n_hash + 16 and m[-8:].tobytes() == _END
        check(whole, "is truncated, or not as long as its header says")
        self._hash = f"{own_hash:016x}"
        head, table = bytearray(m[:header].tobytes()), m[end : end + n_hash]
        head[248:256] = bytes(8)
        check_hash(bytes(head), self._hash, f"{where}: header")
        check_hash(table, f"{int(m[-16:-8].view('<u8')[0]):016x}", f"{where}: table")
        self.where, self._bytes, self._records = where, m, m[header:end].view(_RECORD)
        self._blocks, self._checked = table.view("<u8"), set[int]()
        self._rows = [self._row(struct.unpack_from("<13Q", m.data, 256 + 128 * i)) for i in range(n_bucket)]
        check(version == 1 or all(0 < r.block <= _MOST_BLOCK for r in self._rows), "its blocks are not possible")
        self._number = {r.length: i for i, r in enumerate(self._rows)}
        self._order = lru_cache(16)(self._of_epoch)
        self.checksum = f"{high << 64 | low:032x}" if flags & _HAS_CHECKSUM else None  #: of the set's contents
        # Steps are the same for any number of ranks (offset 88), wherever the file begins, and whether or not it says
        # of which files the set is (168), as those of earlier versions do not.
        head[88:96], head[112:128], head[168:176] = bytes(8), bytes(16), bytes(8)
        self.identity = hashlib.sha256(head).hexdigest()[:32]  #: the same for the same steps

    def _row(self, row: tuple[int, ...]) -> _Row:
        """Of a bucket's fields in the file."""
        unused = "" if row[6] else next((why for k, why in _UNUSED.items() if row[k]), "no step takes it")
        left = 0 if unused else row[7] + row[9] + row[10]
        if self._version == 2 and not unused:  # without a step that --tokens cuts off
            left = self._epochs * row[1] - row[6] * row[2]
            left = left if left < row[2] else 0
        return _Row(row[0], row[1], row[2], row[3], unused, left, row[12])

    def _of_epoch(self, bucket: int, epoch: int) -> EpochOrder:
        row = self._rows[bucket]
        return EpochOrder(self._seed, epoch, bucket, row.sequences, row.block)

    @classmethod
    def read(cls, path: str, data: Set | None = None) -> Schedule:
        """The schedule in a file; SluiceError if it is damaged, or made for another set than `data`."""
        path = os.path.abspath(path)
        s = cls(path, map_file(path, cure=_MAKE))
        if data is not None:
            s.check_set(data)
        return s

    @classmethod
    def draw(cls, data: Set, batch_tokens: int, curriculum: str = "natural", **options: int) -> Schedule:
        """What `schedule --trainer generic --curriculum … --batch-tokens …` says, with options seed, epochs, cycles.

        By that program, of the wheel or in PATH; it takes some milliseconds and 16 bytes a step.
        """
        where = os.path.join(os.path.dirname(__file__), "programs", "bin") + os.pathsep + os.environ.get("PATH", "")
        program = which("schedule", path=where) or which("slu-schedule")
        if program is None:
            raise SluiceError(
                "drawing steps needs sluice's program `schedule` in PATH; or make a file of steps where it is, "
                f"and give that as schedule ({_MAKE})"
            )
        options["batch-tokens"] = batch_tokens
        arguments = ["--trainer=generic", f"--curriculum={curriculum}", *(f"--{k}={v}" for k, v in options.items())]
        r = run([program, "-q", *arguments, data.path], capture_output=True)
        if r.returncode:
            raise SluiceError(r.stderr.decode(errors="replace").strip() or f"{program} ended with {r.returncode}")
        return cls(f"drawn for {data.path}", np.frombuffer(r.stdout, np.uint8))

    def check_set(self, data: Set) -> None:
        """Refuse a set of other contents than the schedule was made for; warn of buckets that no step takes."""
        mine, there = {r.length: r for r in self._rows if r.sequences}, {b.length: len(b) for b in data if len(b)}
        other = any(there.get(length) != r.sequences for length, r in mine.items())  # it may leave buckets out
        if other or (self.checksum and data.checksum and self.checksum not in (data.checksum, *data.same_places)):
            raise SluiceError(
                f"{self.where}: was made for another set than {data.path} (sequences by length "
                f"{ {n: r.sequences for n, r in mine.items()} } and {there}, checksums {self.checksum} and "
                f"{data.checksum}); make it again: schedule … {data.path}"
            )
        left, short = [], []
        for length, n in there.items():
            why = mine[length].unused if length in mine else "the schedule was made without it"
            if not why and mine[length].left:
                short.append(f"{mine[length].left} of {data[length].name} ({n})")
            if why:
                left.append(f"{data[length].name} ({n} sequences; {why})")
        said = [f"no step takes a sequence of {', '.join(left)}"] if left else []
        if short:
            which = "the last" if self._version == 2 else "each" if self._epochs > 1 else "the"
            said.append(f"{which} epoch leaves out sequences ({', '.join(short)}), and smaller steps leave out fewer")
        if said:
            warnings.warn(printable(f"{self.where}: {'; '.join(said)}"), stacklevel=1)

    def __reduce__(self) -> Any:
        if not os.path.isabs(self.where):  # drawn
            return Schedule, (self.where, self._bytes)
        return unpickle, (Schedule.read, self.where, "schedule", "_hash", self._hash)

    def __len__(self) -> int:
        return self.first_step + len(self._records)

    def __iter__(self) -> Iterator[Step]:
        return map(self.__getitem__, range(self.first_step, len(self)))

    def __getitem__(self, k: int) -> Step:
        if not self.first_step <= k < len(self):
            raise IndexError(f"step {k}: {self.where} has steps {self.first_step} to {len(self) - 1}")
        i = k - self.first_step
        j = i // _BLOCK
        if j not in self._checked:
            block = self._records[j * _BLOCK : (j + 1) * _BLOCK]
            check_hash(block.view(np.uint8), f"{self._blocks[j]:016x}", f"{self.where}: block {j}")
            self._checked.add(j)
        first, cycle, bucket = self._records[i].item()
        row = self._rows[bucket] if bucket < len(self._rows) else _Row(0, 0, 0, 0, "", 0, 0)
        places = row.sequences * (self._epochs if self._version == 2 else 1)
        if not 0 < first * row.unit + row.per_step <= places:
            raise SluiceError(f"{self.where}: step {k} is not one of its buckets' sequences; run schedule again")
        return Step(k, row.length, first * row.unit, row.per_step, cycle, cycle // self._cycles)

    def numbers(self, step: Step, a: int, b: int) -> range | Array:
        """The numbers of the a-th to b-th sequence of a step: a range where they follow one another."""
        first, end = step.first + a, step.first + b
        bucket = self._number[step.length]
        n = self._rows[bucket].sequences
        if end <= n:
            return range(first, end)
        parts = []
        while first < end:
            epoch, place = divmod(first, n)
            last = min(n, place + end - first)
            parts.append(self._order(bucket, epoch).numbers(place, last) if epoch else np.arange(place, last))
            first += last - place
        return joined(parts)

    def check_world(self, world: int) -> None:
        """Refuse a number of ranks by which some step's sequences cannot be divided."""
        for r in self._rows:
            if not r.unused and r.per_step % world:
                raise SluiceError(
                    f"{self.where}: a step of the bucket of {r.length} has {r.per_step} sequences, which "
                    f"{world} ranks cannot share; take a divisor of it as world, or a schedule whose "
                    f"--batch-tokens is a multiple of {world} times the longest bucket"
                )
