#!/usr/bin/env python3
"""Compares our token ids with those of `tokenizers`: normalizers, and SentencePiece's BPE.

    tests/judges/ids_tierb.py [the options of ids.py]

The texts, and how they are compared, are those of ids.py.
"""
import json
import os
import random
import sys
import unicodedata

import ids
from parts.vocabularies import Json, Writer, byte_level, gpt2_json

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}


def marks():
    """Marks in any order on letters of any kind; Hangul in parts."""
    rng = random.Random(7)
    mark = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
    base = [chr(c) for c in range(0x110000) if unicodedata.decomposition(chr(c))] + list("aeioucs \u0915\u304b\u05d0")
    jamo = [chr(c) for c in list(range(0x1100, 0x1113)) + list(range(0x1160, 0x1177)) + list(range(0x11A6, 0x11C4))] + ["\uac00", "\uac01"]
    for _ in range(6000):
        yield "".join(rng.choice((rng.choice(base), "", "a")) + "".join(rng.choices(mark, k=rng.choice((0, 1, 1, 2, 3, 5, 40))))
                      for _ in range(rng.choice((1, 2, 6))))
    for _ in range(2000):
        yield "".join(rng.choices(jamo, k=rng.choice((2, 3, 5, 9))))


def blocks():
    """U+2581 and spaces in every order, with what has no character of its own."""
    rng = random.Random(9)
    for _ in range(6000):
        yield "".join(rng.choices(" \u2581\u2580\u2582ab.\n\t\u00a0\u20ac\U0001f600\U0001f9ff\u4e2d\u9fa5\u0378<0A>x\x00\x7f\u0301", k=rng.choice((1, 2, 3, 6, 20))))
    yield from ("<0x0A>", "<0xE2><0x96>", "<unk>", "<s></s>", " <0x41>A", "\ue000" * 50, "\U0010ffff\u2581" * 50)


def capitals():
    rng = random.Random(8)
    chars = [chr(c) for c in range(0x20000) if chr(c).isupper() or chr(c).istitle()] + list("aA \u03a3\u0130\u0307")
    for _ in range(3000):
        yield "".join(rng.choices(chars, k=rng.choice((1, 2, 5, 20))))


def words(first, *tokens):
    return [dict(FLAGS, id=first + i, content=c, **{f: True for f in on.split()}) for i, (c, on) in enumerate(tokens)]


def replace(pattern, content, regex=False):
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": pattern}, "content": content}


def normalizers(vocab):
    """GPT-2's merges behind every normalizer."""
    base = json.load(open(gpt2_json(vocab)))
    end = base["added_tokens"][0]
    seq = lambda *s: {"type": "Sequence", "normalizers": list(s)}
    t = lambda name, **more: dict(more, type=name)
    added = words(50257, ("Caf\u00e9", "normalized"), ("<X>", "normalized special"), ("\ufb01x", "normalized"), ("u\u0308", ""), ("I\u0307", "normalized"))
    made = {
        "nfc": t("NFC"), "nfd": t("NFD"), "nfkc": t("NFKC"), "nfkd": t("NFKD"), "lowercase": t("Lowercase"),
        "strip-accents": seq(t("NFD"), t("StripAccents")), "nmt": t("Nmt"),
        "strip": t("Strip", strip_left=True, strip_right=True), "strip-left": t("Strip", strip_left=True, strip_right=False),
        "prepend": t("Prepend", prepend="__"), "replace": replace("a", "ab"), "replace-regex": replace(" {2,}|[0-9]", "_", True),
        "sequence": seq(t("NFKC"), seq(t("Lowercase"), replace("\n", " ")), replace("\\s+", " ", True), t("Strip", strip_left=False, strip_right=True)),
        "empty-sequence": seq(),
        "accents-lower": seq(t("Strip", strip_left=True, strip_right=True), t("NFKD"), t("StripAccents"), t("Lowercase"), t("Prepend", prepend=" ")),
        "byte-level": seq(t("NFC"), t("ByteLevel")),
    }
    writer = Writer(vocab, base)
    for name, normalizer in made.items():
        yield writer.write("norm-" + name, normalizer, None if name == "byte-level" else byte_level(False, True), [end] + added)


def metaspaces(vocab):
    """Llama-2's merges as other files have them: prefixes, pre-tokenizers, added tokens."""
    base = json.load(open(vocab + "/llama2/package/models/tokenizer.json"))
    own = base["added_tokens"]
    seq = lambda *s: {"type": "Sequence", "normalizers": list(s)}
    meta = lambda scheme, split, **more: dict(more, type="Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split)
    fold, front = replace(" ", "\u2581"), {"type": "Prepend", "prepend": "\u2581"}
    # Phi-3's and CodeLlama's, and traps: tokens with spaces, with U+2581, normalized ones.
    more = words(32000, ("<|user|>", "special rstrip"), ("<|a|>", "rstrip"), ("\u2581<PRE>", "special"), ("  ", ""), ("<n>", "normalized"),
                 ("a b", "normalized"), ("\n", "special normalized"), ("\u2581\u2581x", ""), ("caf\u00e9", "normalized single_word"))
    made = {
        "meta-first": (None, meta("first", False), own), "meta-always": (None, meta("always", False), own),
        "meta-never": (None, meta("never", False), own), "meta-split": (None, meta("always", True), own),
        "meta-first-split": (None, meta("first", True), own), "meta-legacy": (None, {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}, own),
        "meta-first-added": (None, meta("first", False), own + more), "meta-always-added": (None, {"type": "Sequence", "pretokenizers": [meta("always", True)]}, own + more),
        "prepend-added": (seq(front, fold), None, own + more), "fold-meta": (fold, meta("first", False), own),
        "nfkc-fold": (seq({"type": "NFKC"}, front, fold), None, own + more), "nfkc-meta": ({"type": "NFKC"}, meta("first", True), own),
        "no-fold": ({"type": "NFC"}, None, own), "strip-fold": (seq({"type": "Strip", "strip_left": True, "strip_right": True}, replace(" {2,}", " ", True), front, fold), None, own),
    }
    writer = Writer(vocab, base)
    for name, how in made.items():
        yield writer.write("sp-" + name, *how)


def vocabularies(vocab):
    """GPT-2 and Llama-2 behind other components; the vocabularies themselves are in ids.py."""
    for path in normalizers(vocab):
        yield Json(os.path.basename(path), path, short=True)
    if os.path.exists(vocab + "/llama2"):
        for path in metaspaces(vocab):
            yield Json(os.path.basename(path), path, short=True)


def main():
    args = ids.arguments()
    texts = ids.kinds(args) + [ids.Texts(f.__name__, list(f())) for f in (marks, capitals, blocks)]
    return ids.run(args, vocabularies(args.vocab), texts)


if __name__ == "__main__":
    sys.exit(main())
