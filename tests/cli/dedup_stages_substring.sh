# shellcheck shell=bash disable=SC2154
# dedup_stages_substring.sh - dedup --substring --stage: the records of one pass for any number of parts and ranges,
# and any threads; missing and foreign files, what does not go together.

have tokenize dedup inspect decompose pack || return 0
"$PYTHON" "$top/tests/cli/dedup_stages_substring.py" equal packed refused
