# status.awk - sluice-batch: run with units.awk and facts.awk; prints a run as a table for people, then lines "FAILED STAGE PART HOST
# WHY".
# Lines "L STAGE I" after the facts name parts that have a log. Tokens are the larger of the tokens that the finished
# parts read and wrote.
$1 == "L" && ($2 in at) { logged[at[$2], $3] = 1 }
END {
    printf "%-18s %6s %6s %7s %6s %6s %8s %9s  %s\n", "stage", "parts", "done", "running", "queued", "failed", "tokens", "tokens/s",
        "time left"
    for (k = 1; k <= ns; k++) {
        done = running = queued = failed = tokens = busy = from = to = 0
        for (p = 0; p < n[k]; p++) {
            split(line[k, p], f, " ") # P STAGE PART WHAT BEGAN ENDED TOKENS STOPS HOST JOB PROCESS STATUS
            w = what[k, p]
            if (w == "done") {
                done++
                tokens += f[7]
                busy += f[6] - f[5]
                from = !from || f[5] < from ? f[5] : from
                to = f[6] > to ? f[6] : to
            } else if ((k, p) in job) {
                if (pd[k, p]) queued++; else running++
                dangling += never[k, p]
            } else if (w == "running" && unknown && f[10] != "-")
                running++
            else if (w != "") {
                failed++
                bad[++n_bad] = "FAILED " f[2] " " f[3] " " f[9] " " (w == "failed" ? f[12] > 128 ? "killed by signal " f[12] - 128 : \
                    "exit status " f[12] : w == "stopped" ? "stopped after " clock(f[6] - f[5]) : \
                    "ended without a word: killed, cancelled, past its time, or its node failed") \
                    (unknown && f[10] != "-" ? "; or it is queued again" : "")
            } else if ((k, p) in logged && !unknown) { # what Slurm could not start, it has written there
                failed++
                bad[++n_bad] = "FAILED " s[k] " " p " - ended before it began"
            } else
                idle++
        }
        rate = to > from ? tokens / (to - from) : tokens
        left = done && running ? clock((n[k] - done) * (busy / done) / running) : ""
        if (left != "") { now_left = left; now_stage = s[k] }
        printf "%-18s %6d %6d %7s %6s %6s %8s %9s  %s\n", s[k], n[k], done, running ? running : "", queued ? queued : "",
            failed ? failed : "", tokens ? human(tokens) : "", tokens ? human(rate) : "", left
        printf "%s", with[k]
        all += n[k]; all_done += done; all_running += running; all_queued += queued; all_failed += failed
    }
    printf "%d of %d parts done", all_done, all
    if (all_running) printf ", %d running", all_running
    if (all_queued) printf ", %d queued", all_queued
    if (all_failed) printf ", %d failed", all_failed
    if (idle) printf ", %d %s", idle, unknown ? "queued or not submitted" : "not submitted"
    if (now_left != "") printf "; about %s left in %s", now_left, now_stage
    print ""
    if (unknown)
        print "squeue does not answer: parts that run here may have ended without a word"
    else if (all_failed && !all_running)
        print "'sluice-batch resume' submits again what failed and what waited for it"
    else if (dangling)
        print dangling " parts wait for what has failed; 'sluice-batch resume' replaces them"
    for (i = 1; i <= n_bad; i++)
        print bad[i]
}
