#!/usr/bin/env python3
"""Masks from spans beside char_to_token of Hugging Face's tokenizers, with the vocabulary of GPT-2.

What it proves: a token is trained on if and only if it is between the tokens that char_to_token gives for the first and the
last character of a span; where it gives none, because trim_offsets takes white space off a token, the record is rejected as
trimmed-span, and no other is. With each kind of post-processor, with added tokens of white space, and with those that take
in the white space beside them, all of which occur in the text.
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
VOCAB = os.path.abspath(os.path.join(os.environ.get("O", "build"), "judges/vocab/gpt2.json"))
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
N = 2000


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


def records(rng, added):
    parts = PARTS + [text for text, _ in added]
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


def judge(base, post, added, rng):
    """(records that differ, rejected ones)"""
    t = copy.deepcopy(base)
    t["post_processor"] = post
    n = max(list(t["model"]["vocab"].values()) + [a["id"] for a in t["added_tokens"]]) + 1
    for i, (text, flags) in enumerate(added):
        t["added_tokens"].append({"id": n + i, "content": text, **{f: f in flags.split() for f in FLAGS}})
    with open("t.json", "w") as f:
        json.dump(t, f)
    lines = [(json.dumps({"text": text, "spans": spans}) + "\n", text, spans) for text, spans in records(rng, added)]
    with open("t.jsonl", "w") as f:
        f.writelines(line for line, _, _ in lines)
    reference, got, at, differ, rejected = Tokenizer.from_file("t.json"), ours(), 0, 0, 0
    for line, text, spans in lines:
        e = reference.encode(text, add_special_tokens=False)
        mask = theirs(e, spans)
        rejected += mask is None
        differ += got.get(at) != ((e.ids, mask) if mask else "trimmed-span")
        at += len(line)
    return differ, rejected


def main():
    os.environ["SLUICE_CACHE_DIR"] = ""
    failed = False
    with open(VOCAB) as f:
        base = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, post, added in KINDS:
            differ, rejected = judge(base, post, added, random.Random(name))
            trims = post is not None and "false" not in name
            good = not differ and (rejected > 0) == trims
            failed |= not good
            print("%s spans: %s: %d records, %d differ, %d rejected" % ("ok" if good else "not ok", name, N, differ, rejected))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
