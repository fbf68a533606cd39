# shellcheck shell=bash disable=SC2154
# golden.sh - files of earlier versions (tests/golden/VERSION) can be read, and give the same answers as at their time.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" "$top/tests/golden/golden.py" bytes
"$PYTHON" "$top/tests/golden/golden.py" check "$top"/tests/golden/[0-9]*
