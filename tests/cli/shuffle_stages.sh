# shellcheck shell=bash disable=SC2154
# shuffle_stages.sh - shuffle --stage: the records of one run in order, for any number of parts and ranges; refused
# options; damaged and foreign files; files without some of their records. Sets: shuffle_stages_shards.sh; kill -9:
# shuffle_stages_killed.sh.

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shuffle_stages.py" streams refused damaged
if "$PYTHON" -c 'import xxhash' 2>/dev/null; then
    "$PYTHON" "$top/tests/cli/shuffle_stages.py" forged
else
    skip "forged files: needs the package xxhash"
fi

# A gather reads the vocabulary of one part; of the other parts it reads their cells of its range, and what describes them:
# in all about one part's file, and no more than 16 KiB for each.
seq 1 60000 | awk '{ t = t " " $1 } NR % 100 == 0 { print "{\"text\":\"" t "\"}"; t = "" }' >texts.jsonl
tokenize -q texts.jsonl | decompose -q --min 64 --max 1024 -o one.tks
# reads COMMAND...: the bytes that it reads.
reads() { bash -c 'so_far() { awk "/^rchar/ { print \$2 }" /proc/$$/io; }; a=$(so_far); "$@"; echo $(($(so_far) - a))' - "$@"; }
for n in 8 ${FULL:+64}; do
    for ((i = 0; i < n; i++)); do shuffle -q --stage scatter --part $i/$n --work w$n one.tks; done
    read=$(reads shuffle -q --stage gather --part 1/$n --work w$n -o gathered$n.tks)
    check "a gather of $n parts reads $read bytes" test "$read" -gt 100000 -a "$read" -lt $(($(stat -c %s w$n/scatter.1-of-$n) + n * 16384))
done
