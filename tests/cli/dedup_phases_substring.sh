# shellcheck shell=bash disable=SC2154
# dedup_phases_substring.sh - dedup --substring --phase: the records of one pass for any number of parts and ranges,
# and any threads; missing and foreign files, what does not go together.

have tokenize dedup inspect decompose pack || return 0
"$PYTHON" "$top/tests/cli/dedup_phases_substring.py" equal packed refused
