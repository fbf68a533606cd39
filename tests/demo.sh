#!/bin/sh
# demo.sh: the whole line on real text, in a minute or two. `make demo` runs it.
#
#   usage: tests/demo.sh [FOLDER]        (default: demo, made anew)
#
# Takes text that is on any Debian machine (documentation, manual pages, headers, scripts),
# writes it as JSON lines, tokenizes it with the built-in vocabulary, drops duplicates, cuts
# documents into powers of two, packs what is left over, shuffles, and writes WebDataset
# shards; then looks at them and balances the books of every program.
#
# Needs the programs (O=build says where, PROGRAM_PREFIX how they are called) and what a
# minimal Debian has: sh, find, sort, gzip, perl-base.

set -eu
LC_ALL=C
export LC_ALL

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
dir=${1:-demo}
bin=${O:-build}/bin/${PROGRAM_PREFIX:-}
start=$(date +%s)

die() {
    echo "demo: $*" >&2
    exit 1
}

step() {
    printf '\n== %s\n' "$*"
}

# Prints a command as one could type it, and runs it.
show() {
    echo "\$ $*"
    "$@"
}

for p in tokenize dedup choose decompose pack shuffle forget schedule inspect; do
    [ -x "$bin$p" ] || [ "${DEMO_TEXT_ONLY:-0}" = 1 ] ||
        die "no $bin$p: run make first (O=FOLDER where the build is elsewhere)"
done
case $dir in
/ | . | .. | "$HOME" | "$root") die "$dir: not a folder to write a demo into" ;;
esac
if [ -e "$dir" ]; then
    # Only what an earlier demo made is removed.
    [ -e "$dir/.sluice-demo" ] || [ -z "$(ls -A "$dir")" ] ||
        die "$dir is not empty, and no earlier demo made it"
    rm -rf "$dir/shards" "$dir/stats" "$dir"/corpus.jsonl* "$dir/packed.tks" "$dir/schedule.txt"
fi
mkdir -p "$dir/stats"
: >"$dir/.sluice-demo"

# ---- text -----------------------------------------------------------------------------

step "Real text from this machine, as JSON lines"

echo "looks for documentation, manual pages and code below /usr, some seconds"

# One line a file: domain, size in bytes, path.
files() {
    domain=$1
    shift
    find "$@" -printf "$domain\t%s\t%p\n" 2>/dev/null || :
}
{
    files docs /usr/share/common-licenses /usr/share/doc -type f -size -3000k \( \
        -name copyright -o -name 'README*' -o -name '*.txt' -o -name '*.txt.gz' \
        -o -name 'NEWS*' -o -name 'changelog*' -o -name 'FAQ*' -o -path '*licenses/*' \)
    files manual /usr/share/man -type f -name '*.[1-9]*.gz'
    files code /usr/include /usr/lib/gcc /usr/share/perl /usr/share/perl5 /usr/lib/python3 \
        /usr/lib/python3.* /usr/lib/*/perl-base /usr/lib/*/perl /usr/share/bash-completion \
        -type f -size -3000k \( -name '*.h' -o -name '*.hpp' -o -name '*.pm' \
        -o -name '*.pl' -o -name '*.py' -o -path '*completions/*' \)
} | sort -t "$(printf '\t')" -k1,1 -k3 >"$dir/files.tsv"
echo "takes up to 36 MB of text from $(wc -l <"$dir/files.tsv") files, kind by kind:"

# shellcheck disable=SC2016  # Perl's variables, not the shell's
pack_text='
use strict; use warnings;
my %budget = (docs => 10e6, manual => 8e6, code => 18e6);   # bytes of text a domain
my (%list, %total, %n, %bytes);
while (<STDIN>) {
    chomp;
    my ($domain, $size, $path) = split /\t/, $_, 3;
    push @{$list{$domain}}, $path;
    $total{$domain} += $path =~ /\.gz$/ ? 4 * $size : $size;
}
# Well-formed UTF-8 (Unicode, table 3-7), without NUL.
my $utf8 = qr/[\x01-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]
    |[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]
    |\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}/x;
my %short = ("\n" => "n", "\t" => "t", "\r" => "r", "\"" => "\"", "\\" => "\\");
sub quote {
    my $s = shift;
    $s =~ s/([\x00-\x1f"\\])/$short{$1} ? "\\$short{$1}" : sprintf "\\u%04x", ord $1/ge;
    return "\"$s\"";
}
for my $domain (sort keys %list) {
    ($n{$domain}, $bytes{$domain}) = (0, 0);
    printf STDERR "%-8s", $domain;
    my $every = 1 + int($total{$domain} / $budget{$domain});
    for (my $i = 0; $i < @{$list{$domain}}; $i += $every) {
        my $path = $list{$domain}[$i];
        my $f;
        open $f, "-|", "gzip", "-dc", $path or next if $path =~ /\.gz$/;
        open $f, "<", $path or next if $path !~ /\.gz$/;
        binmode $f;
        my $s = do { local $/; <$f> };
        close $f;
        next if !defined $s || length $s < 64 || length $s > 8e6;
        if ($domain eq "manual") {                          # out with the macros
            next if $s =~ /\\[(\[][:\x27`^~,o\/][A-Za-z]/;      # accents written as escapes
            $s =~ s/^[.\x27]\s*\\".*\n//mg;
            $s =~ s/^\.(?:[A-Z][A-Za-z]?|nf|fi|br|sp|ft|in|ad|nh|hy|de|ds|nr|if|ie|el)\b ?//mg;
            $s =~ s/\\f(?:\[\w*\]|\(..|.)//g;
            $s =~ s/\\\((?:[lr]q|dq)/"/g;
            $s =~ s/\\\(../-/g;
            $s =~ s/\\([-&|^ e])/$1 eq "-" ? "-" : $1 eq "e" ? "\\" : ""/ge;
        }
        pos($s) = 0;
        1 while $s =~ /\G(?:[\x01-\x7f]++|(?:$utf8){1,999}+)/gc;
        next if pos($s) != length $s;
        next if $path !~ /\A[\x20-\x7e]*\z/;
        print "{\"id\": ", quote($path), ", \"domain\": \"$domain\", \"text\": ",
            quote($s), "}\n";
        $n{$domain}++;
        $bytes{$domain} += length $s;
        last if $bytes{$domain} > $budget{$domain};
    }
    printf STDERR " %6d documents %8.1f MB\n", $n{$domain}, $bytes{$domain} / 1e6;
}
'
if command -v zstd >/dev/null; then
    corpus=$dir/corpus.jsonl.zst
    perl -e "$pack_text" <"$dir/files.tsv" >"$dir/corpus.jsonl"
    zstd -q -3 --rm "$dir/corpus.jsonl" -o "$corpus"
else
    corpus=$dir/corpus.jsonl.gz
    perl -e "$pack_text" <"$dir/files.tsv" >"$dir/corpus.jsonl"
    gzip -f "$dir/corpus.jsonl"
fi
rm -f "$dir/files.tsv"
echo "$corpus: $(wc -c <"$corpus") bytes"
[ "${DEMO_TEXT_ONLY:-0}" = 1 ] && exit 0

# ---- the line -------------------------------------------------------------------------

step "Text to shards"
cat <<EOT
\$ ${bin}tokenize --id-field id --domain-field domain $corpus |
  ${bin}dedup | ${bin}decompose --label-token | ${bin}pack | tee $dir/packed.tks |
  ${bin}shuffle -o $dir/shards --format wds        (each with --stats FILE)
EOT
# No pipefail is needed: a program that fails leaves the end frame out, and the next one
# fails for want of it, down to the last.
run=$(date +%s)
"${bin}tokenize" --id-field id --domain-field domain --stats "$dir/stats/1-tokenize.json" \
    "$corpus" |
    "${bin}dedup" --stats "$dir/stats/2-dedup.json" |
    "${bin}decompose" --label-token --stats "$dir/stats/3-decompose.json" |
    "${bin}pack" --stats "$dir/stats/4-pack.json" |
    tee "$dir/packed.tks" |
    "${bin}shuffle" -o "$dir/shards" --format wds --stats "$dir/stats/5-shuffle.json" ||
    die "the line failed"
echo "$(($(date +%s) - run)) s"

step "The shards"
(cd "$dir/shards" && find . -type f | sort | head -n 40)
show "${bin}inspect" "$dir/shards"
show "${bin}inspect" --verify "$dir/shards"

step "A packed sequence: its documents and its text (its ids not shown)"
# The last of the stream, for pack's own bins come last.
"${bin}inspect" --records --text "$dir/packed.tks" >"$dir/records.jsonl"
echo "\$ ${bin}inspect --records --text $dir/packed.tks | tail -n 1"
tail -n 1 "$dir/records.jsonl" | sed 's/,"tokens":\[[^]]*\]//' | cut -c 1-1200
rm -f "$dir/records.jsonl"

step "The same tokens before and after the shuffle"
for what in "$dir/packed.tks" "$dir/shards"; do
    printf '%-18s %s\n' "$what" \
        "$("${bin}inspect" --json "$what" | grep -o '"checksum": *"[0-9a-f]*"')"
done | tee "$dir/stats/checksums"
[ "$(grep -o '"checksum": *"[0-9a-f]\{16,\}"' "$dir/stats/checksums" | sort | uniq -c | awk '{ print $1 }')" = 2 ] ||
    die "the checksums differ"

step "What a trainer is told"
show "${bin}schedule" --curriculum grow-p2 -o "$dir/schedule.txt" -f "$dir/shards"
cut -c 1-300 "$dir/schedule.txt"

# ---- the books ------------------------------------------------------------------------

step "The books: in + created + repeated + padding = out + dropped"
"${bin}inspect" --merge-stats --table "$dir"/stats/?-*.json

step "Done in $(($(date +%s) - start)) s: $dir/shards"
