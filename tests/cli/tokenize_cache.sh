# shellcheck shell=bash disable=SC2154
# tokenize_cache.sh - compiled vocabularies: the stream never depends on them, whether they are missing, damaged or
# changed.
# check-more: whole

have tokenize inspect || return 0

cache=$TMP/cache
SLUICE_CACHE_DIR=$cache
export SLUICE_CACHE_DIR

# A rank file: the bytes, and some words.
ranks() { "$PYTHON" - "$@" <<'PY'
import base64, sys
t = [bytes([b]) for b in range(256)] + [w.encode() for w in sys.argv[2:]]
open(sys.argv[1], "wb").writelines(base64.b64encode(w) + b" %d\n" % i for i, w in enumerate(t))
PY
}
ranks llama3.tiktoken th the ' t' ' th' ' the'
printf 'the other one, then the <|end_of_text|>\n' >a.txt
cat a.txt a.txt >b.txt

files() { find "$cache" -name '*.sluice' 2>/dev/null | wc -l; }
# how [OPTION...]: whether the vocabulary was read or built; the stream is in $TMP/x.tks, messages in $TMP/note.
how() {
    tokenize -v --stats s.json -o x.tks "$@" b.txt 2>note || echo "failed: $(cat note)"
    json s.json 'd["vocabulary"]'
}
# then WHAT HOW [OPTION...]: the stream of b.txt is that without a cache, and it came about that way.
then_is() {
    what=$1 want=$2
    shift 2
    same "$what: $want" "$want" "$(how "$@")"
    same "$what: the same stream" "$(tokenize --no-cache "$@" b.txt | sha)" "$(sha x.tks)"
}

for t in builtin llama3.tiktoken; do
    then_is "$t, first" built -t $t
    then_is "$t, again" compiled -t $t
    then_is "$t, with -T 2" compiled -t $t -T 2
    then_is "$t, --no-cache" built -t $t --no-cache
    then_is "$t, special tokens" compiled -t $t --special parse
done
same "--eos is not part of it" compiled "$(how -t llama3.tiktoken --eos '<|eot_id|>')"
status "--eos of a token that the vocabulary lacks" 2 tokenize -t llama3.tiktoken --eos '<no-such>' -o y.tks a.txt
status "bytes" 0 tokenize -t bytes -o y.tks a.txt
same "two files are kept" 2 "$(files)"
check "with nothing beside them" test "$(find "$cache" | wc -l)" = 3
check "in a folder of the user's" test "$(stat -c %a "$cache")" = 700

# What the key depends on.
ranks gpt2.tiktoken th the
touch -r llama3.tiktoken gpt2.tiktoken
mv llama3.tiktoken saved
cp -p gpt2.tiktoken llama3.tiktoken
then_is "another file under the same name" built -t llama3.tiktoken
mv saved llama3.tiktoken
then_is "the file that was there before" compiled -t llama3.tiktoken
then_is "the same bytes, split otherwise" built -t llama3.tiktoken --pattern qwen2
cp llama3.tiktoken llama3-copy.tiktoken
then_is "the same bytes elsewhere" compiled -t llama3-copy.tiktoken
mkfifo llama3.fifo
cat llama3.tiktoken >llama3.fifo &
same "a pipe is read once" built "$(how -t llama3.fifo --pattern llama3)"
wait

if nfs=$(shim nfs); then
    same "a network file system: read, not mapped" compiled "$(LD_PRELOAD=$nfs how -t llama3.tiktoken)"
    same "with the same stream" "$(tokenize --no-cache -t llama3.tiktoken b.txt | sha)" "$(sha x.tks)"
fi

# Damage. "$one" is the compiled llama3.tiktoken.
rm -rf "$cache"
how -t llama3.tiktoken >/dev/null
one=$(find "$cache" -name '*.sluice')
cp "$one" good
whole=$(sha x.tks)
cat >damage.py <<'PY'
"""Damages the file in many ways; the stream is right each time, and so is the file afterwards."""
import json, os, struct, subprocess, sys
one, want = sys.argv[1:]
good = open("good", "rb").read()
size = len(good)
first, = struct.unpack_from("<Q", good, 64)  # the table of sections ends where they begin
words = struct.unpack_from("<%dQ" % ((first - 64) // 8), good, 64)
spans = [(off, n) for off, n in zip(words[::2], words[1::2]) if n]
assert len(spans) > 5, words
cases = [("empty", b""), ("one byte", good[:1]), ("the header alone", good[:64]), ("cut short", good[:-1]),
         ("something behind", good + b"\0"), ("zeros", bytes(size)), ("twice", good * 2)]
places = list(range(0, 64, 5)) + [63] + list(range(64, first, 12))
for off, length in spans:
    assert off % 64 == 0 and first <= off and length <= size - off, (off, length)
    places += [off, off + length // 2, off + length - 1]
for p in places:
    cases.append(("a byte at %d" % p, good[:p] + bytes([good[p] ^ 0x40]) + good[p + 1:]))
for n in (0, 63, 2**40, 2**63, 2**64 - 1):
    cases.append(("a size of %d" % n, good[:16] + struct.pack("<Q", n) + good[24:]))
cases.append(("a hole of 1 TiB", None))
bad = 0
for what, data in cases:
    os.unlink(one)
    with open(one, "wb") as f:
        if data is None:
            f.write(good[:16] + struct.pack("<Q", 2**40) + good[24:64])
            f.truncate(2**40)
        else:
            f.write(data)
    subprocess.run("tokenize -v -t llama3.tiktoken --stats s.json -o x.tks b.txt 2>note", shell=True, check=True)
    sha = subprocess.run(["sha256sum", "x.tks"], stdout=subprocess.PIPE, check=True).stdout.decode()[:64]
    how = json.load(open("s.json"))["vocabulary"]
    note = open("note").read()
    if sha != want or how != "built" or open(one, "rb").read() != good or one not in note.replace("\n", one):
        print("  %s: %s %s %s" % (what, how, sha == want, note))
        bad = 1
print("%d ways" % len(cases))
sys.exit(bad)
PY
check "damaged files are seen, and made anew" "$PYTHON" damage.py "$one" "$whole"
then_is "after all that" compiled -t llama3.tiktoken

# What is not the user's alone.
fresh() { rm -rf "$cache" && how -t llama3.tiktoken >/dev/null; }
for mode in 664 646 666; do
    fresh
    chmod $mode "$one"
    then_is "a file of mode $mode" built -t llama3.tiktoken
    check "is replaced" test "$(stat -c %A "$one" | cut -c 6,9)" = --
done
for mode in 770 707 777; do
    fresh
    chmod $mode "$cache"
    then_is "a folder of mode $mode" built -t llama3.tiktoken
    check "and -v says it" grep -q "^tokenize: $cache: another user owns it, or its group or all users may write to it" note
done
fresh
mv "$one" elsewhere
ln -s ../elsewhere "$one"
then_is "a link" built -t llama3.tiktoken
fresh
rm "$one"
mkfifo "$one"
then_is "a pipe" built -t llama3.tiktoken
fresh
rm "$one"
mkdir "$one"
then_is "a folder in its place" built -t llama3.tiktoken
if [ "$(id -u)" = 0 ]; then
    fresh
    chown 65534 "$one"
    then_is "another user's file" built -t llama3.tiktoken
    chown 65534 "$cache"
    then_is "another user's folder" built -t llama3.tiktoken
else
    skip "another user's file: needs root"
    fresh
    chmod 500 "$cache"
    then_is "a folder that cannot be written" compiled -t llama3.tiktoken
    then_is "nor what is new" built -t llama3.tiktoken --pattern qwen2
fi

# Nowhere to write.
rm -rf "$cache"
for where in /dev/null/no/where relative '' "$TMP/a.txt" "$TMP/no/such/folder"; do
    export SLUICE_CACHE_DIR="$where"
    then_is "SLUICE_CACHE_DIR=$where" built -t llama3.tiktoken
done
check "nothing appeared" test ! -e relative -a ! -e "$TMP/no" -a ! -e "$cache"
unset SLUICE_CACHE_DIR
export XDG_CACHE_HOME="$TMP/xdg" HOME="$TMP/home"
then_is "XDG_CACHE_HOME" built -t llama3.tiktoken
then_is "XDG_CACHE_HOME, again" compiled -t llama3.tiktoken
check "is where it says" test -d "$TMP/xdg/sluice" -a ! -e "$TMP/home"
unset XDG_CACHE_HOME
then_is "no home" built -t llama3.tiktoken
check "none is made" test ! -e "$TMP/home"
mkdir home
then_is "a home" built -t llama3.tiktoken
then_is "a home, again" compiled -t llama3.tiktoken
unset HOME
then_is "\$HOME unset" built -t llama3.tiktoken
export SLUICE_CACHE_DIR="$cache"
if [ -z "${SAN:-}" ]; then
    same "a full disk" built "$(ulimit -f 64 && how -t llama3.tiktoken)"
    same "leaves nothing" 0 "$(find "$cache" -type f | wc -l)"
fi

# Many at once, on an empty folder, and while files go.
rm -rf "$cache"
storm() {
    for i in 1 2 3 4 5 6 7 8; do
        tokenize --special ordinary -t llama3.tiktoken b.txt >"storm.$i" 2>>storm.err &
    done
    wait
    sha256sum storm.[1-8] | cut -c 1-64 | sort -u
}
same "eight at once" "$whole" "$(storm)"
check "one file, and nothing unfinished" test "$(find "$cache" -type f | wc -l)" = 1
empty "in silence" "$(told storm.err)"
(while [ ! -e stop ]; do rm -f "$cache"/*.sluice; done) &
same "eight at once, while files are removed" "$whole" "$({ storm; storm; } | sort -u)"
: >stop
wait

# Each call that fails or is the last, on an empty folder and on a full one. What the program does for
# the cache must not matter; what it does for the stream ends it with a line, or the stream is right.
fresh
if fault=$(shim fault); then
    each() { # each CALL ERRNO|kill
        n=1
        while [ $n -lt 400 ]; do
            rm -f log
            [ $state = full ] || rm -rf "$cache"
            LD_PRELOAD=$fault SHIM_AT=$1:$n SHIM_DO=$2 SHIM_LOG=log code tokenize --special ordinary -t llama3.tiktoken --stats s2.json -o y.tks b.txt 2>err
            got=$ended
            [ -s log ] || break
            case $2.$got in
            kill.137) ;;
            *.0) [ "$(sha y.tks)" = "$whole" ] || echo "$1 $n: another stream" ;;
            *.1) one_line err || echo "$1 $n: $(cat err)" ;;
            *) echo "$1 $n: exit status $got" ;;
            esac
            unfinished=$(find "$cache" -name '.tmp-*' 2>/dev/null || :)
            [ -z "$unfinished" ] || [ "$2" = kill ] || echo "$1 $n: $unfinished is left"
            SLUICE_CACHE_DIR=$cache tokenize --special ordinary -t llama3.tiktoken -o y.tks b.txt 2>err && [ "$(sha y.tks)" = "$whole" ] ||
                echo "$1 $n: not well afterwards: $(cat err)"
            n=$((n + ${3:-1}))
        done
        [ $n -gt 1 ] || echo "$1: no such call"
    }
    step=$([ -n "$FULL" ] && echo 1 || longer 40 7)
    for state in ${MORE:+full} empty; do
        for call in write name ${MORE:+read open close mkdir map}; do
            [ $state.$call != full.mkdir ] || continue # it is there
            empty "each $call fails, the folder $state" "$(each $call 5)"
        done
        empty "memory is short, the folder $state" "$(each memory 12 $step)"
        empty "each write is the last, the folder $state" "$(each io kill 3)"
    done
fi

# It does not grow.
rm -rf "$cache"
then_is "the first" built -t builtin
i=10
while [ $i -lt 40 ]; do
    : >"$cache/000000000000000000000000000000$i.sluice"
    touch -d "2020-01-01 00:00:$i" "$cache/000000000000000000000000000000$i.sluice"
    i=$((i + 1))
done
: >"$cache/notes.sluice"
: >"$cache/.tmp-left" && touch -d 2020-01-01 "$cache/.tmp-left"
: >"$cache/.tmp-busy"
then_is "one more" built -t llama3.tiktoken
same "sixteen are kept" 16 "$(find "$cache" -name '????????????????????????????????.sluice' | wc -l)"
check "the latest" test -e "$cache/00000000000000000000000000000039.sluice" -a ! -e "$cache/00000000000000000000000000000010.sluice"
check "with files of others, and files being written" test -e "$cache/notes.sluice" -a -e "$cache/.tmp-busy"
check "without leftover temporary files" test ! -e "$cache/.tmp-left"
find "$cache" -name '????????????????????????????????.sluice' -size +0 -exec touch -d 2020-01-01 '{}' +
then_is "what is used" compiled -t llama3.tiktoken
same "stays young" 1 "$(find "$cache" -name '????????????????????????????????.sluice' -size +0 -mtime -1 | wc -l)"
