# shellcheck shell=bash disable=SC2154
# dedup_stages_substring_faults.sh - dedup --substring --stage within 32 MiB; damaged files; kill -9 in each stage and a
# rerun.
# check-more: whole

have tokenize dedup inspect || return 0
"$PYTHON" "$top/tests/cli/dedup_stages_substring.py" memory damaged
[ -n "$SHIM" ] || skip "kill -9: not under sanitizers"
[ -z "$SHIM" ] || "$PYTHON" "$top/tests/cli/dedup_stages_substring.py" killed
