# shellcheck shell=bash disable=SC2154
# batch_stopped.sh - sluice-batch --local: the interrupt key, kill -9, locks and parts of dead processes; several
# processes that run the same part at once.
# check-more: whole

have tokenize dedup decompose pack shuffle inspect sluice-batch || return 0
mkdir in
for i in 1 2 3; do corpus in/$i.jsonl 40000 $i; done
printf '%s\n' 'input = in' 'parts = 4' 'tokenize = --id-field id' 'dedup = --near' 'decompose = --min 64 --max 512 --label-token' \
    'pack =' 'shuffle = --format wds --shard-sequences 16' >recipe
tokenize --id-field id in | dedup --near | decompose --min 64 --max 512 --label-token | pack |
    shuffle -q --format wds --shard-sequences 16 -o pipe
good=$(sha_tree pipe)

# stop SIGNAL OUT: sent to the whole group, as a terminal does, or to sluice-batch alone; its exit status.
stop() {
    "$PYTHON" -c '
import os, signal, subprocess, sys, time
how, out = sys.argv[1:]
signal.signal(signal.SIGINT, signal.SIG_DFL) # which a shell ignores for what it starts in the background
p = subprocess.Popen(["sluice-batch", "--local", "2", "recipe", out], start_new_session=True, stdout=subprocess.DEVNULL)
while not os.path.exists(out + "/state/near-sign/2") and p.poll() is None:
    time.sleep(0.01)
if how == "INT":
    os.killpg(p.pid, signal.SIGINT)
else:
    p.kill()
print(p.wait())' "$1" "$2" 2>err
}
same "the interrupt key" 75 "$(stop INT key)"
check "says how to go on" grep -q "stopped; 'sluice-batch resume .*key --local 2' goes on" err
check "no lock is left" test ! -e key/state/lock
check "not all was done" shell 'sluice-batch status key >out; ! grep -q "^\([0-9]*\) of \1 parts done$" out'
status "again" 0 sluice-batch --local 2 recipe key
same "the same bytes" "$good" "$(sha_tree key/shards)"
same "kill -9 of sluice-batch" -9 "$(stop KILL kill)"
check "its lock is left" test -s kill/state/lock
status "again, while its parts may go on" 0 sluice-batch resume --local 2 kill
same "the same bytes" "$good" "$(sha_tree kill/shards)"

# Numbers of processes that others have now; parts of machines that are gone.
sleep 100 &
other=$!
sluice-batch init recipe left >/dev/null
mkdir left/state/tokenize
echo "$(uname -n) $other 1" >left/state/lock
echo "tokenize 0 running 1 1 0 0 $(uname -n) - $other -" >left/state/tokenize/0
echo "tokenize 1 running 1 1 0 0 elsewhere - 12 -" >left/state/tokenize/1
same "a part that another machine has just begun" 0,2-3 "$(sluice-batch --pending left tokenize)"
touch -d '10 minutes ago' left/state/tokenize/1
same "and said no more of" 0-3 "$(sluice-batch --pending left tokenize)"
status "nothing is cancelled" 0 sluice-batch cancel left
check "nor killed" kill -0 $other
status "all of it" 0 sluice-batch resume --local 2 left
same "the same bytes" "$good" "$(sha_tree left/shards)"
check "nor killed" kill -0 $other
kill $other
wait $other 2>/dev/null || :
echo "elsewhere 1 1" >left/state/lock
status "a lock of another machine" 1 sluice-batch resume --local 2 left
check "one line says which file to remove" grep -q 'process 1 on elsewhere; if that is gone, remove .*left/state/lock$' err
rm left/state/lock

# Three at once of each part: as when a node was thought dead, and its part was given to another one.
sed -i 's/^parts.*/parts = 2/' recipe
sluice-batch init recipe thrice >/dev/null
sluice-batch stages thrice | while read -r s n _; do
    i=0
    while [ $i -lt "$n" ]; do
        for _ in 1 2 3; do
            sluice-batch task thrice "$s" $i </dev/null &
        done
        wait
        i=$((i + 1))
    done
done
empty "each part by three at once: none is missing" "$(sluice-batch --pending thrice)"
same "the same bytes" "$good" "$(sha_tree thrice/shards)"

# Who comes late does not take back what another one has done since.
mkfifo fifo
printf '%s\n' 'input = fifo' 'parts = 1' 'tokenize = --id-field id' >one
sluice-batch init one late >/dev/null
sluice-batch task late tokenize 0 </dev/null &
task=$!
i=0
while ! grep -q running late/state/tokenize/0 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1 && i=$((i + 1)); done
sleep 0.3
echo "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" >late/state/tokenize/0
kill $task
code wait $task
same "a late one is stopped" 75 $ended
same "the part is done as before" "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" "$(cat late/state/tokenize/0)"

# Nor does who fails while another one is done: the other's line is written just before that of the failure.
mkdir mv
printf '%s\n' '#!/bin/sh' 'PATH=${PATH#*:}' 'if grep -q " failed " "$2"; then' '    echo "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" >"${3%/*}/.0.done"' \
    '    cp "${3%/*}/.0.done" "$3"' 'fi' 'exec mv "$@"' >mv/mv
chmod +x mv/mv
echo '{"text": 1}' >wrong.jsonl
printf '%s\n' 'input = wrong.jsonl' 'parts = 1' 'keep = needed' 'tokenize = --id-field id' >one
sluice-batch init one close >/dev/null
status "fails while another is done" 1 env PATH="$PWD/mv:$PATH" sluice-batch task close tokenize 0 </dev/null
same "it is done" "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" "$(cat close/state/tokenize/0)"
# Whoever began it after that, and was killed, leaves a line too. What the part reads may be gone.
echo "tokenize 0 running 1 1 0 0 elsewhere 7 13 -" >close/state/tokenize/0
status "begun again since, and killed" 0 sluice-batch task close tokenize 0 </dev/null
same "it is done still" "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" "$(cat close/state/tokenize/0)"

# The line of who has done it may go meanwhile, as the recipe changes: the failure counts then, and no line is empty.
printf '%s\n' '#!/bin/sh' 'PATH=${PATH#*:}' 'if grep -q " failed " "$2"; then rm "${3%/*}/.0.done"; fi' 'exec mv "$@"' >mv/mv
sed -i '/^keep/d' one
sluice-batch init one gone >/dev/null
mkdir gone/state/tokenize
echo "tokenize 0 done 1 1 5 0 elsewhere 7 12 0" | tee gone/state/tokenize/0 >gone/state/tokenize/.0.done
status "is made anew, and fails" 1 env PATH="$PWD/mv:$PATH" sluice-batch task gone tokenize 0 </dev/null
check "it has failed" grep -q '^tokenize 0 failed ' gone/state/tokenize/0
