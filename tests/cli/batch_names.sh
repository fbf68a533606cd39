# shellcheck shell=bash disable=SC2154
# batch_names.sh - sluice-batch: spaces, quotes, patterns, backslashes and wrong options in recipes and names; inputs
# that change; the script of a dry run, executed; 1 part, and more parts than documents.
# check-more: whole

have tokenize dedup decompose pack shuffle inspect sluice-batch || return 0
mkdir in
corpus "in/a b.jsonl" 30000 1
corpus 'in/[x].jsonl' 20000 2
corpus in/x.jsonl 25000 3
corpus "in/it's.jsonl" 25000 4
corpus 'in/$HOME;"\t.jsonl' 25000 5
line='decompose = --min 64 --max 512 --label-token'
recipe() { # PARTS [LINE...]
    echo "parts = $1"
    shift
    printf '%s\n' 'tokenize = --id-field id --domain "the web #1"  # one domain' 'dedup = --near' "$line" 'pack =' \
        "shuffle = --format wds --shard-sequences 16 --license 'it is \"free\"'" "$@"
}
tokenize --id-field id --domain 'the web #1' in/*.jsonl | dedup --near | decompose --min 64 --max 512 --label-token | pack |
    shuffle -q --format wds --shard-sequences 16 --license 'it is "free"' -o pipe
good=$(sha_tree pipe)

# Each file once, a file's name before a pattern that it looks like.
recipe 3 'input = in/*.jsonl' >recipe
odd="the 'out' 100% \"x\" \\b \$HOME"
status "an output folder of an odd name" 0 sluice-batch --local 2 recipe "$odd"
same "the bytes of the pipe" "$good" "$(sha_tree "$odd/shards")"
same "each input once" "$(printf '%s\n' in/*.jsonl)" "$(cat "$odd/state/inputs")"
check "status of it" shell 'sluice-batch status "$1" | grep -c "^\([0-9]*\) of \1 parts done$"' sh "$odd"
check "from another folder too" shell 'cd / && sluice-batch status "$1" | grep -c "^\([0-9]*\) of \1 parts done$"' sh "$PWD/$odd"
check "only folders of the stages are made" test ! -e "$odd/stream"
recipe 3 "input = in/[x].jsonl" 'input = in/it*' "input = in/a b.jsonl" >recipe
status "names and patterns" 0 sluice-batch init recipe names
same "in the order of the recipe" "$(printf '%s\n' 'in/[x].jsonl' "in/it's.jsonl" 'in/a b.jsonl')" "$(cat names/state/inputs)"
: >"in/line
break.jsonl"
recipe 3 'input = in/*' >recipe
status "a line break in a name" 1 sluice-batch init recipe broken
check "says so in one line" one_line err
rm in/line*
if [ -n "$MORE" ]; then
    recipe 1 'input = in/*.jsonl' >recipe
    status "one part" 0 sluice-batch --local 2 recipe one
    same "one part: the bytes of the pipe" "$good" "$(sha_tree one/shards)"
fi
recipe 25 'input = in/*.jsonl' | grep -vE '^(dedup|pack|shuffle)' >recipe
head -n 3 in/x.jsonl >few
sed -i 's/^input.*/input = few/' recipe
status "more parts than documents" 0 sluice-batch --local 2 recipe many
cat many/stream/*.tks | inspect --records - | sha >a
tokenize --id-field id --domain 'the web #1' few | decompose --min 64 --max 512 --label-token | inspect --records - | sha >b
same "more parts than documents: the records of the pipe" "$(cat b)" "$(cat a)"

# What a dry run prints does the same; names are those of the folder that it was called in.
recipe 3 "input = $PWD/in/*.jsonl" >recipe
sluice-batch --dry-run --local 2 recipe "dry $odd" >script
check "a dry run makes nothing" test ! -e "dry $odd"
status "a dry run's script" 0 shell 'cd / && sh "$1"' sh "$PWD/script"
same "makes the bytes of the pipe" "$good" "$(sha_tree "dry $odd/shards")"

# Words in quotes are the shell's, and options in values are none.
"$PYTHON" - "$top" <<'EOT'
import random, subprocess, sys
words = sys.argv[1] + "/tools/batch/words.awk"
rng = random.Random(5)
lines = []
while len(lines) < 600:
    line = "".join(rng.choice("""ab '"\\$`#*  """) for _ in range(rng.randrange(1, 14))).strip()
    if not line.endswith("\\"):
        lines.append(line)
def shell(line):
    """As dash cuts it where nothing is expanded: what stands for that in the shell is quoted first."""
    out, q, i = "", "", 0
    while i < len(line):
        c = line[i]
        if c == "\\" and q != "'":
            out += line[i:i + 2]
            i += 2
            continue
        if c == q:
            q = ""
        elif not q and c in "\"'":
            q = c
        elif q != "'" and c in "$`" or not q and c in "*#":
            c = "\\" + c
        out += c
        i += 1
    return None if q else out
got = subprocess.run(["awk", open(words).read() + '{ n = words($0); printf "%d", n; for (i = 1; i <= n; i++) printf "\\034%s", word[i]; print "" }'],
                     input="\n".join(lines) + "\n", capture_output=True, text=True).stdout.split("\n")
bad = 0
for line, g in zip(lines, got):
    s = shell(line)
    want = "-1" if s is None else subprocess.run(["sh", "-c", "set -- " + s + '\nprintf "%d" $#\nfor w; do printf "\\034%s" "$w"; done'], capture_output=True, text=True).stdout
    if g != want:
        bad += 1
        print("  line %r: %r, and the shell has %r" % (line, g, want))
open("bad-words", "w").write("%d" % bad)
EOT
same "600 lines of quotes and backslashes, as the shell cuts them" 0 "$(cat bad-words)"
recipe 2 'input = in/x.jsonl' | sed -e 's/^dedup.*/dedup = "--near" --keep domain-order --domains "--exact --substring"/' \
    -e "s/'it is .*/'--mix or not'/" >quoted
status "options in values" 0 sluice-batch init quoted quoted-out
same "  are none" "tokenize near pack shuffle report" \
    "$(sluice-batch stages quoted-out | sed -e 's/^shuffle-mix/mix/' -e 's/[- ].*//' | uniq | tr '\n' ' ' | sed 's/ $//')"

# A dry run's script, where names look like what stands for jobs in it.
at="at @1@ @2@"
cp in/x.jsonl "$at.jsonl"
recipe 2 "input = $at.jsonl" "slurm = --comment '@1@'" >recipe
status "@1@ in names" 0 sluice-batch --dry-run recipe "$at"
check "  is a script" sh -n out
mkdir -p fake
cat >fake/sbatch <<'EOT'
#!/bin/sh
n=$(($(cat "$FAKE/n" 2>/dev/null || echo 0) + 1))
echo $n >"$FAKE/n"
printf '%s\n' "$@" >"$FAKE/job.$n"
echo "$n;cluster"
EOT
chmod +x fake/sbatch
cp out script
check "  that runs" env FAKE="$PWD/fake" PATH="$PWD/fake:$PATH" sh script
check "  names are as they are" grep -q "^$PWD/$at/logs/tokenize" fake/job.1
check "  options too" grep -qx '@1@' fake/job.1
check "  and jobs wait for jobs" grep -qx -e '--dependency=aftercorr:1' fake/job.2

# Options are seen by the programs before anything is made.
refused() { # WHAT TEXT LINE; "bad:" in TEXT stands for the recipe and the number of that line
    recipe 3 'input = in/*.jsonl' | grep -v "^${3%% *} =" >bad
    printf '%s\n' "$3" >>bad
    status "$1" 1 sluice-batch --local 1 bad refused
    check "$1: one line" one_line err
    check "$1: says so" grep -qF -- "${2/#bad: /bad:$(wc -l <bad): }" err
    check "$1: nothing is made" test ! -e refused
}
refused "no such option" 'bad: tokenize: --feild' 'tokenize = --feild text'
refused "a wrong value" "bad: pack: --fill: 'x'" 'pack = --fill x'
refused "a value that is missing" 'bad: tokenize: --id-field wants a value' 'tokenize = --id-field'
refused "an option cut short" 'bad: shuffle: --form is no option' 'shuffle = --form wds'
refused "an operand" 'bad: decompose: "docs" is no option' 'decompose = --min 64 docs'
refused "a file of each part that is read" "bad: tokenize: --ids-drop d.{part}: all parts of a recipe read the same files; leave {part} out" "tokenize = --ids-drop d.{part}"
refused "an output behind a flag" 'bad: pack: -qo is set by' 'pack = -qo x'
refused "one file for all parts" 'bad: tokenize: --rejects p: each part' 'tokenize = --rejects p'
for o in "--near --pairs p" "--exact --pairs=p.{part}" "--near --audit" "--substring 50 --annotate"; do
    refused "what has no stages: $o" "needs all documents in one process, and a recipe runs dedup in stages; leave it out here" "dedup = $o"
    check "  names the line and the option" grep -q "^sluice-batch: bad:[0-9]*: dedup: --[a-z]* needs all" err
done
refused "a quote that is open" 'tokenize: a quote is not closed' 'tokenize = --domain "a b'
line='decompose = --min 64 --max 512'
refused "a format that wants label tokens" 'bad: shuffle: format ds needs one more token' 'shuffle = --format ds'
line='decompose = --min 64 --max 512 --label-token'
refused "one that wants none" 'bad: shuffle: format olmo needs sequences without' 'shuffle = --format=olmo'
refused "too many parts" 'parts = 100001: 100000 are the most' 'parts = 100001'
refused "a backslash before nothing" 'tokenize: nothing stands behind the last backslash' 'tokenize = --domain a\ '
refused "parts without end" 'parts = 99999999999999999999: 100000 are the most' 'parts = 99999999999999999999'
refused "more parts than dedup takes" 'bad: dedup: expected at most 65536 parts' 'parts = 65537'
refused "a seed of 65 bits" 'seed = 18446744073709551616: a number from 0 to 18446744073709551615' 'seed = 18446744073709551616'
refused "a thousand threads and more" 'pack.threads = 1025: 1024 are the most' 'pack.threads = 1025'
refused "no end of a queue" 'queue = 1000000001: 1000000000 are the most' 'queue = 1000000001'
refused "memory that no machine has" 'memory = 1048577T: 1048576T are the most' 'memory = 1048577T'
refused "too little memory" 'bad: tokenize: -M: tokenize needs at least 32M (tokenize has three quarters of memory = 42M)' 'memory = 42M'
refused "too little for one stage" 'bad: dedup: -M: --near needs at least 64M (near-cluster has three quarters of cluster.memory = 80M)' 'cluster.memory = 80M'
refused "too little where four programs run together" \
    'bad: dedup: -M: --near needs at least 64M (near-filter has three quarters of a 4th of memory = 256M: 4 programs' 'memory = 256M'
refused "a length of nothing" 'bad: pack: --length 0: expected 1 to' 'pack = --length 0'
refused "bands of nothing" 'bad: dedup: --bands must be from 1' 'dedup = --near --bands 0'
refused "a bucket without end" 'bad: decompose: --buckets 99999999999: a length must be from' 'decompose = --buckets 99999999999'
refused "a tokenizer that is not there" 'bad: tokenize: nowhere.json: No such file' 'tokenizer = nowhere.json'
refused "one that is none" 'bad: tokenize: in/x.jsonl: is a file of JSON lines, not a tokenizer; name' 'tokenizer = in/x.jsonl'
refused "a token that the tokenizer has not" 'bad: tokenize: the tokenizer has no token "<none>"' 'tokenize = --eos "<none>"'
refused "an index that is not there" 'bad: dedup: nowhere: No such file' 'dedup = --near --against nowhere'
refused "one that is none" 'bad: dedup: in/x.jsonl: not an index' 'dedup = --near --against in/x.jsonl'
refused "words without a vocabulary" 'bad:2: dedup: the stream has no vocabulary' 'tokenize = --no-vocab'
refused "a folder that is not there" "bad: tokenize: --rejects nowhere/r.{part}: there is no folder 'nowhere'" 'tokenize = --rejects nowhere/r.{part}'
refused "one histogram for all parts" 'bad: decompose: --histogram h.csv: each part' 'decompose = --histogram h.csv'
refused "shards larger than the format's" "bad: shuffle: format mds: 999999999 sequences a shard in D_9 exceed MDS's 4 GiB" \
    'shuffle = --format mds --accept-mismatch --shard-sequences 999999999'
refused "an input that is not there" 'bad: input = nowhere: there is no such file' 'input = nowhere'
refused "limits of what is not there" 'there is no stage or program "shufle"' 'shufle.memory = 8G'
printf '%s\n' 'input = in/x.jsonl' 'parts = 1' 'shuffle = --mix web=1,code=1' >bad
status "a mix of domains that no document has" 1 sluice-batch init bad refused
check "says so" grep -qF 'bad:3: shuffle: --mix takes documents by domain, and tokenize gives them none' err
check "nothing is made" test ! -e refused
printf '%s\n' 'input.web = in/x.jsonl' 'input.code = in/x.jsonl' 'parts = 1' 'shuffle = --mix web=1,cod=0.5' >bad
status "a mix that names no input's domain" 1 sluice-batch init bad refused
check "says which there are" grep -qF 'bad:4: shuffle: --mix cod: no input has this domain; inputs have code web' err
check "nothing is made" test ! -e refused
status "an output folder that can't be" 1 sluice-batch --local 1 recipe recipe/out
check "an output folder that can't be: one line" one_line err
status "a folder as recipe" 1 sluice-batch --local 1 in refused
check "one line" one_line err
status "limits of a step, a stage, a task" 0 shell '
    { cat recipe; printf "%s\n" "near.time = 1:00:00" "filter.time = 2" "near-group.slurm = --comment=\"a b\""; } >limits
    sluice-batch --dry-run limits dry'
check "a step's" shell 'grep sluice-near-sign out | grep -c -e "--signal=B:USR1@120 .*--time=1:00:00"'
check "a stage's, asked to stop earlier" shell 'grep sluice-near-filter out | grep -c -e "--signal=B:USR1@30 .*--time=2 "'
check "a task's, with quotes" shell "grep sluice-near-group out | grep -c \"'--comment=a b'\""
status "{part} in a name" 0 shell 'sed "s/--id-field/--rejects r.{part} --id-field/" recipe >rejects; sluice-batch --dry-run rejects dry'

# An estimate by a sample: the processor time of all parts, and their files, without leaving any.
corpus many.jsonl 2400000 9
printf '%s\n' 'input = many.jsonl' 'parts = 4' 'tokenize = --id-field id --on-error skip --rejects r.{part}' 'dedup = --near' \
    'decompose = --min 64 --max 1024 --label-token' 'pack =' 'shuffle = --format wds' 'time = 10' 'memory = 512M' >estimated
mkdir 't m p'
find . -maxdepth 1 | sort >before
status "an estimate" 0 env TMPDIR="$TMP/t m p" sluice-batch --dry-run --sample-parts 2 estimated estimated.out
cp out table
same "  leaves nothing" "$(grep -vx ./before before)" "$(find . -maxdepth 1 ! -name before ! -name table | sort)"
empty "  and nothing in TMPDIR" "$(ls 't m p')"
sluice-batch --local 2 estimated estimated.out >/dev/null
near() { # WHAT A B: within a fourth
    check "  $1: $2, is $3" awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > b * 0.75 && a < b * 1.25) }'
}
bytes() { du --apparent-size -sk "$1" | awk '{ print $1 * 1024 }'; }
said() { sed -n "s/.*$1 \([0-9.]*\)\([kMG]*\)B.*/\1 \2/p" table | awk '{ print $1 * 1000 ^ index("kMG", $2) }'; }
near "files between tasks" "$(said 'between tasks')" "$(bytes estimated.out/work)"
near "the set" "$(said result)" "$(bytes estimated.out/shards)"
same "  a row for each task, with its limits" "$(sluice-batch stages estimated.out | awk '$1 != "report" { print $1, $2, "10 min 512M" }')" \
    "$(awk 'on && /^# in all/ { on = 0 } on { print $2, $3, $6, $7, $9 } $2 == "task" { on = 1 }' table)"
check "  it is a script" sh -n table
same "  by hand: hours, one task that grows, and what is over its limit" \
    "a 1000 11 min 10 min ! 1.5G 1G ! 1e+02|b 1 50 s 10 min 1.0k 1G 0.014|in all 1e+02 core hours; files between tasks 102MB, the result 10.2MB; free there: 1.0MB !" \
    "$(printf '%s\n' 'L a 10 1G 1' 'L b 10 1G 1' 'T a 1000 -' 'R a a' 'T b 1 all' 'R b b' 'V a 0 seconds 700' 'V a 0 cpu_seconds 360' \
        'V a 0 peak_rss_bytes 1500000000' 'V b 0 seconds 0.05' 'V b 0 cpu_seconds 0.05' 'V b 0 peak_rss_bytes 1000' 'B 100 x y/work' 'B 10 x/shards' \
        'F disk 1 1 1000 1 /' | awk -v of=1000 -v parts=1 -v keep=all -f "$top/tools/batch/units.awk" -f "$top/tools/batch/estimate.awk" |
        sed -n 's/^# \([abi].*\)/\1/p' | tr -s ' ' | paste -sd '|')"
status "a sample of more parts than there are" 1 sluice-batch --dry-run --sample-parts 5 estimated more
check "  one line" one_line err
status "a sample without --dry-run" 2 sluice-batch --sample-parts 1 estimated more

printf '%s\n' 'input = in/x.jsonl' 'parts = 2' 'tokenize = --id-field id' 'dedup =' 'dedup = --near' 'index = yes' 'decompose =' >twice
sluice-batch init twice there >/dev/null
for i in 0 1; do sluice-batch task there tokenize $i; done
status "an estimate of a folder that is there, with both kinds of duplicates" 0 sluice-batch --dry-run --sample-parts 1 twice there
same "  of the whole recipe" "$(sluice-batch stages there | awk '$1 != "report" { print $1, $2 }')" \
    "$(awk 'on && /^# in all/ { on = 0 } on { print $2, $3 } $2 == "task" { on = 1 }' out)"

# Domains of several inputs by their folders, and fields that the text of the check has not.
mkdir web code
cp in/x.jsonl web
cp "in/a b.jsonl" code
printf '%s\n' 'input = web' 'input = code' 'parts = 2' "tokenize = --id-field id --domain-from '{}/*.jsonl' --domain-default other" \
    'shuffle = --mix web=1,code=1' >domains
status "domains by folders" 0 sluice-batch --local 2 domains domains-out
cat domains-out/stream/*.tks | inspect --records - >records
check "domains by folders: both" shell 'grep -q "\"web\"" records && grep -q "\"code\"" records'
cp in/x.jsonl a:b.jsonl
printf '%s\n' 'input.the web = web' 'input = a:b.jsonl' 'input.code.c = code/*' 'parts = 3' 'tokenize = --id-field id --source-prefix v1' >lines
status "domains by lines" 0 sluice-batch --local 2 lines lines-out
printf 'the web\tweb\n\ta:b.jsonl\ncode.c\tcode/a b.jsonl\n' >list
tokenize -q --id-field id --source-prefix v1 --files-from list --list-domains -o list.tks
same "  the records of tokenize" "$(inspect --records list.tks | sha)" "$(cat lines-out/stream/*.tks | inspect --records - | sha)"
same "  of three domains" '"code.c" "the web" None' "$(inspect --records list.tks | "$PYTHON" -c 'import json, sys
print(*sorted({json.dumps(d) if d else "None" for l in sys.stdin for d in [json.loads(l)["segments"][0].get("domain")]}))')"
status "an existing folder, with another domain" 0 shell 'sed "s/^input.the web/input.code/" lines >other && sluice-batch --dry-run --local 1 other lines-out'
check "  is made again" grep -qxF '#   tokenize (1 of 3 parts): was made from web/x.jsonl with the domain "the web", now "code"' out
tail -n 1 web/x.jsonl >>web/x.jsonl
status "an input of a domain that has changed" 0 sluice-batch --local 1 lines lines-out
check "  is named" grep -q '^  tokenize: was made from web/x.jsonl of [0-9]* bytes, which now has [0-9]*$' out
printf '%s\n' 'input.web = web' 'input.code = code' 'parts = 2' 'tokenize = --id-field id' 'shuffle = --mix web=1,code=1' >mixed
status "a mix of these domains" 0 sluice-batch init mixed mixed-out
for bad in 'input. = web' 'tokenize = --domain all'; do
    printf '%s\n' 'input.web = web' 'parts = 1' "$bad" >bad
    status "$bad" 1 sluice-batch init bad refused
    check "  names the line" grep -q '^sluice-batch: bad:3: .*input.DOMAIN' err
done
printf '%s\n' 'input = web' 'parts = 2' 'tokenize = --spans-field spans --domain-field domain --score-field score' 'dedup = --near --on trained' 'decompose =' >fields
status "fields that are seen in the inputs only" 0 sluice-batch init fields fields-out

# Filters, whose fields and lists the text of the check does not know; the report has their sums.
for i in $(seq 40); do
    printf '{"text":"number %d of some","id":%d,"lang":"%s","url":"http://h%d.example/"}\n' "$i" "$i" "$([ $((i % 4)) = 0 ] && echo de || echo en)" "$i"
done >filtered.jsonl
seq 1 5 >gone
echo h6.example >hosts
printf 'gopher-quality.%s\n' 'max_avg_word_length = 3.3' 'min_doc_words = off' 'min_alpha_words_ratio = off' 'min_stop_words = off' >mine
printf '%s\n' 'input = filtered.jsonl' 'parts = 3' \
    "tokenize = --id-field id --ids-drop gone --urls-drop hosts --where 'lang == \"en\"' --rules mine" >filters
status "filters" 0 sluice-batch --local 2 filters filters-out
same "  are in the report" '{"gopher-quality.max_avg_word_length": 23, "ids-drop": 5, "urls-drop": 1, "where": 9}' \
    "$(json filters-out/report.json 'json.dumps(d["programs"][0]["documents"]["dropped"], sort_keys=True)')"

# Inputs that change while parts are still to come.
recipe 3 'input = in' >recipe
sluice-batch init recipe changed >/dev/null
sluice-batch task changed tokenize 0
cp -p in/x.jsonl kept
cat kept >>in/x.jsonl
status "an input that has grown: a part by hand" 1 sluice-batch task changed tokenize 1
check "is refused" grep -q '^sluice-batch: tokenize 1: the inputs are not as they were when this folder was made' changed/logs/tokenize.1.log
cp -a changed grown
status "resume" 0 sluice-batch resume --dry-run --local 1 grown
check "says what is made again" grep -q '^#   tokenize ([12] of 3 parts): was made from ' out
cp -p kept in/x.jsonl
cp kept in/y.jsonl
status "one more, by hand" 1 sluice-batch task changed tokenize 2
status "with the files of before" 0 shell 'rm in/y.jsonl && sluice-batch resume --local 2 changed'
rm in/x.jsonl
status "a removed input that no part needs any more" 0 sluice-batch resume --local 2 changed
same "the bytes of the pipe" "$good" "$(sha_tree changed/shards)"
