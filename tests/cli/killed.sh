# shellcheck shell=bash disable=SC2154
# killed.sh - kill -9 at fail-points, of one program and in a pipe; calls that fail one after the other (all of them in
# check-full).
# check-more: whole, and longer
have tokenize dedup decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/faults.py" kill pipe-kill io memory
