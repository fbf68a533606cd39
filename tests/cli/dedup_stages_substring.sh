# shellcheck shell=bash disable=SC2154
# dedup_stages_substring.sh - dedup --substring --stage: the records of one run for any number of parts, ranges and
# threads; missing and foreign files; options that contradict each other.
# check-more: whole

have tokenize dedup inspect decompose pack || return 0
"$PYTHON" "$top/tests/cli/dedup_stages_substring.py" equal packed refused
