# shellcheck shell=bash disable=SC2154
# tokens_mds.sh - MDS sets are read as documents: every type, shape and order of columns, with zstd and without, merged
# indexes; each fault is reported in one line that names the shard and the sample. tests/cli/mds.py writes the sets.
# check-more: whole

have decompose inspect dedup pack shuffle || return 0
"$PYTHON" "$top/tests/cli/tokens_mds.py" good bad_index bad_shard
