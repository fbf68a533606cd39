# shellcheck shell=bash disable=SC2154
# inspect_groups.sh - inspect --groups: the counts and quantiles of each domain that Python finds, as JSON, as a table and
# as a picture, in any memory.
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
                            "domain": ["", "<b>&\"", "a\nb", "ünï"][kind] if kind < 4 else "d%d" % kind}) + "\n")
PY
tokenize -q -t bytes --on-error skip --domain-field domain --score-field score c.jsonl -o c.tks
tokenize -q -t bytes c.jsonl -o plain.tks
inspect --groups domain --json --svg g.svg c.tks >g.json
"$PYTHON" - <<'PY'
import json, subprocess
import xml.etree.ElementTree as E
names, groups = {"min": 0, "p5": 50, "p25": 250, "p50": 500, "p75": 750, "p95": 950, "max": 1000}, {}
for line in subprocess.run(["inspect", "--records", "c.tks"], capture_output=True, check=True).stdout.splitlines():
    s = json.loads(line)["segments"][0]
    g = groups.setdefault(s.get("domain"), ([], []))
    g[0].append(s["length"])
    if s.get("score") is not None:
        g[1].append(s["score"])
def quantiles(v):
    return {k: sorted(v)[(len(v) - 1) * q // 1000] for k, q in names.items()}
def result(good, what, why=""):
    print("%s inspect_groups: %s %s" % ("ok" if good else "not ok", what, "" if good else str(why)[:300]))
got, whole = json.load(open("g.json"))["groups"], json.loads(subprocess.run(["inspect", "--json", "c.tks"], capture_output=True).stdout)
bad = [(g, len(v[0])) for g in got for v in [groups[g["domain"]]] if g["documents"] != len(v[0]) or g["sequences"] != len(v[0]) or
       g["tokens"] != sum(v[0]) or g["length"] != quantiles(v[0]) or g.get("scored", 0) != len(v[1]) or
       g.get("score") != (quantiles(v[1]) if v[1] else None)]
result(not bad and len(got) == len(groups) == 60, "counts and quantiles are those of a sort", bad)
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
status "another group" 2 inspect --groups source c.tks
decompose -q --min 8 --max 64 c.tks | pack -q --mix-domains --length 128 -o p.tks
status "packed sequences" 1 inspect --groups domain p.tks
check "have documents of several domains" grep -q "of another domain" "$TMP/err"
choose -q --domain nothing c.tks -o none.tks
status "no document at all" 0 inspect --groups domain --svg none.svg none.tks
check "is a picture too" "$PYTHON" -c 'import xml.etree.ElementTree as E; E.parse("none.svg")'
