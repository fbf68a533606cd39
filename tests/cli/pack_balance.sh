# shellcheck shell=bash disable=SC2154,SC2016,SC2034
# pack_balance.sh - pack --balance: its effect on a stream, its refused values, and the options in the provenance.
# tests/props/check_balance.py checks the steps.

have tokenize decompose pack shuffle inspect || return 0
corpus c.jsonl 4000000 12
tokenize -t bytes -o c.tks c.jsonl
pack --length 4096 c.tks | shuffle -o p.tks
content() { inspect --json "$1" >j.json && json j.json '[d[k] for k in ("sequences", "segments", "tokens", "padding", "checksum", "trace_checksum", "lengths")]'; }

pack --balance 8 --stats s.json -o b.tks p.tks
same "nothing but the order changes" "$(content p.tks)" "$(content b.tks)"
check "it verifies" inspect --verify b.tks
same "the cost of a step is much more even" true \
    "$(json s.json 'd["balance"]["before"]["overall"] > 1.1 and d["balance"]["after"]["overall"] < 1.02')"
same "whole steps and a remainder" true "$(json s.json 'd["balance"]["steps"] * 8 + d["balance"]["remainder"] == d["passed"]')"
for o in "-T 1" "-T 7" "-M 64M" "--device cpu" "--tmpdir $TMP"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$(sha b.tks)" "$(pack --balance 8 $o p.tks | sha)"
done
check "packing and balance in one run" shell 'pack --length 4096 --balance 4 -o x.tks c.tks && inspect --verify x.tks'
same "  with the content of the unbalanced" "$(content p.tks)" "$(content x.tks)"
decompose c.tks | pack --balance 4 --balance-tokens 65536 --stats s.json -o x.tks
same "steps of as many tokens, whatever the bucket" true \
    "$(json s.json 'd["balance"]["steps"] > 10 and d["balance"]["after"]["worst"] < 1.2')"

last() { inspect --json "$1" >j.json && json j.json 'd["provenance"][-1]["arguments"] + " " + str(d["provenance"][-1]["seed"])'; }
pack --balance 4 --balance-sequences 2 --balance-cost 049152,1 --balance-window 3 --seed 5 -o x.tks p.tks
same "the provenance has it all" \
    "--balance=4 --balance-sequences=2 --balance-cost=49152,1 --balance-window=3 5" "$(last x.tks)"
pack --balance 4 --balance-cost 0,1 -o x.tks p.tks
same "  but no default" "--balance=4 0" "$(last x.tks)"

for o in "--balance-sequences 2" "--balance-tokens 9" "--balance-cost 1,2" "--balance-window 2" "--balance 2 --plan" \
    "--balance 2 --balance-sequences 2 --balance-tokens 4096" "--balance 2 --balance-cost 1" \
    "--balance 2 --balance-cost 0,0" "--balance 2 --balance-cost 1,x" "--balance 2 --balance-cost -1,2" \
    "--balance 2 --balance-cost 1,99999999999999999999" "--balance x" "--balance 2 --balance-tokens 8191" \
    "--balance 0" "--balance 2 --balance-sequences 0" "--balance 2 --balance-tokens 0" "--balance 2 --balance-window 0" \
    "--balance 4Gi --balance-sequences 4Gi" "--balance 2 --balance-cost 1,9999999999999999"; do
    # shellcheck disable=SC2086 # words
    status "usage: $o" 2 pack -o x.tks $o p.tks
    check "  one line" one_line err
done
# What the header says is known before reading: of a stream that ends early, and nothing is written.
"$PYTHON" -c '
b = open("p.tks", "rb").read()
open("cut.tks", "wb").write(b[:len(b) // 2])'
for o in "--balance-tokens 8191" "--balance-cost 1,9999999999999999"; do
    # shellcheck disable=SC2086 # words
    status "before reading: --balance 2 $o" 2 pack --balance 2 $o cut.tks
    check "  and nothing is written" test ! -s out
done
status "windows that -M has no room for" 1 pack --balance 64 --balance-window 64 -M 32M -o x.tks p.tks
check "  one line that names both ways out" shell 'grep -q -- "-M" err && grep -q -- --balance-window err && [ $(wc -l <err) = 1 ]'
status "  one of them" 0 pack --balance 64 --balance-window 8 -M 64M -o x.tks p.tks
status "  the other" 0 pack --balance 64 --balance-window 64 -M 1G -o x.tks p.tks
