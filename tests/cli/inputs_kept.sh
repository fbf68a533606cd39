# shellcheck shell=sh disable=SC2154
# inputs_kept.sh - no output replaces a file that the run reads: every output option of every program, as --help lists
# them, is tried with every kind of input.
# check-more: whole

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" "$top/tests/cli/inputs_kept.py" || not_ok "the driver ends well"

# Standard output may be a file too, and be read.
corpus c.jsonl 20000 1
tokenize -q -t bytes -o t.tks c.jsonl
cp c.jsonl c.kept && cp t.tks t.kept
for to in '>>' '1<>'; do
    status "tokenize $to a file that it reads" 2 sh -c "tokenize -q -t bytes c.jsonl $to c.jsonl"
    check "  says so" grep -q '^tokenize: standard output goes to the file that is read (c.jsonl); ' err
    status "dedup $to its standard input" 2 sh -c "dedup -q <t.tks $to t.tks"
    check "  which stays" cmp t.tks t.kept
    check "  and so does the text" cmp c.jsonl c.kept
done
status "inspect, behind another file" 0 sh -c 'echo first >log && inspect t.tks >>log'
