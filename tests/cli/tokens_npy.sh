# shellcheck shell=bash disable=SC2154,SC2002,SC2086
# tokens_npy.sh - files of ids, with NumPy's header or without: every program that reads streams reads them as the
# stream of the same documents, for any threads and memory, from files and pipes; each fault is reported in one line.
# check-more: whole

have tokenize decompose inspect dedup pack shuffle || return 0
npy() { "$PYTHON" "$top/tests/cli/make_npy.py" "$@"; }
# field FILE KEY: of inspect --json; "-" reads standard input.
field() { cat "$1" | inspect --json >f.json && json f.json "d['$2']"; }

corpus c.jsonl "$(longer 400000 2000000)" 5
tokenize -t bytes c.jsonl >c.tks
inspect --records c.tks >r.json
eos=$(field c.tks eos_id)
v=$(field c.tks vocab_size)
npy records r.json c.npy 2
npy records r.json wide.npy 4
npy records r.json one.npy 2 1
npy records r.json two.npy 4 2
raw="--eos-id $eos --token-bytes 2 --vocab-size $v"

# ---- the same documents ----

sum=$(field c.tks checksum)
inspect --json $raw c.npy >j.json
same "the checksum of the stream" "$sum" "$(json j.json 'd["checksum"]')"
same "kind, eos, size of the vocabulary" "tokens npy $eos $v 2" \
    "$(json j.json '" ".join(str(d[k]) for k in ("kind", "format", "eos_id", "vocab_size", "token_bytes"))')"
same "lengths" "$(field c.tks lengths)" "$(json j.json 'd["lengths"]')"
trace=$(json j.json 'd["trace_checksum"]')
for f in "wide.npy --eos-id $eos --token-bytes 4 --vocab-size $v" "one.npy --eos-id $eos --vocab-size $v" \
    "two.npy --eos-id $eos --vocab-size $v" "two.npy --eos-id $eos --vocab-size 70000" "one.npy --eos-id $eos"; do
    inspect --json $f >j.json
    same "$f: the same documents" "$sum $trace" "$(json j.json 'd["checksum"] + " " + d["trace_checksum"]')"
done
inspect --verify $raw c.npy >out
check "--verify" grep -q "^ok: .*$sum" out
inspect --records $raw c.npy >n.json
check "a document's number leads back" npy check n.json c.npy 2
decompose --min 16 --max 512 $raw c.npy >d.tks
inspect --records d.tks >n.json
check "and a piece's, with its offset" npy check n.json c.npy 2
same "decompose: the stream's pieces" "$(decompose --min 16 --max 512 c.tks | field - checksum)" "$(field d.tks checksum)"
tokstream d.tks >t.json 2>t.err
check "the stream is a stream" test $? = 0
check "provenance says how it was read" shell "inspect --json d.tks | grep -c -- '--eos-id=$eos --token-bytes=2 --vocab-size=$v'"

bytes=$(sha d.tks)
for o in "-T 7" "-M 32M" ${MORE:+"-T 1" "-T 2" "-M 2G" "--device cpu"}; do
    same "the same bytes with $o" "$bytes" "$(decompose $o --min 16 --max 512 $raw c.npy | sha)"
done
same "from a pipe: the same documents" "$(field d.tks trace_checksum)" \
    "$(cat c.npy | decompose --min 16 --max 512 $raw - | field - trace_checksum)"
same "as standard input" "$sum" "$(inspect --json $raw <c.npy >j.json; json j.json 'd["checksum"]')"
mkfifo fifo.npy
cat one.npy >fifo.npy &
same "a FIFO with NumPy's header" "$sum" "$(inspect --json $raw fifo.npy >j.json; json j.json 'd["checksum"]')"

for p in "dedup" "dedup --ngrams=document --unit token" "dedup --near --unit token" "pack --length 256" "shuffle"; do
    same "$p reads them" "$($p c.tks 2>/dev/null | field - checksum)" "$($p $raw c.npy 2>/dev/null | field - checksum)"
done
npy ids small.npy 2 "[5, $eos, $eos, 6, 7, $eos]"
inspect --records --eos-id $eos --token-bytes 2 small.npy c.npy >n.json
check "two files: each with its own numbers" npy check n.json small.npy 2 c.npy 2
inspect --records --eos-id $eos --token-bytes 2 --vocab-size 66000 small.npy one.npy two.npy >n.json
same "two widths and headers together" "$(($(wc -l <r.json) * 2 + 3))" "$(wc -l <n.json)"

# ---- the scan alone ----

for o in "" "--min 16 --max 512" "--label-token --tail drop" "--buckets 100,30,1000 --min-length 20 --max-length 5000" "-T 1" "-T 7" \
    "-M 32M" "--device auto"; do
    decompose --plan --stats s.json $o c.tks >plan
    decompose --plan --stats r.json $o $raw c.npy >plan2
    check "--plan $o: the stream's" cmp plan plan2
    same "--plan $o: its report" "$(json s.json '[d["buckets"], d["tokens"], d["documents"]]')" \
        "$(json r.json '[d["buckets"], d["tokens"], d["documents"]]')"
done
same "--stats names the timings" "['plan', 'scan']" "$(json r.json 'str(sorted(d["timings"]))')"
decompose --plan --histogram h1.csv c.tks >plan
decompose --plan --histogram h2.csv $raw c.npy >plan2
check "--plan --histogram" cmp h1.csv h2.csv
check "--plan from a pipe" shell "cat c.npy | decompose --plan $raw | cmp - plan"
check "--plan by a pass, for random splits" shell "decompose --plan --split random $raw c.npy | grep -c 'drawn\\|random'"
for f in "$raw c.npy" "--eos-id $eos wide.npy --token-bytes 4" "--eos-id $eos two.npy" "--eos-id $eos one.npy -T 1"; do
    inspect --histogram c.tks >h1
    inspect --histogram $f >h2
    check "inspect --histogram $f" cmp h1 h2
done
# Documents over the borders of blocks, longer than the table, and more of them than a frame has.
npy ids big.npy 2 "[1] * 3000000 + [0] * 200000 + ([2] * 299 + [0]) * 1000 + [3] * 262144"
inspect --histogram -q --eos-id 0 --token-bytes 2 big.npy >h1
inspect --json -q -M 4G --eos-id 0 --token-bytes 2 big.npy >j.json
same "large and small documents" "[[1, 199999], [300, 1000], [262144, 1], [3000001, 1]]" "$(json j.json 'd["lengths"]')"
same "and by the scan" "199999 1000 1 1" "$(awk '$1 ~ /^(1|256-511|262144-524287|2097152-4194303)$/ {print $2}' h1 | xargs)"
status "a document larger than memory" 1 inspect --json -M 32M --eos-id 0 --token-bytes 2 big.npy
check "is named" shell 'grep -q "big.npy: the document that begins at id 0 has more than" err'

# ---- what is said ----

inspect --json -M 4G --stats s.json --eos-id 0 --token-bytes 2 big.npy 2>err >out
check "no EOS at the end: one warning" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "the last document does not end with id 0" err'
same "no EOS at the end: counted" 1 "$(json s.json 'd["documents_without_eos"]')"
status "the wrong id" 0 inspect --histogram --eos-id 65000 --token-bytes 2 small.npy c.npy
check "the wrong id: said" grep -q "^inspect: small.npy and 1 more: no id 65000 anywhere" err
status "-q" 0 inspect -q --histogram --eos-id 65000 --token-bytes 2 small.npy
check "-q: silent" test ! -s err

# ---- what is refused ----

refused() { # CODE WORDS ARGUMENT...
    code=$1 words=$2
    shift 2
    for p in "inspect --json" "inspect --histogram" "decompose --plan" "decompose"; do
        status "$p $*" "$code" $p "$@"
        if one_line err && grep -qe "$words" err; then ok "$p $*: $words"; else
            cat err
            not_ok "$p $*: $words"
        fi
    done
}
printf abc >odd.npy
: >empty.npy
head -c 1000 one.npy >cut.npy
head -c 40 one.npy >head.npy
cat one.npy small.npy >long.npy
npy header i8.npy "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"
npy header be.npy "{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }"
npy header flat.npy "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }"
npy header scalar.npy "{'descr': '<u2', 'fortran_order': False, 'shape': (), }"
npy header none.npy "{'fortran_order': False, 'shape': (4,), }"
refused 2 "--eos-id N" --token-bytes 2 c.npy
refused 2 "--token-bytes N" --eos-id 0 c.npy
refused 1 "not a whole number of ids" --eos-id 0 --token-bytes 2 odd.npy
refused 1 "is empty" --eos-id 0 --token-bytes 2 empty.npy
refused 1 "is empty" --eos-id 0 --token-bytes 2 c.npy empty.npy
refused 1 "NumPy header says" --eos-id 0 cut.npy
refused 1 "ends within its NumPy header" --eos-id 0 head.npy
refused 1 "NumPy header says" --eos-id 0 long.npy
refused 1 "<i8" --eos-id 0 i8.npy
refused 1 ">u2" --eos-id 0 be.npy
refused 1 "one dimension" --eos-id 0 flat.npy
refused 1 "one dimension" --eos-id 0 scalar.npy
refused 1 "NumPy header has no" --eos-id 0 none.npy
same "a header is right about the width" "$sum" "$(inspect --json --eos-id $eos --token-bytes 4 one.npy >j.json; json j.json 'd["checksum"]')"
refused 1 "small.npy: id $eos at position 1 is not below" --eos-id 6 --token-bytes 2 --vocab-size $eos small.npy
refused 1 "one.npy: id [0-9]* at position [0-9]* is not below" --eos-id 0 --vocab-size 100 one.npy
refused 2 "below the vocabulary size" --eos-id 300 --token-bytes 2 --vocab-size 300 c.npy
refused 2 "below the vocabulary size" --eos-id 70000 --token-bytes 2 c.npy
refused 1 "give one kind at a time" --eos-id 0 --token-bytes 2 c.npy c.tks
refused 2 "c.tks: is a token stream, and options for files of ids were given" --eos-id 0 c.tks
refused 1 "cannot be opened" --eos-id 0 --token-bytes 2 missing.npy
for p in "inspect --json" "inspect --histogram" "decompose --plan" "decompose"; do
    status "$p: a pipe of other data than ids" 1 shell "cat i8.npy | $p --eos-id 0 --token-bytes 2 -"
    check "$p: is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "<i8" err'
done
# A pipe is held to its header as a file is: nothing behind the ids, the width that was said.
npy header much.npy "{'descr': '<u2', 'fortran_order': False, 'shape': (18446744073709551615,), }"
printf '\223NUMPY\001\000' >magic.npy
cat one.npy one.npy c.npy >three.npy
(cat one.npy && printf x) >odd_one.npy
npy ids block.npy 2 "[5] * 262144" 1
cat block.npy block.npy >two_blocks.npy
npy ids zero.npy 2 "[]" 1
cat zero.npy small.npy >behind_zero.npy
for f in "three.npy has bytes after the" "odd_one.npy has bytes after the" "two_blocks.npy has bytes after the" "behind_zero.npy has bytes after the" \
    "two.npy its header says ids of 4 bytes" "much.npy a shape of more ids" "magic.npy ends within its NumPy header"; do
    for p in "inspect --json" "inspect --histogram" "decompose --plan" "decompose"; do
        status "$p: ${f%% *} from a pipe" 1 shell "cat ${f%% *} | $p --eos-id 0 --token-bytes 2 -"
        check "$p: is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -qe "$1" err' - "${f#* }"
    done
done
for f in one.npy block.npy; do
    status "$f from a pipe, as it is" 0 shell "cat $f | decompose --plan -q --eos-id 0 --token-bytes 2"
done
status "an array of another shape" 1 decompose --eos-id 0 flat.npy
check "  is shown whole" grep -qF "shape (2, 2); ids" err
status "ids asked for in a stream" 2 decompose --eos-id 0 c.tks
check "it is not told how to be ids" test -s err
check "  by the words for ids" fails grep -q "says so" err
npy ids ones.npy 2 "[1] * 1500000 + [0]"
status "more pieces than memory" 1 decompose --buckets 1 -M 32M --eos-id 0 --token-bytes 2 -o x.tks ones.npy
check "the file is named" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "ones.npy: document 0 becomes more sequences" err'
status "four bytes and no vocabulary" 2 decompose --eos-id $eos two.npy
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q -- "--vocab-size N" err'
status "but for a look it does" 0 inspect --json --eos-id $eos two.npy

# ---- what the inputs are is said, or seen ----

cp c.npy plain.bin
same "--input-format npy: whatever the name" "$sum" "$(inspect --json --input-format npy $raw plain.bin >j.json; json j.json 'd["checksum"]')"
same "--format is the same, in programs without their own" "$sum" "$(decompose --format npy $raw plain.bin --buckets 1000000 | field - checksum)"
same "and of standard input" "$sum" "$(inspect --json --format=npy $raw <plain.bin >j.json; json j.json 'd["checksum"]')"
check "--input-format is in the provenance" shell "dedup --input-format npy $raw plain.bin | inspect --json | grep -c -- '--input-format=npy --eos-id'"
same "--input-format stream" "$sum" "$(inspect --json --input-format stream c.tks >j.json; json j.json 'd["checksum"]')"
mkdir empty_dir
for p in "inspect --json" "decompose" "decompose --plan" "dedup" "pack --length 64" "shuffle"; do
    status "$p: a stream that is none" 1 $p --input-format stream one.npy
    check "$p: is one line" one_line err
    status "$p: ids where a stream was said" 2 $p --input-format stream --eos-id 0 one.npy
    check "$p: is said" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "one.npy: is a token stream, and options for files of ids were given" err'
    status "$p: a stream where ids were said" 2 $p --input-format npy c.tks
    check "$p: and what they need" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q -- "--token-bytes" err'
    status "$p: an unknown format" 2 $p --input-format nope c.tks
    status "$p: a folder as ids" 1 $p --input-format npy --eos-id 0 --token-bytes 2 empty_dir
    check "$p: is said to be one" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "empty_dir: a folder; npy is read from files" err'
done
for p in "decompose" "decompose --plan" "dedup" "shuffle"; do
    status "$p: a folder of nothing" 1 $p empty_dir
    check "$p: is said to be one" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "empty_dir: a folder, and not one" err'
done
