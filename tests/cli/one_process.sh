# shellcheck shell=bash disable=SC2154
# one_process.sh - `sluice run`: a line in one process makes the files and reports of the pipe, for any number of threads;
# what fails speaks alone and leaves nothing; words, a text, a file. tests/random runs random lines both ways.

if [ -n "${PROGRAM_PREFIX:-}" ]; then
    skip "the programs have a prefix"
    return 0
fi
run() { "$BIN/sluice" run -q "$@"; }
corpus c.jsonl 400000 11

# reports FOLDER: the reports in it, without what is of the process.
reports() {
    "$PYTHON" - "$1"/*.json <<'PY'
import json, sys
for p in sys.argv[1:]:
    d = json.load(open(p))
    for k in ("seconds", "cpu_seconds", "peak_rss_bytes", "spill_bytes", "timings", "made"):
        d.pop(k, None)
    print(json.dumps(d, sort_keys=True))
PY
}
mkdir pipe
tokenize -q -t bytes --id-field id --domain-field domain --stats pipe/1.json c.jsonl | dedup -q --near --stats pipe/2.json |
    decompose -q --min 64 --max 1024 --label-token --stats pipe/3.json | pack -q --stats pipe/4.json |
    shuffle -q --seed 5 --format wds -o pipe/set --stats pipe/5.json
for t in 1 2 8; do
    mkdir run$t
    run -T $t tokenize -t bytes --id-field id --domain-field domain --stats run$t/1.json c.jsonl ! dedup --near --stats run$t/2.json ! \
        decompose --min 64 --max 1024 --label-token --stats run$t/3.json ! pack --stats run$t/4.json ! \
        shuffle --seed 5 --format wds -o run$t/set --stats run$t/5.json
    same "-T $t: the set of the pipe" "$(sha_tree pipe/set)" "$(sha_tree run$t/set)"
    same "-T $t: its reports" "$(reports pipe | sed 's/"threads": [0-9]*/-/')" "$(reports run$t | sed 's/"threads": [0-9]*/-/')"
done
check "inspect --verify" inspect --verify run2/set

# Messages: those of the pipe, in its order.
line='tokenize -t bytes c.jsonl | decompose --min 64 | pack --long drop'
said() { sed 's/[0-9.]* s$//' "$1"; }
{ tokenize -t bytes c.jsonl 2>e1 | decompose --min 64 2>e2 | pack --long drop -o a.tks 2>e3; }
"$BIN/sluice" run "$line -o b.tks" 2>err
same "one text: the stream of the pipe" "$(sha a.tks)" "$(sha b.tks)"
same "  its messages" "$(cat e1 e2 e3 | sed 's/[0-9.]* s$//')" "$(said err)"
printf '# a line\n%s |  # goes on\n\tinspect --json\n' "$line" >line
same "-f" "$(inspect --json a.tks)" "$(run -f line)"
same "from standard input" "$(tokenize -q -t bytes <c.jsonl | decompose -q --min 64 | sha)" "$(run tokenize -t bytes - ! decompose --min 64 <c.jsonl | sha)"
tokenize -q -t bytes --source-prefix o c.jsonl -o o.tks
same "a stream beside the joint" "$(tokenize -q -t bytes c.jsonl | choose -q --length 1.. o.tks - | sha)" \
    "$(run tokenize -t bytes c.jsonl ! choose --length 1.. o.tks - | sha)"
same "a quoted word" "it's one" "$(run "tokenize -t bytes --source-prefix 'it'\\''s one' c.jsonl | inspect --records" | sed -n '1s|.*"source":"\([^/"]*\)/c.jsonl".*|\1|p')"
same "metadata and masks" "$(printf '{"text":"ab","l":"x"}\n' | tokenize -q -t bytes --metadata l | shuffle -q | sha)" \
    "$(printf '{"text":"ab","l":"x"}\n' | run tokenize -t bytes --metadata l ! shuffle | sha)"

# Command lines are read before anything starts.
while IFS='#' read -r words says; do
    # shellcheck disable=SC2086 # words
    status "run $words" 2 run $words
    one_line err
    check "  says why" grep -qF "$says" err
done <<'J'
#name the programs
pack !#a program is missing beside a !
nope ! pack#'nope' is not a program
tokenize c.jsonl ! tokenize#tokenize: it reads no stream
tokenize -t bytes c.jsonl -o x.tks ! pack#it has -o
tokenize -t bytes c.jsonl ! pack a.tks#does not read the program before it
inspect a.tks ! pack#inspect: it writes no stream
tokenize -t bytes c.jsonl ! pack --help#for a program alone
tokenize -t bytes c.jsonl ! pack --lenght 4#pack: --lenght is not an option
sluice-batch ! pack#sluice-batch cannot be here
pack ! sluice-chat#sluice-chat cannot be here
-M 100M pack ! pack ! shuffle ! shuffle#25M of it are left for pack, which needs 32M
-M 1x pack#no value of this option
tokenize -t bytes c.jsonl ! dedup -o c.jsonl#would replace the input (c.jsonl)
tokenize -t bytes c.jsonl --stats same ! dedup --stats same -o y#both would go to same
choose --top 10% --stage rank --work w --part 0/1 a.tks ! inspect#choose: it writes no stream
J
same "# in a text is a word" "1" "$(status x 1 run 'choose --length 1.. a.tks #x | inspect' >/dev/null && grep -c '^choose: #x: ' err)"
for text in 'tokenize *.jsonl | pack' 'tokenize $x | pack' 'pack >y' "pack 'a"; do
    status "run '$text'" 2 run "$text"
    one_line err
done
check "nothing was made" test ! -e x.tks -a ! -e y
"$BIN/sluice" run -q -M 200M tokenize -t bytes --stats 1.json c.jsonl ! pack --length 64 -M 64M --stats 2.json ! inspect --stats 3.json >/dev/null
same "-M is shared" "$((68 << 20)) $((64 << 20)) $((68 << 20))" "$(for i in 1 2 3; do json $i.json 'd["memory_bytes"]'; done | paste -sd' ')"

"$BIN/sluice" run --progress always tokenize -t bytes c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl c.jsonl ! pack --length 64 -o /dev/null 2>err
check "one progress: of the last program, with what the first has read" grep -qE $'\r''pack: [0-9]+ % read, ' err
same "  messages have lines of their own" 2 "$(grep -cE '^(tokenize|pack): [0-9]+ documents' err)"

# What fails first in the line speaks, alone.
echo '{' >bad.jsonl
head -c 100000 o.tks >cut.tks
while IFS='#' read -r place words says; do
    # shellcheck disable=SC2086 # words
    status "$place fails" 1 run $words -o z.tks
    one_line err
    check "  is named" grep -q "$says" err
    check "  nothing is left" test ! -e z.tks
done <<'J'
the first#tokenize -t bytes c.jsonl bad.jsonl ! pack --length 256 ! shuffle#^tokenize: bad.jsonl
one between#tokenize -t bytes c.jsonl ! choose --length 1.. - cut.tks ! shuffle#^choose: cut.tks: ends early
the last#tokenize -t bytes c.jsonl ! choose --length 1.. ! pack --length 64 --long error#^pack: c.jsonl
J
status "no room" 1 shell '"$BIN/sluice" run -q tokenize -t bytes c.jsonl ! pack --length 64 >/dev/full'
one_line err
for signal in TERM INT KILL; do
    mkfifo in
    (while :; do cat c.jsonl; done >in 2>/dev/null || :) &
    feeder=$!
    # A shell cannot undo that INT is ignored where it began so, as behind &.
    "$PYTHON" -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
        "$BIN/sluice" run -q tokenize -t bytes in ! decompose ! shuffle -o z.tks 2>err &
    victim=$!
    sleep 0.5
    kill -$signal $victim
    code wait $victim
    kill $feeder 2>/dev/null || :
    code wait $feeder
    rm -f in
    check "SIG$signal ends it: $ended" test ! -e z.tks
    empty "  nothing is left" "$(find . -name '*.tmp')"
done

# sluice-chat is a process of its own.
if "$PYTHON" -c 'import jinja2' 2>/dev/null; then
    export SLUICE_PYTHON=$PYTHON
    printf '{"messages":[{"role":"user","content":"hi %s"},{"role":"assistant","content":"yes"}]}\n' a b c >chat.jsonl
    echo '{% for m in messages %}[{{ m.content }}]{% endfor %}' >t.jinja
    same "sluice-chat first" "$(sluice-chat -q -t t.jinja chat.jsonl | tokenize -q -t bytes | inspect --json | json /dev/stdin 'd["trace_checksum"]')" \
        "$(run sluice-chat -q -t t.jinja chat.jsonl ! tokenize -t bytes ! inspect --json | json /dev/stdin 'd["trace_checksum"]')"
    echo '{"messages": 1}' >>chat.jsonl
    status "  that fails" 1 run sluice-chat -q -t t.jinja chat.jsonl ! tokenize -t bytes -o z.tks
    check "  speaks" grep -q '^sluice-chat: ' err
    check "  and what it wrote is not taken for all" test ! -e z.tks
    status "  whose reader fails" 1 run sluice-chat -q -t t.jinja chat.jsonl ! tokenize -t nothing -o z.tks
    check "  speaks" grep -q '^tokenize: ' err
else
    skip "sluice-chat: this Python has no jinja2 (make python)"
fi

# Logs: of each program what it says, and its status; the first that failed is the last with one. Processor time is that of the
# program: the programs' seconds are those of the process, but for what it does for itself.
logs=(--log l1 --log l2 --log l3)
"$BIN/sluice" run "${logs[@]}" tokenize -t bytes c.jsonl ! decompose --min 64 ! pack --long drop -o d.tks 2>err
empty "with logs nothing is said beside them" "$(cat err)"
same "a log has the program's messages" "$(said e1; said e2; said e3)" "$(said l1 | grep -v ' status '; said l2 | grep -v ' status '; said l3 | grep -v ' status ')"
same "  and its status" "sluice: run: pack: status 0" "$(tail -n 1 l3)"
status "a program that fails" 1 "$BIN/sluice" run "${logs[@]}" tokenize -t bytes c.jsonl ! decompose --min 64 ! pack --long drop -o no/d.tks
empty "  says so in its log" "$(cat err)"
same "  before its status" "pack: no/d.tks: cannot be created sluice: run: pack: status 1" "$(tail -n 2 l3 | sed 's/created.*/created/' | paste -sd ' ')"
status "too few logs" 2 "$BIN/sluice" run --log l1 tokenize -t bytes c.jsonl ! decompose -o d.tks
check "  are named" grep -q '^sluice: run: --log: given 1 times; expected once for each of the programs' err
check "processor time is divided among the programs" "$PYTHON" - "$BIN/sluice" <<'PY'
import json, os, sys
line = "run -q -T 2 tokenize -t bytes --stats t1 c.jsonl ! dedup --near --stats t2 ! shuffle --stats t3 -o t.tks"
pid = os.posix_spawn(sys.argv[1], ["sluice"] + line.split(), os.environ)
_, status, used = os.wait4(pid, 0)
each = [json.load(open(t))["cpu_seconds"] for t in ("t1", "t2", "t3")]
all_ = used.ru_utime + used.ru_stime
assert status == 0 and min(each) > 0 and 0.5 * all_ < sum(each) <= all_, (each, all_)
PY

# Memory: documents near the limit of a share of 64 MiB, in a line of five; the whole process stays within -M.
"$PYTHON" - <<'PY'
import random
rng = random.Random(3)
words = ["w%d" % i for i in range(50000)]
with open("large.jsonl", "w") as f:
    for i in range(8):
        f.write('{"text":"%s"}\n' % " ".join(rng.choices(words, k=200000))[:1040000])
        for j in range(300):
            f.write('{"text":"%s"}\n' % " ".join(rng.choices(words, k=100)))
PY
for t in 1 8; do
    run -M 320M -T $t tokenize -t bytes large.jsonl ! dedup --near ! decompose --min 64 --max 1048576 ! pack ! shuffle --stats large.json -o large.tks
    mib=$(json large.json 'd["peak_rss_bytes"] >> 20')
    check "-M 320M -T $t: takes $mib MiB" test "$mib" -gt 50 -a "$mib" -lt $((320 + 64))
done
