# shellcheck shell=sh disable=SC2154
# lib.sh - what the cases of tests/cli share; sourced by tests/cli/run.

ok() { echo "ok $case_name: $*"; }
not_ok() { echo "not ok $case_name: $*"; }
skip() { echo "skip $case_name: $*"; }

# check WHAT COMMAND...: the command exits 0.
check() {
    what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# same WHAT A B: the two texts are equal.
same() {
    if [ "$2" = "$3" ]; then
        ok "$1"
    else
        printf '  one:   %s\n  other: %s\n' "$2" "$3" | cut -c 1-400
        not_ok "$1"
    fi
}

# status WHAT N COMMAND...: the exit status is N; stdout and stderr are kept in $TMP/out, $TMP/err.
status() {
    what=$1 want=$2
    shift 2
    "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    got=$?
    if [ "$got" = "$want" ]; then
        ok "$what"
    else
        echo "  command: $*"
        echo "  exit status $got, must be $want; stderr:"
        head -n 5 "$TMP/err" | sed 's/^/    /'
        not_ok "$what"
    fi
}

# one_line FILE: exactly one line, of the form "tool: ...".
one_line() { [ "$(wc -l <"$1")" = 1 ] && grep -qE '^[a-z][a-z0-9-]*: ..' "$1"; }

# json FILE EXPRESSION: prints the value of a Python expression about the object `d`.
json() { "$PYTHON" -c 'import json,sys
d=json.load(open(sys.argv[1]))
v=eval(sys.argv[2])
print(v if isinstance(v,str) else json.dumps(v))' "$1" "$2"; }

sha() { sha256sum "$@" | cut -c 1-64; }
# sha_tree DIR...: one digest of all files' names and contents.
sha_tree() { (cd "$1" && find . -type f | sort | xargs sha256sum | sha256sum | cut -c 1-64); }

tokstream() { "$PYTHON" "$top/tests/props/tokstream.py" "$@"; }

# have PROGRAM...: false, with a skip line, where a program has not been built.
have() {
    for p in "$@"; do
        if [ ! -x "$BIN/$p" ]; then
            skip "needs $p"
            return 1
        fi
    done
}
# shim NAME: the path of a preloaded library, or a skip line.
shim() {
    if [ -z "$SHIM" ]; then
        skip "$1: not under sanitizers" >&2
        return 1
    fi
    [ -f "$SHIM/$1.so" ] || return 1
    echo "$SHIM/$1.so"
}

# corpus FILE BYTES SEED: JSONL of about BYTES bytes, the same everywhere. Lengths of documents are spread
# from a word to tens of thousands of bytes; some texts repeat; several alphabets, escapes and NULs occur.
corpus() { "$PYTHON" "$top/tests/cli/make_corpus.py" "$@"; }
