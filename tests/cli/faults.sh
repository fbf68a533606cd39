# shellcheck shell=bash disable=SC2154
# faults.sh - damaged streams, full disks, readers that exit, terminals: exit status 1, one line, no file under the
# final name.
# check-more: longer
have tokenize dedup decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/faults.py" truncated flipped full head empty terminal
