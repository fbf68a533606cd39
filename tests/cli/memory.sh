# shellcheck shell=sh disable=SC2154
# memory.sh - the resident set stays within -M plus 64 MiB: programs and their modes x threads x -M x documents of every
# accepted size, measured from outside. A few combinations here, others in check-more, all of them in check-full.
# check-more: longer

have tokenize dedup decompose pack shuffle inspect || return 0
if [ -z "$SHIM" ]; then
    skip "resident sets: not under sanitizers"
else
    "$PYTHON" "$top/tests/cli/memory.py"
fi
