"""What the modules share: the error, optional packages, hashes, files mapped into memory."""

from __future__ import annotations

import importlib
import mmap
import operator
import os
import re
import stat
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:  # sluice-chat, which takes the rest of this module, needs no NumPy
    Array = Any


_Method = TypeVar("_Method", bound=Callable[..., Any])
# Controls, marks of direction, line separators, halves of surrogate pairs: as slu_printable of lib/base/err.h has it.
_UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text for a terminal: one line, with `?` for each character that could control the terminal."""
    return _UNPRINTABLE.sub("?", text)


class SluiceError(Exception):
    """What is wrong, where, and what helps."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class WrongNumber(IndexError):
    """The caller's number of a sequence or step is out of range: no fault of a file."""


def local(path: str) -> str:
    """The path; SluiceError if it is an address, such as s3://bucket/set, which open() takes for a folder "s3:"."""
    if re.match(r"[A-Za-z][A-Za-z0-9.+-]+://", path):
        raise SluiceError(f"{path}: is an address, and only local files are read and written; copy it, or use a pipe")
    return path


def damaged(where: str, what: str) -> SluiceError:
    return SluiceError(f"{where}: damaged: {what}; copy or make the set again")


def reads(method: _Method) -> _Method:
    """A method that reads files of `self.path`: any error there, of libraries too, becomes a SluiceError."""

    @wraps(method)
    def read(self: Any, *args: Any) -> Any:
        try:
            return method(self, *args)
        except (SluiceError, WrongNumber):
            raise
        except Exception as e:
            raise damaged(self.path, f"{type(e).__name__}: {e}") from e

    return cast(_Method, read)


def digits(value: Any, n: int = 16) -> str:
    """A hash as files state it: n hexadecimal digits; else ValueError."""
    if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{n}}}", value):
        raise ValueError(f"{value!r} is not a hash of {n} hexadecimal digits")
    return value


def inner(name: Any) -> str:
    """The name of a file in a set, which cannot lie outside it; else ValueError. slu_filelist_name_is_sound in C."""
    if not isinstance(name, str) or not name or name[0] == "/" or ".." in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the set")
    return name


def count(value: Any, limit: int = 1 << 62) -> int:
    """A number of a file: whole, 0 to limit; else ValueError."""
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError(f"{value!r} is not a number from 0 to {limit}")
    return value


def need(module: str, why: str) -> Any:
    """The optional package `module` (or a module of it); a SluiceError that says how to get it."""
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as e:
        # Not an extra of sluice: PyPI has another package of this name.
        raise SluiceError(f"{why} needs the package {package}: pip install {package}") from e


def unzstd(data: bytes, most: int, where: str) -> bytes:
    """One frame of zstd; SluiceError if it has more than `most` bytes."""
    out: bytes
    try:
        from compression import zstd  # Python 3.14 and later

        error: Any = zstd.ZstdError
        read = partial(zstd.ZstdDecompressor().decompress, data, most + 1)
    except ImportError:
        z = need("zstandard", f"{where}: a compressed file")
        error = z.ZstdError
        read = partial(z.ZstdDecompressor().stream_reader(data).read, most + 1)
    try:
        out = read()
    except error as e:
        raise damaged(where, str(e)) from e
    if len(out) > most:
        raise damaged(where, f"it has more than {most} bytes")
    return out


def whole(name: str, value: Any, least: int = 0) -> int:
    """The value as an int; SluiceError if it is not a whole number of at least `least`."""
    try:
        n = operator.index(value)
    except TypeError:
        n = least - 1
    if n < least or isinstance(value, bool):
        raise SluiceError(f"{name} is {value!r}, and must be a whole number of at least {least}")
    return n


def unpickle(read: Callable[..., Any], path: str, kind: str, name: str, pickled: str) -> Any:
    """What read(path) gives; SluiceError if it has taken the place of the one whose attribute `name` was `pickled`."""
    it = read(path)
    found = getattr(it, name)
    if found != pickled:
        raise SluiceError(
            f"{path}: is another {kind} ({found}) than the one that was pickled ({pickled}); put that one back, or "
            "open the new one where it is used"
        )
    return it


def map_file(path: str, n_byte: int | None = None, cure: str = "") -> Array:
    """The file's bytes, mapped; SluiceError if it is not there (`cure` says what helps) or has not n_byte bytes."""
    import numpy as np

    cure = cure or "the set is incomplete: copy it again, or run the same shuffle again, which goes on where it stopped"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as f:  # a FIFO would wait
            status = os.fstat(f.fileno())
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                raise damaged(path, "it is not a regular file")
            if n_byte is not None and size != n_byte:
                raise damaged(path, f"it has {size} bytes, and {n_byte} were written")
            if not size:
                return np.zeros(0, np.uint8)
            return np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except FileNotFoundError as e:
        raise SluiceError(f"{path}: is missing; {cure}") from e
    except (OSError, ValueError) as e:
        raise SluiceError(f"{path}: cannot be read: {getattr(e, 'strerror', e)}") from e


def xxh3(data: Any) -> str | None:
    """XXH3-64 in hexadecimal; None where xxhash is not installed."""
    try:
        import xxhash
    except ImportError:
        return None
    return str(xxhash.xxh3_64_hexdigest(data))


def check_hash(data: Any, want: str, where: str) -> None:
    """Refuse data whose XXH3-64 is not `want`, where xxhash is installed."""
    got = xxh3(data)
    if got not in (None, want):
        raise damaged(where, f"it is not as it was written (its XXH3-64 is {got}, and was {want})")
