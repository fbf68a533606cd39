# shellcheck shell=bash disable=SC2154
# shuffle_spill.sh - beyond -M, when threads of the sorter read, write and sort: if a failing call can be replaced, the
# bytes are the same; otherwise an error and no output; never a hang.
# check-more: whole

have tokenize decompose pack shuffle || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/shuffle_spill.py"
else
    skip "faults: not under sanitizers"
fi
