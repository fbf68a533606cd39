# shellcheck shell=bash disable=SC2154
# shuffle_stages_shards.sh - shuffle --stage: byte for byte the sets of shards of one run, in every format, for any
# number of parts and ranges, with samples, mixes, repeats, orders by score and numbers of tokens.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shuffle_stages.py" shards ${MORE:+mixes orders}
