# shellcheck shell=bash disable=SC2154
# inspect_groups.sh - inspect --groups: the counts and quantiles of each domain, and of each value of a field, that Python
# finds, as JSON, as a table and as a picture, in any memory.
# check-more: whole

have tokenize choose decompose pack shuffle inspect || return 0
"$PYTHON" - <<'PY'
import json, random
r = random.Random(4)
with open("c.jsonl", "w") as f:
    for i in range(30000):
        kind = r.randrange(60)
        score = None if kind % 5 == 0 or r.random() < 0.2 else r.choice([0, -0.0, -1.5, r.gauss(kind, 2), 1e300])
        f.write(json.dumps({"text": "x" * r.choice([0, r.randrange(50), int(r.expovariate(0.002))]), "score": score,
                            "u": "u%d" % i, "x": [None, -1, 0, 0.5, 1e300, 7][kind % 6], "kind": "a\0b" if kind == 7 else None if kind == 8 else "k%d" % kind,
                            "domain": ["", "<b>&\"", "a\nb", "ünï"][kind] if kind < 4 else "d%d" % kind}) + "\n")
PY
tokenize -q -t bytes --on-error skip --domain-field domain --score-field score --metadata x=float,kind=text,u=text c.jsonl -o c.tks
tokenize -q -t bytes c.jsonl -o plain.tks
inspect --groups domain --json --svg g.svg c.tks >g.json
for field in x kind score length source; do inspect --groups "$field" --json --svg "$field.svg" c.tks >"$field.json"; done
"$PYTHON" - <<'PY'
import json, subprocess
import xml.etree.ElementTree as E
names, records = {"min": 0, "p5": 50, "p25": 250, "p50": 500, "p75": 750, "p95": 950, "max": 1000}, []
for line in subprocess.run(["inspect", "--records", "c.tks"], capture_output=True, check=True).stdout.splitlines():
    s = json.loads(line)["segments"][0]
    records.append({"domain": None, "score": None, **s, **s.get("metadata", {})})
def quantiles(v):
    return {k: sorted(v)[(len(v) - 1) * q // 1000] for k, q in names.items()}
def result(good, what, why=""):
    print("%s inspect_groups: %s %s" % ("ok" if good else "not ok", what, "" if good else str(why)[:300]))
def groups_of(field, got, key):
    groups = {}
    for s in records:
        g = groups.setdefault(s.get(field), ([], []))
        g[0].append(s["length"])
        if s["score"] is not None:
            g[1].append(s["score"])
    bad = [(g, len(v[0])) for g in got for v in [groups.get(g[key], ([], []))] if g["documents"] != len(v[0]) or g["sequences"] != len(v[0]) or
           g["tokens"] != sum(v[0]) or g["length"] != quantiles(v[0]) or g.get("scored", 0) != len(v[1]) or
           g.get("score") != (quantiles(v[1]) if v[1] else None)]
    result(not bad and len(got) == len(groups) == len({json.dumps(g[key]) for g in got}), "by %s: counts and quantiles are those of a sort" % field, bad)
got, whole = json.load(open("g.json"))["groups"], json.loads(subprocess.run(["inspect", "--json", "c.tks"], capture_output=True).stdout)
groups_of("domain", got, "domain")
result(len(got) == 60, "all domains are there", len(got))
for field, least in ("x", 6), ("kind", 60), ("score", 1000), ("length", 500), ("source", 1):
    d = json.load(open(field + ".json"))
    groups_of(field, d["groups"], "value")
    result(d["field"] == field and len(d["groups"]) >= least, "by %s: as many values as there are" % field, len(d["groups"]))
    result("%d value%s of %s" % (len(d["groups"]), "s" * (len(d["groups"]) > 1), field) in open(field + ".svg").read(), "by %s: a picture" % field)
result([(d["domain"], d["bytes_per_token"]) for d in whole["domains"]] == [(g["domain"], g["bytes_per_token"]) for g in got],
       "in the order of --json, with its bytes a token")
root = E.parse("g.svg").getroot()
text = "".join(root.itertext())
result(all(("%d" % g["documents"]) in text.replace(",", "") for g in got[:20]) and "and 36 more" in text and len(open("g.svg").read()) < 50000,
       "the picture has the first of them")
result(not any(e.tag.endswith("script") or e.tag.endswith("}b") for e in root.iter()), "names stay text")
PY
inspect --groups domain c.tks >table
same "a table" 43 "$(wc -l <table)"
check "its names are printable" fails grep -q "$(printf '\033')" table
inspect --groups domain plain.tks >table
check "no scores, no columns for them" fails grep -q score table
cat c.tks c.tks c.tks c.tks c.tks c.tks c.tks c.tks c.tks c.tks c.tks c.tks >many.tks
inspect --groups domain --json -M 32M --stats s.json many.tks >a
inspect --groups domain --json -M 1G -T 3 many.tks >b
same "the same in any memory" "$(sha a)" "$(sha b)"
check "with files" test "$(json s.json 'd["spill_bytes"]')" -gt 1000000
shuffle -q --documents --format olmo --shard-sequences 5000 -o set c.tks
same "of a set" "$(sha g.json)" "$(inspect --groups domain --json --input-format set set | sha)"
status "a set without its format" 2 inspect --groups domain set
check "and what to do" grep -q -- '--input-format set' "$TMP/err"
for o in --records --jsonl --histogram --verify --merge-stats; do
    status "--groups with $o" 2 inspect --groups domain $o c.tks
done
status "a field that is not there" 1 inspect --groups nope c.tks
check "is named" grep -q "^inspect: --groups: no input has the metadata field 'nope'" "$TMP/err"
inspect --groups x c.tks >table
check "the table has numbers and null" shell 'grep -q "^ *1e+300 " table && grep -q "^ *(none) " table && grep -q "^ *x  *documents" table'
status "more values than memory" 1 inspect --groups u --json -M 32M c.tks
check "says what to do" grep -q "^inspect: more than [0-9]* values of 'u' do not fit in memory; give more memory with -M" "$TMP/err"
same "with more memory, all" "$(json <(inspect --json c.tks) 'd["documents"]')" "$(inspect --groups u --json -M 256M c.tks | grep -c '"value": "u')"
decompose -q --min 8 --max 64 c.tks | pack -q --mix-domains --length 128 -o p.tks
status "packed sequences" 1 inspect --groups domain p.tks
check "have documents of several domains" grep -q "of another domain" "$TMP/err"
status "and of several values" 1 inspect --groups x p.tks
check "which is said" grep -q "of another x; read documents or pieces" "$TMP/err"
choose -q --domain nothing c.tks -o none.tks
status "no document at all" 0 inspect --groups domain --svg none.svg none.tks
check "is a picture too" "$PYTHON" -c 'import xml.etree.ElementTree as E; E.parse("none.svg")'
