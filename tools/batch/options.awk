# options.awk - sluice-batch: run with words.awk; checks by a program's --help whether words are its options.
# Run as: awk -f options.awk HELP -   with the line of words on standard input; prints the first error, in one line.
# Abbreviated names are refused, because sluice-batch looks for some options by name; so are operands, because inputs
# come from the recipe.
function bad(why) {
    print why
    exit
}
BEGIN {
    # Without {part}, each part would write the same file.
    split("rejects holdout-output pairs report", list, " ")
    for (i in list)
        apart[list[i]] = 1
}
FILENAME != "-" {
    # "  -t, --tokenizer=TOKENIZER  ...", "  -z, --zstd[=LEVEL] ...", "      --no-vocab  ..."
    if (/^ ? ? ? ? ? ?-/ && match($0, /--[a-z0-9-]+/)) {
        name = substr($0, RSTART + 2, RLENGTH - 2)
        kind = substr($0, RSTART + RLENGTH, 1)
        takes[name] = kind == "=" ? "value" : kind == "[" ? "perhaps" : "nothing"
        if (match($0, /^ *-[A-Za-z],/))
            letter[substr($0, RLENGTH - 1, 1)] = name
    }
    next
}
{
    n = words($0)
    for (i = 1; i <= n; i++) {
        w = word[i]
        name = ""
        if (w ~ /^--[a-z]/) {
            name = substr(w, 3)
            at = index(name, "=")
            value = at ? substr(name, at + 1) : ""
            name = at ? substr(name, 1, at - 1) : name
            if (!(name in takes))
                bad("--" name " is no option; write them in full, --help lists them")
            if (!at && takes[name] == "value") {
                if (i == n)
                    bad(w " wants a value")
                value = word[++i]
            }
        } else if (w ~ /^-[A-Za-z]/) {
            for (j = 2; j <= length(w) && takes[name] != "perhaps"; j++) {
                name = letter[substr(w, j, 1)]
                if (name == "")
                    bad(w " is no option; --help lists them")
                if (name ~ /^(output|threads|memory|tokenizer|help|version)$/)
                    bad(w " is set by sluice-batch itself")
            }
        } else
            bad("\"" w "\" is no option; what is read is the recipe's")
        if ((name in apart) && value !~ /\{part\}/)
            bad("--" name " " value ": each part writes one of its own; {part} in the name stands for its number")
    }
}
