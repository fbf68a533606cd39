"""Texts that tokenizers are compared on. Each function yields documents (str)."""
import base64
import glob
import json
import os
import random
import subprocess
import unicodedata

CONTEXTS = ("%s", "a%sb ", " %s%s", "'%s", "A%s\n", "1%s2", "a\u0301%s", " \t%s!")


def assigned(c):
    return unicodedata.category(chr(c)) not in ("Cn", "Co")


def code_points(every):
    """Every code point but the surrogates, alone and between other characters; of those that are unassigned in Python's
    Unicode, or private, only one in `every`."""
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (every == 1 or assigned(c) or c % every == 7)]
    for k, i in enumerate(range(0, len(chars), 1500)):
        # Who takes every fourth document has each character in two of the contexts, and each context.
        for around in CONTEXTS[k % 8:] + CONTEXTS[:k % 8]:
            yield "".join(around.replace("%s", c) for c in chars[i:i + 1500])


def soup():
    """Random bytes, repaired to UTF-8."""
    rng = random.Random(1)
    for i in range(3000):
        n = rng.choice((1, 5, 40, 300, 3000))
        yield rng.randbytes(n).decode("utf-8", rng.choice(("replace", "ignore")))


SETS = (" \n\r\ta", " \u00a0\u3000\u2028\x85\x1c\u180e\u200b a1!", "aA1 '\n", "'sStTmMdDlLvVrReE\u017f\u212a a",
        "aA\u0301\u4e2d\u01c5\u02b0 !1'\n/", "  !?/\\\r\n\n", "0123\u0661\u00bd\u2167 ,.a",
        "\u0e01\u0e34\u093f\u0915\u094d\u200d \u0300A", "<|endoftext|>| \n", "\U0001f600\ufe0f\u200da \U0001f1e6'",
        "\u4e2d\u3007\u2e80\u3005\U00016ff0\U00016fe2\u9fa6\u3400\U00020000aA 1\u0301'", "\u3042\u3099\u30fb\u30a0\u3040\u309b\u4e2d\u9fa5 a1!\n",
        "\x01\u0378\u200b\ue000\ufdd0a\u0301 !1\n\u30fb", "\u2581 a\u2581\n1", "\u00e9e\u0301\u1100\u1161\u11a8\uac00\u0323\u0307sS")


def white():
    """Short texts over few characters: every split's corner cases."""
    rng = random.Random(2)
    for k in range(15000):
        yield "".join(rng.choices(SETS[k % len(SETS)], k=rng.choice((1, 2, 3, 4, 8, 30))))


def long_runs():
    for s in ("a", " ", "\n", "\r\n", "\t", "1", "!", "A", "aA", "\u4e2d", "\u0301", "\u00a0", "=-", " a", "ab ", "0x",
              "'s", "\U0001f600", "qz", "x1", "\u3042", "\x01", "\u2581", "a\u0301"):
        for n in (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 5000):
            yield s * n
            yield "x" + s * n + "y"
            yield s * n + " \n"
    rng = random.Random(3)
    yield base64.b64encode(rng.randbytes(60000)).decode()
    yield "".join(rng.choices("ACGT", k=60000))
    yield "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=60000))


CONTRACTIONS = ["'s", "'S", "'t", "'re", "'RE", "'rE", "'ve", "'m", "'ll", "'LL", "'d", "'\u017f", "'\u212a", "'st",
                "it's", "IT'S", "we'reX", "a''s", " 's", "x'\u017fy", "''ll", "'l", "'r", "'", "don't've"]

WORDS = """the cat_sat HTTPServer getElementById 3.14159 1234567 \ufb01ne naïve façade Straße ΑΒΓ привет мир 你好世界
こんにちは 안녕하세요 สวัสดี नमस्ते مرحبا שלום e\u0301 A\u030a \u1100\u1161\u11a8 \u2126 \ufb01 \u0958 👩‍👩‍👧 🇫🇷 ½ Ⅷ x² カタカナ・ナカ
２０２６ 〇一二 \u24b6x \u00b2\u00b9 _a_ #include <stdio.h> https://example.org/a?b=c""".split()


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
    """Documents of real text, as many bytes of each file as fit; a file that has less leaves its share to the others."""
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl.zst")), key=os.path.getsize)
    for k, f in enumerate(files):
        left = share = n_byte // (len(files) - k)
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
        n_byte -= share - left
