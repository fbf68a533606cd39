#!/usr/bin/env python3
"""Fine-tunes a small GPT on dialogues; the loss is on what the assistant says, and nothing else.

    train_chat.py FOLDER [--steps N]

Makes dialogues and shards in FOLDER (once), and shows of a first batch what is trained on. Sluice's programs must be
in PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import torch
from train_tiny import BATCH_TOKENS, LONGEST, Model

import sluice

TEMPLATE = """{% for m in messages %}<{{ m.role }}>
{{ m.content }}</>
{% endfor %}{% if add_generation_prompt %}<assistant>
{% endif %}"""


def prepare(folder: str) -> None:
    """Dialogues to text and spans, to ids and masks, packed to sequences; what is there already is left alone."""
    if os.path.exists(os.path.join(folder, "shards", "report.json")):
        return
    r, lines = random.Random(1), []
    for k in range(3000):
        messages = []
        for a, b in [(r.randrange(10), r.randrange(10)) for _ in range(r.randint(1, 3))]:
            messages.append({"role": "user", "content": f"What is {a} and {b}?"})
            messages.append({"role": "assistant", "content": f"{a} and {b} is {a + b}."})
        lines.append(json.dumps({"id": k, "messages": messages}) + "\n")
    Path(folder, "chats.jsonl").write_text("".join(lines))
    Path(folder, "chat.jinja").write_text(TEMPLATE)
    line = (
        '"$PYTHON" -m sluice.chat -q -t chat.jinja --keep id chats.jsonl |'
        " tokenize -q -t bytes --no-eos --id-field id --spans-field spans | dedup -q |"
        " pack -q --length $LONGEST --long drop | shuffle -q --format olmo -o shards"
    )
    env = {**os.environ, "PYTHON": sys.executable, "LONGEST": str(LONGEST)}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    subprocess.run(["sh", "-ec", line], cwd=folder, check=True, env=env)


def said(labels: torch.Tensor) -> str:
    """The labels of a sequence as text (its ids are bytes), with a bar between stretches that are trained on."""
    text = "".join(chr(x) if x >= 0 else "\0" for x in labels.tolist())
    return "|".join(filter(None, text.split("\0")))


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=100)
    a = parser.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    prepare(a.folder)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = sluice.open(os.path.join(a.folder, "shards"))
    loader = sluice.Loader(data, batch_tokens=BATCH_TOKENS, epochs=20, output="torch")
    model = Model(data.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for batch in loader:
        k = batch["step"]
        if k == 0:
            share = (batch["labels"] >= 0).float().mean().item()
            print(f"trained on {100 * share:.0f} % of the tokens: {said(batch['labels'][0])!r}")
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k % 10 == 0 or k + 1 == a.steps:
            print(f"step {k}, loss {loss.item():.4f}", flush=True)
        if k + 1 == a.steps:
            break
    loader.close()


if __name__ == "__main__":
    main()
