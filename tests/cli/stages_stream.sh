# shellcheck shell=bash disable=SC2154
# stages_stream.sh - a stage that is run again compares its stream by order, domains and ids, not only by the checksum
# of the tokens: streams that differ in one of these are different streams, for work files and for manifests.

have tokenize decompose dedup pack shuffle inspect || return 0
"$PYTHON" - <<'END'
import json, random
r = random.Random(3)
base = [" ".join(r.choice("abcdefghij") * r.randrange(1, 5) for _ in range(30)) for _ in range(5)]
for i in range(80):
    print(json.dumps({"text": r.choice(base) + " " + r.choice("klm"), "id": "i%02d" % i, "jd": "j%02d" % i,
                      "one": r.choice("ab"), "two": r.choice("ab")}), file=open("c.jsonl", "a"))
END
tok() { tokenize -t bytes -f --no-provenance "$@" c.jsonl; }
tok --domain-field one --id-field id -o first.tks
tok --domain-field two --id-field id -o domains.tks
tok --domain-field one --id-field jd -o ids.tks
shuffle --seed 9 --no-provenance first.tks -o order.tks
# What these are good for: nothing but the frames tells them apart.
for v in domains ids order; do
    cmp -s first.tks $v.tks && not_ok "$v.tks is another stream"
    same "of one sum: $v.tks" "$(inspect --json first.tks | sed 's/.*"checksum": "\([^"]*\)".*/\1/')" \
        "$(inspect --json $v.tks | sed 's/.*"checksum": "\([^"]*\)".*/\1/')"
done

# refuses WHAT PATTERN COMMAND...: with in.tks as it is now
refuses() {
    what=$1 pattern=$2
    shift 2
    status "$what: refused" 1 "$@"
    check "  one line" one_line "$TMP/err"
    check "  that says so" grep -qE "$pattern" "$TMP/err"
}
other='was made from another stream; remove it, or use -f to write it anew'

# one COMMAND...: a first step, of first.tks; then the same of the others.
one() {
    name=$1
    shift
    cp first.tks in.tks
    status "$name" 0 "$@" in.tks
    shuffle --order keep --no-provenance -z first.tks -o in.tks
    status "$name: the same sequences in compressed frames" 0 "$@" in.tks
    for v in domains ids order; do
        cp $v.tks in.tks
        refuses "$name, $v" "$other" "$@" in.tks
    done
    status "  -f makes it of that" 0 "$@" -f in.tks
    cp first.tks in.tks
    "$@" -f in.tks 2>err
}
near="--near --bands 10 --rows 2 --threshold 0.5 --keep domain-order --domains b"
one "dedup sign" dedup $near --stage sign --work wn --part 0/1
one "dedup sign, exact" dedup --exact --stage sign --work we --part 0/1
one "dedup sign, passages" dedup --substring 8 --stage sign --work wp --part 0/1
one "pack count" pack --length 64 --stage count --work wk --part 0/1
one "shuffle count" shuffle --mix a=1,b=2 --stage count --work wm --part 0/1
one "shuffle scatter" shuffle --stage scatter --work ws --part 0/1

# What reads the stream a second time.
part="--part 0/1"
for p in "group $part" "verify $part" cluster; do dedup $near --work wn --stage $p; done
dedup --exact --work we --stage group $part
for v in order domains ids; do
    cp $v.tks in.tks
    refuses "dedup filter, near, $v" 'differs from the one that wn/sign.0-of-1 was made from' dedup $near --stage filter --work wn $part -o x.tks in.tks
    refuses "dedup filter, exact, $v" 'differs from the one that we/sign.0-of-1 was made from' \
        dedup --exact --stage filter --work we $part -o x.tks in.tks
done
rm we/sign*
cp order.tks in.tks
refuses "  also where sign's file is gone" 'differs from the one that we/sign.0-of-1 was made from' \
    dedup --exact --stage filter --work we $part -o x.tks in.tks
check "  leaves no output" test ! -e x.tks
dedup --substring 8 --work wp --stage group $part
cp order.tks in.tks
refuses "dedup ask, order" 'differs from the one that wp/sign.0-of-1 was made from' dedup --substring 8 --stage ask --work wp $part in.tks
dedup --substring 8 --work wp --stage ask $part first.tks
dedup --substring 8 --work wp --stage match $part
for v in order domains ids; do
    cp $v.tks in.tks
    refuses "dedup filter of passages, $v" 'differs from the one that wp/sign.0-of-1 was made from' \
        dedup --substring 8 --stage filter --work wp $part -o x.tks in.tks
done
pack --length 64 --stage plan --work wk
for v in order domains ids; do
    cp $v.tks in.tks
    refuses "pack scatter, $v" 'differs from the one that wk/count.0-of-1 was made from' pack --length 64 --stage scatter --work wk $part -o x.tks in.tks
done
pack --length 64 --stage scatter --work wk $part --ranges 2 -o p.tks first.tks
refuses "pack scatter, other ranges" 'scatter.0-of-1: was made with --ranges=2, now --ranges=3; remove it, or use -f' \
    pack --length 64 --stage scatter --work wk $part --ranges 3 -o p.tks first.tks
status "  -f makes it again" 0 pack --length 64 --stage scatter -f --work wk $part --ranges 3 -o p.tks first.tks
shuffle --mix a=1,b=2 --stage mix --work wm
cp ids.tks in.tks
refuses "shuffle scatter of a mix, ids" 'differs from the one that wm/count.0-of-1 was made from' \
    shuffle --mix a=1,b=2 --stage scatter --work wm $part in.tks

# Manifests
for v in domains ids order; do
    cp first.tks in.0.tks
    decompose -f --min 16 --max 64 $part -o out.tks 'in.{part}.tks'
    cp $v.tks in.0.tks
    refuses "a manifest, $v" 'out.tks: was made from other contents of in.0.tks; remove it or use -f' \
        decompose --min 16 --max 64 $part -o out.tks 'in.{part}.tks'
done
cp first.tks in.0.tks
decompose -f --min 16 --max 64 $part -o out.tks 'in.{part}.tks'
"$PYTHON" -c '
b = bytearray(open("out.tks", "rb").read())
n = b.index(b"\xf5TKSDATA")
b[n + 60] ^= 1
open("out.tks", "wb").write(b)'
cp out.tks damaged.tks
decompose --min 16 --max 64 $part -o out.tks 'in.{part}.tks' 2>err
check "an output with a damaged frame is made again" shell '! cmp -s out.tks damaged.tks'

# Shards: tokens alone are in them, and the rest in segments/.
shm() { shuffle --format mds --shard-sequences 2 --work wsh "$@"; }
pieces() { decompose --min 16 --max 64 --tail drop --no-provenance $1.tks -o $1.cut.tks; }
set_of() {
    rm -rf "$2"
    shuffle --format mds --shard-sequences 2 -o "$2" "$1"
    sha_tree "$2"
}
for v in first ids domains; do pieces $v; done
whole=$(set_of first.cut.tks one)
made() { shm --stage scatter $part "$@" && shm --stage gather $part -o set && shm --stage finish -o set; }
status "shards of one part" 0 made first.cut.tks
same "  are those of one run" "$whole" "$(sha_tree set)"
same "  finish once more finds them" '"skipped": true' "$(shm --stage finish -o set --stats s.json && grep -o '"skipped": true' s.json)"
cp -r wsh wsh.first
# of SEED STAGE ...: two jobs whose files have the same sizes
of() { shuffle --format megatron --shard-sequences 16 --work wof.$1 --seed $1 --stage "${@:2}"; }
for seed in 1 2; do of $seed scatter $part first.cut.tks && of $seed gather $part -o of.$seed; done
of 1 finish -o of.1
was=$(sha_tree of.1)
for more in "" -f; do
    refuses "finish of another job's parts in this set, ${more:-plain}" \
        'wof.2/shards.0-of-1.jsonl: of.1/D_.* is not the file that was written, but that of another set; run part 0/1 again' \
        of 2 finish $more -o of.1
done
refuses "  and their gather" 'of.1: the folder is not empty' of 2 gather $part -o of.1
same "  the set stays" "$was" "$(sha_tree of.1)"
for f in segments/D_5.tks README.md manifest.jsonl report.json lengths.svg D_4/index.json; do
    head -c 100 set/$f >x && cat x >set/$f
    status "finish makes a cut file again: $f" 0 shm --stage finish -o set
    same "  the same set" "$whole" "$(sha_tree set)"
done
for v in ids domains; do
    shm --stage scatter -f $part $v.cut.tks
    refuses "gather, with $v" 'wsh/shards.0-of-1.jsonl: was made from other input; remove it, or use -f' shm --stage gather $part -o set
    refuses "finish, with $v" 'wsh/shards.0-of-1.jsonl: was made from other input; run part 0/1 again' shm --stage finish -o set
    shm --stage gather -f --replace-set $part -o set && shm --stage finish -o set
    same "  made again, it is that of one run" "$(set_of $v.cut.tks one)" "$(sha_tree set)"
done
cp -r wsh wsh.domains
rm -rf wsh set && cp -r wsh.first wsh
shm --stage gather -f --replace-set $part -o set
for d in 4 5 6; do cp wsh.domains/rows.0-of-1.D_$d.tks wsh/; done
refuses "rows of another job" 'wsh/rows.0-of-1.D_.*tks: differs from the part.s journal; remove it and run part 0/1 again' shm --stage finish -o set
rm wsh/rows.*
shm --stage gather $part -o set && shm --stage finish -o set
same "  without them it is made again" "$whole" "$(sha_tree set)"
refuses "another licence, which no provenance tells of" 'was made without --license, now --license=MIT; run part 0/1 again' shm --no-provenance --license MIT --stage finish -o set

# Parts of a job are made in one way.
tokenize -q -t bytes -o all.tks c.jsonl
tokenize -q -t bytes --sample 0.9 -o some.tks c.jsonl
shuffle -q --stage scatter --work ww --part 0/2 all.tks
shuffle -q --stage scatter --work ww --part 1/2 some.tks
refuses "streams of other options as parts of one job" 'ww/scatter.1-of-2: its stream was made with other options than that of another part' \
    shuffle --stage gather --work ww --part 0/2 -o x.tks
# each STAGE 'NEXT [OPTION...]' COMMAND...: after STAGE of both, NEXT is refused
each() {
    rm -rf we
    "${@:3}" --stage $1 --work we --part 0/2 all.tks && "${@:3}" --stage $1 --work we --part 1/2 some.tks
    # shellcheck disable=SC2086
    refuses "  ${*:3}, $2" "we/$1.1-of-2: its stream was made with other options than that of another part" \
        "${@:3}" --work we --stage $2
}
each sign 'group --part 0/2' dedup -q --exact
each sign 'group --part 0/2' dedup -q --near
each sign 'group --part 0/2' dedup -q --substring 20
each rank cut choose -q --top 50% --by length
each count plan pack -q --length 64
each count mix shuffle -q --mix a=1
each count cut shuffle -q --max-tokens 1000
check "  outside of a job they may be joined" shell 'shuffle -q -o x.tks all.tks some.tks'
