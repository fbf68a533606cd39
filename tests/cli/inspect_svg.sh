# shellcheck shell=bash disable=SC2154,SC2002
# inspect_svg.sh - inspect --svg: well-formed XML with the figures of inspect --json, small, without other files, the
# same bytes for any -T and -M; a hostile heading stays text.

have tokenize decompose pack shuffle inspect || return 0
corpus c.jsonl 2000000 11
tokenize -t bytes -o c.tks c.jsonl
decompose --min 64 --max 2048 -o d.tks c.tks
inspect --json d.tks >d.json
cat >look.py <<'PY'
"""look.py SVG JSON: it parses, stands alone, has a title and a description, and its table has the counts."""
import json, os, sys
import xml.etree.ElementTree as E
svg, want = sys.argv[1], json.load(open(sys.argv[2]))
root = E.parse(svg).getroot()
name = lambda e: e.tag.rsplit("}", 1)[1]
assert name(root) == "svg" and os.path.getsize(svg) < 50000
ids = {e.get("id"): e for e in root.iter() if e.get("id")}
assert all(ids[i].text for i in root.get("aria-labelledby").split())
for e in root.iter():
    assert name(e) not in ("script", "image", "use", "a", "foreignObject"), e.tag
    assert not any(k.endswith("href") or k.startswith("on") for k in e.keys()), e.attrib
assert "prefers-color-scheme" in "".join(e.text for e in root.iter() if name(e) == "style")
assert "url(" not in open(svg).read() and "@import" not in open(svg).read()
rows = {}
for e in root.iter():
    t = [x.text for x in e if name(x) == "tspan"]
    if len(t) == 4 and t[0] != "length":
        rows[t[0]] = [int(x.replace(",", "")) for x in t[1:3]]
n, least = dict(want["lengths"]), 1 << 60
label = 1 if want["label_tokens"] else 0
for l in want.get("bucket_lengths") or [1 << int(b["name"][2:]) for b in want.get("buckets", [])]:
    have = n.pop(l + label, 0)
    assert rows["bucket {:,}".format(l)] == [have, have * (l + label)], (l, rows)
    least = min(least, l)
for what, rest in (("tails", {l: k for l, k in n.items() if l <= least}), ("other lengths", {l: k for l, k in n.items() if l > least})):
    assert least == 1 << 60 or rows.get(what, [0, 0]) == [sum(rest.values()), sum(l * k for l, k in rest.items())], what
assert rows["all"] == [want["sequences"], want["tokens"]]
PY
status "--svg" 0 inspect --svg d.svg d.tks
check "  nothing on standard output" test ! -s out
check "  the counts of --json, in XML that stands alone" "$PYTHON" look.py d.svg d.json
want=$(sha d.svg)
for o in "-T 1" "-T 7" "-M 32M" "-v"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$want" "$(inspect --svg x.svg $o d.tks 2>/dev/null && sha x.svg)"
done
same "the same bytes from a pipe" "$want" "$(cat d.tks | inspect --svg x.svg && sha x.svg)"
status "--svg with --json: both" 0 inspect --svg x.svg --json d.tks
check "  both" shell 'cmp out d.json && cmp x.svg d.svg'
status "a stream without buckets" 0 inspect --svg c.svg c.tks
check "  says documents" grep -q "documents" c.svg
decompose --min 64 --max 512 --label-token c.tks | pack --length 512 -o p.tks
inspect --json p.tks >p.json
inspect --svg p.svg p.tks
check "label tokens and padding" "$PYTHON" look.py p.svg p.json
check "  padding is said" grep -q "of which padding" p.svg
decompose --min 64 --max 512 --label-token --tail drop c.tks | shuffle -o shards --format wds --shard-sequences 64 2>/dev/null
inspect --json shards >s.json
inspect --svg s.svg shards
check "a shard set" "$PYTHON" look.py s.svg s.json
inspect --svg t.svg --title '</title><script>alert(1)</script> & "quotes" é 日本' d.tks
check "a hostile heading stays text" "$PYTHON" -c '
import xml.etree.ElementTree as E
e = E.parse("t.svg").getroot()
assert e[0].text == "</title><script>alert(1)</script> & \"quotes\" é 日本", e[0].text'
check "  and the rest is the same" "$PYTHON" look.py t.svg d.json
printf 'h\377\001i' >title
inspect --svg t.svg --title "$(cat title)" d.tks
check "bytes that are no text become U+FFFD" "$PYTHON" look.py t.svg d.json
decompose --min-length 1Gi -o e.tks c.tks
status "nothing to draw" 0 inspect --svg e.svg e.tks
inspect --json e.tks >e.json
check "  an empty picture" "$PYTHON" look.py e.svg e.json
cat >labels.py <<'PY'
"""labels.py SVG: shares above the bars do not overlap; text in the heading's lines ends in the picture."""
import sys
import xml.etree.ElementTree as E
t = [e for e in E.parse(sys.argv[1]).getroot().iter() if e.tag.endswith("}text")]
x = sorted(float(e.get("x")) for e in t if e.get("class") == "m c" and e.text.endswith(" %"))
assert all(b - a >= 36 for a, b in zip(x, x[1:])), x
assert all(24 + 7 * len(e.text) <= 880 for e in t if e.get("class") == "m" and e.get("x") == "24")
assert not x or len(x) == int(sys.argv[2])
print(len(x))
PY
buckets=16,17,18,$(seq -s , 20 60)
decompose --buckets "$buckets" c.tks -o many.tks
inspect --svg many.svg many.tks
same "many buckets: no label without room for it" 0 "$("$PYTHON" labels.py many.svg 44)"
inspect --svg few.svg d.tks
same "few buckets: each has its share" 6 "$("$PYTHON" labels.py few.svg 6)"
if [ -x "$BIN/schedule" ]; then
    schedule --trainer generic --cycles 4 --batch-tokens 16384 -o x.sched shards
    inspect --json x.sched >x.json
    status "a schedule" 0 inspect --svg x.svg x.sched
    check "  its buckets' steps, in XML that parses" "$PYTHON" -c '
import json, xml.etree.ElementTree as E
rows = {}
for e in E.parse("x.svg").getroot().iter():
    t = [x.text for x in e if x.tag.endswith("tspan")]
    if len(t) == 5 and t[0] != "length":
        rows[t[0]] = [int(x.replace(",", "")) for x in t[1:4]]
d = json.load(open("x.json"))
n = d["tokens_per_step"]
steps = [b["steps"] for b in d["buckets"]]
for b, s in zip(d["buckets"], steps):
    assert rows[str(b["length"])] == [s, s * n // b["length"], s * n], (b, rows)
assert rows["all"][0] == sum(steps)'
    mkdir -p far/D_0
    echo '{"shard": "a", "num_sequences": 1073741824}' >far/D_0/manifest.jsonl
    schedule --trainer generic --batch-tokens 1 --tokens $((576460752303423488 + 5)) --from-step 576460752303423488 -o far.sched far
    status "steps beyond a double's whole numbers" 0 timeout 60 inspect -M 1G --svg far.svg far.sched
    check "  are told apart" grep -q '>+5<' far.svg
    check "  the same again" shell 'inspect --svg y.svg --histogram x.sched >out && cmp x.svg y.svg && test -s out'
fi
printf '\5\0\6\0\0\0\7\0\0\0' >ids.npy
status "a file of ids, scanned" 0 inspect --svg i.svg --eos-id 0 --token-bytes 2 ids.npy
inspect --svg j.svg --json --eos-id 0 --token-bytes 2 ids.npy >i.json
check "  as it is when it is read" shell "cmp i.svg j.svg && '$PYTHON' look.py i.svg i.json"
status "usage: --svg with --records" 2 inspect --svg x.svg --records d.tks
status "usage: --title alone" 2 inspect --title x d.tks
head -c 3000 d.tks >cut.tks
rm -f x.svg
status "a cut stream" 1 inspect --svg x.svg cut.tks
check "  makes no picture" test ! -e x.svg
status "a folder that does not exist" 1 inspect --svg none/x.svg d.tks
check "  one line" one_line err
rm -rf c.jsonl shards ./*.tks
