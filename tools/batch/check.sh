# shellcheck shell=sh disable=SC2154,SC2034
# check.sh - sluice-batch: lets the programs check a recipe before OUT is made, so that an error is reported once, with
# the recipe's line, and not by each part. Sourced by sluice-batch.

# check_options: words that are no options, command lines that a stage refuses, and what only a stream shows.
check_options() {
    for step in $step_list; do
        program_of "$step"
        [ -x "$bin/$prefix$program" ] || die "$bin/$prefix$program: no such program; sluice-batch lies beside the others"
        [ -s "$scratch/facts.$program" ] || "$bin/$prefix$program" --facts </dev/null >"$scratch/facts.$program" || die "$program --facts failed"
        options_of "$step" >"$scratch/options.$step"
        why=$(awk -f "$share/words.awk" -f "$share/options.awk" "$scratch/facts.$program" - <"$scratch/options.$step")
        [ -z "$why" ] || die "$(at "$step"): $program: $why"
        [ "$step" != tokenize ] || ! has_domains || ! grep -q -e '--domain[ =]' "$scratch/options.tokenize" ||
            die "$(at tokenize): tokenize: --domain is the domain of all inputs, and a line input.DOMAIN gives its own; use --domain-default"
    done
    ask_flows >"$scratch/flows" || exit 1
    use_flows "$scratch/flows"
    canonical "$recipe_name" "$(flows | awk '{ print $1, $2, $1 "-" $2 }' | tr '\n' ' ')" >/dev/null || exit 1
    stages >"$scratch/stages"
    there=$PWD
    [ ! -s "$OUT/state/cwd" ] || there=$(cat "$OUT/state/cwd")
    (cd "$there" && check_calls && rehearse) || exit 1
}
# check_calls: calls the last part of each stage in a folder without inputs, which reports errors of the command line.
check_calls() {
    mkdir "$scratch/call" "$scratch/call/state" "$scratch/call/stats" "$scratch/call/work"
    while read -r s parts _; do
        [ "$s" != report ] || continue
        (OUT=$scratch/call && folders command "$s" && perform call "$s" $((parts - 1))) || die "$(cat "$scratch/why")"
    done <"$scratch/stages"
}
call() {
    "$@" <"$stdin" >/dev/null 2>"$scratch/err"
    [ $? = 2 ] || return 0
    limits_said >"$scratch/why"
    exit 1
}
# limits_said: the program's message at the line of the step; about -M or the parts, at the line that sets these.
limits_said() {
    why=$(tail -n 1 "$scratch/err") key=$(limit_key "$stage" memory) together=$(chain "$s" | wc -l)
    case $why in
    *" parts"*)
        printf '%s\n' "$(at parts): $why"
        return
        ;;
    esac
    if [ -z "$key" ] || ! grep -q -e '-M\|--memory' "$scratch/err"; then
        printf '%s\n' "$(at "$step"): $why"
        return
    fi
    share="has three quarters of $key = $(value "$key")"
    [ "$together" = 1 ] || share="has three quarters of a ${together}th of $key = $(value "$key"): $together programs run together"
    printf '%s\n' "$(at "$key"): $why ($stage $share)"
}
# rehearse: takes a short text through all steps, each in one process: the tokenizer, other files, and whether a step
# suits the stream of the one before are only seen with a stream. Options that depend on the text are left out,
# and outputs go to $scratch.
rehearse() {
    echo 'A text that is here for a moment.' >"$scratch/text"
    from=$scratch/text
    ! given set || from=''
    for step in $step_list; do
        program_of "$step"
        to=$scratch/$step awk -f "$share/words.awk" -f "$share/options.awk" "$scratch/facts.$program" - \
            <"$scratch/options.$step" >"$scratch/words"
        grep '^F ' "$scratch/words" >"$scratch/files"
        while read -r _ option file; do
            check_file "$option" "$file"
        done <"$scratch/files"
        [ -n "$from" ] || continue # no program makes a short set
        ! mixes_domains || grep -q -e '--domain' "$scratch/options.tokenize" || check_mix
        [ "$step" != shuffle ] || check_mix_by
        set -- --stats "$scratch/$step.stats" -o "$scratch/$step.out"
        [ "$step" != tokenize ] || set -- "$@" -t "$(value tokenizer builtin)" --format text --part 0/1
        against=''
        try "$@"
        # Part 1 reads only the heads of indexes, which may be long.
        against=1
        ! grep -q '^A' "$scratch/words" || try --stage sign --work "$scratch/$step.work" --part 1/2
        [ "$step" != tokenize ] || ! given extends || same_tokenizer
        from=$scratch/$step.out
    done
}
# try OPTION...: runs the step in one process, with these options after its own.
try() {
    eval "set -- $(sed -n 's/^W //p' "$scratch/words") \"\$@\""
    "$bin/$prefix$program" -q -T 1 --seed "$(value seed 0)" "$@" "$from" </dev/null >/dev/null 2>"$scratch/err" || {
        why=$(tail -n 1 "$scratch/err")
        case $why in "tokenize: $(value tokenizer): "*) step=tokenizer ;; esac
        die "$(at "$step"): $why"
    }
}
mixes_domains() {
    [ "$step" = shuffle ] && grep -q -e '--mix[ =]\|--mix-schedule' "$scratch/options.shuffle" &&
        ! sed 's/--mix-by[ =]domain//' "$scratch/options.shuffle" | grep -c -e '--mix-by' -e "--mix[ =].*: *[0-9.]\{1,\} *\([\"',]\|\$\| -\)" >/dev/null
}
# check_mix_by: the field of --mix-by is one that tokenize takes from the records.
check_mix_by() {
    field=$(sed -n "s/.*--mix-by[ =][\"']\{0,1\}\([^ \"']*\).*/\1/p" "$scratch/options.shuffle")
    case $field in
    '' | domain | input | source | id | length | score) return 0 ;;
    esac
    sed -n 's/.*--metadata[ =]//p' "$scratch/options.tokenize" | tr -d "\"'" | tr ', ' '\n\n' | sed 's/=.*//' | grep -cxF -e "$field" >/dev/null ||
        die "$(at shuffle): shuffle: --mix-by $field: tokenize does not take this field from the records; add --metadata $field there"
}
# check_mix: where tokenize has no option for domains, inputs have some; and if all have one, --mix names these alone.
check_mix() {
    has_domains ||
        die "$(at shuffle): shuffle: --mix takes documents by domain, and tokenize gives them none; add --domain-field NAME there, or give inputs their domains: input.NAME = ..."
    ! given input || return 0
    sed -n 's/.*--mix[ =]\([^ ]*\).*/\1/p' "$scratch/options.shuffle" | tr ',' '\n' | sed -n 's/=[0-9.]*$//p' >"$scratch/mix"
    while read -r name; do
        grep -qF -e "input.$name = " "$recipe" ||
            die "$(at shuffle): shuffle: --mix $name: no input has this domain; inputs have $(sed -n 's/^input\.\(.*\) = .*/\1/p' "$recipe" | sort -u | paste -s -d ' ' -)"
    done <"$scratch/mix"
}
# check_file OPTION FILE: the folder of an output.
check_file() {
    case $2 in
    "$OUT/$step.index") return ;;
    */*) folder=${2%/*} ;;
    *) folder=. ;;
    esac
    case $folder in *"{part"*) return ;; esac # which a part does not make
    { [ -d "${folder:-/}" ] && [ -w "${folder:-/}" ]; } ||
        die "$(at "$step"): $program: --$1 $2: there is no folder '$folder' to write to"
}
