# facts.awk - sluice-batch: collects the facts about a run from the lines that facts() in sluice-batch prints.
#   S STAGE PARTS AFTER       the stages in order
#   W STAGE WITH              another stage that runs in the same task
#   P ...                     the line of a part, see book() in sluice-batch
#   J ARRAY STAGE BASE        an array that was submitted: element E is part BASE + E
#   Q ARRAY ELEMENT STATE REASON   from the queue, including arrays of other users' runs
#   U                         the queue could not be read (then only status continues)
#   A STAGE I                 a part that is running here, or on another machine as its line shows
# Stages count from 1, parts from 0.
$1 == "S" { s[++ns] = $2; n[ns] = $3; dep[ns] = $4; at[$2] = ns }
$1 == "W" { with[at[$2]] = with[at[$2]] "  " $3 "\n" }
$1 == "P" { k = at[$2]; what[k, $3] = $4; line[k, $3] = $0 }
$1 == "J" && ($3 in at) { jstage[$2] = at[$3]; jbase[$2] = $4 }
$1 == "Q" && ($2 in jstage) && $4 != "CD" {
    k = jstage[$2]; p = $3 + jbase[$2]
    if (!((k, p) in job) || $4 != "PD") { job[k, p] = $2; element[k, p] = $3; pd[k, p] = $4 == "PD" }
    never[k, p] = $5 == "DependencyNeverSatisfied"
    n_queued++
}
$1 == "U" { unknown = 1 }
$1 == "A" { job[at[$2], $3] = "-" }
function add(g, x) {
    if ((g in end) && end[g] == x - 1) { end[g] = x; return }
    text[g] = expr(g) x
    first[g] = end[g] = x
}
function expr(g) { return (g in end) ? text[g] (end[g] > first[g] ? "-" end[g] : "") "," : "" }
function array(g) { x = expr(g); return substr(x, 1, length(x) - 1) }
