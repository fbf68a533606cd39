# shellcheck shell=bash disable=SC2154,SC2016,SC2046
# schedule_steps.sh - schedule --trainer generic and olmo: refused options and their messages, the files that are
# written, the reported unused sequences, and inspect on good and damaged schedules. tests/props/check_schedule.py
# checks the steps.

have schedule inspect || return 0
# manifest DIR NAME SEQUENCES...: DIR/NAME/manifest.jsonl, a shard for each number.
manifest() {
    mkdir -p "$1/$2"
    f=$1/$2/manifest.jsonl
    shift 2
    : >"$f"
    for n; do
        echo "{\"shard\":\"shard-$n\",\"num_sequences\":$n}" >>"$f"
    done
}
manifest set D_4 100 100 37
manifest set D_5 64 50
manifest set D_6 40 21
generic() { schedule --trainer generic --batch-tokens 128 --world 2 "$@"; }
olmo() { schedule --trainer olmo --batch-tokens 128 --world 2 "$@"; }

status "a schedule to standard output" 0 generic set
cp out whole.sched
check "  is the file that -o writes" shell 'schedule --trainer generic --batch-tokens 128 --world 2 -o o.sched set && cmp whole.sched o.sched'
status "--json alone" 0 generic --json s.json set
check "  writes nothing else" test ! -s out
same "  with the same content" "$(inspect --json whole.sched | tr -d ' \n' | cut -c 2-500)" \
    "$("$PYTHON" -c 'import json
d = json.load(open("s.json")); del d["version"], d["steps"]; print(json.dumps(d))' | tr -d ' \n' | cut -c 2-500)"
same "  and as many steps" "$(inspect --records whole.sched | wc -l)" "$(json s.json 'len(d["steps"])')"
status "--json and -o" 0 generic --json t.json -o t.sched set
check "  are both written" shell 'cmp s.json t.json && cmp t.sched whole.sched'
status "--json -, alone" 0 generic --json - set
check "  is the file" cmp out s.json
status "--json - and -o to standard output" 2 generic --json - -o - set
# Of several epochs, too: a step would have a sequence several times.
manifest few D_4 300
manifest few D_6 15
schedule --trainer generic --batch-tokens 1024 --epochs 10 --json e.json -o e.sched few 2>err
check "a bucket with fewer sequences than a step is not used" grep -q 'the bucket of 64 is not used: it has fewer sequences than a step takes' err
same "  in no epoch" "[46, 0]" "$(json e.json '[b["steps"] for b in d["buckets"]]')"
check "  and the file is sound" inspect -q --verify e.sched
status "/dev/full" 1 shell 'schedule --trainer generic --batch-tokens 128 set >/dev/full'
check "  one line" one_line err
if command -v script >/dev/null 2>&1; then
    code script -qec "'$BIN/schedule' --trainer generic --batch-tokens 128 set" /dev/null </dev/null >shown.tty 2>&1
    same "a terminal is refused" 2 $ended
    check "  with the options to use" grep -q -e '-o FILE' shown.tty
else
    skip "a terminal is refused: no script(1)"
fi

# What is left out, and why.
generic -v --stats st.json -o o.sched set 2>notes
check "-v prints the steps of a bucket" grep -q '^schedule: 16 tokens: 8 sequences to a step, 29 steps a pass$' notes
left='leaves out sequences, because whole steps do not take them: 5 of 237 of 16 tokens, 2 of 114 of 32 tokens, 1 of 61 of 64 tokens'
check "sequences left out are warned of" grep -q "^schedule: the epoch $left" notes
generic -q -o o.sched set 2>notes
check "  not with -q" test ! -s notes

# From epoch 1 on in another order; the remainder goes into the next epoch.
generic --epochs 3 --stats st3.json -o three.sched set 2>notes
same "--epochs 3: of the last epoch alone a remainder is left" 1 \
    "$(grep -c '^schedule: the last epoch leaves out .*: 7 of 237 of 16 tokens, 2 of 114 of 32 tokens, 1 of 61 of 64 tokens' notes)"
same "  how often sequences are taken" '[[[2, 7], [3, 230]], [[2, 2], [3, 112]], [[2, 1], [3, 60]]]' \
    "$(json st3.json '[b["uses"] for b in d["schedule"]["buckets"]]')"
same "  none is dropped" '{}' "$(json st3.json 'd["sequences"]["dropped"]')"
status "  inspect" 0 inspect three.sched
check "    shows it" grep -qE '^ +16 +4 +237 +88 +33.3%  230 x 3, 7 x 2$' out
check "    and the order" grep -q '^schedule, generic, curriculum grow-p2, each epoch in its own order$' out
status "    --verify" 0 inspect --verify three.sched set
generic --epochs 3 --from-step 200 -o tail.sched -q set
same "  --from-step: the steps of the whole" "$(inspect --records three.sched | tail -n +201)" "$(inspect --records tail.sched)"
# How often the steps of a file take each sequence, by its records and by what inspect says.
cat >uses.py <<'PY'
import collections, json, re, subprocess, sys
def inspect(*a):
    return subprocess.run(["inspect", *a], check=True, stdout=subprocess.PIPE, text=True).stdout
for path in sys.argv[1:]:
    d = json.loads(inspect("--json", path))
    n = [collections.Counter() for b in d["buckets"]]
    steps = collections.Counter()
    for line in inspect("--records", path).splitlines():
        r = json.loads(line)
        steps[r["bucket"]] += 1
        n[r["bucket"]].update(r.get("numbers", range(r["first"], r["first"] + r["sequences"])))
    rows = [line.split() for line in inspect(path).splitlines() if re.match(r" +\d+ +\S+( left)? +\d+ +\d+ +[0-9.]+%", line)]
    assert len(rows) == len(n) and (d["n_steps"] < d["total_steps"]) == ("here" in d), d
    for i, b in enumerate(d.get("here", d["buckets"])):
        count = collections.Counter(n[i].values())
        if d["buckets"][i]["sequences"] > len(n[i]):
            count[0] = d["buckets"][i]["sequences"] - len(n[i])
        assert sorted(count.items()) == [tuple(u) for u in b["uses"]] and b["steps"] == steps[i], (path, i, count, b)
        text = " ".join(rows[i])
        for times, k in count.items():
            assert ("%d x %d" % (k, times) if times else " %d never" % k) in text, (text, count)
print("ok")
PY
olmo --epochs 3 --from-step 50 -o olmo.sched -q set
generic --epochs 3 --reorder --from-step 100 -o reorder.sched -q set
generic --from-step 40 -o once.sched -q set
generic --epochs 40 --cycles 3 --curriculum natural --from-step 200 -o far.sched -q set
generic --epochs 3 --from-step 263 -o last.sched -q set
generic --epochs 3 --tokens 30000 --from-step 10 -o short.sched -q set
same "  inspect says how often each sequence is used there" ok \
    "$("$PYTHON" uses.py three.sched tail.sched olmo.sched reorder.sched once.sched far.sched last.sched short.sched)"
generic --epochs 3 --reorder -o same.sched set 2>notes
check "--reorder: the same steps in each epoch" grep -q "^schedule: each epoch $left" notes
same "  none has other members" 87 "$(inspect --records same.sched | sed 's/.*"bucket"/"bucket"/; s/,"epoch.*//' | sort -u | wc -l)"
same "--stats counts it" '{"fewer-than-a-step": 8}' "$(json st.json 'd["sequences"]["dropped"]')"
same "  by bucket" '[{"remainder": 5}, {"remainder": 2}, {"remainder": 1}]' \
    "$(json st.json '[b["dropped"] for b in d["schedule"]["buckets"]]')"
generic --curriculum 1,0,1 --stats st.json -o o.sched set 2>notes
same "odds of 0" 114 "$(json st.json 'd["sequences"]["dropped"]["odds-0"]')"
check "  are warned of" grep -q 'the bucket of 32 is not used: its odds are 0' notes
generic --tokens 1300 --stats st.json -o o.sched set
same "--tokens" "[10, 10]" "$(json st.json '[d["schedule"]["total_steps"], d["tokens"]["out"] // 128]')"
generic --tokens 12800 --stats st.json -o o.sched set
same "  more tokens than the shards have: another pass" "[100, 2]" "$(json st.json '[d["schedule"]["total_steps"], d["schedule"]["epochs"]]')"
generic --tokens 12800 --epochs 1 --stats st.json -o o.sched set
same "  but not past --epochs" 87 "$(json st.json 'd["schedule"]["total_steps"]')"
olmo --cycles 4 --stats st.json -o o.sched set
same "olmo leaves out runs that no cycle takes" '{"beyond-cycles": 12, "fewer-than-a-step": 8}' \
    "$(json st.json 'dict(sorted(d["sequences"]["dropped"].items()))')"
olmo --cycles 4 --balanced --stats st.json -o o.sched set
same "  --balanced" "[28, 28, 28]" "$(json st.json '[b["steps_per_pass"] for b in d["schedule"]["buckets"]]')"
manifest odds D_4 90
manifest odds D_5 40
manifest odds D_6 20
olmo --curriculum grow-linear --cycles 1 -o o.sched odds 2>notes
check "counts on which the original stops" grep -q "OLMo-core's rounding deals out more steps than there are in 1 of" notes
status "  are sound all the same" 0 inspect --verify o.sched odds
check "olmo fills gaps between buckets" shell 'rm -rf gap; mkdir gap; cp -r set/D_4 set/D_6 gap
    schedule --trainer olmo --batch-tokens 128 --cycles 1 -o o.sched gap && inspect --json o.sched | grep -c "\"length\": 32, \"sequences\": 0,"'

manifest huge D_30 1099511627776
# Refused.
refused() { # WHAT STATUS PATTERN COMMAND...
    what=$1 code=$2 pattern=$3
    shift 3
    status "$what" "$code" "$@"
    check "  in one line that says why" shell 'test "$(wc -l <"$1")" -ge 1 && grep -qe "$2" "$1"' sh "$TMP/err" "$pattern"
    check "  writes nothing" test ! -s "$TMP/out"
}
refused "no --batch-tokens" 2 'batch-tokens N' schedule --trainer generic set
refused "a step that the world does not divide" 2 'not a multiple of the 192 tokens that one sequence of 64 takes on each of 3' \
    schedule --trainer generic --batch-tokens 128 --world 3 set
refused "a step of less than a sequence for each rank" 2 'not a multiple of' schedule --trainer generic --batch-tokens 32 set
refused "--workers with generic" 2 'workers needs --trainer openlm' generic --workers 2 set
refused "--cycles with openlm" 2 'cycles needs --trainer generic or olmo' schedule --cycles 2 set
refused "--json with openlm" 2 'json needs' schedule --json x.json set
refused "--balanced with generic" 2 'balanced needs --trainer olmo' generic --balanced set
refused "--cycles 0" 2 'at least 1' generic --cycles 0 set
refused "more cycles than steps" 2 '88 cycles are more than the 87 steps' generic --cycles 88 set
refused "a curriculum that OLMo-core has not" 2 'natural, grow-p2 and grow-linear' olmo --curriculum shrink-p2 set
refused "natural with cycles" 2 'no cycles' olmo --curriculum natural --cycles 2 set
refused "--reorder with olmo" 2 'its own order' olmo --reorder set
refused "--from-step behind the end" 2 'past the last' generic --from-step 88 set
refused "more tokens than can be counted" 1 'more than 2^62' generic --epochs 4294967295 --cycles 1 --curriculum natural \
    --batch-tokens 2Gi --seed 1 huge
refused "--tokens of less than a step" 2 'are less than a step, which takes' generic --tokens 127 set
refused "steps larger than any bucket" 1 'no bucket has enough sequences for a step' generic --batch-tokens 64Ki set
refused "more memory than -M" 1 'with -M' schedule --trainer olmo --cycles 1 --batch-tokens 64 -M 100 set
status "--from-step the end: no steps" 0 generic --from-step 87 set
cp out none.sched
status "  is a schedule too" 0 inspect --verify none.sched

# Lengths that are no powers of two; sets without manifests.
manifest odd L_100 500
manifest odd L_300 100
status "other lengths" 0 schedule --trainer generic --batch-tokens 600 --world 2 -o odd.sched odd
same "  in bricks" "[3, 1]" "$(schedule --trainer generic --batch-tokens 600 --world 2 --bricks --json odd.json odd
    json odd.json '[b["sequences_per_unit"] for b in d["buckets"]]')"
refused "  not with olmo" 1 'powers of two' schedule --trainer olmo --batch-tokens 600 odd
mkdir report && cat >report/report.json <<'EOF'
{"format": "ds", "buckets": [{"name": "D_4", "length": 16, "sequences": 237, "shards": 3, "shard_sequences": 100},
 {"name": "D_6", "length": 64, "sequences": 61, "shards": 2, "shard_sequences": 40}],
 "sequences": 298, "checksum": "000102030405060708090a0b0c0d0e0f"}
EOF
status "a set that has only report.json" 0 generic --json report.out report
same "  has its counts and checksum" '[237, 61, "000102030405060708090a0b0c0d0e0f"]' \
    "$(json report.out '[b["sequences"] for b in d["buckets"]] + [d["checksum"]]')"
refused "  OpenLM does not read it" 1 'reads sets with manifests' schedule report
sed 's/"length": 64/"length": -1/' report/report.json >bad.json && mkdir bad && mv bad.json bad/report.json
refused "  a bad one" 1 'bad/report.json' generic bad

refused "odds that are all 0" 2 'odds of all buckets are 0' generic --curriculum 0,0,0 set
manifest wrap D_40 $(seq 257 | sed 's/.*/65536/')
manifest wrap/one D_4 655360
manifest wrap/one D_40 4
refused "counts that wrap" 1 'more than 2^62 tokens' schedule --trainer generic --batch-tokens 1024Ti --tokens 1024Ti wrap

# A set that is not whole. Sets of the reference trainer have manifests and nothing else: `set` above.
full() { # a set as shuffle leaves it, but for the shards and what is in segments
    rm -rf full
    cp -r set full
    mkdir full/segments
    cat >full/report.json <<'EOF'
{"format": "wds", "buckets": [{"name": "D_4", "length": 16, "sequences": 237, "shards": 3, "shard_sequences": 100},
 {"name": "D_5", "length": 32, "sequences": 114, "shards": 2, "shard_sequences": 64},
 {"name": "D_6", "length": 64, "sequences": 61, "shards": 2, "shard_sequences": 40}],
 "sequences": 412, "checksum": "000102030405060708090a0b0c0d0e0f"}
EOF
}
openlm() { schedule "$@"; }
for t in generic openlm; do
    full
    status "$t: a whole set" 0 $t full
    rm full/D_5/manifest.jsonl
    refused "$t: a bucket without its manifest" 1 'full: the set is incomplete: D_5 has no manifest' $t full
    rm full/report.json
    refused "$t: nor a report" 1 'full: the set is incomplete: D_5 has no manifest' $t full
    full
    rm -r full/D_5
    refused "$t: a bucket that only the report has" 1 'incomplete: the bucket of 32 that report.json names' $t full
    full
    rm -r full/D_6
    refused "$t: the longest one" 1 'incomplete: the bucket of 64 that report.json names' $t full
    full
    rm full/report.json
    refused "$t: segments and no report" 1 'full: the set is incomplete: there is no report.json' $t full
    full
    manifest full D_5 64
    refused "$t: fewer sequences than reported" 1 'D_5/manifest.jsonl: 64 sequences, and report.json says 114' $t full
    full
    manifest full D_7 64
    refused "$t: a bucket that the report has not" 1 'D_7/manifest.jsonl: report.json names no such bucket' $t full
    full
    rm full/D_?/manifest.jsonl
    refused "$t: manifests lost, report there" 1 'incomplete: the bucket of 16' $t full
    full
    sed -i 's/412/413/' full/report.json
    refused "$t: a report that does not add up" 1 'report.json: says 413 sequences, and the buckets have 412' $t full
done
full
status "one bucket of a set by its name" 0 generic full/D_5

# inspect
status "inspect" 0 inspect whole.sched
cp out shown
check "  the head" grep -q '^schedule, generic, curriculum grow-p2$' shown
check "  a bucket" grep -qE '^ +16 +4 +237 +29 +33.3%  232 x 1, 5 never \(remainder\)$' shown
same "  a row of the drawing for each bucket" 3 "$(grep -c '█' shown)"
status "--histogram" 0 inspect --histogram whole.sched
same "  is the drawing alone" "$(tail -n 4 shown)" "$(cat out)"
same "--records=2" "$(inspect --records whole.sched | sed -n 1,2p)" "$(inspect --records=2 whole.sched)"
status "--jsonl" 2 inspect --jsonl whole.sched
refused "a schedule on a pipe" 1 'a schedule, not a token stream.*from a file and not from a pipe' \
    shell 'cat whole.sched | inspect'
check "  one line" one_line err
refused "  by a name" 1 'a schedule, not a token stream' shell 'cat whole.sched | inspect --verify /dev/stdin'
refused "  to another program" 1 'a schedule, not a token stream' pack --length 128 -o /dev/null whole.sched
status "--verify" 0 inspect --verify whole.sched
status "  with its shards" 0 inspect --verify whole.sched set
manifest set2 D_4 100 100 36
status "  with others" 1 inspect --verify whole.sched set2
check "  one line" one_line err
refused "--records with others" 1 'made for other shards' inspect --records whole.sched set2
status "  with its own" 0 inspect --records whole.sched set
status "lengths of 13 digits" 0 shell 'schedule --trainer generic --batch-tokens 1Ti --bricks -o long.sched "$@"' sh wrap/one
inspect long.sched >out
same "  stay in their columns" "13 13" "$(awk '/^ *(length|step) / { print index($0, $1) + length($1) - 1 }' out | xargs)"
n=$(wc -c <whole.sched)
for at in 9 100 255 300 640 700 $((n - 20)) $((n - 1)); do
    "$PYTHON" -c 'import sys
b = bytearray(open("whole.sched", "rb").read()); b[int(sys.argv[1])] ^= 4; open("bad.sched", "wb").write(b)' $at
    for mode in --verify --json --records --histogram; do
        code inspect $mode bad.sched >out 2>err
        [ $ended = 1 ] && one_line err && continue
        not_ok "byte $at flipped: $mode"
    done
    ok "byte $at flipped"
    head -c $at whole.sched >bad.sched
    status "cut at $at" 1 inspect --verify bad.sched
done
# A run twice in a pass, its hashes right: only the count of all can see it.
"$PYTHON" - <<'EOF' || skip "a step twice: needs the package xxhash"
import struct, sys
try:
    import xxhash
except ImportError:
    sys.exit(1)
b = bytearray(open("whole.sched", "rb").read())
n = struct.unpack_from("<Q", b, 120)[0]
b[640 + 16:640 + 32] = b[640:640 + 16]
b[640 + 16 * n:640 + 16 * n + 8] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(b[640:640 + 16 * n])))
b[-16:-8] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(b[-24:-16])))
open("twice.sched", "wb").write(b)
EOF
if [ -e twice.sched ]; then
    status "a step twice" 1 inspect --verify twice.sched
    check "  is named" grep -q 'step 1 takes sequences that this pass has had' err
fi

# ---- sets that were mixed in periods ----
corpus mixed.jsonl 300000 9
tokenize -t bytes --domain web mixed.jsonl >web.tks
tokenize -t bytes --domain code mixed.jsonl >code.tks
mix="--mix-schedule web=0.9,code=0.1:50%;code=1:50% --max-tokens 200Ki --format ds"
decompose --min 16 --max 64 --label-token --tail drop web.tks >web.d
decompose --min 16 --max 64 --label-token --tail drop code.tks >code.d
# shellcheck disable=SC2086 # options
shuffle -q $mix -o periods web.d code.d
schedule --trainer generic --batch-tokens 256 -o p.sched periods 2>err
check "periods of several buckets overlap: is said" shell '[ "$(grep -vc "leaves out" err)" = 1 ] && grep -q "periods: was mixed in 2 periods" err'
schedule -q --trainer generic --batch-tokens 256 -o p.sched periods 2>err
check "  not with -q" test ! -s err
for x in web code; do decompose --buckets 64 --label-token --tail drop $x.tks >$x.d; done
# shellcheck disable=SC2086 # options
shuffle -q $mix -o one web.d code.d
schedule --trainer generic --batch-tokens 256 -o p.sched one 2>err
check "periods of one bucket follow one another" shell '! grep -q "was mixed" err'
