"""The order of a bucket's sequences in each epoch of a schedule: section 7 of formats/SCHEDULE.md."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ._base import Array
from .stream import joined

_M = (1 << 64) - 1


def _mix(x: Any) -> Any:
    """The finalizer of splitmix64, of an int or of an array of u64."""
    x = x + 0x9E3779B97F4A7C15 & _M
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _M
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _M
    return x ^ x >> 31


def _permuted(key: int, x: Array, n: int) -> Array:
    """Where a Feistel network of four rounds leads the numbers x, all below n; repeated until they are again."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    keys = np.array([_mix(key + i & _M) for i in range(4)], np.uint64)
    rounds = (_mix(keys[:, None] ^ np.arange(mask + 1, dtype=np.uint64)) & np.uint64(mask)).astype(np.int64)
    out, todo = x.copy(), np.arange(len(x))
    while len(todo):
        left, right = out[todo] >> half, out[todo] & mask
        for table in rounds:
            left, right = right, left ^ table[right]
        out[todo] = left << half | right
        todo = todo[out[todo] >= n]
    return out


class EpochOrder:
    """Places 0 to n - 1 of an epoch from 1 on: the numbers of their sequences. A few blocks are kept."""

    def __init__(self, seed: int, epoch: int, bucket: int, n: int, block: int) -> None:
        self._key = _mix(_mix(_mix(seed) ^ epoch) ^ bucket)
        self._block, (self._full, self._tail) = block, divmod(n, block)
        # The block that is not full comes after some others.
        self._begin = (_mix(self._key ^ 1) * (self._full + 1) >> 64) * block
        self._kept, self._blocks = lru_cache(4)(self._of_slot), lru_cache(2)(self._of_slots)

    def _of_slots(self, k: int) -> list[int]:
        """The blocks of slots 64 k on, which cost little more than one."""
        found: list[int] = _permuted(self._key, np.arange(64 * k, min(64 * k + 64, self._full)), self._full).tolist()
        return found

    def _of_slot(self, slot: int) -> Array:
        """The sequences of a full block in their order; slot -1 is the block that is not full."""
        block, size = self._full, self._tail
        if slot >= 0:
            block, size = self._blocks(slot // 64)[slot % 64], self._block
        return block * self._block + _permuted(_mix(self._key ^ block + 2), np.arange(size), size)

    def numbers(self, a: int, b: int) -> Array:
        """The sequences at places a to b."""
        parts = []
        while a < b:
            slot, begin = -1, self._begin
            if not begin <= a < begin + self._tail:
                skipped = self._tail if a >= begin else 0
                slot = (a - skipped) // self._block
                begin = slot * self._block + skipped
            block = self._kept(slot)
            parts.append(block[a - begin : b - begin])
            a = begin + len(block)
        return joined(parts)
