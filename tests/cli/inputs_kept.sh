# shellcheck shell=sh disable=SC2154
# inputs_kept.sh - no output takes the place of anything that a run reads: every output option of every program, as
# --help lists them, onto every kind of input.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" "$top/tests/cli/inputs_kept.py" || not_ok "the driver ends well"
