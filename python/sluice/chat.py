"""sluice-chat: dialogues become text, by a model's chat template, with the spans of it that are trained on.

    sluice-chat -t TOKENIZER chats.jsonl | tokenize -t TOKENIZER/tokenizer.json --spans-field spans …

This process cuts the input into blocks of whole lines, workers make text of them (_dialogue.py), and what they
give is written in order. So the output does not depend on their number.
"""

from __future__ import annotations

import argparse
import bz2
import json
import lzma
import os
import signal
import stat
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, Callable, NoReturn

from . import __version__
from ._base import SluiceError, local, need, printable
from ._limits import LINE, guard

if TYPE_CHECKING:
    from ._dialogue import Block, Job, Result

BLOCK = 1 << 20


class ZstdMember:
    """One frame of zstd by the package zstandard, with the interface of zlib's decompressobj().

    1 KiB of input gives at most 32 MiB: blocks have 128 KiB, and 4 bytes or more are stored of each."""

    def __init__(self) -> None:
        self._of = need("zstandard", "a compressed input").ZstdDecompressor().decompressobj()
        self.unconsumed_tail = b""

    eof = property(lambda self: self._of.eof)
    unused_data = property(lambda self: self._of.unused_data + self.unconsumed_tail)

    def decompress(self, data: bytes, most: int) -> bytes:
        out, size, at = [], 0, 0
        while at < len(data) and size < most and not self._of.eof:
            out.append(self._of.decompress(data[at : at + 1024]))
            size, at = size + len(out[-1]), at + 1024
        self.unconsumed_tail = data[at:]
        return b"".join(out)


def zstd_member() -> Any:
    try:
        from compression import zstd  # Python 3.14 and later

        return zstd.ZstdDecompressor()
    except ImportError:
        return ZstdMember()


COMPRESSED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(31),
    b"\x28\xb5\x2f\xfd": zstd_member,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(memlimit=256 << 20),
    b"BZh": bz2.BZ2Decompressor,
}

# ---- input and output


def decompressed(f: IO[bytes], source: str) -> Iterator[bytes]:
    """The file's bytes, in pieces; those of all members if it is compressed."""
    data = f.read(BLOCK)
    new = next((n for magic, n in COMPRESSED.items() if data.startswith(magic)), None)
    member: Any = None
    while data:
        if new is None:
            yield data
            data = f.read(BLOCK)
            continue
        try:
            member = new() if member is None or member.eof else member
            more = True
            while more:
                out = member.decompress(data, BLOCK)
                yield out
                data = getattr(member, "unconsumed_tail", b"")  # of zlib, and ours; others keep it
                more = not member.eof and bool(data or len(out) >= BLOCK)
        except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as e:
            raise SluiceError(f"{source}: is damaged: {e}") from e
        data = (member.eof and member.unused_data) or f.read(BLOCK >> 4)
    if member is not None and not member.eof:
        raise SluiceError(f"{source}: is compressed, and ends early")


class Progress:
    """Shows on standard error which share of the input's bytes is read, and the time that is left."""

    def __init__(self, paths: list[str], when: str) -> None:
        self.shown = when == "always" or when == "auto" and sys.stderr.isatty()
        self.file: IO[bytes] | None = None  # that is read
        self.before, self.began = 0, time.monotonic()  # bytes of the files before
        self.next, self.drawn = self.began, False
        try:
            files = [os.fstat(0) if path == "-" else os.stat(path) for path in paths]
            self.all = sum(f.st_size for f in files) if all(stat.S_ISREG(f.st_mode) for f in files) else 0
        except OSError:
            self.all = 0  # reading it says what is wrong

    def opened(self, file: IO[bytes] | None) -> None:
        """Another file is read; None: none any more."""
        if self.shown and self.file is not None:
            self.before += self._at()
        self.file = file

    def _at(self) -> int:
        with suppress(OSError, ValueError):
            return self.file.tell() if self.file else 0
        return 0

    def draw(self, n: int) -> None:
        """n: dialogues that are read."""
        now = time.monotonic()
        if not self.shown or now < self.next:
            return
        done, t, share = self.before + self._at(), now - self.began, ""
        if 0 < done <= self.all:
            left = int(t * (self.all - done) / done + 0.5)
            hours = f"{left // 3600}:{left // 60 % 60:02}" if left >= 3600 else f"{left // 60}"
            share = f"{100 * done / self.all:.0f} %, " + (f"{hours}:{left % 60:02} left, " if t >= 2 else "")
        print(f"\rsluice-chat: {share}{n} dialogues, {t:.0f} s\33[K", end="", file=sys.stderr, flush=True)
        self.next, self.drawn = now + 0.2, True

    def erase(self) -> None:
        if self.drawn:
            print("\r\33[K" if sys.stderr.isatty() else "\n", end="", file=sys.stderr, flush=True)
        self.drawn = False


def blocks(paths: list[str], progress: Progress) -> Iterator[Block]:
    from ._dialogue import Block

    for path in paths:
        source = "standard input" if path == "-" else path
        begun: list[bytes] = []  # a line without its end
        n_begun, cut, line, byte = 0, False, 0, 0
        try:
            with sys.stdin.buffer if path == "-" else open(path, "rb") as f:
                progress.opened(f)
                for data in decompressed(f, source):
                    end = data.find(b"\n") + 1 if cut else data.rfind(b"\n") + 1
                    if cut:  # its beginning was given to a worker
                        byte, line, cut = byte + (end or len(data)), line + bool(end), not end
                        data = data[end:] if end else b""
                        end = data.rfind(b"\n") + 1
                    if end:
                        lines = b"".join([*begun, data[:end]])
                        begun, n_begun, data = [], 0, data[end:]
                        if not lines.isspace():
                            yield Block(source, line, byte, lines)
                        line, byte = line + lines.count(b"\n"), byte + len(lines)
                    begun.append(data)
                    n_begun += len(data)
                    if n_begun > LINE:
                        start, begun = b"".join(begun[:1]), []
                        yield Block(source, line, byte, start, True)
                        n_begun, byte, cut = 0, byte + n_begun, True
                progress.opened(None)
        except OSError as e:
            raise SluiceError(f"{source}: cannot be read: {e.strerror}") from e
        lines, begun = b"".join(begun), []
        if lines:
            yield Block(source, line, byte, lines)


class Output:
    """A file that has its name when it is complete, or standard output."""

    def __init__(self, path: str | None) -> None:
        self.path, self.temporary = path, ""
        self.file: IO[bytes] = sys.stdout.buffer
        if path and not (os.path.exists(path) and not os.path.isfile(path)):
            self.temporary = f"{path}.{os.getpid()}.tmp"
        try:
            if path:
                self.file = open(self.temporary or path, "wb")  # noqa: SIM115
        except OSError as e:
            raise SluiceError(f"{path}: cannot be written: {e.strerror}") from e

    def write(self, lines: list[bytes]) -> None:
        for line in lines:
            self.file.write(line)
            self.file.write(b"\n")

    def close(self) -> None:
        self.file.flush()
        if self.path:
            self.file.close()
        if self.temporary:
            os.replace(self.temporary, str(self.path))

    def abort(self) -> None:
        with suppress(OSError):
            if self.temporary:
                os.unlink(self.temporary)
            elif not self.path:  # what reads a pipe must not take this for a whole output
                self.write([b"sluice-chat failed: the lines before are not all"])
                self.file.flush()


# ---- the run


class Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, printable(f"sluice-chat: {message}; see sluice-chat --help") + "\n")


class Help(argparse.HelpFormatter):
    """Options as the other programs show them, from whose help completion is made."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=98)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = "" if action.nargs == 0 else f"={action.metavar or action.dest.upper()}"
        return "    " * (len(action.option_strings) == 1) + ", ".join(action.option_strings) + value


def parsed(argv: list[str] | None) -> argparse.Namespace:
    p = Arguments(
        prog="sluice-chat", usage="%(prog)s -t TOKENIZER [OPTION ...] [FILE ...]", add_help=False, formatter_class=Help,
        description="Turns dialogues (JSON lines: messages, ShareGPT, Alpaca, prompt and completion) into text by a "
        "model's chat template, with the spans of it that are trained on, for tokenize --spans-field spans.",
    )  # fmt: skip
    add = p.add_argument
    add("files", nargs="*", metavar="FILE", help="JSON lines, plain or compressed; -, the default: standard input")
    add("-t", "--tokenizer", required=True, help="the tokenizer's folder or tokenizer_config.json, or a .jinja file")
    add("--template", metavar="FILE|NAME", help="this template instead, or the tokenizer's template of this name")
    add("--train", choices=["all", "assistant", "last"], default="assistant", metavar="all|assistant|last",
        help="train on everything, on the assistant's messages (default), or on the last of these")  # fmt: skip
    add("--content", choices=["auto", "string", "parts"], default="auto", metavar="auto|string|parts",
        help="give the template contents in the form that it takes (default), or as strings, or as lists")  # fmt: skip
    add("--role", action="append", default=[], metavar="FROM=TO",
        help="give messages of a role another, as developer=system")  # fmt: skip
    add("--field", metavar="NAME", help="the field with the messages; default: messages, or conversations")
    add("--keep", metavar="NAMES", default="", help="fields of the record to write too, with commas between")
    add("--prompt-hash", metavar="NAME", help="write a hash of all before the last answer to this field")
    add("--set", action="append", default=[], metavar="NAME=VALUE",
        help="a variable of the template, as JSON or a plain string")  # fmt: skip
    add("--date", metavar="YYYY-MM-DD", help="the day that the template is told; default: today")
    add("--on-error", choices=["fail", "skip"], default="fail", metavar="fail|skip",
        help="at a bad record: stop (default), or go on without it")  # fmt: skip
    add("--rejects", metavar="FILE", help="write bad records there, as JSON lines; implies --on-error skip")
    add("-o", "--output", metavar="FILE", help="write there instead of standard output")
    add("-j", "--jobs", type=int, default=0, metavar="N", help="processes; 0, the default: one a processor")
    add("--progress", choices=["auto", "always", "never"], default="auto", metavar="auto|always|never",
        help="show progress on standard error: auto, the default, only on a terminal")  # fmt: skip
    add("-q", "--quiet", action="store_true", help="no warnings, and no line with the counts")
    add("-V", "--version", action="version", version=f"sluice-chat {__version__}", help="print the version")
    add("-h", "--help", action="help", help="print this")
    args = p.parse_args(argv)
    for name in filter(None, (*args.files, args.tokenizer, args.template, args.rejects, args.output)):
        try:
            local(name)
        except SluiceError as e:
            p.error(str(e))
    args.keep = [name for name in args.keep.split(",") if name]
    if args.jobs < 0:
        p.error("-j wants a number of processes, or 0")
    if {"text", "spans", "from", "by", "needs"} & {*args.keep, args.prompt_hash}:
        p.error("--keep and --prompt-hash cannot have text, spans, from, by or needs, which are written anyway")
    if args.prompt_hash in args.keep:
        p.error(f"--keep and --prompt-hash both have {args.prompt_hash}; choose another name for the hash")
    roles = [pair.partition("=") for pair in args.role]
    if not all(all(role) for role in roles):
        p.error(f"--role wants FROM=TO, not {args.role[[all(role) for role in roles].index(False)]}")
    args.role = {role[0]: role[2] for role in roles}
    if args.date is not None:
        try:
            args.date = datetime.strptime(args.date, "%Y-%m-%d")
        except ValueError:
            p.error(f"--date wants YYYY-MM-DD, not {args.date}")
    variables: dict[str, Any] = {}
    for pair in args.set:
        name, equals, value = pair.partition("=")
        if not equals or name in ("messages", "add_generation_prompt"):
            p.error(f"--set wants NAME=VALUE, not {pair}")
        try:
            variables[name] = json.loads(value)
        except ValueError:
            variables[name] = value
    args.set = variables
    return args


def whole(r: Result, again: Callable[[Block], Result]) -> Iterator[Result]:
    """All results of a block, of which r is the first."""
    yield r
    while r.rest:
        r = again(r.rest)
        yield r


def results(job: Job, given: Iterator[Block], n: int) -> Iterator[Result]:
    """What the workers make of the blocks, in order."""
    from . import _dialogue

    some = list(islice(given, 2))
    given = chain(some, given)
    if n == 1 or len(some) < 2:
        worker = _dialogue.Worker(job)
        for block in given:
            yield from whole(worker(block), worker)
        return
    _dialogue.compiled(job)  # its errors before there are workers
    waiting: deque[Future[Result]] = deque()
    pool = ProcessPoolExecutor(n, initializer=_dialogue.start, initargs=(job,))

    def again(block: Block) -> Result:
        return pool.submit(_dialogue.work, block).result()

    try:
        for block in given:
            waiting.append(pool.submit(_dialogue.work, block))
            if len(waiting) > 2 * n:
                yield from whole(waiting.popleft().result(), again)
        while waiting:
            yield from whole(waiting.popleft().result(), again)
    except BrokenProcessPool as e:
        raise SluiceError("a worker was killed; use a smaller -j if memory was short") from e
    finally:
        pool.shutdown(cancel_futures=True)


def run(args: argparse.Namespace) -> None:
    began = time.monotonic()
    version = need("jinja2", "sluice-chat").__version__
    if [int(n) for n in version.split(".")[:3]] < [3, 1, 6]:  # templates are programs of strangers
        raise SluiceError(f"jinja2 {version} has a sandbox with known holes; pip install -U jinja2, for 3.1.6 or later")
    from ._dialogue import Result, prepared

    guard()
    job, warning = prepared(args)
    if warning and not args.quiet:
        print(printable(f"sluice-chat: {warning}"), file=sys.stderr)
    for out in filter(None, (args.output, args.rejects)):
        for path in [*args.files, args.tokenizer, args.template or "", {args.output: args.rejects}.get(out) or ""]:
            if out == path or (os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path)):
                raise SluiceError(f"{out}: is an output, and the run reads or writes it too; choose another name")
    total, outputs = Result(), [Output(args.output)]
    progress = Progress(args.files or ["-"], "never" if args.quiet and args.progress == "auto" else args.progress)
    try:
        if args.rejects:
            outputs.append(Output(args.rejects))
        for r in results(job, blocks(args.files or ["-"], progress), args.jobs or len(os.sched_getaffinity(0))):
            outputs[0].write(r.text)
            if args.rejects:
                outputs[1].write(r.rejects)
            total.add(r)
            progress.draw(total.n_in)
            if r.error:
                raise SluiceError(r.error)
        if not total.n_out:
            for output in outputs[1:]:  # why none was written
                output.close()
                outputs.remove(output)
            raise SluiceError(f"no dialogue was written; {total.words()}")
        for output in outputs:
            output.close()
    except BaseException:
        progress.erase()
        for output in outputs:
            output.abort()
        raise
    progress.erase()
    if not args.quiet:
        for note in total.said(args.train):
            print(f"sluice-chat: {note}", file=sys.stderr)
        print(f"sluice-chat: {total.words()}; {time.monotonic() - began:.1f} s", file=sys.stderr)


def stop(number: int, _frame: Any) -> NoReturn:
    raise SluiceError(f"stopped by {signal.Signals(number).name}")


def main(argv: list[str] | None = None) -> int:
    args = parsed(argv)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # Python's handlers wait for a read that begins just after the signal: a clock interrupts reads.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        run(args)
    except (SluiceError, OSError) as e:
        print(printable(f"sluice-chat: {e}"), file=sys.stderr)
        return 1
    except MemoryError:
        print("sluice-chat: there is not enough memory; use a smaller -j", file=sys.stderr)
        return 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
