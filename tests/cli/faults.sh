# shellcheck shell=bash disable=SC2154
# faults.sh - damaged streams, full disks, vanished readers, terminals: exit 1, a line, nothing under the final name.
# check-more: longer
have tokenize dedup decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/faults.py" truncated flipped full head empty terminal
