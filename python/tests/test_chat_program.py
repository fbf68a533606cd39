"""The program sluice-chat: what it reads and writes, its errors, and that processes change nothing."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import common
from common import needs, path

from sluice import __version__

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}</>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
TOOLS = "{% if tools %}[{{ tools|tojson }}]{% endif %}"
MARKED = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}</>{% endfor %}"
)
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error::DeprecationWarning", "-m", "sluice.chat", *arguments]


def chat(*arguments: str, stdin: bytes = b"", status: int = 0) -> tuple[bytes, str]:
    r = subprocess.run(command(*arguments), input=stdin, capture_output=True, env=ENV)
    assert r.returncode == status, f"{arguments} ended {r.returncode}: {r.stderr.decode()}"
    return r.stdout, r.stderr.decode()


def template(text: str = TEMPLATE, name: str = "t.jinja") -> str:
    needs("jinja2")
    Path(path(name)).write_text(text)
    return path(name)


def trained(out: bytes) -> list[list[str]]:
    return [[x["text"][a:b] for a, b in x["spans"]] for x in map(json.loads, out.splitlines())]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def test_records() -> None:
    """Every kind of record, and which turns are trained on."""
    t = template(TOOLS + TEMPLATE)
    records = lines(
        {"messages": [user("🙂 a"), assistant("é b"), user("c"), assistant("d")], "id": 1, "x": {"y": None}},
        {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": "s"},
        {"instruction": "a", "input": "b", "output": "c", "history": [["d", "e"]], "id": "three"},
        {"prompt": "a", "completion": "b"},
        {"prompt": [user("a"), assistant("b"), user("c")], "completion": [assistant("d")]},
        {"messages": [user("a"), assistant("b", weight=0), user("c"), assistant("d", weight=1)]},
        {"messages": [user("a")]},
        {"messages": [user("a"), assistant("b")], "tools": '[{"name": "<x>"}]'},
    )
    out, err = chat("-t", t, "--keep", "id,x", stdin=b"\xef\xbb\xbf" + records.replace(b"\n", b"\r\n\n"))
    first = json.loads(out.splitlines()[0])
    digest = sha256((TOOLS + TEMPLATE).encode()).hexdigest()
    assert first.pop("needs") == f"chat1 {digest[:8]} - -"
    assert first.pop("by") == f"sluice-chat {__version__} --template={digest[:16]} --train=assistant"
    assert first == {
        "text": "<user>🙂 a</><assistant>é b</><user>c</><assistant>d</>",
        "spans": [[23, 29], [50, 54]],
        "id": 1,
        "x": {"y": None},
        "from": "standard input:1",
    }, first  # fmt: skip
    want = [["é b</>", "d</>"], ["b</>"], ["e</>", "c</>"], ["b</>"], ["d</>"], ["d</>"], ["b</>"]]
    assert trained(out) == want
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    assert texts[1].startswith("<system>s</><user>a</>") and texts[6].startswith('[[{"name": "<x>"}]]<user>')
    assert texts[2] == "<user>d</><assistant>e</><user>a\nb</><assistant>c</>"
    assert "8 dialogues in; 7 dialogues, " in err and "dropped: nothing-to-train-on 1 dialogue; " in err, err
    out, err = chat("-q", "-t", t, "--train=last", stdin=records)
    assert trained(out) == [w[-1:] for w in want] and not err
    _, err = chat("-q", "-t", t, "--train=all", stdin=records, status=1)
    assert "input:6: message 2 of 4" in err and "--train all" in err, err
    out, _ = chat("-q", "-t", t, "--train=all", "--on-error=skip", stdin=records)
    assert len(out.splitlines()) == 7 and all(
        x == [json.loads(o)["text"]] for x, o in zip(trained(out), out.splitlines())
    )
    out, _ = chat("-q", "-t", template(MARKED, "marked.jinja"), stdin=records)
    assert trained(out)[:3] == [["é b", "d"], ["b"], ["e", "c"]] and trained(out)[4:6] == [["d"], ["d"]]
    out, _ = chat("-q", "-t", template(MARKED, "marked.jinja"), "--train", "last", stdin=records)
    assert trained(out)[0] == ["d"]
    turns = [{"a": 1, "role": "user", "content": "a"}, assistant("b")]
    assert trained(chat("-q", "-t", t, "--field=talk", stdin=lines({"talk": turns}))[0]) == [["b</>"]]


def test_variables() -> None:
    """Tokens of a tokenizer_config.json, --set, chat_template_kwargs, documents, --date, several templates."""
    source = "{{ bos_token }}{{ mood }}{{ documents[0].text if documents }}{{ strftime_now('%d %b %Y') }}" + TEMPLATE
    t = template(source)
    record = {
        "messages": [user("a"), assistant("b")],
        "documents": [{"text": "D"}],
        "chat_template_kwargs": {"mood": "m"},
    }
    _, err = chat("-t", t, stdin=lines(record), status=1)
    assert "bos_token" in err and "--set" in err, err
    out, err = chat("-t", t, "--set=bos_token=<s>", "--set", "mood=1", stdin=lines(record))
    assert "depend on the date" in err
    given = ("-t", t, "--set=bos_token=<s>", "--set", "mood=1", "--date=2024-07-26")
    out, err = chat(*given, stdin=lines(record, {**record, "chat_template_kwargs": {}}))
    assert [json.loads(x)["text"][:15] for x in out.splitlines()] == ["<s>mD26 Jul 202", "<s>1D26 Jul 202"]
    assert "date" not in err
    folder = Path(path("tokenizer"))
    (folder / "additional_chat_templates").mkdir(parents=True)
    config: dict[str, Any] = {
        "bos_token": {"content": "<bos>"},
        "eos_token": None,
        "chat_template": "{{ bos_token }}" + TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for where in (str(folder), str(folder / "tokenizer_config.json")):
        assert json.loads(chat("-t", where, stdin=lines(record))[0])["text"].startswith("<bos><user>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ eos_token }}" + TEMPLATE}))
    assert "eos_token=TOKEN" in chat("-t", str(folder), stdin=lines(record), status=1)[1]
    assert json.loads(chat("-t", str(folder), "--set=eos_token=null", stdin=lines(record))[0])["text"][:6] == "<user>"
    tool = {**record, "tools": [{"name": "x"}]}
    config["chat_template"] = [
        {"name": "default", "template": "D" + TEMPLATE},
        {"name": "tool_use", "template": "T" + TEMPLATE},
    ]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for more, want in (((), "DT"), (("--template", "tool_use"), "TT")):
        out, _ = chat("-t", str(folder), *more, stdin=lines(record, tool))
        assert "".join(json.loads(x)["text"][0] for x in out.splitlines()) == want
    (folder / "chat_template.jinja").write_text("F{{ bos_token }}" + TEMPLATE)
    assert json.loads(chat("-t", str(folder), stdin=lines(record))[0])["text"].startswith("F<bos>")
    out, _ = chat("-t", str(folder), "--template", t, "--date=2024-01-01", stdin=lines(record))
    assert json.loads(out)["text"].startswith("<bos>mD01 Jan")


def many(n: int = 15000) -> bytes:
    return b"".join(
        json.dumps({"messages": [user(f"q{i} " + "x" * (i % 97)), assistant(f"a{i}")], "id": i}).encode() + b"\n"
        for i in range(n)
    )  # fmt: skip


def test_processes_and_files() -> None:
    """The same bytes for any -j, compressed or not, in members, from files and a pipe; lines keep their order."""
    t, data = template(), many()
    def chat_of(*arguments: str, stdin: bytes = b"") -> bytes:  # without "from", which has the file's name
        out = chat(*arguments, stdin=stdin)[0]
        return re.sub(rb', "from": "[^"]*"', b"", out)

    want = chat_of("-q", "-j1", "-t", t, "--keep=id", stdin=data)
    assert [json.loads(x)["id"] for x in want.splitlines()] == list(range(15000))
    half = data.index(b"\n", len(data) // 2) + 1
    packed = {
        "plain": data,
        "gz": gzip.compress(data[: half + 5]) + gzip.compress(data[half + 5 :]),
        "xz": lzma.compress(data),
        "bz2": bz2.compress(data[:half]) + bz2.compress(data[half:]),
    }
    try:
        import zstandard

        z = zstandard.ZstdCompressor(level=1)
        packed["zst"] = z.compress(data[: half + 9]) + z.compress(data[half + 9 :])
    except ImportError:
        pass
    for name, content in packed.items():
        Path(path(name)).write_bytes(content)
        assert chat_of("-q", "-j3", "-t", t, "--keep=id", path(name)) == want, name
        if name != "plain":
            Path(path(name)).write_bytes(content[:-9])
            out, err = chat("-t", t, "-o", path("cut"), path(name), status=1)
            assert name in err and not os.path.exists(path("cut")), err
    Path(path("one")).write_bytes(data[: half - 1])
    Path(path("two")).write_bytes(data[half:])
    assert chat_of("-q", "-t", t, "--keep=id", path("one"), path("two")) == want
    chat("-q", "-t", t, "--keep=id", "-o", path("out"), "-", stdin=packed["gz"])
    assert re.sub(rb', "from": "[^"]*"', b"", Path(path("out")).read_bytes()) == want


def test_progress() -> None:
    """The share of the files' bytes, if they are files; nothing without a terminal."""
    Path(path("in.progress")).write_bytes(many(3000))
    given = ("-t", template(), path("in.progress"), "-j1")
    _, err = chat("--progress=always", *given)
    assert re.search(r"\rsluice-chat: \d+ %, 3000 dialogues, \d+ s", err), err
    assert "\r" not in chat(*given)[1] and "%," not in chat("--progress=always", "-t", template(), stdin=many(9))[1]


def test_given() -> None:
    """Switches of training, dialogues that begin with the assistant, arguments, lists, lost contents, and rejects."""
    t = template()
    dialogue = [user("a"), assistant("b", weight=False), user("c"), assistant("d", train=True)]
    dialogue += [user("e"), assistant("f", loss=False)]
    assert trained(chat("-t", t, stdin=lines({"messages": dialogue}))[0]) == [["d</>"]]
    for wrong in ({"weight": 0.25}, {"weight": "0"}, {"train": 1}, {"weight": 1, "training": False}, {"loss": 0}):
        _, err = chat("-t", t, stdin=lines({"messages": [user("a"), assistant("b", **wrong)]}), status=1)
        assert "message 2 of 2" in err and list(wrong)[-1] in err, err
    part = {"type": "text", "text": "b", "weight": 0}
    _, err = chat("-t", t, stdin=lines({"messages": [user("a"), assistant([part])]}), status=1)
    assert "weight is in a part" in err, err
    image = lines({"messages": [user([{"type": "image"}]), assistant("b")]})
    _, err = chat("-t", t, "--rejects", path("all"), stdin=image, status=1)
    assert "no dialogue was written" in err and json.loads(Path(path("all")).read_bytes())["reason"] == "not-text", err
    for record in {"messages": [user("<image>a"), assistant("b")], "images": ["x.png"]}, {
        "messages": [user("a"), assistant("b", audio={"id": 1})], "images": [], "image": None}:  # fmt: skip
        _, err = chat("-t", t, stdin=lines(record), status=1)
        assert f"has {'images' if record['images'] else 'audio'}, and only text" in err, err
    first = template("{% if messages[0].role == 'system' %}!{% endif %}" + TEMPLATE, "first.jinja")
    welcome = lines({"messages": [assistant("Welcome!"), user("q"), assistant("b")]})
    assert trained(chat("-t", first, stdin=welcome)[0]) == [["Welcome!</>", "b</>"]]
    two = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    out, err = chat("-t", t, "--prompt-hash=hash", stdin=lines({"messages": [user(two), assistant("c")]}))
    row = json.loads(out)
    assert row["text"] == "<user>ab</><assistant>c</>" and len(row["hash"]) == 32 and "is joined" in err, (row, err)
    out, _ = chat("-t", t, "--prompt-hash=hash", stdin=lines({"messages": [user("ab"), assistant("d")]}))
    assert json.loads(out)["hash"] == row["hash"]
    _, err = chat("-t", t, "--content=parts", stdin=lines({"messages": [user(two), assistant("c")]}), status=1)
    assert "written as data" in err, err
    older = {"function_call": {"name": "weather", "arguments": '{"city": "Delft"}'}}
    for more, what in (older, "its function_call"), ({"refusal": "That is not for me."}, "its refusal"):
        _, err = chat("-t", t, stdin=lines({"messages": [user("a"), assistant(None, **more)]}), status=1)
        assert f"message 2 of 2 (assistant): {what}" in err, err
    same = [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
    out, _ = chat("-t", t, stdin=lines({"system": "s", "conversations": same}))
    assert json.loads(out)["text"] == "<system>s</><user>a</><assistant>b</>", out
    for before in [], [{"role": "system", "content": "t"}]:
        _, err = chat("-t", t, stdin=lines({"system": "s", "messages": [*before, user("a"), assistant("b")]}))
        assert 'once: the field "system" beside "messages" is not read' in err, err
    called = {"from": "gpt", "value": "", "tool_calls": [{"function": {"name": "weather", "arguments": {}}}]}
    out, _ = chat("-t", t, stdin=lines({"conversations": [*same[:2], called]}))
    assert '"name": "weather"' in json.loads(out)["text"], out
    loses = TEMPLATE.replace("{{ m.content }}", "{{ m.content if m.role != 'developer' }}")
    lost = lines({"messages": [{"role": "developer", "content": "d"}, user("a"), assistant("b")]})
    _, err = chat("-t", template(loses, "loses.jinja"), stdin=lost, status=1)
    assert "message 1 of 3 (developer)" in err and "--role developer=system" in err, err
    out, _ = chat("-t", path("loses.jinja"), "--role=developer=system", stdin=lost)
    assert json.loads(out)["text"].startswith("<system>d</>")
    items = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    items += "{% for k, v in c.function.arguments|items %}{{ k }}={{ v }};{% endfor %}{% endfor %}</>{% endfor %}"
    items += "{% if add_generation_prompt %}<assistant>{% endif %}"
    call = {"type": "function", "function": {"name": "f", "arguments": '{"city": "Delft"}'}}
    record = lines({"messages": [user("a"), assistant(None, tool_calls=[call]), assistant("b")]})
    out, err = chat("-t", template(items, "items.jinja"), stdin=record)
    assert "<assistant>fcity=Delft;</>" in json.loads(out)["text"] and "parsed" in err, (out, err)


def test_errors() -> None:
    """Each is refused with its line and a reason, or counted; outputs are whole, or not there."""
    t = template("{% if messages[0].content == 'no' %}{{ raise_exception('not so') }}{% endif %}" + TEMPLATE)
    good = {"messages": [user("a"), assistant("b")]}
    bad = {
        "invalid-json": b'{"messages": [\n',
        "invalid-utf8": b'{"messages": "\xff"}\n',
        "not-an-object": b"[]\n",
        "lone-surrogate": lines({"messages": [user("\ud800"), assistant("b")]}),
        "template-error": lines({"messages": [user("no"), assistant("b")]}),
        "not-a-dialogue": lines({"messages": []}),
    }
    for line in bad.values():
        out, err = chat("-j1", "-t", t, stdin=lines(good) + b"\n" + line + lines(good), status=1)
        assert "standard input:3: " in err and "--on-error skip" in err and err.count("\n") == 1, err
        assert out.splitlines()[-1].startswith(b"sluice-chat failed") and not out.endswith(b"}\n")
    chat("-t", t, "-o", path("failed"), stdin=lines(good) + bad["invalid-json"], status=1)
    shapes: list[Any] = [
        {"text": "a"}, {"conversations": [{"from": "x", "value": "y"}]},
        {"conversations": [{"from": ["x"], "value": 1}]},
        {"conversations": [{"from": "gpt"}]}, {"messages": "a"},
        {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": None}]},
        {"instruction": "a", "output": None}, {"instruction": ["a"], "output": "b"},
        {"system": "s", "conversations": [{"from": "system", "value": "t"}, {"from": "gpt", "value": "b"}]},
        {"messages": [user("a"), 1]}, {"messages": None},
        {"prompt": 1, "completion": "a"}, {"instruction": "a", "output": "b", "history": [1]}, {**good, "tools": "["},
        {**good, "tools": [1]}, {**good, "tools": 1}, {**good, "chat_template_kwargs": {"messages": 1}},
        {**good, "chat_template_kwargs": 5}, {**good, "documents": "x"}, {"text": "ü" * 40000}, {"text": "ü" * 4000},
    ]  # fmt: skip
    cases = [*bad.items(), *(("not-a-dialogue", lines(shape)) for shape in shapes)]
    data = b"".join(line + lines(good) for _, line in cases)
    _, err = chat("-t", t, "-o", path("skipped"), "--rejects", path("rejects"), stdin=data)
    assert f" 1 dialogue, not-a-dialogue {len(shapes) + 1} dialogues, not-an-object 1 dialogue, " in err, err
    assert len(Path(path("skipped")).read_bytes().splitlines()) == len(cases)
    byte = 0
    rejects = Path(path("rejects")).read_bytes().splitlines()
    for k, ((reason, line), reject) in enumerate(zip(cases, rejects)):
        row = json.loads(reject)
        where = [row[key] for key in ("source", "line", "document", "reason")]
        assert where == ["standard input", 2 * k + 1, byte, reason], row
        assert base64.b64decode(row["raw"]) == line[:-1] and row["why"], row
        readable = reason != "invalid-utf8" and len(line) <= 1 << 16
        assert row.get("text") == (line[:-1].decode() if readable else None), row
        byte += len(line + lines(good))
    assert len(rejects) == len(cases)
    assert not [x for x in os.listdir(path()) if x.startswith("failed")]
    chat("-q", "-t", t, "--on-error=skip", stdin=lines(good) + b"x\n")
    for data in (b"", b"\n", lines({"messages": [user("a")]})):
        _, err = chat("-t", t, stdin=data, status=1)
        assert "no dialogue was written" in err
    _, err = chat("-t", template("{% for m in messages[::-1] %}{{ m.content }}.{% endfor %}", "odd.jinja"),
                  stdin=lines({"messages": [user("a"), assistant("b"), user("c")]}), status=1)  # fmt: skip
    assert all(w in err for w in ("odd.jinja", "message 2 of 3", "{% generation %}", "package trl")), err
    assert "--train last" not in err, err
    for wrong, word in (("{% for %}", "line 1"), ("{% include 'x' %}", "odd.jinja")):
        _, err = chat("-t", template(wrong, "odd.jinja"), stdin=lines(good), status=1)
        assert word in err and "Traceback" not in err, err


def limited(*arguments: str, stdin: bytes, mebibyte: int, seconds: float) -> tuple[int, str]:
    """Exit status and errors of sluice-chat, which must not take more memory or processor time."""
    Path(path("limited")).write_bytes(stdin)
    # By a small process, as a child's peak begins with the memory of its parent.
    code = "import resource, subprocess, sys; r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    code += "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(r.returncode, u[2], u[0] + u[1])"
    with open(path("limited"), "rb") as f:
        r = subprocess.run([sys.executable, "-c", code, *command(*arguments)], stdin=f, capture_output=True, env=ENV)
    status, kibibyte, used = r.stdout.split()
    text = r.stderr.decode()
    assert int(kibibyte) <= mebibyte << 10, f"{int(kibibyte) >> 10} MiB: {arguments} {text}"
    assert float(used) <= seconds, f"{float(used)} s: {arguments} {text}"
    return int(status), text


HOSTILE = {  # what is in a template: a word of the message
    "{{ (10**100000)|string }}": "bits",
    "{{ (2**65000 * 2**65000) % 7 }}": "bits",
    "{{ '%999999999d' % 1 }}": "memory",
    "{{ '%99999999d' % messages|length }}": "characters",
    "{{ '{:999999999}'.format(1) }}": "memory",
    "{{ messages|tojson(indent=10**9) }}": "memory",
    "{{ 'x'|center(999999999) }}": "memory",
    "{{ messages[0].content.replace('a', 'a' * 20000).replace('a', 'a' * 40000) }}": "memory",
    "{{ 'a' * 99999999 }}": "repeats",
    "{{ messages * 9999999 }}": "repeats",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "steps",
    "{% for i in range(99999) %}{{ 'a' * 9999 }}{% endfor %}": "memory",
    "{% for i in range(9999) %}{{ 'a' * 1999 }}{% endfor %}": "characters",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}": "steps",
    "{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}": "memory",
    "{% set ns = namespace(s=messages[0]|tojson) %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}":
        "memory",
}  # fmt: skip


def test_limits() -> None:
    """Templates of strangers take no more memory, time and output than is said, and each is a record's error: one of
    each kind skips a record (CHECK_FULL=1: all)."""
    seen: set[str] = set()
    record = lines({"messages": [user("a" * 99), assistant("b")]})
    for k, (text, word) in enumerate(HOSTILE.items()):
        t = template("{% if messages[0].content != 'no' %}" + text + "{% endif %}" + TEMPLATE, f"hostile-{k}.jinja")
        fine = lines({"messages": [user("no"), assistant("b")]})
        status, err = limited("-t", t, stdin=record, mebibyte=700, seconds=10)
        assert status == 1 and word in err and "standard input:1: " in err and err.count("\n") == 1, (text, err)
        if word not in seen or os.environ.get("CHECK_FULL"):
            out, err = chat("-t", t, "--on-error=skip", stdin=fine + record + fine)
            assert len(out.splitlines()) == 2 and "template-limit 1 dialogue" in err, (text, err)
        seen.add(word)
    # While it is compiled: constants are folded then.
    for text, word in (
        ("{{ 'x'|center(199999999) }}", "memory"), ("{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}", "compiled"),
        ("{% if a %}" * 999 + "{% endif %}" * 999, "compiled"),
    ):  # fmt: skip
        t = template(text + TEMPLATE, "hostile.jinja")
        status, err = limited("-t", t, stdin=record, mebibyte=700, seconds=10)
        assert status == 1 and word in err and err.startswith("sluice-chat: ") and err.count("\n") == 1, (text, err)
    # All lines of a block give much.
    t = template("{{ 'a' * 999999 }}" + TEMPLATE, "long.jinja")
    for jobs in ("-j1", "-j2"):
        status, err = limited("-t", t, jobs, stdin=b"\xef\xbb\xbf" + record * 300, mebibyte=400, seconds=30)
        assert status == 0 and "300 dialogues, 300" in err, err
    # What a process holds for other records, or to send, does not count.
    wide = json.dumps({"messages": [user("\U0001f600" * 15_000_000), assistant("b")]}, ensure_ascii=False).encode()
    for jobs in ("-j1", "-j2"):
        out, err = chat("-t", template(), jobs, "--on-error=skip", stdin=record + wide + b"\n" + record)
        assert len(out.splitlines()) == 3, (jobs, err)


def test_long_lines() -> None:
    """An array of all records, lines without an end, and compressed blank lines: little memory, and a message."""
    t = template()
    array = b"[" + b'{"messages":[{"role":"user","content":"a"}]},\n'.replace(b"\n", b" ") * 2_700_000 + b"{}]"
    for data in array, b"\xef\xbb\xbf  " + array[: 40 << 20] + b"\n", gzip.compress(array, 1):
        status, err = limited("-t", t, stdin=data, mebibyte=256, seconds=1)
        assert status == 1 and "standard input:1: a JSON array" in err and err.count("\n") == 1, err
    good, long = lines({"messages": [user("a"), assistant("b")]}), b'{"messages": "' + b"x" * (70 << 20) + b'"}\n'
    status, err = limited("-t", t, stdin=good + long, mebibyte=256, seconds=2)
    assert status == 1 and "standard input:2: a record of more than" in err, err
    out, err = chat("-t", t, "--rejects", path("long"), stdin=good + long + good + long[:-1])
    assert len(out.splitlines()) == 2 and "too-long 2 dialogues" in err, err
    rows = [json.loads(row) for row in Path(path("long")).read_bytes().splitlines()]
    want = [(2, len(good)), (4, 2 * len(good) + len(long))]
    assert [(row["line"], row["document"]) for row in rows] == want, [(row["line"], row["document"]) for row in rows]
    blank = b"\n" * (256 << 20)
    packed = [gzip.compress(blank, 6), bz2.compress(blank), lzma.compress(blank, preset=1)]
    with suppress(ImportError):
        import zstandard

        packed.append(zstandard.ZstdCompressor().compress(blank))
    for data in packed:
        status, err = limited("-t", t, stdin=data, mebibyte=256, seconds=6)
        assert status == 1 and "no dialogue was written" in err, (status, err)


def test_usage() -> None:
    t = template()
    Path(path("in.jsonl")).write_bytes(many(3))
    before = Path(path("in.jsonl")).read_bytes()
    for wrong in ("", "-t", "--train=some", "-j-1", "--keep=text", "--set=x", "--date=today", "--nothing"):
        _, err = chat(*([wrong] if wrong == "-t" else ["-t", t, wrong] if wrong else []), status=2)
        assert err.startswith("sluice-chat: ") and err.count("\n") == 1, err
    os.symlink(path("in.jsonl"), path("link"))
    Path(path("list.json")).write_text("[]")
    given = path("in.jsonl")
    for arguments in (
        ("-t", t, path("absent")), ("-t", path("absent"), given), ("-t", path("list.json"), given), ("-t", t, path()),
        ("-t", t, "-o", path("link"), given), ("-t", t, "-o", t, given), ("-t", t, "-o", path("no", "x"), given),
        ("-t", t, "-o", path("new"), "--rejects", path("new"), given), ("-t", path(), given),
        ("-t", t, "--template=absent", given),
    ):  # fmt: skip
        _, err = chat(*arguments, status=1)
        assert err.startswith("sluice-chat: ") and err.count("\n") == 1 and "Traceback" not in err, err
    assert Path(path("in.jsonl")).read_bytes() == before
    full = subprocess.run(command("-q", "-t", t, path("in.jsonl"), "-o", "/dev/full"), capture_output=True, env=ENV)
    assert full.returncode == 1 and b"No space left" in full.stderr
    assert chat("-V")[0].startswith(b"sluice-chat ") and chat("-h")[0] == chat("--help")[0]


def children(of: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        if int(fields.split()[1]) == of:
            found.append(int(name.split()[0]))
    return found


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_stopped() -> None:
    """A signal leaves no file and no process; without its parent no worker stays."""
    t = template()
    for number, status in ((signal.SIGTERM, 1), (signal.SIGINT, 1), (signal.SIGKILL, -9)):
        p = subprocess.Popen(
            command("-q", "-j2", "-t", t, "-o", path("stopped")), stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
        )
        assert p.stdin and p.stderr
        p.stdin.write(many(40000))
        p.stdin.flush()
        end = time.time() + 60
        while len(workers := children(p.pid)) < 2:
            assert time.time() < end, "no workers"
            time.sleep(0.05)
        p.send_signal(number)
        assert p.wait(60) == status, p.stderr.read()
        p.stdin.close()
        p.stderr.close()
        while any(alive(w) for w in workers):
            assert time.time() < end, f"workers stay after {number}"
            time.sleep(0.05)
        assert not os.path.exists(path("stopped"))
        assert number == signal.SIGKILL or not [x for x in os.listdir(path()) if "stopped" in x]


if __name__ == "__main__":
    common.main(globals())
