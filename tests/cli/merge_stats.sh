# shellcheck shell=bash disable=SC2154
# merge_stats.sh - inspect --merge-stats: the counts of a job's parts are those of one run; missing, repeated and lost
# reports are named.

have tokenize decompose inspect dedup pack || return 0
corpus c.jsonl 60000 10
tokenize -t bytes -q --rejects bad c.jsonl --stats tok.json -o whole.tks
decompose --min 16 --max 64 whole.tks --stats dec.json -o whole.dec
pack whole.dec --stats pack.json -o packed.tks
inspect --merge-stats tok.json dec.json pack.json >one
for i in 0 1 2; do
    tokenize -t bytes -q --part $i/3 --rejects 'bad.{part}' -o 't.{part}' --stats 'tok.{part}.json' c.jsonl
    decompose --min 16 --max 64 --part $i/3 -o 'd.{part}' --stats 'dec.{part}.json' 't.{part}'
done
pack d.0 d.1 d.2 --stats packed.json -o packed2.tks
status "three parts of two programs" 0 inspect --merge-stats tok.?.json dec.?.json packed.json
cp "$TMP/out" three
same "the programs" '["tokenize", "decompose", "pack"]' "$(json three '[p["program"] for p in d["programs"]]')"
same "conserved" true "$(json three 'd["conserved"]')"
for what in tokens sequences documents; do
    same "$what are those of the one run" "$(json one "[p['$what'] for p in d['programs']]")" "$(json three "[p['$what'] for p in d['programs']]")"
done
same "parts are counted" '[3, 3, 1]' "$(json three '[p["stages"][0]["parts"] for p in d["programs"]]')"
check "and processors' seconds" test "$(json three 'd["programs"][0]["cpu_seconds"] > 0')" = true
status "manifests will do" 0 inspect --merge-stats t.?.manifest.json dec.?.json packed.json
printf '%s\n' tok.?.json dec.?.json packed.json >list
inspect --merge-stats - <list >listed
check "names from standard input" cmp three listed
status "--table" 0 inspect --merge-stats --table tok.?.json dec.?.json packed.json
cp "$TMP/out" table
same "  has three lines a program, and no other" "11 1 1 1" "$(wc -l <table) $(grep -c '^tokenize  *documents ' table) $(grep -c '^decompose  *documents ' table) $(grep -c '^pack  *documents ' table)"
same "  with the counts of the report" \
    "$(json three '[[p["tokens"][k] for k in ("in", "created", "out")] for p in d["programs"]]')" \
    "$(awk 'BEGIN { printf "[" } $1 == "tokens" { printf "%s[%s, %s, %s]", n++ ? ", " : "", $2, $3, $6 } END { print "]" }' table)"
inspect --merge-stats --table three >again
check "a merged report is read too" cmp table again
inspect --merge-stats three >again
same "  with the same counts" "$(json three '[p["tokens"] for p in d["programs"]]')" "$(json again '[p["tokens"] for p in d["programs"]]')"
status "--table alone" 2 inspect --table whole.tks
inspect --merge-stats -o file tok.?.json && check "-o" "$PYTHON" -m json.tool file out

# fault WHAT PATTERN FILES...
fault() {
    what=$1 pattern=$2
    shift 2
    status "$what" 1 inspect --merge-stats "$@"
    check "  one line" one_line "$TMP/err"
    check "  that says so" grep -q -e "$pattern" "$TMP/err"
    check "  and nothing else" test ! -s "$TMP/out"
}
fault "a part is missing" 'tokenize: part 1 of 3 is missing$' tok.0.json tok.2.json
fault "two are" 'tokenize: part 0 of 3 is missing, and others' tok.2.json
fault "a part twice" 'tokenize: tok.0.json and t.0.manifest.json are of the same part; name one of them' tok.0.json t.0.manifest.json tok.1.json tok.2.json
fault "a run twice" 'pack.json and packed.json are of the same part; name one of them' pack.json packed.json
fault "another job's part" 'tokenize: tok.0.json is of 3 parts, and tok.json of 0 .*; name the reports of one job' tok.0.json tok.json
sed '/"tokens"/s/"out": \([0-9]*\)/"out": 1\1/' dec.1.json >bad.json
fault "a report that does not balance" 'bad.json: .*tokens do not balance' dec.0.json bad.json dec.2.json
sed '/"tokens"/s/"in": \([0-9]*\)/"in": 1\1/; /"tokens"/s/"out": \([0-9]*\)/"out": 1\1/' dec.1.json >bad.json
"$PYTHON" - <<'END'
import json
d = json.load(open("dec.1.json"))
d["tokens"]["in"] -= 5
d["tokens"]["out"] -= 5
json.dump(d, open("bad.json", "w"))
for stage, key, other in (("scatter", "to_work", "in"), ("gather", "from_work", "out")):
    c = {k: {"in": 0, "created": 0, "repeated": 0, "padding": 0, "out": 0, "dropped": {}} for k in ("tokens", "sequences", "documents")}
    for k, n in (("tokens", 40), ("sequences", 4), ("documents", 2)):
        c[k].update({other: n, key: n, "from_work" if key == "to_work" else "to_work": 0})
    json.dump({"program": "pack", "version": "1", "stage": stage, "part": [0, 1], **c}, open(stage + ".json", "w"))
    c["tokens"]["created"] = 1
    c["tokens"][key if other == "in" else other] += 1
    json.dump({"program": "pack", "version": "1", "stage": stage, "part": [0, 1], **c}, open(stage + "1.json", "w"))
END
fault "tokens that got lost between two programs" 'tokens came out of tokenize, and .* went into decompose' tok.?.json dec.0.json bad.json dec.2.json
status "stages" 0 inspect --merge-stats scatter.json gather.json
same "  each with its parts" '[["scatter", 1], ["gather", 1]]' "$(json "$TMP/out" '[[p["stage"], p["parts"]] for p in d["programs"][0]["stages"]]')"
fault "tokens that got lost between two stages" '41 tokens went into the work folder of pack, and 40 came out of it for pack' scatter1.json gather.json
fault "no report" 'list: ' list
for other in '{"counts": []}' '{"programs": []}' '{"programs": 7}' '{"programs": [7]}' '{"programs": {"program": "pack"}}' '{"programs": [{"tokens": 1}]}'; do
    echo "$other" >other.json
    fault "JSON, but no report: $other" 'is neither a report of --stats nor a manifest' other.json
done
fault "no such file" 'nowhere.json' nowhere.json
echo '{"program": "pack", "part": [3, 2], "tokens": {}}' >bad.json
fault "a part that cannot be" 'bad.json' bad.json
echo '{"program": "pack", "part": [0, 2], "tokens": {}}' >bad.json
fault "no counts" 'bad.json.*tokens' bad.json
status "with another mode" 2 inspect --merge-stats --json tok.json
status "without reports" 2 inspect --merge-stats
# dedup twice in one line
dedup --exact whole.tks -o e.tks --stats e.json
dedup --near e.tks -o n.tks --stats n.json
status "two modes of one program" 0 inspect --merge-stats tok.json e.json n.json
same "  are told apart" '[null, "exact", "near"]' "$(json "$TMP/out" '[p.get("mode") for p in d["programs"]]')"
fault "  and named" 'came out of tokenize, and .* went into dedup --near$' tok.json n.json e.json
