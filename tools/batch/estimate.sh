# shellcheck shell=sh disable=SC2154
# estimate.sh - sluice-batch: with --dry-run --sample-parts K, tells what all parts will take. Sourced by sluice-batch.
#
# The first K parts of the text go through all tasks in a temporary folder, with the recipe's threads and memory. There
# tokenize has the parts of the recipe ($SLUICE_BATCH_OF, see chains.awk), and all other stages K parts and ranges. So a part of the sample is as large as
# one of the job, and N parts take N/K of the processor time and of the files. A task of one part, which reads what all
# parts wrote, is taken to grow with them.

# sample K: runs the sample in $sampled.
sample() {
    n=$(value parts)
    ! given set || die "--sample-parts: the recipe reads sets, all of them in one part"
    [ "$1" -le "$n" ] || die "--sample-parts $1: the recipe has only parts = $n"
    under=$(value tmpdir "${TMPDIR:-/var/tmp}")
    sampled=$(mktemp -d "$under/sluice-batch.XXXXXX") || exit 1
    mkdir "$sampled/other"
    { # what options write goes to the sample's folder; they have what follows from extends and index
        grep -Ev "^(extends|alone|index|parts|keep|slurm|queue|dedup|choose|tokenize|decompose|pack|shuffle) =" "$recipe"
        printf 'parts = %s\n' "$1"
        for step in $step_list; do
            program_of "$step"
            given "$program" || continue
            printf '%s = %s\n' "$program" "$(to="$sampled/other/$step" sample=1 awk -f "$share/words.awk" -f "$share/options.awk" \
                "$scratch/facts.$program" - <"$scratch/options.$step" | sed -n 's/^W //p')"
        done
    } >"$sampled/recipe"
    (cd "$cwd" && SLUICE_BATCH_OF=$n "$self" --local 1 "$sampled/recipe" "$sampled/out") >"$sampled/log" 2>&1 ||
        die "the sample: $(tail -n 1 "$sampled/log")"
}
# estimate K: prints the table, as comments of the script that --dry-run prints.
estimate() {
    sample "$1"
    read_units
    at=$OUT
    while [ ! -e "$at" ]; do at=${at%/*} at=${at:-/}; done
    {
        stages | while read -r s _; do
            [ "$s" = report ] || echo "L $s $(most "$s" time -) $(most "$s" memory -)"
        done
        printf '%s\n' "$chain_list"
        du --apparent-size -sk "$sampled/out/work" "$sampled/out/shards" "$sampled/out/stream" 2>/dev/null | sed 's/^/B /'
        df -Pk "$at" | sed -n '2s/^/F /p'
        find "$sampled/out/stats" -name '*.json' -exec grep -H -E '^ *"(seconds|cpu_seconds|peak_rss_bytes|input_bytes)":' {} + |
            sed 's|.*/\([^/]*\)\.\([0-9]*\)\.json:|V \1 \2 |; s/[",:]//g'
        grep -A 3 '^ *"tokens"' "$sampled"/out/stats/tokenize.*.json | sed -n 's/.*"out": \([0-9]*\).*/V tokenize 0 tokens \1/p'
    } | awk -v of="$(value parts)" -v parts="$1" -v keep="$(value keep all)" -f "$share/units.awk" -f "$share/estimate.awk"
}
