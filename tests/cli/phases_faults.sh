# shellcheck shell=bash disable=SC2154
# phases_faults.sh - every phase of dedup, pack and shuffle with a call that fails: memory, threads, files.
# check-more: longer

have tokenize dedup decompose pack shuffle || return 0
if [ -n "$SHIM" ]; then
    "$PYTHON" "$top/tests/cli/phases_faults.py" io,memory
else
    skip "calls that fail: not under sanitizers"
fi
