# recipe.awk - sluice-batch: prints a recipe's lines in a fixed order without comments, or one line that names an error.
# Run as: file=NAME [stages=LIST] [lines=FILE] awk -f words.awk -f recipe.awk <NAME; FILE gets lines "KEY LINE", with
# the modes of dedup as keys.
function bad(why) { bad_at(NR, why) }
function bad_at(line, why) {
    printf "%s\n", printable("sluice-batch: " file ":" line ": " why) >"/dev/stderr"
    failed = 1
    exit 1
}
# above(A, B): compares two numbers in digits, which are too large for awk.
function above(a, b) {
    sub(/^0+/, "", a)
    return length(a) != length(b) ? length(a) > length(b) : ("x" a) > ("x" b)
}
BEGIN {
    file = ENVIRON["file"]
    order = "extends alone set input tokenizer parts seed tokenize dedup choose decompose pack shuffle index"
    limits = "threads memory time partition account tmpdir slurm queue keep"
    n = split(order " " limits, key, " ")
    for (i = 1; i <= n; i++)
        known[key[i]] = 1
    split("set input dedup slurm", list, " ")
    for (i in list)
        many[list[i]] = 1
    split(limits, list, " ")
    for (i in list)
        limit[list[i]] = 1
    split("tokenize dedup choose decompose pack shuffle inspect", list, " ")
    for (i in list)
        of[list[i]] = program[list[i]] = 1
    # The programs name the stages, which are not known at first; until then any name may be a stage.
    any = ENVIRON["stages"] == ""
    split("near exact substring report " ENVIRON["stages"], list, " ")
    for (i in list)
        of[list[i]] = 1
}
{ sub(/^[ \t]*#.*/, ""); gsub(/^[ \t]+|[ \t\r]+$/, "") }
$0 == "" { next }
{
    at = index($0, "=")
    if (!at)
        bad("\"" $0 "\" is not of the form key = value")
    k = substr($0, 1, at - 1)
    v = substr($0, at + 1)
    gsub(/[ \t]+$/, "", k)
    gsub(/^[ \t]+/, "", v)
    domain = ""
    if (k ~ /^input\./) { # all lines of inputs are one list, in their order
        domain = substr(k, 6)
        k = "input"
    }
    last = k
    sub(/.*\./, "", last)
    in_words = k in program || last == "slurm"
    if (in_words)
        v = uncommented(v)
    else if (v ~ /^#/)
        v = ""
    else
        sub(/[ \t]#.*/, "", v)
    gsub(/[ \t]+$/, "", v)
    for_what = substr(k, 1, length(k) - length(last) - 1)
    if (!(k in known) && !(k ~ /^[^.]+\.[^.]+$/ && (last in limit) && last !~ /^(queue|keep)$/))
        bad("unknown key \"" k "\"")
    if (!(k in known) && !any && !(for_what in of))
        bad("unknown key \"" k "\": there is no stage or program \"" for_what "\"")
    if ((k in said) && !(last in many))
        bad(k " was given in line " said[k] " already")
    if (domain == "." || domain ~ /\t/)
        bad("input" domain ": expected input.DOMAIN = a file or folder")
    if (v == "" && !(k in program))
        bad(k " has no value")
    if ((k == "parts" || last == "threads" || k == "queue") && v !~ /^[1-9][0-9]*$/)
        bad(k " = " v ": a number from 1 on")
    if (k == "parts" && v + 0 > 100000)
        bad("parts = " v ": 100000 are the most")
    if ((last == "threads" && v + 0 > 1024) || (k == "queue" && v + 0 > 1000000000))
        bad(k " = " v ": " (k == "queue" ? "1000000000" : "1024") " are the most")
    if (k == "seed" && (v !~ /^[0-9]+$/ || above(v, "18446744073709551615")))
        bad("seed = " v ": a number from 0 to 18446744073709551615")
    if (k ~ /^(alone|index)$/ && v != "yes")
        bad(k " = " v ": yes; leave the line out for no")
    if (k == "keep" && v !~ /^(all|needed)$/)
        bad("keep = " v ": all or needed")
    if (last == "memory" && v !~ /^[1-9][0-9]*[KMGT]$/)
        bad(k " = " v ": a size like 8G")
    if (last == "memory" && v * 1024 ^ index("KMGT", substr(v, length(v))) > 2 ^ 60)
        bad(k " = " v ": 1048576T are the most")
    if (in_words) {
        w = words(v)
        if (w < 0)
            bad(k ": a quote is not closed")
        if (match(v, /\\+$/) && RLENGTH % 2)
            bad(k ": nothing stands behind the last backslash; put a space there in quotes")
    }
    if (k == "dedup") {
        m = mode(v)
        if (m == "")
            bad("dedup = " v ": expected --exact, --near or --substring N, as the other modes do not work in parts")
        if (m in modes)
            bad("dedup --" m " was given in line " modes[m] " already")
        modes[m] = NR
    }
    for (i = 1; k in program && i <= w; i++)
        if (match(word[i], /^--(top|source-base|save-index)($|=)/))
            given[substr(word[i], 3, RLENGTH - 2 - (word[i] ~ /=/))] = NR
    said[k] = NR
    where = where (k == "dedup" ? m : k) " " NR "\n"
    text[k] = text[k] k domain " = " v "\n"
    if (!(k in known))
        special[++n_special] = k
}
END {
    if (failed)
        exit 1
    if (ENVIRON["lines"] != "")
        printf "%s", where >ENVIRON["lines"]
    from = said["input"] ? "input" : "set"
    if (!said[from] || !said["parts"]) {
        printf "sluice-batch: %s: no line \"%s = ...\"\n", printable(file), said[from] ? "parts" : "input" >"/dev/stderr"
        exit 1
    }
    split("extends input tokenizer tokenize", list, " ")
    for (i = 1; said["set"] && i in list; i++)
        if (said[list[i]])
            bad_at(said[list[i]], list[i] ": is for texts, and line " said["set"] " reads sets, which have tokens already")
    if (said["set"] && !(said["dedup"] + said["choose"] + said["decompose"] + said["pack"] + said["shuffle"]))
        bad_at(said["set"], "set: no line says what to do with it, as shuffle = ... does")
    if (said["index"] && !modes["near"] && !modes["exact"])
        bad_at(said["index"], "index = yes: there is no dedup --near or --exact, whose documents an index has")
    if (said["alone"] && !said["extends"])
        bad_at(said["alone"], "alone = yes: is for a recipe with extends = ...")
    if (said["extends"] && !said["alone"] && (given["top"] || modes["substring"]))
        bad_at(given["top"] ? given["top"] : modes["substring"], (given["top"] ? "choose --top" : "dedup --substring") \
            ": sees only the new documents, not those of the folder that is extended; write alone = yes if that is meant")
    if (said["extends"] && given["source-base"])
        bad_at(given["source-base"], "--source-base: follows from extends = ...; leave it out")
    if (said["index"] && given["save-index"])
        bad_at(given["save-index"], "--save-index: follows from index = yes; leave it out")
    for (i = 1; i <= n; i++)
        printf "%s", text[key[i]]
    for (i = 1; i <= n_special; i++)
        if (said[special[i]]) {
            printf "%s", text[special[i]]
            said[special[i]] = 0
        }
}
