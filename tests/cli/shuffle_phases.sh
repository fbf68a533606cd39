# shellcheck shell=sh disable=SC2154
# shuffle_phases.sh - shuffle --phase: the same records, and byte for byte the same sets of shards, as one run, for any
# number of parts and ranges, with blends and samples; damaged, missing and foreign files, records that were taken out;
# kill -9 in each phase and a rerun.

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shuffle_phases.py" streams shards blends refused damaged
if "$PYTHON" -c 'import xxhash' 2>/dev/null; then
    "$PYTHON" "$top/tests/cli/shuffle_phases.py" forged
else
    skip "forged files: needs the package xxhash"
fi
[ -n "$SHIM" ] || skip "kill -9: not under sanitizers"
[ -z "$SHIM" ] || "$PYTHON" "$top/tests/cli/shuffle_phases.py" killed
