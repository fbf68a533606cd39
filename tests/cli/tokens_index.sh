# shellcheck shell=bash disable=SC2154,SC2002,SC2086
# tokens_index.sh - ids with an index, Megatron's .bin and .idx and datatrove's .ds: every program reads them as the
# stream of the same documents, for any width, threads and memory; each fault of an index is reported in one line.
# check-more: whole

have tokenize decompose inspect dedup pack shuffle || return 0
index() { "$PYTHON" "$top/tests/cli/make_index.py" "$@"; }
# field FILE KEY: of inspect --json; "-" reads standard input.
field() { cat "$1" | inspect --json >f.json && json f.json "d['$2']"; }

corpus c.jsonl "$(longer 400000 2000000)" 5
tokenize -t bytes c.jsonl >c.tks
inspect --records c.tks >r.json
eos=$(field c.tks eos_id)
v=$(field c.tks vocab_size)
sum=$(field c.tks checksum)
lengths=$(field c.tks lengths)
for t in i16 u16 i32 i64; do index megatron r.json m_$t $t; done
index megatron r.json cut u16 100
for w in 2 4; do index ds r.json w$w.ds $w; done
index ds r.json plain.ds 2 nometa
index ds r.json wide.ds 4 nometa
index ds r.json bare.ds 2 noindex
index ds r.json none.ds 2 noindex nometa
opts="--eos-id $eos --vocab-size $v"

# ---- the same documents ----

trace=
for f in m_i16.idx m_u16.bin m_i32 m_i64.idx cut.idx w2.ds w4.ds plain.ds wide.ds; do
    inspect --json $opts $f >j.json
    same "$f: the same ids" "$sum $lengths" "$(json j.json 'd["checksum"] + " " + json.dumps(d["lengths"])')"
    same "$f: eos, size of the vocabulary" "$eos $v 2" "$(json j.json '" ".join(str(d[k]) for k in ("eos_id", "vocab_size", "token_bytes"))')"
    trace=${trace:-$(json j.json 'd["trace_checksum"]')}
    same "$f: the same places" "$trace" "$(json j.json 'd["trace_checksum"]')"
    inspect --records $opts $f >n.json
    case $f in *.ds) kind=ds ;; *) kind=megatron ;; esac
    check "$f: a document's number leads back" index check n.json $kind $f
    same "$f: the format's name" $kind "$(json j.json 'd["format"]')"
    status "$f: --verify" 0 inspect --verify $opts $f
    check "$f: no warnings" test ! -s err
done
for f in bare.ds none.ds; do
    same "$f: without an index, by --eos-id" "$sum" "$(inspect --json $opts --token-bytes 2 $f >j.json; json j.json 'd["checksum"]')"
done
same "a width that metadata says" "$sum" "$(inspect --json $opts bare.ds >j.json; json j.json 'd["checksum"]')"
same "no eos is asked for where an index says where documents end" "$sum None" \
    "$(inspect --json w2.ds >j.json; json j.json 'd["checksum"] + " " + str(d["eos_id"])')"
for f in m_i32.idx ${MORE:+w4.ds}; do
    decompose --min 16 --max 512 $opts $f >d.tks
    same "$f: decompose: the stream's pieces" "$(decompose --min 16 --max 512 c.tks | field - checksum)" "$(field d.tks checksum)"
    tokstream d.tks >t.json 2>t.err
    check "$f: the stream is a stream" test $? = 0
    bytes=$(sha d.tks)
    for o in "-T 7" ${MORE:+"-T 1" "-M 32M" "-M 2G"}; do
        same "$f: the same bytes with $o" "$bytes" "$(decompose $o --min 16 --max 512 $opts $f | sha)"
    done
    for p in "dedup" "dedup --ngrams=document --unit token" "dedup --near --unit token" "pack --length 256" "shuffle"; do
        same "$f: $p reads it" "$($p c.tks 2>/dev/null | field - checksum)" "$($p $opts $f 2>/dev/null | field - checksum)"
    done
    for o in "" "--min 16 --max 512" "--label-token --tail drop"; do
        decompose --plan $o c.tks >plan
        check "$f: --plan $o" shell "decompose --plan $o $opts $f | cmp - plan"
        check "$f: --plan $o by the index alone" shell "decompose --plan $o --eos-id $eos $f | cmp - plan"
    done
    inspect --histogram c.tks >h1
    inspect --histogram $f >h2
    check "$f: --histogram" cmp h1 h2
done
inspect --records --eos-id $eos --vocab-size $v m_u16.idx cut.bin m_i64 >n.json
check "three sets: each with its own numbers" index check n.json megatron m_u16.idx cut.bin m_i64
inspect --records --vocab-size $v w2.ds w4.ds >n.json
check "two widths of .ds together" index check n.json ds w2.ds w4.ds
printf '{"tokens":[1,2,3]}\n{"tokens":[]}\n{"tokens":[4]}\n' >small.json
for t in u8 i8; do
    index megatron small.json s_$t $t
    inspect --records s_$t.idx >n.json
    check "$t" index check n.json megatron s_$t.idx
done
index ds small.json small.ds 2
for f in s_u8 small.ds; do
    status "$f: a document of no ids" 0 inspect --json --stats s.json $f
    same "$f: is left out, and counted" "2 1" "$(json out 'd["documents"]') $(json s.json 'd["empty_documents"]')"
done
printf '{"tokens":[]}\n' >no.json
index megatron no.json no u16
index ds no.json no.ds 2
for f in no.idx no.ds; do
    status "$f: nothing but an empty document" 0 inspect --json $f
    same "$f: no documents" 0 "$(json out 'd["documents"]')"
done
status "an id that is no end" 0 inspect --json --stats s.json --eos-id 9 w2.ds
check "is said" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "documents that do not end with id 9: [1-9]" err'
: >w2.ds.loss
status "losses" 0 inspect --json w2.ds
check "are said not to be carried" grep -q "w2.ds: the losses that are masked" err
rm w2.ds.loss

# ---- what is refused ----

refused() { # CODE WORDS ARGUMENT...
    code=$1 words=$2
    shift 2
    for p in "inspect --json" "decompose" "decompose --plan"; do
        status "$p $*" "$code" $p "$@"
        if one_line err && grep -qe "$words" err; then ok "$p $*: $words"; else
            cat err
            not_ok "$p $*: $words"
        fi
    done
}
# forged NAME PYTHON: a copy of cut.* (or of w2.ds*) changed by statements about the bytes b of its index.
forged() {
    cp cut.bin "$1.bin"
    "$PYTHON" -c "import struct,sys
b=bytearray(open('cut.idx','rb').read())
n,m=struct.unpack_from('<QQ',b,18)
p,d=34+4*n,34+12*n
$2
open('$1.idx','wb').write(b)"
}
forged magic "b[0]=0"
forged version "b[9]=2"
forged float "b[17]=7"
forged type0 "b[17]=0"
forged type9 "b[17]=9"
forged count "b[25]=255"
forged entries "b[33]=127"
forged short "del b[-1:]"
forged longer "b+=b'x'"
forged negative "struct.pack_into('<i',b,34,-5)"
forged pointer "struct.pack_into('<q',b,p+16,7)"
forged gap "struct.pack_into('<q',b,d,1)"
forged back "struct.pack_into('<q',b,d+16,0)"
forged beyond "struct.pack_into('<q',b,d+16,1<<40)"
forged unended "struct.pack_into('<q',b,d+8*(m-1),n-1)"
forged modes "b+=bytes(n)"
forged image "b+=bytes(n-1)+b'\\1'"
forged wider "b[17]=4"
forged bad_ids ""
forged odd ""
forged cut_ids ""
head -c 1001 cut.bin >odd.bin
head -c 1000 cut.bin >cut_ids.bin
refused 1 "not an index of Megatron's" --input-format megatron magic.idx
refused 1 "version 2; version 1 is read" version.idx
refused 1 "type 7 (floating point)" float.idx
refused 1 "type 0; ids are" type0.idx
refused 1 "type 9; ids are" type9.idx
refused 1 "bytes were cut off or added" count.idx
refused 1 "bytes were cut off or added" entries.idx
refused 1 "bytes were cut off or added" short.idx
refused 1 "bytes were cut off or added" longer.idx
refused 1 "sequence 0 has a length of -5" negative.idx
refused 1 "sequence 2 begins at byte 7" pointer.idx
refused 1 "begin with sequence 1; expected 0" gap.idx
refused 1 "document 1 ends with sequence" back.idx
refused 1 "document 1 ends with sequence 1099511627776" beyond.idx
refused 1 "its documents end with sequence" unended.idx
refused 1 "has mode 1, so it is not text" image.idx
refused 1 "not a whole number of ids of 2 bytes" odd.idx
refused 1 "the .bin has 500 ids: the .bin was cut" cut_ids.idx
status "modes that are all text" 0 inspect --json $opts modes.idx
same "are read" "$sum" "$(json out 'd["checksum"]')"
refused 2 "are one input" cut.bin cut.idx
refused 2 "leave --token-bytes out" --token-bytes 4 cut.idx
refused 2 "below the vocabulary size" --eos-id 300 --vocab-size 300 cut.idx
refused 1 "give one kind at a time" cut.idx w2.ds
refused 1 "cannot be opened" --input-format megatron missing
refused 1 "m_only.idx: cannot be opened" --input-format megatron m_only
cp cut.idx m_only.idx
refused 1 "m_only.bin: cannot be opened" m_only.idx
for p in "inspect --json" "decompose"; do
    status "$p: ids past the vocabulary" 1 $p --vocab-size 100 cut.idx
    check "$p: the place" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "cut.bin: id [0-9]* at position [0-9]* is not below" err'
done
status "four bytes and no vocabulary" 2 decompose m_i32.idx
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q -- "--vocab-size N" err'
status "but for a look it does" 0 inspect --json m_i32.idx
printf '{"tokens":[1,-2,3]}\n' >neg.json
for t in i8 i16 i32 i64; do
    index megatron neg.json neg_$t $t
    status "$t: a negative id" 1 inspect --json neg_$t
    check "$t: is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "neg_'$t'.bin: id -2 at position 1 is negative" err'
done
printf '{"tokens":[1,4294967296]}\n' >huge.json
index megatron huge.json huge i64
status "an id of 2^32" 1 inspect --json huge
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "huge.bin: id 4294967296 at position 1 is not below" err'

# bad NAME WHICH PYTHON: a copy of w2.ds, its index or metadata changed.
bad() {
    cp w2.ds "$1.ds"
    cp w2.ds.index "$1.ds.index"
    cp w2.ds.metadata "$1.ds.metadata"
    "$PYTHON" -c "import struct
b=bytearray(open('$1.ds$2','rb').read())
$3
open('$1.ds$2','wb').write(b)"
}
bad odd .index "del b[-3:]"
bad fewer .index "del b[-8:]"
bad swap .index "b[:8],b[8:16]=b[8:16],b[:8]"
bad high .index "struct.pack_into('<Q',b,8,1<<60)"
bad end .index "struct.pack_into('<Q',b,len(b)-8,1<<60)"
bad ids "" "del b[-2:]"
bad meta4 .metadata "b[5]=ord('4')"
bad meta3 .metadata "b[5]=ord('3')"
bad metan .metadata "del b[8:9]"
bad metax .metadata "del b[6:]"
bad metae .metadata "del b[:]"
refused 1 "not a whole number of 8-byte document ends" odd.ds
refused 1 "was cut, or belongs to another file" fewer.ds
refused 1 "document 1 ends at id" swap.ds
refused 1 "document 1 ends at id" high.ds
refused 1 "was cut, or belongs to another file" end.ds
refused 1 "was cut, or belongs to another file" ids.ds
refused 1 "not four for each" meta4.ds
refused 1 "expected the tokenizer and the width" meta3.ds
refused 1 "metadata says" metan.ds
refused 1 "expected the tokenizer and the width" metax.ds
refused 1 "expected the tokenizer and the width" metae.ds
refused 2 "describes the ids of w2.ds" w2.ds.index
refused 2 "describes the ids of w2.ds" w2.ds w2.ds.metadata
refused 1 "one kind at a time" w2.ds bare.ds
refused 2 "leave --token-bytes out" --token-bytes 4 w2.ds
refused 2 "--eos-id N" bare.ds
refused 2 "--token-bytes" --eos-id $eos none.ds
refused 1 "metadata says ids of 2 bytes" --token-bytes 4 bare.ds
for f in ds megatron; do
    status "$f: standard input" 2 inspect --json --input-format $f
    check "$f: is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "standard input cannot carry" err'
done
printf '{"tokens":%s}\n' "$("$PYTHON" -c 'print([1] * 3000000)')" >big.json
index megatron big.json big u16
index ds big.json big.ds 2
for f in big.idx big.ds; do
    status "$f: a document larger than memory" 1 inspect --json -M 32M $f
    check "$f: is named" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "big.*: document 0 has 3000000 tokens, too many" err'
    status "$f: and with memory read" 0 inspect --json -M 4G $f
done

# ---- no output takes the place of what is read beside an input ----

kept=$(cat cut.bin cut.idx w2.ds.index | sha)
for o in "cut.idx cut.bin" "cut.bin cut.idx" "cut cut.bin" "cut cut.idx" "w2.ds w2.ds.index" "w2.ds w2.ds.metadata"; do
    for p in decompose "inspect --json"; do
        status "$p ${o% *} -o ${o#* }" 2 $p -f -o "${o#* }" "${o% *}"
        check "$p ${o% *} -o ${o#* }: is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "would replace the input" err'
    done
done
same "they are unchanged" "$kept" "$(cat cut.bin cut.idx w2.ds.index | sha)"
cp c.tks stream
: >stream.bin
status "a stream has nothing beside it" 0 decompose -o stream.bin stream
decompose --min 16 --max 64 --label-token --tail drop c.tks >l.tks
shuffle -q --format ds -o set l.tks
kept=$(sha_tree set)
status "a set that is made of its own shards" 2 shuffle --replace-set --format ds -o set set/D_6/shard-0000000.ds
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "would replace the input" err'
same "the set is unchanged" "$kept" "$(sha_tree set)"
mkdir set/mine
cp l.tks set/mine
status "other files in its folder stay, and may be read" 0 shuffle -q --replace-set --format ds -o set set/mine/l.tks
