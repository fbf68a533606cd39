# shellcheck shell=bash disable=SC2154,SC2002
# decompose_options.sh - each option of decompose: its effect, its refused values, and the same bytes for any threads,
# memory and device.

have tokenize decompose inspect || return 0
corpus c.jsonl 3000000 11
tokenize -t bytes --domain-field domain c.jsonl >c.tks
# lengths STREAM: the distinct lengths of its sequences.
lengths() { inspect --json "$1" >j.json && json j.json '" ".join(str(l) for l, _ in d["lengths"])'; }

decompose c.tks >d.tks
want=$(sha d.tks)
for o in "-T 1" "-T 2" "-T 7" "-M 32M" "-M 1G" "--device cpu" "--device auto" "--tmpdir $TMP" "-v"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$want" "$(decompose $o c.tks 2>/dev/null | sha)"
done
same "the same bytes with -o" "$want" "$(decompose -o o.tks c.tks && sha o.tks)"
same "the same bytes from a pipe" "$want" "$(cat c.tks | decompose | sha)"
random=$(decompose --split random --min 16 --max 64 c.tks | sha)
for t in 1 2 7; do
    same "random: the same bytes with -T $t" "$random" "$(decompose --split random --min 16 --max 64 -T $t c.tks | sha)"
done
check "random: --seed matters" test "$random" != "$(decompose --split random --min 16 --max 64 --seed 1 c.tks | sha)"
check "-z: the same sequences" shell 'decompose -z c.tks | inspect --json | grep -o "\"checksum\": [^,]*" >a
    inspect --json d.tks | grep -o "\"checksum\": [^,]*" | cmp - a'

decompose --tail drop --min 64 --max 512 c.tks >t.tks
same "--tail drop leaves bucket lengths only" "64 128 256 512" "$(lengths t.tks)"
decompose --tail drop --min 64 --max 256 --label-token c.tks >t.tks
same "--label-token: one more each" "65 129 257" "$(lengths t.tks)"
inspect --json t.tks >j.json
same "the header says so" "[true, [64, 128, 256]]" "$(json j.json '[d["label_tokens"], d["bucket_lengths"]]')"
decompose --tail drop --buckets 100,1Ki,30 c.tks >t.tks
same "--buckets" "30 100 1024" "$(lengths t.tks)"
decompose --min-length 100 --max-length 120 --min 16 --max 32 --stats s.json c.tks >t.tks
same "--min-length, --max-length: reasons" "['too-long', 'too-short']" \
    "$(json s.json 'str(sorted(k for k, v in d["documents"]["dropped"].items() if v))')"
same "dropped documents are counted" true \
    "$(json s.json 'd["tokens"]["in"] == d["tokens"]["out"] + sum(d["tokens"]["dropped"].values()) and d["tokens"]["in"] > 0')"

check "--plan prints a table" shell 'decompose --plan c.tks >plan && grep -q "mean length" plan && grep -q "^ *8192 " plan'
status "--plan -o" 0 decompose --plan -o plan2 c.tks
check "--plan -o FILE: the file has the table, stdout is empty" shell 'cmp plan plan2 && test ! -s out'
decompose --plan --stats s.json c.tks >plan
decompose --stats r.json c.tks >t.tks
same "--plan has the counts of the real run" "$(json r.json 'd["buckets"]')" "$(json s.json 'd["buckets"]')"
decompose --histogram h.csv c.tks | cmp -s - d.tks
check "--histogram does not change the stream" test $? = 0
check "--histogram is the lengths" "$PYTHON" -c '
import json, subprocess, sys
d = json.loads(subprocess.run(["inspect", "--json", "c.tks"], stdout=subprocess.PIPE, check=True).stdout)
rows = open("h.csv").read().splitlines()
assert rows[0] == "length,documents", rows[0]
assert [[int(x) for x in r.split(",")] for r in rows[1:]] == d["lengths"]'
for t in 1 7; do
    same "--histogram -T $t" "$(sha h.csv)" "$(decompose -q --histogram /dev/stderr -o /dev/null -T $t c.tks 2>&1 >/dev/null | sha)"
done

for o in "--min 100" "--max 100" "--min 512 --max 256" "--buckets 1,2,x" "--buckets 5,5" "--buckets 0,4" \
    "--buckets ," "--buckets 64 --min 32" "--split half" "--tail" "--min-length 5 --max-length 4" "--min 0"; do
    # shellcheck disable=SC2086 # words
    status "usage: $o" 2 decompose $o c.tks
    check "  one line" one_line err
done
status "other buckets on a cut stream" 1 decompose --min 128 d.tks
check "  one line that says what to do" shell "grep -q -- --accept-mismatch err && [ \$(wc -l <err) = 1 ]"
status "label tokens on a cut stream" 1 decompose --label-token d.tks
status "with --accept-mismatch" 0 decompose --min 128 --accept-mismatch -o f.tks d.tks
status "the same buckets again" 0 decompose -o f.tks d.tks
if ! command -v nvidia-smi >/dev/null 2>&1; then
    status "--device cuda without a driver" 1 decompose --device cuda --plan c.tks
    check "  one line" one_line err
fi
status "--device cuda:99" 1 decompose --device cuda:99 c.tks
rm -f c.jsonl
