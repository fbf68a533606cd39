"""Steps of a schedule as a source for Grain (`grain.DataLoader`, `grain.MapDataset.source`)."""

from __future__ import annotations

from typing import Any, SupportsIndex

from .loader import Batches


class Source(Batches):
    """[k] is this rank's part of step k, so Grain shards nothing and shuffles nothing:

        grain.DataLoader(
            data_source=source,
            sampler=grain.samplers.SequentialSampler(len(source), grain.sharding.NoSharding()),
            worker_count=2,
        )

    Takes the arguments of sluice.Batches. Its checkpoints are valid for another world: Grain's are for
    as many workers as there were, state_at and `source[k]` for any.
    """

    def __getitem__(self, k: SupportsIndex) -> dict[str, Any]:
        return super().__getitem__(k.__index__())
