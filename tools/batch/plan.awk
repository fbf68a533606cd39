# plan.awk - sluice-batch: run with facts.awk; prints the steps by which no part is missing, one a line:
#   C ARRAY ELEMENTS                 cancel these elements: they wait for a failed part, or are submitted anew
#   G NUMBER STAGE BASE ELEMENTS DEPENDENCIES    submit; @NUMBER@ stands for the array of that group, "-" for none
#   R DEPENDENCIES                   more parts are missing than LIMIT allows in the queue: continue after these
# Elements of one group have the same base and the same dependencies. An older array may already have failed parts, and
# afterok would never start after these. So afterany waits for it; if a part is then still missing, the program that
# reads its file reports this.
END {
    for (k = 1; k <= ns; k++)
        for (p = 0; p < n[k]; p++) {
            if (what[k, p] == "done")
                continue
            broken = dep[k] == "all" ? fresh[k - 1] : dep[k] == "same" ? ((k - 1, p) in new) : 0
            if ((k, p) in job) {
                if (job[k, p] == "-" || !pd[k, p] || !(never[k, p] || broken))
                    continue
                c = "C" job[k, p]
                if (!(c in end))
                    cancel[++nc] = job[k, p]
                add(c, element[k, p])
                n_queued--
            }
            new[k, p] = 1
            fresh[k] = 1
        }
    for (k = 1; k <= ns; k++) {
        if (!fresh[k])
            continue
        waits = ""
        if (dep[k] == "all") {
            for (g = 1; g <= ng; g++)
                if (stage[g] == k - 1)
                    waits = waits "afterok:@" g "@,"
            for (p = 0; p < n[k - 1]; p++)
                if (what[k - 1, p] != "done" && !((k - 1, p) in new) && !(k SUBSEP job[k - 1, p] in seen)) {
                    seen[k, job[k - 1, p]] = 1
                    waits = waits "afterany:" job[k - 1, p] ","
                }
        }
        for (p = 0; p < n[k]; p++) {
            if (!((k, p) in new))
                continue
            w = waits
            if (dep[k] == "same")
                w = ((k - 1, p) in new) ? "aftercorr:@" group[k - 1, p] "@," : \
                    what[k - 1, p] == "done" ? "" : "aftercorr:" job[k - 1, p] ","
            base = int(p / chunk) * chunk
            id = k SUBSEP base SUBSEP w
            if (!(id in number)) {
                number[id] = ++ng
                stage[ng] = k
                from[ng] = base
                behind[ng] = w
            }
            group[k, p] = number[id]
            size[number[id]]++
            add(number[id], p - base)
        }
    }
    for (i = 1; i <= nc; i++)
        print "C", cancel[i], array("C" cancel[i])
    for (g = 1; g <= ng; g++) {
        n_queued += size[g]
        if (g > 1 && n_queued > limit) {
            for (i = 1; i < g; i++)
                all = all (i > 1 ? "," : "") "afterok:@" i "@"
            print "R", all
            exit
        }
        sub(/,$/, "", behind[g])
        print "G", g, s[stage[g]], from[g], array(g), behind[g] == "" ? "-" : behind[g]
    }
}
