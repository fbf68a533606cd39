# shellcheck shell=bash disable=SC2154
# shuffle_order.sh - the same bytes for any -M and -T, as a stream and as shards; the result does not depend on the
# order of the input; samples and limits; refused options.
# check-more: whole

have tokenize dedup decompose pack shuffle inspect || return 0

corpus base.jsonl "$(longer 1500000 4000000)" 21
if [ -n "$MORE" ]; then
    "$PYTHON" - <<'PY'
import json
base = [json.loads(l) for l in open("base.jsonl", encoding="utf-8")]
with open("big.jsonl", "w", encoding="utf-8") as f:
    for n in range(6):
        for r in base:
            r["text"] = "%d %s" % (n, r["text"])
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
PY
    tokenize -t bytes --id-field id --domain-field domain big.jsonl | decompose --min 64 --max 1024 --label-token |
        pack -o all.tks
    shuffle -M 1G -T 1 --seed 9 --stats s.json -o want.tks all.tks
    same "nothing is spilled with -M 1G" 0 "$(json s.json 'd["spill_bytes"]')"
    shuffle -q -M 1G -T 1 --seed 9 --format wds -o want all.tks
    want=$(sha want.tks) want_set=$(sha_tree want)
    for t in 1 2 7; do
        shuffle -M 32M -T $t --seed 9 --stats s.json -o out.tks all.tks
        check "-M 32M -T $t spills" test "$(json s.json 'd["spill_bytes"]')" -gt 0
        same "-M 32M -T $t: the stream" "$want" "$(sha out.tks)"
        [ -n "${SAN:-}" ] || check "-M 32M -T $t: peak memory within 96 MiB" \
            test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
        shuffle -q -M 32M -T $t --seed 9 --format wds --replace-set --stats s.json -o out all.tks
        check "-M 32M -T $t: shards: spills" test "$(json s.json 'd["spill_bytes"]')" -gt 0
        same "-M 32M -T $t: the shards" "$want_set" "$(sha_tree out)"
        [ -n "${SAN:-}" ] || check "-M 32M -T $t: shards: peak memory within 96 MiB" \
            test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
    done
    rm -rf out out.tks
fi

# For what needs no spill, less.
tokenize -t bytes --id-field id --domain-field domain base.jsonl | decompose --min 64 --max 1024 --label-token |
    pack -o all.tks
rm -rf want
shuffle --seed 9 -o want.tks all.tks
shuffle -q --seed 9 --format wds -o want all.tks
check "another seed, another order" test "$(shuffle --seed 10 all.tks | sha)" != "$(sha want.tks)"
inspect --records want.tks | sort | sha >a
inspect --records all.tks | sort | sha >b
same "the records are the same, with ids and domains" "$(cat b)" "$(cat a)"

# Shuffled again from any order, the order is that of the seed.
shuffle --no-provenance --seed 3 all.tks -o a.tks
shuffle --no-provenance --seed 5 all.tks | shuffle --no-provenance --seed 3 -o b.tks
same "the order does not depend on the input's order" \
    "$(inspect --records a.tks | sha)" "$(inspect --records b.tks | sha)"
rm -f a.tks b.tks

# Samples and limits.
shuffle --sample 0.1 --seed 9 --stats s.json all.tks -o tenth.tks
shuffle --sample 30% --seed 9 all.tks -o third.tks
check "a tenth is a tenth" "$PYTHON" -c 'import json
d=json.load(open("s.json"))["sequences"]
raise SystemExit(not 0.09 < d["out"] / d["in"] < 0.11 or d["dropped"] != {"sample": d["in"] - d["out"]})'
inspect --records tenth.tks | sort >a
inspect --records third.tks | sort >b
check "a smaller sample is part of a larger one" test -z "$(comm -23 a b | sed -n 1p)"
inspect --records want.tks >a
shuffle --max-tokens 100000 --seed 9 --stats s.json all.tks -o few.tks
inspect --records few.tks >b
check "--max-tokens takes the beginning of the same order" cmp -s -n "$(wc -c <b)" a b
check "and as much as fits" "$PYTHON" -c 'import json
d=json.load(open("s.json"))["tokens"]
raise SystemExit(not 100000 - 1025 < d["out"] <= 100000 or d["out"] + d["dropped"]["max-tokens"] != d["in"])'
shuffle -q --max-tokens 100000 --seed 9 --format wds -o few all.tks
inspect --json few >a
inspect --json few.tks >b
same "the same tokens as shards" "$(json b 'd["checksum"]')" "$(json a 'd["checksum"]')"

# Shards get bucket after bucket: within each the order is that of the stream, and a limit takes the same sequences.
by_length() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
d = [(len(json.loads(l)["tokens"]), l) for l in sys.stdin]
sys.stdout.writelines(l for _, l in sorted(d, key=lambda x: x[0]))' | sha; }
same "a bucket's order in shards is that of the stream" "$(by_length want.tks)" "$(inspect --records want | sha)"
same "and with --max-tokens" "$(by_length few.tks)" "$(inspect --records few | sha)"

# --order keep: what the stream's order is stays.
shuffle --order keep --no-provenance all.tks -o kept.tks
same "--order keep leaves a stream as it is" "$(inspect --records all.tks | sha)" \
    "$(inspect --records kept.tks | sha)"
shuffle -q --order keep --format wds -o kept-set all.tks
same "and the order in each bucket of shards" "$(by_length all.tks)" "$(inspect --records kept-set | sha)"
shuffle --order keep --max-tokens 100000 -M 32M all.tks -o kept-few.tks
inspect --records all.tks >a
inspect --records kept-few.tks >b
check "--max-tokens takes its beginning" cmp -s -n "$(wc -c <b)" a b
shuffle -q --order keep --max-tokens 100000 --format wds -o kept-few all.tks
same "in shards too" "$(by_length kept-few.tks)" "$(inspect --records kept-few | sha)"
rm -rf kept.tks kept-set kept-few kept-few.tks

# Refusals and folders.
tokenize -t bytes base.jsonl | decompose --min 64 --max 1024 --label-token >tails.tks
status "tails are refused" 1 shuffle --format wds -o x tails.tks
check "with their number and what to do" grep -qE '[0-9]+ sequences of [0-9]+ tokens .*pack.*--tails drop' "$TMP/err"
check "and nothing is written" test ! -e x
status "--tails drop" 0 shuffle -q --format wds -o x --tails drop --stats s.json tails.tks
check "counts them" test "$(json s.json 'd["sequences"]["dropped"]["tail"]')" -gt 0
check "inspect --verify" inspect --verify x
status "a folder that is not empty is refused" 1 shuffle -q --format wds -o x --tails drop tails.tks
touch x/mine x/D_6/mine
status "--replace-set replaces the set" 0 shuffle -q --format wds --replace-set -o x --shard-sequences 7 --last drop few.tks
check "and nothing else" test -e x/mine -a -e x/D_6/mine
check "inspect --verify after it" inspect --verify x
rm x/mine x/D_6/mine x/report.json
status "a set without its report is refused" 1 shuffle -q --format wds -o x few.tks
status "and replaced by --replace-set" 0 shuffle -q --format wds --replace-set -o x few.tks
check "inspect --verify after that" inspect --verify x
cp -r x left && touch left/mine
mkdir left/.partial
sleep 100 &
printf '%s %s\n' "$(uname -n)" $! >left/.partial/lock
status "not while another process writes there" 1 shuffle -q --format wds --replace-set -o left few.tks
check "which is named" grep -q "left/.partial: another shuffle is writing here (process $! on $(uname -n)); wait for it" "$TMP/err"
check "and all its files stay" inspect --verify left
kill $!
code wait $! 2>/dev/null
printf '%s %s\n' another.machine $! >left/.partial/lock
status "one of another machine may be living" 1 shuffle -q --format wds --replace-set -o left few.tks
check "the way is named" grep -q 'if it is gone, remove left/.partial/lock' "$TMP/err"
printf '%s %s\n' "$(uname -n)" $! >left/.partial/lock
status "the lock of a dead process is none" 0 shuffle -q --format wds --replace-set -o left few.tks
same "and is gone" "$(sha_tree x)" "$(rm left/mine && sha_tree left)"
status "--replace-set, full shards only" 0 shuffle -q --format wds --replace-set -o x --shard-sequences 7 --last drop few.tks
"$PYTHON" - <<'PY'
import json, os
good = all(json.loads(l)["num_sequences"] == 7 for d in os.listdir("x") if d[:2] == "D_"
           for l in open("x/%s/manifest.jsonl" % d))
r = json.load(open("x/report.json"))
good = good and r["dropped"]["last-shard"]["sequences"] > 0 and all("short_shard" not in b for b in r["buckets"])
print("%s shuffle_order: --last drop leaves full shards only" % ("ok" if good else "not ok"))
PY
status "--format without -o" 2 shuffle --format wds all.tks
status "--shard-sequences 0" 2 shuffle --format wds --shard-sequences 0 -o y all.tks
status "--last without --format" 2 shuffle --last drop -o y all.tks
status "documents have no buckets" 1 shuffle --format wds -o y "$(tokenize -t bytes -o docs.tks base.jsonl; echo docs.tks)"
check "none of these left anything" test ! -e y

# A folder that is there keeps its place and its mode: it may be a mount point, a link or the working folder.
mkdir -m 750 kept
ln -s kept kept-link
shuffle -q --format wds -o kept all.tks
same "--replace-set into a link to a folder" 0 "$(shuffle -q --replace-set --format wds -o kept-link all.tks >&2; echo $?)"
check "is a whole set" inspect --verify kept
same "--replace-set into the working folder" 0 "$(cd kept && shuffle -q --replace-set --format wds -o . ../all.tks >&2; echo $?)"
check "is a whole set too" inspect --verify kept
same "the folder's mode stays" 750 "$(stat -c %a kept)"
before=$(sha_tree kept)
status "a fault while shards are written" 1 shell 'ulimit -f 64; shuffle -q --replace-set --format wds -o kept-link all.tks'
same "leaves the set that is there, and nothing else" "$before" "$(sha_tree kept)"
