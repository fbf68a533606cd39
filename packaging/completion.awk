# completion.awk - makes the completion of one program from its --help, which is printed from the option table.
#
#   PROGRAM --help | awk -v shell=bash|zsh|fish -v command=NAME [-v under=PROGRAM] -f completion.awk
#
# command: the name that is installed, with its prefix. under: PROGRAM is a word behind the command, as in `sluice
# tokenize`; in bash and zsh the result is then a function _sluice_PROGRAM, and the caller registers the command. An option's value is completed by its name in --help: words in
# small letters with | between are its values; FILE, DIR and the names in `suffixes` are files; nothing is offered for
# other names (N, SIZE, FRACTION, ...). Operands are files with the suffixes of data that the program reads.

BEGIN {
    # Suffixes of the files that an option or an operand names; "/": folders alone; "*": all files.
    suffixes["FILE"] = suffixes["LIST"] = suffixes["INDEX"] = suffixes["REPORT"] = suffixes["PATH"] = suffixes["RECIPE"] = "*"
    suffixes["DIR"] = suffixes["OUT"] = "/"
    suffixes["TOKENIZER"] = "json tiktoken model"
    ids = "tks npy bin ds mds"
    text = "jsonl ndjson json txt parquet pq tar zip tgz gz zst xz bz2 lz4"
}

# A line of an option: "  -t, --tokenizer=TOKENIZER     help".
/^  (-[A-Za-z], |    )--[a-z]/ {
    n++
    line = $0
    sub(/^ +/, "", line)
    if (match(line, /^-[A-Za-z], /)) {
        letter[n] = substr(line, 2, 1)
        line = substr(line, 5)
    }
    match(line, /^[^ ]+/)
    name[n] = substr(line, 3, RLENGTH - 2)
    help[n] = substr(line, RLENGTH + 1)
    if (match(name[n], /\[?=/)) {
        arg[n] = substr(name[n], RSTART + RLENGTH)
        maybe[n] = RLENGTH == 2
        sub(/\]$/, "", arg[n])
        name[n] = substr(name[n], 1, RSTART - 1)
    }
    sub(/^ +/, "", help[n])
    next
}
/^          / && n { # the help text goes on
    line = $0
    sub(/^ +/, "", line)
    help[n] = help[n] (help[n] == "" ? "" : " ") line
    next
}

# The synopsis: sluice-batch has its options and commands there alone.
/^usage: / { program = $2 }
/^(usage:|      ) / && !n {
    line = $0
    sub(/^(usage:|      ) /, "", line)
    if (line ~ "^" program " ")
        sub(/   +.*/, "", line) # what the line does
    if (line ~ /(FILE ?\|? ?DIR|\[FILE|STREAM|REPORT) ?\.\.\./)
        operand = program ~ /^(tokenize|sluice-chat)$/ ? text : ids
    commands_of(line)
}
function commands_of(line,    i, m, word) {
    if (program != "sluice-batch")
        return
    gsub(/[][|]/, " ", line)
    m = split(line, word, " ")
    for (i = 2; i <= m; i++) {
        if (word[i] ~ /^--/ && !(word[i] in seen)) {
            seen[word[i]]
            name[++batch] = substr(word[i], 3)
            arg[batch] = word[i + 1] ~ /^[NO]/ ? word[i + 1] : ""
        } else if (word[i] ~ /^[a-z]+$/ && !(word[i] in seen)) {
            seen[word[i]]
            commands = commands (commands == "" ? "" : " ") word[i]
        }
    }
    operand = "*"
}

# The values that option i has, or "".
function values(i,    m, part, k, list) {
    m = split(arg[i], part, "|")
    for (k = 1; k <= m; k++) {
        sub(/\[.*|:[A-Z].*/, "", part[k])
        if (part[k] ~ /^[a-z0-9][a-z0-9.:\/-]*$/)
            list = list (list == "" ? "" : " ") part[k]
    }
    return list
}
function quote(s) {
    gsub(/'/, "'\\''", s)
    return "'" s "'"
}
# The first clause of option i's help.
function clause(i,    s) {
    s = help[i]
    sub(/;.*/, "", s)
    return s
}

END {
    if (!program) {
        print "completion.awk: no usage line in the help text" > "/dev/stderr"
        exit 1
    }
    if (batch)
        n = batch
    if (shell == "bash")
        bash()
    else if (shell == "zsh")
        zsh()
    else if (shell == "fish")
        fish()
    else {
        print "completion.awk: shell is " shell "; expected bash, zsh or fish" > "/dev/stderr"
        exit 1
    }
}

function bash(    i, all) {
    f = "_sluice_" program
    gsub(/-/, "_", f)
    print "# " f "_files SUFFIXES: adds folders, and the files with one of these suffixes."
    print f "_files() {"
    print "    local file"
    print "    while IFS= read -r file; do"
    print "        case \" $1 \" in"
    print "        *' * '* | *\" ${file##*.} \"*) COMPREPLY+=(\"$file\") ;;"
    print "        *) [ ! -d \"$file\" ] || COMPREPLY+=(\"$file\") ;;"
    print "        esac"
    print "    done < <(compgen -f -- \"$cur\")"
    print "}"
    print f "() {"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} given=" # given: by --option=
    print "    COMPREPLY=()"
    print "    if [ \"$cur\" = = ]; then"
    print "        cur='' given=1"
    print "    elif [ \"$option\" = = ]; then"
    print "        option=${COMP_WORDS[COMP_CWORD - 2]} given=1"
    print "    fi"
    print "    case $option in"
    for (i = 1; i <= n; i++) {
        all = all (all == "" ? "" : " ") "--" name[i]
        if (arg[i] == "")
            continue
        print "    " (letter[i] ? "-" letter[i] " | " : "") "--" name[i] ")"
        if (maybe[i])
            print "        if [ -n \"$given\" ]; then"
        if (values(i) != "")
            print "        mapfile -t COMPREPLY < <(compgen -W " quote(values(i)) " -- \"$cur\")"
        else if (arg[i] in suffixes)
            print "        " f "_files " quote(suffixes[arg[i]])
        print "        return"
        if (maybe[i])
            print "        fi"
        print "        ;;"
    }
    print "    esac"
    print "    case $cur in"
    print "    -*) mapfile -t COMPREPLY < <(compgen -W " quote(all) " -- \"$cur\") ;;"
    if (commands != "")
        print "    *) [ \"$COMP_CWORD\" != 1 ] || mapfile -t COMPREPLY < <(compgen -W " quote(commands) " -- \"$cur\"); " f "_files '*' ;;"
    else
        print "    *) " f "_files " quote(operand) " ;;"
    print "    esac"
    print "}"
    if (!under)
        print "complete -o filenames -o bashdefault -o default -F " f " " command
}

function zsh_action(list) {
    if (list == "*")
        return "_files"
    if (list == "/")
        return "_files -/"
    gsub(/ /, "|", list)
    return "_files -g \"*.(" list ")\""
}
function zsh(    i, spec, what) {
    print under ? "_sluice_" program "() {" : "#compdef " command
    print "_arguments -s -S \\"
    for (i = 1; i <= n; i++) {
        what = clause(i)
        gsub(/[][\\:]/, "\\\\&", what)
        spec = "[" what "]"
        if (arg[i] != "") {
            spec = spec (maybe[i] ? "::" : ":") "value:"
            if (values(i) != "")
                spec = spec "(" values(i) ")"
            else if (arg[i] in suffixes)
                spec = spec zsh_action(suffixes[arg[i]])
            else
                spec = spec " "
        }
        if (letter[i])
            printf "    %s{%s,%s}%s \\\n", quote("(-" letter[i] " --" name[i] ")"),
                "-" letter[i] (arg[i] == "" ? "" : maybe[i] ? "-" : "+"), "--" name[i] (arg[i] == "" ? "" : maybe[i] ? "=-" : "="), quote(spec)
        else
            printf "    %s \\\n", quote("--" name[i] (arg[i] == "" ? "" : maybe[i] ? "=-" : "=") spec)
    }
    if (commands != "") {
        print "    " quote("1:command or recipe:{ compadd " commands "; _files }") " \\"
        print "    " quote("*:folder:_files")
    } else
        print "    " quote("*:input:" zsh_action(operand))
    if (under)
        print "}"
}

function fish_files(list,    m, part, i, out) {
    if (list == "*")
        return "-r -F"
    if (list == "/")
        return "-x -a '(__fish_complete_directories)'"
    m = split(list, part, " ")
    for (i = 1; i <= m; i++)
        out = out (i > 1 ? "|" : "") part[i]
    # __fish_complete_suffix offers other files, too.
    return "-x -a '(__fish_complete_path (commandline -ct | string replace -r \"^-[^=]*=\" \"\") | string match -er \"(?:/|\\.(?:" out "))(?:\\t|\\z)\")'"
}
function fish(    i, complete) {
    complete = "complete -c " command (under ? " -n '__fish_seen_subcommand_from " under "'" : "")
    if (operand != "*")
        print complete " " fish_files(operand)
    if (commands != "")
        print complete (under ? "" : " -n __fish_use_subcommand") " -a " quote(commands)
    for (i = 1; i <= n; i++) {
        printf "%s%s -l %s", complete, letter[i] ? " -s " letter[i] : "", name[i]
        if (arg[i] != "" && values(i) != "")
            printf "%s -a %s", maybe[i] ? " -f" : " -x", quote(values(i))
        else if (arg[i] in suffixes)
            printf " %s", fish_files(suffixes[arg[i]])
        else if (arg[i] != "" && !maybe[i])
            printf " -x"
        else if (arg[i] == "")
            printf " -f"
        printf "%s\n", help[i] == "" ? "" : " -d " quote(clause(i))
    }
}
