# extend.awk - sluice-batch: run with words.awk; prints a recipe that extends a folder with what follows from that, see
# extend(). Run as: awk -f words.awk -f extend.awk FOLDERS RECIPE   with the folders, the oldest first; the number of the first
# source in $base, and in $more the lines to add: the value of a tokenizer, if any, and "tokenize =".
FNR == NR { folder[++n] = $0; next }
{ key = substr($0, 1, index($0, " =") - 1) }
key == "extends" {
    m = split(ENVIRON["more"], line, "\n")
    if (line[1] != "")
        $0 = $0 "\ntokenizer = " line[1]
    if (m > 1)
        $0 = $0 "\n" line[2] " --source-base " ENVIRON["base"]
}
key == "tokenize" { $0 = $0 " --source-base " ENVIRON["base"] }
key == "dedup" {
    text = substr($0, length("dedup = ") + 1)
    m = mode(text)
    if (m != "substring")
        $0 = $0 (text ~ /^ *$/ ? "--exact" : "")
    for (i = 1; i <= n && m != "substring"; i++)
        $0 = $0 " --against " quoted(folder[i] "/" m ".index")
}
{ print }
