# shellcheck shell=bash disable=SC2154
# golden.sh - files of earlier versions (tests/golden/VERSION) are read, and give the answers of then.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" "$top/tests/golden/golden.py" check "$top"/tests/golden/[0-9]*
