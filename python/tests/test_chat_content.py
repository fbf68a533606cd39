"""sluice-chat and hard dialogues: lists of parts, roles that few templates know, nulls, arguments as JSON strings,
short contents. Text and masks are transformers' on the dialogue as it is given to the template, or it is refused for
the right reason: no content is lost in silence, and none is said to be lost that is there.

CHECK_FULL=1 takes all templates."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import common
from common import needs
from test_chat import NOW, TOKENS, TOOL, generations, mask_of, templates, theirs, tokenizer


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "call00001", "type": "function", "function": function}], **more}


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


RESULT = {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "sunny: 21 degrees"}
ASKED, ANSWER = user("Which weather has Delft today?"), assistant("Sunny it is, with 21 degrees.")
END = [user("And what is 6 times 7, please?"), assistant("That would be forty-two.")]
DIALOGUES: dict[str, list[dict[str, Any]]] = {
    "strings": [{"role": "system", "content": "You answer with few words."}, ASKED, ANSWER, *END],
    "lists": [user(parts("Which weather ", "has Delft?")), assistant(parts("Sunny it is,", " with 21 degrees.")), *END],
    "list of system": [{"role": "system", "content": parts("You answer", " with few words.")}, ASKED, ANSWER],
    "image": [user([{"type": "image", "image": "x.png"}, *parts("What is on this picture?")]), ANSWER],
    "developer": [{"role": "developer", "content": "You answer with few words."}, ASKED, ANSWER, *END],
    "null": [ASKED, call({"city": "Delft on the Schie"}, content=None), RESULT, ANSWER],
    "tools": [ASKED, call({"city": "Delft on the Schie", "days": 1}, content=""), RESULT, ANSWER, *END],
    "arguments": [ASKED, call('{"city": "Delft on the Schie", "days": 1}', content=""), RESULT, ANSWER, *END],
    "assistant first": [assistant("Welcome to this program!"), ASKED, ANSWER],
    "reasoning": [ASKED, assistant("Sunny, it is.", reasoning_content="The tool has said so before."), *END[:1],
                  assistant("That would be forty-two.", reasoning_content="Six by seven, I think.")],
    "thinking inside": [ASKED, assistant("<think>\nThe tool has said so.\n</think>\n\nSunny, it is."), *END[:1],
                        assistant("<think>\nSix by seven.\n</think>\n\nThat would be forty-two.")],
    "one letter": [user("a"), assistant("e"), user("s"), assistant("t")],
    "one letter of system": [{"role": "system", "content": "s"}, user("u"), assistant("1")],
    "quotes and lines": [user('Say "x\\n" \'twice\'\n\n  - <b>&amp;</b>\n\tthen ü and \U0001f642.'),
                         assistant('"x\\n"\n\n```py\nprint("x\\n" * 2)  # {{ no }}\n```')],
    "empty": [user("Say nothing at all, please."), assistant(""), *END],
}  # fmt: skip


def outcome(ours: Any, content: Any, t: Any, messages: list[dict[str, Any]]) -> tuple[str, Counter[str]]:
    """What a dialogue becomes: "same" as transformers, or the reason for which it is refused."""
    from sluice._dialogue import variables, wanted
    from sluice._template import Refused

    notes: Counter[str] = Counter()
    record: dict[str, Any] = {"messages": messages}
    if any("tool_calls" in m for m in messages):
        record["tools"] = [TOOL]
    given = variables(record)
    try:
        messages = content.given(messages, notes)
    except Refused as e:
        return e.reason, notes
    record["messages"] = messages
    try:
        text = theirs(t, record)
    except Exception:
        text = None
    try:
        got, spans = ours.spans(messages, given, wanted(messages, 0, "assistant"))
        content.check(messages, given, got, ours.turns, notes)
    except Refused as e:
        if text is None:
            return "template-error" if e.reason == "template-error" else f"{e.reason}, and not template-error", notes
        if e.reason in ("not-a-prefix", "no-turns"):
            try:
                assert ours.spans(messages, given, None)[0] == text
                content.check(messages, given, text, ours.turns, notes)
            except Refused as e2:
                return f"{e.reason}+{e2.reason}", notes
        return e.reason if e.reason in ("content-lost", "not-a-prefix", "no-turns") else f"wrong: {e}", notes
    if got != text:
        return f"wrong: text {got!r}, and not {text!r}", notes
    if ours.generation.found:
        encoding = theirs(t, record, mask=True)
        mask = encoding["assistant_masks"]
        blocks = generations(t, record)
        if any(begin == end for begin, end in blocks):
            mask = mask_of(encoding, [b for b in blocks if b[0] < b[1]])
        if mask_of(encoding, spans) != mask:
            return f"wrong: mask {spans} of {text!r}", notes
    return "same", notes


FEW = ["DeepSeek-V3.1", "Kimi-K2-Instruct", "Nemo", "Qwen3.5-4B", "gemma3.jinja", "gptoss", "llama3_1"]
FEW += ["llava_next.jinja", "phi3.jinja", "qwen2_5_training", "qwen2_5_vl.jinja", "qwen3_training", "smolvlm.jinja"]
REASONS = ("same", "not-text", "content-lost", "template-error", "not-a-prefix", "no-turns")


def test_matrix() -> None:
    """No dialogue has another text or mask than transformers gives; what is refused has one of the reasons."""
    needs("transformers")
    from sluice._content import Content
    from sluice._template import Template

    counts: dict[str, Counter[str]] = {k: Counter() for k in DIALOGUES}
    files = [f for f in templates() if os.environ.get("CHECK_FULL") or any(x in f for x in FEW)]
    for file in files:
        t, source = tokenizer(), Path(file).read_text("utf-8")
        t.chat_template = source
        ours = Template(source, Path(file).name, TOKENS, NOW)
        ours.allow(2000)
        content = Content(ours, "auto")
        for kind, messages in DIALOGUES.items():
            what, _ = outcome(ours, content, t, messages)
            assert all(part in REASONS for part in what.split("+")), f"{file}: {kind}: {what}"
            counts[kind][what] += 1
    # Dialogues of strings and lists are lost nowhere, but where a template leaves out the system's message.
    for kind in "lists", "one letter", "assistant first", "reasoning", "thinking inside", "quotes and lines", "empty":
        assert not counts[kind]["content-lost"] + counts[kind]["not-a-prefix+content-lost"], (kind, counts[kind])
        assert counts[kind]["same"] >= len(files) // 2, (kind, counts[kind])
    assert counts["image"] == {"not-text": len(files)} and counts["developer"]["content-lost"], counts
    print(f"  {len(files)} templates, {len(DIALOGUES)} dialogues each")


if __name__ == "__main__":
    common.main(globals())
