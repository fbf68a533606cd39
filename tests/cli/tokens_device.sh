# shellcheck shell=bash disable=SC2154,SC2086
# tokens_device.sh - the scan of files of ids on a device: the same bytes as on the CPU, and a device that fails at any
# call (each fifth; in check-full each). The device is a fake (tests/fake), which auto uses for all work.
# check-more: whole

have inspect || return 0
fake=$O/fake/bin
if [ ! -x "$fake/inspect" ] || [ ! -x "$fake/decompose" ]; then
    skip "needs the fake device"
    return 0
fi
npy() { "$PYTHON" "$top/tests/cli/make_npy.py" "$@"; }
npy ids a.npy 2 "[0, 0] + [7] * 300 + [0] + [5] * 131072 + [0] + [9] * 4"
npy ids d.npy 2 "([1] * 200 + [0] + [2] * 1500 + [0]) * 2500 + [3] * 1000000 + [0]" 1
npy ids e.npy 4 "[8] * 70000 + [0] * 3"
raw="--eos-id 0 --token-bytes 2 -M 32M a.npy d.npy d.npy"

hist=$("$fake/inspect" --histogram --device cpu $raw 2>err | sha)
check "the CPU warns of a document without EOS" grep -q "^inspect: a.npy: the last document" err
for d in cpu cuda cuda:0 auto; do
    for t in 1 2; do
        same "--device $d -T $t" "$hist" "$(SLU_FAKE_LOG=log "$fake/inspect" --histogram --device $d -T $t --stats s.json $raw 2>err2 | sha)"
        check "--device $d -T $t: the same warnings" cmp err err2
    done
done
same "auto took it" "cuda:0" "$(json s.json 'd["device"][:6]')"
check "the kernel ran" grep -q "^scan [3-9]" log
for d in cpu cuda; do
    cat d.npy | "$fake/decompose" --plan --device $d --eos-id 0 --token-bytes 2 -M 32M >plan.$d
    "$fake/decompose" --plan --device $d --eos-id 0 --token-bytes 4 -M 32M e.npy >plan4.$d
done
check "a pipe" cmp plan.cpu plan.cuda
check "four bytes" cmp plan4.cpu plan4.cuda
same "a pipe is not taken under auto, for it cannot be read twice" cpu \
    "$(cat d.npy | "$fake/decompose" --plan --eos-id 0 --token-bytes 2 --stats s.json >plan; json s.json 'd["device"]')"
status "an id past the vocabulary" 1 "$fake/inspect" --histogram --device cuda --vocab-size 5 $raw
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "a.npy: id 7 at position 2 " err'

for mode in "" :lost :late; do
    n=0 bad=
    while n=$((n + ${FULL:-5})); do
        got=$(SLU_FAKE_FAIL=$n$mode SLU_FAKE_LOG=log "$fake/inspect" --histogram --device auto $raw 2>err | sha)
        [ "$got" = "$hist" ] && [ "$(grep -c "the CPU does its work" err)" -le 1 ] || bad="$bad auto:$n"
        SLU_FAKE_FAIL=$n$mode code "$fake/inspect" --histogram --device cuda $raw >out 2>err
        case $ended in
        0) [ "$(sha <out)" = "$hist" ] || bad="$bad cuda:$n" ;;
        1) one_line err && [ ! -s out ] || bad="$bad cuda:$n" ;;
        *) bad="$bad cuda:$n" ;;
        esac
        [ "$(awk '/^calls/ {print $2}' log)" -ge "$n" ] && [ "$n" -lt 200 ] || break
    done
    empty "each of $n calls fails$mode: the same bytes under auto, one line under cuda" "$bad"
done
