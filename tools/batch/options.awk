# options.awk - sluice-batch: run with words.awk; checks by a program's --help whether words are its options.
# Run as: awk -f options.awk HELP -   with the line of words on standard input; prints the first error, in one line.
# With to=PREFIX in the environment, for rehearse() and after such a check, prints "F OPTION FILE" for each file that an option names,
# and "W WORDS": the words for eval, with PREFIX.OPTION for outputs and without the options that depend on the text and
# its files. An index is left out unless $small is set.
# Abbreviated names are refused, because sluice-batch looks for some options by name; so are operands, because inputs
# come from the recipe.
function bad(why) {
    print why
    exit
}
BEGIN {
    to = ENVIRON["to"]
    # Without {part}, each part would write the same file.
    split("rejects holdout-output report histogram", list, " ")
    for (i in list)
        apart[list[i]] = output[list[i]] = 1
    split("pairs audit annotate", list, " ") # of dedup, which has them in one process only
    for (i in list)
        whole[list[i]] = 1
    output["save-index"] = 1
    split("mix mix-by mix-schedule max-tokens max-epochs batch-tokens domain-from domain-default spans-field on where fasttext ids-keep ids-drop urls-drop url-field member rules c4-lines", list, " ")
    for (i in list)
        of_text[list[i]] = 1
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
        if (name in whole)
            bad("--" name " needs all documents in one process, and a recipe runs dedup in stages; leave it out here, and give it to a dedup of its own")
        if (to != "")
            rehearse(w, value)
        else if ((name in apart) && value !~ /\{part\}/)
            bad("--" name " " value ": each part writes one of its own; {part} in the name stands for its number")
    }
    if (to != "")
        print "W " all
}
function rehearse(w, value) {
    if ((name in output) || name == "against")
        print "F", name, value
    if (name in output)
        all = all " --" name "=" quoted(to "." name)
    else if (name == "against")
        all = all " ${small:+--against=" quoted(value) "}"
    else if (!(name in of_text))
        all = all " " quoted(w) (name in takes && takes[name] == "value" && w !~ /=/ ? " " quoted(value) : "")
}
