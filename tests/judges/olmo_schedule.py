#!/usr/bin/env python3
"""schedule --trainer olmo beside OLMo-core's own loader code.

What it proves: for hundreds of sets of counts, curricula, cycles, seeds and epochs, `schedule` takes the batches that
olmo_core.data's curricula take, in their order, and gives each rank the instances that its loader gives it; where
the original stops on its own assertion, ours has every batch once all the same. The real package runs, but for torch
and what else it only imports: the orders need numpy alone, so stand-ins are put in their place.
"""
import abc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import types

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "props"))
from schedulefile import parse, sets  # noqa: E402

BIN = os.environ.get("BIN", "build/bin")
SCHEDULE = os.path.join(BIN, os.environ.get("PROGRAM_PREFIX", "") + "schedule")
FULL = os.environ.get("JUDGES_FULL") == "1"
failed = False


def result(good, what, why=""):
    global failed
    if not good:
        failed = True
        print("  " + str(why)[:600])
    print(("ok " if good else "not ok ") + what)


# ---- the package without what it does not need here ----


class AnyType(abc.ABCMeta):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)

    def register(cls, *args, **kwargs):  # theirs is a decorator
        return lambda x: x


def anything(name):
    return AnyType(name, (), {"__init__": lambda self, *a, **k: None, "__class_getitem__": classmethod(lambda c, i: c),
                              "__call__": lambda self, *a, **k: a[0] if a else None})


class StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, anything(name))
        return getattr(self, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    names = "torch cached_path rich requests dataclass_extensions yaml bettermap safetensors pandas".split()

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


spec = importlib.util.find_spec("olmo_core")
if spec is None:
    print("skip olmo: needs the package ai2-olmo-core")
    sys.exit(0)
root = list(spec.submodule_search_locations)[0]
sys.meta_path.append(Finder())
for name, where in (("olmo_core", root), ("olmo_core.data", os.path.join(root, "data"))):
    module = types.ModuleType(name)  # their __init__ imports everything
    module.__path__ = [where]
    sys.modules[name] = module
for name in ("config distributed distributed.utils distributed.parallel io data.mixes data.source_mixture data.tokenizer"
             " data.types data.collator").split():
    sys.modules["olmo_core." + name] = StandIn("olmo_core." + name)
from olmo_core.data import numpy_dataset as real  # noqa: E402

try:
    from olmo_core.data.data_loader import NumpyVSLDataLoader
except Exception as e:  # noqa: BLE001 - it imports more than the orders need
    NumpyVSLDataLoader = None
    result(False, "the loader can be imported", repr(e))


class Set:
    """What the curricula ask of a data set."""

    def __init__(self, instances):
        self.instances_per_bucket = instances


class Rank:
    """What the loader's arithmetic asks of itself."""

    def __init__(self, batches, tokens, world, rank, instances):
        self.batches_per_bucket, self.global_batch_size = batches, tokens
        self.dp_world_size, self.dp_rank = world, rank
        self._bucket_indices = {n: np.arange(count) for n, count in instances}

    def _batch_index_to_bucket_batch_index(self, index):
        return NumpyVSLDataLoader._batch_index_to_bucket_batch_index(self, index)


rng = random.Random(5)
TMP = tempfile.mkdtemp(prefix="sluice-olmo-", dir=os.environ.get("TMPDIR", "/var/tmp"))
seen = {"same": 0, "refused": 0, "fault": 0, "nothing": 0}
bad = {"order": [], "ranks": [], "fault": [], "refused": []}
for trial in range(1500 if FULL else 300):
    n, low, world = rng.randint(2, 6), rng.randint(3, 6), rng.choice([1, 2, 4, 3])
    lengths = [2**(low + i) for i in range(n)]
    tokens = lengths[-1] * world * rng.randint(1, 2)
    scale = rng.choice([8, 30, 400])
    counts = {m: rng.randint(0, scale) * (tokens // m) + rng.randint(0, tokens // m - 1) for m in lengths}
    counts[lengths[0]] = max(1, counts[lengths[0]])
    counts[lengths[-1]] = max(1, counts[lengths[-1]])
    curriculum = rng.choice(["natural", "grow-p2", "grow-linear"])
    cycles, balanced = rng.choice([1, 2, 3, 8]), rng.random() < 0.3
    seed, epochs = rng.choice([0, 1, 6198, 2**32 - 1, 2**40]), rng.randint(1, 3)
    folder = os.path.join(TMP, "set")
    shutil.rmtree(folder, ignore_errors=True)
    sets(folder, {m: [c] for m, c in counts.items()})
    args = ["--trainer", "olmo", "--curriculum", curriculum, "--batch-tokens", tokens, "--world", world, "--seed", seed,
            "--epochs", epochs]
    made = {"natural": lambda: real.VSLNaturalCurriculum(),
            "grow-p2": lambda: real.VSLGrowP2Curriculum(num_cycles=cycles, balanced=balanced),
            "grow-linear": lambda: real.VSLGrowLinearCurriculum(num_cycles=cycles, balanced=balanced)}[curriculum]()
    if curriculum != "natural":
        args += ["--cycles", cycles] + ["--balanced"] * balanced
    instances = tuple((m, counts[m]) for m in lengths)
    out = os.path.join(TMP, "out")
    p = subprocess.run([SCHEDULE, *map(str, args), "-o", out, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    batches = made.batches_per_bucket(Set(instances), tokens)
    base = np.cumsum([0] + [b for _, b in batches])
    want, stopped = [], None
    for epoch in range(1, epochs + 1):
        try:
            order = made.get_batch_indices(batches, seed + epoch)
        except (AssertionError, ValueError) as e:
            stopped = e
            break
        for index in order:
            b = int(np.searchsorted(base, index, side="right")) - 1
            want.append(((int(index) - int(base[b])) * (tokens // lengths[b]), b))
    name = (args, counts, p.stderr)
    if p.returncode:
        seen["refused"] += 1  # no batch at all, or natural without a longest one
        if base[-1] and not (stopped and curriculum == "natural") and not (balanced and not base[-1]):
            bad["refused"].append(name)
        continue
    h, steps = parse(open(out, "rb").read())
    got = [(first, b) for first, _, b in steps]
    if stopped is not None:
        seen["fault"] += 1
        every = sorted((r * (tokens // lengths[b]), b) for b in range(n) for r in range(batches[b][1]))
        if b"OLMo-core's rounding" not in p.stderr or any(
                sorted(got[e * len(every):(e + 1) * len(every)]) != every for e in range(epochs)):
            bad["fault"].append(name)
        continue
    seen["same"] += 1
    if got != want or b"rounding" in p.stderr:
        bad["order"].append((name, got[:8], want[:8]))
    for k in rng.sample(range(len(order)), min(8, len(order))) if NumpyVSLDataLoader else []:
        first, b = got[(epochs - 1) * len(order) + k]
        part = tokens // lengths[b] // world
        for rank in range(world):
            them = NumpyVSLDataLoader._batch_index_to_local_instance_indices(
                Rank(batches, tokens, world, rank, instances), order[k])
            if list(them) != list(range(first + rank * part, first + (rank + 1) * part)):
                bad["ranks"].append((name, k, rank))
print("  " + ", ".join("%s %d" % x for x in seen.items()))
result(seen["same"] > 100 and not bad["order"], "every batch in the loader's order", bad["order"][:1])
result(not bad["ranks"], "ranks take the loader's instances", bad["ranks"][:1])
result(seen["fault"] > 5 and not bad["fault"], "where its rounding stops it: every batch once, and said", bad["fault"][:1])
result(not bad["refused"], "refused only where the loader has nothing to begin with", bad["refused"][:1])
shutil.rmtree(TMP)
sys.exit(failed)
