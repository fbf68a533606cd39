# shellcheck shell=bash disable=SC2154
# parts.sh - DESIGN.md, Same bytes: the streams of parts 0…N-1, concatenated, are a legal stream with the records, their
# order and the checksum of one run; the parts of a job have each document once.
# check-more: whole

have tokenize inspect || return 0
mkdir in
for i in 1 2 3 4 5; do corpus in/$i.jsonl $((i * 90000)) $((i + 40)); done
zstd -q --rm in/3.jsonl
tokenize -t bytes --id-field id -o whole.tks in
for n in 1 2 3 7; do
    i=0
    rm -f cat.tks
    while [ $i -lt $n ]; do
        tokenize -t bytes --id-field id -f --part $i/$n -o part.tks in || not_ok "part $i/$n"
        cat part.tks >>cat.tks
        i=$((i + 1))
    done
    inspect --records whole.tks | sha >a
    inspect --records cat.tks | sha >b
    same "$n parts: records and order" "$(cat a)" "$(cat b)"
    inspect --json whole.tks >a
    inspect --json cat.tks >b
    for key in checksum documents sequences segments tokens; do
        same "$n parts: $key" "$(json a "d['$key']")" "$(json b "d['$key']")"
    done
    status "$n parts: inspect --verify" 0 inspect --verify cat.tks
    check "$n parts: the independent reader agrees" tokstream --check --need-all cat.tks
done
i=0
most=0
while [ $i -lt 3 ]; do
    n=$(tokenize -t bytes --part $i/3 in | inspect --json - | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["tokens"])')
    [ "$n" -le "$most" ] || most=$n
    i=$((i + 1))
done
inspect --json whole.tks >a
check "no part of 3 has more than two thirds" test "$most" -lt $(($(json a 'd["tokens"]') * 2 / 3))

# One large file of JSON lines is cut anywhere, a compressed one is not.
for i in 1 2 3 4 5 6; do cat in/5.jsonl; done >one.jsonl
for i in 0 1; do
    tokenize -t bytes --part $i/2 --stats 'one.{part}' -o 'one.{part}.tks' one.jsonl
    zstd -q -c one.jsonl >one.zst.jsonl.zst
    tokenize -t bytes --part $i/2 --stats 'zst.{part}' -o 'zst.{part}.tks' one.zst.jsonl.zst
done
check "two parts of one file are alike" test "$("$PYTHON" -c '
import json
a, b = (json.load(open("one.%d" % i)) for i in (0, 1))
print(abs(a["tokens"]["out"] - b["tokens"]["out"]) < 0.1 * a["tokens"]["out"] and b["input_bytes"] < 0.9 * '"$(wc -c <one.jsonl)"')')" = True
zst=$(json zst.0 'd["documents"]["out"]')/$(json zst.1 'd["documents"]["out"]')
check "one share has all of a compressed file" shell 'case $1 in 0/[1-9]* | [1-9]*/0) ;; *) false ;; esac' sh "$zst"
same "bytes that were read of it add up" "$(wc -c <one.jsonl)" "$(($(json one.0 'd["input_bytes"]') + $(json one.1 'd["input_bytes"]')))"

# As many compressed files as parts: one each.
for i in 0 1 2 3 4 5; do corpus like-$i.jsonl $((30000 + i * 7919 % 900)) $i && zstd -q --rm like-$i.jsonl; done
for i in 0 1 2 3 4 5; do tokenize -t bytes --part $i/6 --stats 'like.{part}' like-?.jsonl.zst >like.tks; done
same "files of one size are one a part" '1 1 1 1 1 1' "$(for i in 0 1 2 3 4 5; do json like.$i 'd["sources"]'; done | xargs)"

status "--part N/N is a usage error" 2 tokenize -t bytes --part 3/3 in -o x
status "--part 1 is a usage error" 2 tokenize -t bytes --part 1 in -o x
SLURM_ARRAY_TASK_ID=1 tokenize -t bytes --part auto/3 -o auto.tks in
tokenize -t bytes -f --part 1/3 -o part.tks in
same "--part auto/3 takes the array task's number" "$(sha part.tks)" "$(sha auto.tks)"
SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 tokenize -t bytes --part auto/3 -o auto.tks in
same "N is not taken from the scheduler" "$(sha part.tks)" "$(sha auto.tks)"

# Garbage, and streams that do not mix.
{ cat whole.tks; echo garbage; } >bad.tks
status "garbage behind the end is refused" 1 inspect --verify bad.tks
tokenize -t builtin -o other.tks in/1.jsonl
cat whole.tks other.tks >bad.tks
status "streams with different tokenizers do not mix" 1 inspect --verify bad.tks
have dedup || return 0
status "nor as two inputs" 1 dedup -o x.tks whole.tks other.tks
check "and no output is left" test ! -e x.tks
