# shellcheck shell=bash disable=SC2154
# shuffle_spill.sh - past -M, where threads of the sorter's own read, write and sort: the same bytes whatever fails that
# can be done without, an error and no output where it cannot, and never a hang.
# check-more: whole

have tokenize decompose pack shuffle || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/shuffle_spill.py"
else
    skip "faults: not under sanitizers"
fi
