# graph.awk - sluice-batch: tells which parts of a folder are made again. Run as
#   awk -f graph.awk OLD NEW FLOWS STATES DIFFERS CHANGED FILES
# with the tasks of the recipe in the folder and of the new one as structure() prints them, the stages of the new one, the lines
# of all parts (see book()), lines "TASK I WHY" of parts whose reports are those of other runs, the names of the stages whose
# record has changed, and the names of the files in OUT/work and OUT/stream; prints
#   A TASK I       a part of OLD that was begun, and whose files and line go
#   W TASK N WHY   N parts of the task were made otherwise, the first for this reason
#   G TASK         files that its parts made are read again, and were removed
#   K TASK N       N parts of the task stay done
#   M TASK         parts of it are to be made
# A part is made again if its report is that of another run, and so is what reads it. A part that has not come to its end
# has no report; it goes if the record of a stage has changed. A part whose files were removed stays done until a part that
# is to be made reads them; what was made from them stays, as they will have the same bytes.
FNR == 1 { for (which++; FILENAME != ARGV[which]; which++) ; }
which < 3 {
    if ($1 == "T") {
        name[which, ++many[which]] = $2
        parts[which, many[which]] = $3
        after[many[which]] = $4
    }
    text[which, many[which]] = text[which, many[which]] $0 "\n"
}
which == 2 && $1 == "R" {
    row[++rows] = $0
    at_row[rows] = many[2]
    if ($7 == "set")
        set[many[2]] = 1
    if ($9 && $7 ~ /^work\//)
        maker[$4, "-"] = maker[$4, "-"] " " rows
    if ($9 && $5 != "-")
        maker[$4, $5] = rows
}
which == 3 {
    if ($1 != last)
        before[$1] = last
    last = $1
    reads[$1, $2] = $6
}
which == 4 { begun[$1, $2] = 1; done[$1, $2] = $3 == "done" }
which == 5 && !(($1, $2) in why) {
    why[$1, $2] = $0
    sub(/^[^ ]+ [^ ]+ /, "", why[$1, $2])
}
which == 6 { changed[$1] = 1 }
which == 7 { there[$0] = 1 }
# of_others(K, P): whether a part was made by another run, or is what one left that did not come to its end.
function of_others(k, p) { return (name[2, k], p) in why || (other[k] && begun[name[2, k], p] && !done[name[2, k], p]) }
function stays(k, p) { return done[name[2, k], p] && !bad[k, p] }
# need(WHAT, K): whether a file of a stage, or of the stream of a step, is gone that the parts that stay have made; they are
# made again then. They come before task K.
function need(what, k,    list, n, j, f, p, i, file) {
    n = split(maker[what], list, " ")
    for (j = 1; j <= n; j++) {
        split(row[list[j]], f, " ") # R TASK NAME STEP STAGE FROM TO BASE NEW JOBS FIRST
        k = at_row[list[j]]
        for (p = 0; p < parts[2, k]; p++) {
            if (!stays(k, p) || k > same)
                continue
            i = f[8] + p
            file = what ~ SUBSEP "-$" ? f[7] "/" (f[11] + i) ".tks" : "work/" f[4] ".stages/" f[5] (f[10] == "-" ? "" : "." i "-of-" f[10])
            if (!(file in there)) {
                bad[k, p] = gone[k] = 1
                open[k] = 1
            }
        }
    }
}
END {
    dull = "another share of|come to its end$|^its set" # what follows from other reasons
    while (same < many[1] && same < many[2] && text[1, same + 1] == text[2, same + 1])
        same++
    for (r = 1; r <= rows; r++) {
        split(row[r], f, " ")
        if (f[9] && (f[3] in changed))
            other[at_row[r]] = 1
        for (p = 0; f[7] == "stream" && !ENVIRON["SLUICE_BATCH_READS"] && p < parts[2, at_row[r]]; p++) { # see command() in chains.awk
            file = sprintf("stream/%0" ENVIRON["digits"] "d.tks", f[11] + f[8] + p)
            if (done[f[2], p] && !(file in there) && !((f[2], p) in why))
                why[f[2], p] = file ", which it writes, is not there"
        }
    }
    for (k = 1; k <= many[2]; k++)
        for (p = 0; p < parts[2, k]; p++)
            if (set[k] && of_others(k, p))
                new_set = 1 # a set is one thing
    for (k = 1; k <= many[2]; k++) {
        t = name[2, k]
        for (p = 0; p < parts[2, k]; p++) {
            own = of_others(k, p) || (set[k] && new_set)
            bad[k, p] = own || k > same || (after[k] == "same" ? stale[k - 1, p] : any[k - 1])
            stale[k, p] = bad[k, p] # also of a part that was not begun: its readers may have been
            any[k] = any[k] || stale[k, p]
            if (own && begun[t, p]) {
                w = (t, p) in why ? why[t, p] : done[t, p] ? "its set is made again" : "was begun before the change, and did not come to its end"
                if (!count[k]++ || (first[k] ~ dull && w !~ dull))
                    first[k] = w
            }
            if (!stays(k, p))
                open[k] = 1
        }
    }
    if (same < many[1] && same < many[2]) {
        k = same + 1
        if (name[1, k] == name[2, k]) {
            count[k] = parts[2, k]
            first[k] = parts[1, k] != parts[2, k] ? "was made in " parts[1, k] " parts, now " parts[2, k] : "stands between other steps now"
        }
    }
    for (k = many[2]; k > 0; k--)
        for (r = 1; r <= rows; r++) {
            if (at_row[r] != k || !open[k])
                continue
            split(row[r], f, " ")
            if (f[6] == "stored")
                need(before[f[4]] SUBSEP "-", k)
            m = split(reads[f[4], f[5]], list, ",")
            for (i = 1; i <= m; i++)
                if (list[i] != "-")
                    need(f[4] SUBSEP list[i], k)
        }
    for (k = many[1]; k > 0; k--)
        for (p = 0; p < parts[1, k]; p++)
            if (begun[name[1, k], p] && (k > same || bad[k, p]))
                print "A", name[1, k], p
    for (k = 1; k <= many[2]; k++) {
        kept = 0
        for (p = 0; p < parts[2, k]; p++)
            kept += stays(k, p)
        if (count[k])
            print "W", name[2, k], count[k], first[k]
        if (gone[k])
            print "G", name[2, k]
        if (kept)
            print "K", name[2, k], kept
        if (open[k])
            print "M", name[2, k]
    }
}
