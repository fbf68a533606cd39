"""sluice.Loader: batches in the order of a schedule, for any number of ranks and workers."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ._base import Array, SluiceError, damaged, need, whole
from .dataset import Set, ShardBucket, ShardSet
from .schedule import Schedule
from .stream import places, starts

IGNORED = -100  # labels that the loss leaves out, as PyTorch and Hugging Face have it
_VERSION = 1


class Batches:
    """What a rank takes in each step: batches[k], for k from `first_step` to len(batches) - 1.

    schedule: a Schedule, or the file of one. Without it the steps are drawn by the program `schedule`, by
        curriculum, seed, epochs, cycles and batch_tokens (tokens of a step over all ranks).
    rank, world: rank r takes the r-th of `world` equal parts of each step's sequences, which do not depend on
        the world; one by which they cannot be divided is refused.
    layout: "padded" arrays have a row a sequence, "varlen" ones a single row of all tokens.
    output: "numpy" or "torch".

    A batch is a dictionary:
        input_ids, labels, position_ids   int64. labels[i] is the id that follows input_ids[i] in its
                                          document and is trained on, or -100: already shifted
        cu_seqlens   int32, where documents begin in the batch's tokens (all rows, one after another),
                     and the end. Padding counts as a document
        max_seqlen   of the longest document
        bucket       the sequences' length
        step         the step's number
    It can be pickled, and used by several threads.
    """

    def __init__(
        self,
        data: Set,
        schedule: str | os.PathLike[str] | Schedule | None = None,
        *,
        rank: int = 0,
        world: int = 1,
        layout: str = "padded",
        output: str = "numpy",
        curriculum: str = "natural",
        seed: int = 0,
        epochs: int = 1,
        cycles: int = 1,
        batch_tokens: int | None = None,
    ) -> None:
        if not isinstance(data, ShardSet):
            where = data.path if isinstance(data, Set) else repr(data)
            raise SluiceError(f"{where}: steps are taken from a set of shards: what sluice.open(FOLDER) gives")
        if not data.lengths and len(data):
            raise SluiceError(f"{data.path}: whole documents have no buckets; make a set without --documents for steps")
        rank, world = whole("rank", rank), whole("world", world, 1)
        if rank >= world:
            raise SluiceError(f"rank {rank} of a world of {world}: ranks are 0 to world - 1")
        if layout not in ("padded", "varlen") or output not in ("numpy", "torch"):
            raise SluiceError(f"layout {layout!r} must be padded or varlen, output {output!r} numpy or torch")
        if schedule is None:
            if batch_tokens is None:
                raise SluiceError("batch_tokens or a schedule must say how many tokens a step has")
            schedule = Schedule.draw(data, batch_tokens, curriculum, seed=seed, epochs=epochs, cycles=cycles)
        elif (curriculum, seed, epochs, cycles, batch_tokens) != ("natural", 0, 1, 1, None):
            raise SluiceError("a schedule has its own curriculum, seed, epochs, cycles, batch_tokens; leave these out")
        elif not isinstance(schedule, Schedule):
            schedule = Schedule.read(os.fspath(schedule))
        schedule.check_set(data)
        schedule.check_world(world)
        self.data, self.schedule, self.rank, self.world = data, schedule, rank, world
        self.layout, self.output, self.first_step = layout, output, schedule.first_step

    def __len__(self) -> int:
        return len(self.schedule)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[k] for k in range(self.first_step, len(self)))

    def __getitem__(self, k: int) -> dict[str, Any]:
        step = self.schedule[k]
        n = step.n // self.world
        numbers = self.schedule.numbers(step, self.rank * n, self.rank * n + n)
        batch, longest = _tensors(self.data[step.length], numbers, self.data.label_tokens)
        for name, array in batch.items():
            if self.layout == "varlen":
                array = array.reshape(-1)
            batch[name] = need("torch", 'output="torch"').from_numpy(array) if self.output == "torch" else array
        return {**batch, "max_seqlen": longest, "bucket": step.length, "step": k}

    def __repr__(self) -> str:
        return (
            f"<sluice batches {self.schedule.identity} of {self.data.identity}: rank {self.rank} "
            f"of {self.world}, {self.layout}, {self.output}>"
        )


def _tensors(bucket: ShardBucket, numbers: range | Array, label_tokens: bool) -> tuple[dict[str, Any], int]:
    """Inputs, labels, positions and boundaries of sequences, and the length of the longest document."""
    ids, (counts, length, trained) = bucket.take(numbers), bucket.documents(numbers)
    n, width = len(numbers), bucket.n_ids - label_tokens
    labels: Array = np.empty((n, width), np.int64)
    labels[:, : bucket.n_ids - 1], labels[:, bucket.n_ids - 1 :] = ids[:, 1:], IGNORED
    at = starts(length)
    if (at[starts(counts)] != np.arange(0, (n + 1) * bucket.n_ids, bucket.n_ids)).any():
        where = bucket._owner._stream(bucket.name).path
        raise damaged(where, f"a sequence's segments do not have its {bucket.n_ids} ids")
    row, begin = np.divmod(at[:-1], bucket.n_ids)
    inner = begin > 0  # no label leads from one document to the next
    labels[row[inner], begin[inner] - 1] = IGNORED
    if trained is not None:
        labels[:, : bucket.n_ids - 1][~trained.reshape(n, -1)[:, 1:]] = IGNORED
    if label_tokens:  # the last id is a label alone
        length = length.copy()
        length[np.cumsum(counts) - 1] -= 1
        length = length[length > 0]
        at = starts(length)
    batch = {
        "input_ids": ids[:, :width].astype(np.int64),
        "labels": labels,
        "position_ids": places(at, length).reshape(n, width),
        "cu_seqlens": at.astype(np.int32),
    }
    return batch, int(length.max(initial=0))


class Loader(Iterator[dict[str, Any]]):
    """Batches (whose arguments it takes) one after another, prefetched by threads; iter() again goes on.

    A state_dict() may be loaded with another number of ranks or workers, another layout or output.

    prefetch: batches that are made ahead. threads: that make them; 0 makes each when it is asked for.
    """

    def __init__(
        self, data: Set, schedule: Any = None, *, prefetch: int = 4, threads: int = 2, **arguments: Any
    ) -> None:
        self.batches = Batches(data, schedule, **arguments)
        self._ahead, self._threads = max(1, whole("prefetch", prefetch)), whole("threads", threads)
        self._next = self.batches.first_step
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[dict[str, Any]]] = deque()
        self._process = 0  # whose threads they are

    def __len__(self) -> int:
        """Steps that are left."""
        return len(self.batches) - self._next

    def __next__(self) -> dict[str, Any]:
        if self._next >= len(self.batches):
            self.close()
            raise StopIteration
        self._forked()
        if not self._threads:
            batch = self.batches[self._next]
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "sluice")
            while len(self._waiting) < self._ahead and (k := self._next + len(self._waiting)) < len(self.batches):
                self._waiting.append(self._pool.submit(self.batches.__getitem__, k))
            try:
                batch = self._waiting[0].result()
            except BaseException:  # also of a key: this step is the next one still
                self._waiting.clear()
                raise
            self._waiting.popleft()
        self._next += 1
        return batch

    def close(self) -> None:
        """Ends the threads; iterating starts new ones."""
        self._forked()
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _forked(self) -> None:
        """In a process that was forked there are no threads, and what waits for them is left alone."""
        if self._process != os.getpid():
            self._process, self._pool, self._waiting = os.getpid(), None, deque()

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict goes on from: behind the last batch that was given out."""
        return state_at(self.batches, self._next)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.close()
        self._next = step_of(self.batches, state)


def state_at(batches: Batches, step: int) -> dict[str, Any]:
    """The state whose next step is `step`."""
    return {"sluice": _VERSION, "schedule": batches.schedule.identity, "set": batches.data.identity, "step": step}


def step_of(batches: Batches, state: dict[str, Any]) -> int:
    """The next step of a state; SluiceError if it is of other steps."""
    if not isinstance(state, dict) or state.get("sluice") != _VERSION:
        raise SluiceError("the state is not what state_dict() of a sluice loader gave; load that")
    if state.get("schedule") != batches.schedule.identity:
        raise SluiceError(
            f"the state belongs to another schedule ({state.get('schedule')}) than {batches.schedule.where} "
            f"({batches.schedule.identity}); go on with the schedule and the set of the first run"
        )
    if state.get("set") not in (batches.data.identity, *batches.data.same_places):
        raise SluiceError(
            f"the state belongs to another set than {batches.data.path}, which may have another order; go "
            "on with the set of the first run"
        )
    step = whole("the state's step", state.get("step"))
    if not batches.first_step <= step <= len(batches.schedule):
        raise SluiceError(
            f"the state's step {step} is not in {batches.schedule.where}, which begins with step {batches.first_step}"
        )
    return step
