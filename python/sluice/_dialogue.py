"""Records become text and spans: what sluice-chat does with a block of lines."""

from __future__ import annotations

import base64
import hashlib
import json
import multiprocessing
import os
import re
import shlex
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from json.encoder import encode_basestring as quoted
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jinja2 import TemplateSyntaxError

from . import __version__
from ._base import SluiceError
from ._content import MEDIA, REASONING, SWITCHES, Content, is_trained
from ._limits import LINE, OUTPUT, SECONDS_A_MESSAGE, Exceeded, guard, more_time, timed
from ._template import Message, Refused, Template

ROLES = {"human": "user", "gpt": "assistant", "observation": "tool"}
ROLES.update((r, r) for r in ("system", "user", "assistant", "tool"))
NEEDS_BYTE = 80
BY_BYTE = 256  # of options; longer ones are given as a hash
REJECT_TEXT_BYTE = 64 << 10  # longer lines are in base64 alone, as in tokenize
_TOKEN = re.compile(r'<[|\uff5c][^\s<>"\\|\uff5c]+[|\uff5c]>')  # as in most templates
_ARRAY = re.compile(rb"\s*\[")
SPECIAL = {f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")}


class Block(NamedTuple):
    """Whole lines of a source, and the place of the first."""

    source: str
    line: int
    byte: int
    data: bytes
    cut: bool = False  # it is the beginning of a line that is too long


@dataclass
class Result:
    """What a block has become. `error`: the record that ends the run, after which nothing was done. `rest`: the lines
    that are left, as those before have become long."""

    text: list[bytes] = field(default_factory=list)
    rejects: list[bytes] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)  # what was given or written otherwise, in how many messages
    n_in: int = 0
    n_out: int = 0
    n_char: int = 0
    n_trained: int = 0
    error: str = ""
    rest: Block | None = None

    def add(self, other: Result) -> None:
        """The other's counts too."""
        self.dropped += other.dropped
        self.notes += other.notes
        for n in ("n_in", "n_out", "n_char", "n_trained"):
            setattr(self, n, getattr(self, n) + getattr(other, n))

    def said(self, train: str) -> list[str]:
        """What the text has otherwise than the records, in a line each."""
        out = []
        for note, n in sorted(self.notes.items()):
            if note == REASONING:
                help = "" if train == "last" else "; --train last trains only on the last answer, which mostly keeps it"
                note = f"the template leaves out the reasoning, of messages before the last question or of all{help}"
            out.append(f"{n} times: {note}" if n != 1 else f"once: {note}")
        return out

    def words(self) -> str:
        share = 100 * self.n_trained / max(self.n_char, 1)
        text = f"{_count(self.n_in)} in; {_count(self.n_out)}, {self.n_char} characters ({share:.1f} % trained on) out"
        reasons = [f"{reason} {_count(n)}" for reason, n in sorted(self.dropped.items())]
        return text + ("; dropped: " + ", ".join(reasons) if reasons else "")


def _count(n: int) -> str:
    return f"{n} dialogue{'' if n == 1 else 's'}"


@dataclass(frozen=True)
class Job:
    """What the workers are told: templates by name, and options."""

    name: str
    templates: Mapping[str, str]
    constants: Mapping[str, Any]
    given: Mapping[str, Any]  # those of --set
    now: datetime
    train: str
    field: str | None
    keep: list[str]
    skip: bool
    content: str
    roles: Mapping[str, str]
    prompt_hash: str | None


def load(path: str, template: str | None) -> tuple[dict[str, str], dict[str, str | None]]:
    """The templates by name, and the special tokens (None: it has none of this name).

    They are those of a tokenizer's folder, of its tokenizer_config.json or of a template file; `template` is a file, or
    one of the names, to be used instead."""
    where = Path(path)
    tokens: dict[str, str | None] = {}
    templates: Any
    try:
        if where.is_dir() or where.suffix == ".json":
            folder = where if where.is_dir() else where.parent
            config = json.loads((folder / "tokenizer_config.json" if where.is_dir() else where).read_text("utf-8"))
            legacy = folder / "special_tokens_map.json"
            if "added_tokens_decoder" not in config and legacy.exists():
                config.update(json.loads(legacy.read_text("utf-8")))
            for key, token in config.items():
                token = token.get("content") if isinstance(token, dict) else token
                if key.endswith("_token") and (token is None or isinstance(token, str)):
                    tokens[key] = token
            own = config.get("chat_template") or {}
            templates = {"default": own} if isinstance(own, str) else own
            if isinstance(templates, list):
                templates = {t["name"]: t["template"] for t in templates}
            files = [folder / "chat_template.jinja", *sorted(folder.glob("additional_chat_templates/*.jinja"))]
            named = {f.stem if f.parent != folder else "default": f.read_text("utf-8") for f in files if f.exists()}
            templates = named or templates
        else:
            templates = {"default": where.read_text("utf-8")}
        if template is not None:
            templates = {"default": templates[template] if template in templates else Path(template).read_text("utf-8")}
    except OSError as e:
        raise SluiceError(f"{e.filename}: cannot be read: {e.strerror}") from e
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise SluiceError(f"{path}: is no tokenizer_config.json or template: {e}") from e
    if not templates:
        raise SluiceError(f"{path}: has no chat template; name one with --template")
    return templates, tokens


def prepared(args: Any) -> tuple[Job, str]:
    """The job of the options, and a warning or nothing."""
    templates, tokens = load(args.tokenizer, args.template)
    name = os.path.basename(args.template or os.path.abspath(args.tokenizer))
    given = {**tokens, **args.set}
    constants = {name: value for name, value in given.items() if value is not None}
    job = Job(name, templates, constants, args.set, args.date or datetime.now(), args.train, args.field,
              args.keep, args.on_error == "skip" or args.rejects is not None,
              args.content, args.role, args.prompt_hash)  # fmt: skip
    names = set().union(*(t.variables for t in compiled(job).values()))
    missing = sorted(names & SPECIAL - set(given))
    if missing:  # transformers has defaults of its own for some tokenizers
        raise SluiceError(
            f"{name}: the template names {' and '.join(missing)}, which {args.tokenizer} does not have; use "
            f"--set {missing[0]}=TOKEN, or null for none, or give the tokenizer's folder with -t"
        )
    dated = "strftime_now" in names and not args.date
    return job, f"{name}: the text can depend on the date, {job.now:%Y-%m-%d}; name one with --date" if dated else ""


def compiled(job: Job) -> dict[str, Template]:
    out = {}
    for name, source in job.templates.items():
        try:
            with timed():
                out[name] = Template(source, job.name, job.constants, job.now)
                out[name].last_only = job.train == "last"
        except TemplateSyntaxError as e:
            raise SluiceError(f"{job.name}: line {e.lineno} of the template: {e.message}") from e
        except (Exception, Exceeded) as e:  # of Python's own compiler too
            what = str(e) or type(e).__name__
            raise SluiceError(f"{job.name}: the template cannot be compiled: {what}; use another one") from e
    return out


# ---- records


def chat(record: dict[str, Any], name: str | None, notes: Counter[str]) -> tuple[list[Message], int]:
    """A record's messages, and the first of them that may be trained on."""
    name = name or next((n for n in ("messages", "conversations") if n in record), None)
    first = 0
    if name is not None:
        messages = record.get(name)
    elif "prompt" in record and "completion" in record:
        asked, answer = record["prompt"], record["completion"]
        asked = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        answer = [{"role": "assistant", "content": answer}] if isinstance(answer, str) else answer
        if not isinstance(asked, list) or not isinstance(answer, list):
            raise Refused("not-a-dialogue", "prompt and completion must be strings, or lists of messages")
        messages, first = asked + answer, len(asked)
    elif "instruction" in record and "output" in record:
        asked = [record[k] for k in ("instruction", "input") if record.get(k)]
        texts = [*(text for pair in record.get("history") or [] for text in pair), *asked, record["output"]]
        if not all(isinstance(text, str) for text in texts):
            raise Refused("not-a-dialogue", "instruction, input, output and history must have strings")
        texts[-1 - len(asked) : -1] = ["\n".join(asked)]
        messages = [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]
    else:
        raise Refused("not-a-dialogue", "has no messages, conversations, prompt and completion, instruction and output")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise Refused("not-a-dialogue", f"{name or 'the dialogue'} must be a list of messages, and not empty")
    if "from" in messages[0]:
        for m in messages:
            if m.get("from") not in ROLES or m.get("value") is None:
                raise Refused("not-a-dialogue", f'"from" must be one of {", ".join(ROLES)}, with a "value"')
        own = ("from", "value", "role", "content")
        messages = [{"role": ROLES[m["from"]], "content": m["value"],
                     **{k: v for k, v in m.items() if k not in own}} for m in messages]  # fmt: skip
    for fields in (record, *messages):
        if not fields.keys().isdisjoint(MEDIA):
            named = next((k for k in MEDIA if fields.get(k)), None)
            if named:
                raise Refused("not-text", f"has {named}, and only text can be rendered; leave the field out")
    system = record.get("system")
    said = next((m.get("content") for m in messages if m.get("role") == "system"), None)
    if not isinstance(system, str) or not system or said == system:
        return messages, first
    if name == "messages":
        notes['the field "system" beside "messages" is not read; make it the first message'] += 1
        return messages, first
    if said is not None:
        raise Refused("not-a-dialogue", 'the field "system" and the message of this role differ; leave one of them out')
    return [{"role": "system", "content": system}, *messages], first and first + 1


def variables(record: dict[str, Any]) -> dict[str, Any]:
    """The template's variables of this record: tools, documents, and those of chat_template_kwargs."""
    given = dict(record.get("chat_template_kwargs") or {})
    for name in ("tools", "documents"):
        value = record.get(name)
        if isinstance(value, str) and value:
            value = json.loads(value)
        if value:
            given[name] = value
        if not isinstance(given.get(name, []), list) or not all(isinstance(v, dict) for v in given.get(name, [])):
            raise Refused("not-a-dialogue", f"{name} must be a list of objects, or that as JSON in a string")
    if "messages" in given or "add_generation_prompt" in given:
        raise Refused("not-a-dialogue", "chat_template_kwargs cannot have messages or add_generation_prompt")
    return given


def wanted(messages: list[Message], first: int, train: str) -> list[int] | None:
    """The assistant's messages that are trained on; None: the whole text."""
    said = [m.keys().isdisjoint(SWITCHES) or is_trained(m, f"message {i + 1} of {len(messages)}")
            for i, m in enumerate(messages)]  # fmt: skip
    if train == "all":
        if not all(said):
            where = f"message {said.index(False) + 1} of {len(messages)}"
            raise Refused("not-a-dialogue", f"{where}: is not to be trained on, and --train all trains on everything")
        return None
    own = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    own = own[-1:] if train == "last" else own
    return [i for i in own if i >= first and said[i]]


def prompt_hash(messages: list[Message], given: Mapping[str, Any]) -> str:
    """A hash of all that is before the last answer: messages without the switches of training, tools, documents.
    A list of text parts has that of the string."""
    own = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    before = messages[: own[-1]] if own else messages
    plain = [{k: v for k, v in m.items() if v is not None and k not in SWITCHES} for m in before]
    for m in plain:
        parts = m.get("content")
        texts: list[Any] = []
        if isinstance(parts, list):
            texts = [p.get("text") if isinstance(p, dict) else p for p in parts]
        if texts and all(isinstance(text, str) for text in texts):
            m["content"] = "".join(texts)
    text = json.dumps([plain, given], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def by(job: Job, name: str, dated: bool) -> str:
    """The step that made a record: the program, its version, and what of its options decides the text."""
    given: list[tuple[str, Any]] = [
        ("template", hashlib.sha256(job.templates[name].encode()).hexdigest()[:16]), ("train", job.train),
        ("content", job.content if job.content != "auto" else None), ("field", job.field),
        *(("role", f"{a}={b}") for a, b in sorted(job.roles.items())),
        *(("set", f"{k}={json.dumps(v, ensure_ascii=False, sort_keys=True)}") for k, v in sorted(job.given.items())),
        ("date", f"{job.now:%Y-%m-%d}" if dated else None),
    ]  # fmt: skip
    words = [f"--{option}={value}" for option, value in given if value is not None]
    text = " ".join(shlex.quote(word) for word in words)
    if len(text.encode()) > BY_BYTE:
        text = f"{words[0]} --options={hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return f"sluice-chat {__version__} {text}"


def needs(template: str, constants: Mapping[str, Any]) -> str:
    """What tokenize must do with a text of this template (formats/text/needs.h): in at most 80 bytes, the hash of the
    template, the texts of BOS and EOS, and tokens that the template has itself, as far as they fit."""
    out = f"chat1 {hashlib.sha256(template.encode()).hexdigest()[:8]}"
    for name in ("bos_token", "eos_token"):
        token = constants.get(name)
        is_fit = isinstance(token, str) and token and not any(c.isspace() or c in '"\\' for c in token)
        longer = f"{out} {token if is_fit else '-'}"
        out = longer if len(longer.encode()) <= NEEDS_BYTE else f"{out} -"
    for token in dict.fromkeys(_TOKEN.findall(template)):
        if len(f"{out} {token}".encode()) <= NEEDS_BYTE and token not in out.split(" "):
            out = f"{out} {token}"
    return out


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class Worker:
    def __init__(self, job: Job) -> None:
        self.job, self.templates, self.contents = job, compiled(job), dict[str, Content]()
        self.needs = {name: needs(source, job.constants) for name, source in job.templates.items()}
        self.by = {name: by(job, name, "strftime_now" in t.variables) for name, t in self.templates.items()}
        self._parse = json.JSONDecoder(parse_constant=_no_constant).decode
        self._dump = json.JSONEncoder(ensure_ascii=False).encode
        self._begin = {name: f'{{"needs": {self._dump(needs)}, "text": ' for name, needs in self.needs.items()}
        self._end = {name: f', "by": {self._dump(by)}, "from": ' for name, by in self.by.items()}

    def _record(self, line: bytes, cut: bool, where: str, into: Result) -> None:
        if _ARRAY.match(line):  # not parsed: all records of a file can be in it
            raise Refused("not-an-object", "a JSON array, and a line must have one record; write its elements as lines")
        if cut:
            raise Refused("too-long", f"a record of more than {LINE} bytes")
        try:
            record = self._parse(line.decode())
        except UnicodeDecodeError as e:
            raise Refused("invalid-utf8", f"byte {e.start}: not UTF-8") from e
        except (ValueError, RecursionError) as e:
            raise Refused("invalid-json", f"not valid JSON: {e}") from e
        if not isinstance(record, dict):
            raise Refused("not-an-object", "not a JSON object")
        notes: Counter[str] = Counter()
        try:
            messages, first = chat(record, self.job.field, notes)
            given = variables(record)
            if self.job.roles:
                messages = [{**m, "role": self.job.roles.get(str(m.get("role")), m.get("role"))} for m in messages]
            answers = wanted(messages, first, self.job.train)
        except (TypeError, ValueError) as e:
            raise Refused("not-a-dialogue", f"fields are not as a dialogue has them: {e}") from e
        name = "tool_use" if "tools" in given and "tool_use" in self.templates else "default"
        if name not in self.templates:
            raise Refused("no-template", f"{self.job.name} has the templates {', '.join(self.templates)}; choose one")
        template = self.templates[name]
        if name not in self.contents:
            self.contents[name] = Content(template, self.job.content)
        content = self.contents[name]
        template.allow(len(line))
        more_time(SECONDS_A_MESSAGE * len(messages))
        as_given, messages = messages, content.given(messages, notes)
        text, spans = template.spans(messages, given, answers)
        content.check(messages, given, text, template.turns, notes)
        if notes:
            into.notes += notes
        if not spans:
            into.dropped["nothing-to-train-on"] += 1
            return
        more = {k: record[k] for k in self.job.keep if k in record}
        if self.job.prompt_hash:
            more[self.job.prompt_hash] = prompt_hash(as_given, given)
        middle = ", ".join([f"[{span[0]}, {span[1]}]" for span in spans])
        fields = f", {self._dump(more)[1:-1]}" if more else ""
        begin, end = self._begin[name], self._end[name]
        out = f'{begin}{quoted(text)}, "spans": [{middle}]{fields}{end}{quoted(where)}}}'
        try:
            into.text.append(out.encode())
        except UnicodeEncodeError as e:
            raise Refused("lone-surrogate", "half of a surrogate pair, which is no character") from e
        into.n_out += 1
        into.n_char += len(text)
        into.n_trained += sum(end - begin for begin, end in spans)

    def __call__(self, block: Block) -> Result:
        out = Result()
        byte = block.byte
        for number, line in enumerate(block.data.split(b"\n"), block.line):
            if out.n_char > OUTPUT:
                out.rest = Block(block.source, number, byte, block.data[byte - block.byte :])
                break
            size = len(line)
            if not number and line.startswith(b"\xef\xbb\xbf"):
                line = line[3:]
            if line.strip():
                out.n_in += 1
                try:
                    try:
                        with timed():
                            self._record(line, block.cut, f"{block.source}:{number + 1}", out)
                    except Exceeded as e:
                        raise Refused("template-limit", f"the record {e}") from e
                except Refused as e:
                    if not self.job.skip:
                        out.error = f"{block.source}:{number + 1}: {e}; use --on-error skip to go on without it"
                        break
                    out.dropped[e.reason] += 1
                    reject = {"source": block.source, "document": byte, "line": number + 1, "byte": None}
                    reject.update(reason=e.reason, why=str(e), raw=base64.b64encode(line).decode())
                    if len(line) <= REJECT_TEXT_BYTE and not block.cut:
                        with suppress(UnicodeDecodeError):
                            reject["text"] = line.decode()
                    out.rejects.append(json.dumps(reject, ensure_ascii=False).encode())
            byte += size + 1
        return out


_worker: Worker


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def start(job: Job) -> None:
    """A worker process begins; it ends when its parent does, however that ends."""
    global _worker
    guard()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = Worker(job)


def work(block: Block) -> Result:
    return _worker(block)
