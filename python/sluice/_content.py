"""What a template does with the content of messages: how content is given to it, and whether the text has all of it.

Templates differ. One prints lists of parts as Python data, another loses strings, a third fails at arguments that are
a JSON string. `Content` renders small dialogues once a template (the probe) to find what it takes, gives messages in
that form, and counts what it has changed. After a dialogue is rendered, `check` looks for the content of each message.

Short contents ("a", "1") are found by chance, so they count as found only where the probe says that content begins.
Elsewhere the dialogue is rendered once more, with a mark behind each of them, and the marks are looked for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ._limits import Exceeded
from ._template import _REASONING, Message, Refused, Template, Turn, plain

SWITCHES = ("weight", "train", "training", "loss")
MEDIA = ("image", "images", "audio", "audios", "video", "videos")  # fields of records and messages
SHORT = 16  # characters; longer contents are not found by chance
_TEXT = ("text", "input_text", "output_text")  # kinds of parts: the second and third are those of OpenAI's Responses
_THOUGHT = re.compile(r"</(?:\w+:)?think(?:ing)?>|\[/THINK\]|◁/think▷")
_KEY = re.compile(r"""['"](?:text|type)['"]""")  # of a part that is written as data
_MARK = "zq7sluice"
REASONING = "reasoning is left out"


def is_trained(message: Message, where: str) -> bool:
    """What weight, train, training and loss say of a message."""
    said: dict[str, bool] = {}
    for name in SWITCHES:
        value = message.get(name)
        if value is None:
            continue
        if not isinstance(value, bool) and (name != "weight" or type(value) not in (int, float) or value not in (0, 1)):
            want = "0, 1, true or false" if name == "weight" else "true or false"
            raise Refused("not-a-dialogue", f"{where}: {name} is {json.dumps(value)[:40]}, and must be {want}")
        said[name] = bool(value)
    if len(set(said.values())) > 1:
        raise Refused("not-a-dialogue", f"{where}: {' and '.join(said)} differ; give one of them")
    return all(said.values())


def _parts(content: list[Any], where: str) -> list[dict[str, Any]]:
    """The parts of a content, all of them text."""
    out = []
    for part in content:
        part = {"type": "text", "text": part} if isinstance(part, str) else part
        kind = part.get("type", "text" if "text" in part else None) if isinstance(part, dict) else None
        if kind not in _TEXT or not isinstance(part.get("text"), str):
            named = f" of the kind {json.dumps(kind)}" if isinstance(kind, str) and kind not in _TEXT else ""
            raise Refused("not-text", f"{where}: a part{named} is no text, and only text can be rendered; leave it out")
        if any(part.get(name) is not None for name in SWITCHES):
            named = next(name for name in SWITCHES if part.get(name) is not None)
            raise Refused("not-a-dialogue", f"{where}: {named} is in a part, and must be in the message")
        out.append({**part, "type": "text"})
    return out


def _calls(message: Message) -> Iterator[dict[str, Any]]:
    """The functions that a message calls, each with name and arguments."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield call["function"] if isinstance(call.get("function"), dict) else call
    if isinstance(message.get("function_call"), dict):  # the older form of OpenAI's
        yield message["function_call"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _strings(v)


def _escaped(text: str) -> tuple[str, ...]:
    """The text in JSON, in JSON of ASCII, and in a JSON string within JSON."""
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    return once, json.dumps(text)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1]


def _find(text: str, content: str, begin: int, end: int) -> int:
    at = text.find(content, begin, end)
    for form in _escaped(content) if at < 0 else ():
        at = text.find(form, begin, end)
        if at >= 0:
            break
    return at


def _words_in_order(text: str, content: str) -> bool:
    at = 0
    for word in re.findall(r"\w+", content):
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


def _texts(message: Message) -> list[str]:
    """The texts of a message's content."""
    content = message.get("content")
    if isinstance(content, list):
        content = [part.get("text", part) if isinstance(part, dict) else part for part in content]
    return list(_strings(content))


def _as(form: str, *texts: str) -> Any:
    """A content in a form: "string", "parts", or "one", a list of one part."""
    if form == "parts":
        return [{"type": "text", "text": text} for text in texts]
    return "".join(texts) if form == "string" else [{"type": "text", "text": "".join(texts)}]


class Content:
    """`form`: "auto", or the form in which all contents are given."""

    def __init__(self, template: Template, form: str) -> None:
        self.template, self.form = template, form
        self.known: set[str] = set()  # the roles of the probe; others are taken for the user
        self.string: dict[str, str] = {}  # the form in which a role's strings are given, if it is another
        self.list: dict[str, str] = {}  # the form of its lists of parts, if they are not joined
        self.heads: dict[str, set[str]] = {}  # what a turn of the role begins with, before its content
        self.null = self.null_call = True  # a message may have no content, with a call of a tool too
        self.arguments = {str: True, dict: True}  # the types of arguments that the template takes
        with suppress(MemoryError, Exceeded):  # dialogues fail as the probe does, and are refused with their line
            self._probe()

    # ---- the probe

    def _try(self, messages: list[Message], **variables: Any) -> str:
        """The text of a dialogue; nothing if the template fails."""
        try:
            return self.template.render(plain(messages), variables)
        except Refused as e:
            if e.reason == "template-limit":
                raise Exceeded(str(e)) from e
            return ""

    def _probe(self) -> None:
        def said(forms: list[tuple[str, str]]) -> list[Message]:
            return [{"role": role, "content": _as(form, f"{_MARK}x{i}x", f"{_MARK}y{i}y")}
                    for i, (role, form) in enumerate(forms)]  # fmt: skip

        def takes(forms: list[tuple[str, str]], of: str) -> bool:
            """The text has each word of these roles once, and no part's key."""
            text = self._try(said(forms))
            words = [f"{_MARK}{c}{i}{c}" for i, (role, _) in enumerate(forms) if role in of for c in "xy"]
            return all(text.count(word) == 1 for word in words) and not _KEY.search(text)

        turns = ["user", "assistant", "user", "assistant"]
        tried = [(form, roles) for form in ("string", "parts", "one") for roles in (["system", *turns], turns)]
        base = next((t for t in tried if takes([(role, t[0]) for role in t[1]], "user assistant")), None)
        if base is None:
            return
        form, roles = base
        self.known = set(roles)
        for role in dict.fromkeys(roles):
            ok = [f for f in ("string", "parts", "one") if takes([(r, f if r == role else form) for r in roles], role)]
            if "parts" in ok:
                self.list[role] = "parts"
            if ok and "string" not in ok:
                self.string[role] = "one"
                self.list.setdefault(role, "one")
        with suppress(Refused):
            messages = plain(said([(role, form) for role in roles]))
            text, found = self.template.written(messages, {})
            for i, turn in found.items():
                at = text.find(f"{_MARK}x{i}x", turn.begin, turn.end)
                if at > turn.begin:
                    self.heads.setdefault(roles[i], set()).add(text[turn.begin : at])
        form = self.string.get("user", "string")
        self._probe_calls(lambda text: _as(form, text))

    def _probe_calls(self, as_form: Callable[[str], Any]) -> None:
        """Finds what the template takes for null contents and arguments. Of two forms that it loses, one is as good."""
        properties = {"key": {"type": "string", "description": "p"}}
        schema = {"type": "object", "properties": properties, "required": ["key"]}
        tool = {"type": "function", "function": {"name": "probe", "description": "p", "parameters": schema}}
        key, value = f"{_MARK}k", f"{_MARK}v"

        def called(arguments: Any, content: Any) -> str:
            call = {"id": "probe0001", "type": "function", "function": {"name": "probe", "arguments": arguments}}
            return self._try([
                {"role": "user", "content": as_form("u")},
                {"role": "assistant", "content": content, "tool_calls": [call]},
                {"role": "tool", "name": "probe", "tool_call_id": "probe0001", "content": as_form("t")},
                {"role": "assistant", "content": as_form("a")},
            ], tools=[tool])  # fmt: skip

        def takes(arguments: Any, content: Any) -> bool:
            text = called(arguments, content)
            return value in text and f"'{key}'" not in text and f'\\"{key}' not in text

        def without(n_none: int, text: str) -> bool:
            return bool(text) and text.count("None") == n_none

        given = {str: json.dumps({key: value}), dict: {key: value}}
        empty, null = ({t: takes(v, content) for t, v in given.items()} for content in (as_form(""), None))
        if any(empty.values()) or any(null.values()):
            self.null_call = any(null.values())
            self.arguments = {t: empty[t] or null[t] for t in given}
        else:
            self.null_call = bool(called(given[dict], None))
        asked = [{"role": "user", "content": as_form("u")}, {"role": "assistant"}]
        as_empty = self._try([asked[0], {**asked[1], "content": as_form("")}])
        self.null = without(as_empty.count("None"), self._try(asked))

    # ---- before a dialogue is rendered

    def given(self, messages: list[Message], notes: Counter[str]) -> list[Message]:
        """The messages as the template takes them."""
        plain = self.form == "auto" and not self.string  # strings go as they are
        return [m if plain and type(m.get("content")) is str and type(m.get("role")) is str and not m.get("tool_calls")
                else self._message(m, f"message {i + 1} of {len(messages)}", notes)
                for i, m in enumerate(messages)]  # fmt: skip

    def _message(self, m: Message, where: str, notes: Counter[str]) -> Message:
        role, content = m.get("role"), m.get("content")
        if not isinstance(role, str):
            raise Refused("not-a-dialogue", f"{where}: has no role, which must be a string")
        known = role if role in self.known else "user"
        if isinstance(content, str):
            form = self.string.get(known, "string") if self.form == "auto" else self.form
            if form != "string":
                m = {**m, "content": _as("one", content)}
                notes["a string is given as a list of one part, as the template takes lists"] += 1
        elif isinstance(content, list) and (role != "tool" or all(isinstance(p, dict) and "type" in p for p in content)
            ):  # fmt: skip
            parts = _parts(content, where)
            form = self.list.get(known, "string") if self.form == "auto" else self.form
            m = {**m, "content": parts if form == "parts" else _as(form, *(part["text"] for part in parts))}
            notes["a list of text parts is joined, as the template takes strings"] += form == "string"
            notes["a list of text parts is joined into one part, as the template takes one"] += form == "one"
        elif content is None:
            if not (self.null_call if m.get("tool_calls") else self.null):
                m = {**m, "content": _as(self.string.get(known, "string"), "")}
                notes["null is given as an empty content"] += 1
        elif role != "tool":
            raise Refused("not-a-dialogue", f"{where}: content must be a string, a list of text parts, or null")
        return self._with_arguments(m, where, notes) if m.get("tool_calls") else m

    def _with_arguments(self, m: Message, where: str, notes: Counter[str]) -> Message:
        calls = m["tool_calls"]
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise Refused("not-a-dialogue", f"{where}: tool_calls must be a list of objects")
        out = []
        for call in calls:
            function = call["function"] if isinstance(call.get("function"), dict) else call
            arguments = function.get("arguments")
            if isinstance(arguments, str) and not self.arguments[str] and self.arguments[dict]:
                try:
                    arguments = json.loads(arguments or "{}")
                except ValueError:
                    arguments = None
                if not isinstance(arguments, dict):
                    raise Refused("not-a-dialogue", f"{where}: arguments of a tool call are a string that is no JSON "
                                  f"object, and the template {self.template.name} takes only objects")  # fmt: skip
                notes["arguments of a tool call, a JSON string, are parsed"] += 1
            elif isinstance(arguments, dict) and not self.arguments[dict] and self.arguments[str]:
                arguments = json.dumps(arguments, ensure_ascii=False)
                notes["arguments of a tool call are given as a JSON string"] += 1
            new = {**function, "arguments": arguments}
            out.append(call if arguments is function.get("arguments") else
                       new if function is call else {**call, "function": new})  # fmt: skip
        return {**m, "tool_calls": out}

    # ---- after it is rendered

    def check(
        self, messages: list[Message], variables: Mapping[str, Any], text: str, turns: Mapping[int, Turn],
        notes: Counter[str],
    ) -> None:  # fmt: skip
        """Refused, if the text lacks content of a message; what else it lacks is counted."""
        unsure: list[int] = []
        last = 0
        for i, m in enumerate(messages):
            turn = turns.get(i)
            begin, end = (turn.begin, turn.end) if turn and turn.end > turn.begin else (last, len(text))
            content = m.get("content")
            is_data = isinstance(content, list) and turn and _KEY.search(text, turn.begin, turn.end)
            if is_data and not m.get("tool_calls") and not any(_KEY.search(c) for c in _texts(m)):
                raise self._lost(i, len(messages), m, "its list of parts is written as data: its plain text")
            for c in (content,) if isinstance(content, str) else _texts(m):
                c = c.strip()
                if not c:
                    continue
                at = text.find(c, begin, end)
                if at >= 0 and len(c) >= SHORT:
                    begin = at + len(c)
                elif not turn or not any(
                    text.startswith(h, turn.begin) and text.startswith(c, turn.begin + len(h))
                    for h in self.heads.get(m["role"], ())
                ):
                    unsure.append(i)
                    break
            if not turn or turn.end <= turn.begin:
                last = begin
            if len(m) > 2:
                self._check_rest(i, m, text, turn, len(messages), notes)
        if unsure:
            self._check_marked(sorted(set(unsure)), messages, variables, text, notes)
        for name in "tools", "documents":
            value = variables.get(name)
            if value and not any(_find(text, s, 0, len(text)) >= 0 for s in _strings(value)):
                notes[f"the template leaves out {name}"] += 1

    def _check_rest(
        self, i: int, m: Message, text: str, turn: Turn | None, n: int, notes: Counter[str]
    ) -> None:  # fmt: skip
        """The reasoning and the calls of a message."""
        begin, end = (turn.begin, turn.end) if turn and turn.end > turn.begin else (0, len(text))
        reasoning = next((m[k] for k in _REASONING if isinstance(m.get(k), str)), "").strip()
        if reasoning and _find(text, reasoning, begin, end) < 0:
            notes[REASONING] += 1
        refusal = m.get("refusal")
        if isinstance(refusal, str) and _find(text, refusal.strip(), begin, end) < 0:
            raise self._lost(i, n, m, "its refusal")
        for call in _calls(m):
            arguments = call.get("arguments")
            if isinstance(arguments, str):
                try:
                    arguments = json.loads(arguments)
                except ValueError:
                    arguments = arguments.strip()
            for word in (call.get("name"), *_strings(arguments)):
                if isinstance(word, str) and word.strip() and _find(text, word.strip(), begin, end) < 0:
                    what = "a tool call" if m.get("tool_calls") else "its function_call (now: tool_calls)"
                    raise self._lost(i, n, m, what)

    def _check_marked(
        self, unsure: list[int], messages: list[Message], variables: Mapping[str, Any], text: str, notes: Counter[str]
    ) -> None:
        """Looks for these messages once more, in a rendering with a mark behind each of their texts."""
        marked = list(messages)
        for i in unsure:
            content = messages[i]["content"]
            if isinstance(content, str):
                content = f"{content.strip()}{_MARK}{i}q"
            elif isinstance(content, list):
                content = [{**p, "text": f"{p['text'].strip()}{_MARK}{i}q"}
                           if isinstance(p, dict) and p.get("text", "").strip() else p for p in content]  # fmt: skip
            marked[i] = {**messages[i], "content": content}
        try:
            other = self.template.render(plain(marked), variables)
        except (Refused, MemoryError):
            other = text
        for i in unsure:
            m = messages[i]
            texts = [c.strip() for c in _texts(m) if c.strip()]
            if isinstance(m["content"], (str, list)) and other.count(f"{_MARK}{i}q") < len(texts) and other is not text:
                raise self._lost(i, len(messages), m, "its content")
            for c in texts:
                if _find(text, c, 0, len(text)) >= 0:
                    continue
                thoughts = _THOUGHT.split(c)
                answer = thoughts[-1].strip()
                if answer and _find(text, answer, 0, len(text)) < 0 and not _words_in_order(text, answer):
                    raise self._lost(i, len(messages), m, "its content")
                thought = re.sub(r"^\S*think\S*", "", thoughts[0].strip(), flags=re.I).strip()
                if len(thoughts) > 1 and thought and _find(text, thought, 0, len(text)) < 0:
                    notes[REASONING] += 1

    def _lost(self, i: int, n: int, m: Message, what: str) -> Refused:
        role = m["role"]
        known = role in ("system", "user", "assistant", "tool")
        help = "another template" if known else f"another template, or --role {role}=system"
        return Refused("content-lost", f"message {i + 1} of {n} ({role}): {what} is not in the text, as the template "
                       f"{self.template.name} leaves it out or changes it; use {help}")  # fmt: skip


