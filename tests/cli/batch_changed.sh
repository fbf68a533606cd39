# shellcheck shell=bash disable=SC2154
# batch_changed.sh - sluice-batch: a recipe, a list or inputs that changed, in the same folder: what is made again, and why;
# the rest is kept, the bytes are those of a fresh run, and no file of the user goes; kills on the way, parts in the queue,
# keep = needed; folders without records.
# check-more: whole, and longer

have tokenize dedup decompose pack shuffle inspect sluice-batch || return 0
corpus c.jsonl 50000 1
recipe() { # [SED...]: the recipe, changed
    printf '%s\n' 'input = c.jsonl' 'parts = 2' 'tokenize = --id-field id' 'dedup = --near' \
        'decompose = --min 64 --max 512 --label-token' 'pack =' 'shuffle = --format wds --shard-sequences 16' | sed "$@"
}
# result OUT: one digest of all shards, or of the streams.
result() {
    if [ -e "$1/shards/report.json" ]; then sha_tree "$1/shards"; else sha "$1"/stream/*.tks | sha; fi
}
# files OUT: the names of all files but logs.
files() { (cd "$1" && find . -type f ! -path './logs/*' ! -name "*.all" | sort); }

recipe -e '' >first
recipe -e 's/512/256/' >buckets
recipe -e 's/16/8/' >small
recipe -e 's/16/16 --sample 0.5/' >few
recipe -e '/^shuffle/d' >stream
recipe -e '/^pack/i dedup = --exact' >both
recipe -e '/^dedup/d' >less
recipe -e 's/wds.*/ds/' >ds
order="buckets small stream"
[ -z "$FULL" ] || order="$order ds few both stream less small first ds both"
sluice-batch --local 2 first set >/dev/null
sha set/state/tokenize/? | sha >lines
for r in $order; do
    [ -e "fresh-$r" ] || sluice-batch --local 2 $r fresh-$r >/dev/null
    status "to $r" 0 sluice-batch --local 2 $r set
    check "to $r: says that tokens are kept" grep -q '^  kept: tokenize' out
    check "  and what is made" grep -qE '^  to make: .*[a-z-]+ report$' out
    check "to $r: the tokens are" test "$(sha set/state/tokenize/? | sha)" = "$(cat lines)"
    same "to $r: the bytes of a fresh run" "$(result fresh-$r)" "$(result set)"
    same "to $r: the files of a fresh run" "$(files fresh-$r)" "$(files set)"
    same "to $r: the account" "$(json "fresh-$r/report.json" '[p["program"] for p in d["programs"]]')" "$(json set/report.json '[p["program"] for p in d["programs"]]')"
done
status "once more: nothing to do" 0 sluice-batch --local 2 $r set
same "  says so" 1 "$(wc -l <out)"

# Every line may change. What is made again, and why, is said in the words of the record; the bytes are those of a fresh run.
head -n 30 c.jsonl >in.jsonl
tail -n 20 c.jsonl >in.more
short() { printf '%s\n' 'input = in.jsonl' 'parts = 2' 'tokenize = --id-field id' 'decompose = --min 64 --max 512' | sed "$@"; }
short -e '' >short
changes() { # one a line: what is said, a tab, the change
    [ -z "$FULL" ] || cat <<'EOT'
tokenize: was made without --sample, now --sample=0.5	s/--id-field/--sample 0.5 --id-field/
tokenize: was made without --domain, now --domain=x	s/--id-field/--domain x --id-field/
EOT
    cat <<'EOT'
tokenize: was made without --tokenizer, now --tokenizer=bytes	$a tokenizer = bytes
tokenize: was made with --seed=0, now --seed=1	$a seed = 1
tokenize: was made in 2 parts, now 3	s/parts = 2/parts = 3/
tokenize: was made from in.jsonl, now in.more	s/in.jsonl/in.*/
EOT
}
sluice-batch --local 2 short every >/dev/null
changes | while IFS='	' read -r why change; do
    short -e "$change" >changed
    rm -rf alone
    status "$change" 0 sluice-batch --local 2 changed every
    check "$change: says why" grep -qF -- "  $why" out
    check "$change: nothing is kept" grep -qx '  kept: -' out
    sluice-batch --local 2 changed alone >/dev/null
    same "$change: the bytes of a fresh run" "$(result alone)" "$(result every)"
    same "$change: the files of a fresh run" "$(files alone)" "$(files every)"
    status "$change: and back" 0 sluice-batch --local 2 short every
done
# What decides a stage before that of its option: what is in its files is in its report.
early() { printf '%s\n' 'input = in.jsonl' 'parts = 2' 'dedup = --exact' 'decompose = --min 16 --max 64 --tail drop' 'shuffle =' | sed "$@"; }
early -e '' >early-0
sluice-batch --local 2 early-0 early >/dev/null
sluice-batch --local 2 early-0 fresh-early-0 >/dev/null
while IFS='	' read -r n why change; do
    early -e "$change" >early-$n
    [ -e fresh-early-$n ] || sluice-batch --local 2 early-$n fresh-early-$n >/dev/null
    status "early: $why" 0 sluice-batch --local 2 early-$n early
    check "  is said" grep -qx -- "  $why" out
    check "  and the tokens are kept" grep -q '^  kept: tokenize' out
    same "  the bytes of a fresh run" "$(result fresh-early-$n)" "$(result early)"
    same "  and its files" "$(files fresh-early-$n)" "$(files early)"
    [ $n != 1 ] || same "  and its index" "$(sha fresh-early-$n/exact.index)" "$(sha early/exact.index)"
done <<'EOT'
1	exact-sign: was made without --save-index, now --save-index	$a index = yes
0	exact-sign: was made with --save-index, now without	s/^//
2	exact-filter: shuffle-scatter was made with order=all, now order=buckets	s/^shuffle =/& --format mds/
0	exact-filter: shuffle-scatter was made with order=buckets, now order=all	s/^//
EOT
# What changes nothing is no change.
cat every/state/tokenize/? >lines-every
short -e 's/--id-field id/--id-field=id  --on-error fail/; s/--min 64 --max 512/"--max=512" --min 0064/' -e '$a threads = 2' -e '$a memory = 1G' >same
status "other words, and limits" 0 sluice-batch --local 2 same every
same "  nothing to do" 1 "$(wc -l <out)"
short -e 's/--id-field id/--id-field id --on-error skip/' >lenient
status "a lenient option" 0 sluice-batch --local 2 lenient every
check "  keeps all" grep -qx '  kept: tokenize report' out
same "  that was made" "$(cat lines-every)" "$(cat every/state/tokenize/?)"
status "  and may go again, as nothing was skipped" 0 sluice-batch --local 2 short every
same "  with what was made" "$(cat lines-every)" "$(cat every/state/tokenize/?)"
touch in.jsonl
status "a file of another time, whose stream went through a pipe" 0 sluice-batch --local 2 short every
check "  is read again" grep -qx '  tokenize: was made from in.jsonl of another time' out
# One bad record in one part.
mkdir in
for i in 1 2 3; do head -n 20 c.jsonl >in/$i.jsonl; done
echo '{"text": 1}' >>in/3.jsonl
short -e 's/in.jsonl/in/' -e 's/parts = 2/parts = 3/' >bad3
status "a bad record in one part" 1 sluice-batch --local 2 bad3 one-bad
cat one-bad/state/tokenize/[01] >lines-bad
sed 's/--id-field/--on-error skip --id-field/' bad3 >skips
status "  is skipped in the same folder" 0 sluice-batch --local 2 skips one-bad
check "  the others are kept" grep -qx '  kept: tokenize (2 of 3 parts)' out
status "  and may be run again" 0 sluice-batch task one-bad tokenize 2
same "  as they are" "$(cat lines-bad)" "$(cat one-bad/state/tokenize/[01])"
sluice-batch --local 2 skips alone-bad >/dev/null
same "  the bytes of a fresh run" "$(result alone-bad)" "$(result one-bad)"
status "  and without the option, that part is made again" 1 sluice-batch --local 2 bad3 one-bad
check "  and said" grep -q '^  tokenize (1 of 3 parts): was made with --on-error=skip, now without$' out
rm -r in

files set >before
recipe -e 's/512/500/' >bad
status "a changed recipe that is wrong" 1 sluice-batch --local 2 bad set
check "  its line" grep -q '^sluice-batch: bad:5: decompose: ' err
recipe -e 's/16/32/' >first-32
mkdir stub
printf '#!/bin/sh\necho "7 0 PD None"\n' >stub/squeue
chmod +x stub/squeue
echo '7 report 0' >set/state/jobs
status "a part in the queue" 1 shell 'PATH=$PWD/stub:$PATH sluice-batch init first-32 set'
check "  one line" one_line err
check "  says what to do" grep -q "'sluice-batch cancel set' stops them$" err
rm set/state/jobs
files set >after
check "nothing was touched" cmp -s before after

# A run that was stopped within its first task.
sluice-batch init first begun >/dev/null
sluice-batch task begun tokenize 1
status "one part is made" 0 sluice-batch init buckets begun
check "  it is kept" grep -qx '  kept: tokenize (1 of 2 parts)' out
check "  and the task is to be made" grep -q '^  to make: tokenize near-sign .* report$' out

# A dry run, and files of the user.
cp -a set scripted
sluice-batch --dry-run --local 2 buckets scripted >script
check "a dry run says what is kept" grep -q '^#   kept: tokenize near-sign' script
files scripted >after
check "  and touches nothing" cmp -s before after
status "  its script" 0 shell 'sh script'
same "  makes the bytes" "$(result fresh-buckets)" "$(result scripted)"
mkdir -p set/stream set/work/pack.stages
echo mine | tee set/stream/notes set/stream/0.tks.old set/work/pack.stages/plan.txt set/logs/mine.log >/dev/null
status "back to the first buckets" 0 sluice-batch --local 2 buckets set
same "  its bytes" "$(result fresh-buckets)" "$(result set)"
same "  files of the user stay" "mine mine mine mine" "$(cat set/stream/notes set/stream/0.tks.old set/work/pack.stages/plan.txt set/logs/mine.log | paste -sd ' ')"
echo mine >set/shards/notes
status "a file of the user among the shards" 0 sluice-batch --local 2 small set
same "  stays beside the new set" mine "$(cat set/shards/notes)"
status "  and where there is to be none" 1 sluice-batch --local 2 stream set
check "  is named" grep -q 'set/shards: files are in it that sluice-batch did not make; move them away' err
same "  and stays" mine "$(cat set/shards/notes)"
mv set/shards/notes .
status "  when it is gone, the recipe is taken" 0 sluice-batch --local 2 stream set
same "  with its bytes" "$(result fresh-stream)" "$(result set)"

# A part that began by the recipe of before.
mkfifo fifo
printf '%s\n' 'input = fifo' 'parts = 1' 'tokenize = --id-field id' 'decompose =' >slow
sluice-batch init slow late >/dev/null
sluice-batch task late tokenize 0 </dev/null &
task=$!
i=0
while ! grep -q running late/state/tokenize/0 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1 && i=$((i + 1)); done
sed -i '1s/.*/made_by=another/' late/state/tasks
cat c.jsonl >fifo
code wait $task
same "a part of the recipe before does not count" 1 "$ended"
check "  as it is not done" grep -q '^tokenize 0 running' late/state/tokenize/0
check "  and says so" grep -q 'the recipe has changed since this part began' late/logs/tokenize.0.log

# Files that are needed again, and that "keep = needed" or clean has removed.
for r in first buckets; do { cat $r && echo 'keep = needed'; } >lean-$r; done
sluice-batch --local 2 lean-first lean >/dev/null
if [ -n "$MORE" ]; then
    sluice-batch --local 2 first cleaned >/dev/null
    sluice-batch clean cleaned >/dev/null
fi
for d in ${MORE:+cleaned} lean; do
    r=buckets
    [ $d = cleaned ] || r=lean-buckets
    status "$d: the files are gone" 0 sluice-batch --local 2 $r $d
    check "$d: says which" grep -q '^  files that are needed again were removed: of tokenize' out
    same "$d: the bytes of a fresh run" "$(result fresh-buckets)" "$(result $d)"
done
if [ -n "$MORE" ]; then
    sluice-batch init lean-first half >/dev/null
    for s in tokenize near-sign near-group near-verify; do
        for i in 0 1; do sluice-batch task half $s $i; done
    done
    sluice-batch task half near-cluster 0
    status "lean, and half done: what is there is kept" 0 sluice-batch --local 2 lean-buckets half
    check "  says so" grep -q '^  kept: tokenize near-sign near-group near-verify near-cluster$' out
    same "  the bytes of a fresh run" "$(result fresh-buckets)" "$(result half)"
fi

# A kill at each command that moves or removes something: the folder is of the old or of the new recipe.
for c in mv rm rmdir find cp mkdir; do
    printf '#!/bin/sh\nn=$(($(cat "$COUNT") + 1))\necho $n >"$COUNT"\n[ $n != "$AT" ] || kill -9 "$(cat "$VICTIM")"\nexec %s "$@"\n' "$(command -v $c)" >stub/$c
    chmod +x stub/$c
done
sluice-batch --local 2 first made >/dev/null
killed=0 n=20 ended=1 step=40
[ -z "$FULL" ] || step=7
while [ "$ended" != 0 ] && [ $n -lt 600 ]; do
    rm -rf victim
    cp -a made victim
    echo 0 >count
    rm -f pid
    code shell 'echo $$ >pid; exec env PATH="$PWD/stub:$PATH" COUNT="$PWD/count" VICTIM="$PWD/pid" AT="$1" sluice-batch init small victim' sh $n >/dev/null 2>&1
    killed=$((killed + (ended == 137)))
    [ "$ended" = 0 ] || [ "$ended" = 137 ] || not_ok "killed at command $n: exit status $ended"
    rm -f victim/state/lock
    if [ "$ended" != 0 ] && [ $((killed % 2)) = 0 ]; then
        sluice-batch resume --local 2 victim >log 2>&1 || not_ok "killed at command $n: resume: $(tail -n 1 log)"
        r=first
        ! cmp -s victim/recipe small || r=small
        [ -e fresh-first ] || cp -a made fresh-first
        [ "$(result victim)" = "$(result fresh-$r)" ] || not_ok "killed at command $n: resume: other bytes"
    fi
    sluice-batch --local 2 small victim >log 2>&1 || not_ok "killed at command $n: again: $(tail -n 1 log)"
    [ "$(result victim)" = "$(result fresh-small)" ] || not_ok "killed at command $n: other bytes"
    n=$((n + step))
done
check "kills on the way: $killed" test $killed -ge 2 -a "$ended" = 0

# A command alone is killed, as the kernel does when memory is short: the call ends, or has taken the new recipe.
mkdir one
for c in awk sed cat find grep xargs mv rm sort cmp; do
    printf '#!/bin/sh\necho >>"$COUNT"\n[ "$(wc -l <"$COUNT")" != "$AT" ] || kill -9 $$\nexec %s "$@"\n' "$(command -v $c)" >one/$c
    chmod +x one/$c
done
n=7 killed=0 step=61
[ -z "$FULL" ] || step=1
while rm -rf victim && cp -a made victim && : >count; do
    code env PATH="$PWD/one:$PATH" COUNT="$PWD/count" AT=$n sluice-batch init small victim >/dev/null 2>&1
    [ "$(wc -l <count)" -ge $n ] || break
    killed=$((killed + 1))
    rm -f victim/state/lock
    sluice-batch --local 2 small victim >log 2>&1 || not_ok "command $n is killed: again: $(tail -n 1 log)"
    [ "$(result victim)" = "$(result fresh-small)" ] || not_ok "command $n is killed: other bytes"
    n=$((n + step))
done
check "commands that are killed: $killed" test $killed -ge 2

# A file that an option names is compared by its contents.
mkdir in
head -n 40 c.jsonl >in/a.jsonl
tail -n 40 c.jsonl >in/b.jsonl
id=$(head -n 1 c.jsonl | sed 's/.*"id": *"\?\([^",}]*\).*/\1/')
echo "$id" >drop
printf '%s\n' 'input = in/*.jsonl' 'parts = 2' 'tokenize = --id-field id' 'choose = --ids-drop drop' \
    'decompose = --min 64 --max 512 --label-token' 'pack =' 'shuffle = --format wds --shard-sequences 16' >lists
check "choose by a list alone" shell 'sluice-batch --local 2 lists listed >log 2>&1'
same "  drops what it has" 1 "$(json listed/stats/choose.0.json 'd["documents"]["dropped"]["ids-drop"]')"
check "the list with another time: nothing to do" shell 'touch drop && sluice-batch --local 2 lists listed 2>err | grep -c "all is done"'
tail -n 1 c.jsonl | sed 's/.*"id": *"\?\([^",}]*\).*/\1/' >>drop
sluice-batch status listed >log 2>&1
check "the list was changed: status" grep -q "^sluice-batch: choose: was made with other contents of the file of --ids-drop; 'sluice-batch resume .*listed' makes it again" log
check "  counts it as not done" grep -q '^choose  *2  *0 ' log
check "  and not as failed" shell '! grep -q failed$ log && ! grep -q "ended before it began" log'
same "  the parts to make are those" "choose 0-1" "$(sluice-batch --pending listed 2>err | sed -n 1p)"
files listed >before
status "  clean" 0 sluice-batch clean listed
check "  says the same, and keeps what is needed" grep -q 'listed: not whole' out
same "  all of it" "$(cat before)" "$(files listed)"
cp -a listed by-hand
status "resume makes again what the list decides" 0 sluice-batch resume --local 2 listed
check "  says why" grep -qx '  choose: was made with other contents of the file of --ids-drop' out
check "  and what is kept" grep -qx '  kept: tokenize' out
sluice-batch --local 2 lists anew >/dev/null
same "  the bytes of a fresh run" "$(sha_tree anew/shards)" "$(sha_tree listed/shards)"
# Two versions of a list, for two parts: there is no set of both.
sluice-batch init lists two >/dev/null
for i in 0 1; do sluice-batch task two tokenize $i; done
sluice-batch task two choose 0
cp drop drop-2
echo "$id" >drop
status "a part with another version of the list" 1 sluice-batch task two choose 1
check "  says so" grep -q "^sluice-batch: choose 1: a file that an option names is not as it was when this folder was made; 'sluice-batch resume " two/logs/choose.1.log
cp drop-2 drop
status "  and with the first version again" 0 sluice-batch resume --local 2 two
check "  only that part is made again" grep -qx '  kept: tokenize choose (1 of 2 parts)' out
same "  the bytes of one version" "$(sha_tree anew/shards)" "$(sha_tree two/shards)"
cp in/a.jsonl in/new.jsonl
check "a new file that matches is named" shell 'sluice-batch status listed 2>&1 >status.out | grep -c "^sluice-batch: in/new.jsonl: matches the recipe.s inputs, and was not there"'
check "  by resume too" shell 'sluice-batch resume --local 2 listed 2>&1 >log | grep -c "^sluice-batch: in/new.jsonl: matches"'
status "  the recipe again reads it" 0 sluice-batch --local 2 lists listed
check "  makes all again" grep -qx '  kept: -' out
sluice-batch --local 2 lists anew-2 >/dev/null
same "  the bytes of a fresh run" "$(sha_tree anew-2/shards)" "$(sha_tree listed/shards)"
# The file that lists the inputs is made anew, with other words of the recipe, or with one file more; a part that has them all
# is not another.
sed 's,^input = .*,input = in/*.[j]sonl,' lists >worded
status "other words for the same files" 0 sluice-batch --local 2 worded listed
status "  a part by hand, where all were done" 0 sluice-batch task listed tokenize 0
check "  is as it was" shell 'sluice-batch resume --local 2 listed 2>&1 | grep -c "all is done"'
mv drop drop-2
status "  a part that fails, where all were done" 1 sluice-batch task listed choose 0
mv drop-2 drop
check "  is not done for status" shell 'sluice-batch status listed | grep -c "^  choose part 0 on .*: exit status 1\$"'
status "  and is made again" 0 sluice-batch resume --local 2 listed
same "  the bytes of a fresh run" "$(sha_tree anew-2/shards)" "$(sha_tree listed/shards)"
touch in/new.jsonl
status "a file of another time" 0 sluice-batch --local 2 lists listed
check "  with the same contents: nothing is made again" grep -qx '  to make:' out
cp in/new.jsonl kept
echo '{"id":"late","text":"a document more"}' >>in/new.jsonl
status "an input that grew" 0 sluice-batch resume --local 2 listed
check "  resume says so, and keeps what was made" grep -q '^sluice-batch: tokenize: was made from .*; what was made of them is kept;' err
check "  so does status" shell 'sluice-batch status listed 2>&1 >status.out | grep -c "^sluice-batch: tokenize: was made from "'
mv kept in/new.jsonl
mv in gone
status "inputs that no part needs any more are gone" 0 sluice-batch --local 2 lists listed
check "  what was made of them stays" grep -q "what was made of it is kept$" err
status "  resume needs none" 0 sluice-batch resume --local 2 listed
same "  nor does it look" 1 "$(wc -l <out)"
sed 's/--id-field id/--id-field id --sample 0.5/' lists >needs
status "  a recipe that needs them" 1 sluice-batch --local 2 needs listed
check "  names them" grep -q '^sluice-batch: in/a.jsonl: gone, and it was there when this folder was made' err
same "  and the set is as it was" "$(sha_tree anew-2/shards)" "$(sha_tree listed/shards)"
mv gone in

# Done is a part only if what it writes is there, where options name it, and is what it wrote.
"$PYTHON" "$top/tests/cli/make_tokenizer.py" >t.json
head -n 12 c.jsonl >tiny.jsonl
echo none >d
outs() { printf '%s\n' 'input = tiny.jsonl' 'parts = 2' 'tokenizer = t.json' 'tokenize = --id-field id --ids-drop d' 'dedup = --exact --save-index ix' \
    'decompose = --min 16 --max 64 --tail drop' 'shuffle = --format mds' | sed "$@"; }
outs -e '' >outs
sluice-batch --local 2 outs outs.d >/dev/null
bytes=$(sha_tree outs.d/shards) index=$(sha ix)
again() { # WHY: status says so, resume makes it again, to the same set
    status "$1" 0 sluice-batch status outs.d
    check "  status" grep -q "^sluice-batch: $1; 'sluice-batch resume .*/outs.d' makes it again" err
    status "  resume" 0 sluice-batch resume --local 2 outs.d
    check "  makes it again" grep -qE "^  [a-z-]*( \\(. of . parts\\))?: ${1#*: }" out
    same "  the set is the same" "$bytes" "$(sha_tree outs.d/shards)"
}
rm ix
again "exact-index: ix, which it writes, is not there"
same "  and the index" "$index" "$(sha ix)"
rm -r outs.d/shards
again "shuffle-finish: .*/shards/report.json, which it writes, is not there"
rm -r outs.d/shards
cp -r fresh-first/shards outs.d
again "shuffle-finish: .*/shards/report.json is not the file that it wrote for --output"
rm outs.d/report.json
again "report: report.json, which it writes, is not there"
outs -e 's/= --id-field/= --rejects rj.{part} --id-field/; s/drop$/drop --histogram hist.{part}/; s/ ix/ iy/' >outs2
status "outputs of other names" 0 sluice-batch --local 2 outs2 outs.d
check "  are made" test -e rj.0 -a -e rj.1 -a -s hist.0 -a -s hist.1
same "  the index too" "$index" "$(sha iy)"
status "  and are done then" 0 sluice-batch --local 2 outs2 outs.d
same "  says so" 1 "$(wc -l <out)"
outs -e '/^decompose/,$d' -e 's/--exact.*/--exact/' >outs3
status "parts of a stream" 0 sluice-batch --local 2 outs3 outs.d
bytes='' && sha_tree() { sha outs.d/stream/*.tks | sha; } && bytes=$(sha_tree)
rm outs.d/stream/00.tks
again "exact-filter: stream/00.tks, which it writes, is not there"
# A list of another name is the same one, also for a part by hand.
mv d d2
sed 's/drop d/drop d2/' outs3 >outs4
status "a list of another name" 0 sluice-batch --local 2 outs4 outs.d
same "  changes nothing" 1 "$(wc -l <out)"
status "  a part that is done, by hand" 0 sluice-batch task outs.d tokenize 0
# The tokenizer's file is one that an option names.
touch t.json
status "a tokenizer of another time" 0 sluice-batch --local 2 outs4 outs.d
same "  changes nothing" 1 "$(wc -l <out)"
sed -i 's/"th"/"ht"/; s/"t h"/"h t"/' t.json
sluice-batch --local 2 outs4 outs5.d >/dev/null
bytes=$(sha outs5.d/stream/*.tks | sha)
again "tokenize: was made with other contents of the file of --tokenizer"

# Reports without a record, as those of earlier versions.
cp -a listed old
sed -i 's/^  "program": \("[a-z]*"\), "bytes": .*/  "program": \1,/' old/stats/*.json
rm old/state/records
for c in "lists old" "resume old"; do
    # shellcheck disable=SC2086 # words
    status "a folder of an earlier version: $c" 1 sluice-batch $c --local 2
    check "  one line says what to do" grep -qx 'sluice-batch: old: was made by an earlier version, whose reports have no record; finish it with that version, or name another folder' err
done
