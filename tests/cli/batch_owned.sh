# shellcheck shell=sh disable=SC2154
# batch_owned.sh - sluice-batch replaces and removes nothing of the user's: folders without our mark, other files in our
# folders, links that lead out of them; folders of version 0.1.0.
# check-more: whole

have tokenize decompose pack shuffle inspect sluice-batch || return 0
corpus c.jsonl 60000 1
recipe() {
    printf '%s\n' 'input = c.jsonl' 'parts = 2' 'tokenize = --id-field id' 'dedup = --exact' \
        'decompose = --min 64 --max 512' 'pack =' "$@"
}
recipe >recipe
recipe 'keep = needed' >needed
# all DIR...: names, kinds and contents of all that is there.
all() { find "$@" -printf '%p %y %l\n' -type f -exec sha256sum {} + | sort; }

# Folders of others, whatever they have that we use: they are left as they are.
foreign() { # WHAT OUT [COMMAND...]: OUT, and mine where links lead to it, is refused by these commands
    who=$1 dir=$2
    all "$2" mine >before
    shift 2
    for c in "recipe $dir" "resume $dir" "clean $dir" "task $dir report 0" "$@"; do
        # shellcheck disable=SC2086 # words are meant
        status "$who: $c" 1 sluice-batch $c --local 1
        check "$who: $c: one line" one_line err
        all "$dir" mine >after
        check "$who: $c: nothing is touched" cmp -s before after
    done
}
mkdir mine mine/work mine/work/near.stages
echo precious | tee mine/a mine/work/0.tks mine/work/near.stages/sign.0-of-2 mine/report.json >/dev/null
mkdir state work report dot link marked
mkdir state/state
echo '{}' >state/state/terraform.tfstate
mkdir work/state work/work work/logs
echo precious >work/work/0.tks
: >work/state/lock
mkdir report/state report/state/report
echo precious | tee report/report.json report/state/report/0 >/dev/null
echo 'input = c.jsonl' >report/recipe
echo precious >dot/.profile
ln -s ../mine link/state
mkdir marked/state
echo 'made by me' >marked/state/made-by
for d in state report dot link marked; do foreign "a folder of others with $d" $d; done
foreign "a folder of others with work" work "needed work" "init recipe work" "--dry-run recipe work" "status work" "cancel work" \
    "stages work" "--pending work" "task work tokenize 0"

# One that 0.1.0 made has no mark; but a recipe as we write them, and lists that we keep. It goes on, and gets one.
status "init" 0 sluice-batch init recipe old
rm old/state/made-by
status "a folder of 0.1.0: a part" 0 sluice-batch task old tokenize 0
status "  is looked at" 0 sluice-batch status old
check "  without a mark" test ! -e old/state/made-by
cp -r old almost
echo '# mine' >>almost/recipe
foreign "almost one of 0.1.0" almost
status "  resume" 0 sluice-batch resume old --local 2
check "  puts the mark there" grep -q '^sluice-batch 1: ' old/state/made-by
check "  and makes all" test "$(inspect --json old/stream/*.tks | grep -c checksum)" -gt 0

# Links in our own folder.
for f in state logs stats work stream recipe report.json state/tokenize logs/tokenize.0.log stats/tokenize.0.json \
    work/tokenize work/pack.stages state/lock; do
    rm -rf ours
    sluice-batch init recipe ours >/dev/null
    case $f in stats/*) sluice-batch task ours tokenize 1 ;; esac
    case $f in */*) mkdir -p "ours/${f%/*}" ;; esac
    [ ! -e "ours/$f" ] || mv "ours/$f" "moved.${f##*/}"
    ln -s "$PWD/mine" "ours/$f"
    all mine >before
    status "a link, $f" 1 sluice-batch resume ours --local 1
    check "a link, $f: one line" one_line err
    case $f in
    state/tokenize | */tokenize.0.* | work/tokenize)
        status "a link, $f: task" 1 sluice-batch task ours tokenize 0
        ;;
    esac
    sluice-batch clean ours >/dev/null 2>&1 || :
    all mine >after
    check "a link, $f: its target is unchanged" cmp -s before after
    check "  and so is the link" test -h "ours/$f"
done

# What others put into our folder stays there.
status "whole" 0 sluice-batch --local 2 recipe whole
for r in recipe needed; do
    rm -rf ours
    sluice-batch init $r ours >/dev/null
    mkdir -p ours/work/mine ours/work/tokenize ours/work/exact.stages ours/work/pack.stages
    echo precious | tee ours/work/mine/0.tks ours/work/notes ours/work/0.tks ours/work/tokenize/notes.tks ours/work/exact.stages/sign.txt \
        ours/.sluice-mine.tmp ours/state/.hidden ours/work/exact.stages/.sluice-0123x.tmp >/dev/null
    ln -s "$PWD/mine/a" ours/work/tokenize/7.tks
    ln -s "$PWD/mine" ours/work/pack.stages/scatter.5-of-7
    echo killed >ours/work/tokenize/.sluice-0123456789abcdef.tmp
    all ours/work/mine ours/work/notes ours/work/0.tks ours/work/tokenize/notes.tks ours/work/exact.stages/sign.txt ours/.sluice-mine.tmp \
        ours/state/.hidden ours/work/exact.stages/.sluice-0123x.tmp ours/work/tokenize/7.tks ours/work/pack.stages/scatter.5-of-7 mine >before
    status "$r: whole, with files of others" 0 sluice-batch --local 2 $r ours
    same "$r: the same stream" "$(sha whole/stream/*.tks)" "$(sha ours/stream/*.tks)"
    status "$r: clean" 0 sluice-batch clean ours
    check "$r: clean lists the files that stay" grep -q '/ours/work: left, ' out
    all ours/work/mine ours/work/notes ours/work/0.tks ours/work/tokenize/notes.tks ours/work/exact.stages/sign.txt ours/.sluice-mine.tmp \
        ours/state/.hidden ours/work/exact.stages/.sluice-0123x.tmp ours/work/tokenize/7.tks ours/work/pack.stages/scatter.5-of-7 mine >after
    check "$r: files of others are unchanged" cmp -s before after
    same "$r: nothing else is left" 8 "$(find ours/work ! -type d | wc -l)"
done
sluice-batch init recipe late >/dev/null
echo precious >late/report.json
for c in "recipe late" "resume late" "task late report 0"; do
    # shellcheck disable=SC2086 # words are meant
    status "a report.json of others: $c" 1 sluice-batch $c --local 2
    check "  one line" one_line err
done
same "  is as it was" precious "$(cat late/report.json)"
rm late/report.json
for f in stats/tokenize.0.json work/tokenize/0.tks work/tokenize/0.tks.manifest.json stream/02.tks; do
    mkdir -p "late/${f%/*}"
    echo precious >late/$f
    status "$f of others" 1 sluice-batch resume late --local 2
    check "  is named" grep -qF "/late/$f: sluice-batch did not write it, and would; move it away" err
    same "  is as it was" precious "$(cat late/$f)"
    rm late/$f
done
status "  and when it is gone" 0 sluice-batch resume late --local 2
status "  our own is made again" 0 sh -c 'rm -f late/state/report.all && sluice-batch task late report 0'
