# shellcheck shell=bash disable=SC2154
# tokens_mds.sh - MDS sets are read as documents: every type, shape and order of columns, zstd or not, merged indexes;
# and what is wrong with one is one line that names the shard and the sample. Written by tests/cli/mds.py.

have decompose inspect dedup pack shuffle || return 0
"$PYTHON" "$top/tests/cli/tokens_mds.py" good bad_index bad_shard
