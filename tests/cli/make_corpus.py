#!/usr/bin/env python3
"""Writes JSONL for the command-line cases: make_corpus.py FILE BYTES SEED

Deterministic (its own generator, no `random`), so that the tests mean the same everywhere.
Documents of very different lengths, exact repeats, several alphabets, escapes, an empty text.
"""
import json
import sys

WORDS = ("the of and water stream token length bucket sequence power two document piece shuffle pack "
         "don't we'll 12 3456 2026 x=y; if(a[i]>0){return;} über naïve straße Привет мир поток "
         "数据 序列 訓練 データ 한국어 مرحبا שלום हिन्दी ελληνικά 🙂 👩‍🔬 e\u0301 \u00a0 \t  \n \n\n // /* */ "
         "<|endoftext|> </s> \u2028 \u0001").split(" ")


def main(path, n_byte, seed):
    state = seed * 2 + 1

    def draw(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % n

    written, number, texts = 0, 0, []
    with open(path, "w", encoding="utf-8") as f:
        while written < n_byte:
            number += 1
            if number % 17 == 0 and texts:
                text = texts[draw(len(texts))]
            elif number == 5:
                text = ""
            else:
                n = 1 + draw(1 << (1 + draw(12)))
                text = " ".join(WORDS[draw(len(WORDS))] for _ in range(n))
                if len(texts) < 200:
                    texts.append(text)
            line = json.dumps({"id": "doc-%d" % number, "domain": "web" if draw(3) else "code",
                               "text": text}, ensure_ascii=draw(2) == 0) + "\n"
            f.write(line)
            written += len(line.encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
