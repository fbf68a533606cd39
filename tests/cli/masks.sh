# shellcheck shell=bash disable=SC2154
# masks.sh - streams whose tokens are trained on or not: no program loses a mask.

have inspect decompose dedup pack shuffle || return 0

# The example of the specification with masks: 4 and 2 tokens, of which 3 are trained on.
"$PYTHON" - "$top/formats/STREAM.md" <<'P' >example.tks
import re, sys
block = re.findall(r"```hex\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)[2]
sys.stdout.buffer.write(bytes.fromhex("".join(line[5:] for line in block.splitlines())))
P
same "inspect --records shows masks" "$(tokstream example.tks)" "$(inspect --records example.tks)"
inspect --json example.tks >j
same "inspect --json counts what is trained on" '[3, 6]' "$(json j '[d["loss_tokens"], d["tokens"]]')"
tokstream --need-all --summary example.tks >k
same "and has the checksum of the masks" "$(json k 'd["mask_checksum"]')" "$(json j 'd["mask_checksum"]')"
inspect example.tks >out
check "so does the summary" grep -q '^  trained on  3 tokens, 50.0 %$' out
check "inspect --verify" shell 'inspect --verify example.tks | grep -q "3 tokens trained on, checksum of masks"'
for program in dedup decompose pack shuffle; do
    status "$program refuses what it would lose" 1 "$program" -q example.tks
    check "$program says why" grep -q "example.tks: has masks" err
done
