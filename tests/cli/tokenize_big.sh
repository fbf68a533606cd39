# shellcheck shell=sh disable=SC2154
# tokenize_big.sh - documents that all threads encode together: the same bytes as one thread.

have tokenize || return 0
# Megabytes in which words, line ends, numbers and other scripts meet in many ways.
"$PYTHON" -c '
import json, random
random.seed(5)
w = ["the", "The", "of", "don\u0027t", "x1", "12345", "--", "// a", "(b)", "café", "文字", "。", "a.b", "  ", "\t",
     "é", "WORD", "_", "/"]
s = [" ", " ", " ", "\n", "\n\n", "\r\n", "\n ", ""]
t = "".join(random.choice(w) + random.choice(s) for _ in range(600000))
open("big.txt", "w", encoding="utf-8", newline="").write(t)
with open("big.jsonl", "w") as f:
    for text in ("small", t, "small", t[::-1], "x" * 2000000, "small", ""):
        print(json.dumps({"text": text}), file=f)'
for t in builtin bytes; do
    for f in big.txt big.jsonl; do
        tokenize -q -t $t -T1 -o one.tks $f || not_ok "-t $t -T1 $f"
        for o in "-T2" "-T2 -M 96M" "-T5 -M 128M"; do
            # shellcheck disable=SC2086 # options
            tokenize -q -t $t $o -o many.tks $f || not_ok "-t $t $o $f"
            same "-t $t $o $f" "$(sha one.tks)" "$(sha many.tks)"
        done
    done
done
