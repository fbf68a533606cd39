# chains.awk - sluice-batch: which stages run together. Of lines "STEP STAGE JOBS READS WRITES FILES", as flows() has them, and
# n parts, lines
#   T TASK PARTS AFTER      a task: programs joined by pipes, an array of so many parts; see list_stages()
#   R TASK NAME STEP STAGE JOBS FROM TO BASE NEW RANGES STREAM     a stage of it, in the order of the pipe; see perform()
#
# A stream goes to its reader through a pipe, part by part, and is not stored. Where several stages read it, a stage that
# only passes a stream on (decompose, a filter) runs again for each of them; what another one writes, text made tokens or
# bins, is stored. So part I of a step is stream I of the step before, and a step that writes twice doubles the parts.
# Ranges stay as many as the recipe's parts. A task is called by the first of its stages that no task before it has.
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
    jobs[rows] = $3 == "one" ? 1 : $3 == "ranges" || steps == 1 ? n : before
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
# Of a stream that goes on to another step: how many tasks would read it.
function readers(w,    r, many) {
    for (r = 1; r <= rows; r++)
        if (at[r] == at[w] + 1 && reads[r])
            many += passes(r) ? readers(r) : 1
    return many
}
function goes_on(r) { return writes[r] && at[r] < steps }
function passes(r) { return goes_on(r) && reads[r] && !((at[r], stage[r]) in wanted) }
function stored(r) { return goes_on(r) && !passes(r) && readers(r) > 1 }
# The tasks that end in row r, behind rows that `rest` names; from: what the first of those reads.
function tasks(r, rest, base,    w, all) {
    for (w = 1; w <= rows && reads[r]; w++)
        if (writes[w] && at[w] == at[r] - 1 && !stored(w)) {
            tasks(w, r " " base + first[w] " " rest, 0)
            all = 1
        }
    if (!all)
        task(r " " base " " rest)
}
function task(list,    row, i, m, called, r, same, from, to, few) {
    m = split(list, row, " ") - 1
    for (i = 1; i <= m && called == ""; i += 2)
        if (!((row[i], row[i + 1]) in done))
            called = name[row[i]]
    r = row[1]
    same = reads[r] && last != "" && at[r] == at[last] + 1 && stored(last) && jobs[last] == jobs[r]
    print "T", called, jobs[r], T++ ? (same ? "same" : "all") : "-"
    for (i = 1; i <= m; i += 2) {
        r = last = row[i]
        from = i > 1 ? "pipe" : reads[r] ? "stored" : "-"
        to = i < m - 1 ? "pipe" : kind[r]
        few = ranges[r + 1] && !ranges[r] && !one[r] && jobs[r] != n
        print "R", called, name[r], step[r], stage[r], one[r] ? 0 : jobs[r], from, to, row[i + 1], ((r, row[i + 1]) in done) ? 0 : 1, \
            few ? n : 0, first[r] + 0
    }
    for (i = 1; i <= m; i += 2)
        done[row[i], row[i + 1]] = 1
}
END {
    for (k = 1; k <= rows; k++)
        if (!goes_on(k) || stored(k))
            tasks(k, "", 0)
    print "T report 1 all"
    print "R report report report - 0 - - 0 1 0 0"
}
