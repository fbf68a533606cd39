# shellcheck shell=bash disable=SC2154
# determinism.sh - DESIGN.md, Same bytes: the same SHA-256 of every stream and of the shards for -T 1, 2, 7, three -M,
# two folders, and with delayed threads and short reads and writes (tests/shim/delay.c); on a stream of at least 100
# frames in make check-full, of 10 in check-more, else of 5.
# check-more: longer

have tokenize dedup choose decompose pack shuffle inspect || return 0

# Frames are cut at 2^20 tokens or 2^16 sequences: about 110 frames of bytes tokens are 115 MB of text, in few
# documents of very different lengths, made by repeating a corpus with numbers, so that dedup finds little.
mkdir -p a/in b/else
corpus base.jsonl 1000000 3
"$PYTHON" - a/in <<'PY'
import json, os, sys
base = [json.loads(l)["text"] for l in open("base.jsonl", encoding="utf-8")]
n = 0
for part in range(4):
    with open("%s/%d.jsonl" % (sys.argv[1], part), "w", encoding="utf-8") as f:
        for round in range(36 if os.environ.get("FULL") else 4 if os.environ.get("MORE") else 2):
            for k, t in enumerate(base):
                n += 1
                # one text in eight stays as it is and repeats
                text = t if k % 8 == 0 else "%d-%d %s" % (part, n, t)
                f.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
PY
cp a/in/* b/else/

# line OUT INPUT OPTIONS...: digests of all streams and of the shards.
line() {
    out=$1 in=$2
    shift 2
    tokenize -t bytes "$@" "$in" >"$out.1" &&
        dedup --exact "$@" "$out.1" >"$out.2" &&
        choose --top 97% --by length "$@" "$out.2" >"$out.6" &&
        decompose --min 256 --max 8192 --label-token --split random --seed 9 "$@" "$out.2" >"$out.3" &&
        pack "$@" "$out.3" >"$out.4" &&
        shuffle --seed 5 "$@" "$out.4" >"$out.5" &&
        shuffle --seed 5 "$@" -o "$out.d" --format wds --shard-sequences 512 "$out.4" || echo "failed"
    rm -f "$out.d/report.json"
    for i in 1 2 3 4 5 6; do sha "$out.$i"; done
    sha_tree "$out.d"
    rm -rf "$out".*
}

cd a || return 1
tokenize -t bytes -o all.tks in
tokstream --summary all.tks >sum.json 2>/dev/null
frames=$(json sum.json 'd["frames"]')
check "the stream has frames enough ($frames)" test "$frames" -ge "$([ "$FULL" ] && echo 100 || longer 5 10)"
rm all.tks
line run in -T 1 -M 256M >"$TMP/want"
same "the whole line ran" 7 "$(grep -cE '^[0-9a-f]{64}$' "$TMP/want")"
for t in ${MORE:+2} 7; do
    same "-T $t" "$(cat "$TMP/want")" "$(line run in -T $t -M 256M)"
done
for m in 64M ${MORE:+2G}; do
    same "-M $m" "$(cat "$TMP/want")" "$(line run in -T 2 -M $m)"
done
cd ../b || return 1
same "another folder, other names of the outputs, another --tmpdir" "$(cat "$TMP/want")" \
    "$(mkdir t; mv else in; line other in -T 3 -M 256M --tmpdir t)"
cd ..
if [ -n "$SHIM" ]; then
    # The delays: see tests/shim/delay.c. Its log proves that it took part.
    cd a || return 1
    export LD_PRELOAD="$SHIM/delay.so" SHIM_LOG="$TMP/delays" SHIM_SHORT=1 SHIM_DELAY_US=2000
    for seed in 1 ${MORE:+2}; do
        same "workers delayed, short reads and writes, -T 7, seed $seed" "$(cat "$TMP/want")" \
            "$(SHIM_SEED=$seed line run in -T 7 -M 64M)"
    done
    unset LD_PRELOAD SHIM_LOG SHIM_SHORT SHIM_DELAY_US
    cd ..
    # shellcheck disable=SC2016 # awk's own
    check "there were delays and short transfers" shell \
        'awk "{d += \$1; s += \$2} END {print \"  \" d \" delays, \" s \" short\"; exit !(d > 300 && s > 300)}" delays'
fi
# zstd: the same for every -T too, and the same records
cd a || return 1
corpus z.jsonl "$(longer 1500000 3000000)" 8
tokenize -t bytes -z3 -T 1 z.jsonl >z1.tks
tokenize -t bytes -z3 -T 7 z.jsonl >z7.tks
tokenize -t bytes z.jsonl >z0.tks
same "-z: -T 1 and -T 7" "$(sha z1.tks)" "$(sha z7.tks)"
check "-z makes it smaller" test "$(wc -c <z1.tks)" -lt "$(wc -c <z0.tks)"
check "the independent reader reads compressed frames" tokstream --check --need-all z1.tks
same "-z keeps the records" "$(inspect --records z0.tks | sha)" "$(inspect --records z1.tks | sha)"
cd ..
