"""What the tests share: a corpus, sets of every format made by the programs, what `inspect` says of
them, and a runner that prints "ok", "not ok" and "skip" lines."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
BIN = os.environ["BIN"]
os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
if "SLUICE_PYTHON_TMP" not in os.environ:  # it is there in workers that are spawned, which import this again
    where = os.environ.get("TMPDIR", "/var/tmp")
    os.environ["SLUICE_PYTHON_TMP"] = tempfile.mkdtemp(prefix="sluice-python.", dir=where)
TMP = os.environ["SLUICE_PYTHON_TMP"]
os.environ["SLUICE_CACHE_DIR"] = os.path.join(TMP, "cache")
MAPPED = {"olmo": [], "ds": [], "megatron": [], "mds": ["--compress=none"], "litdata": []}
FORMATS: dict[str, list[str]] = {
    **MAPPED,
    "wds": [],
    "wds.json.gz": ["--member=json.gz"],
    "mds.zstd": [],
    "litdata.zstd": ["--compress=zstd"],
    "parquet": [],
    "megatron-sft": [],
}
PARQUET = ("parquet", "megatron-sft")
LABELS = ("wds", "ds", "wds.json.gz")


class Skip(Exception):
    """The test cannot run here, and why."""


def run(*command: str, stdin: bytes | None = None) -> bytes:
    program = os.path.join(BIN, command[0])
    r = subprocess.run([program, *command[1:]], input=stdin, capture_output=True)
    if r.returncode:
        raise RuntimeError(f"{' '.join(command)}: {r.stderr.decode()}")
    return r.stdout


def path(*name: str) -> str:
    return os.path.join(TMP, *name)


@lru_cache(None)
def corpus(n: int = 500, seed: int = 1) -> str:
    r = random.Random(seed)
    words = [f"{a}{b}" for a in ("wa", "so", "tok", "über") for b in ("ter", "lid", "en", "x12")]
    where = path(f"corpus-{n}-{seed}.jsonl")
    with open(where, "w") as f:
        for i in range(n):
            text = " ".join(r.choice(words) for _ in range(int(2 ** r.uniform(1, 9))))
            domain = ("web", "code", "math")[i % 3]
            f.write(json.dumps({"text": text, "id": f"r-{i}", "d": domain}) + "\n")
    return where


@lru_cache(None)
def pieces(labels: bool, n: int = 500) -> str:
    """A packed stream of buckets 16 to 256."""
    docs = run("tokenize", "-q", "--id-field=id", "--domain-field=d", corpus(n))
    cut = run("decompose", "-q", "--min=16", "--max=256", *["--label-token"] * labels, stdin=docs)
    where = path(f"pieces-{labels}-{n}.tks")
    run("pack", "-q", "-o", where, stdin=cut)
    return where


@lru_cache(None)
def documents(name: str, masks: bool = False) -> str:
    """A set of whole documents."""
    where = path(f"documents-{name}-{masks}")
    docs = masked_documents() if masks else run("tokenize", "-q", "--id-field=id", "--domain-field=d", corpus())
    kind = f"--format={name.split('.')[0]}"
    run("shuffle", "-q", "--documents", kind, *FORMATS[name], "--shard-size=8000", "-o", where, stdin=docs)
    return where


@lru_cache(None)
def masked_documents() -> bytes:
    """A stream with masks: about half of the words are trained on."""
    r = random.Random(5)
    lines = []
    for i in range(400):
        text = " ".join(f"word{r.randrange(99)}" for _ in range(int(2 ** r.uniform(1, 8))))
        cuts = sorted(r.randrange(len(text) + 1) for _ in range(2 * r.randint(1, 4)))
        spans = [[a, b] for a, b in zip(cuts[::2], cuts[1::2]) if a < b] or [[0, 1]]
        lines.append(json.dumps({"text": text, "spans": spans, "id": f"m-{i}"}))
    text = "\n".join(lines).encode()
    return run("tokenize", "-q", "--id-field=id", "--spans-field=spans", "-t", "bytes", stdin=text)


@lru_cache(None)
def masked(labels: bool) -> str:
    """A packed stream with masks, and with padding."""
    cut = run("decompose", "-q", "--min=16", "--max=256", *["--label-token"] * labels, stdin=masked_documents())
    where = path(f"masked-{labels}.tks")
    run("pack", "-q", "--long=error", "-o", where, stdin=cut)
    return where


@lru_cache(None)
def masked_shards(name: str) -> str | None:
    """A set of the format with masks; None if the format refuses them."""
    where = path(f"masked-{name}")
    try:
        run("shuffle", "-q", f"--format={name.split('.')[0]}", "--shard-sequences=50", *FORMATS[name], "-o", where,
            masked(name in LABELS))  # fmt: skip
    except RuntimeError as e:
        if "masks" in str(e) or "is not built" in str(e):
            return None
        raise
    return where


@lru_cache(None)
def shards(name: str, n: int = 500, per_shard: int = 50) -> str:
    """A set of the format; labels where the format wants them."""
    where = path(f"{name}-{n}-{per_shard}")
    kind = name.split(".")[0]
    if os.path.exists(where):
        return where
    try:
        run(
            "shuffle", "-q", f"--format={kind}", f"--shard-sequences={per_shard}", *FORMATS[name],
            "-o", where, pieces(name in LABELS, n),
        )  # fmt: skip
    except RuntimeError as e:
        if kind in PARQUET and "is not built" in str(e):
            raise Skip("Parquet is not built into these programs") from e
        raise
    return where


def have_parquet() -> bool:
    """The programs write Parquet, and pyarrow is there to read it."""
    try:
        needs("pyarrow")
        shards("parquet")
    except Skip:
        return False
    return True


def copy_of(name: str) -> str:
    """A copy of a set, to be damaged."""
    where = tempfile.mkdtemp(dir=TMP)
    shutil.rmtree(where)
    shutil.copytree(shards(name), where, ignore=shutil.ignore_patterns(".sluice-ids"))
    return where


@lru_cache(None)
def records(where: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("inspect", "--records", where).splitlines()]


@contextmanager
def refused(*words: str) -> Iterator[None]:
    """What is inside raises SluiceError, and its message has all of the words."""
    import sluice

    try:
        yield
    except sluice.SluiceError as e:
        missing = [w for w in words if w not in str(e)]
        assert not missing, f"{e} does not say {missing}"
        return
    raise AssertionError(f"was not refused: {words}")


def fork(what: Callable[[], Any]) -> None:
    """Does it in a process that is forked; an error if that does not end."""
    with warnings.catch_warnings():  # threads, of which Python 3.12 warns
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        try:
            what()
            os._exit(0)
        finally:
            os._exit(1)
    begin = time.monotonic()
    while time.monotonic() < begin + 30:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert status == 0, status
            return
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("a child hangs")


def needs(*modules: str) -> None:
    """Skip where one of the packages is not installed."""
    for m in modules:
        try:
            __import__(m)
        except Exception as e:
            raise Skip(f"the package {m} cannot be imported") from e


def main(module: dict[str, Any]) -> None:
    """Runs the functions test_*, or those named on the command line."""
    names = sys.argv[1:] or [n for n in module if n.startswith("test_")]
    passed = failed = skipped = 0
    try:
        for n in names:
            begin, used = time.time(), sum(os.times()[:4])
            try:
                module[n]()
            except Skip as e:
                skipped += 1
                print(f"skip {n}: {e}", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc(file=sys.stdout)
                print(f"not ok {n}", flush=True)
            else:
                passed += 1
                of = sum(os.times()[:4]) - used
                print(f"ok {n} ({time.time() - begin:.1f} s, {of:.1f} of a processor)", flush=True)
    finally:
        shutil.rmtree(TMP)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)
