# shellcheck shell=bash disable=SC2154
# shuffle_stages_killed.sh - shuffle --stage: kill -9 in each stage, and a rerun, give the set of one run.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/shuffle_stages.py" killed
else
    skip "kill -9: not under sanitizers"
fi
