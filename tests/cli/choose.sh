# shellcheck shell=bash disable=SC2154
# choose.sh - choose: its options and messages, masks, pieces, packed sequences, ids of files, stages of other options.
# tests/props/check_choose.py has the choices themselves.

have tokenize dedup choose decompose pack inspect || return 0
"$PYTHON" - <<'PY'
import json
with open("c.jsonl", "w") as f:
    for i in range(200):
        f.write(json.dumps({"text": "word %d " % i * (1 + i % 9), "id": "r%d" % i, "domain": "ab"[i % 2], "score": i % 5,
                            "spans": [[0, 4]]}) + "\n")
PY
tokenize -q -t bytes --id-field id --domain-field domain --score-field score c.jsonl -o t.tks
tokenize -q -t bytes c.jsonl -o plain.tks

# ---- options ----

says() { # WHAT STATUS WORDS COMMAND...: one line with the words
    what=$1 want=$2 words=$3
    shift 3
    status "$what" "$want" "$@"
    check "$what: one line says why" shell "grep -qF -- \"$words\" '$TMP/err' && [ \$(grep -c . '$TMP/err') = 1 ]"
}
says "nothing to choose by" 2 "nothing to choose by" choose t.tks
for bad in 5 .. 5..3 a..b 1...3 -1..; do
    says "--length $bad" 2 "--length: '$bad' is not MIN..MAX" choose --length "$bad" t.tks
done
for bad in '' 3 '=>3' '>' '>x' '>nan' '>1 2' '>1,'  '>1;<2' '>1e400' '>1,>1,>1,>1,>1,>1,>1,>1,>1'; do
    says "--score '$bad'" 2 "--score: '$bad' is not a comparison" choose --score "$bad" t.tks
done
for bad in '' % 101% -1% 10%% 1e2% 0.1234567890% x 1.5 .; do
    says "--top '$bad'" 2 "--top: '$bad' is neither" choose --top "$bad" t.tks
done
status "--score of a number that is next to nothing" 0 choose --score '>1e-320' t.tks -o tiny.tks
says "--by alone" 2 "--by needs --top" choose --length 1.. --by length t.tks
says "--per alone" 2 "--per needs --top or --partition" choose --length 1.. --per domain t.tks
says "--part of a top" 2 "use --stage" choose --top 10% --part 0/2 t.tks
says "--stage without a top" 2 "--stage needs --top" choose --length 1.. --stage rank --work w --part 0/2 t.tks
same "stages" "rank parts reads - -;cut one - - rank;filter parts reads writes cut;" "$(choose --top 1 --stages | tr '\n' ';')"
same "a step without stages" "- parts reads writes -" "$(choose --length 1.. --stages)"
says "no scores" 1 "no scores to choose by" choose --score '>1' plain.tks -o x.tks
says "no scores to rank by" 1 "no scores to choose by" choose --top 1% plain.tks -o x.tks
check "and no output" test ! -e x.tks
says "a list that is not there" 1 "no.ids: " choose --ids-keep no.ids t.tks -o x.tks
says "a list that is a folder" 1 "$TMP: " choose --ids-keep "$TMP" t.tks -o x.tks
status "a list that is the output" 2 choose --ids-keep t.tks plain.tks -o t.tks

# ---- lists of ids ----

seq 0 3 199 | sed 's/^/r/' >ids
choose -q --ids-keep ids t.tks -o in.tks
choose -q --ids-drop ids t.tks -o out.tks
same "ids in and out are all" "$(inspect --records t.tks | sort | sha)" "$(inspect --records in.tks out.tks | sort | sha)"
same "as many as the list has" 67 "$(inspect --records in.tks | wc -l)"
choose -q --ids-keep ids plain.tks -o none.tks
empty "documents without an id are in no list" "$(inspect --records none.tks)"
same "nor are they dropped by one" 200 "$(choose -q --ids-drop ids plain.tks | inspect --records - | wc -l)"
tac ids | sed 's/$/\r/' >ids2
same "the order of the list does not matter, nor does its name" "$(sha in.tks)" "$(choose -q --ids-keep ids2 t.tks | sha)"
head -c 3000000 /dev/zero | tr '\0' a >long
says "a line too long for an id" 1 "long: a line has more than" choose --ids-keep long t.tks -o x.tks
seq 1 500000 >many
says "more ids than memory" 1 "ids do not fit in memory; give more memory with -M" choose -M 32M --ids-keep many t.tks -o x.tks
status "with more memory" 0 choose -q -M 256M --ids-keep many t.tks -o x.tks

# ---- pieces, packed sequences, masks ----

decompose -q --min 8 --max 32 t.tks -o d.tks
choose -q --length 8..8 d.tks -o eight.tks
same "pieces by length" "$(inspect --records d.tks | grep -c '"length":8,')" "$(inspect --records eight.tks | grep -c .)"
pack -q --length 64 --mix-domains d.tks -o p.tks
says "packed sequences have no domain" 1 "of another domain; read documents or pieces" choose --domain a p.tks -o x.tks
says "nor ids" 1 "of another id" choose --ids-keep ids p.tks -o x.tks
says "nor the best of a domain" 1 "of another domain" choose --top 10% --per domain p.tks -o x.tks
status "but a length" 0 choose --length 64.. p.tks -o x.tks
status "and a score" 0 choose --score '>=1' --top 50% p.tks -o x.tks
tokenize -q -t bytes --spans-field spans --domain-field domain c.jsonl -o m.tks
choose -q --domain a m.tks -o ma.tks
choose -q --domain b m.tks -o mb.tks
check "masks are kept" test "$(json <(inspect --json m.tks) 'd["loss_tokens"]')" = $(($(json <(inspect --json ma.tks) 'd["loss_tokens"]') + $(json <(inspect --json mb.tks) 'd["loss_tokens"]')))
same "all of them" "$(inspect --records m.tks | sort | sha)" "$(inspect --records ma.tks mb.tks | sort | sha)"
choose -q --top 50% --by length -M 32M --stats s.json <m.tks >top.tks
status "and through the waiting" 0 inspect --verify top.tks
check "the account counts what is trained on" test "$(json s.json 'd["loss_tokens"]["dropped"]["top"]')" -gt 0

# ---- a stream for each domain ----

"$PYTHON" - <<'PY'
import json
odd = ["web", "Web", "a/b", "../up", "..", ".hidden", "_", "_.tks", "%41", "A", "ü", "x" * 300, "x" * 299 + "y", "z" * 200, "z" * 201, "a b\n", "", "domains.json", "-n"]
with open("odd.jsonl", "w") as f:
    for i in range(3000):
        f.write(json.dumps({"text": "t%d" % i, "domain": odd[i // 2 % len(odd)] if i % 2 else "d%d" % (i % 900), "score": i % 7}) + "\n")
PY
tokenize -q -t bytes --domain-field domain --score-field score odd.jsonl -o odd.tks
choose -q --partition parted odd.tks
same "as many files as domains, with the list" "$(($(json <(inspect --json odd.tks) 'len(d["domains"])') + 1))" "$(find parted -type f | wc -l)"
same "all that there was" "$(inspect --records odd.tks | sort | sha)" "$(inspect --records parted/*.tks | sort | sha)"
"$PYTHON" - <<'PY'
import json, subprocess
rows, bad = json.load(open("parted/domains.json")), []
all_of = subprocess.run(["inspect", "--records", *["parted/" + r["file"] for r in rows]], capture_output=True, check=True).stdout.splitlines()
if len(all_of) != sum(r["documents"] for r in rows):
    bad.append(len(all_of))
for r in rows:
    got = [json.loads(all_of.pop(0)) for _ in range(min(len(all_of), r["documents"]))]
    at = [x["segments"][0]["document"] for x in got]
    if {x["segments"][0].get("domain") for x in got} != {r["domain"]} or len(got) != r["documents"] or at != sorted(at):
        bad.append(r)
    if sum(len(x["tokens"]) for x in got) != r["tokens"]:
        bad.append(r)
print("%s choose: each file has the documents of its domain, in order, as the list says %s" % ("not ok" if bad or len(rows) < 400 else "ok", bad[:2]))
PY
z=$(printf 'z%.0s' $(seq 200))
check "a name of 200 characters is the file's name, that of 201 has a hash" shell "test -f parted/$z.tks && test -f parted/$z%*.tks"
tokenize -q -t bytes --domain '' c.jsonl -o unnamed.tks
choose -q --partition unnamed unnamed.tks
same "the domain with the empty name is in a file with a name" "%.tks domains.json" "$(cd unnamed && find . -type f -printf '%P\n' | sort | tr '\n' ' ' | sed 's/ $//')"
choose -q --partition small -M 32M -T 3 odd.tks
same "the same bytes with other threads and memory" "$(sha_tree parted)" "$(sha_tree small)"
choose -q --partition best --top 50% --per domain odd.tks
same "with a choice" "$(choose -q --top 50% --per domain odd.tks | inspect --records - | sort | sha)" "$(inspect --records best/*.tks | sort | sha)"
same "a part is what --domain takes" "$(choose -q --no-provenance --domain web odd.tks | sha)" "$(choose -q --no-provenance --partition again odd.tks && sha again/web.tks)"
says "a folder with files" 2 "parted: is not empty" choose --partition parted odd.tks
says "an output too" 2 "cannot be combined with -o" choose --partition other -o x.tks odd.tks
says "parts" 2 "--partition writes one folder" choose --partition other --part 0/2 odd.tks
says "stages" 2 "divide the streams of all parts" choose --top 1 --partition other --stage cut --work w odd.tks
says "packed sequences" 1 "of another domain" choose --partition other p.tks
same "the account" 3000 "$(choose -q --partition booked --stats s.json odd.tks && json s.json 'd["documents"]["out"]')"
head -c 60000 odd.tks >torn.tks
status "a torn stream" 1 choose --partition torn torn.tks
empty "leaves no file" "$(find torn -type f)"
if [ -n "$SHIM" ]; then
    for at in 5 60 300; do
        rm -rf failed
        status "write $at fails" 1 env LD_PRELOAD="$SHIM/fault.so" SHIM_AT="write:$at" SHIM_DO=28 choose -q --partition failed odd.tks
        # shellcheck disable=SC2016 # the other shell's
        check "no file is half-written, and there is no list" shell '[ ! -e failed/domains.json ] && for f in failed/*.tks; do [ ! -e "$f" ] || inspect -q --verify "$f" >/dev/null || exit 1; done'
    done
fi

# ---- nothing is left ----

seq 0 2 200 | sed 's/^/r/' >every # those of a

left() { # WORDS OPTION...
    words=$1
    shift
    status "$*" 0 choose "$@" t.tks -o left.tks
    check "  is named" grep -qFx -- "choose: nothing is left: $words" err
}
left "all is dropped by --domain; inspect lists the stream's domains" --domain wbe
left "all is dropped by --source; 'inspect --records' shows its sources" --source no
left "all is dropped by --length" --length 1..1
left "each sequence fails one of the criteria" --domain a --ids-drop every
status "what leaves some" 0 choose --length 2.. t.tks -o left.tks
check "  is not" shell '! grep -q "nothing is left" err'

# ---- stages of other options ----

says "stages want the same options" 1 "w/rank.0-of-1: was made with --top=10%, now --top=20%; remove it and run stage rank again" shell "
    choose -q --top 10% --stage rank --work w --part 0/1 t.tks && choose -q --top 20% --stage cut --work w"
