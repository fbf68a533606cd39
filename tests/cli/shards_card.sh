# shellcheck shell=bash disable=SC2154
# shards_card.sh - the data card: README.md with its front matter, lengths.svg, and the same facts in report.json; the
# same bytes for any -T and -M; foreign names stay text.

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" -c '
import json, random
random.seed(4)
names = ["web", "code", "a|b <script>`x`\n# y", "é 文"]
for i in range(900):
    d = {"text": "".join(random.choice("abc de\n") for _ in range(random.randrange(1, 900))), "domain": names[i % 7 % 4]}
    if i % 10 == 0:
        del d["domain"]
        d["domain"] = ""
    print(json.dumps(d))' >'c*_1.jsonl'
tokenize -t bytes --domain-field domain -o c.tks 'c*_1.jsonl'
decompose --min 64 --max 256 --label-token c.tks | pack -o p.tks
cat >look.py <<'PY'
"""look.py DIR LICENSE: README.md, report.json and lengths.svg agree with the stream and with one another."""
import json, os, re, subprocess, sys
import xml.etree.ElementTree as E
d, license = sys.argv[1:3]
card = open(os.path.join(d, "README.md"), encoding="utf-8").read()
r = json.load(open(os.path.join(d, "report.json")))
E.parse(os.path.join(d, "lengths.svg"))
front, body = re.fullmatch(r"---\n(.*?)\n---\n\n(.*)", card, re.S).groups()
assert front.split("\n")[0] == license, front.split("\n")[0]
assert "size_categories:\n- n<1K\n" in front or "size_categories:\n- 1K<n<10K\n" in front, front
assert all(re.fullmatch(r"[a-z_]+: ?.*|- .*|  data_files: .*", l) for l in front.split("\n")), front
assert "![Tokens and sequences by length](lengths.svg)" in body and body.count("\n# ") == 0 and body.startswith("# ")
seen = json.loads(subprocess.run(["inspect", "--json", "p.tks"], capture_output=True, check=True).stdout)
assert r["tokens"] == seen["tokens"] and r["checksum"] == seen["checksum"]
assert r["tokenizer"]["name"] == seen["tokenizer"] == "bytes"
assert r["tokenizer"]["fingerprint"] == seen["fingerprint"] and r["tokenizer"]["eos_id"] == seen["eos_id"]
assert r["sources"] == {"count": 1, "names": ["c*_1.jsonl"]}, r["sources"]
n = {x["domain"]: x for x in r["domains"]}
assert set(n) == {"web", "code", "a|b <script>`x`\n# y", "é 文", None}, n
assert sum(x["tokens"] for x in n.values()) + r["padding"] == r["tokens"]
assert sum(x["documents"] for x in n.values()) == r["documents"] == seen["documents"]
tokens = [x["tokens"] for x in r["domains"]]
assert tokens == sorted(tokens, reverse=True)
rows = [[c.strip() for c in re.split(r"(?<!\\)\|", l)[1:-1]] for l in body.split("\n") if l.startswith("|")]
first = {x[0]: x[1:] for x in rows}
assert first["tokenizer"] == ["bytes"]
num = lambda s: int(s.replace(",", ""))
assert num(first["tokens"][0]) == r["tokens"] and num(first["sequences"][0]) == r["sequences"]
assert num(first["documents"][0]) == r["documents"] and r["checksum"] in first["checksum of the sequences, in any order"][0]
for b in r["buckets"]:
    have = first["`%s`" % b["name"]]
    assert [num(x) for x in have[:3]] == [b["length"], b["sequences"], b["tokens"]], (have, b)
for name, x in n.items():
    cell = {"a|b <script>`x`\n# y": "a\\|b &lt;script&gt;\\`x\\` \\# y", None: "(none)"}.get(name, name)
    assert [num(v) for v in first[cell][:2]] == [x["documents"], x["tokens"]], (name, first[cell])
assert "| c\\*\\_1.jsonl | " in body and "<script" not in body
assert re.search(r"```sh\ntokenize --tokenizer=bytes.*\|\n    decompose .*\|\n    pack.*\|\n    shuffle .*\n```", body), body
assert "/" + os.path.basename(os.getcwd()) not in card, "a path of this machine"
manifest = {json.loads(l)["file"] for l in open(os.path.join(d, "manifest.jsonl"))}
assert {"README.md", "lengths.svg"} <= manifest and "report.json" not in manifest
PY
shuffle -q --format wds -o s1 p.tks
check "the card of a set" "$PYTHON" look.py s1 'license: unknown'
check "  which --verify takes" inspect --verify s1
want=$(sha_tree s1)
for m in "-T1 -M 32M" "-T7 -M 64M"; do
    # shellcheck disable=SC2086 # options
    shuffle -q --replace-set --format wds $m -o s1 p.tks
    same "  the same with $m" "$want" "$(sha_tree s1)"
done
mkdir -p else/where && (cd else/where && shuffle -q --format wds -o s1 ../../p.tks)
same "  and elsewhere" "$want" "$(sha_tree else/where/s1)"
shuffle -q --format wds --license Apache-2.0 -o s2 p.tks
check "an SPDX identifier" "$PYTHON" look.py s2 'license: "apache-2.0"'
same "  as it is in report.json" "Apache-2.0" "$(json s2/report.json 'd["license"]')"
shuffle -q --format wds --license 'Ours: "see | below"' -o s3 p.tks
check "a licence in words" "$PYTHON" look.py s3 'license: other'
check "  by name" grep -q '^license_name: "Ours: \\"see | below\\""$' s3/README.md
for bad in 'two
lines' "$(printf 'x\177')" "$(printf 'x\302\205')" "$(printf 'x\377')"; do
    status "a licence that is no line of text" 2 shuffle -q --format wds --license "$bad" -o s4 p.tks
    check "  in one line" one_line err
done
tokenize -t bytes --domain "$(printf 'a\377`b')" 'c*_1.jsonl' | decompose --min 64 --max 64 --label-token --tail drop |
    shuffle -q --format wds -o s4
check "a domain that is no UTF-8, in the card" "$PYTHON" -c 'open("s4/README.md", encoding="utf-8").read()'
rm -rf s4
status "--license without --format" 2 shuffle --license MIT -o x.tks p.tks
tokenize -t bytes --no-provenance 'c*_1.jsonl' | decompose --no-provenance --min 64 --max 64 --label-token --tail drop |
    shuffle -q --format wds --no-provenance -o s4
check "without provenance" grep -q 'That was not recorded' s4/README.md
shuffle -q --format wds --sample 50% -o s5 p.tks
check "dropped tokens by reason" grep -q '^| [0-9]. shuffle | sample | ' s5/README.md
tokenize -t bytes 'c*_1.jsonl' | decompose --min 64 --max 64 --label-token --tail drop | shuffle -q --format wds -o s6
check "no domains" grep -q 'The documents have none' s6/README.md
check "  null in the report" test "$(json s6/report.json '[x["domain"] for x in d["domains"]]')" = '[null]'
echo 'x' >>s1/README.md
status "--verify of a set whose card was edited" 1 inspect --verify s1
check "  names it" grep -q 'README.md' err
# Lengths of whole documents are counted as they are, not by columns.
"$PYTHON" -c '
for n in (16384, 16500, 17000, 18000, 19000, 20000, 22000, 23000):
    print("{\"text\": \"%s\"}" % ("a" * (n - 1)))' >long.jsonl
tokenize -q -t bytes long.jsonl | shuffle -q --documents --format ds -o s7
check "the shortest and the longest document" grep -q 'shortest has 16,384 tokens, the longest 23,000' s7/lengths.svg
check "  half of the tokens" grep -q 'half of the tokens are in documents of 19,000 or more' s7/lengths.svg
rm -rf s? else ./*.tks
