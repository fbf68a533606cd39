#!/usr/bin/env python3
"""Masks from spans beside char_to_token of Hugging Face's tokenizers, with the vocabulary of GPT-2.

What it proves: a token is trained on if and only if it is between the tokens that char_to_token gives for the first and the
last character of a span; where it gives none, because trim_offsets takes white space off a token, the record is rejected as
trimmed-span, and no other is. With each kind of post-processor, with added tokens of white space, and with those that take
in the white space beside them, all of which occur in the text. With normalizers that change the text, and with the
vocabularies of Llama 2 and Gemma, whose steps do; there a character without a token is changed-text, and so are all texts
that other steps change.
"""
import copy
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
VOCAB = os.path.abspath(os.path.join(os.environ.get("O", "build"), "judges/vocab"))
PARTS = [" ", " ", "  ", "   ", "    ", "\n", "\n\n", "\t", "the", " word", "x", ",", "\u00e9", "\u65e5\u672c", "\U0001f600", "\u00a0",
         "\u3000", "<|endoftext|>"]
# Added tokens: their text, and which flags are set.
WHITE = [(text, "") for text in ("   ", "    ", "\n\n", "\u3000", "\t ")]
STRIP = [("<|left|>", "lstrip special"), ("<|right|>", "rstrip special"), ("<|both|>", "lstrip rstrip special"), ("<l>", "lstrip"),
         ("<r>", "rstrip normalized"), ("<n>", "lstrip rstrip normalized"), ("<w>", "rstrip single_word"), (" <s> ", "lstrip rstrip")]
# White ones are all "lstrip": the reference panics where another one stands in white space that the token before it strips;
# and all are "rstrip", or no token is.
LEFT_WHITE = [("<|left|>", "lstrip special"), (" <s> ", "lstrip"), ("\n\n", "lstrip"), ("  ", "lstrip special")]
BOTH_WHITE = STRIP + [("\n\n", "lstrip rstrip"), ("\t", "lstrip rstrip special")]
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
N = 2000 if os.environ.get("JUDGES_FULL") else 500  # records of each kind

# Characters that the normal forms compose, take apart or put in order, and one of each kind that they change alone.
FORMED = ["e\u0301", "\u00e9", "e\u0302\u0323", "e\u0323\u0302\u0301", "q\u0307\u0323", "\u0301", "\u212b", "\u0958", "a\u0344", "\ufb03",
          "\u1100\u1161\u11a8", "\uac00\u11a8", "\uac01", "\u2126", "\u00bd", "\u0344", "\u0f77", "\u1e9b\u0323", "\u3000", "\u00a0", "a\u0328\u0304",
          "\u1100\u1161\u11a8q", "\uac01q"]
PLAIN = ["ab", "a", "b", "\u2581", "\u2581a", "\u00e9", "<s>", "</s>", "[INST]"]


def byte_level(trim, prefix):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": True}


ROBERTA = {"type": "RobertaProcessing", "sep": ["a", 64], "cls": ["b", 65], "trim_offsets": True, "add_prefix_space": False}
KINDS = [("no post-processor", None, ()), ("trim_offsets false", byte_level(False, True), ()),
         ("trim_offsets", byte_level(True, False), ()), ("trim_offsets, add_prefix_space", byte_level(True, True), ()),
         ("trim_offsets, added tokens", byte_level(True, False), WHITE), ("RobertaProcessing", ROBERTA, ()),
         ("a Sequence", {"type": "Sequence", "processors": [byte_level(True, True)]}, WHITE), ("stripping tokens", None, STRIP),
         ("white tokens, left", None, LEFT_WHITE), ("white tokens, both", None, BOTH_WHITE),
         ("trim_offsets, white tokens, left", byte_level(True, False), LEFT_WHITE),
         ("trim_offsets, white tokens, both", byte_level(True, False), BOTH_WHITE),
         ("trim_offsets, add_prefix_space, white tokens, both", byte_level(True, True), BOTH_WHITE)]


def sequence(*steps):
    return {"type": "Sequence", "normalizers": steps}


def replace(a, b, kind="String"):
    return {"type": "Replace", "pattern": {kind: a}, "content": b}


def metaspace(scheme):
    return {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}}


FORM = [{"type": form} for form in ("NFC", "NFD", "NFKC", "NFKD")]
PREPEND = {"type": "Prepend", "prepend": "<a "}
NO_TRIM = {"post_processor": None}
# Of which vocabulary, what is changed in it, and whether characters may lack a token.
CHANGED = [("gpt2 " + form["type"], "gpt2.json", {"normalizer": form, **NO_TRIM}, "C" in form["type"]) for form in FORM] + [
    ("gpt2 NFC, trim_offsets", "gpt2.json", {"normalizer": FORM[0], "post_processor": byte_level(True, False)}, True),
    ("gpt2 NFD, trim_offsets", "gpt2.json", {"normalizer": FORM[1], "post_processor": byte_level(True, True)}, True),
    ("gpt2 NFC, Prepend", "gpt2.json", {"normalizer": sequence(FORM[0], PREPEND), **NO_TRIM}, True),
    ("gpt2 Prepend, NFD", "gpt2.json", {"normalizer": sequence(PREPEND, FORM[1]), **NO_TRIM}, False),
    ("gpt2 Replace", "gpt2.json", {"normalizer": sequence(replace("a", "\u00e9x"), replace("\u00e9", "e")), **NO_TRIM}, False),
    ("gpt2 Replace by nothing, of two", "gpt2.json", {"normalizer": sequence(replace("\u00e9", ""), replace(" w", "ww")), **NO_TRIM}, True),
    ("gpt2 Replace of what Prepend puts", "gpt2.json", {"normalizer": sequence(PREPEND, replace("<a", "y"), replace("a ", "z")), **NO_TRIM}, True),
    ("gpt2 Replace by a pattern", "gpt2.json", {"normalizer": replace("[a-w]+|\\s{2,}", "w\u00e9", "Regex"), **NO_TRIM}, True),
    ("llama2", "llama2", {}, False), ("llama2, Prepend last", "llama2", {"normalizer": "turned"}, False),
    ("llama2, NFKC first", "llama2", {"normalizer": "formed"}, True), ("gemma", "gemma", {}, False),
    ("llama2 Metaspace always", "llama2", metaspace("always"), False), ("llama2 Metaspace first", "llama2", metaspace("first"), False),
    ("llama2 Metaspace never", "llama2", metaspace("never"), False)]
STRAY = [(" ab", "lstrip"), ("\uac01q", "normalized"), ("<m>", "normalized special"), ("<k>", "special")]


def records(rng, added, more=()):
    parts = PARTS + [text for text, _ in added] + 2 * list(more)
    for _ in range(N):
        text = "".join(rng.choice(parts) for _ in range(rng.randrange(1, 30)))
        spans = [sorted(rng.randrange(len(text) + 1) for _ in range(2)) for _ in range(rng.randrange(1, 4))]
        yield text, [s for s in spans if s[0] < s[1]] or [[0, len(text)]]


def theirs(encoding, spans):
    """The mask; None where a character has no token."""
    mask = [0] * len(encoding.ids)
    for begin, end in spans:
        first, last = encoding.char_to_token(begin), encoding.char_to_token(end - 1)
        if first is None or last is None:
            return None
        mask[first:last + 1] = [1] * (last + 1 - first)
    return mask


def ours():
    """By document: its ids and mask, or why it was rejected."""
    run = {"stdout": subprocess.PIPE, "check": True}
    subprocess.run([BIN + "/tokenize", "-q", "-t", "t.json", "--no-eos", "--special", "parse", "--spans-field", "spans", "--rejects",
                    "r.jsonl", "t.jsonl", "-f", "-o", "t.tks"], **run)
    out = {}
    for line in subprocess.run([BIN + "/inspect", "--records", "t.tks"], **run).stdout.splitlines():
        q = json.loads(line)
        out[q["segments"][0]["document"]] = q["tokens"], q["mask"]
    with open("r.jsonl") as f:
        out.update((q["document"], q["reason"]) for q in map(json.loads, f))
    return out


def judge(base, changes, added, rng, more=(), why="trimmed-span"):
    """(records that differ, rejected ones)"""
    t = copy.deepcopy(base)
    t.update(changes)
    n = max(list(t["model"]["vocab"].values()) + [a["id"] for a in t["added_tokens"]]) + 1
    for i, (text, flags) in enumerate(added):
        t["added_tokens"].append({"id": n + i, "content": text, **{f: f in flags.split() for f in FLAGS}})
    with open("t.json", "w") as f:
        json.dump(t, f)
    lines = [(json.dumps({"text": text, "spans": spans}) + "\n", text, spans) for text, spans in records(rng, added, more)]
    with open("t.jsonl", "w") as f:
        f.writelines(line for line, _, _ in lines)
    reference, got, at, differ, rejected = Tokenizer.from_file("t.json"), ours(), 0, 0, 0
    for line, text, spans in lines:
        e = reference.encode(text, add_special_tokens=False)
        mask = theirs(e, spans) if e.ids else []
        rejected += mask is None
        differ += (got.get(at) not in why) if mask is None else got.get(at) != ((e.ids, mask) if any(mask) else None)
        at += len(line)
    return differ, rejected


def main():
    os.environ["SLUICE_CACHE_DIR"] = ""
    failed = False
    with open(VOCAB + "/gpt2.json") as f:
        base = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, post, added in KINDS:
            differ, rejected = judge(base, {"post_processor": post}, added, random.Random(name))
            trims = post is not None and "false" not in name
            good = not differ and (rejected > 0) == trims
            failed |= not good
            print("%s spans: %s: %d records, %d differ, %d rejected" % ("ok" if good else "not ok", name, N, differ, rejected))
        for name, vocab, changes, lost in CHANGED:
            with open(os.path.join(VOCAB, vocab if vocab.endswith(".json") else vocab + "/package/models/tokenizer.json")) as f:
                base = json.load(f)
            steps = (base["normalizer"] or {}).get("normalizers")
            named = {"turned": lambda: sequence(*steps[::-1]), "formed": lambda: sequence(FORM[2], *steps)}
            if changes.get("normalizer") in ("turned", "formed"):
                changes = {"normalizer": named[changes["normalizer"]]()}
            for added in (), STRAY:
                differ, rejected = judge(base, changes, added, random.Random(name), FORMED + PLAIN, ("changed-text", "trimmed-span"))
                good = not differ and (rejected > 0) == lost
                failed |= not good
                print("%s spans: %s, %d added tokens: %d records, %d differ, %d rejected" %
                      ("ok" if good else "not ok", name, len(added), N, differ, rejected))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
