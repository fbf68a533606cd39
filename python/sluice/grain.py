"""Steps of a schedule as a source for Grain (`grain.DataLoader`, `grain.MapDataset.source`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

from .loader import Batches


class Source(Batches):
    """[k] is this rank's part of step first_step + k (which is 0, but for `schedule --from-step`), so Grain shards
    nothing and shuffles nothing: give it a SequentialSampler and NoSharding. Takes the arguments of sluice.Batches.

    Its checkpoints are valid for another world: Grain's are for as many workers as there were, state_at and
    `source[k]` for any.
    """

    def __len__(self) -> int:
        """Steps of the schedule's file."""
        return super().__len__() - self.first_step

    def __getitem__(self, k: SupportsIndex) -> dict[str, Any]:
        return super().__getitem__(self.first_step + k.__index__())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))
