"""Steps of a schedule as a torch IterableDataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._base import SluiceError, need
from .dataset import Set
from .loader import Batches, state_at, step_of

need("torch", "sluice.torch")

from torch.utils.data import IterableDataset as _Base  # noqa: E402
from torch.utils.data import get_worker_info  # noqa: E402


class IterableDataset(_Base):  # type: ignore[misc]
    """The batches of sluice.Batches (whose arguments it takes) for DataLoader and StatefulDataLoader:

        DataLoader(sluice.torch.IterableDataset(data, "steps.sched"), batch_size=None, num_workers=4)

    With any number of workers the loader gives the steps in order: each worker makes every
    num_workers-th, and the loader takes them in turns. Under StatefulDataLoader its state_dict() goes
    on with as many workers as there were. To go on with another world or number of workers, keep
    dataset.state_after(batch), load it into the new dataset, and make a new loader for that.
    """

    def __init__(self, data: Set, schedule: Any = None, **arguments: Any) -> None:
        arguments.setdefault("output", "torch")
        self.batches = Batches(data, schedule, **arguments)
        self._start = self._next = self.batches.first_step
        self._worker: tuple[int, int] | None = None  # number and count, of a worker's own state

    def __len__(self) -> int:
        """Steps from the start, or the state that was loaded."""
        return len(self.batches) - self._start

    def __iter__(self) -> Iterator[dict[str, Any]]:
        info = get_worker_info()
        me = (info.id, info.num_workers) if info else (0, 1)
        if self._worker is None:
            first = self._start + me[0]
        elif self._worker == me:
            first = self._start
        else:
            raise SluiceError(
                f"a state of worker {self._worker[0]} of {self._worker[1]} in worker {me[0]} of {me[1]}; "
                "state_after(batch) gives one for any number of workers"
            )
        self._worker = me if me[1] > 1 else None  # a single one's state is everybody's
        for k in range(first, len(self.batches), me[1]):
            self._next = k + me[1]
            yield self.batches[k]
        self._start, self._next, self._worker = self.batches.first_step, self.batches.first_step, None

    def state_after(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The state behind a batch that the loader gave, for any world and number of workers."""
        return state_at(self.batches, int(batch["step"]) + 1)

    def state_dict(self) -> dict[str, Any]:
        """Of this process: in a worker, that worker's own."""
        state = state_at(self.batches, self._next)
        return {**state, "worker": self._worker} if self._worker else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        worker = state.get("worker")
        self._worker = tuple(worker) if worker else None
        if self._worker:  # a worker's next step may lie behind the end
            state = {**state, "step": min(state["step"], len(self.batches))}
        self._start = self._next = step_of(self.batches, state)
