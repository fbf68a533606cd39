"""Chat templates: what jinja2 renders as transformers does, and which characters of it a message is.

A message's characters are found in three ways:

- The template marks them with {% generation %}.
- By prefixes: the assistant's turn begins where the dialogue before it ends, rendered with the generation
  prompt, and ends where the dialogue up to it ends. Both must be prefixes of the whole.
- As prefixes, but without rendering them. `_Seen` notes how far into the messages the template has looked.
  If it has not looked past message i when its loop has written message i, then it would have written the same
  for the first i + 1 messages alone. What follows the loop is the same for every prefix if it names nothing
  that the part before assigns (`_tail`), so it is rendered once.

Some templates write a turn in another way once others follow, so a prefix that ends with this turn is none of
the whole: Qwen 3 leaves out its thinking. Then the turn ends where the loop has ended it, if what is written
there is the end of the same turn in the prefix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any, Callable, NamedTuple, NoReturn, SupportsIndex, cast

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context

from ._limits import BITS, OUTPUT, PER_BYTE, STEPS, Exceeded

Message = dict[str, Any]
Span = tuple[int, int]

_ALL = 1 << 62  # the template has looked at all messages, or at their number
_METHODS = frozenset(dir(dict))
_REASONING = ("reasoning_content", "thinking", "reasoning")


class Refused(Exception):
    """A record that has no rendering or no certain spans: the reason's short name, and a sentence."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class Turn(NamedTuple):
    """What the template's loop wrote for a message: text[begin:end]."""

    begin: int
    end: int
    seen: int  # messages that the template had looked at by then
    loop: int


class _Dict:
    """The global `dict` of transformers' templates, without the attributes of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot have the attribute {name!r}")


class _Namespace(Namespace):
    """The global `namespace`; like transformers, it takes no name that begins with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # noqa: B902 - kwargs may have `self`
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, which remembers what it has decided of a type's attribute: else this takes most of the time.

    Products and powers of constants are not computed while a template is compiled, and have limits."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > BITS:
                raise Exceeded(f"makes a number of more than {BITS} bits")
        elif operator == "*":
            n, of = (left, right) if isinstance(left, int) else (right, left)
            if isinstance(n, int) and hasattr(of, "__len__") and n * len(of) > OUTPUT:
                raise Exceeded(f"repeats something {n} times, which has more than {OUTPUT} parts then")
        return super().call_binop(context, operator, left, right)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._safe: dict[tuple[type, str], bool] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        key = type(obj), attr
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute not in _METHODS:  # as the base's, without its exceptions
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)


def _tojson(
    x: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.exceptions.TemplateError(message)


class _Generation(Extension):
    """The tag {% generation %}; `blocks` has the pieces before each, and its length."""

    tags = {"generation"}
    found = False
    blocks: list[tuple[int, int]]
    out: list[str]

    def parse(self, parser: Parser) -> nodes.Node:
        self.found = True
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller: Callable[[], str]) -> str:
        text = caller()
        self.blocks.append((len(self.out), len(text)))
        return text


def _filtered(value: nodes.Node, name: str, *arguments: int) -> nodes.Filter:
    """A call of one of our filters; unlike a call of a function the sandbox does not look at it."""
    return nodes.Filter(cast(nodes.Expr, value), name, [nodes.Const(a) for a in arguments], [], None, None)


def _counted(tree: nodes.Template, env: jinja2.Environment) -> nodes.Template:
    """The tree, where all that can be repeated calls sluice_step: loops, macros, blocks."""
    kinds = nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block
    found: list[Any] = list(tree.find_all(kinds))
    for node in found:
        step = nodes.ExprStmt(_filtered(nodes.Const(None), "sluice_step"))
        node.body = [step.set_lineno(node.lineno).set_environment(env), *node.body]
    return tree


class _Seen(list[Any]):
    """The messages, or those from the offset on. `note` is told how many of all have been looked at.

    Slices to the end are such lists too; whatever else is not written here counts as a look at all of them.
    """

    note: Callable[[int], None]
    offset: int

    @classmethod
    def of(cls, items: Iterable[Any], note: Callable[[int], None], offset: int = 0) -> _Seen:
        seen = cls(items)
        seen.note, seen.offset = note, offset
        return seen

    def __iter__(self) -> Iterator[Any]:
        n = self.offset
        for message in list.__iter__(self):
            n += 1
            self.note(n)
            yield message

    def __bool__(self) -> bool:
        some = list.__len__(self) > 0
        self.note(self.offset + some)
        return some

    def __radd__(self, other: list[Any]) -> list[Any]:  # a list's own + would not ask __iter__
        return other + list(self)

    def __getitem__(self, i: SupportsIndex | slice) -> Any:
        if isinstance(i, slice):
            if (i.start is None or i.start >= 0) and i.stop is None and i.step is None:
                return _Seen.of(list.__getitem__(self, i), self.note, self.offset + (i.start or 0))
            self.note(_ALL)
        else:
            self.note(self.offset + int(i) + 1 if int(i) >= 0 else _ALL)
        return list.__getitem__(self, i)


def _looks_at_all(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def look(self: _Seen, *args: Any) -> Any:
        self.note(_ALL)
        return method(self, *args)

    return look


_COMPARED = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__"}
for _name in set(dir(list)) - set(dir(object)) | _COMPARED:
    if _name not in ("__iter__", "__getitem__", "__class_getitem__"):
        setattr(_Seen, _name, _looks_at_all(_name))


def _tail(tree: nodes.Template, loop: nodes.For) -> frozenset[str] | None:
    """The names on which what follows a loop of the root depends, but for add_generation_prompt; None: on the loop,
    or the prompt matters before its end."""
    if loop not in tree.body:
        return None
    at = tree.body.index(loop) + 1
    before, rest = nodes.Template(tree.body[:at]), nodes.Template(tree.body[at:])
    assigned = {n.name for n in before.find_all(nodes.Name) if n.ctx != "load"}
    assigned |= {n.name for n in before.find_all(nodes.NSRef)} | {n.name for n in before.find_all(nodes.Macro)}
    used = {n.name for n in rest.find_all(nodes.Name) if n.ctx == "load"}
    prompt = any(n.name == "add_generation_prompt" for n in before.find_all(nodes.Name))
    others = nodes.Block, nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends
    if prompt or used & (assigned | {"messages", "self"}) or any(tree.find(other) for other in others):
        return None
    return frozenset(used - {"add_generation_prompt"})


def plain(messages: list[Message]) -> list[Message]:
    """Messages as transformers hands them to a template: without nulls, and reasoning by all its names."""
    out = []
    for message in messages:
        m = {k: v for k, v in message.items() if v is not None}
        reasoning = next((m[k] for k in _REASONING if k in m), None)
        if reasoning is not None:
            m = {"thinking": reasoning, **m, "reasoning_content": reasoning}
        out.append(m)
    return out


class Template:
    """A compiled template. `constants` are variables of all dialogues; `now` is the time it is told."""

    def __init__(self, source: str, name: str, constants: Mapping[str, Any], now: datetime) -> None:
        self.name, self.constants = name, dict(constants)
        env = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        env.filters.update(tojson=_tojson, sluice_begin=self._begin, sluice_end=self._end, sluice_step=self._step)
        env.globals.update(raise_exception=_raise_exception, dict=_Dict(), namespace=_Namespace)
        env.globals["strftime_now"] = now.strftime
        self.generation = cast(_Generation, env.extensions[_Generation.identifier])
        self._out: list[str] = []
        self._seen = 0
        self._written: list[list[int]] = []  # [loop, id of the message, first piece, last, seen], a turn of a loop each
        self.turns: dict[int, Turn] = {}  # of the dialogue that spans() was given last
        self.last_only = False  # --train last: it is no advice then
        self.tails: list[frozenset[str] | None] = []
        self.prompts: dict[tuple[Any, ...], str] = {}
        self.allow(0)
        tree = env.parse(source)
        names = list(tree.find_all(nodes.Name))
        self.variables = {n.name for n in names if n.ctx == "load"} - {n.name for n in names if n.ctx != "load"}
        loops = list(self._loops(tree))
        self.tails = [_tail(tree, loop) for loop in loops]
        for k, loop in enumerate(loops):
            message = nodes.Name(cast(nodes.Name, loop.target).name, "load")
            begin, end = (nodes.ExprStmt(_filtered(message, f"sluice_{f}", k)) for f in ("begin", "end"))
            loop.body = [begin, *loop.body, end]
            for node in begin, end:
                node.set_lineno(loop.lineno).set_environment(env)
        self._code = env.from_string(_counted(tree, env))
        self._plain = env.from_string(_counted(env.parse(source), env))  # tells nothing else: for prefixes
        self._globals = {**env.globals, "tools": None, "documents": None}

    def allow(self, n_byte: int) -> None:
        """Sets the limits of the renderings of a record that has n_byte bytes."""
        self._steps, self._room = (limit + PER_BYTE * n_byte for limit in (STEPS, OUTPUT))

    # ---- what the template tells while it runs

    @staticmethod
    def _loops(node: nodes.Node) -> Iterator[nodes.For]:
        """The outermost loops whose text is written at once: none in a macro, or in another block that is kept."""
        kept = nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock, nodes.Block
        for child in node.iter_child_nodes():
            if isinstance(child, nodes.For):
                if isinstance(child.target, nodes.Name) and not child.recursive:
                    yield child
            elif not isinstance(child, kept):
                yield from Template._loops(child)

    def _begin(self, message: Any, loop: int) -> None:
        self._written.append([loop, id(message), len(self._out), -1, _ALL])

    def _end(self, _message: Any, _loop: int) -> None:
        self._written[-1][3:] = [len(self._out), self._seen]

    @pass_context  # or jinja2 would call it once, while it compiles the template
    def _step(self, _context: Any, _value: None) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise Exceeded(f"takes more than {self._steps} steps")

    def _note(self, n: int) -> None:
        if n > self._seen:
            self._seen = n

    def render(self, messages: list[Message], variables: Mapping[str, Any], prompt: bool = False) -> str:
        code = self._code if isinstance(messages, _Seen) else self._plain
        out: list[str] = []
        self._out = self.generation.out = out
        self.generation.blocks = []
        self._written, self._seen = [], 0
        self._steps_left = self._steps
        given = {**self._globals, **self.constants, **variables, "messages": messages, "add_generation_prompt": prompt}
        try:
            context = code.new_context(given, shared=True)  # or jinja2 would merge the globals each time
            for piece in code.root_render_func(context):
                out.append(piece)  # one by one: while it runs the template tells how many there are
            if sum(map(len, out)) > self._room:
                raise Exceeded(f"writes more than {self._room} characters")
        except MemoryError:
            raise
        except Exception as e:  # templates are programs: they fail in any way
            raise Refused("template-error", f"the template {self.name} fails: {str(e) or type(e).__name__}") from e
        except Exceeded as e:
            raise Refused("template-limit", f"the template {self.name} {e}") from e
        return "".join(out)

    def written(self, messages: list[Message], variables: Mapping[str, Any]) -> tuple[str, dict[int, Turn]]:
        """The rendering, and the characters that a loop has written for each message. No turn for those that it has
        left by `continue` or `break`."""
        text = self.render(cast(list[Message], _Seen.of(messages, self._note)), variables)
        at = [0, *accumulate(map(len, self._out))]  # where each piece begins
        which = {id(m): i for i, m in enumerate(messages)}
        turns: dict[int, Turn] = {}
        ended = [(t[0], which.get(t[1]), Turn(at[t[2]], at[t[3]], t[4], t[0])) for t in self._written if t[3] >= 0]
        writes = {loop for loop, _, turn in ended if turn.end > turn.begin}  # other loops only look
        for loop, i, turn in ended:
            if i is not None and loop in writes and (i not in turns or turn.end > turn.begin):
                turns[i] = turn
        return text, turns

    # ---- what is trained on

    def spans(
        self, messages: list[Message], variables: Mapping[str, Any], wanted: list[int] | None
    ) -> tuple[str, list[Span]]:
        """The rendering, and the characters of the wanted messages, all of the assistant; None: the whole text."""
        messages = plain(messages)
        text, turns = self.written(messages, variables)
        self.turns = turns
        if wanted is None:
            return text, [(0, len(text))] if text else []
        at = [0, *accumulate(map(len, self._out))]
        blocks = [(at[k], at[k] + n) for k, n in self.generation.blocks]
        if self.generation.found and len(wanted) == sum(m.get("role") == "assistant" for m in messages):
            return text, _merged(blocks)
        if not wanted:
            return text, []
        if self.generation.found:
            if any(i not in turns for i in wanted):
                raise Refused("no-turns", f"the template {self.name} does not tell where a message's text is")
            own = [(turns[i].begin, turns[i].end) for i in wanted]
            return text, _merged([b for b in blocks if any(o[0] <= b[0] and b[1] <= o[1] for o in own)])
        dialogue = _Dialogue(self, messages, variables, text, turns)
        return text, _merged([dialogue.span(i) for i in wanted])


class _Dialogue:
    """A rendering whose assistant's turns are found by prefixes."""

    def __init__(
        self,
        template: Template,
        messages: list[Message],
        variables: Mapping[str, Any],
        text: str,
        turns: dict[int, Turn],
    ) -> None:
        self.template, self.messages, self.variables, self.text, self.turns = template, messages, variables, text, turns
        last = turns.get(len(messages) - 1)
        self.trailer = text[last.end :] if last else ""

    def _proven(self, n: int) -> tuple[Turn, tuple[Any, ...]] | None:
        """The last turn of the first n messages, if these alone would be written as the whole begins; and on what the
        rest depends. The loop that writes the turn has not seen message n, but does write the last: so it takes the
        messages one by one, and would end here if there were only these."""
        turn = self.turns.get(n - 1)
        if turn is None or turn.seen > n or len(self.messages) - 1 not in self.turns:
            return None
        tail = self.template.tails[turn.loop]
        if tail is None:
            return None
        return turn, (turn.loop, *[(v, repr(self.variables[v])) for v in tail if v in self.variables])

    def span(self, i: int) -> Span:
        start = self._start(i)
        end = self._end(i, start)
        if end < start:
            raise self._refuse(i, "ends it before it has asked for it")
        return start, end

    def _refuse(self, i: int, what: str) -> Refused:
        later = any(m.get("role") == "assistant" for m in self.messages[i + 1 :])
        advice = "or --train last" if later and not self.template.last_only else "such as those of the package trl"
        return Refused(
            "not-a-prefix",
            f"message {i + 1} of {len(self.messages)}: the template {self.template.name} {what}, so it is not certain "
            f"what the assistant wrote; use a template with {{% generation %}}, {advice}",
        )

    def _prefix(self, messages: list[Message], prompt: bool = False) -> str | None:
        """A rendering of these alone; None where the template fails, as it may with no or few messages."""
        try:
            return self.template.render(messages, self.variables, prompt)
        except Refused as e:
            if e.reason == "template-limit":
                raise
            return None

    def _user(self) -> Message:
        """A message before the assistant's, for templates that want one."""
        return next((m for m in self.messages if m.get("role") == "user"), {"role": "user", "content": "a"})

    def _begun(self, i: int) -> int | None:
        """Where turn i begins after the generation prompt, as this is after another message; None if that is not sure.
        For a dialogue that begins with the assistant: many templates fail without a message, or write another one."""
        turn, before, asked = self.turns.get(i), self._prefix([self._user()]), self._prefix([self._user()], True)
        if turn is None or not before or not asked or len(asked) <= len(before) or not asked.startswith(before):
            return None
        at, n = self.text.find(asked[len(before) :], turn.begin, turn.end), len(asked) - len(before)
        return at + n if at >= 0 and (i > 0 and at == turn.begin or before.startswith(self.text[:at])) else None

    def _start(self, i: int) -> int:
        proven = self._proven(i)
        if proven:
            turn, key = proven
            prompt = self.template.prompts.get(key)
            if prompt is not None and self.text.startswith(prompt, turn.end):
                return turn.end + len(prompt)
        prefix = self._prefix(self.messages[:i], prompt=True)
        if prefix is None or not self.text.startswith(prefix):
            begin = self._begun(i) if prefix is None or i == 0 else None
            if begin is None:
                what = "writes something else where it asks for this message"
                what = what if prefix is not None else "fails for the messages before it alone"
                raise self._refuse(i, what)
            return begin
        if proven and len(prefix) >= proven[0].end:
            self.template.prompts[proven[1]] = prefix[proven[0].end :]
        return len(prefix)

    def _end(self, i: int, start: int) -> int:
        if i == len(self.messages) - 1:
            return len(self.text)
        turn = self.turns.get(i)
        if self._proven(i + 1) and turn:  # the prefix is text[: turn.end] and the trailer
            return turn.end + len(self.trailer) if self.text.startswith(self.trailer, turn.end) else turn.end
        prefix = self._prefix(self.messages[: i + 1])
        if prefix is not None and self.text.startswith(prefix):
            return len(prefix)
        own = self.text[start : turn.end] if turn else ""
        if prefix is None:
            alone = self._prefix([self._user(), self.messages[i]])
            if not own or alone is None or not alone.endswith(own):
                raise self._refuse(i, "fails for the messages up to it alone")
        elif not own or not prefix.startswith(self.text[:start]) or not prefix[start:].endswith(own):
            raise self._refuse(i, "ends it in another way when others follow")
        return start + len(own)


def _merged(spans: list[Span]) -> list[Span]:
    """Ascending spans without empty ones; those that overlap are one."""
    out: list[Span] = []
    for begin, end in sorted(spans):
        if out and begin < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        elif begin < end:
            out.append((begin, end))
    return out
