# shellcheck shell=bash disable=SC2154,SC2016,SC2034
# pack_options.sh - each option of pack: its effect, its refused values, and the same bytes for any threads, memory and
# device. tests/props/check_bfd.py checks the bins.
# check-more: whole

have tokenize decompose pack inspect || return 0
corpus c.jsonl 4000000 12
tokenize -t bytes --domain-field domain c.jsonl >c.tks
decompose c.tks >d.tks
lengths() { inspect --json "$1" >j.json && json j.json '" ".join(str(l) for l, _ in d["lengths"])'; }

pack d.tks >p.tks
want=$(sha p.tks)
same "only bucket lengths are left" "256 512 1024 2048 4096 8192" "$(lengths p.tks)"
check "packed sequences verify" inspect --verify p.tks
whole=$(pack --length 4096 c.tks | sha)
chunks=$(pack --length 4096 --method concat c.tks | sha)
for o in "-T 1" "-T 7" "-M 32M" ${MORE:+"-T 2" "-M 64M" "-M 1G" "--device cpu"} "--seed 5 --no-provenance" "--tmpdir $TMP"; do
    case $o in *provenance*)
        # shellcheck disable=SC2086 # words
        same "--seed draws nothing" "$(pack --no-provenance c.tks --length 64 | sha)" "$(pack $o c.tks --length 64 | sha)"
        continue ;;
    esac
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$want" "$(pack $o d.tks | sha)"
    # shellcheck disable=SC2086 # words
    same "whole documents: the same bytes with $o" "$whole" "$(pack --length 4096 $o c.tks | sha)"
    # shellcheck disable=SC2086 # words
    same "concat: the same bytes with $o" "$chunks" "$(pack --length 4096 --method concat $o c.tks | sha)"
done

for m in ffd spfhp lpfhp nnlshp; do
    pack --length 512 --max-segments 5 --method $m --stats a.json c.tks >t.tks
    check "$m: packed sequences verify" inspect --verify t.tks
    same "$m: the same bytes with -T 7 -M 32M" "$(sha t.tks)" \
        "$(pack --length 512 --max-segments 5 --method $m -T 7 -M 32M c.tks | sha)"
    check "$m: no bin has more than five pieces, nothing is lost" "$PYTHON" -c '
import json, subprocess
run = lambda *a: subprocess.run(["inspect", *a], stdout=subprocess.PIPE, check=True).stdout
for line in run("--records", "t.tks").splitlines():
    assert 1 <= len([x for x in json.loads(line)["segments"] if not x.get("padding")]) <= 5, line
a, c = json.load(open("a.json")), json.loads(run("--json", "c.tks"))
assert a["tokens"]["out"] - a["tokens"]["padding"] == c["tokens"] == a["tokens"]["in"], a'
done
pack --length 1000 d.tks >t.tks
same "--length becomes a bucket" "256 512 1000 1024 2048 4096 8192" "$(lengths t.tks)"
inspect --json t.tks >j.json
same "  of the header too" "[256, 512, 1000, 1024, 2048, 4096, 8192]" "$(json j.json 'd["bucket_lengths"]')"
decompose --label-token --min 64 --max 256 c.tks | pack >t.tks
same "label tokens" "65 129 257" "$(lengths t.tks)"
check "packing twice is packing once" shell 'pack --no-provenance d.tks >a; pack --no-provenance a | cmp - a'
pack --fill drop --length 512 --stats s.json c.tks >t.tks
same "--fill drop: full bins only" "[512, 0, true]" \
    "$(inspect --json t.tks >j.json; json j.json '[d["lengths"][0][0], d["padding"], len(d["lengths"]) == 1]')"
same "--fill drop: not-full" true "$(json s.json 'd["tokens"]["dropped"]["not-full"] > 0 and d["tokens"]["padding"] == 0')"
pack --length 512 --long drop --stats s.json c.tks >t.tks
same "--long drop: too-long" true "$(json s.json 'd["documents"]["dropped"]["too-long"] > 0 and d["sequences"]["created"] == 0')"
pack --length 512 --stats s.json c.tks >t.tks
same "--long split: nothing is lost" "[true, {\"joined\": 0}]" \
    "$(json s.json '[d["sequences"]["created"] > 0, d["tokens"]["dropped"]]')"
status "--long error" 1 pack --length 512 --long error c.tks
check "  one line that names the document" shell 'grep -q "document [0-9]" err && [ $(wc -l <err) = 1 ]'
pack --length 512 --max-segments 2 c.tks >t.tks
check "--max-segments" "$PYTHON" -c '
import json, subprocess
for line in subprocess.run(["inspect", "--records", "t.tks"], stdout=subprocess.PIPE, check=True).stdout.splitlines():
    s = [x for x in json.loads(line)["segments"] if not x.get("padding")]
    assert 1 <= len(s) <= 2 and len({x.get("domain") for x in s}) == 1, line'
pack --length 512 --stats a.json c.tks >t.tks
pack --length 512 --mix-domains --stats b.json c.tks >t.tks
same "--mix-domains: no more bins" True "$(echo "$(json a.json 'd["bins"]') $(json b.json 'd["bins"]')" | awk '{print $2 <= $1 ? "True" : $0}')"
# its last column is seconds
untimed() { sed 's/ *[0-9.]*$//' "$1"; }
pack --plan d.tks >plan
for m in '\* bfd' '  ffd' '  spfhp' '  lpfhp' '  nnlshp' '  multi' '  concat'; do
    check "--plan: a row for$(echo "$m" | tr -d '*\\')" grep -q "^$m " plan
done
check "--plan: at most 100 columns" awk 'length > 100 { exit 1 }' plan
status "--plan -o" 0 pack --plan -o plan2 d.tks
same "--plan -o FILE: the file has the table" "$(untimed plan)" "$(untimed plan2)"
check "  stdout is empty" test ! -s out
same "--plan: the same table with -T 7 -M 32M" "$(untimed plan)" "$(pack --plan -T 7 -M 32M d.tks >plan2; untimed plan2)"
pack --plan --method concat --length 4096 --stats s.json c.tks >plan
check "--plan: the method chosen is marked" grep -q '^\* concat ' plan
same "  in --stats, too" '[["concat"], ["bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "multi", "concat"]]' \
    "$(json s.json '[[m["method"] for m in d["methods"] if m["chosen"]], [m["method"] for m in d["methods"]]]')"
check "--plan: the row of multi names the options that it needs" grep -q '^  multi .*several bucket lengths and method multi' plan
check "--plan: why a method does not apply" grep -q '^  nnlshp .*2048' plan
check "  in --stats, too" shell 'grep -q "unsuitable.*2048" s.json'
pack --plan --max-segments 3 --length 4096 c.tks >plan
check "--plan --max-segments: concat does not apply" grep -q '^  concat .*limit' plan
pack --plan --length 512 --stats b.json c.tks >plan
same "--plan has the figures of the real run" "$(json a.json '[d["bins"], d["certificate"], d["fill"]]')" \
    "$(json b.json '[d["bins"], d["certificate"], d["fill"]]')"

status "no bucket lengths and no --length" 2 pack c.tks
check "  one line that says what to do" shell "grep -q -- --length err && [ \$(wc -l <err) = 1 ]"
for o in "--length x" "--method nfd" "--long cut" "--fill no" "--max-segments 2 --method concat --length 64" "--length 999Gi"; do
    # shellcheck disable=SC2086 # words
    status "usage: $o" 2 pack $o c.tks
    check "  one line" one_line err
done
status "nnlshp: too many ways to fill a bin" 2 pack --length 4096 --method nnlshp c.tks
check "  one line that states the limit" shell 'grep -q 2048 err && [ $(wc -l <err) = 1 ]'
# Known before reading: of a stream that ends early, and nothing is written.
head -c 2000000 c.tks >early.tks
status "nnlshp: before reading" 2 pack --length 4096 --method nnlshp early.tks
check "  and nothing is written" test ! -s out
status "--save-plan: before reading" 1 pack --length 512 --save-plan no/such/x early.tks
check "  one line that names it, and nothing is written" shell 'grep -q no/such/x err && [ $(wc -l <err) = 1 ] && [ ! -s out ]'
status "bins too large for -M" 1 pack -M 32M --length 16Mi c.tks
check "  one line" one_line err
status "bins too large for -M by a little" 1 pack -M 63M --length 1Mi -o y.tks c.tks
check "  what is enough is named" grep -q 'take 64M of memory; give more memory with -M$' err
status "  and is enough" 0 pack -M 64M --length 1Mi -o x.tks c.tks
status "--device cuda:99" 1 pack --device cuda:99 d.tks
check "  one line" one_line err

# Plans in files: the same bytes, and nothing else than what they were made for.
tokenize -t bytes --format jsonl c.jsonl >e.tks # no domains
for o in "--length 512" "--length 1000 --method ffd" "--length 512 --method lpfhp --max-segments 3" "--length 300 --mix-domains --fill drop"; do
    for f in c ${MORE:+d e}; do
        # shellcheck disable=SC2086 # words
        one=$(pack $o --save-plan p.plan $f.tks | sha)
        for m in "" "-M 32M" "-T 1"; do
            # shellcheck disable=SC2086 # words
            same "--apply-plan: the same bytes: $o $f $m" "$one" "$(pack $o $m --apply-plan p.plan $f.tks | sha)"
        done
        # shellcheck disable=SC2086 # words
        check "--plan --save-plan: the same file: $o $f" shell "pack $o --plan --save-plan q.plan $f.tks >plan && cmp p.plan q.plan &&
            pack $o --plan --apply-plan q.plan $f.tks | sed 's/ *[0-9.]*\$//' >plan2 && sed 's/ *[0-9.]*\$//' plan | cmp - plan2"
    done
done
pack --length 512 --save-plan p.plan c.tks >x.tks
head -n 40 c.jsonl | tokenize -t bytes --format jsonl --domain-field domain >f.tks
for o in "--length 1024 c.tks" "--length 512 --method ffd c.tks" "--length 512 --max-segments 2 c.tks" "--length 512 --mix-domains c.tks" \
    "--length 512 f.tks" "--length 512 e.tks"; do
    # shellcheck disable=SC2086 # words
    status "a plan for something else: $o" 1 pack --apply-plan p.plan -o y.tks $o
    check "  one line" one_line err
    check "  no output" [ ! -e y.tks ]
done
check "  the last one names the difference" grep -q "the plan was made for other data" err
o="--method multi --buckets 32,64,128 --padding-threshold 50%"
# shellcheck disable=SC2086 # words
one=$(pack $o --save-plan m.plan c.tks | sha)
# shellcheck disable=SC2086 # words
same "--apply-plan: the same bytes: $o" "$one" "$(pack $o --apply-plan m.plan c.tks | sha)"
for o in "--buckets 32,64,128 --padding-threshold 0" "--buckets 32,64,128" "--buckets 64,128 --padding-threshold 50%" \
    "--buckets 32,64,100,128 --padding-threshold 50%" "--buckets 32,64 --padding-threshold 50%"; do
    # shellcheck disable=SC2086 # words
    status "a plan for something else: $o" 1 pack --method multi $o --apply-plan m.plan -o y.tks c.tks
    check "  one line" one_line err
    check "  that names it" grep -q "plan was made for .*bins of" err
    check "  no output" [ ! -e y.tks ]
done
head -c 100 p.plan >cut.plan
cp c.jsonl text.plan
for f in cut text absent; do
    status "no plan: $f" 1 pack --length 512 --apply-plan $f.plan -o y.tks c.tks
    check "  one line" one_line err
    check "  that names it, and no output" shell "grep -q $f.plan err && [ ! -e y.tks ]"
done
status "--save-plan and --apply-plan" 2 pack --length 512 --save-plan q.plan --apply-plan p.plan -o y.tks c.tks
status "--save-plan of concat" 2 pack --length 512 --method concat --save-plan q.plan -o y.tks c.tks

pack --length 512 --stats s.json -o x.tks c.tks
same "--stats: timings, and where they ran" '[["histogram", "place", "plan", "read", "sort", "write"], true, true]' \
    "$(json s.json '[sorted(d["timings"]), sorted(d["timing_devices"]) == sorted(d["timings"]), 0 < sum(d["timings"].values()) <= d["seconds"]]')"

# Within the budget: 30 MB of tokens that all wait, packed with 32M.
for i in 1 2 3 4; do cat c.jsonl; done >c4.jsonl
tokenize -t bytes c4.jsonl >c4.tks
same "spilled: the same bytes" "$(pack --length 8192 -M 2G c4.tks | sha)" "$(pack --length 8192 -M 32M -T 7 --stats s.json c4.tks | sha)"
same "spilled: it did spill, within -M + 64 MiB" true "$([ -n "$SHIM" ] || { echo true; exit; }
    json s.json 'd["spill_bytes"] > 0 and d["peak_rss_bytes"] <= (32 + 64) << 20')"
check "nothing is left in --tmpdir" shell 'mkdir t && pack --length 8192 -M 32M --tmpdir t c4.tks >/dev/null && [ -z "$(ls -A t)" ]'
# Bins of very many pieces, or of long ids, are within it too: one on its way at a time, or none where it has no room.
peak() { json s.json "d[\"peak_rss_bytes\"] <= (${1:-32} + 64) << 20"; }
if [ -n "$MORE" ]; then
    "$PYTHON" -c 'print("{\"text\": \"x\"}\n" * 2200000, end="")' | tokenize -t bytes --no-eos --format jsonl -o one.tks
    for o in "" "--method concat"; do
        # shellcheck disable=SC2086 # words
        pack --length 1Mi -M 64M -T 2 $o --stats s.json -o x.tks one.tks
        same "bins of 1048576 pieces: within -M + 64 MiB $o" true "$([ -n "$SHIM" ] || { echo true; exit; }; peak 64)"
        # shellcheck disable=SC2086 # words
        same "  the same bytes as in memory $o" "$(pack --length 1Mi -M 1G $o one.tks | sha)" "$(sha x.tks)"
    done
    "$PYTHON" -c 'for i in range(1400): print("{\"text\": \"x\", \"id\": \"%s%07d\"}" % ("a" * 59993, i))' |
        tokenize -t bytes --no-eos --format jsonl --id-field id -o ids.tks
    pack --length 700 -M 32M -T 2 --stats s.json -o x.tks ids.tks
    same "bins with 42 MB of ids: within -M + 64 MiB" true "$([ -n "$SHIM" ] || { echo true; exit; }; peak)"
    same "  the same bytes as in memory" "$(pack --length 700 -M 1G ids.tks | sha)" "$(sha x.tks)"
    status "bins with 84 MB of ids in 32M" 1 pack --length 1400 -M 32M -o y.tks ids.tks
    check "  one line that names both ways out" shell 'grep -q -- -M err && grep -q -- --max-segments err && [ $(wc -l <err) = 1 ] && [ ! -e y.tks ]'
    status "  one of them" 0 pack --length 1400 -M 32M --max-segments 600 -o x.tks ids.tks
    rm -f one.tks ids.tks x.tks
fi
# What waits stays in memory up to half of -M, and goes through files past that: the same bytes, wherever it is.
whole=$(pack --length 512 -M 2G c4.tks | sha)
chunks=$(pack --length 512 -M 2G --method concat c4.tks | sha)
waits=$(inspect --json c4.tks >j.json; json j.json 'd["tokens"] * 2 + d["sequences"] * 112 >> 19')
for m in ${MORE:+$((waits - 4)) $((waits - 1)) $((waits)) $((waits + 4)) $((waits * 2))} $((waits + 1)); do
    for t in 1 2; do
        same "at the border of memory: -M ${m}M -T $t" "$whole" "$(pack --length 512 -M ${m}M -T $t c4.tks | sha)"
    done
    same "at the border of memory: concat, -M ${m}M" "$chunks" "$(pack --length 512 -M ${m}M --method concat c4.tks | sha)"
done
pack --length 512 -M $((waits - 8))M --stats a.json -o x.tks c4.tks
pack --length 512 -M $((waits * 2))M --stats b.json -o x.tks c4.tks
same "on both sides of it" "[true, true]" "[$(json a.json 'd["spill_bytes"] > 0'), $(json b.json 'd["spill_bytes"] == 0')]"
rm -f c*.jsonl

# Past the budget there is a histogram for each domain: thousands of them need memory, and the way out is named.
many() {
    "$PYTHON" -c 'for i in range('"$1"'): print("{\"text\": \"%s\", \"d\": \"%d\"}" % ("a" * (i % 30), i))' |
        tokenize -t bytes --format jsonl --domain-field d -o many.tks
}
many 6000
status "thousands of domains in 32M" 0 pack -M 32M --length 64 -o x.tks many.tks
check "  each bin of one" inspect --verify x.tks
many 20000
status "tens of thousands of domains in 32M" 1 pack -M 32M --length 64 -o x.tks many.tks
check "names --mix-domains" grep -q -- '--mix-domains' err
status "which does" 0 pack -M 32M --length 64 --mix-domains -o x.tks many.tks
status "or memory" 0 pack -M 128M --length 64 -o x.tks many.tks
