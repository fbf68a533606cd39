# words.awk - sluice-batch: the words of a recipe's line as a shell would cut them, with nothing expanded.
# Quotes ' and " and the backslash work as there; $, * and the like are themselves.
#   words(TEXT)    how many there are, in word[1], word[2], ...; -1 where a quote is not closed
#   quoted(WORD)   as the shell reads it back
#   mode(TEXT)     of options of dedup: exact, near or substring; "" for none of them
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
# uncommented(TEXT): up to a # at its beginning or behind white space, but for one in quotes.
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
