# shellcheck shell=bash disable=SC2154
# shuffle_phases_killed.sh - shuffle --phase: kill -9 in each phase, and a rerun, give the set of one run.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/shuffle_phases.py" killed
else
    skip "kill -9: not under sanitizers"
fi
