# shellcheck shell=bash disable=SC2154
# messages.sh - what a new user gives to the wrong program or in the wrong form is refused by one line that says what to
# do instead; what is counted is "1 document" or "2 documents".

have tokenize decompose shuffle inspect schedule || return 0

# refused WHAT STATUS WORDS COMMAND...: one line, with WORDS in it.
refused() {
    what=$1 want=$2 words=$3
    shift 3
    status "$what" "$want" "$@"
    check "  one line" one_line err
    check "  says: $words" grep -qF -- "$words" err
}

printf '{"text":"hello world"}\n{"text":"foo bar baz"}\n' >two.jsonl
sed -n 1p two.jsonl >one.jsonl
tokenize -q -t bytes two.jsonl -o two.tks
decompose -q --min 2 --max 8 --label-token two.tks >cut.tks
shuffle -q --tails drop -o set --format wds cut.tks
decompose -q --min 2 --max 8 two.tks | shuffle -q --tails drop -o mds --format mds

# Names that are not in a list: the message has the list.
refused "an unknown trainer" 2 "is not one of openlm|olmo|generic" schedule --trainer megatron set
refused "an unknown method" 2 "is not one of bfd|ffd|" pack --method best two.tks
names="natural, uniform, or grow or shrink with -linear, -p2 or -p100"
refused "an unknown curriculum" 2 "$names" schedule --curriculum steep set
refused "an unknown shape" 2 "$names" schedule --curriculum grow-steep set
refused "  before the set is read" 2 "curriculum foo: expected $names" schedule --curriculum foo no-set
refused "an option in place of a value" 2 "--json needs a value, FILE, and the option --trainer follows it" schedule --json --trainer generic set
refused "too many odds" 2 "give as many odds as there are buckets, 2" schedule --curriculum 1,2,3 set

# Names that are nearly right.
refused "two letters changed places" 2 "--tokenzier is not an option; use --tokenizer" tokenize --tokenzier bytes two.jsonl
refused "another two" 2 "--feild is not an option; use --field" tokenize --feild=text two.jsonl
refused "a letter too few" 2 "--labeltoken is not an option; use --label-token" decompose --labeltoken two.tks
refused "nothing like it" 2 "--colour is not an option; see --help" tokenize --colour two.jsonl
refused "a stream to schedule" 1 "two.tks: expected the folder of a shard set, or a bucket's manifest" schedule two.tks
refused "a stream as a report" 1 "two.tks: is not JSON; name reports, which --stats writes" inspect --merge-stats two.tks

# Files that are no streams.
refused "text to inspect" 1 "one.jsonl: this is text, not a token stream; tokenize makes one of it" inspect one.jsonl
for i in $(seq 100); do echo "{\"text\":\"a long file $i\"}"; done >long.jsonl
for p in "decompose --min 2 --max 8" "dedup" "pack --length 8" shuffle; do
    # shellcheck disable=SC2086
    refused "text to $p" 1 "tokenize makes one of it" $p -o x.tks long.jsonl
done
zstd -q two.tks -o two.tks.zst
refused "a compressed stream" 1 "zstd -dc FILE" inspect two.tks.zst
gzip -k two.tks
refused "another one" 1 "gzip -dc FILE" inspect two.tks.gz
pack -q --length 64 --save-plan p -o x.tks two.tks
rm x.tks
refused "a plan" 1 "this is a plan of pack" inspect p
head -c 300 /dev/zero >zeros
dedup -q --ngrams --save-index items.idx -o x.tks two.tks
dedup -q --save-index earlier.idx -o x.tks two.tks
rm x.tks
tokenize -q -t bytes --manifest --stats r.json two.jsonl -o m.tks
inspect --merge-stats r.json >merged.json
refused "a report" 1 "this is a report, not a token stream; 'inspect --merge-stats FILE' reads it" inspect r.json
refused "a manifest" 1 "this is a report, not a token stream; 'inspect --merge-stats FILE' reads it" inspect m.tks.manifest.json
refused "a merged report" 1 "this is a merged report, not a token stream; 'inspect --merge-stats --table FILE' reads it" inspect merged.json
refused "a set's report" 1 "this is the report of a set, not a token stream; 'inspect FOLDER' reads the set" inspect set/report.json
refused "an index" 1 "this is an index or a work file, not a token stream" inspect items.idx
for f in two.tks two.jsonl; do
    for m in "" --near --exact; do
        # shellcheck disable=SC2086
        refused "$f as an index $m" 1 "$f: not an index of duplicates; make one of the other texts' stream with 'dedup --save-index FILE', with" \
            dedup $m --against $f -o x.tks two.tks
    done
done
for o in "--near --pairs p" "--near --audit" "--substring 5 --annotate"; do
    # shellcheck disable=SC2086
    refused "dedup $o in stages" 2 "needs all documents in one process; leave it out, or run dedup without --stage" \
        dedup $o --stage group --work w --part 0/2
done
refused "an index of n-grams with a mode" 1 "items.idx: is an index of n-grams, as for test items; leave --near and --exact out" \
    dedup --near --against items.idx -o x.tks two.tks
refused "an index of documents without one" 1 "with an index of --near or --exact name that mode too" dedup --against earlier.idx -o x.tks two.tks
check "none of these left an output" test ! -e x.tks
refused "bytes" 1 "make one with tokenize, or say with --input-format which form of ids it is" inspect zeros
cp two.tks longer.tks
echo more >>longer.tks
refused "more after the end" 1 "has bytes after its end that are not another stream" inspect longer.tks
head -c 30 two.tks >cut30.tks
refused "a stream that was cut in its first frame" 1 "ends early, in frame 0" inspect cut30.tks
for f in two.tks "--format text two.tks" "--on-error fail -"; do
    # shellcheck disable=SC2086
    refused "a stream to tokenize $f" 1 "is a token stream already; give it to dedup" shell "tokenize -t bytes -o x.tks $f <two.tks"
done

# Folders.
mkdir empty folder folder/state
refused "a folder" 1 "not a set of shards, which has a report.json; name a set, or a stream" inspect empty
mkdir streams
cp two.tks streams/0.tks
refused "a folder of streams" 1 "streams: a folder of streams; name the files in it: streams/*.tks" inspect streams
echo 'sluice-batch 1: made this folder' >folder/state/made-by
echo '{}' >folder/report.json
for p in inspect schedule; do
    refused "$p: a folder of sluice-batch" 1 "its set is folder/shards, and 'sluice-batch status folder'" $p folder
done
mkdir folder/stream
refused "  one whose recipe has no --format" 1 "its stream is in the files folder/stream/*.tks, and 'sluice-batch" inspect folder
echo '{"content": "a"}' >content.jsonl
refused "texts under another name" 1 "--field text: none of 1 document has a text there; name a field that they have" \
    tokenize -t bytes --on-error skip content.jsonl -o x.tks
check "  which --field cannot be left out for" shell '! grep -q "leave the option out" err'

# Records all of which are bad: an error, and for parts a warning, with an error when their reports meet.
printf '{"text": 1}\n{"text": 2}\n' >numbers.jsonl
printf 'another line\na line\n' >lines.jsonl
all_bad() { # FILE COUNTS ERROR ERROR_OF_PARTS [OPTION...]
    bad=$1 counts=$2 say=$3 meet=$4
    shift 4
    refused "$bad, all bad $*" 1 "$say" tokenize -t bytes --on-error skip "$@" "$bad" -o none.tks
    check "  no output" test ! -e none.tks
    for i in 0 1; do
        status "  part $i" 0 tokenize -t bytes --on-error skip "$@" --part $i/2 "$bad" --stats $i.json -o /dev/null
        check "  is in the line with the counts" grep -q "tokens in 0 sequences out; dropped: $counts 1 document; " err
    done
    refused "  the parts' reports" 1 "$meet" inspect --merge-stats 0.json 1.json
}
all_bad numbers.jsonl not-a-string "--field text: none of 2 documents has a text there; name a field" \
    "tokenize: --field text: none of 2 documents has a text there"
all_bad lines.jsonl invalid-json "no record can be taken (invalid-json 2); a run without --on-error skip and --rejects says" \
    "tokenize: none of 2 records could be taken; --rejects keeps them with the reasons"
printf '%s\n' '{"a": 1}' 'no JSON' >mixed.jsonl
for bad in lines.jsonl numbers.jsonl mixed.jsonl; do
    status "$bad, all bad: --rejects" 1 tokenize -t bytes --rejects r.jsonl "$bad" -o none.tks
    same "  has them" "2 $(sha "$bad")" "$(wc -l <r.jsonl) $("$PYTHON" -c 'import base64,json
for line in open("r.jsonl"): print(base64.b64decode(json.loads(line)["raw"]).decode().rstrip("\n"))' | sha256sum | cut -d " " -f 1)"
    check "  and there is no output" test ! -e none.tks
    rm r.jsonl
done
refused "  which the message names" 1 "no record can be taken (invalid-json 2); see r.jsonl" \
    tokenize -t bytes --rejects r.jsonl lines.jsonl -o none.tks
inspect -q mds/D_2 >mds.txt
check "ids of two bytes: a vocabulary" grep -q '^  vocabulary  65536 ids, 2 bytes each$' mds.txt
"$PYTHON" -c 'import array; array.array("I", [5, 6, 0]).tofile(open("wide.npy", "wb"))'
inspect -q --input-format npy --token-bytes 4 --eos-id 0 wide.npy >wide.txt
check "ids of four: not known" grep -q '^  vocabulary  not known, ids of 4 bytes, eos 0$' wide.txt

# Tokenizers.
take() { tokenize -q -t "$1" -o x.tks two.jsonl; }
printf '{"tokenizer_class": "GPT2Tokenizer"}' >tokenizer_config.json
printf '{"<|endoftext|>": 0, "a": 1}' >vocab.json
printf '{"model_type": "llama", "eos_token_id": 2}' >config.json
refused "a configuration" 1 "this is a tokenizer_config.json, not a vocabulary; name the tokenizer.json" take tokenizer_config.json
refused "a vocabulary alone" 1 "this is a vocab.json without its merges" take vocab.json
refused "a model's configuration" 1 "this is a model's config.json" take config.json
for n in gpt2 Qwen/Qwen3-8B mistralai/Mistral-7B-v0.1; do
    refused "a name of a hub" 1 "as by 'hf download $n tokenizer.json'" take $n
done
refused "lines of JSON" 1 "two.jsonl: is a file of JSON lines, not a tokenizer; name a model's tokenizer.json, tekken.json or" take two.jsonl
refused "one line" 1 "one.jsonl: not a tokenizer.json: no model with a vocabulary; name a model's" take one.jsonl
refused "a stream" 1 "two.tks: is a token stream, not a tokenizer; name a model's" take two.tks
refused "nothing" 1 "/dev/null: is empty, not a tokenizer; name a model's" take /dev/null
refused "no JSON" 1 "lines.jsonl: not a model's tokenizer.json, tekken.json or .tiktoken file: byte 0: not valid JSON" take lines.jsonl
printf 'IQ== 0\nIg== 1\n' >ranks.model
refused "ranks in a file of any name" 2 "ranks.model: has tiktoken's ranks, and the name does not say how text is split for them; name the split with --pattern" take ranks.model
printf '\n\016\n\005<unk>' >pieces.model
refused "SentencePiece" 1 "pieces.model: SentencePiece's own format is not read; convert it" take pieces.model
refused "a file that is missing" 1 "t.json: No such file or directory" take t.json
refused "a folder without one" 1 "empty: has no tokenizer.json and no tekken.json" take empty
mkdir model
"$PYTHON" - <<'EOT'
import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
json.dump({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
           "added_tokens": [{"id": 256, "content": "</s>", "special": True}],
           "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("model/tokenizer.json", "w"))
EOT
tokenize -q -t model/tokenizer.json -o file.tks two.jsonl
inspect file.tks >sum
check "the summary names a file's tokenizer" grep -q '^  tokenizer   family gpt2, from a file, fingerprint [0-9a-f]*$' sum
inspect two.tks >sum
check "  and one without a file" grep -q '^  tokenizer   bytes, fingerprint [0-9a-f]*$' sum
for d in model model/; do
    tokenize -q -t $d --stats s.json --manifest -o dir.tks two.jsonl
    same "-t $d is its tokenizer.json" "$(sha file.tks)" "$(sha dir.tks)"
    same "  the report names the file" model/tokenizer.json "$(json s.json 'd["tokenizer"]["file"]')"
    status "  and the manifest has its contents" 0 tokenize -v -t model/tokenizer.json --manifest -o dir.tks two.jsonl
    check "  so the file is no other one" grep -q 'dir.tks: is there already' err
    cp -r model other
    echo >>other/tokenizer.json
    status "  so another file is not the same" 1 tokenize -q -t other --manifest -o dir.tks two.jsonl
    rm -r other
    rm dir.tks*
done

# JSON that is not lines.
printf '[\n  {"text":"a"},\n  {"text":"b"}\n]\n' >array.json
printf '[{"text":"a"},{"text":"b"}]' >short.json
printf '{\n  "text": "a"\n}\n' >object.json
refused "an array" 1 "array.json: is a JSON array, not one object a line; make lines of it with jq -c '.[]'" tokenize -q -o x.tks array.json
refused "on one line" 1 "is a JSON array" tokenize -q -o x.tks short.json
refused "through a pipe" 1 "is a JSON array" shell 'cat short.json | tokenize -q -o x.tks'
refused "an object over several lines" 1 "make lines of it with jq -c ." tokenize -q -o x.tks object.json
check "none of these left an output" test ! -e x.tks

# Singular and plural; what is not counted is not named.
tokenize -t bytes one.jsonl -o one.tks 2>said
check "one document" grep -q '^tokenize: 1 document, 11 tokens in; 1 document, 12 tokens in 1 sequence out; ' said
mkdir dots
cp one.jsonl dots/a.jsonl
: >dots/.hidden
tokenize -t bytes dots -o x.tks 2>said
check "one name" grep -q 'left out of folders: 1 name with a dot in front$' said
same "a sum of one" "ok: 1 sequence, 12 tokens, 1 document" "$(inspect --verify one.tks | sed 's/, checksum.*//')"
inspect one.tks >sum
check "a summary of one" grep -q '^  tokens      12 in 1 sequence, 1 segment, 1 document$' sum
decompose --plan one.tks >sum
check "a plan of one" grep -q '^1 document, 12 tokens, cut greedily$' sum
pack --length 16 --plan one.tks >sum
check "a table of one" grep -q '^1 sequence (12 tokens) to go into bins of 16 tokens$' sum
refused "one weight" 2 "mixture 1: 1 weight for 2 buckets" decompose --buckets 4,8 --mixture 1 --mixture-tokens 8 -o x.tks two.tks
schedule --trainer openlm --tokens 1 --epochs 1 set >/dev/null 2>said
check "one epoch" grep -q '1 token cannot be had in whole shards; an epoch has 16, and the training 1 epoch$' said
schedule -v --trainer generic --batch-tokens 8 set -o /dev/null 2>said
check "schedule counts no documents" shell "grep -q ' tokens in; .* out; ' said && ! grep -q document said"

# Sets of shards are no text, though they have files whose names are those of text.
for s in set mds; do
    refused "a set as text: $s" 2 "$s: is a set of shards, which has tokens already; give it to inspect, dedup, decompose, pack or shuffle" tokenize -t bytes $s
done
status "  with --include its files are read" 0 tokenize -q -t bytes --include README.md mds -o no.tks

# Two corpora whose files have the same names are one source when joined; parts of a job are no such two.
mkdir en de
cp two.jsonl en/d.jsonl
cp one.jsonl de/d.jsonl
for l in en de; do
    tokenize -q -t bytes $l -o $l.tks
done
warning="dedup: en.tks and de.tks begin with the same document, of source d.jsonl; if they are two corpora, whose files have equal names, tokenize one of them with --source-prefix NAME"
status "equal names joined" 0 dedup en.tks de.tks -o joined.tks
same "  are a warning" "$warning" "$(told err)"
tokenize -q -t bytes --source-prefix de de -o de.tks -f
for i in 0 1; do
    tokenize -q -t bytes --part $i/2 en -o "part$i.tks"
done
status "  not with --source-prefix" 0 dedup en.tks de.tks -o joined.tks
empty "    which says nothing" "$(told err)"
status "  nor for parts" 0 dedup part0.tks part1.tks -o joined.tks
empty "    which say nothing" "$(told err)"
