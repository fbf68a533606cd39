"""What the modules share: the error, optional packages, hashes, files mapped into memory."""

from __future__ import annotations

import importlib
import mmap
import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:  # sluice-chat, which takes the rest of this module, needs no NumPy
    Array = Any


class SluiceError(Exception):
    """What is wrong, where, and what helps."""


def damaged(where: str, what: str) -> SluiceError:
    return SluiceError(f"{where}: damaged: {what}; copy or make the set again")


def need(module: str, why: str) -> Any:
    """The optional package `module` (or a module of it); a SluiceError that says how to get it."""
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as e:
        # Not an extra of sluice: PyPI has another package of this name.
        raise SluiceError(f"{why} needs the package {package}: pip install {package}") from e


def unzstd(data: Any, n_byte: int | None, where: str) -> bytes:
    """One frame of zstd, which must hold n_byte bytes where that is known."""
    try:
        from compression import zstd  # Python 3.14 and later

        out: bytes = zstd.decompress(data)
    except ImportError:
        z = need("zstandard", f"{where}: a compressed file")
        try:
            out = z.ZstdDecompressor().decompress(data)
        except z.ZstdError as e:
            raise damaged(where, str(e)) from e
    if n_byte is not None and len(out) != n_byte:
        raise damaged(where, f"it has {len(out)} bytes where {n_byte} must be")
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
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if n_byte is not None and size != n_byte:
                raise damaged(path, f"it has {size} bytes, and {n_byte} were written")
            if not size:
                return np.zeros(0, np.uint8)
            return np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except FileNotFoundError as e:
        raise SluiceError(f"{path}: is missing; {cure}") from e
    except OSError as e:
        raise SluiceError(f"{path}: cannot be read: {e.strerror}") from e


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
