#!/usr/bin/env python3
"""Takes a schedule's steps by Grain's own loader, stops, and goes on from Grain's checkpoint.

    grain_steps.py SHARDS SCHEDULE [RANK WORLD]

Prints a line a step: its number, the sequences' length, tokens that are to be predicted, documents.
"""

from __future__ import annotations

import sys
from typing import Any

import grain

import sluice
from sluice.grain import Source


def show(batch: dict[str, Any]) -> None:
    labels, documents = int((batch["labels"] >= 0).sum()), len(batch["cu_seqlens"]) - 1
    print(f"step {batch['step']} length {batch['bucket']} labels {labels} documents {documents}")


def main(shards: str, schedule: str, rank: str = "0", world: str = "1") -> None:
    # The source has this rank's part of each step, in order: Grain shards and shuffles nothing.
    source = Source(sluice.open(shards), schedule, rank=int(rank), world=int(world))
    sampler = grain.samplers.SequentialSampler(len(source), grain.sharding.NoSharding())
    loader = grain.DataLoader(data_source=source, sampler=sampler)
    steps = iter(loader)
    for _ in range(len(source) // 2):
        show(next(steps))
    state = steps.get_state()  # what a checkpoint keeps
    steps = iter(loader)
    steps.set_state(state)
    for batch in steps:
        show(batch)


if __name__ == "__main__":
    main(*sys.argv[1:])
