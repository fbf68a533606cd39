"""Steps of a schedule as a torch IterableDataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._base import SluiceError, need, whole
from .dataset import Set
from .loader import Batches, state_at, step_of

need("torch", "sluice.torch")

from torch.utils.data import IterableDataset as _Base, get_worker_info  # noqa: E402


class IterableDataset(_Base):  # type: ignore[misc]
    """The batches of sluice.Batches (whose arguments it takes) for DataLoader and StatefulDataLoader.

    In order, for any number of workers. To go on, load what state_after(batch) gave into a dataset, and make a new
    loader for that; ../README.md says what StatefulDataLoader's own state_dict() is good for.
    """

    def __init__(self, data: Set, schedule: Any = None, **arguments: Any) -> None:
        arguments.setdefault("output", "torch")
        self.batches = Batches(data, schedule, **arguments)
        self._start = self.batches.first_step

    def __len__(self) -> int:
        """Steps of an iteration."""
        return len(self.batches) - self._start

    def __iter__(self) -> _Steps:
        return _Steps(self.batches, self._start)

    def state_after(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The state behind a batch that the loader gave, for any world and number of workers."""
        return state_at(self.batches, int(batch["step"]) + 1)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Iterations begin at the state's step from now on; loaders that have workers must be made anew."""
        if isinstance(state, dict) and ("_num_yielded" in state or "_snapshot" in state):
            raise SluiceError("the state is StatefulDataLoader's: load it into that loader")
        self._start = step_of(self.batches, state)

    def __getattr__(self, name: str) -> Any:
        if name == "state_dict":  # workers have copies of the dataset: here it would always be the start
            raise AttributeError(
                "IterableDataset has no state_dict(), as only the loader knows which batch it gave last: "
                "keep dataset.state_after(batch), or take StatefulDataLoader's state_dict()"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _Steps(Iterator[dict[str, Any]]):
    """The steps of a worker: every n-th. StatefulDataLoader keeps its state."""

    def __init__(self, batches: Batches, start: int) -> None:
        info = get_worker_info()
        self._batches, self._worker = batches, [info.id, info.num_workers] if info else [0, 1]
        self._next = start + self._worker[0]

    def __next__(self) -> dict[str, Any]:
        if self._next >= len(self._batches):
            raise StopIteration
        batch = self._batches[self._next]
        self._next += self._worker[1]
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {**state_at(self._batches, self._next), "worker": self._worker}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        worker = state.get("worker") if isinstance(state, dict) else None
        if worker != self._worker:
            raise SluiceError(
                f"a state of worker {worker} (number, of how many) in worker {self._worker}; "
                "dataset.state_after(batch) gives one for any number of workers"
            )
        step = whole("the state's step", state.get("step"))
        step_of(self._batches, {**state, "step": min(step, len(self._batches))})  # may lie behind the end
        self._next = step
