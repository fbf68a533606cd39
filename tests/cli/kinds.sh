# shellcheck shell=bash disable=SC2154
# kinds.sh - a file of each kind, alone, under another name, from a pipe, and in a folder beside a text: it is read
# rightly, left out with a line, or refused with what to do, and never taken for a text that it is not.
# check-more: longer

have tokenize || return 0
"$PYTHON" "$top/tests/cli/make_kinds.py" k >kinds
check "there are 40 kinds and more" test "$(wc -l <kinds)" -ge 40

# outcome COMMAND...: the documents that the command reads, or "refused" with its one line in $TMP/err; a crash is neither.
outcome() {
    code "$@" >o.tks 2>"$TMP/err" </dev/null
    case $ended in
    0) grep -oE '; [0-9]+ documents?, .* out' "$TMP/err" | grep -oE '[0-9]+' | sed -n 1p ;;
    1 | 2) if [ "$(grep -c . "$TMP/err")" = 1 ]; then echo refused; else echo "refused in many lines"; fi ;;
    *) echo "exit status $ended" ;;
    esac
}
piped() { tokenize -t bytes <"$1"; }
said() { [ "$1" = - ] || grep -qE -e "$1" "$TMP/err"; }

echo 'A text beside it.' >beside
while IFS=$'\t' read -r name want word by; do
    same "$name: alone" "$want" "$(outcome tokenize -t bytes "k/$name/$name")"
    check "$name: alone: what it is" said "$word"
    check "$name: alone: the file" said "$([ "$want" != refused ] && echo - || echo "k/$name/$name|no record of WARC")"
    if [ -n "$MORE" ] && [ "$by" = head ]; then
        suffix=
        case $name in *.gz | *.bz2 | *.xz) suffix=.${name##*.} ;; esac
        cp "k/$name/$name" "x$suffix"
        same "$name: under a name that tells nothing" "$want" "$(outcome tokenize -t bytes "x$suffix")"
        check "$name: under a name that tells nothing: what it is" said "$word"
        same "$name: from a pipe" "$want" "$(outcome piped "k/$name/$name")"
        check "$name: from a pipe: what it is" said "$word"
    fi
    # In a folder, with a text: both are read, or one is left out with a line that names one, or the run ends.
    cp beside "k/$name/0.txt"
    found=$(outcome tokenize -t bytes "k/$name")
    case $found in
    refused*) check "$name: in a folder: refused" said "k/$name/$name" ;;
    1) check "$name: in a folder: left out, with a line" said 'left out of folders: 1 file|1 record of WARC without a plain text' ;;
    *) same "$name: in a folder: all are read" "$((${want/refused/-9} + 1))" "$found" ;;
    esac
    [ -n "$MORE" ] || continue
    # A folder of this kind alone
    rm "k/$name/0.txt"
    same "$name: a folder of it" "$want" "$(outcome tokenize -t bytes "k/$name")"
    check "$name: a folder of it: what it is" said "$word"
done <kinds
# What is text whatever it is called can be read as such.
for f in a.csv a.html page.txt a.ipynb a.csv.gz nobom.txt; do
    same "$f: --format text" 1 "$(outcome tokenize -t bytes --format text "k/$f/$f")"
    outcome tokenize -t bytes "k/$f/$f" >/dev/null
    check "$f: advised" said '--format text'
done
# With --on-error skip the run goes on after a file of another kind, and counts it.
cp k/a.png/a.png k/a.jsonl/a.jsonl .
status "--on-error skip: goes on" 0 tokenize -t bytes --on-error skip --stats s.json -o o.tks a.png a.jsonl
same "--on-error skip: counted" 1 "$(json s.json 'd["documents"]["dropped"]["other-kind"]')"
