# shellcheck shell=bash disable=SC2154
# shuffle_mix.sh - mixes: the same bytes for any -M and -T, from files and from pipes; shards; sources that are inputs;
# schedules and the beginnings of their periods; refused mixes. tests/props/check_mix.py checks which sequences are
# taken.
# check-more: whole, and longer

have tokenize decompose pack shuffle inspect || return 0

corpus base.jsonl 1500000 31
"$PYTHON" - <<'PY'
import json
base = [json.loads(l) for l in open("base.jsonl", encoding="utf-8")]
domains = "web", "web", "web", "code", "code", "math"
for name, of in ("all", domains), ("web", domains[:1]), ("code", domains[3:4]):
    with open(name + ".jsonl", "w", encoding="utf-8") as f:
        for n in range(20):
            for i, r in enumerate(base):
                r = dict(r, text="%d %s" % (n, r["text"]), domain=domains[(n + i) % 6])
                if r["domain"] in of:
                    f.write(json.dumps(r, ensure_ascii=False) + "\n")
PY
for n in all web code; do
    tokenize -q -t bytes --domain-field domain $n.jsonl | decompose --min 64 --max 1024 --label-token | pack -o $n.tks
done

mix="--mix web=0.5,code=0.3,math=0.2 --seed 4"
shuffle $mix -M 1G -T 1 --stats s.json -o want.tks all.tks
same "nothing is spilled with -M 1G" 0 "$(json s.json 'd["spill_bytes"]')"
want=$(sha want.tks)
for t in ${MORE:+1} 3; do
    shuffle $mix -M 32M -T $t --stats s.json -o out.tks all.tks
    same "-M 32M -T $t, a file" "$want" "$(sha out.tks)"
    check "-M 32M -T $t, a file: spills" test "$(json s.json 'd["spill_bytes"]')" -gt 0
    [ -n "${SAN:-}" ] || check "-M 32M -T $t, a file: peak memory within 96 MiB" \
        test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
    shuffle $mix -M 32M -T $t --stats s.json <all.tks >out.tks
    same "-M 32M -T $t, a pipe" "$want" "$(sha out.tks)"
    [ -n "${SAN:-}" ] || check "-M 32M -T $t, a pipe: peak memory within 96 MiB" \
        test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
done
shuffle $mix <all.tks >out.tks
same "a pipe that fits in memory" "$want" "$(sha out.tks)"
check "the shares are those asked for" "$PYTHON" - s.json <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
want = {"web": 0.5, "code": 0.3, "math": 0.2}
raise SystemExit(any(abs(s["share"] - want[s["name"]]) > 1e-4 for s in d["mix"]["sources"]) or
                 d["tokens"]["repeated"] or not d["tokens"]["dropped"]["mix"] or
                 max(s["epochs"] for s in d["mix"]["sources"]) < 0.9999)
PY

# A share that is less than a sequence is named: nothing of that domain is in the mix.
status "a small share" 0 shuffle --mix web=0.5,code=0.5,math=0.000001 --seed 4 -o small.tks all.tks
check "  is named" grep -q '^shuffle: --mix math: its share, [0-9]* tokens*, is less than a sequence, so none of it is taken; give it' err
check "  and no other" shell '! grep -q "web: its share\|code: its share" err'
status "  with -q" 0 shuffle -q --mix web=0.5,code=0.5,math=0.000001 --seed 4 -o small.tks all.tks
empty "  it is not" "$(cat err)"

# Shards: the same sequences, the order within each bucket that of the stream, period after period.
by_length() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
d = [(len(json.loads(l)["tokens"]), l) for l in sys.stdin]
sys.stdout.writelines(l for _, l in sorted(d, key=lambda x: x[0]))' | sha; }
plan="--mix-schedule web=0.7,code=0.3:75%;web=0.2,math=0.8:25% --max-tokens 18Mi --seed 5"
shuffle $plan -o periods.tks --stats s.json all.tks
shuffle -q $plan --format wds -M 32M -o set all.tks
same "a schedule's shards" "$(by_length periods.tks)" "$(inspect --records set | sha)"
check "inspect --verify" inspect --verify set
inspect --records periods.tks >records
"$PYTHON" - <<'PY'
import json
report, run = json.load(open("set/report.json"))["mix"], json.load(open("s.json"))
recs = [json.loads(l) for l in open("records")]
first = report["periods"][0]["sequences"]
def key(r):
    return json.dumps(r["segments"], sort_keys=True)
domain = [{s.get("domain") for s in r["segments"]} - {None} for r in recs]
good = report == run["mix"] and not any("math" in d for d in domain[:first]) and not any("code" in d for d in domain[first:])
print(("ok" if good else "not ok") + " shuffle_mix: the first period comes first, and the report says where it ends")
seen = {key(r) for r in recs[:first]}
new = {key(r) for r in recs[first:]} - seen
web = [s for s in report["sources"] if s["name"] == "web"][0]
good = len({key(r) for r in recs}) == sum(s["sequences_used"] for s in report["sources"])
good = good and run["sequences"]["repeated"] == len(recs) - len(seen | new)
good = good and (web["epochs"] > 1 or not any(key(r) in seen for r, d in zip(recs[first:], domain[first:])))
print(("ok" if good else "not ok") + " shuffle_mix: what comes twice is counted as repeated")
by = {}
for i, r in enumerate(recs):
    by.setdefault(len(r["tokens"]), []).append(i >= first)
good = all(by[b["length"] + 1].index(True) == b["begin"] for b in report["periods"][1]["buckets"] if b["sequences"])
good = good and all(b["begin"] == 0 for b in report["periods"][0]["buckets"])
print(("ok" if good else "not ok") + " shuffle_mix: the report says where the second period begins in each bucket")
PY

# By input: by name or by number, and pipes have names too.
shuffle --seed 7 --mix-by input --mix web.tks=1,code.tks=2 web.tks code.tks --no-provenance -o a.tks
shuffle --seed 7 --mix-by input --mix 1=2,0=1 web.tks code.tks --no-provenance -o b.tks
same "by input, by name or by number" "$(sha a.tks)" "$(sha b.tks)"
mkfifo one two
cat web.tks >one & cat code.tks >two &
timeout 60 shuffle --seed 7 --mix-by input --mix ./one=1,two=2 ./one two --no-provenance -o b.tks
wait
same "from FIFOs" "$(sha a.tks)" "$(sha b.tks)"
same "domains and inputs agree where they are the same" "$(sha a.tks)" \
    "$(shuffle --seed 7 --mix web=1,code=2 web.tks code.tks --no-provenance | sha)"

# Fields of metadata that tell the same documents as domains give the same mixes, also of packed sequences; in stages too.
"$PYTHON" - <<'PY'
import json
of = {"web": (1, 0.5), "code": (2, -3), "math": (3, 1e30), "": (None, None)}
with open("fields.jsonl", "w", encoding="utf-8") as f:
    for i, line in enumerate(open("all.jsonl", encoding="utf-8")):
        r = json.loads(line)
        r["domain"] = r["domain"] if i % 7 else ""
        r["lang"], (r["n"], r["q"]), r["score"] = r["domain"] or (None if i % 2 else ""), of[r["domain"]], of[r["domain"]][0]
        if i % 40 < 7:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
PY
for i in 0 1; do
    tokenize -q -t bytes --part $i/2 --domain-field domain --score-field score --metadata lang=text,n=u8,q=float \
        fields.jsonl | decompose -q --min 64 --max 1024 -o cut$i.tks
    pack -q --mix-domains -o bins$i.tks cut$i.tks
done
cat bins0.tks bins1.tks >bins.tks
cat cut0.tks cut1.tks >cut.tks
mixed() { shuffle -q --seed 3 --no-provenance "$@" | sha; }
want=$(mixed --mix web=2,code=1,=1 bins.tks)
check "weights matter" test "$want" != "$(mixed --mix web=1,code=2,=1 bins.tks)"
same "--mix-by a text" "$want" "$(mixed --mix-by lang --mix web=2,code=1,=1 bins.tks)"
same "--mix-by an integer" "$want" "$(mixed --mix-by n --mix 1=2,2.0=1,=1 bins.tks)"
same "--mix-by a number" "$want" "$(mixed --mix-by q --mix 5e-1=2,-3=1,=1 bins.tks)"
same "--mix-by score" "$(mixed --mix web=2,code=1,=1 cut.tks)" "$(mixed --mix-by score --mix 1=2,2=1,=1 cut.tks)"
same "--mix-by source" "$(mixed --mix-by input --mix cut.tks=1 cut.tks)" "$(mixed --mix-by source --mix fields.jsonl=1 cut.tks)"
same "--mix-by domain is the default" "$want" "$(mixed --mix-by domain --mix web=2,code=1,=1 bins.tks)"
same "--mix-schedule by a field" "$(mixed --mix-schedule 'web=1:40%;code=1,=2:60%' bins.tks)" \
    "$(mixed --mix-by n --mix-schedule '1=1:40%;2=1,=2:60%' bins.tks)"
want=$(mixed --mix 'score=1:2.5, score=3:0' cut.tks)
same "bands by an expression" "$want" "$(mixed --mix 'lang == "web":2.5, n == 3:0' cut.tks)"
same "  and by both" "$want" "$(mixed --mix 'score=1:2.5, lang in ["math", "x:y,z"]:0' cut.tks)"
same "  from a pipe, with little memory" "$want" "$(cat cut.tks | mixed -M 32M -T 3 --mix 'domain == "web":2.5, q > 1 and (n == null or n > 2) : 0')"
same "  a missing value is in no band" "$(mixed --mix 'score=1:0, score=2:0, score=3:0' cut.tks)" "$(mixed --mix 'n < 9:0' cut.tks)"
stages() { # INPUT OPTION...: in two parts
    in=$1
    shift
    rm -rf work
    for i in 0 1; do shuffle -q --seed 3 --no-provenance "$@" --stage count --work work --part $i/2 "$in$i.tks"; done
    shuffle -q --seed 3 --no-provenance "$@" --stage mix --work work
    for i in 1 0; do shuffle -q --seed 3 --no-provenance "$@" --stage scatter --work work --ranges 2 --part $i/2 "$in$i.tks"; done
    for i in 0 1; do shuffle -q --seed 3 --no-provenance "$@" --stage gather --work work --part $i/2; done | inspect --records - | sha
}
records() { shuffle -q --seed 3 --no-provenance "$@" | inspect --records - | sha; }
same "--mix-by a field, in stages" "$(records --mix-by lang --mix web=2,code=1,=1 bins.tks)" "$(stages bins --mix-by lang --mix web=2,code=1,=1)"
same "bands by an expression, in stages" "$(records --mix 'lang == "web":2.5, n == 3:0' bins.tks)" "$(stages bins --mix 'lang == "web":2.5, n == 3:0')"
shuffle -q --seed 3 --mix-by lang --mix web=2,=1 --stats s.json -o /dev/null bins.tks
same "the report names the field" '["lang", ["web", ""]]' "$(json s.json '[d["mix"]["by"], [s["name"] for s in d["mix"]["sources"]]]')"
shuffle -q --format mds --mix 'lang == "web":2, score<2:0' -o banded bins.tks
same "that of a set names the bands" '["where", ["lang == \"web\"", "score<2", "others"]]' \
    "$(json banded/report.json '[d["mix"]["by"], [s["name"] for s in d["mix"]["sources"]]]')"
check "  so does its card" grep -q '^| lang == "web" | ' banded/README.md
while IFS='|' read -r want by mix why; do
    status "--mix-by '$by' --mix '$mix'" "$want" shuffle -q ${by:+--mix-by "$by"} --mix "$mix" -o x.tks bins.tks
    check "  one line" shell 'test "$(wc -l <"$TMP/err")" = 1 -a ! -e x.tks'
    check "  says why" grep -qF -- "$why" "$TMP/err"
done <<'J'
1|nope|web=1|--mix-by: no input has the metadata field 'nope'
1||nope == 1:2|--mix: no input has the metadata field 'nope'
2|n|web=1|--mix: 'web' is no value of 'n', which is of type u8
2|n|255=1|--mix: '255' is no value of 'n', which is of type u8
2|n|1=1,1.0=2|--mix: '1' and '1.0' are the same value
1|lang|web=1,none=1|mix: the input has no sequence of 'none'
2||lang ==:2|mix: 'lang ==': column 8
2||score>=1:2, lang == "web"|mix: 'lang == "web"' is not EXPRESSION:TIMES, as score>=4:2, of at most 1000 times
2||lang == "web":1001|is not EXPRESSION:TIMES
2||n == 1:2, n == 1 :3|mix: 'n == 1' is there twice
2|lang|n == 1:2|--mix with bands says how often each is taken; leave --mix-by, --max-epochs and --max-tokens out
1||lang > 1:2|mix: 'lang > 1': fields.jsonl: document
J

# Order and samples go with it.
shuffle --order keep --mix web=1,code=1 --no-provenance all.tks -o kept.tks
inspect --records all.tks >a
inspect --records kept.tks >b
check "--order keep: taken sequences stay in order" "$PYTHON" -c 'import sys
a = iter(open("a"))
sys.exit(not all(any(x == y for y in a) for x in open("b")))'
shuffle --sample 0.2 --mix web=1,code=1 --stats s.json all.tks -o /dev/null
check "--sample comes before it" "$PYTHON" -c 'import json
d = json.load(open("s.json"))
raise SystemExit(sum(s["available"]["tokens"] for s in d["mix"]["sources"]) > 0.25 * d["tokens"]["in"] or
                 sorted(d["tokens"]["dropped"]) != ["mix", "sample"])'

# Refusals: one line each, and nothing is left.
refused() {
    what=$1 want=$2
    shift 2
    status "$what" "$want" shuffle -o x.tks "$@" all.tks
    check "$what: one line, and no file" test "$(wc -l <"$TMP/err")" = 1 -a ! -e x.tks
}
refused "a domain that is not there" 1 --mix web=1,cod=1
check "says which there are" grep -q "'cod'.*web, code, math" "$TMP/err"
refused "more epochs than may be" 1 --mix math=1 --max-tokens 1Gi
check "says what would do" grep -qE "'math' has [0-9]+ tokens.* [0-9.]+ epochs of it, or want [0-9]+ tokens in all.*--max-epochs" "$TMP/err"
refused "a cap on one source" 1 --mix web=1,math=3 --max-tokens 8Mi --max-epochs 4,math=0.5
for bad in "" web web= =1=x web=-1 "web=1,," web=0 web=1,web=2 web=1e3 web=0.1234567 "web=99999999999999999999"; do
    refused "--mix '$bad'" 2 --mix "$bad"
done
for bad in web=1 "web=1:50%" "web=1:50%;web=1:60%" "web=1:50%;web=1:1G" "web=1:3steps" "web=1:0" "web=1:1G;web=1" \
    "web=1:x;web=1:y" ";" "web=1:60%;web=1:40%;"; do
    refused "--mix-schedule '$bad'" 2 --mix-schedule "$bad"
done
for bad in 0 x web=0 code=1 4,5 ""; do
    refused "--max-epochs '$bad'" 2 --mix web=1 --max-epochs "$bad"
done
refused "--mix and --mix-schedule" 2 --mix web=1 --mix-schedule "web=1:100%"
refused "--mix-by without --mix" 2 --mix-by input
refused "an input that is not there" 2 --mix-by input --mix 1=1
refused "periods in tokens and another amount" 2 --mix-schedule "web=1:1Mi;code=1:1Mi" --max-tokens 3Mi
shuffle --mix-schedule "web=1:100steps;code=1:50steps" --batch-tokens 4096 all.tks --stats s.json -o /dev/null
check "periods in steps" "$PYTHON" -c 'import json
d = json.load(open("s.json"))["mix"]
raise SystemExit([s["periods"][p]["wanted"] for p, s in enumerate(d["sources"])] != [409600, 204800])'

# Rows of count go straight into its file, however little memory there is.
tokenize -q --domain web web.jsonl | decompose -q --min 4 --max 4 -o many.tks
shuffle -q -M 32M --mix web=1 --stage count --work counted --part 0/1 --stats s.json many.tks
same "count writes no temporary file" 0 "$(json s.json 'd["spill_bytes"]')"
