#!/usr/bin/env bash
# accounts.sh - the counts of all steps, from the text to a set: through pipes, joins, parts, stages and sets, on the card, in
# report.json and in inspect; and of a mix, its repeats and the periods that fall short. See tests/cli/run.
"$PYTHON" - <<'PY' >c.jsonl
for i in range(60):
    print('{"text": "%s", "d": "%s"}' % ("word%d " % (i % 50) * (3 + i % 50 % 9), "ab"[i % 3 == 0]))
print('{"text": "", "d": "a"}')
PY
tok() { tokenize -q -t bytes --domain-field d "$@" c.jsonl; }
to_set() { decompose -q --min 8 --max 32 | pack -q --length 32 | shuffle -q --format mds "${@:2}" -o "$1"; }
rows() { sed -n '/^## From the text/,/^## How/p' "$1/README.md" | grep '^| [0-9a]'; }

tok -o t.tks
dedup -q t.tks -o d.tks
to_set s1 <d.tks
card=$(rows s1)
# What tokenize read and all that later steps left out and added give what the set has.
check "all steps are on the card" test "$(echo "$card" | grep -c '^| [1-5]\. \(tokenize\|dedup\|decompose\|pack\|shuffle\) | [0-9]')" = 5
check "  what the first left out" grep -qxF '| 1. tokenize | empty | 1 | 1 | 0 |' <(echo "$card")
check "  and the second" grep -q '^| 2. dedup | exact-duplicate | 10 | 10 | ' <(echo "$card")
cat >sums.py <<'PY'
import json, sys
d = json.load(open(sys.argv[1] + "/report.json"))
steps = [s["tokens"] for s in d["provenance"]]
assert len(steps) == int(sys.argv[2]), steps
read = sum(s["in"] for s in steps) - sum(s["out"] for s in steps) + d["tokens"]
added = sum(s["created"] + s["repeated"] + s["padding"] for s in steps)
left = sum(n for s in steps for n in s["dropped"].values())
assert read + added - left == d["tokens"] == steps[-1]["out"], (read, added, left, d["tokens"])
documents = [s["documents"] for s in d["provenance"]]
first = sum(s["in"] for s in documents) - sum(s["out"] for s in documents) + d["documents"]
dropped = lambda of: {r: sum(n["dropped"].get(r, 0) for n in of) for n in of for r in n["dropped"]}
total = d["all_steps"]
assert total["complete"] is True and total["tokens"] == {
    "in": read, "created": sum(s["created"] for s in steps), "repeated": sum(s["repeated"] for s in steps),
    "padding": sum(s["padding"] for s in steps), "out": d["tokens"], "dropped": dropped(steps)}, total
n = total["documents"]
assert n == {"in": first, "created": 0, "repeated": 0, "out": d["documents"], "dropped": dropped(documents)}, n
print(first, read)
PY
text=$("$PYTHON" -c 'import json; print(61, sum(len(json.loads(l)["text"]) for l in open("c.jsonl")))')
same "the sums are what the text has" "$text" "$("$PYTHON" sums.py s1 5)"
check "  the card's last row" grep -q "^| all | 61 | 50 | $(echo "${text#* }" | sed 's/\([0-9]*\)\([0-9]\{3\}\)$/\1,\2/') | " <(echo "$card")
inspect s1 >seen
check "inspect shows the set's" grep -q '^ *61 documents, .* dropped: empty 1 document$' seen
inspect d.tks >seen
check "  and a stream's" grep -q '^ *60 documents, .* dropped: exact-duplicate 10 documents' seen
same "--json is one line" 1 "$(inspect --json d.tks | wc -l)"

# ---- sources ----
tail -n 20 c.jsonl >d.jsonl
gzip -k d.jsonl
tokenize -q -t bytes c.jsonl d.jsonl.gz -o two.tks
inspect --json two.tks >j
same "sizes of sources, as stored" "[$(stat -c %s c.jsonl), $(stat -c %s d.jsonl.gz)]" "$(json j '[s["bytes"] for s in d["provenance"][0]["sources"]]')"
one() { tokenize -q -t bytes "$1" | inspect --json >k && json k '[d["documents"], d["tokens"], d["checksum"]]'; }
same "their counts and checksums are those of the file alone" "[$(one c.jsonl), $(one d.jsonl)]" \
    "$(json j '[[s["documents"], s["tokens"], s["stream_checksum"]] for s in d["provenance"][0]["sources"]]')"
to_set s0 <two.tks
check "the card has them" "$PYTHON" - <<'PY'
import json
card = open("s0/README.md").read()
for s in json.load(open("s0/report.json"))["provenance"][0]["sources"]:
    assert "| {name} | {bytes:,} | {documents:,} | {tokens:,} | `{stream_checksum}` |\n".format(**s) in card, (s, card)
PY
check "the independent reader agrees with them" tokstream --check two.tks

# ---- parts and stages are summed ----
for i in 0 1 2; do tok --part $i/3 -o p$i.tks; done
cat p?.tks | dedup -q | to_set s2
same "a set of parts is the set of one run" "$(sha_tree s1)" "$(sha_tree s2)"
to_set s3 <t.tks
mkdir w v
for i in 0 1 2; do decompose -q --min 8 --max 32 p$i.tks -o q$i.tks && pack -q --stage count --work w --part $i/3 --length 32 q$i.tks; done
pack -q --stage plan --work w --length 32
for i in 0 1 2; do pack -q --stage scatter --work w --part $i/3 --length 32 q$i.tks -o a$i.tks; done
for i in 0 1 2; do pack -q --stage gather --work w --part $i/3 --length 32 -o b$i.tks; done
shm() { shuffle -q --work v --stage "$@"; }
shm scatter --format mds --part 0/2 a?.tks b0.tks
shm scatter --format mds --part 1/2 b1.tks b2.tks
for i in 0 1; do shm gather --format mds --part $i/2 -o s4; done
shm finish --format mds -o s4
same "a set of stages is the set of one run" "$(sha_tree s3)" "$(sha_tree s4)"
rm -r v && mkdir v
shm scatter --part 0/2 a?.tks b0.tks
shm scatter --part 1/2 b1.tks b2.tks
for i in 0 1; do shm gather --part $i/2 -o g$i.tks; done
cat g?.tks | shuffle -q --format mds -o s5
cat a?.tks b?.tks | shuffle -q | shuffle -q --format mds -o s6
same "stages to a stream, too" "$(sha_tree s6)" "$(sha_tree s5)"
check "the independent reader agrees with a range" tokstream --check g1.tks

# ---- joins, sets as inputs, and steps without counts ----
tokenize -q -t bytes --domain x c.jsonl -o other.tks
cat d.tks other.tks | to_set s7
same "streams of other options are listed" "1. tokenize 2. dedup 3. tokenize" \
    "$(rows s7 | sed -n 's/^| \(. \|\)\([1-3]\. [a-z]*\) | [0-9].*/\2/p' | sed -n 1,3p | paste -sd' ')"
"$PYTHON" sums.py s7 6 >/dev/null
dedup -q --input-format set s1 -o again.tks
same "a set as input hands its steps on" "$(inspect --json s1 >j && json j '[s["tokens"] for s in d["provenance"]]')" \
    "$(inspect --json again.tks >j && json j '[s["tokens"] for s in d["provenance"][:-1]]')"
dedup -q --no-provenance t.tks | decompose -q --min 8 --max 32 | pack -q --length 32 | shuffle -q --format mds -o s8
version=$(tokenize --version | sed 's/.* //')
unknown() { sed -n 's/^What these steps left out is not known.*: //p' "$1/README.md"; }
same "after a step without provenance counts begin anew" "1. tokenize $version." "$(unknown s8)"
check "  with what is read there" grep -q '^| all | 50 | 50 | ' s8/README.md
same "  and the report's totals say that they are not complete" "False 50" \
    "$(json s8/report.json '"%s %d" % (d["all_steps"]["complete"], d["all_steps"]["documents"]["in"])')"

# ---- what is not known is not said to be nothing ----
nothing() { grep -c 'Nothing was left out' "$1/README.md" || true; }
to_ids() { shuffle -q --format mds "$@"; }
printf '{"text": "0123456"}\n' >e.jsonl
tokenize -q -t bytes e.jsonl -o b.tks
cut8() { decompose -q --min 8 --max 8 "$@"; }
cut8 b.tks -o a.tks
to_ids -o n0 a.tks
same "a line that left nothing out" "1 True {}" "$(nothing n0) $(json n0/report.json '"%s %s" % (d["all_steps"]["complete"], d["all_steps"]["tokens"]["dropped"])')"
tokenize -q --no-provenance -t bytes e.jsonl | cut8 | to_ids -o n1
same "a first step that is not recorded" "0 1. unknown." "$(nothing n1) $(unknown n1)"
notall() { grep -c '^These are not all steps' "$1/README.md" || true; }
same "  the commands do not claim to be all" "0 1" "$(notall n0) $(notall n1)"
to_ids --no-provenance -o n2 a.tks
same "a last step without provenance" "0 1. tokenize $version, 2. decompose $version." "$(nothing n2) $(unknown n2)"
check "  has its own counts, as the last step" grep -q '^| 3. the last step | 1 | 1 | 8 | ' n2/README.md
tokenize -q --no-provenance -t bytes e.jsonl | cut8 --no-provenance | to_ids --no-provenance -o n3
same "no provenance at all" "0 1. unknown." "$(nothing n3) $(unknown n3)"
for i in 2 3; do
    to_ids --input-format set n$i -o m$i
    same "  nor of a set as input" "0 $(unknown n$i)" "$(nothing m$i) $(unknown m$i)"
done
dedup -q --no-provenance b.tks | cut8 -o c.tks
for order in 'a c' 'c a'; do
    read -r x y <<<"$order"
    rm -rf n4 n5 w4
    cat $x.tks $y.tks | to_ids -o n4
    same "streams with and without counts, joined ($order)" "0 1. tokenize $version (in some of the joined streams)." "$(nothing n4) $(unknown n4)"
    same "  in the report" "[True, None, None] False 2" \
        "$(json n4/report.json '"%s %s %s" % ([s.get("uncounted") for s in d["provenance"]], d["all_steps"]["complete"], d["all_steps"]["documents"]["in"])')"
    cat $x.tks $y.tks | shuffle -q -o ac.tks
    inspect ac.tks >seen
    same "  in inspect" 1 "$(grep -c '^ *and a stream without counts$' seen)"
    check "  the independent reader agrees" tokstream --check ac.tks
    mkdir w4
    shuffle -q --work w4 --stage scatter --format mds --part 0/2 $x.tks
    shuffle -q --work w4 --stage scatter --format mds --part 1/2 $y.tks
    for i in 0 1; do shuffle -q --work w4 --stage gather --format mds --part $i/2 -o n5; done
    shuffle -q --work w4 --stage finish --format mds -o n5
    same "  and in stages" "$(sha_tree n4)" "$(sha_tree n5)"
done

# ---- joined parts of one text ----
twice() { grep -c 'it is counted several times' "$1/README.md" || true; }
choose -q --partition parts d.tks
inspect parts/a.tks >seen
check "a stream of a partition leaves the others out" grep -q 'dropped: other-domains ' seen
tok --holdout 0.3 --holdout-output held.tks -o kept.tks
inspect held.tks >seen
check "so does a holdout" grep -q '61 documents, .* dropped: .*kept [0-9]* documents' seen
cat parts/*.tks | to_set p1
same "the card of joined partitions says that their text is counted several times" 1 "$(twice p1)"
cat kept.tks held.tks | to_set p2
same "  and that of a holdout and the rest" "1 122" "$(twice p2) $(json p2/report.json 'd["all_steps"]["documents"]["in"]')"
to_set p3 <kept.tks
same "  that of the rest alone does not" "0 61" "$(twice p3) $(json p3/report.json 'd["all_steps"]["documents"]["in"]')"
for f in held kept parts/a t again; do check "the independent reader agrees with $f" tokstream --check --need-all $f.tks; done

# ---- a mix: how often its sources are repeated, and periods that fall short ----
"$PYTHON" - <<'PY' >m.jsonl
for i in range(60):
    print('{"text": "%s", "d": "%s"}' % ("word%d " % i * 40, "ab"[i % 3 == 0]))
PY
tokenize -q -t bytes --domain-field d m.jsonl | decompose -q --min 64 --max 64 --tail drop -o m.tks
shuffle -q --format mds --mix a=0.4,b=0.6 --max-tokens 14000 m.tks -o x1
check "the card has the repeats of a mix" "$PYTHON" - <<'PY'
import json
mix = {s["name"]: s for s in json.load(open("x1/report.json"))["mix"]["sources"]}
card = open("x1/README.md").read()
for name, s in mix.items():
    has, took = s["available"], s["taken"]
    row = "| %s | %d | %d | %d | %d | %.2f | {:,} | ".format(took["tokens"])
    assert row % (name, has["documents"], has["sequences"], s["sequences_used"], took["sequences"], s["epochs"]) in card, card
assert mix["b"]["epochs"] > 1.5 > 1 > mix["a"]["epochs"]
PY
status "periods of a mix" 0 shuffle --format mds --mix-schedule 'a=0.9,b=0.1:90%;b=0.97,a=0.03:5%;a=1:5%' --max-tokens 5000 -o x2 m.tks
check "  which fall short are named" grep -q '^shuffle: --mix-schedule: period 2 wants 242 tokens of b and takes 192, in 3 whole sequences; make' err
check "  each" grep -q 'period 2 wants 7 tokens of a and takes 0, in 0 whole' err
check "  and no other" test "$(grep -c 'mix-schedule: period' err)" = 2
check "  on the card, too" grep -qxF '| b | 2 | 242 | 192 | 3 |' x2/README.md
same "  and in the report" '[null, 50, null]' "$(json x2/report.json '[p.get("short") for p in d["mix"]["sources"][1]["periods"]]')"
# Tokens of a source that are less than what one period wants: sequences are whole.
short() { json "$1/report.json" '[s["periods"][0].get("short") for s in d["mix"]["sources"]]'; }
status "a single period" 0 shuffle --format mds --mix-schedule 'a=0.4,b=0.6:100%' --max-tokens 500 -o x3 m.tks
check "  which falls short is named" grep -q '^shuffle: --mix-schedule: period 1 wants 300 tokens of b and takes 256, in 4 whole' err
check "  on the card, too" grep -qxF '| b | 1 | 300 | 256 | 4 |' x3/README.md
same "  and in the report" '[null, 44]' "$(short x3)"
status "the same mix without periods" 0 shuffle --format mds --mix 'a=0.4,b=0.6' --max-tokens 500 -o x4 m.tks
same "  is not named" "[null, null]" "$(short x4)"
check "  nor warned of" shell '! grep -q "period\|short" err'
status "schedule names that of a single period" 0 schedule --trainer generic --batch-tokens 128 --stats s.json -o y.sched x3
same "  and counts it" 1 "$(json s.json 'd["short_periods"]')"
status "schedule names them" 0 schedule --trainer generic --batch-tokens 640 --stats s.json -o x.sched x2
check "  by set, period and source" grep -q '^schedule: x2: period 2 of its mix has 192 tokens of b, and 242 were wanted' err
same "  and counts them" 2 "$(json s.json 'd["short_periods"]')"
