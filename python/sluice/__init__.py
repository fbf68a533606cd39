"""Reads what sluice's programs write, and follows a schedule exactly: sluice.open, sluice.Loader, sluice.masks,
sluice.torch.IterableDataset, sluice.grain.Source; ../README.md has examples.

Modules are imported when they are used: sluice-chat needs no NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import SluiceError as SluiceError
    from .dataset import Bucket as Bucket, Sequence as Sequence, Set as Set, open as open
    from .loader import Batches as Batches, Loader as Loader, state_at as state_at, step_of as step_of
    from .schedule import Schedule as Schedule, Step as Step
    from .stream import PADDING as PADDING, Segments as Segments

__version__ = "0.2.0"
_NAMES = {
    "_base": "SluiceError",
    "dataset": "Bucket Sequence Set open",
    "loader": "Batches Loader state_at step_of",
    "schedule": "Schedule Step",
    "stream": "PADDING Segments",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in ("grain", "masks", "torch"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    return value
