# shellcheck shell=bash disable=SC2154
# shuffle_phases_shards.sh - shuffle --phase: byte for byte the sets of shards of one run, in every format, for any
# number of parts and ranges, with samples, blends and repeats.

have tokenize decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shuffle_phases.py" shards blends
