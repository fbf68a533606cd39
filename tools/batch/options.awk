# options.awk - sluice-batch: run with words.awk; checks by what a program says of its options (--facts) whether words
# are its options. Run as: awk -f options.awk FACTS -   with the line of words on standard input; prints the first error, in
# one line.
# With to=PREFIX in the environment, for rehearse() and after such a check, prints "F OPTION FILE" for each output that an
# option names, "A" for an index, and "W WORDS": the words for eval, with PREFIX.OPTION for outputs and without the options
# that depend on the text and its files. An index is left out unless $against is set. With sample=1 too, all options stay,
# and outputs are PREFIX.OPTION.{part}.
# Abbreviated names are refused, because sluice-batch looks for some options by name; so are operands, because inputs
# come from the recipe.
function bad(why) {
    print why
    exit
}
BEGIN { to = ENVIRON["to"]; sample = ENVIRON["sample"] }
FILENAME != "-" {
    # {"option": "NAME", "letter": "X", "value": "one", "traits": "output of-text "}
    if (split($0, part, "\"") >= 16 && part[2] == "option") {
        takes[part[4]] = part[12]
        traits[part[4]] = " " part[16]
        if (part[8] != "")
            letter[part[8]] = part[4]
    }
    next
}
function is(name, trait) { return index(traits[name], " " trait " ") }
# by_line(NAME): which line of the recipe says it instead.
function by_line(name) {
    return name ~ /^part/ ? "; write parts = N" : name == "files-from" ? "; write input = FILE" : \
        name == "memory" ? "; write memory = SIZE" : name == "tmpdir" ? "; write tmpdir = DIR" : \
        name == "tokenizer" ? "; write tokenizer = FILE" : name ~ /^(seed|threads)$/ ? "; write " name " = N" : ""
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
            if (is(name, "of-runner"))
                bad(w " is set by sluice-batch itself" by_line(name))
            if (!at && takes[name] == "one") {
                if (i == n)
                    bad(w " wants a value")
                value = word[++i]
            }
        } else if (w ~ /^-[A-Za-z]/) {
            for (j = 2; j <= length(w) && takes[name] != "maybe"; j++) {
                name = letter[substr(w, j, 1)]
                if (name == "")
                    bad(w " is no option; --help lists them")
                if (is(name, "of-runner"))
                    bad(w " is set by sluice-batch itself" by_line(name))
            }
        } else
            bad("\"" w "\" is no option; what is read is the recipe's")
        if (is(name, "whole"))
            bad("--" name " needs all documents in one process, and a recipe runs dedup in stages; leave it out here, and give it to a dedup of its own")
        if (to != "")
            rehearse(w, value)
        # Without {part}, each part would write the same file; but one stage writes an index.
        else if (is(name, "output") && !is(name, "staged") && value !~ /\{part\}/)
            bad("--" name " " value ": each part writes one of its own; {part} in the name stands for its number")
        else if (is(name, "file") && value ~ /\{parts?\}/)
            bad("--" name " " value ": all parts of a recipe read the same files; leave {part} out")
    }
    if (to != "")
        print "W " all
}
function rehearse(w, value) {
    if (is(name, "output"))
        print "F", name, value
    if (is(name, "output"))
        all = all " --" name "=" quoted(to "." name (sample && !is(name, "staged") ? ".{part}" : ""))
    else if (name == "against" && !sample) {
        print "A"
        all = all " ${against:+--against=" quoted(value) "}"
    }
    else if (sample || !is(name, "of-text"))
        all = all " " quoted(w) (name in takes && takes[name] == "one" && w !~ /=/ ? " " quoted(value) : "")
}
