# words.awk - sluice-batch: splits a recipe's line into words as a shell would, without expansions.
# Quotes ' and " and the backslash work as in a shell; $, * and similar characters have no special meaning.
#   words(TEXT)    the number of words, in word[1], word[2], ...; -1 if a quote is not closed
#   quoted(WORD)   the word, quoted for the shell
#   mode(TEXT)     the mode of a line of dedup's options: exact, near or substring; exact without options, and "" if they have
#                  none of these
#   printable(TEXT)  the text for a terminal, with ? for each control character, mark of direction and end of a line: those
#                  of slu_unprintable() in lib/base/err.c
function printable(text) {
    gsub(/[\001-\037\177]|\302[\200-\237]|\330\234|\342\200[\216\217\250-\256]|\342\201[\246-\251]/, "?", text)
    return text
}
function words(text,    i, c, q, n, inside, size) {
    split("", word)
    n = inside = 0
    q = ""
    size = length(text)
    for (i = 1; i <= size; i++) {
        c = substr(text, i, 1)
        if (q == "" && (c == " " || c == "\t")) {
            inside = 0
            continue
        }
        if (!inside) {
            inside = 1
            word[++n] = ""
        }
        if (c == "\\" && i < size && (q == "" || q == "\"" && substr(text, i + 1, 1) ~ /["\\$`]/))
            word[n] = word[n] substr(text, ++i, 1)
        else if (q == "" && (c == "'" || c == "\""))
            q = c
        else if (c == q)
            q = ""
        else
            word[n] = word[n] c
    }
    return q == "" ? n : -1
}
function mode(text,    i, n, m) {
    n = words(text)
    m = n ? "" : "exact"
    for (i = 1; i <= n; i++)
        if (word[i] ~ /^--substring(=.*)?$/)
            m = "substring"
        else if (word[i] == "--near" && m != "substring")
            m = "near"
        else if (word[i] == "--exact" && m == "")
            m = "exact"
    return m
}
function quoted(w) {
    gsub(/'/, "'\\\\''", w)
    return "'" w "'"
}
# uncommented(TEXT): the text up to a # at its beginning or after white space, except within quotes.
function uncommented(text,    i, c, q, size) {
    q = ""
    size = length(text)
    for (i = 1; i <= size; i++) {
        c = substr(text, i, 1)
        if (c == "\\" && q != "'")
            i++
        else if (c == q)
            q = ""
        else if (q == "" && (c == "'" || c == "\""))
            q = c
        else if (q == "" && c == "#" && (i == 1 || substr(text, i - 1, 1) ~ /[ \t]/))
            return substr(text, 1, i - 1)
    }
    return text
}
