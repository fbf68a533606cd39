"""Reads what sluice's programs write, and follows a schedule exactly.

    import sluice

    data = sluice.open("shards")             # a set of any format, or a stream file
    data["D_8"][0].ids, data[256][0].cu_seqlens

    for batch in sluice.Loader(data, "steps.sched", rank=0, world=8, output="torch"):
        batch["input_ids"], batch["labels"], batch["cu_seqlens"]

sluice.torch.IterableDataset and sluice.grain.Source are the same for torch's and Grain's loaders;
sluice.masks makes attention masks. These modules import what they need when they are imported.
"""

from __future__ import annotations

from ._base import SluiceError
from .dataset import Bucket, Sequence, Set, open
from .loader import Batches, Loader, state_at, step_of
from .schedule import Schedule, Step
from .stream import PADDING, Segments

__version__ = "0.2.0"
__all__ = [
    "PADDING",
    "Batches",
    "Bucket",
    "Loader",
    "Schedule",
    "Segments",
    "Sequence",
    "Set",
    "SluiceError",
    "Step",
    "open",
    "state_at",
    "step_of",
]
