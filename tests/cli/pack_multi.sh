# shellcheck shell=bash disable=SC2154,SC2016,SC2034
# pack_multi.sh - pack --method multi: bins of several lengths, from the command line to the stream.
# tests/unit/test_multi.c checks the bins item by item.
# check-more: whole

have tokenize decompose pack inspect || return 0
corpus c.jsonl 4000000 12
tokenize -t bytes --domain-field domain -o c.tks c.jsonl
lengths() { inspect --json "$1" >j.json && json j.json '" ".join(str(l) for l, _ in d["lengths"])'; }
b=256,1000,4Ki

pack --method multi --buckets $b --stats s.json -o m.tks c.tks
same "only those lengths" "256 1000 4096" "$(lengths m.tks)"
inspect --json m.tks >j.json
same "  and the header has them" "[256, 1000, 4096]" "$(json j.json 'd["bucket_lengths"]')"
check "it verifies" inspect --verify m.tks
check "every token occurs once, bins keep domains apart, padding agrees with the account" "$PYTHON" -c '
import collections, json, subprocess
def records(name):
    for line in subprocess.run(["inspect", "--records", name], stdout=subprocess.PIPE, check=True).stdout.splitlines():
        yield json.loads(line)["segments"]
whole = {s["document"]: s["length"] for q in records("c.tks") for s in q}
got, pad = collections.Counter(), 0
for q in records("m.tks"):
    pad += sum(s["length"] for s in q if s.get("padding"))
    parts = [s for s in q if not s.get("padding")]
    assert len({s["domain"] for s in parts}) == 1, q
    for s in parts:
        got[s["document"]] += s["length"]
assert got == whole
s = json.load(open("s.json"))
assert s["tokens"]["padding"] == pad and abs(s["padding_ratio"] - pad / sum(whole.values())) < 1e-8, s'
for o in "-T 1" "-T 7" "-M 32M" "-M 1G" "--device cpu"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$(sha m.tks)" "$(pack --method multi --buckets $b $o c.tks | sha)"
done
ratios() {
    pack --method multi --mix-domains --buckets 256,512,1Ki,2Ki,4Ki --padding-threshold "$1" --stats "r$1.json" -o x.tks c.tks
}
ratios 0
ratios 20%
pack --mix-domains --length 4Ki --stats one.json -o x.tks c.tks
same "more padding allowed, fewer documents a bin; fewer than in bins of one length" true "$("$PYTHON" -c '
import json
few, many, one = (json.load(open(n)) for n in ("r20%.json", "r0.json", "one.json"))
good = few["concatenation_ratio"] < many["concatenation_ratio"] < one["concatenation_ratio"]
good = good and many["padding_ratio"] < few["padding_ratio"] < 0.2
print("true" if good and few["truncation_ratio"] == many["truncation_ratio"] == one["truncation_ratio"] else (few, many, one))')"
pack --method multi --buckets $b --max-segments 2 -o x.tks c.tks
check "--max-segments" "$PYTHON" -c '
import json, subprocess
for line in subprocess.run(["inspect", "--records", "x.tks"], stdout=subprocess.PIPE, check=True).stdout.splitlines():
    assert len([s for s in json.loads(line)["segments"] if not s.get("padding")]) <= 2, line'
pack --method multi --buckets $b --fill drop --stats s.json -o x.tks c.tks
same "--fill drop: bins that are not full are counted" "[0, true]" \
    "$(inspect --json x.tks >j.json; json j.json 'd["padding"]' >a; json s.json 'd["tokens"]["dropped"]["not-full"] > 0' >b; echo "[$(cat a), $(cat b)]")"
pack --method multi --buckets 64,512 --long drop --stats s.json -o x.tks c.tks
same "--long drop: longer than the longest bin" true "$(json s.json 'd["documents"]["dropped"]["too-long"] > 0 and d["truncation_ratio"] == 0')"

decompose --min 64 --max 1024 c.tks -o d.tks
pack --method multi --stats s.json d.tks -o x.tks
same "behind decompose: the buckets of the stream" "64 128 256 512 1024" "$(lengths x.tks)"
decompose --label-token --min 64 --max 256 c.tks | pack --method multi -o x.tks
same "label tokens" "65 129 257" "$(lengths x.tks)"
check "with --balance" shell 'pack --method multi --buckets 256,1Ki --balance 2 --balance-tokens 8Ki c.tks | inspect --verify'
check "--plan says it too" shell "pack --method multi --buckets $b --plan c.tks | grep -c '^[*] multi '"
inspect --json m.tks >j.json
same "provenance" "--method=multi --buckets=256,1000,4Ki" "$(json j.json 'd["provenance"][-1]["arguments"]')"

for o in "--method multi" "--method multi --buckets 256 --length 256" "--buckets 256 --length 256" \
    "--padding-threshold 0.1 --length 256" "--method multi --buckets 256,256" "--method multi --buckets 256,x" \
    "--method multi --buckets 0,256" "--method multi --buckets 256," "--method multi --buckets 256,1Ti" \
    "--method multi --buckets 256 --padding-threshold 2"; do
    # shellcheck disable=SC2086 # words
    status "usage: $o" 2 pack -o x.tks $o c.tks
    check "  one line" one_line err
done

# past the budget: 16 MB of tokens, packed with 32M, as with 2G
for i in 1 2 3 4 5 6 7 8; do cat c.jsonl; done >c8.jsonl
tokenize -t bytes -o c8.tks c8.jsonl
rm c8.jsonl
same "spilled: the same bytes" "$(pack --method multi --buckets $b -M 2G c8.tks | sha)" \
    "$(pack --method multi --buckets $b -M 32M -T 7 --stats s.json c8.tks | sha)"
same "  and it did spill" true "$(json s.json 'd["spill_bytes"] > 0')"
