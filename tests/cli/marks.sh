# shellcheck shell=bash disable=SC2154
# marks.sh - each row of an option table that says less than "decides all stages" is right: marks.py.
# check-more: whole

have tokenize dedup decompose pack shuffle choose schedule inspect forget || return 0
"$PYTHON" "$top/tests/cli/make_tokenizer.py" | "$PYTHON" -c 'import json, sys
t = json.load(sys.stdin)
t["added_tokens"].append({**t["added_tokens"][0], "id": 258, "content": "<|pad|>"})
t["model"]["vocab"]["<|pad|>"] = 258
print(json.dumps(t))' >t.json
"$PYTHON" "$top/tests/cli/marks.py"
