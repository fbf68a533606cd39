# shellcheck shell=bash disable=SC2154
# pack_stages.sh - pack --stage: the records of one run for any number of parts, ranges and threads, and any memory;
# kill -9 in each stage and a rerun; damaged, missing and foreign files; other options, streams and tokenizers.
# check-more: whole

have tokenize decompose pack inspect || return 0
"$PYTHON" "$top/tests/cli/pack_stages.py" equal refused ${MORE:+damaged killed}
