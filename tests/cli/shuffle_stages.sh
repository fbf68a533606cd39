# shellcheck shell=bash disable=SC2154
# shuffle_stages.sh - shuffle --stage: the records of one run in order, for any number of parts and ranges; refused
# options; damaged and foreign files; files without some of their records. Sets: shuffle_stages_shards.sh; kill -9:
# shuffle_stages_killed.sh.

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shuffle_stages.py" streams refused damaged
if "$PYTHON" -c 'import xxhash' 2>/dev/null; then
    "$PYTHON" "$top/tests/cli/shuffle_stages.py" forged
else
    skip "forged files: needs the package xxhash"
fi
