# change.awk - sluice-batch: tells how far a changed recipe has the same tasks as the recipe before. Run as
#   awk -f change.awk OLD NEW FLOWS   with two lists of tasks as bare_tasks() prints them, and the stages of the new recipe;
# prints
#   S N                            both lists begin with the same N tasks
#   N TASK BY FOLDER COUNT NAMES   task number TASK of NEW reads COUNT files of OUT/work/FOLDER that task BY wrote; their names
#                                  match the regular expression NAMES
FNR == 1 { which++ }
which < 3 {
    if ($1 == "T") {
        many[which]++
        parts[which, many[which]] = $3
    }
    text[which, many[which]] = text[which, many[which]] $0 "\n"
}
which == 2 && $1 == "R" {
    rows++
    at[rows] = many[2]
    step[rows] = $4; stage[rows] = $5; from[rows] = $6
    if ($9 && $7 ~ /^work\//)
        wrote($4 SUBSEP "-")
    if ($9 && $5 != "-")
        wrote($4 SUBSEP $5)
}
which == 3 {
    if ($1 != last)
        before[$1] = last
    last = $1
    files[$1, $2] = $6
}
function wrote(what) {
    if (!(what in by))
        by[what] = many[2]
    count[what] += parts[2, many[2]]
}
function need(r, what, folder, names) {
    if (what in by)
        print "N", at[r], by[what], folder, count[what], names
}
END {
    while (n < many[1] && text[1, n + 1] == text[2, n + 1])
        n++
    print "S", n
    for (r = 1; r <= rows; r++) {
        if (from[r] == "stored")
            need(r, before[step[r]] SUBSEP "-", before[step[r]], "[0-9]+\\.tks")
        m = split(files[step[r], stage[r]], list, ",")
        for (i = 1; i <= m; i++)
            need(r, step[r] SUBSEP list[i], step[r] ".stages", list[i] "\\(\\.[0-9]+-of-[0-9]+\\)?")
    }
}
