# chains.awk - sluice-batch: decides which stages run together, and makes their command lines. Run as
#   awk -f words.awk -f chains.awk RECIPE -   with lines "STEP STAGE JOBS READS WRITES FILES", as flows() has them, on standard input;
# prints lines
#   T TASK PARTS AFTER      a task: programs that run as one line, an array of PARTS parts; see stages()
#   R TASK NAME STEP STAGE FROM TO BASE NEW JOBS FIRST<tab>COMMAND     a stage of the task, in the order of the line; see perform()
# FROM is "pipe", "stored", "sets" or "-"; TO is "pipe", the folder in OUT of the stream that the stage writes, "set" or "-".
# The stage's part is the task's part plus BASE, of JOBS, or "-" for one that all parts share. NEW is 1 if no earlier task has
# this stage. FIRST is the number of the first stream that it writes. COMMAND is for eval, with $bin, $prefix, $OUT and $part.
#
# A stream goes to its reader in one process, part by part, and is not stored. If several stages read a stream, a stage
# that only passes sequences on (choose, decompose, a filter) runs again for each of them; the streams of other stages (tokens,
# bins) are stored. So part I of a step reads stream I of the step before, and a step that writes two streams doubles
# the parts. The number of ranges stays the recipe's number of parts. A task has the name of its first stage that is in
# no earlier task. Sets are read by the first stage, which has one part for all of them.
FILENAME != "-" {
    key = substr($0, 1, index($0, " =") - 1)
    more = key in value ? value[key] "\n" : ""
    value[key] = more substr($0, length(key) + 4)
    if (key == "parts")
        n = value[key]
    has_domains = has_domains || key ~ /^input\./
    next
}
{
    rows++
    step[rows] = $1; stage[rows] = $2; reads[rows] = $4 == "reads"; kind[rows] = $5
    name[rows] = $1 ($2 == "-" ? "" : "-" $2)
    writes[rows] = $5 == "writes"
    if (rows == 1 || step[rows - 1] != $1) {
        before = streams
        streams = 0
        steps++
    }
    at[rows] = steps
    program[rows] = $1 ~ /^(near|exact|substring)$/ ? "dedup" : $1
    jobs[rows] = $3 == "one" || steps == 1 && "set" in value && $3 == "parts" ? 1 : $3 == "ranges" || steps == 1 ? n : before
    one[rows] = $3 == "one"
    ranges[rows] = $3 == "ranges"
    if (writes[rows]) {
        first[rows] = streams
        streams += jobs[rows]
    }
    files = split($6, list, ",")
    for (i = 1; i <= files && $6 != "-"; i++)
        wanted[steps, list[i]] = 1
}
# How many tasks would read a stream that goes on to another step.
function readers(w,    r, many) {
    for (r = 1; r <= rows; r++)
        if (at[r] == at[w] + 1 && reads[r])
            many += passes(r) ? readers(r) : 1
    return many
}
function goes_on(r) { return writes[r] && at[r] < steps }
function passes(r) { return goes_on(r) && reads[r] && !((at[r], stage[r]) in wanted) }
function stored(r) { return goes_on(r) && !passes(r) && readers(r) > 1 }
# The tasks that end in row r, followed by the rows of `rest`; base: the part base of row r.
function tasks(r, rest, base,    w, all) {
    for (w = 1; w <= rows && reads[r]; w++)
        if (writes[w] && at[w] == at[r] - 1 && !stored(w)) {
            tasks(w, r " " base + first[w] " " rest, 0)
            all = 1
        }
    if (!all)
        task(r " " base " " rest)
}
function task(list,    row, i, m, called, r, same, from, to, few, isnew) {
    m = split(list, row, " ") - 1
    for (i = 1; i <= m && called == ""; i += 2)
        if (!((row[i], row[i + 1]) in done))
            called = name[row[i]]
    r = row[1]
    same = reads[r] && last != "" && at[r] == at[last] + 1 && stored(last) && jobs[last] == jobs[r]
    print "T", called, jobs[r], T++ ? (same ? "same" : "all") : "-"
    for (i = 1; i <= m; i += 2) {
        r = last = row[i]
        from = i > 1 ? "pipe" : !reads[r] ? "-" : at[r] == 1 ? "sets" : "stored"
        to = i < m - 1 ? "pipe" : kind[r]
        few = ranges[r + 1] && !ranges[r] && !one[r] && jobs[r] != n
        isnew = !((r, row[i + 1]) in done)
        print "R", called, name[r], step[r], stage[r], from, to == "writes" ? folder(r) : to, row[i + 1], isnew + 0, one[r] ? "-" : jobs[r], first[r] + 0 "\t" \
            command(r, from, to, isnew, few, (m + 1) / 2)
    }
    for (i = 1; i <= m; i += 2)
        done[row[i], row[i + 1]] = 1
}
# The folder of a step's streams.
function folder(r) { return at[r] == steps ? "stream" : "work/" step[r] }
# limit(R, KEY, WITHOUT): the limit of the stage, else of its last word, else of its step, else of its program, else of
# all.
function limit(r, key, without,    i, m, of, last, its) {
    last = its = name[r]
    sub(/.*-/, "", last)
    sub(/-.*/, "", its)
    m = split(name[r] " " last " " its " " program[r], of, " ")
    for (i = 1; i <= m; i++)
        if ((of[i] "." key) in value)
            return value[of[i] "." key]
    return key in value ? value[key] : without
}
# budget(SIZE, MANY): the memory of each of MANY programs. Together they get three quarters of a job's memory, because
# buffers and stacks need more.
function budget(size, many,    unit) {
    unit = index("KMGT", substr(size, length(size)))
    return sprintf("%.0f", int(size * (unit == 1 ? 3 / 4 : 768 * 1024 ^ (unit - 2)) / many)) "K"
}
function command(r, from, to, isnew, few, together,    c, i, k, m, w, line) {
    c = "\"$bin/${prefix}" program[r] "\""
    m = split(value[program[r]], line, "\n")
    for (k = 1; k <= m; k++) {
        if (program[r] == "dedup" && mode(line[k]) != step[r])
            continue
        w = words(line[k])
        for (i = 1; i <= w; i++)
            c = c " " quoted(word[i])
    }
    c = c " --seed " ("seed" in value ? value["seed"] : 0) limits(r, together)
    if (isnew)
        c = c " --stats \"$OUT/stats/" name[r] ".$part.json\""
    if (!one[r])
        c = c " --part \"$part/" (step[r] == "tokenize" && ENVIRON["SLUICE_BATCH_OF"] ? ENVIRON["SLUICE_BATCH_OF"] : jobs[r]) "\""
    if (few)
        c = c " --ranges " n
    if (stage[r] != "-")
        c = c " --stage " stage[r] " --work \"$OUT/work/" step[r] ".stages\""
    if (step[r] == "tokenize")
        c = c ("tokenizer" in value ? " -t " quoted(value["tokenizer"]) : "") " --files-from \"$OUT/state/inputs\"" \
            (has_domains ? " --list-domains" : "")
    if (to == "set")
        c = c " --replace-set -o \"$OUT/shards\""
    if (to == "writes") # names of the last step's sort as numbers do
        c = c " -o \"$OUT/" folder(r) "/" (at[r] == steps ? "$(printf %0" length(n "0") "d $((" first[r] " + part)))" : \
            "$((" first[r] " + part))") ".tks\""
    if (program[r] == "dedup" && step[r] != "substring" && "index" in value)
        c = c " --save-index \"$OUT/" step[r] ".index\""
    m = from == "sets" ? split(value["set"], line, "\n") : 0
    for (k = 1; k <= m; k++)
        c = c " " quoted((line[k] ~ /^-/ ? "./" : "") line[k])
    if (from == "stored")
        c = c " \"$OUT/work/" before_step(r) "/" (stage[r] == "-" ? "{part}" : "$part") ".tks\""
    return c
}
function limits(r, together,    c, v) {
    c = " -T " limit(r, "threads", 1)
    if ((v = limit(r, "memory", "")) != "")
        c = c " -M " budget(v, together)
    if ((v = limit(r, "tmpdir", "")) != "")
        c = c " --tmpdir " quoted(v)
    return c
}
function before_step(r,    i) {
    for (i = r; at[i] == at[r]; i--)
        ;
    return step[i]
}
END {
    for (k = 1; k <= rows; k++)
        if (!goes_on(k) || stored(k))
            tasks(k, "", 0)
    if (ENVIRON["SLUICE_BATCH_OF"]) # a report wants all parts
        exit
    name[++rows] = step[rows] = "report"
    program[rows] = "inspect"
    stage[rows] = "-"
    one[rows] = 1
    print "T report 1 all"
    print "R report report report - - - 0 1 - 0\t" command(rows, "-", "-", 1, 0, 1) " --merge-stats -o \"$OUT/report.json\" -"
}
