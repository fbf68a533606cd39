"""Limits of sluice-chat, whose templates and records are strangers' programs and data.

Steps and output are counted, so that all machines refuse the same records. Memory and processor time are limited for
what has no steps: a width of 10^9, a search in long texts.
"""

from __future__ import annotations

import atexit
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LINE = 64 << 20  # bytes of a record
STEPS = 1 << 20  # of a rendering: turns of loops and calls of macros; and PER_BYTE more a byte of the record
OUTPUT = 16 << 20  # characters of a rendering; and PER_BYTE more a byte of the record
PER_BYTE = 16
BITS = 1 << 16  # of a whole number that is multiplied
MEMORY = 512 << 20  # bytes that a record, or compiling a template, may take beyond what the process has before
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


class _Memory:
    """The limit of the size of this process's data. It holds for what strangers wrote alone: other memory of the
    process, as for blocks on their way to and from workers, depends on their number."""

    def __init__(self) -> None:
        self.own = resource.getrlimit(resource.RLIMIT_DATA)
        try:
            self.statm = os.open("/proc/self/statm", os.O_RDONLY)
        except OSError:
            self.statm = -1

    def limit(self) -> None:
        if self.statm < 0:
            return
        used = int(os.pread(self.statm, 128, 0).split()[5]) * resource.getpagesize()
        soft, hard = self.own
        new = used + MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (new if soft == resource.RLIM_INFINITY else min(new, soft), hard))

    def lift(self) -> None:
        if self.statm >= 0:
            resource.setrlimit(resource.RLIMIT_DATA, self.own)


_memory: _Memory | None = None


def guard() -> None:
    """Makes this process ready for `timed`."""
    global _memory
    _memory = _Memory()
    signal.signal(signal.SIGPROF, _clock.tick)
    signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
    atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)  # at its end Python forgets the handler, but not the clock


@contextmanager
def timed(seconds: float = SECONDS) -> Iterator[None]:
    """Exceeded, if what is inside takes more of the processor, or more than MEMORY."""
    _clock.left = seconds
    if _memory:
        _memory.limit()
    try:
        yield
    except MemoryError as e:
        raise Exceeded(f"needs more than {MEMORY >> 20} MiB of memory") from e
    finally:
        _clock.left = float("inf")
        if _memory:
            _memory.lift()


def more_time(seconds: float) -> None:
    """For what runs in `timed`."""
    _clock.left += seconds
