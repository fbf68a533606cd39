# shellcheck shell=bash disable=SC2154
# batch_chains.sh - sluice-batch: random chains of changes of recipes, lists and inputs, with kills and parts by hand on the
# way; after each, the result is that of a fresh folder: batch_chains.py.
# check-more: whole, and longer

have tokenize dedup choose decompose pack shuffle inspect sluice-batch || return 0
"$PYTHON" "$top/tests/cli/batch_chains.py"
