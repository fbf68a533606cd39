# shellcheck shell=bash disable=SC2154
# lib.sh - what the cases of tests/cli share; sourced by tests/cli/run.
#
# A command that fails unasked is a failure of the case (tests/cli/run): every status counts, in pipes and in $(...)
# too, unless the command is a condition (if, &&, ||, !) or an argument of check, fails or status. A program that must
# fail is run by `status WHAT N`, `check WHAT fails` or `code`. In "A && B" only B is looked at: use two lines. Text for another shell goes to `shell`, not to sh -c, which knows no pipefail. A reader that stops early
# (head, grep -q) makes the writer fail: let it read a file, or use sed -n 1p. What is compared is never empty: `sha` and
# `same` refuse that; `empty` is for what must be.

ok() { echo "ok $case_name: $*"; }
not_ok() { echo "not ok $case_name: $*"; }
skip() { echo "skip $case_name: $*"; }

# check WHAT COMMAND...: the command exits 0.
check() {
    what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# same WHAT A B: the two texts are equal, and there is one.
same() {
    if [ "$2" = "$3" ] && [ -n "$2" ]; then
        ok "$1"
    else
        printf '  one:   %s\n  other: %s\n' "$2" "$3" | cut -c 1-400
        not_ok "$1"
    fi
}

# empty WHAT TEXT: there is none.
empty() {
    if [ -z "$2" ]; then
        ok "$1"
    else
        printf '%s\n' "$2" | sed -n '1,20s/^/  /p'
        not_ok "$1"
    fi
}

# status WHAT N COMMAND...: the exit status is N; stdout and stderr are kept in $TMP/out, $TMP/err.
status() {
    what=$1 want=$2
    shift 2
    code "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    if [ "$ended" = "$want" ]; then
        ok "$what"
    else
        echo "  command: $*"
        echo "  exit status $ended, must be $want; stderr:"
        head -n 5 "$TMP/err" | sed 's/^/    /'
        not_ok "$what"
    fi
}

# code COMMAND...: runs what may fail, or be stopped; its exit status is in $ended.
code() {
    ended=0
    "$@" || ended=$?
}

# fails COMMAND...: it must, as an error does (1, 2), not by a signal.
fails() {
    code "$@"
    [ $ended = 1 ] || [ $ended = 2 ]
}

# shell TEXT [NAME ARGUMENT...]: another shell, in which any failure, of a pipe too, ends it.
shell() { bash -e -o pipefail -c "$@"; }

# told FILE: the messages on standard error, without a successful program's last line, which has the counts.
told() { sed '/^[a-z]*: [0-9]* documents*, [0-9]* tokens* in; .* out\(; dropped: .*\)*; [0-9.]* s$/d' "$1"; }

# one_line FILE: exactly one line, of the form "tool: ...".
one_line() {
    local line rest
    { IFS= read -r line && ! IFS= read -r rest && [ -z "$rest" ]; } <"$1" && [[ $line =~ ^[a-z][a-z0-9-]*:\ .. ]]
}

# json FILE EXPRESSION: prints the value of a Python expression about the object `d`. One process answers a whole
# case, as starting Python takes 30 ms; so never two at once.
json() {
    local answer="1no answer"
    case $1 in
    /dev/*) answer=$("$PYTHON" "$top/tests/cli/values.py" "$PWD" "$1" "$2") ;; # <(...) and stdin are this shell's
    *)
        printf '%s\0' "$PWD" "$1" "$2" >&"$json_ask"
        IFS= read -r -d '' answer <&"$json_answer" || :
        ;;
    esac
    case $answer in
    0*) printf '%s\n' "${answer#0}" ;;
    *)
        echo "json $1: ${answer#1}" >&2
        return 1
        ;;
    esac
}
json_begin() {
    json_pipes=$(mktemp -d "$TMP.XXXXXX") || return
    mkfifo "$json_pipes/ask" "$json_pipes/answer"
    ("$PYTHON" "$top/tests/cli/values.py" <"$json_pipes/ask" >"$json_pipes/answer" 2>/dev/null &) # no child: cases wait for theirs
    exec {json_ask}>"$json_pipes/ask" {json_answer}<"$json_pipes/answer"
    rm -r "$json_pipes"
}

# sha [FILE...]: a digest a line. Of nothing, and of a file that is not there, it fails and prints what no other call does.
sha() {
    digests=$(sha256sum "$@") || digests=
    case $digests in
    *$'\n'*) digests=$(cut -c 1-64 <<<"$digests") ;;
    *) digests=${digests:0:64} ;;
    esac
    case $digests in
    '' | *e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855*)
        echo "nothing to hash: $* ($BASHPID $RANDOM)"
        return 1
        ;;
    esac
    echo "$digests"
}
# sha_tree DIR: one digest of all files' names and contents.
sha_tree() { (cd "$1" && find . -type f | sort | xargs -r sha256sum | sha); }

tokstream() { "$PYTHON" "$top/tests/props/tokstream.py" "$@"; }

# longer A B: prints B in check-more, else A.
longer() { if [ -n "$MORE" ]; then echo "$2"; else echo "$1"; fi; }

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
