# shellcheck shell=sh disable=SC2154
# shards_mds.sh - shuffle --format mds and litdata: every byte of shards and indexes against the layout (tests/cli/mds.py
# writes it too), zstd frames that say their size, limits met before anything is written, damage, --force.

have decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shards_mds.py" mds2 mds4 litdata2 litdata4 both
