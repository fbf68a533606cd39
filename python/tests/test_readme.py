"""The examples of README.md and of sets' cards, as they are shown."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import common
from common import needs, path, run, shards


def test_card() -> None:
    """The lines of a set's own README.md that use this package."""
    was = os.getcwd()
    for where in (shards("mds"), shards("ds"), common.documents("megatron")):
        os.chdir(where)
        try:
            code = re.findall(r"^```python\n(.*?)^```", Path("README.md").read_text(), re.M | re.S)[1]
            names: dict[str, Any] = {}
            exec(compile(code, "README.md", "exec"), names)
            assert names["q"].ids.tolist() == common.records(".")[0]["tokens"]
        finally:
            os.chdir(was)
            common.records.cache_clear()


def test_examples() -> None:
    needs("xxhash")
    text = (Path(__file__).parent.parent / "README.md").read_text()
    os.makedirs(path("readme"))
    shutil.copytree(shards("olmo", 20000, 4096), path("readme", "shards"))
    was = os.getcwd()
    names: dict[str, object] = {}
    try:
        os.chdir(path("readme"))
        ran = []
        for kind, code in re.findall(r"^```(\w+[ \w]*)\n(.*?)^```", text, re.M | re.S):
            if kind == "sh":
                for line in code.splitlines():
                    run(*line.split())
                continue
            try:
                needs(*kind.split()[1:])
            except common.Skip as e:
                print(f"  not run: {e}")
                continue
            exec(compile(code, "README.md", "exec"), names)
            ran.append(kind)
        assert len(ran) >= 3, ran
    finally:
        os.chdir(was)


if __name__ == "__main__":
    common.main(globals())
