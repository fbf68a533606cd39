"""Loader, Batches and what carries them elsewhere, against `schedule --json` and `inspect --records`."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import tarfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, zip_longest
from types import SimpleNamespace
from typing import Any

import common
import numpy as np
from common import FORMATS, LABELS, needs, path, records, refused, run, shards

import sluice
from sluice import masks
from sluice.grain import Source

TOKENS = 192 * 256  # of a step: world 1, 2, 3, 8, 64 can share it


@lru_cache(None)
def schedule(name: str, n: int = 500, tokens: int = 1024, *options: str) -> tuple[str, dict[str, Any]]:
    where = shards(name, n)
    out = path(f"{name}-{n}-{tokens}{'-'.join(options)}.sched")
    run("schedule", "-q", "--trainer=generic", f"--batch-tokens={tokens}", "--epochs=2", *options,
        "--json", out + ".json", "-o", out, where)  # fmt: skip
    with open(out + ".json") as f:
        return out, json.load(f)


@lru_cache(None)
def numbers(file: str) -> list[list[int]]:
    """The sequences of each step, as `inspect` has them."""
    steps = map(json.loads, run("inspect", "--records", file).splitlines())
    return [s.get("numbers") or list(range(s["first"], s["first"] + s["sequences"])) for s in steps]


def by_bucket(where: str, data: sluice.Set) -> dict[int, list[dict[str, Any]]]:
    r, out, at = records(where), {}, 0
    for b in data:
        out[b.length] = r[at : at + len(b)]
        at += len(b)
    return out


def expected(rows: list[dict[str, Any]], labels: bool) -> dict[str, list[int]]:
    """What a batch of these sequences must be."""
    out: dict[str, list[int]] = {"input_ids": [], "labels": [], "position_ids": [], "cu_seqlens": [0]}
    for r in rows:
        if "expected" not in r:  # each is in several batches
            r["expected"] = expected_of(r, labels)
        for name, values in r["expected"].items():
            before = out["cu_seqlens"][-1] if name == "cu_seqlens" else 0
            out[name] += [before + v for v in values] if before else values
    return out


def expected_of(r: dict[str, Any], labels: bool) -> dict[str, list[int]]:
    """The same of one sequence, an id at a time."""
    out: dict[str, list[int]] = {"input_ids": [], "labels": [], "position_ids": [], "cu_seqlens": []}
    segments = enumerate(r["segments"])
    document = [(j, bool(s.get("padding"))) for j, s in segments for _ in range(s["length"])]
    ids, position = r["tokens"], 0
    mask = r.get("mask", [1] * len(ids))
    for i in range(len(ids) - labels):
        if not i or document[i] != document[i - 1]:
            position = 0
            out["cu_seqlens"].append(i)
        out["cu_seqlens"][-1] += 1
        last = i + 1 == len(ids) or document[i + 1] != document[i] or document[i][1]
        last = last or not mask[i + 1]
        out["input_ids"].append(ids[i])
        out["labels"].append(-100 if last else ids[i + 1])
        out["position_ids"].append(position)
        position += 1
    return out


def compare(batch: dict[str, Any], want: dict[str, list[int]]) -> None:
    for name, w in want.items():
        assert np.asarray(batch[name]).reshape(-1).tolist() == w, (batch["step"], name)
    assert batch["max_seqlen"] == max(np.diff(want["cu_seqlens"]))


def test_batches() -> None:
    """Every batch of every format, both layouts, by rank: the schedule's sequences, id by id."""
    needs("xxhash", "zstandard")
    for name in FORMATS:
        if name in common.PARQUET and not common.have_parquet():
            continue
        where = shards(name)
        file, j = schedule(name)
        data = sluice.open(where)
        rows = by_bucket(where, data)
        world = 2 if name != "olmo" else 4
        for rank in range(world):
            layout = "varlen" if rank % 2 else "padded"
            loader = sluice.Loader(data, file, rank=rank, world=world, layout=layout)
            every = list(loader)
            assert len(every) == j["total_steps"] == len(loader.batches)
            for k, batch in enumerate(every):
                bucket, _, _ = j["steps"][k]
                b = j["buckets"][bucket]
                n = b["sequences_per_step"] // world
                mine = numbers(file)[k][rank * n : rank * n + n]
                assert (batch["step"], batch["bucket"]) == (k, b["length"])
                shape = (n, b["length"]) if layout == "padded" else (n * b["length"],)
                assert batch["input_ids"].shape == batch["labels"].shape == shape
                compare(batch, expected([rows[b["length"]][i] for i in mine], name in LABELS))


def test_labels_of_masks() -> None:
    """Labels are -100 at what is not trained on, in every format that takes masks."""
    needs("xxhash", "zstandard")
    seen = 0
    for name in FORMATS:
        where = common.masked_shards(name)
        if not where or (name in common.PARQUET and not common.have_parquet()):
            continue
        data = sluice.open(where)
        rows = by_bucket(where, data)
        for layout, epochs in (("padded", 2), ("varlen", 1)):
            loader = sluice.Loader(data, batch_tokens=512, layout=layout, threads=0, epochs=epochs)
            for batch in loader:
                schedule = loader.batches.schedule
                step = schedule[batch["step"]]
                some = [rows[step.length][i] for i in schedule.numbers(step, 0, step.n)]
                compare(batch, expected(some, name in LABELS))
                seen += 1
    assert seen > 100, seen


def test_schedules() -> None:
    """Files of both trainers, bricks and tails as --json says; drawn ones are the same, and their states."""
    needs("xxhash")
    data = sluice.open(shards("olmo"))
    curricula = "natural uniform grow-linear grow-p2 grow-p100 shrink-linear shrink-p2 shrink-p100 0,3,1,0,7"
    for curriculum in curricula.split():
        for seed, epochs, cycles in ((0, 1, 1), (7, 3, 5)):
            file, j = schedule("olmo", 500, 1024, f"--curriculum={curriculum}", f"--seed={seed}",
                               f"--epochs={epochs}", f"--cycles={cycles}")  # fmt: skip
            read = sluice.Schedule.read(file, data)
            check_steps(read, j)
            drawn = pickle.loads(pickle.dumps(sluice.Schedule.draw(
                data, 1024, curriculum, seed=seed, epochs=epochs, cycles=cycles
            )))  # fmt: skip
            assert drawn.identity == read.identity and list(drawn) == list(read)
    for options in (["--bricks"], ["--from-step=70"], ["--reorder"], ["--trainer=olmo"], ["--tokens=100K"],
                    ["--trainer=olmo", "--curriculum=grow-linear", "--balanced", "--cycles=1"]):  # fmt: skip
        file, j = schedule("olmo", 500, 1024, *options)
        check_steps(sluice.Schedule.read(file, data), j)
    tail, whole = (sluice.Schedule.read(schedule("olmo", 500, 1024, *o)[0]) for o in (["--from-step=70"], []))
    assert tail.identity == whole.identity and list(tail) == list(whole)[70:]
    assert [b["step"] for b in sluice.Batches(data, tail)] == list(range(70, len(whole)))
    for wrong in ((70, 69), (0, len(whole))):
        s = tail if wrong[0] else whole
        try:
            s[wrong[1]]
        except IndexError:
            continue
        raise AssertionError(wrong)


def check_steps(s: Any, j: dict[str, Any]) -> None:
    assert len(s) == j["total_steps"]
    for i, (bucket, first, cycle) in enumerate(j["steps"]):
        k, b = i + j["first_step"], j["buckets"][bucket]
        first *= b["sequences_per_unit"]
        assert s[k] == (k, b["length"], first, b["sequences_per_step"], cycle, cycle // j["cycles"])


def test_some_buckets() -> None:
    """A schedule of the manifests of two buckets alone."""
    needs("xxhash", "zstandard")
    where, out = shards("wds"), path("some.sched")
    manifests = [f"{where}/D_{i}/manifest.jsonl" for i in (5, 7)]
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", "-o", out, *manifests)
    steps = list(sluice.Loader(sluice.open(where), out))
    assert steps and {b["bucket"] for b in steps} == {32, 128}


def test_wrong_schedules() -> None:
    needs("xxhash")
    file, _ = schedule("olmo")
    data = sluice.open(shards("olmo"))
    with refused("another set", "schedule"):
        sluice.Loader(sluice.open(shards("mds", 300)), file)
    with refused("3 ranks cannot share", "multiple of 3"):
        sluice.Loader(data, file, world=3)
    with refused("no such"):
        sluice.Loader(data, path("no such"))
    with refused("batch_tokens"):
        sluice.Loader(data)
    with open(file, "rb") as f:
        good = f.read()
    for n in (0, 100, 255, len(good) // 2, len(good) - 1):
        with open(path("bad.sched"), "wb") as f:
            f.write(good[:n])
        with refused("bad.sched"):
            sluice.Loader(data, path("bad.sched"))
    for at in (*range(0, 300, 7), *range(300, len(good), 97)):
        with open(path("bad.sched"), "wb") as f:
            f.write(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        with refused("bad.sched"):
            list(sluice.Loader(data, path("bad.sched"), threads=0))
    with refused("another schedule"):
        sluice.Loader(data, batch_tokens=1024).load_state_dict(sluice.Loader(data, file).state_dict())
    few = sluice.open(shards("mds", 300))
    for made in (sluice.Schedule.read(file), sluice.Schedule.draw(data, 1024)):
        with refused("another set", few.path):
            sluice.Loader(few, made)
    with refused("leave these out"):
        sluice.Loader(data, file, epochs=3)
    was = os.environ.pop("PATH")
    try:
        with refused("needs sluice's program `schedule` in PATH", "give that as schedule"):
            sluice.Loader(data, batch_tokens=1024)
    finally:
        os.environ["PATH"] = was
    for wrong in ({"batch_tokens": 0}, {"batch_tokens": -256}, {"epochs": 0}, {"seed": -1}, {"seed": 1 << 64}):
        with refused("schedule: "):
            sluice.Loader(data, **{"batch_tokens": 1024, **wrong})
    with refused("ranks are 0 to"):
        sluice.Loader(data, file, rank=2, world=2)
    other = path("other-order")
    run("shuffle", "-q", "--seed=9", "--format=olmo", "-o", other, common.pieces(False))
    with refused("another set"):
        sluice.Loader(sluice.open(other), file).load_state_dict(sluice.Loader(data, file).state_dict())


def test_forgotten() -> None:
    """A training goes on, by its schedule and from its state, with the set without a document; twice."""
    needs("xxhash")
    file, _ = schedule("olmo")
    data = sluice.open(shards("olmo"))
    states = [sluice.Loader(data, file).state_dict()]
    for where in (path("forgotten"), path("forgotten-2")):
        records = map(json.loads, run("inspect", "--records", data.path).splitlines())
        with open(path("drop"), "w") as f:
            f.write(next(s["id"] for r in records for s in r["segments"] if "id" in s) + "\n")
        run("forget", "-q", "--accept-mismatch", f"--ids-drop={path('drop')}", "-o", where, data.path)
        data = sluice.open(where)
        loader = sluice.Loader(data, file)
        for state in states:
            loader.load_state_dict(state)
        states.append(loader.state_dict())
    with refused("another set"):
        sluice.Loader(sluice.open(shards("olmo")), file).load_state_dict(states[-1])


def test_left_out() -> None:
    """Buckets that no step takes are warned of, with their sequences and why; and nothing else is."""
    needs("xxhash")
    where, data = shards("olmo"), sluice.open(shards("olmo"))
    small = next(b for b in data if len(b) < (1 << 14) // b.length)
    curricula = {"0,3,1,1,1": (f"{data[16].name} ({len(data[16])} sequences; its odds are 0)",)}
    for curriculum, words in curricula.items():
        with warned(*words):
            sluice.Loader(data, batch_tokens=1024, curriculum=curriculum)
    file, _ = schedule("olmo", 500, 1 << 14)
    for how in (lambda: sluice.Loader(data, file), lambda: sluice.Loader(data, batch_tokens=1 << 14)):
        with warned(f"{small.name} ({len(small)} sequences; it has fewer sequences than a step takes)"):
            loader = how()
        assert small.length not in {b["bucket"] for b in loader}
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", "--tokens=1024", "-o", path("short.sched"), where)
    with warned("the training ends first"):
        sluice.Loader(data, path("short.sched"))
    where = shards("wds.json.gz")
    one = f"{where}/D_5/manifest.jsonl"
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", "-o", path("one.sched"), one)
    with warned("D_7 (", "the schedule was made without it"):
        batches = sluice.Batches(sluice.open(where), path("one.sched"))
    with warned():
        pickle.loads(pickle.dumps(batches))  # each worker would say it again
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=256", "-o", path("all.sched"), one_length())
    with warned():
        sluice.Loader(sluice.open(one_length()), path("all.sched"))
    for epochs, words in ((1, "the epoch leaves out"), (3, "the last epoch leaves out")):
        file = ten_epochs(one_length(), epochs=epochs)
        with warned(words, "of D_8 (4104)"):
            sluice.Loader(sluice.open(one_length()), file)


@contextmanager
def warned(*words: str) -> Iterator[None]:
    """One warning is given, which has all of the words; without words none is."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    texts = [str(w.message) for w in seen]
    assert len(texts) == bool(words) and all(w in t for t in texts for w in words), (words, texts)


def test_wrong_arguments() -> None:
    needs("xxhash")
    data, file = sluice.open(shards("olmo")), schedule("olmo")[0]
    for wrong in ({"rank": "0"}, {"rank": -1}, {"rank": None}, {"rank": False}, {"world": 0}, {"world": 2.0},
                  {"threads": -1}, {"threads": "2"}, {"threads": 1.5}, {"prefetch": -1}):  # fmt: skip
        with refused(*(f"{k} is {v!r}, and must be a whole number" for k, v in wrong.items())):
            sluice.Loader(data, file, **wrong)
    assert next(sluice.Loader(data, file, rank=np.int64(1), world=np.uint8(2), threads=np.int32(1)))["step"] == 0
    loader = sluice.Loader(data, file)
    state = loader.state_dict()
    for step in ("3", 3.0, None, True, -1, [3], {}):
        with refused(f"the state's step is {step!r}"):
            loader.load_state_dict({**state, "step": step})
    with refused("is not in", "begins with step 0"):
        loader.load_state_dict({**state, "step": len(loader.batches) + 1})
    for not_one in (None, 3, [], {}, {**state, "sluice": 9}):
        with refused("not what state_dict() of a sluice loader gave"):
            loader.load_state_dict(not_one)
    with refused("no such: is missing; make it: schedule --trainer generic"):
        sluice.Loader(data, path("no such"))
    needs("torch")
    from sluice.torch import IterableDataset

    dataset = IterableDataset(data, file)
    for step in ("3", None, -1):
        with refused(f"the state's step is {step!r}"):
            dataset.load_state_dict({**state, "step": step})
        with refused(f"the state's step is {step!r}"):
            iter(dataset).load_state_dict({**state, "worker": [0, 1], "step": step})
    for not_one in (None, state, {**state, "worker": [1, 2]}):
        with refused("in worker [0, 1]"):
            iter(dataset).load_state_dict(not_one)


def test_replaced() -> None:
    """Pickles and states of a path at which there is another schedule, or another set, are refused."""
    needs("xxhash")
    where, file = path("replaced"), path("replaced.sched")

    def make(seed: int, *options: str) -> None:
        shutil.rmtree(where, ignore_errors=True)
        run("shuffle", "-q", f"--seed={seed}", "--format=olmo", "-o", where, common.pieces(False))
        run("schedule", "-q", "--trainer=generic", "--batch-tokens=1024", *options, "-f", "-o", file, where)

    make(1)
    one = sluice.Batches(sluice.open(where), file)
    alone, all_of_it, state = pickle.dumps(one.schedule), pickle.dumps(one), sluice.state_at(one, 5)
    drawn = sluice.Schedule.draw(one.data, 1024)
    steps, without_file = list(drawn), pickle.dumps(drawn)
    assert pickle.loads(alone).identity == pickle.loads(all_of_it).schedule.identity == one.schedule.identity
    for options in (["--seed=3"], ["--from-step=7"]):
        make(1, *options)
        for p in (alone, all_of_it):
            with refused(file, "another schedule", "pickled"):
                pickle.loads(p)
    make(2)
    with refused(where, "another set", "pickled"):
        pickle.loads(all_of_it)
    other = sluice.Batches(sluice.open(where), file)  # numbers of sequences: as good for another order
    with refused("another set", where):
        sluice.step_of(other, state)
    assert repr(other) != repr(one)  # by which Grain knows its checkpoints
    os.remove(file)
    with refused(file, "is missing; make it: schedule"):
        pickle.loads(alone)
    assert list(pickle.loads(without_file)) == steps


def test_forked_loader() -> None:
    """A loader whose threads are at work goes on in a child, and here."""
    needs("xxhash")
    data, file = big()
    want = [digest([b]) for b in sluice.Loader(data, file)]
    loader = sluice.Loader(data, file)
    for n in (0, 3, 5):
        got = [digest([b]) for _, b in zip(range(n), loader)]
        at = len(want) - len(loader)
        assert got == want[at - n : at]

        def rest(at: int = at) -> None:
            assert [digest([b]) for b in loader] == want[at:]

        def again(at: int = at) -> None:
            loader.load_state_dict(loader.state_dict())
            rest(at)

        common.fork(rest)
        common.fork(again)
        common.fork(loader.close)


def digest(batches: list[dict[str, Any]]) -> str:
    """Of a global step: its ranks' ids and labels, one behind another."""
    h = hashlib.sha256()
    for name in ("input_ids", "labels"):
        for b in batches:
            h.update(np.ascontiguousarray(b[name]).tobytes())
    return f"{batches[0]['step']} {h.hexdigest()}"


def big() -> tuple[sluice.Set, str]:
    """A set of which a step of 192 of the longest can be taken."""
    where = shards("megatron", 10000, 4096)
    file, _ = schedule("megatron", 10000, TOKENS)
    return sluice.open(where), file


def test_worlds_and_stops() -> None:
    """Worlds 1, 2, 3, 8, 64 see the same global steps; so do 100 stops, each resumed by another world (1,000 by
    `make check-python CHECK_FULL=1`)."""
    needs("xxhash")
    data, file = big()
    one = [digest([b]) for b in sluice.Loader(data, file)]
    assert len(one) == len(set(one)) > 50
    for world in (2, 3, 8, 64):
        ranks = [sluice.Loader(data, file, rank=r, world=world, threads=1, prefetch=1) for r in range(world)]
        assert [digest(list(step)) for step in zip(*ranks)] == one
    r, state, seen, ended = random.Random(3), None, [], 0
    for _ in range(1000 if os.environ.get("CHECK_FULL") else 100):
        world = r.choice((1, 2, 3, 8, 64))
        how = {"threads": r.choice((0, 0, 2)), "prefetch": r.randint(1, 9)}
        ranks = [sluice.Loader(data, file, rank=i, world=world, **how) for i in range(world)]
        for x in ranks:
            if state:
                x.load_state_dict(json.loads(state))
        for _ in range(r.randint(0, 3)):
            if len(ranks[0]):
                seen.append(digest([next(x) for x in ranks]))
        states = {json.dumps(x.state_dict()) for x in ranks}
        for x in ranks:
            x.close()
        assert len(states) == 1
        state = states.pop()
        assert len(state) <= 1024
        if len(seen) == len(one):
            assert seen == one
            seen, state, ended = [], None, ended + 1
    assert ended, len(one)
    assert seen == one[: len(seen)]


def test_failed_step() -> None:
    """A step that could not be made is the next one still: nothing is left out, nothing comes twice."""
    needs("xxhash")
    data, file = sluice.open(shards("olmo")), schedule("olmo")[0]
    for threads in (0, 2):
        loader, failed = sluice.Loader(data, file, threads=threads), set()
        make = loader.batches.__class__.__getitem__

        def some(self: Any, k: int, make: Any = make, failed: set[int] = failed) -> Any:
            if k % 5 == 3 and k not in failed:
                failed.add(k)
                raise OSError("once")
            return make(self, k)

        loader.batches.__class__ = type("Failing", (sluice.Batches,), {"__getitem__": some})
        seen = []
        while len(loader):
            try:
                seen.append(next(loader)["step"])
            except OSError:
                assert loader.state_dict()["step"] == len(seen)
        assert failed and seen == list(range(len(loader.batches))), (threads, seen)


def test_torch_workers() -> None:
    """DataLoader with 0, 1, 4, 8 workers, forked and spawned: the same steps in the same order."""
    needs("torch", "xxhash")
    from torch.utils.data import DataLoader

    from sluice.torch import IterableDataset

    data, file = big()
    want = [digest([b]) for b in sluice.Loader(data, file)]
    for workers, how in ((0, None), (1, "fork"), (4, "fork"), (8, "fork"), (2, "spawn")):
        loader = DataLoader(IterableDataset(data, file), batch_size=None, num_workers=workers,
                            multiprocessing_context=how)  # fmt: skip
        assert [digest([b]) for b in loader] == want, (workers, how)
    # A stop, and on with other workers and another world.
    dataset = IterableDataset(data, file)
    seen = []
    for b in DataLoader(dataset, batch_size=None, num_workers=4):
        seen.append(digest([b]))
        if len(seen) == 13:
            state = dataset.state_after(b)
            break
    for how in ("fork", "spawn"):  # workers' copies went on, not this dataset
        next(iter(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=how)))
        try:
            dataset.state_dict()
        except AttributeError as e:
            assert "state_after(batch)" in str(e) and "StatefulDataLoader" in str(e)
        else:
            raise AssertionError("a dataset said where its loader is")
    ranks = [IterableDataset(data, file, rank=r, world=3) for r in range(3)]
    for x in ranks:
        x.load_state_dict(state)
    loaders = [DataLoader(x, batch_size=None, num_workers=w) for x, w in zip(ranks, (0, 1, 2))]
    for _ in range(2):  # a second iteration is the first again
        assert seen + [digest(list(step)) for step in zip(*loaders)] == want


def test_second_iteration() -> None:
    """It begins at the dataset's start, whatever the number of workers, whether they are kept, and the loader."""
    needs("torch", "torchdata.stateful_dataloader", "xxhash")
    from torch.utils.data import DataLoader
    from torchdata.stateful_dataloader import StatefulDataLoader

    from sluice.torch import IterableDataset

    data, file = big()
    n = len(sluice.Batches(data, file))
    for kind in (DataLoader, StatefulDataLoader):
        for workers, kept in ((0, False), (1, False), (4, False), (2, True)):
            for start in (0, n - 7):
                dataset = IterableDataset(data, file)
                if start:
                    dataset.load_state_dict(sluice.state_at(dataset.batches, start))
                loader = kind(dataset, batch_size=None, num_workers=workers, persistent_workers=kept)
                assert len(loader) == n - start
                for _ in range(2):
                    assert [b["step"] for b in loader] == list(range(start, n)), (kind, workers, kept)
    for workers in (0, 1, 3):  # what StatefulDataLoader loads is for one iteration
        first, again = (StatefulDataLoader(IterableDataset(data, file), batch_size=None, num_workers=workers)
                        for _ in range(2))  # fmt: skip
        for _, _b in zip(range(n - 7), first):
            state = first.state_dict()
        again.load_state_dict(state)
        assert [b["step"] for b in again] == list(range(n - 7, n))
        assert [b["step"] for b in again] == list(range(n))
        with refused("load it into that loader"):
            IterableDataset(data, file).load_state_dict(state)


def test_worlds_and_workers() -> None:
    """Every world by every number of workers; the workers' processes are played by one."""
    needs("torch", "xxhash")
    import sluice.torch as module

    data, file = big()
    schedule = sluice.Schedule.read(file, data)
    want = [digest([b]) for b in sluice.Loader(data, schedule)]
    true_info = module.get_worker_info

    def steps(rank: int, world: int, workers: int) -> Iterator[dict[str, Any]]:
        """What DataLoader gives: its workers' batches in turns."""
        turns = []
        for w in range(max(1, workers)):
            info = SimpleNamespace(id=w, num_workers=workers) if workers else None
            module.get_worker_info = lambda info=info: info
            mine = iter(module.IterableDataset(data, schedule, rank=rank, world=world))
            turns.append(chain([next(mine)], mine))
        for batch in chain.from_iterable(zip_longest(*turns)):
            if batch is not None:
                yield batch

    try:
        for world in (1, 2, 3, 8, 64):
            for workers in (0, 1, 4, 8):
                ranks = [steps(r, world, workers) for r in range(world)]
                assert [digest(list(step)) for step in zip(*ranks)] == want, (world, workers)
    finally:
        module.get_worker_info = true_info


def test_stateful_data_loader() -> None:
    needs("torch", "torchdata.stateful_dataloader", "xxhash")
    from torchdata.stateful_dataloader import StatefulDataLoader

    from sluice.torch import IterableDataset

    data, file = big()
    want = [digest([b]) for b in sluice.Loader(data, file)]
    for workers in (0, 1, 3):
        for stop in (1, 7, 20, len(want)):
            first = StatefulDataLoader(IterableDataset(data, file), batch_size=None, num_workers=workers)
            seen = []
            for b in first:
                seen.append(digest([b]))
                if len(seen) == stop:
                    state = pickle.loads(pickle.dumps(first.state_dict()))
                    break
            again = StatefulDataLoader(IterableDataset(data, file), batch_size=None, num_workers=workers)
            again.load_state_dict(state)
            seen += [digest([b]) for b in again]
            assert seen == want, (workers, stop, len(seen), len(want))


def test_grain() -> None:
    """Grain's own loader, with its workers, and its checkpoint."""
    needs("grain", "xxhash")
    import grain

    data, file = big()
    for world in (1, 3):
        for rank in range(world):
            want = [digest([b]) for b in sluice.Loader(data, file, rank=rank, world=world)]
            source = Source(data, file, rank=rank, world=world)
            for workers in (0, 2) if not rank else (0,):
                sampler = grain.samplers.SequentialSampler(len(source), grain.sharding.NoSharding())
                loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=workers)
                it = iter(loader)
                seen = [digest([next(it)]) for _ in range(9)]
                state = it.get_state()
                it = iter(loader)
                it.set_state(state)
                seen += [digest([b]) for b in it]
                assert seen == want, (world, rank, workers)
    tail = path("tail.sched")  # of --from-step: from that step on
    run("schedule", "-q", "--trainer=generic", f"--batch-tokens={TOKENS}", "--epochs=2", "--from-step=11",
        "-o", tail, data.path)  # fmt: skip
    source = Source(data, tail)
    sampler = grain.samplers.SequentialSampler(len(source), grain.sharding.NoSharding())
    want = [digest([b]) for b in sluice.Loader(data, file)]
    assert len(source) == len(want) - 11 and [digest([b]) for b in source] == want[11:]
    for workers in (0, 2):
        loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=workers)
        assert [digest([b]) for b in loader] == want[11:]
    assert sluice.step_of(source, sluice.state_at(source, len(want))) == len(want)
    for wrong in (-1, len(source)):
        try:
            source[wrong]
        except IndexError:
            continue
        raise AssertionError(wrong)
    dataset = grain.MapDataset.source(Source(data, file)).to_iter_dataset()
    assert [digest([b]) for b in dataset] == [digest([b]) for b in sluice.Loader(data, file)]


def test_every_format() -> None:
    """Sets of each format by DataLoader's workers, StatefulDataLoader and Grain, each stopped and resumed; without
    CHECK_FULL=1 one of each kind: mapped, in tars, compressed, Parquet."""
    needs("torch", "torchdata.stateful_dataloader", "grain", "xxhash", "zstandard")
    import grain
    from torch.utils.data import DataLoader
    from torchdata.stateful_dataloader import StatefulDataLoader

    from sluice.torch import IterableDataset

    for name in FORMATS if os.environ.get("CHECK_FULL") else ("olmo", "wds", "mds.zstd", "parquet"):
        if name in common.PARQUET and not common.have_parquet():
            continue
        data, file = sluice.open(shards(name)), schedule(name)[0]
        want = [digest([b]) for b in sluice.Loader(data, file, threads=0)]
        how = "spawn" if name in ("olmo", "mds.zstd") else "fork"
        loader = DataLoader(IterableDataset(data, file), batch_size=None, num_workers=2, multiprocessing_context=how)
        assert [digest([b]) for b in loader] == want, name
        first, again = (
            StatefulDataLoader(IterableDataset(data, file), batch_size=None, num_workers=2) for _ in range(2)
        )
        steps = iter(first)
        seen = [digest([next(steps)]) for _ in range(11)]
        again.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
        assert seen + [digest([b]) for b in again] == want, name
        source = Source(data, file)
        sampler = grain.samplers.SequentialSampler(len(source), grain.sharding.NoSharding())
        it = iter(grain.DataLoader(data_source=source, sampler=sampler))
        seen, state = [digest([next(it)]) for _ in range(13)], it.get_state()
        it = iter(grain.DataLoader(data_source=source, sampler=sampler))
        it.set_state(state)
        assert seen + [digest([b]) for b in it] == want, name


def test_masks() -> None:
    """Against brute force, on every packed batch: documents from `inspect --records`."""
    needs("torch", "xxhash", "zstandard")
    import torch

    sequences = 0
    for name in ("mds", "ds"):
        where = shards(name, 3000, 1000)
        data = sluice.open(where)
        file, _ = schedule_of(where, 2048)
        for layout in ("padded", "varlen"):
            for batch in sluice.Loader(data, file, layout=layout, output="torch"):
                if len(batch["cu_seqlens"]) - 1 == 2048 // batch["bucket"]:
                    continue
                sequences += 2048 // batch["bucket"]
                ids = batch["input_ids"]
                start = batch["position_ids"].reshape(-1) == 0
                document = (torch.cumsum(start, 0) - 1).reshape(ids.shape).reshape(-1, ids.shape[-1])
                n = document.shape[1]
                want = torch.zeros(len(document), 1, n, n, dtype=torch.bool)
                for q in range(n):
                    want[:, 0, q, : q + 1] = document[:, : q + 1] == document[:, q : q + 1]
                got = masks.sdpa_mask(batch)
                assert torch.equal(got, want)
                if sequences % 5 == 0:
                    flex = masks.flex_block_mask(batch, BLOCK_SIZE=16 if layout == "padded" else 128)
                    check_flex(flex, want)
                cu = masks.flash_varlen(batch)["cu_seqlens_q"]
                assert torch.equal(start.nonzero().reshape(-1).int(), cu[:-1]) and cu[-1] == 2048
                same = {k: v.numpy() if hasattr(v, "numpy") else v for k, v in batch.items()}
                assert np.array_equal(masks.document_ids(same), masks.document_ids(batch).numpy())
    assert sequences >= 1000, sequences


def check_flex(flex: Any, want: Any) -> None:
    import torch

    rows, _, n, _ = want.shape
    q = torch.arange(n)
    dense = flex.mask_mod(torch.arange(rows)[:, None, None], 0, q[None, :, None], q[None, None, :])
    assert torch.equal(dense, want[:, 0])
    size = flex.BLOCK_SIZE[0]
    some = want.reshape(rows, 1, n // size, size, n // size, size).any(5).any(3)
    assert torch.equal(flex.to_dense().bool(), some)


@lru_cache(None)
def schedule_of(where: str, tokens: int) -> tuple[str, None]:
    out = where + f".{tokens}.sched"
    run("schedule", "-q", "--trainer=generic", f"--batch-tokens={tokens}", "-o", out, where)
    return out, None


@lru_cache(None)
def one_length() -> str:
    """A set of 4,104 sequences of 256: four blocks, and a part of one."""
    np.arange(1, 4104 * 256 + 1).astype("<u4").tofile(path("one.npy"))
    ids = ["--token-bytes=4", "--eos-id=0", "--vocab-size=2000000", path("one.npy")]
    cut = run("decompose", "-q", "--buckets=256", *ids)
    run("shuffle", "-q", "--format=olmo", "--shard-size=1M", "-o", path("one"), stdin=cut)
    return path("one")


@lru_cache(None)
def six_lengths() -> str:
    docs = run("tokenize", "-q", common.corpus(2000))
    cut = run("decompose", "-q", "--min=16", "--max=512", stdin=docs)
    run("shuffle", "-q", "--format=mds", "-o", path("six"), stdin=run("pack", "-q", stdin=cut))
    return path("six")


@lru_cache(None)
def ten_epochs(where: str, seed: int = 0, epochs: int = 10) -> str:
    out = f"{where}.{seed}.{epochs}.sched"
    steps = ["--trainer=generic", "--batch-tokens=8192", f"--epochs={epochs}", f"--seed={seed}"]
    run("schedule", "-q", *steps, "-o", out, where)
    return out


def test_order() -> None:
    """The order of an epoch is that of the vector in formats/SCHEDULE.md."""
    from sluice._order import EpochOrder

    assert EpochOrder(7, 1, 2, 10, 4).numbers(0, 10).tolist() == [2, 3, 1, 0, 9, 8, 4, 5, 7, 6]
    assert EpochOrder(7, 2, 2, 10, 4).numbers(3, 8).tolist() == [1, 0, 2, 5, 6]
    assert EpochOrder((1 << 64) - 1, 2, 1, 5, 1).numbers(0, 5).tolist() == [2, 0, 3, 1, 4]


def test_ten_epochs() -> None:
    """Each sequence once an epoch, by what the Loader gives; batches differ between epochs and seeds, and take few
    blocks; worlds 1, 2, 8, workers and Grain, and stops anywhere give the same."""
    needs("xxhash")
    for where, lengths in ((one_length(), 1), (six_lengths(), 6)):
        data, members = sluice.open(where), []
        assert len(data) == lengths
        for seed in (0, 1):
            file = ten_epochs(where, seed)
            batches = sluice.Batches(data, file)
            taken: dict[int, list[int]] = {b.length: [] for b in data}
            of_epoch: dict[int, set[frozenset[int]]] = {e: set() for e in range(10)}
            for step, mine in zip(batches.schedule, numbers(file)):
                rows = data[step.length].block(0, len(data[step.length]))
                assert np.array_equal(batches[step.step]["input_ids"], rows[mine])
                taken[step.length] += mine
                of_epoch[step.epoch].add(frozenset([-step.length, *mine]))
                if step.first // len(data[step.length]) == (step.first + step.n - 1) // len(data[step.length]):
                    assert len({i // 1024 for i in mine}) <= 3  # a batch of 32 sequences is in few blocks
            for b in data:
                n, left = len(b), len(b) * 10 - len(taken[b.length])
                assert 0 <= left < 8192 // b.length
                for e in range(10):
                    seen = taken[b.length][e * n : (e + 1) * n]
                    assert len(seen) == len(set(seen)) == (n - left if e == 9 else n)
            seen = [m for e in of_epoch for m in of_epoch[e]]
            assert len(seen) == len(set(seen)) == len(batches)  # no batch comes twice
            members.append(of_epoch)
        assert all(not members[0][e] & members[1][e] for e in range(1, 10))
        small = {frozenset(m) for m in members[0][0]} & members[1][0]
        assert len(small) == len(members[0][0])  # the set's order


def test_ten_epochs_resumed() -> None:
    needs("xxhash")
    r = random.Random(5)
    for where in (one_length(), six_lengths()):
        data, file = sluice.open(where), ten_epochs(where)
        one = [digest([b]) for b in sluice.Batches(data, file)]
        for world in (2, 8):
            ranks = [sluice.Batches(data, file, rank=i, world=world) for i in range(world)]
            for k in r.sample(range(len(one)), 60):
                assert digest([x[k] for x in ranks]) == one[k]
        source = Source(data, file)
        for k in r.sample(range(len(one)), 20):
            loader = sluice.Loader(data, file, threads=k % 2)
            loader.load_state_dict(sluice.state_at(source, k))
            assert [digest([b]) for _, b in zip(range(3), loader)] == one[k : k + 3]
            assert digest([source[k]]) == one[k]
            loader.close()
    needs("torch")
    from sluice.torch import IterableDataset

    dataset = IterableDataset(data, file)
    dataset.load_state_dict(sluice.state_at(source, len(one) - 40))
    from torch.utils.data import DataLoader

    loader = DataLoader(dataset, batch_size=None, num_workers=2)
    assert [digest([b]) for b in loader] == one[-40:]


def test_old_schedules() -> None:
    """Files of version 1, of earlier versions of sluice."""
    needs("xxhash")
    for version in ("0.1.0", "0.2.0"):
        where = os.path.join(os.path.dirname(__file__), "../../tests/golden", version, "files.tar.xz")
        with tarfile.open(where) as tar:
            names = [n for n in tar.getnames() if n.endswith(".sched")]
            for name in names:
                with open(path("old.sched"), "wb") as f:
                    f.write(tar.extractfile(name).read())  # type: ignore[union-attr]
                steps = sluice.Schedule.read(path("old.sched"))
                records = list(map(json.loads, run("inspect", "--records", path("old.sched")).splitlines()))
                assert len(records) == len(steps) and not any("numbers" in x for x in records)
                for x, step in zip(records, steps):
                    want = range(x["first"], x["first"] + x["sequences"])
                    assert steps.numbers(step, 0, step.n) == want and step.epoch == x["epoch"]
        assert len(names) >= 3


def test_resume_is_quick() -> None:
    """State of at most 1 KiB, step 10^6 within 100 ms, opening included."""
    needs("xxhash")
    data, _ = big()
    out = path("long.sched")
    n = sum(len(b) // (256 // b.length) for b in data)
    run("schedule", "-q", "--trainer=generic", "--batch-tokens=256", f"--epochs={1_100_000 // n + 1}",
        "-o", out, data.path)  # fmt: skip
    state = sluice.Loader(data, out).state_dict()
    state["step"] = 1_000_000
    begin = time.perf_counter()
    loader = sluice.Loader(data, out)
    loader.load_state_dict(state)
    assert next(loader)["step"] == 1_000_000
    seconds = time.perf_counter() - begin
    print(f"  resumed at step 10^6 in {seconds * 1e3:.1f} ms, state {len(json.dumps(state))} bytes")
    assert seconds < 0.1 and len(json.dumps(loader.state_dict())) <= 1024


if __name__ == "__main__":
    common.main(globals())
