# shellcheck shell=bash disable=SC2154
# stages_faults.sh - every stage of dedup, pack and shuffle with one failing call: of memory, threads, files.
# check-more: whole, and longer

have tokenize dedup decompose pack shuffle || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/stages_faults.py" io,memory
else
    skip "calls that fail: not under sanitizers"
fi
