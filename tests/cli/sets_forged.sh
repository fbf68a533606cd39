# shellcheck shell=bash disable=SC2154
# sets_forged.sh - inspect --verify refuses each forged set of the table in forged_sets.py with a line; the same table is
# that of python/tests/test_forged.py.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0

corpus c.jsonl 9000 7
tokenize -q -t bytes c.jsonl | decompose -q --min 16 --max 64 | pack -q -o in.tks
shuffle -q --format olmo --shard-sequences 50 -o set in.tks
"$PYTHON" "$top/tests/cli/forged_sets.py" set
n=0 bad=
for forged in set.*; do
    n=$((n + 1))
    code inspect --verify "$forged" >"$TMP/out" 2>"$TMP/err"
    if [ "$ended" != 1 ] || ! one_line "$TMP/err"; then
        bad="$bad $forged: $ended"
    fi
done
check "all sets are forged" [ "$n" -gt 60 ]
empty "each is refused with a line" "$bad"
"$PYTHON" - "$top" <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
import forged_sets
report = json.load(open("set/report.json"))
lines = [json.loads(line) for line in open("set/manifest.jsonl")]
forged_sets.write("set", report, lines)
PY
status "what forges them makes sound sets too" 0 inspect --verify set
