#!/usr/bin/env python3
"""Trains a small GPT on text of this machine, from raw text to the loss, on a CPU in a minute.

    train_tiny.py FOLDER [--steps N] [--kill-at K]

Makes shards in FOLDER (once), follows a grow-p2 curriculum with document masks, and keeps a checkpoint
every 10 steps. Killed at any time (--kill-at does it), the same command goes on from the last one and
ends with the very loss of a run that was never stopped. Sluice's programs must be in PATH.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import sluice
from sluice import masks

BATCH_TOKENS, LONGEST, WIDTH, HEADS, LAYERS = 2048, 256, 64, 4, 2


def prepare(folder: str) -> None:
    """Text to shards to a schedule; what is there already is left alone."""
    shards, steps = os.path.join(folder, "shards"), os.path.join(folder, "steps.sched")
    if os.path.exists(steps):
        return
    paragraphs = []  # each is a document
    for name in sorted(glob.glob("/usr/share/common-licenses/*") + glob.glob("/usr/share/perl/5*/pod/*.pod")):
        if not os.path.islink(name):
            text = Path(name).read_text("utf-8", "replace")
            paragraphs += [json.dumps({"text": p}) for p in text.split("\n\n") if p]
    line = (
        "tokenize -q -t bytes | dedup -q | decompose -q --min 16 --max $LONGEST | pack -q --length $LONGEST |"
        ' shuffle -q --format olmo -o "$SHARDS"'
    )
    env = {**os.environ, "SHARDS": shards, "LONGEST": str(LONGEST)}
    subprocess.run(["sh", "-c", line], input="\n".join(paragraphs).encode(), check=True, env=env)
    subprocess.run(
        ["schedule", "-q", "--trainer", "generic", "--curriculum", "grow-p2",
         "--batch-tokens", str(BATCH_TOKENS), "-o", steps, shards],
        check=True,
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, 2))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        out: torch.Tensor = x + self.mlp(self.between(x))
        return out


class Model(nn.Module):
    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, vocab)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        x = self.token(batch["input_ids"]) + self.position(batch["position_ids"])
        mask = masks.sdpa_mask(batch)
        for block in self.blocks:
            x = block(x, mask)
        # Labels are shifted already, and -100 where a document ends.
        return functional.cross_entropy(self.head(x).flatten(0, 1), batch["labels"].flatten())


def train(folder: str, steps: int, kill_at: int | None) -> float:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = sluice.open(os.path.join(folder, "shards"))
    loader = sluice.Loader(data, os.path.join(folder, "steps.sched"), output="torch")
    model = Model(data.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    checkpoint, mean = os.path.join(folder, "checkpoint.pt"), 0.0
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        mean = state["mean"]
        print(f"goes on at step {state['loader']['step']}")
    for batch in loader:
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        k = batch["step"] + 1
        mean = loss.item() if k == 1 else 0.9 * mean + 0.1 * loss.item()
        if k % 10 == 0:
            print(f"step {k}, length {batch['bucket']}, loss {mean:.4f}", flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "mean": mean}
            torch.save({**state, "loader": loader.state_dict()}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
        if k == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if k == steps:
            break
    loader.close()
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--kill-at", type=int)
    a = parser.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    prepare(a.folder)
    print(f"final loss {train(a.folder, a.steps, a.kill_at):.9f}")


if __name__ == "__main__":
    main()
