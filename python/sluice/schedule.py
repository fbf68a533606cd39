"""Schedules: which bucket and which of its sequences each step of a training takes.

`Schedule.read` follows a file of `schedule --trainer generic|olmo` (formats/SCHEDULE.md);
`Schedule.draw` draws the steps of `--trainer generic` itself, the same for the same arguments.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._base import Array, SluiceError, check_hash, map_file, need

if TYPE_CHECKING:
    from .dataset import Set

_MAGIC, _END = b"\xf5SLSCHD\n", b"SLSCHEND"
_BLOCK = 65536
_RECORD = np.dtype([("first", "<u8"), ("cycle", "<u4"), ("bucket", "<u4")])
_KNOWN_FLAGS, _HAS_CHECKSUM = 0x1000F, 1 << 16


class Step(NamedTuple):
    """What all ranks together take in a step: n sequences of a bucket, from `first` on."""

    step: int
    length: int
    first: int
    n: int
    cycle: int
    epoch: int


@dataclass
class _Row:
    length: int
    sequences: int
    per_step: int
    unit: int
    used: bool


class Schedule:
    """The steps of a training, by number: schedule[k]; those before `first_step` are not in it."""

    def __init__(
        self, where: str, rows: list[_Row], records: Array, first_step: int, n_total: int, pass_steps: int
    ) -> None:
        self.where = where
        self._rows, self._records, self._pass_steps = rows, records, pass_steps
        self.first_step, self.total_steps = first_step, n_total
        self.checksum: str | None = None  # of the set's contents
        self.identity = ""  #: the same for the same steps, whatever the number of ranks
        self._blocks: Array | None = None
        self._checked: set[int] = set()

    # ---- files ------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str, data: Set | None = None) -> Schedule:
        """The schedule in a file; SluiceError if it is damaged, or made for another set than `data`."""
        path = os.path.abspath(path)
        m = map_file(path)

        def bad(what: str) -> SluiceError:
            return SluiceError(f"{path}: {what}; run schedule again")

        if len(m) < 256 or m[:8].tobytes() != _MAGIC:
            raise bad("is not a schedule that `schedule --trainer generic|olmo -o FILE` wrote")
        version, header, record, n_bucket, _, flags = struct.unpack_from("<6I", m.data, 8)
        if version != 1 or record != 16 or header != 256 + 128 * n_bucket or flags & ~_KNOWN_FLAGS:
            raise bad("a schedule of another version")
        v = struct.unpack_from("<11Q", m.data, 48)
        total, first, n_steps, block = v[7:]
        n_block = -(-n_steps // _BLOCK)
        end = header + 16 * n_steps
        if block != _BLOCK or len(m) != end + 8 * n_block + 16 or m[-8:].tobytes() != _END:
            raise bad("is truncated, or not as long as its header says")
        zeroed = bytearray(m[:header].tobytes())
        want = struct.unpack_from("<Q", zeroed, 248)[0]
        zeroed[248:256] = bytes(8)
        check_hash(bytes(zeroed), f"{want:016x}", f"{path}: header")
        table = m[end : end + 8 * n_block]
        check_hash(table, f"{struct.unpack_from('<Q', m.data, end + 8 * n_block)[0]:016x}", f"{path}: table")
        rows = []
        for i in range(n_bucket):
            length, sequences, per_step, unit, _, _, used = struct.unpack_from("<7Q", m.data, 256 + 128 * i)
            rows.append(_Row(length, sequences, per_step, unit, used > 0))
        s = cls(path, rows, m[header:end].view(_RECORD), first, total, v[6])
        s._blocks = table.view("<u8")
        # Steps are the same for any number of ranks (offset 88) and wherever the file begins.
        zeroed[88:96], zeroed[112:128] = bytes(8), bytes(16)
        s.identity = hashlib.sha256(bytes(zeroed)).hexdigest()[:32]
        low, high = struct.unpack_from("<2Q", m.data, 152)
        s.checksum = f"{high << 64 | low:032x}" if flags & _HAS_CHECKSUM else None
        if data is not None:
            s.check_set(data)
        return s

    def check_set(self, data: Set) -> None:
        """Refuse a set that the schedule was not made for."""
        mine = {r.length: r.sequences for r in self._rows if r.sequences}
        there = {b.length: len(b) for b in data if len(b)}
        other = any(there.get(length) != n for length, n in mine.items())  # it may leave buckets out
        if other or (self.checksum and data.checksum and self.checksum != data.checksum):
            raise SluiceError(
                f"{self.where}: was made for another set than {data.path} "
                f"(sequences by length {mine} and {there}, checksums {self.checksum} and {data.checksum}); "
                f"make it again: schedule … {data.path}"
            )

    def __reduce__(self) -> Any:
        if self._blocks is not None:  # a file, which whoever unpickles this maps
            return Schedule.read, (self.where,)
        return super().__reduce__()

    # ---- Algorithm 1 of arXiv 2405.13226 ------------------------------------------------------

    @classmethod
    def draw(
        cls,
        data: Set,
        batch_tokens: int,
        curriculum: str = "natural",
        *,
        seed: int = 0,
        epochs: int = 1,
        cycles: int = 1,
    ) -> Schedule:
        """As `schedule --trainer generic --curriculum … --batch-tokens … --seed … --epochs … --cycles …`.

        Takes some microseconds a step; a file that `schedule` wrote is mapped instead.
        """
        if batch_tokens < 1 or epochs < 1 or not 0 <= seed < 1 << 64:
            raise SluiceError(
                f"batch_tokens {batch_tokens}, epochs {epochs}, seed {seed}: must be at least 1, 1 and 0 (below 2^64)"
            )
        buckets = [b for b in data if b.length and len(b)]
        for b in buckets:
            if batch_tokens % b.length:
                raise SluiceError(f"batch_tokens {batch_tokens} is no multiple of the bucket of {b.length}")
        odds = _odds(curriculum, len(buckets))
        per_step = [batch_tokens // b.length for b in buckets]
        runs = [len(b) // n if o else 0 for b, n, o in zip(buckets, per_step, odds)]
        if not sum(runs):
            raise SluiceError(f"{data.path}: no bucket has the {batch_tokens} tokens of a step")
        if not 0 < cycles <= sum(runs):
            raise SluiceError(f"cycles {cycles}: must be 1 to {sum(runs)}")
        hash64 = need("xxhash", "drawing a schedule").xxh3_64_intdigest
        taken: list[tuple[int, int, int]] = []
        for epoch in range(epochs):
            for cycle in range(cycles):
                at = [cycle * r // cycles for r in runs]
                left = [(cycle + 1) * r // cycles - a for r, a in zip(runs, at)]
                key = b"sludraw1" + struct.pack("<4Q", seed, epoch, cycle, 0x7363686564756C65)
                for t in range(sum(left)):
                    weights = left if curriculum == "natural" else [o * (n > 0) for o, n in zip(odds, left)]
                    x = hash64(key + struct.pack("<Q", t)) * sum(weights) >> 64
                    b = 0
                    while x >= weights[b]:
                        x -= weights[b]
                        b += 1
                    taken.append((at[b] * per_step[b], epoch * cycles + cycle, b))
                    at[b] += 1
                    left[b] -= 1
        rows = [_Row(b.length, len(b), n, 1, r > 0) for b, n, r in zip(buckets, per_step, runs)]
        said = f"{data.checksum} {batch_tokens} {curriculum} {seed} {epochs} {cycles}"
        s = cls(f"{data.path}: drawn", rows, np.array(taken, _RECORD), 0, len(taken), sum(runs))
        s.checksum = data.checksum
        s.identity = hashlib.sha256(said.encode()).hexdigest()[:32]
        return s

    # ---- steps --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.total_steps

    def __getitem__(self, k: int) -> Step:
        if not self.first_step <= k < self.first_step + len(self._records):
            raise IndexError(
                f"step {k}: {self.where} has steps {self.first_step} to {self.first_step + len(self._records) - 1}"
            )
        i = k - self.first_step
        if self._blocks is not None and i // _BLOCK not in self._checked:
            j = i // _BLOCK
            block = self._records[j * _BLOCK : (j + 1) * _BLOCK]
            check_hash(block.view(np.uint8), f"{self._blocks[j]:016x}", f"{self.where}: block {j}")
            self._checked.add(j)
        first, cycle, bucket = self._records[i].item()
        row = self._rows[bucket]
        return Step(k, row.length, first * row.unit, row.per_step, cycle, k // self._pass_steps)

    def check_world(self, world: int) -> None:
        """Refuse a number of ranks by which some step's sequences cannot be divided."""
        for r in self._rows:
            if r.used and r.per_step % world:
                raise SluiceError(
                    f"{self.where}: a step of the bucket of {r.length} has {r.per_step} sequences, which "
                    f"{world} ranks cannot share; take a divisor of it as world, or a schedule whose "
                    f"--batch-tokens is a multiple of {world} times the longest bucket"
                )


def _odds(curriculum: str, n: int) -> list[int]:
    """The odds of n buckets, shortest first, by the names that `schedule --curriculum` takes."""
    shape, _, kind = curriculum.partition("-")
    if curriculum in ("natural", "uniform"):
        return [1] * n
    if shape in ("grow", "shrink") and kind in ("linear", "p2", "p100"):
        base = {"p2": 2, "p100": 100}.get(kind)
        grow = [base ** (n - 1 - i) if base else n - i for i in range(n)]
        return grow if shape == "grow" else grow[::-1]
    try:
        odds = [int(o) for o in curriculum.split(",")]
    except ValueError:
        odds = []
    if len(odds) != n or min(odds) < 0:
        raise SluiceError(f"curriculum {curriculum!r}: not a name of schedule(1), nor {n} odds")
    return odds
