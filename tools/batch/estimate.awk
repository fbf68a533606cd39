# estimate.awk - sluice-batch: run with units.awk, by estimate(); prints what all `of` parts will take, after a sample of
# `parts`, as comments; with keep "needed" files between tasks go before the last ones come. Reads
#   L TASK TIME MEMORY   the limits of a task; - is none
#   T TASK PARTS AFTER, R TASK STAGE ...   the tasks of all parts and their stages, as chains.awk has them
#   V STAGE PART NAME VALUE      of a report of the sample
#   B KB FOLDER                  files of the sample
#   F ... KB ...                 the file system of OUT, as df has it
$1 == "L" { time[$2] = $3; memory[$2] = $4 }
$1 == "T" && $2 != "report" { task[++n] = $2; many[$2] = $3 }
$1 == "R" { stages[$2] = stages[$2] " " $3 }
$1 == "V" {
    if (!(($2, $3) in seen) && $4 == "seconds") {
        seen[$2, $3] = 1
        ran[$2]++
    }
    sum[$2, $4] += $5
    if ($5 + 0 > most[$2, $4])
        most[$2, $4] = $5 + 0
}
$1 == "B" { of_set = !/\/work$/; bytes[of_set] += $2 * 1024 * of / parts }
$1 == "F" { free = $5 * 1024 }
function over(is) { return is ? " !" : "" }
END {
    printf "# estimate, from a sample of %d of %d parts: %s tokens in %s of text\n", parts, of, \
        human(sum["tokenize", "tokens"]), human(sum["tokenize", "input_bytes"]) "B"
    printf "# %-18s %6s %9s %9s %7s %7s %11s\n", "task", "parts", "a part", "limit", "memory", "limit", "core hours"
    for (k = 1; k <= n; k++) {
        t = task[k]
        core = resident = wall = 0
        m = split(stages[t], s, " ")
        for (i = 1; i <= m; i++) {
            # A stage that runs again has the report of its first run. One that has two streams has the parts of both.
            core += sum[s[i], "cpu_seconds"] / ran[s[i]] * many[t] * (many[t] == 1 ? of / parts : 1)
            # The stages of a task are one process.
            if (most[s[i], "peak_rss_bytes"] > resident)
                resident = most[s[i], "peak_rss_bytes"]
            if (most[s[i], "seconds"] > wall)
                wall = most[s[i], "seconds"]
        }
        wall *= many[t] == 1 ? of / parts : 1
        total += core
        limit = amount(time[t])
        printf "# %-18s %6d %9s %9s %7s %7s %11s\n", t, many[t], clock(int(wall + 0.999)), (time[t] == "-" ? "" : clock(limit)) over(limit && wall > limit), \
            human(resident), memory[t] == "-" ? "" : memory[t] over(resident > amount(memory[t])), sprintf("%.2g", core / 3600)
    }
    printf "# in all %.2g core hours; files between tasks %s%sB, the result %sB; free there: %sB%s\n", total / 3600, keep == "all" ? "" : "at most ", human(bytes[0]), \
        human(bytes[1]), human(free), over(bytes[0] + bytes[1] > free)
}
