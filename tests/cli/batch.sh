# shellcheck shell=bash disable=SC2154
# batch.sh - sluice-batch --local: any number of parts gives the bytes of one pipe; resume makes missing, failed and
# killed parts; wrong or changed recipes, and folders in use, are refused in one line.
# check-more: longer

have tokenize dedup choose decompose pack shuffle inspect sluice-batch || return 0
mkdir in
for i in 1 2 3; do
    corpus in/$i.jsonl $((i * 50000)) $i
    zstd -q --rm in/$i.jsonl
done
corpus in/4.jsonl 80000 4
recipe() { # PARTS
    cat <<EOT
# a comment
input = in/*.jsonl*
parts = $1     # and another
seed = 5
tokenize = --id-field id --domain-field domain
dedup = --exact
dedup = --near --threshold 0.7
decompose = --min 64 --max 1024 --label-token
pack =
shuffle = --format wds --shard-sequences 64
near-sign.memory = 1G
EOT
}
tokenize --seed 5 --id-field id --domain-field domain in/*.jsonl* | dedup --seed 5 --exact |
    dedup --seed 5 --near --threshold 0.7 | decompose --seed 5 --min 64 --max 1024 --label-token | pack --seed 5 |
    shuffle -q --seed 5 --format wds --shard-sequences 64 -o pipe
good=$(sha_tree pipe)
for n in ${MORE:+1} ${FULL:+8} 3; do
    recipe $n >recipe-$n
    status "$n parts" 0 sluice-batch --local 2 recipe-$n out-$n
    parts="parts 0-$((n - 1))"
    [ $n != 1 ] || parts="part 0"
    check "  a part, and several, are told" shell "grep -q '^pack-plan: part 0 done in [0-9]* s$' out && grep -q '^tokenize: $parts done in' out"
    same "$n parts: the bytes of the pipe" "$good" "$(sha_tree out-$n/shards)"
done
same "the account of the whole line, both passes of dedup" '["tokenize", "dedup exact", "dedup near", "decompose", "pack", "shuffle"]' "$(json out-3/report.json '[" ".join(filter(None, (p["program"], p.get("mode")))) for p in d["programs"]]')"
status "all done: nothing is run again" 0 sluice-batch resume --local 2 out-3
check "and it says so" test "$(wc -l <out)" = 1
check "status of a whole run" shell 'sluice-batch status out-3 | grep -c "^\([0-9]*\) of \1 parts done$"'

# A part that fails.
recipe 4 >recipe
inspect --merge-stats --table out-3/report.json >table
check "  with the account" shell 'sluice-batch status out-3 | tail -n "$(wc -l <table)" | cmp - table'
status "init" 0 sluice-batch init recipe set
status "a part by hand" 0 sluice-batch task set tokenize 2
same "the missing parts" 0-1,3 "$(sluice-batch --pending set tokenize)"
same "all missing parts: a line a stage" "$(sluice-batch stages set | awk 'NR == 1 { print $1, "0-1,3" } NR > 1 { print $1, "0" ($2 > 1 ? "-" $2 - 1 : "") }')" \
    "$(sluice-batch --pending set)"
if [ -n "$MORE" ]; then
    mkdir stub
    printf '#!/bin/sh\nexit 1\n' >stub/squeue
    chmod +x stub/squeue
    echo '1 tokenize 0' >set/state/jobs
    status "a queue that does not answer: status says the rest" 0 shell 'PATH=$PWD/stub:$PATH sluice-batch status set'
    check "  and what it does not know" grep -q '^squeue does not answer' out
    check "  with the parts that are done" grep -q '^1 of .* parts done, .* queued or not submitted' out
    status "  resume does not guess" 1 shell 'PATH=$PWD/stub:$PATH sluice-batch resume set --local 2'
    check "  and says why" grep -q '^sluice-batch: squeue failed' err
    rm set/state/jobs
fi
mv in/4.jsonl away
status "an input that is gone" 1 sluice-batch resume set --local 2
check "one line says which" grep -q '^sluice-batch: in/4.jsonl: gone' err
mv away in/4.jsonl
mkdir -p set/work/pack.stages/count.1-of-4
status "a part that fails, the last one of three joined by pipes" 1 sluice-batch resume set --local 2
check "its last message is shown" grep -q 'logs/near-filter.1.log: pack: .*pack.stages/count.1-of-4' err
check "with its status" grep -q 'near-filter part 1 on .*: exit status 1' err
rmdir set/work/pack.stages/count.1-of-4
status "resume" 0 sluice-batch resume set --local 2
same "resume: the same bytes" "$good" "$(sha_tree set/shards)"
sluice-batch clean set >/dev/null
check "clean removes the files between stages" test ! -e set/work
same "and nothing of the set" "$good" "$(sha_tree set/shards)"

if [ -n "$MORE" ]; then
    # What no stage reads any more goes on the way; a part that is done needs none of it.
    recipe 3 >lean-recipe
    echo 'keep = needed' >>lean-recipe
    status "keep = needed: init" 0 sluice-batch init lean-recipe lean
    sluice-batch stages lean >stages
    while read -r stage parts _; do
        for i in $(seq 0 $((parts - 1))); do
            sluice-batch task lean "$stage" "$i" || echo "$stage $i" >>lean-failed
        done
        find lean -path 'lean/work/*' -type f ! -name '*.json' | sed -e 's,^lean/work/,,' -e 's,[0-9][^/]*$,N,' | sort -u | tr '\n' ' ' >"left-$stage"
        for i in $(seq 0 $((parts - 1))); do
            sluice-batch task lean "$stage" "$i" || echo "$stage $i again" >>lean-failed
        done
    done <stages
    check "keep = needed: every part, also again" test ! -e lean-failed
    same "keep = needed: the same bytes" "$good" "$(sha_tree lean/shards)"
    same "  near: the sets of n-grams go when clusters are known" "exact.stages/group.N near.stages/cluster pack.stages/count.N tokenize/N " "$(cat left-near-filter)"
    same "  pack: the counts go when every part is scattered" "pack.stages/plan pack.stages/scatter.N shuffle.stages/scatter.N " "$(cat left-pack-gather)"
    empty "  in the end nothing is left" "$(cat left-report)"
    printf '%s\n' 'input = in/1.jsonl.zst' 'parts = 2' 'tokenize = --id-field id' 'decompose = --min 64 --max 1024 --label-token' \
        'pack =' 'shuffle = --format wds' 'keep = needed' >lean-recipe
    sluice-batch init lean-recipe early >/dev/null
    for s in tokenize decompose pack-plan pack-scatter pack-gather; do
        [ $s = pack-gather ] || sluice-batch task early $s 1 2>/dev/null || [ $s = pack-plan ] # which has one part
        sluice-batch task early $s 0
    done
    status "keep = needed: a stage that begins too early" 1 sluice-batch task early shuffle-gather 0
    status "  takes nothing from the one before" 0 sluice-batch resume --local 2 early
fi
printf '%s\n' 'input = in/*' 'parts = 1' 'keep = some' >lean-recipe
status "keep = some" 1 sluice-batch init lean-recipe some
check "  one line" grep -q 'keep = some: all or needed' err

# A run that is stopped, a lock that is held, one whose owner died.
sh -c 'sleep 60; :' sluice-batch &
echo "$(uname -n) $! 0" >out-3/state/lock
status "a folder in use" 1 sluice-batch resume out-3 --local 1
check "one line names the process" grep -q "process $! on" err
kill $!
wait $! 2>/dev/null || :
status "a lock of a dead process" 0 sluice-batch resume out-3 --local 1
check "no lock is left" test ! -e out-3/state/lock
if [ -n "$MORE" ]; then
    sluice-batch --local 1 recipe stopped >log 2>&1 &
    i=0
    while [ ! -e stopped/state/exact-sign/0 ] && [ $i -lt 100 ]; do sleep 0.1 && i=$((i + 1)); done
    sluice-batch cancel stopped >/dev/null
    code wait $!
    same "cancel stops a local run" 75 $ended
    status "and resume goes on" 0 sluice-batch resume stopped --local 2
    same "cancel, resume: the same bytes" "$good" "$(sha_tree stopped/shards)"
fi

# What runs together, and what is stored between: the tokens, and what nobody makes again.
sluice-batch stages out-3 >stages
same "tasks" "tokenize exact-sign exact-group exact-filter near-group near-verify near-cluster near-filter pack-plan pack-scatter pack-gather shuffle-gather shuffle-finish report " "$(cut -d ' ' -f 1 stages | tr '\n' ' ')"
same "streams that are stored" "out-3/work/tokenize/N.tks " "$(find out-3/work -name '[0-9]*.tks' | sed 's,/[0-9]*.tks,/N.tks,' | sort -u | tr '\n' ' ')"
check "the account of a stage that ran three times" test "$(json out-3/report.json 'sum(p.get("mode") == "exact" for p in d["programs"])')" = 1

if [ -n "$MORE" ]; then
    # Without shards, and without steps.
    printf '%s\n' 'input = in' 'parts = 11' 'tokenize = --id-field id' 'dedup =' 'choose = --top 80% --by length' 'decompose =' >short
    status "no shuffle" 0 sluice-batch --local 2 short stream
    cat stream/stream/*.tks | inspect --records - | sha >a
    tokenize --id-field id in | dedup | choose --top 80% --by length | decompose | inspect --records - | sha >b
    same "parts of a stream" "$(cat b)" "$(cat a)"
    same "the account of all parts" true "$(json stream/report.json 'd["conserved"]')"

    # Streams at the end of each step, and a mix.
    printf '%s\n' 'input = in' 'parts = 3' 'tokenize = --id-field id --domain-field domain' 'dedup = --substring 50' \
        'choose = --length 20.. --domain "web,code"' 'decompose = --min 64 --max 512' 'pack =' \
        'shuffle = --mix web=0.7,code=0.3 --max-tokens 60000' >mixed-recipe
    status "substrings, a mix, a stream" 0 sluice-batch --local 2 mixed-recipe mixed
    cat mixed/stream/*.tks | inspect --records - | sha >a
    tokenize --id-field id --domain-field domain in | dedup --substring 50 | choose --length 20.. --domain web,code |
        decompose --min 64 --max 512 | pack | shuffle --mix web=0.7,code=0.3 --max-tokens 60000 | inspect --records - | sha >b
    same "the records of the pipe" "$(cat b)" "$(cat a)"
    same "and the account" true "$(json mixed/report.json 'd["conserved"]')"

    if [ -n "$MORE" ]; then
        echo 'keep = needed' >>mixed-recipe
        status "the same with keep = needed" 0 sluice-batch --local 2 mixed-recipe lean-mix
        cat lean-mix/stream/*.tks | inspect --records - | sha >a
        same "keep = needed: the records of the pipe" "$(cat b)" "$(cat a)"
    fi
fi

# Bands of scores are no domains.
printf '%s\n' 'input = in' 'parts = 2' 'tokenize = --score-field score' 'shuffle = --mix "score >= 1.5:2, score<0:0"' >banded
status "a mix of bands" 0 sluice-batch --dry-run --local 1 banded banded.out

# Nor are fields of metadata, which tokenize must take.
printf '%s\n' 'input = in' 'parts = 2' "tokenize = --metadata 'score=float,id'" 'shuffle = --mix-by score --mix "=1"' >by-field
status "a mix by what documents have" 0 sluice-batch --dry-run --local 1 by-field by-field.out
printf '%s\n' 'input = in' 'parts = 2' "tokenize = --metadata 'n=u8,lang'" "shuffle = --mix 'lang in [\"a\", \"b:1\"]:2, n>1:0'" >by-field
status "a mix of bands by expressions" 0 sluice-batch --dry-run --local 1 by-field by-field.out
printf '%s\n' 'input = in' 'parts = 2' "tokenize = --metadata 'score=float,id'" 'shuffle = --mix-by lang --mix "a=1"' >by-field
status "a mix by a field that nobody takes" 1 sluice-batch --dry-run --local 1 by-field by-field.out
check "  says so" grep -qx 'sluice-batch: by-field:4: shuffle: --mix-by lang: tokenize does not take this field from the records; add --metadata lang there' err

# Recipes that are refused.
refused() { # WHAT TEXT LINE
    recipe 3 >bad
    printf '%s\n' "$3" >>bad
    status "$1" 1 sluice-batch --local 1 bad refused
    check "$1: one line" one_line err
    check "$1: says so" grep -q "$2" err
    check "$1: nothing is made" test ! -e refused/recipe
}
refused "an unknown key" 'bad:12: unknown key "memroy"' 'memroy = 8G'
refused "a key that could control a terminal" '^sluice-batch: bad:12: unknown key "?\[31m?文ü?"$' $'\e[31m\xe2\x80\xae文ü\xc2\x9b = 1'
refused "a line without =" 'bad:12: .*key = value' 'memory 8G'
refused "a key twice" 'bad:12: parts was given in line 3' 'parts = 4'
refused "no number" 'bad:12: threads = many' 'threads = many'
refused "an option that is not the user's" 'bad:12: dedup: --work' 'dedup = --substring 50 --work x'
refused "a seed of one step" 'bad:12: dedup: --seed is set by sluice-batch itself; write seed = N$' 'dedup = --substring 50 --seed 7'
refused "  in one word" 'bad:12: dedup: --seed=7 is set by sluice-batch itself; write seed = N$' 'dedup = --substring 50 --seed=7'
refused "threads of one step" 'bad:12: dedup: -T2 is set by sluice-batch itself; write threads = N$' 'dedup = --substring 50 -T2'
refused "choose without a choice" 'bad:12: choose: nothing to choose by; give' 'choose ='
refused "a mode twice" 'bad:12: dedup --near was given' 'dedup = --near --threshold 0.5'
refused "a mode that has no parts" 'bad:12: dedup = --ngrams: expected --exact, --near or --substring N' 'dedup = --ngrams'
refused "an input that is not there" 'input = nowhere: there is no' 'input = nowhere'
sed 's/^seed = 5/seed = 6/' recipe-3 >bad
status "a recipe with another seed" 0 sluice-batch --dry-run --local 1 bad out-3
check "what differs" grep -q '^#   tokenize: was made with --seed=5, now --seed=6$' out
if [ -n "$MORE" ]; then
    echo 'memory = 2G' >>recipe-3
    status "other limits are taken" 0 sluice-batch --local 1 recipe-3 out-3
    check "and kept" grep -q '^memory = 2G' out-3/recipe
    status "a part by the list of tasks" 0 sluice-batch task out-3 tokenize 0
    check "has them" grep -q -- '-M 1572864K' out-3/logs/tokenize.0.log
    sed 's/^memory = 2G/memory = 1G/' out-3/recipe >newer
    touch -d tomorrow newer
    mv newer out-3/recipe
    status "a part by a recipe that is newer than the list" 0 sluice-batch task out-3 tokenize 0
    check "has the recipe's limit" grep -q -- '-M 786432K' out-3/logs/tokenize.0.log
fi
mkdir other
touch other/file
status "a folder that sluice-batch did not make" 1 sluice-batch --local 1 recipe other
check "is left alone" test ! -e other/state
status "no such stage" 1 sluice-batch task out-3 nothing 0
status "no such part" 1 sluice-batch task out-3 tokenize 3
status "no such option" 2 sluice-batch --fast recipe x
status "--help" 0 sluice-batch --help
status "a dry run" 0 sluice-batch --dry-run recipe dry
check "is a script" sh -n out
check "with a line for each stage" test "$(grep -c "^j[0-9]*=" "$TMP/out")" = "$(sluice-batch stages out-3 | wc -l)"
check "and makes nothing" test ! -e dry
