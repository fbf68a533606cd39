# shellcheck shell=bash disable=SC2154
# marks.sh - each row of an option table that says less than "decides all stages" is right: marks.py.

have tokenize dedup decompose pack shuffle choose schedule inspect || return 0
"$PYTHON" "$top/tests/cli/marks.py"
