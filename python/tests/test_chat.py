"""sluice-chat beside transformers: templates from packages, and generated dialogues with everything in them. Text and
spans are transformers' where the template has {% generation %}; elsewhere spans are compared with what lies between
a template's marks of the assistant's turns (REFERENCE), which are known here for some families.

CHAT_DIALOGUES=1000 takes so many dialogues a template, CHAT_TABLE=FILE writes the counts of each."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from glob import glob
from pathlib import Path
from typing import Any

import common
from common import needs

HERE = os.environ.get("O", "build") + "/python"
NOW = datetime(2026, 11, 24, 12)
N = int(os.environ.get("CHAT_DIALOGUES", "40"))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
WORDS = """the of and stream don't x=y; {a: 1} über naïve Привет 数据 데이터 مرحبا हिन्दी 🙂 👩\u200d🔬 e\u0301
<b>&amp;</b> "q" \\n \t \u2028""".replace("\n", " ").split(" ")  # noqa: SIM905
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather <now> & ’ü’",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "a city"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
        "return": {"type": "string", "description": "a text"},
    },
}
# Families of templates: what asks for the assistant's turn, and how the turn ends. Generated text has no such marks.
REFERENCE = [
    (r"Qwen3\.5|qwen3_5_think|qwen3_6|qwen3_8", r"<\|im_start\|>assistant\n<think>\n", r"<\|im_end\|>\n"),
    (r"qwen3_5_nothink", r"<\|im_start\|>assistant\n<think>\n\n</think>\n\n", r"<\|im_end\|>\n"),
    (r"Qwen|qwen|Hermes|MiMo|LFM|lfm2|SmolLM3", r"<\|im_start\|>assistant\n", r"<\|im_end\|>\n"),
    (r"lama-?_?3", r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n", r"<\|eot_id\|>|<\|eom_id\|>"),
    (r"gemma-2|trl-gemma3?\.jinja", r"<start_of_turn>model\n", r"<end_of_turn>\n"),
    (r"[Pp]hi-?3", r"<\|assistant\|>\n", r"<\|end\|>\n(?:</s>$)?"),
    (r"istral-(Nemo|Small)|Devstral", r"\[/INST\]|\[/TOOL_RESULTS\](?!\[TOOL_RESULTS\])", r"</s>"),
    (
        r"DeepSeek-V3\.1",
        r"<｜Assistant｜><think></think>|<｜tool▁output▁end｜>(?!<｜tool▁output▁begin｜>)",
        r"<｜end▁of▁sentence｜>",
    ),
    (r"cohere2", r"<\|CHATBOT_TOKEN\|><\|START_RESPONSE\|>", r"<\|END_OF_TURN_TOKEN\|>"),
    (r"cohere|command-r", r"<\|CHATBOT_TOKEN\|>", r"<\|END_OF_TURN_TOKEN\|>"),
    (r"granite", r"<\|start_of_role\|>assistant<\|end_of_role\|>", r"<\|end_of_text\|>\n?"),
    (r"Kimi-K2", r"<\|im_assistant\|>assistant<\|im_middle\|>", r"<\|im_end\|>"),
]


def words(r: random.Random, most: int = 12) -> str:
    lines = [" ".join(r.choice(WORDS) for _ in range(r.randint(1, most))) for _ in range(r.choice((1, 1, 1, 2, 4)))]
    text = r.choice(("\n", "\n\n", " \n")).join(lines)
    return r.choice(("", "", "", "", " ", "\n")) + text + r.choice(("", "", "", "", " ", "\n"))


def dialogue(r: random.Random) -> dict[str, Any]:
    """A record in OpenAI's form. Four of ten have tools, three of ten reasoning, some empty turns."""
    tools, thinking, plain = r.random() < 0.4, r.random() < 0.3, r.random() < 0.3
    messages: list[dict[str, Any]] = []
    if r.random() < 0.4:
        messages.append({"role": "system", "content": words(r)})
    for _ in range(r.randint(1, 5)):
        messages.append({"role": "user", "content": "" if not plain and r.random() < 0.05 else words(r)})
        if tools and r.random() < 0.5:
            for _ in range(r.choice((1, 1, 2))):
                calls = [
                    {"type": "function", "id": f"call{r.randrange(10**5):05}",
                     "function": {"name": "weather", "arguments": {"city": words(r, 2), "days": r.randrange(9)}}}
                    for _ in range(r.choice((1, 1, 2)))
                ]  # fmt: skip
                message = {"role": "assistant", "content": r.choice(("", words(r))), "tool_calls": calls}
                if thinking:
                    message["reasoning_content"] = words(r)
                messages.append(message)
                for call in calls:
                    messages.append(
                        {"role": "tool", "name": "weather", "tool_call_id": call["id"], "content": words(r)}
                    )  # fmt: skip
        message = {"role": "assistant", "content": "" if not plain and r.random() < 0.05 else words(r)}
        if thinking and r.random() < 0.8:
            message[r.choice(("reasoning_content", "thinking"))] = words(r)
        messages.append(message)
    if r.random() < 0.1:
        messages.append({"role": "user", "content": words(r)})
    for i, m in enumerate(messages):  # a word that no other has
        m.update((k, f"{m[k]} {m['role'][0]}{i}x") for k in ("content", "reasoning_content", "thinking") if m.get(k))
    record: dict[str, Any] = {"messages": messages}
    if tools:
        record["tools"] = [TOOL]
    if r.random() < 0.1:
        record["documents"] = [{"title": words(r, 3), "text": words(r)}]
    if r.random() < 0.1:
        record["chat_template_kwargs"] = {"enable_thinking": r.random() < 0.5}
    return record


@lru_cache(None)
def tokenizer() -> Any:
    """A byte-level tokenizer of transformers, without merges."""
    needs("transformers", "tokenizers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=t, **TOKENS)


@lru_cache(None)
def stop_clock() -> None:
    """From here on it is NOW for transformers' templates too."""
    import transformers.utils.chat_template_utils as reference

    reference.datetime = type("Fixed", (), {"now": staticmethod(lambda: NOW)})


def theirs(t: Any, record: dict[str, Any], mask: bool = False, prompt: bool = False) -> Any:
    stop_clock()
    given = {k: record.get(k) for k in ("tools", "documents")}
    given.update(record.get("chat_template_kwargs") or {}, add_generation_prompt=prompt)
    if mask:
        return t.apply_chat_template(record["messages"], return_assistant_tokens_mask=True, return_dict=True, **given)
    return t.apply_chat_template(record["messages"], tokenize=False, **given)


def generations(t: Any, record: dict[str, Any]) -> list[tuple[int, int]]:
    """The characters that transformers takes for the assistant's, with empty ones."""
    from transformers.utils.chat_template_utils import render_jinja_template

    given = {k: record.get(k) for k in ("tools", "documents")}
    more = {**t.special_tokens_map, **(record.get("chat_template_kwargs") or {})}
    messages = [{k: v for k, v in m.items() if v is not None} for m in record["messages"]]
    blocks: list[tuple[int, int]] = render_jinja_template(
        [messages], chat_template=t.chat_template, return_assistant_tokens_mask=True, **given, **more
    )[1][0]
    return blocks


def mask_of(encoding: Any, spans: list[tuple[int, int]]) -> list[int]:
    """The tokens of spans of characters, as transformers takes them."""
    mask = [0] * len(encoding["input_ids"])
    for begin, end in spans:
        for i in range(encoding.char_to_token(begin), encoding.char_to_token(end - 1) + 1):
            mask[i] = 1
    return mask


def by_prefixes(render: Callable[..., str], messages: list[Any], text: str) -> list[tuple[int, int]] | None:
    """The spans by all prefixes, each rendered; None where one is no prefix."""
    spans = []
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            before, after = render(messages[:i], True), render(messages[: i + 1], False)
            if not text.startswith(before) or not text.startswith(after) or len(before) > len(after):
                return None
            spans.append((len(before), len(after)))
    return [s for s in spans if s[0] < s[1]]


def templates() -> list[str]:
    found = sorted(glob(f"{HERE}/templates/*.jinja"))
    if not found:
        raise common.Skip("no templates; make python")
    return found


def compare(file: str) -> dict[str, Any]:
    """What N dialogues of a template give."""
    from sluice._dialogue import variables, wanted
    from sluice._template import Refused, Template

    name, source = Path(file).name, Path(file).read_text("utf-8")
    t = tokenizer()
    t.chat_template = source
    ours = Template(source, name, TOKENS, NOW)
    family = next(((h, e) for n, h, e in REFERENCE if re.search(n, name)), None)
    row: dict[str, Any] = dict.fromkeys(("rendered", "fail", "refused", "by prefixes", "by turn"), 0)
    row.update(template=name, marks=ours.generation.found, differ=[], why="")
    r = random.Random(name)
    for _ in range(N):
        record = dialogue(r)
        messages, given = record["messages"], variables(record)
        try:
            text = theirs(t, record)
        except Exception:
            text = None
        try:
            got, spans = ours.spans(messages, given, wanted(messages, 0, "assistant"))
        except Refused as e:
            if text is None:
                row["fail"] += 1
            elif e.reason != "not-a-prefix" or ours.spans(messages, given, None)[0] != text:
                row["differ"].append(f"only we refuse: {e}: {record}")
            else:
                row["refused"] += 1
                row["why"] = str(e)
            continue
        row["rendered"] += 1
        if got != text:
            row["differ"].append(f"text {got!r}, and not {text!r}")
        elif ours.generation.found:
            encoding = theirs(t, record, mask=True)
            if mask_of(encoding, spans) != encoding["assistant_masks"]:
                row["differ"].append(f"mask {spans} of {text!r}")
        else:
            check_spans(row, record, text, spans, family)
    return row


def check_spans(
    row: dict[str, Any], record: dict[str, Any], text: str, spans: list[tuple[int, int]], family: Any
) -> None:
    """Against the words that only a turn has, all prefixes, and the family's marks."""
    at = {i for begin, end in spans for i in range(begin, end)}
    for word in re.finditer(r" ([asut])\d+x(?=\W)", text):
        if {i in at for i in range(*word.span())} != {word[1] == "a"}:
            row["differ"].append(f"{word} in {text!r}, {spans}")
    t = tokenizer()
    want = by_prefixes(lambda m, p: theirs(t, {**record, "messages": m}, prompt=p), record["messages"], text)
    if want is not None:
        row["by prefixes"] += 1
        if spans != want:
            row["differ"].append(f"spans {spans}, by prefixes {want}: {text!r}")
    if family and "chat_template_kwargs" not in record:
        row["by turn"] += 1
        want = [m.span(1) for m in re.finditer(f"(?:{family[0]})((?s:.*?)(?:{family[1]}))", text)]
        if spans != want:
            row["differ"].append(f"spans {spans}, by turn {want}: {text!r}")


def test_templates() -> None:
    needs("transformers")
    rows = [compare(file) for file in templates()]
    if "CHAT_TABLE" in os.environ:
        keys = ("template", "marks", "rendered", "fail", "refused", "by prefixes", "by turn", "differ", "why")
        lines = ["\t".join(str(len(r[k]) if k == "differ" else r[k]) for k in keys) for r in rows]
        Path(os.environ["CHAT_TABLE"]).write_text("\n".join(["\t".join(keys), *lines]) + "\n")
    wrong = [f"{r['template']}: {r['differ'][0]}" for r in rows if r["differ"]]
    assert not wrong, "\n".join(wrong)
    for kind, share in (("marks", 0.15), ("by prefixes", 0.3), ("by turn", 0.2)):
        some = [r["template"] for r in rows if r[kind] and r["rendered"] >= N // 5]
        assert len(some) >= share * len(rows), f"{kind}: only {some}"
    print(f"  {len(rows)} templates, {N} dialogues each")


MARKED = {"qwen3": "trl-qwen3_training", "llama3_1": "trl-llama3_training", "deepseek_v3": "trl-deepseekv3_training"}


def test_tokenizers() -> None:
    """Folders of tokenizers: the templates and special tokens that transformers finds, its text and its masks."""
    needs("transformers")
    from transformers import AutoTokenizer

    from sluice._dialogue import load, variables, wanted
    from sluice._template import Refused, Template

    folders = sorted(glob(f"{HERE}/tokenizers/*/tokenizer_config.json"))
    if not folders:
        raise common.Skip("no tokenizers; make python")
    for folder in map(os.path.dirname, folders):
        t, name, r = AutoTokenizer.from_pretrained(folder), Path(folder).name, random.Random(folder)
        sources, given = load(folder, None)
        tokens = {k: token for k, token in given.items() if token is not None}
        more = {k for k, token in t.special_tokens_map.items() if token != tokens.get(k)}  # the class's own defaults
        assert set(tokens) <= set(t.special_tokens_map) and not more & set(given), (folder, tokens, more)
        assert sources == (t.chat_template if isinstance(t.chat_template, dict) else {"default": t.chat_template})
        ours = {k: Template(source, name, tokens, NOW) for k, source in sources.items()}
        assert not any(template.variables & more for template in ours.values())  # what sluice-chat refuses
        same = n = 0
        for _ in range(N):
            record = dialogue(r)
            given = variables(record)
            template = ours.get("tool_use" if "tools" in given else "", ours["default"])
            try:
                text = theirs(t, record)
            except Exception:
                text = None
            try:
                assert template.spans(record["messages"], given, None)[0] == text
                same += 1
            except Refused as e:
                assert e.reason == "template-error" and text is None, e
        if name in MARKED:
            t.chat_template = load(folder, f"{HERE}/templates/{MARKED[name]}.jinja")[0]["default"]
            template = Template(t.chat_template, name, tokens, NOW)
            for _ in range(N):
                record = dialogue(r)
                messages = record["messages"]
                text, spans = template.spans(messages, variables(record), wanted(messages, 0, "assistant"))
                encoding = theirs(t, record, mask=True)
                assert text == theirs(t, record) and mask_of(encoding, spans) == encoding["assistant_masks"]
                n += sum(encoding["assistant_masks"])
        assert same > N // 4 and (n or name not in MARKED), (name, same, n)


def test_masks() -> None:
    """sluice-chat | tokenize --spans-field: ids and masks are transformers', of every template with marks."""
    needs("transformers")
    from transformers import AutoTokenizer

    folders = sorted(os.path.dirname(f) for f in glob(f"{HERE}/tokenizers/*/tokenizer_config.json"))
    if not folders:
        raise common.Skip("no tokenizers; make python")
    pairs = [(f"{HERE}/tokenizers/{name}", f"{HERE}/templates/{file}.jinja") for name, file in MARKED.items()]
    files = [f for f in templates() if re.search(r"{%-? *generation", Path(f).read_text("utf-8"))]
    pairs += [(folders[i % len(folders)], f) for i, f in enumerate(files) if f not in {pair[1] for pair in pairs}]
    loaded = {folder: AutoTokenizer.from_pretrained(folder) for folder in folders}
    done = sum(masks_of(loaded[folder], folder, file) > N // 4 for folder, file in pairs)
    assert done >= 20, done
    print(f"  {done} templates, {N} dialogues each")


def masks_of(t: Any, folder: str, file: str) -> int:
    """The dialogues of a template whose ids and masks are transformers'; AssertionError at one that is otherwise."""
    from sluice._content import Content
    from sluice._template import Template

    r = random.Random(file)
    t.chat_template = Path(file).read_text("utf-8")
    # tokenize refuses spans of a text that a normalizer changes; Qwen's is NFC.
    as_nfc = [unicodedata.normalize("NFC", json.dumps(dialogue(r), ensure_ascii=False)) for _ in range(N)]
    records = {str(i): json.loads(line) for i, line in enumerate(as_nfc)}
    given = "".join(json.dumps({**record, "id": i}) + "\n" for i, record in records.items())
    program = [sys.executable, "-m", "sluice.chat", "-q", "-t", folder, "--template", file, "--keep=id"]
    rejects = common.path("lost")
    program += ["--rejects", rejects, f"--date={NOW:%Y-%m-%d}"]
    program += [f"--set={k}_token=null" for k in ("bos", "pad") if f"{k}_token" not in t.special_tokens_map]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    ran = subprocess.run(program, input=given.encode(), capture_output=True, env=env)
    assert ran.returncode == 0 or b"no dialogue was written" in ran.stderr, ran.stderr
    got = {}
    if ran.returncode == 0:
        stream = common.run(
            "tokenize", "-q", "-t", f"{folder}/tokenizer.json", "--special=parse", "--no-eos", "--id-field=id",
            "--spans-field=spans", stdin=ran.stdout,
        )  # fmt: skip
        lines = common.run("inspect", "--records", stdin=stream).splitlines()
        got = {x["segments"][0]["id"]: x for x in map(json.loads, lines)}
    refused = [json.loads(line) for line in Path(rejects).read_bytes().splitlines()]
    lost = {json.loads(r["text"])["id"] for r in refused if r["reason"] == "content-lost"}
    tokens = {k: token for k, token in t.special_tokens_map.items() if isinstance(token, str)}
    content = Content(Template(t.chat_template, file, tokens, NOW), "auto")
    for i, record in records.items():
        if i in lost:
            continue
        record["messages"] = content.given(record["messages"], Counter())  # as the template takes them
        try:
            want = theirs(t, record, mask=True)
        except Exception:
            assert i not in got, (file, i)
            continue
        if i in got:
            assert got[i]["tokens"] == want["input_ids"], f"{file}: ids of {record}"
            mask, blocks = want["assistant_masks"], generations(t, record)
            if any(begin == end for begin, end in blocks):  # of which it marks a token that goes beyond both sides
                mask = mask_of(want, [block for block in blocks if block[0] < block[1]])
            assert got[i]["mask"] == mask, f"{file}: mask of {record}"
        else:
            assert all(begin == end for begin, end in generations(t, record)), f"{file}: only we drop {record}"
    return len(got)


# Templates that look like others, and write turns in other ways. What is not refused is as all prefixes say.
LOOP = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{END}{% endfor %}"
LOOP += "{% if add_generation_prompt %}<assistant>{% endif %}"
HOSTILE = {
    "plain": LOOP.replace("{END}", "</>"),
    "end unless last": LOOP.replace("{END}", "{% if not loop.last %}</>{% endif %}"),
    "end if last": LOOP.replace("{END}", "{% if loop.last %}</>{% endif %}"),
    "end if the next is another's": LOOP.replace(
        "{END}", "{% if loop.last or messages[loop.index0 + 1].role != m.role %}</>{% endif %}"
    ),
    "end by the next": LOOP.replace("{END}", "").replace(
        "<{{ m.role", "{% if not loop.first %}</>{% endif %}<{{ m.role"
    ),
    "number of messages": "{{ messages|length }}" + LOOP.replace("{END}", "</>"),
    "number of messages in a turn": LOOP.replace("{END}", "{% if loop.length > 3 %}!{% endif %}</>"),
    "the last first": "{{ messages[-1].content[:1] }}" + LOOP.replace("{END}", "</>"),
    "a look without words": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
    + LOOP.replace("{END}", "{% if ns.n > 2 %}</>{% else %}</2>{% endif %}"),
    "prompt by state": "{% set ns = namespace(a=0) %}{% for m in messages %}<{{ m.role }}{{ ns.a }}>{{ m.content }}</>"
    "{% set ns.a = ns.a + 1 %}{% endfor %}{% if add_generation_prompt %}<assistant{{ ns.a }}>{% endif %}",
    "longer prompt by state": "{% set ns = namespace(a=0) %}{% for m in messages %}<{{ m.role }}>{{ '!' if ns.a > 2 }}"
    "{{ m.content }}</>{% set ns.a = ns.a + 1 %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{{ '!' if ns.a > 2 }}"
    "{% endif %}",
    "the prompt matters before": LOOP.replace("{END}", "{{ '!' if add_generation_prompt and m.role == 'system' }}</>"),
    "prompt beyond the turn": LOOP.replace("{END}", "").replace("<assistant>", "<assistant><user>"),
    "prompt by messages": LOOP.replace("{END}", "</>").replace("<assistant>{%", "<assistant>{{ messages|length }}{%"),
    "prompt in the loop": LOOP.replace("{END}", "</>{% if loop.last and add_generation_prompt %}?{% endif %}"),
    "trailer always": LOOP.replace("{END}", "</>") + "</s>",
    "trailer": LOOP.replace("{END}", "</>").replace("{% endif %}", "{% else %}</s>{% endif %}"),
    "trailer as a turn begins": LOOP.replace("{END}", "</>").replace("{% endif %}", "{% else %}<{% endif %}"),
    "else": LOOP.replace("{END}", "</>").replace("{% endfor", "{% else %}none{% endfor"),
    "continue": LOOP.replace("{END}", "{% if m.content|length < 2 %}{% continue %}{% endif %}</>"),
    "continue, and a trailer as a turn begins": LOOP.replace("{% endif %}", "{% else %}<{% endif %}").replace(
        "{END}", "{% if m.content|length < 2 %}{% continue %}{% endif %}</>"
    ),
    "break": LOOP.replace("{END}", "</>{% if m.content == 'stop' %}{% break %}{% endif %}"),
    "backwards": LOOP.replace("in messages", "in messages[::-1]").replace("{END}", "</>"),
    "from the second": "[{{ messages[0].content }}]"
    + LOOP.replace("in messages", "in messages[1:]").replace("{END}", "</>"),
    "a look from the second": LOOP.replace("in messages", "in messages[1:]").replace(
        "{END}", "{% if not loop.last %}</>{% endif %}"
    ),
    "number by a sum": LOOP.replace("{END}", "{% if ([1] + messages)|length > 4 %}!{% endif %}</>"),
    "alias": "{% set rest = messages[1:] %}[{{ messages[0].content }}]"
    + LOOP.replace("in messages", "in rest").replace("{END}", "</>"),
    "without tools": LOOP.replace("in messages", "in messages if m.role != 'tool'").replace("{END}", "</>"),
    "mixed list": LOOP.replace("in messages", "in [messages[0], {'role': 'x', 'content': '?'}] + messages[1:]").replace(
        "{END}", "</>"
    ),
    "one more": LOOP.replace(
        "in messages", "in ([messages[0], {'role': 'x', 'content': ''}, messages[1]] if messages[1] else messages)"
    ).replace("{END}", ""),
    "lazily": LOOP.replace("in messages", "in messages|selectattr('role')").replace("{END}", "</>"),
    "thinking of the last in a set": "{% set t %}{% for m in messages %}<{{ m.role }}>{{ '!' if loop.last }}"
    "{{ m.content }}"
    "</>{% endfor %}{% endset %}{{ t }}{% if add_generation_prompt %}<assistant>{% endif %}",
    "macro": "{% macro w(m) %}<{{ m.role }}>{{ m.content }}</>{% endmacro %}{% for m in messages %}{{ w(m) }}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
    "loop in a macro": "{% macro w() %}" + LOOP.replace("{END}", "</>") + "{% endmacro %}{{ w() }}",
    "loop in a set": "{% set t %}" + LOOP.replace("{END}", "</>") + "{% endset %}{{ t }}",
    "two loops": "{% for m in messages if m.role == 'system' %}[{{ m.content }}]{% endfor %}"
    + LOOP.replace("in messages", "in messages if m.role != 'system'").replace("{END}", "</>"),
    "twice": LOOP.replace("{END}", "</>") + LOOP.replace("{END}", "</>"),
    "json": LOOP.replace("{END}", "</>{% if 'magic' in m.content %}{{ messages|tojson }}{% endif %}"),
    "joined": "{{ messages|map(attribute='content')|join('|') }}{% if add_generation_prompt %}|{% endif %}",
    "thinking of the last": LOOP.replace("{END}", "</>").replace(
        "{{ m.content", "{% if loop.last and m.role == 'assistant' %}[think]{% endif %}{{ m.content"
    ),
    "said again later": LOOP.replace("{END}", "</>{% if not loop.first %}{{ loop.previtem.content }}{% endif %}"),
    "content outside": "{% for m in messages %}<{{ m.role }}>{% if loop.last %}{{ m.content }}{% endif %}</>"
    "{% endfor %}",
}


USED = (
    "plain", "trailer", "thinking of the last", "without tools", "macro", "prompt by state", "continue", "alias",
)  # fmt: skip


def test_hostile() -> None:
    """Every template that could be taken for another: spans are as all prefixes say, or refused."""
    from sluice._template import Refused, Template

    r, ok = random.Random(7), dict.fromkeys(HOSTILE, 0)
    for name, source in HOSTILE.items():
        ours = Template(source, name, {}, NOW)
        for _ in range(200):
            roles = [r.choice(("user", "assistant", "tool", "system")) for _ in range(r.randint(1, 7))]
            messages = [{"role": x, "content": r.choice(("", "a", "aa", "magic", "stop", "</><user>"))} for x in roles]
            wanted = [i for i, x in enumerate(roles) if x == "assistant"]

            def render(some: list[Any], prompt: bool, ours: Template = ours) -> str:
                try:
                    return ours.render(some, {}, prompt)
                except Refused:
                    return "\0"  # no prefix of any text

            try:
                text, spans = ours.spans(messages, {}, wanted)
            except Refused:
                continue
            assert text == render(messages, False), name
            want = by_prefixes(render, messages, text)
            if want is None:  # the end of a turn that is written otherwise when it is the last
                first = roles[0] == "assistant"  # found as after another message, as nothing is before it
                if first:
                    assert all(text[b - 11 : b] == "<assistant>" for b, _ in spans), (name, messages, spans)
                    continue
                assert name in ("thinking of the last", "trailer", "trailer as a turn begins"), (name, messages, spans)
                begins = [(i, len(render(messages[:i], True))) for i in wanted]
                n = len(messages) - 1
                want = [(b, len(text) if i == n else b + len(messages[i]["content"] + "</>")) for i, b in begins]
            assert spans == want, (name, messages, spans, want)
            ok[name] += bool(spans)
    assert all(ok[name] > 20 for name in USED), ok


if __name__ == "__main__":
    common.main(globals())
