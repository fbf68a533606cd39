# shellcheck shell=bash disable=SC2154
# options.sh - usage errors: unknown options and bad values give exit status 2, each documented option exists, numbers
# are parsed strictly.

# options PROGRAM OPTION...: --help lists each of them.
options() {
    p=$1
    shift
    have "$p" || return 0
    "$p" --help >help
    for o; do
        check "$p --help lists $o" grep -qE -e "(^|[ ,[|])$o([ ,=[|]|\$)" help
    done
}
# All programs are one executable, by links or by its first word.
if [ -z "${PROGRAM_PREFIX:-}" ]; then
    sluice=$BIN/sluice
    programs='tokenize dedup choose decompose pack shuffle forget schedule inspect'
    "$sluice" help >help
    for p in $programs sluice-batch sluice-chat; do
        check "sluice help lists $p" grep -q "^  $p  *[A-Z][^()]*\.\$" help
    done
    same "sluice inspect is inspect" "$(inspect --help)" "$("$sluice" inspect --help)"
    same "  so is help inspect" "$(inspect --help)" "$("$sluice" help inspect)"
    check "sluice batch is sluice-batch" shell '"$1" batch --help >help && grep "^usage: sluice-batch " help' - "$sluice"
    status "an unknown program" 2 "$sluice" "$(printf 'a\033b')"
    same "  is named" "sluice: 'a?b' is not a program of sluice; the programs are: $programs sluice-batch sluice-chat" "$(cat err)"
    mkdir links taken
    check "--link" "$sluice" --link links
    same "  makes all" "$(printf '%s\n' $programs sluice-batch sluice-chat | sort)" "$(ls links)"
    check "  they run" links/inspect --version
    check "  again" "$sluice" --link links
    echo mine >taken/pack
    status "a stranger's program" 2 "$sluice" --link taken
    same "  stays, alone" pack "$(ls taken)"
    status "--link to what is no folder" 2 "$sluice" --link taken/pack
    ln -s "$sluice" tokeniser
    status "a link of another name takes the program's as a word" 0 ./tokeniser inspect --version
fi
common="-o -T -M --tmpdir --seed --facts --compare --stats --progress -q -v -V -h --no-provenance -z -f --part --part-base"
# shellcheck disable=SC2086 # a list
{
    options tokenize $common -t --field --format --id-field --domain --domain-field --no-vocab --pattern --bos \
        --no-eos --special --part --files-from --on-error --rejects --where --fasttext --ids-keep --ids-drop --urls-drop --url-field \
        --rules --c4-lines
    options dedup $common --exact --pairs --near --bands --rows --ngram --threshold --unit --keep --domains --no-verify --band-cap --audit \
        --substring --cut --annotate --min-keep
    options choose $common --domain --source --ids-keep --ids-drop --length --score --top --by --unit --per --partition --stage --work
    options decompose $common --min --max --buckets --split --label-token --tail --min-length --max-length --plan --histogram
    options pack $common --length --method --long --fill --max-segments --mix-domains --plan
    options shuffle $common --format --documents --shard-size --shard-sequences --last
    options forget $common --ids-drop --where --pad-id --list --schedule --accept-mismatch
    options schedule -o --trainer --tokens --epochs --batch-tokens --world --workers
    options inspect --json --records --text --jsonl --histogram --verify
}

have tokenize dedup decompose pack shuffle inspect || return 0
corpus c.jsonl 50000 6
tokenize -t bytes c.jsonl >c.tks
decompose --min 16 --max 128 --label-token c.tks >d.tks

for p in tokenize dedup choose decompose pack shuffle forget schedule inspect; do
    have $p || continue
    status "$p: unknown long option" 2 $p --no-such-option
    check "$p: and it is named in one line" shell "grep -q -- --no-such-option '$TMP/err'"
    check "$p: nothing on stdout" test ! -s "$TMP/out"
    status "$p: unknown letter" 2 $p -9
    status "$p: --help" 0 $p --help
    check "$p: --help is on stdout" test -s "$TMP/out"
    status "$p: -V" 0 $p -V
    status "$p: --version" 0 $p --version
done
for p in dedup decompose pack shuffle; do
    case $p in decompose) extra="--min 16 --max 128" ;; pack) extra="--length 64" ;; *) extra= ;; esac
    run() { # shellcheck disable=SC2086
        status "$1" "$2" $p $extra "$4" "$5" -o x.tks c.tks
        : "$3"
    }
    for bad in abc -1 1x 1.5 '' 99999999999999999999 0x10; do
        run "$p: -T '$bad'" 2 : -T "$bad"
    done
    for bad in abc 1Q 64MB '' 99999999999T -5M 1K; do
        run "$p: -M '$bad'" 2 : -M "$bad"
    done
    for good in 64M 65536K 1G 67108864; do
        run "$p: -M $good" 0 : -M $good
    done
    run "$p: -T 0 is all" 0 : -T 0
    run "$p: --seed is strict" 2 : --seed 1a
    run "$p: --progress is strict" 2 : --progress perhaps
    rm -f x.tks
done
# The size of regular files is known, so progress has the share that is done; of a pipe it is not.
drawn() { tr '\r' '\n' | grep -c "$1"; }
tokenize -q -t bytes --progress always -o y.tks c.jsonl 2>err
check "tokenize shows its share" drawn '^tokenize: [0-9]* %, ' <err
for p in decompose pack shuffle dedup inspect; do
    options=
    [ $p != pack ] || options='--length 64'
    # shellcheck disable=SC2086 # words
    $p -q $options --progress always y.tks >/dev/null 2>err
    check "$p shows its share" drawn "^$p: [0-9]* %, " <err
    # shellcheck disable=SC2086 # words
    cat y.tks | $p -q $options --progress always >/dev/null 2>err
    check "  and none of a pipe" drawn "^$p: [0-9.]* [kM]*B, " <err
done
dedup -q --near --stage sign --part 0/1 --work near y.tks
dedup -q --near --stage group --part 0/1 --work near --progress always 2>err
check "a stage that reads no stream shows its share" drawn '^dedup: [0-9]* %, ' <err
shuffle -q --documents --format megatron -o checked y.tks
inspect --verify --progress always checked >/dev/null 2>err
check "inspect --verify shows the share of the bytes that it checks" drawn '^inspect: checking bytes, [0-9]* %, ' <err
mkdir -p few/D_4
echo '{"shard":"s","num_sequences":20}' >few/D_4/manifest.jsonl
schedule -q --trainer generic --batch-tokens 64 --progress always -o few.sched few 2>err
check "schedule shows the share of its steps" drawn '^schedule: 100 %, ' <err
inspect --verify --progress always few.sched >/dev/null 2>err
check "  and inspect of those in the file" drawn '^inspect: 100 %, ' <err
if command -v script >/dev/null; then
    for p in 'decompose --plan' 'pack --plan --length 64' inspect; do
        # Two lines of it in a row would be one on the screen.
        script -qec "$p --progress always y.tks" /dev/null </dev/null >shown 2>&1
        check "$p: its result does not stand behind the progress" "$PYTHON" -c 'import re
shown = open("shown", newline="").read().replace("\r\n", "\n")
assert re.search(r"\r[a-z]+: \d+ %, [^\r\n]*\x1b\[K\r\x1b\[K", shown), shown
assert not re.search(r"\r[a-z]+: [^\r\n]*\x1b\[K[^\r]", shown), shown'
    done
else
    skip "results behind the progress: no script(1)"
fi
rm -rf y.tks err near checked few few.sched shown
tokenize -t bytes --max-tokens 2K c.jsonl -o x.tks
inspect --json x.tks >x.json
same "a count is decimal" yes "$(json x.json '"yes" if "--max-tokens=2000" in d["provenance"][0]["arguments"] else d["provenance"]')"
for o in "pack --length" "decompose --max" "schedule --batch-tokens" "pack --length 64 --balance 2 --balance-tokens" \
    "pack --method multi --buckets"; do
    # shellcheck disable=SC2086
    status "$o 8K" 2 $o 8K c.tks
    check "  says what it would be" grep -q ': 8K is 8000; write 8192 or 8Ki$' err
done
status "a value is missing" 2 dedup -o
status "a flag with a value" 2 decompose --label-token=yes c.tks
check "  says that" grep -q -e '--label-token takes no value' err
status "a name cut too short" 2 decompose --m 4 c.tks
check "  says that" grep -q -e '--m stands for more than one option' err
status "an unknown option" 2 decompose --labels=yes c.tks
same "  says that alone" "decompose: --labels is not an option; see --help" "$(cat err)"

# Counts out of range are refused before anything is read, even in front of --help: OPTION LEAST MOST.
while read -r p option least most; do
    for bad in 0 99999999999; do
        [ $bad = 0 ] || [ -n "$most" ] || continue
        status "$p $option $bad" 2 $p $option $bad no-such-file -o x
        check "  one line" one_line err
        check "  names option, value and range" grep -q -e "$option $bad: .*$least${most:+ to $most}" err
        status "  also before --help" 2 $p $option $bad --help
    done
done <<'EOT'
pack --length 1 67108863
pack --balance 1
decompose --buckets 1 67108864
decompose --min 1 67108864
decompose --max 1 67108864
decompose --mixture-tokens 1
inspect --vocab-size 1
EOT
status "decompose: --min over --max" 2 decompose --min 512 --max 256 c.tks -o x
status "decompose: --split zigzag" 2 decompose --split zigzag c.tks -o x
status "pack needs --length without buckets" 2 pack c.tks -o x
status "shuffle: -o DIR with an unknown format" 2 shuffle --format zip -o x d.tks
status "tokenize: a vocabulary that does not exist" 1 tokenize -t no-such.json c.jsonl -o x
status "tokenize: --special" 2 tokenize --special maybe c.jsonl -o x
check "none of these left an output" test ! -e x
status "options may come after operands" 0 inspect d.tks --json
status "-- ends the options" 1 inspect -- --json
status "--option=value" 0 decompose --min=16 --max=128 c.tks -o x.tks
status "-oFILE" 0 decompose --min 16 --max 128 c.tks -ox.tks
status "an existing output is replaced" 0 dedup c.tks -o x.tks

# every output is a file of its own
mkdir -p sub
for bad in "dedup --pairs ./p -o p c.tks" "dedup --pairs sub/../p -o p c.tks" "dedup --pairs p --stats p -o x.tks c.tks" "dedup --pairs - c.tks" \
    "tokenize --holdout 0.5 --holdout-output - c.jsonl" "tokenize --rejects ./x.tks -o x.tks c.jsonl" \
    "decompose --plan --histogram - c.tks" "inspect --json --stats - c.tks"; do
    # shellcheck disable=SC2086 # words are meant
    status "two outputs, one file: $bad" 2 $bad
    check "  one line" one_line "$TMP/err"
done
check "and nothing was written" test ! -e p
# options that an input has no use for are refused
decompose --min 16 --max 64 --label-token --tail drop c.tks | shuffle -o idle --format wds 2>/dev/null
for bad in "--eos-id 0" "--token-bytes 2" "--vocab-size 9"; do
    # shellcheck disable=SC2086 # words are meant
    status "$bad with a shard directory" 2 inspect $bad idle
    check "  one line" one_line "$TMP/err"
done
if [ -x "$BIN/schedule" ]; then
    schedule --trainer generic --batch-tokens 64 -o idle.sched idle
    status "--eos-id with a schedule" 2 inspect --eos-id 0 idle.sched
    check "  one line" one_line "$TMP/err"
fi
status "--vocab-size 0" 2 inspect --vocab-size 0 --eos-id 0 --token-bytes 2 c.tks
printf '\5\0\0\0' >two.npy
for mode in --json --histogram --records; do # one answer, whatever the mode has to do there
    code inspect --device cuda $mode --eos-id 0 --token-bytes 2 two.npy >out 2>err
    echo $ended
done | sort -u >codes
same "--device cuda: the same answer in every mode" 1 "$(wc -l <codes)"
status "--device cuda:99" 1 inspect --device cuda:99 --histogram --eos-id 0 --token-bytes 2 two.npy
check "  is named, with its number" grep -q 'cuda:99 ' err
rm -rf idle

# no output takes the place of an input
cp c.tks in.tks
ln -s in.tks in-link
printf '\5\0\0\0' >in.npy
echo c.jsonl >in.list
cp in.list in.plan
sha in.tks in.npy in.list in.plan >in.sum
for bad in "dedup -o in.tks in.tks" "dedup -o ./in.tks c.tks in.tks" "dedup --pairs in-link -o x.tks in.tks" "inspect --svg in.tks in.tks" \
    "inspect --stats sub/../in.tks in-link" "decompose --plan --histogram in.npy --eos-id 0 --token-bytes 2 in.npy" "tokenize -t bytes -o c.jsonl c.jsonl" \
    "tokenize -t bytes --files-from in.list -o ./in.list" "pack --length 64 --apply-plan in.plan -o in.plan c.tks" \
    "pack --length 64 --apply-plan in.plan --stats ./in.plan -o x.tks c.tks"; do
    # shellcheck disable=SC2086 # words are meant
    status "an output over the input: $bad" 2 $bad
    check "  one line" one_line "$TMP/err"
done
status "an output over standard input" 2 shell 'inspect --svg in.tks <in.tks'
same "and nothing was written then" "$(cat in.sum)" "$(sha in.tks in.npy in.list in.plan)"
status "--svg -, alone" 0 inspect --svg - c.tks
check "  is the picture" grep -q '^<svg' "$TMP/out"
status "--svg - with --json" 2 inspect --svg - --json c.tks
if [ -x "$BIN/schedule" ]; then
    decompose --min 16 --max 64 --label-token --tail drop c.tks | shuffle -o over --format wds 2>/dev/null
    sha over/D_4/* over/report.json >in.sum
    for o in "-o over/D_4/manifest.jsonl" "--json ./over/D_5/../D_4/manifest.jsonl -o x" "--stats over/D_4/manifest.jsonl -o x" "--stats over/report.json -o x"; do
        # shellcheck disable=SC2086 # words are meant
        status "an output over the set: schedule $o" 2 schedule --trainer generic --batch-tokens 64 $o over
        check "  one line" one_line "$TMP/err"
    done
    status "over its manifest" 2 schedule --trainer generic --batch-tokens 64 -o over/D_4/manifest.jsonl over/D_4/manifest.jsonl
    same "and the set is unchanged" "$(cat in.sum)" "$(sha over/D_4/* over/report.json)"
    status "beside the buckets a schedule may lie" 0 schedule --trainer generic --batch-tokens 64 -o over/x.sched over
    status "and be written again" 0 schedule --trainer generic --batch-tokens 64 -f -o over/x.sched over
    rm -rf over
fi
status "/dev/null takes any number" 0 tokenize -t bytes --rejects /dev/null -o /dev/null c.jsonl
status "a report that cannot be written is found before the work" 1 dedup --stats no/such/folder/s -o y.tks c.tks
check "and nothing was written then" test ! -e y.tks
status "the report alone may go to standard output" 0 dedup --stats - -o x.tks c.tks
check "and is JSON" "$PYTHON" -m json.tool "$TMP/out" /dev/null

# inspect's output is text, and -o works for it too
for mode in --json --records --records=3 --jsonl --histogram --verify -q; do
    inspect $mode c.tks >shown
    status "inspect $mode -o FILE" 0 inspect $mode -o shown2 c.tks
    check "  equals the printed form" cmp shown shown2
    check "  and nothing is printed" test ! -s "$TMP/out"
done
status "inspect -o /dev/full" 1 inspect --records -o /dev/full c.tks
head -c 3000 c.tks >cut.tks
status "inspect -o FILE of a stream that is cut" 1 inspect --records -o none cut.tks
check "leaves no file" test ! -e none
status "inspect --records=0" 0 inspect --records=0 c.tks
check "prints nothing" test ! -s "$TMP/out"

# wds wants label tokens (DESIGN.md, The stream)
decompose --min 16 --max 128 c.tks | pack >nolabel.tks
status "wds without label tokens is refused" 1 shuffle -o set --format wds nolabel.tks
check "with the option to use" grep -q -- --label-token "$TMP/err"
check "and nothing is made" test ! -e set/report.json
decompose --buckets 24,100 --label-token c.tks | pack >odd.tks
status "wds refuses buckets that are no powers of two" 1 shuffle -o set --format wds odd.tks

# closed descriptors: nothing of a file lands in them
(dedup c.tks -o y.tks 0<&- 1>&- 2>&-)
same "descriptors 0 to 2 closed" 0 $?
check "the output is whole" inspect --verify y.tks
status "nowhere to write to is a fault" 1 shell 'dedup c.tks >&-'
check "and says so" grep -q 'standard output.*Bad file descriptor' err
status "nowhere to read from is a fault" 1 shell 'decompose <&- -o y2.tks'
check "and leaves nothing" test ! -e y2.tks

# where an output goes
dedup c.tks -o want.tks
echo old >target
ln -s target link
status "-o LINK" 0 dedup c.tks -o link
check "the link stays" test -L link
check "its target is replaced" cmp -s target want.tks
ln -s missing dangling
status "-o LINK to nothing" 0 dedup c.tks -o dangling
check "writes the file that it names" cmp -s missing want.tks
ln -s /proc/self/fd/1 stdout-link
dedup c.tks -o stdout-link >via
same "-o a link to a descriptor" 0 $?
check "is written to it, and stays" cmp -s via want.tks
check "it is still a link" test -L stdout-link
dedup c.tks -o /dev/stdout | cmp -s - want.tks
same "-o /dev/stdout" 0 $?
n=$(printf '%0251d' 0).tks
status "a name as long as can be" 0 dedup c.tks -o "$n"
check "is written" cmp -s "$n" want.tks
status "a longer one" 1 dedup c.tks -o "x$n"
status "an empty name" 2 dedup c.tks -o ""
status "a limit on files' sizes is a fault" 1 shell 'ulimit -f 1; dedup c.tks -o y2.tks'
check "and one line" one_line err
check "temporary files are gone" test -z "$(find . -name '.*.tmp')"
