"""The programs in examples/: killed and resumed, they end as if they had never been stopped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import common
from common import needs, path, run, shards

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PATH": common.BIN + ":" + os.environ["PATH"],
        "PYTHONPATH": str(EXAMPLES.parent),
    }
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_train_tiny() -> None:
    needs("torch", "xxhash")
    whole = example("train_tiny.py", path("whole"), "--steps", "40")
    assert whole.returncode == 0, whole.stderr
    last = whole.stdout.splitlines()[-1]
    for kill_at in ("5", "27"):
        killed = example("train_tiny.py", path("killed"), "--steps", "40", "--kill-at", kill_at)
        assert killed.returncode == -9, killed.stderr
    again = example("train_tiny.py", path("killed"), "--steps", "40")
    assert "goes on at step 20" in again.stdout and again.stdout.splitlines()[-1] == last, again.stdout
    lengths = [int(line.split("length ")[1].split(",")[0]) for line in whole.stdout.splitlines()[:-1]]
    losses = [float(line.split("loss ")[1]) for line in whole.stdout.splitlines()]
    assert len(set(lengths)) > 1 and losses[-1] < losses[0] - 0.5, whole.stdout


def test_train_chat() -> None:
    needs("torch", "xxhash", "jinja2")
    r = example("train_chat.py", path("chat"), "--steps", "40")
    assert r.returncode == 0, r.stderr
    first, *steps = r.stdout.splitlines()
    turns = first.split(": ", 1)[1].strip("'").split("|")
    said = [re.fullmatch(r"(\d) and (\d) is (\d+)\.</>\\n", turn) for turn in turns]
    assert said and all(m and int(m[1]) + int(m[2]) == int(m[3]) for m in said), first
    losses = [float(line.split("loss ")[1]) for line in steps]
    assert losses[-1] < losses[0] - 3, r.stdout


def test_grain_steps() -> None:
    needs("grain", "xxhash")
    where = shards("olmo")
    out = path("grain.sched")
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", f"--json={out}.json", "-o", out, where)
    r = example("grain_steps.py", where, out, "1", "2")
    assert r.returncode == 0, r.stderr
    j = json.loads(Path(out + ".json").read_text())
    want = [f"step {k} length {j['buckets'][b]['length']} " for k, (b, _, _) in enumerate(j["steps"])]
    lines = r.stdout.splitlines()
    assert len(lines) == len(want)
    assert all(line.startswith(w) for line, w in zip(lines, want))


if __name__ == "__main__":
    common.main(globals())
