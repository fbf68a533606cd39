"""Limits of sluice-chat, whose templates and records are strangers' programs and data.

Steps and output are counted, so that all machines refuse the same records. Memory and processor time are limited for
what has no steps: a width of 10^9, a search in long texts.
"""

from __future__ import annotations

import atexit
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

LINE = 64 << 20  # bytes of a record
STEPS = 1 << 20  # of a rendering: turns of loops and calls of macros; and PER_BYTE more a byte of the record
OUTPUT = 16 << 20  # characters of a rendering; and PER_BYTE more a byte of the record
PER_BYTE = 16
BITS = 1 << 16  # of a whole number that is multiplied
MEMORY = 512 << 20  # bytes that a process may take beyond what it has before its first template
SECONDS = 10.0  # of the processor, for a record or for compiling a template; and SECONDS_A_MESSAGE more a message
SECONDS_A_MESSAGE = 0.1
_TICK = 0.25


class Exceeded(BaseException):
    """A limit is exceeded. No Exception, as jinja2 and its filters catch these."""


class _Clock:
    left = float("inf")  # seconds for what runs

    def tick(self, *_: Any) -> None:
        self.left -= _TICK
        if self.left < 0:
            self.left = float("inf")
            raise Exceeded("takes too much time of the processor")


_clock = _Clock()


def guard() -> None:
    """Limits this process's memory from now on, and starts the clock that `timed` needs."""
    with suppress(OSError, ValueError), open("/proc/self/status") as f:
        used = next(int(line.split()[1]) << 10 for line in f if line.startswith("VmData:"))
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        new = min(n for n in (used + MEMORY, hard, soft) if n != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_DATA, (new, hard))
    signal.signal(signal.SIGPROF, _clock.tick)
    signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
    atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)  # at its end Python forgets the handler, but not the clock


@contextmanager
def timed(seconds: float = SECONDS) -> Iterator[None]:
    """Exceeded, if what is inside takes more of the processor, or a MemoryError."""
    _clock.left = seconds
    try:
        yield
    except MemoryError as e:
        raise Exceeded(f"needs more than {MEMORY >> 20} MiB of memory") from e
    finally:
        _clock.left = float("inf")


def more_time(seconds: float) -> None:
    """For what runs in `timed`."""
    _clock.left += seconds
