# shellcheck shell=sh disable=SC2154
# shards_foreign.sh - in folders of sets, of stages and of OLMo's cache, files that sluice did not write are not
# replaced or removed: they stay, or an error names the file whose name is needed. -f implies neither --replace-set nor
# --accept-mismatch, and each refusal names its own option.
# check-more: whole

have tokenize dedup decompose pack shuffle schedule || return 0
corpus c.jsonl 200000 31
tokenize -q -t bytes -o t.tks c.jsonl
decompose --min 64 --max 256 --label-token t.tks | pack -o label.tks
decompose --min 64 --max 256 t.tks | pack -q -o plain.tks
shm() { shuffle -q --work w --format wds --shard-sequences 64 "$@"; }
set_of() { shuffle -q --format wds --shard-sequences 64 "$@" label.tks; }

# kept WHAT NAME FILES COMMAND...: exit 1, one line that has NAME; no byte of FILES is another, and none is gone.
kept() {
    what=$1 name=$2 files=$3
    shift 3
    # shellcheck disable=SC2086 # several
    before=$(sha $files)
    status "$what" 1 "$@"
    check "$what: in one line that names $name" shell '. "$top/tests/cli/lib.sh"; one_line "$TMP/err" && grep -qF -- "$0" "$TMP/err"' "$name"
    # shellcheck disable=SC2086
    same "$what: the file stays" "$before" "$(sha $files)"
}

set_of -o set
cp -r set good
for option in -f --accept-mismatch; do
    kept "a set that is there, with $option" 'use --replace-set' "$(find set -type f)" set_of $option -o set
done
kept "labels that are wanted, with -f" '--accept-mismatch' plain.tks shuffle -f --format wds -o none plain.tks
kept "labels that are wanted, with --replace-set" '--accept-mismatch' plain.tks shuffle --replace-set --format wds -o none plain.tks
kept "labels that are not" '--accept-mismatch' label.tks shuffle -f --format olmo -o none label.tks
kept "what was cut already, with -f" '--accept-mismatch' plain.tks decompose -f --min 128 -o none plain.tks
check "none of these wrote anything" test ! -e none
status "--replace-set without a format" 2 shuffle --replace-set -o none label.tks
status "--accept-mismatch without a format" 2 shuffle --accept-mismatch -o none label.tks
for p in tokenize dedup decompose pack schedule inspect; do
    $p --help >help
    check "$p has no --replace-set" fails grep -q -e --replace-set help
done

# What has a name of ours in a folder that is no set.
for f in README.md manifest.jsonl report.json lengths.svg .partial/shard .journal.jsonl .parts.jsonl D_6/shard-0000000.tar D_9/shard-0000000.tar \
    D_6/manifest.jsonl segments/D_6.tks; do
    rm -rf mine
    mkdir -p "mine/$(dirname "$f")"
    echo '{"file": "mine"}' >mine/$f
    echo other >mine/other
    kept "$f of somebody" "${f%/shard}" "mine/$f mine/other" set_of --replace-set -o mine
    kept "$f of somebody, no option" mine "mine/$f mine/other" set_of -o mine
done
rm -rf mine
mkdir -p mine/D_6
cp set/manifest.jsonl mine
for f in README.md D_6/shard-0000000.tar; do
    echo mine >mine/$f
done
echo '{"no": "set"}' >>mine/manifest.jsonl
kept "a manifest of which a line is no set's" mine/ "mine/manifest.jsonl mine/README.md mine/D_6/shard-0000000.tar" set_of --replace-set -o mine

# In a set of ours.
echo mine >set/D_6/shard-0123456.tar
kept "another shard in a set" D_6/shard-0123456.tar "$(find set -type f)" set_of --replace-set -o set
rm -rf set && cp -r good set
echo mine >>set/README.md
kept "a card that was edited" README.md "$(find set -type f)" set_of --replace-set -o set
shm --stage scatter --part 0/1 label.tks
kept "and in parts" README.md "$(find set -type f)" shm --stage gather --part 0/1 --replace-set -o set
rm -r w
rm -rf set && cp -r good set
echo mine >set/mine && echo mine >set/D_6/mine && echo mine >set/segments/mine.tks
status "files with other names" 0 set_of --replace-set -o set
shuffle --replace-set --format wds --shard-sequences 64 -o set label.tks 2>err
check "a warning says that the disk needs space for both, and the way with less" grep -q 'must have space for both; .*rm -r set' err
same "stays" 3 "$(cat set/mine set/D_6/mine set/segments/mine.tks | grep -c mine)"
rm set/mine set/D_6/mine set/segments/mine.tks
same "and the set is the set" "$(sha_tree good)" "$(sha_tree set)"

# Links are not followed.
mkdir elsewhere
for f in D_6 segments; do
    rm -rf set elsewhere/$f && cp -r good set
    mv set/$f elsewhere && ln -s ../elsewhere/$f set/$f
    kept "$f is a link" $f "$(find elsewhere set -type f)" set_of --replace-set -o set
done
rm -rf set && cp -r good set
mv set/D_6/shard-0000000.tar elsewhere && ln -s ../../elsewhere/shard-0000000.tar set/D_6
before=$(sha elsewhere/shard-0000000.tar)
status "a shard is a link" 0 set_of --replace-set --seed 1 -o set
same "where it leads stays" "$before" "$(sha elsewhere/shard-0000000.tar)"
check "and the link is gone" test ! -L set/D_6/shard-0000000.tar

# A set that was begun.
if [ -n "$SHIM" ]; then
    rm -rf set
    SHIM_AT=name:12 LD_PRELOAD=$SHIM/fault.so code set_of -T 1 -o set >/dev/null 2>&1
    check "a set is begun" test -e set/.partial/journal
    echo mine >set/README.md
    kept "a card of somebody's beside it" 'move them away' set/README.md set_of -o set
    kept "and with --replace-set" README.md set/README.md set_of --replace-set --seed 1 -o set
    rm set/README.md
    echo mine >set/mine
    kept "another file beside it" 'move them away' "$(find set -type f)" set_of -o set
    rm set/mine
    status "it goes on" 0 set_of -o set
    same "to the same set" "$(sha_tree good)" "$(sha_tree set)"
fi

# In parts.
shm --stage scatter --part 0/1 label.tks && shm --stage gather --part 0/1 -o parts
for f in README.md lengths.svg report.json manifest.jsonl; do
    echo mine >parts/$f
    kept "parts: $f of somebody" $f parts/$f shm --stage finish -o parts
    rm parts/$f
done
status "parts: without them" 0 shm --stage finish -o parts
cp -r good others
kept "another set in parts, with -f" 'use --replace-set' "$(find good -type f)" shm --stage gather --part 0/1 -f -o good
cp w/shards.0-of-1.jsonl journal
echo mine >w/shards.0-of-1.jsonl
kept "a file in the place of a part's journal" shards.0-of-1.jsonl w/shards.0-of-1.jsonl shm --stage gather --part 0/1 -f -o parts
cp journal w/shards.0-of-1.jsonl
status "another set in parts, with --replace-set" 0 shm --stage gather --part 0/1 -f --replace-set -o good
same "waits in .partial" "$(sha_tree others)" "$(mv good/.partial waits && sha_tree good && mv waits good/.partial)"
status "and takes its place at finish" 0 shm --stage finish -o good
same "  whole" "$(sha_tree parts)" "$(sha_tree good)"

# The files of stages.
mkdir near
echo mine >near/sign.0-of-1
kept "a file in a work folder" sign.0-of-1 near/sign.0-of-1 dedup --near --work near --stage sign --part 0/1 t.tks
kept "and with -f" sign.0-of-1 near/sign.0-of-1 dedup --near --work near --stage sign --part 0/1 -f t.tks
rm -rf other && mkdir other && echo mine >other/count.0-of-1 && echo mine >other/scatter.0-of-1
kept "shuffle's count" count.0-of-1 other/count.0-of-1 shuffle --mix a=1 --work other --stage count --part 0/1 -f label.tks
kept "shuffle's scatter" scatter.0-of-1 other/scatter.0-of-1 shuffle --work other --stage scatter --part 0/1 -f label.tks
rm -rf other && mkdir other && echo mine >other/count.0-of-1
kept "pack's count" count.0-of-1 other/count.0-of-1 pack --work other --stage count --part 0/1 -f plain.tks

# OLMo-core's cache.
shuffle -q --format olmo --shard-sequences 64 -o olmo plain.tks
cache() { schedule -q --trainer olmo --batch-tokens 512 --olmo-cache "$1" olmo; }
cache work
for f in $(cd work && find . -type f | grep -v manifest.jsonl | sed -n 1,4p) "$(cd work && find . -name "vsl-*.json")"; do
    rm -rf theirs && mkdir -p "theirs/$(dirname "$f")"
    echo mine >theirs/"$f"
    kept "cache: $(basename "$f" | cut -c 1-20) of somebody" "$f" theirs/"$f" cache theirs/.
done
rm -rf theirs && cp -r work theirs && rm theirs/manifest.jsonl
status "cache: files of a killed run" 0 cache theirs
same "cache: is the same" "$(sha_tree work)" "$(sha_tree theirs)"
echo mine >theirs/manifest.jsonl
kept "cache: a list of somebody" manifest.jsonl theirs/manifest.jsonl cache theirs
status "cache: the set itself" 2 cache ./olmo
check "  one line names another folder" grep -q 'is the set itself; .* olmo/olmo-cache$' err
