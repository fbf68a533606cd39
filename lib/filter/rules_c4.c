/* rules_c4.c - the family c4 of rules.h, and its edited lines. */
#include <string.h>

#include "lib/filter/rules_private.h"

/* Whether a line has a word longer than the threshold, where words are between white
 * space; *n_word: their number, exact up to the threshold of words. */
static bool has_long_word(const struct slu_rules_run *run, const uint8_t *p, size_t n,
                          size_t *n_word)
{
    const double *v = run->rules->value;
    const bool is_long = (double)n > v[SLU_RULE_C4_MAX_WORD_LENGTH];
    *n_word = 0;
    for (size_t i = 0; i < n;) {
        unsigned len;
        size_t n_char = 0;
        for (; i < n && !(slu_char_at(p + i, &len) & SLU_CHAR_SPACE); i += len)
            n_char++;
        if ((double)n_char > v[SLU_RULE_C4_MAX_WORD_LENGTH])
            return true;
        ++*n_word;
        /* The rest of the line cannot matter. */
        if (!is_long && !((double)*n_word < v[SLU_RULE_C4_MIN_WORDS_PER_LINE]))
            break;
        for (; i < n && slu_char_at(p + i, &len) & SLU_CHAR_SPACE; i += len)
            ;
    }
    return false;
}

/* Length of the citation that begins at p, a "[": "[1]", "[]", "[edit]", "[citation
 * needed]"; 0: none. */
static size_t citation(const uint8_t *p, size_t n)
{
    static const char *const named[] = {"[edit]", "[citation needed]"};
    unsigned len;
    size_t i = 1;
    for (; i < n && uni_category(uni_decode(p + i, &len)) == UNI_ND; i += len)
        ;
    if (i < n && p[i] == ']')
        return i + 1;
    for (unsigned k = 0; k < 2; k++)
        if (n >= strlen(named[k]) && !memcmp(p, named[k], strlen(named[k])))
            return strlen(named[k]);
    return 0;
}

/* Leaves citations out of a line. */
static int uncite(struct slu_rules_run *run, const uint8_t **p, size_t *n,
                  struct slu_err *err)
{
    const uint8_t *at = *p, *end = at + *n, *open;
    bool any = false;
    int rc = SLU_OK;
    slu_buf_clear(&run->line);
    for (const uint8_t *from = at;
         !rc && (open = memchr(from, '[', (size_t)(end - from)));) {
        const size_t len = citation(open, (size_t)(end - open));
        from = open + (len ? len : 1);
        if (!len)
            continue;
        any = true;
        rc = slu_buf_append(&run->line, at, (size_t)(open - at), err);
        at = from;
    }
    if (rc || !any)
        return rc;
    rc = slu_buf_append(&run->line, at, (size_t)(end - at), err);
    *p = run->line.data;
    *n = run->line.len;
    return rc;
}

static bool ends_well(const uint8_t *p, size_t n)
{
    return n && strchr(".?!\"'", p[n - 1]) && p[n - 1] &&
           !(n >= 3 && !memcmp(p + n - 3, "...", 3));
}

/* Lower case as far as the phrases below need it: ASCII, and the Kelvin sign, whose
 * lower case is "k". */
static int lower(struct slu_rules_run *run, const uint8_t *p, size_t n,
                 struct slu_err *err)
{
    struct slu_buf *b = &run->low;
    slu_buf_clear(b);
    int rc = slu_buf_reserve(b, n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        b->data[i] = (uint8_t)(p[i] + ((uint8_t)(p[i] - 'A') < 26 ? 32 : 0));
    b->len = n;
    uint8_t *k = b->data;
    while ((k = memmem(k, b->len - (size_t)(k - b->data), "\xE2\x84\xAA", 3))) {
        *k++ = 'k';
        memmove(k, k + 2, b->len - (size_t)(k - b->data) - 2);
        b->len -= 2;
    }
    return SLU_OK;
}

static bool has(const struct slu_rules_run *run, const char *phrase)
{
    return memmem(run->low.data, run->low.len, phrase, strlen(phrase)) != NULL;
}

static bool has_policy(const struct slu_rules_run *run)
{
    return has(run, "terms of use") || has(run, "privacy policy") ||
           (has(run, "cookie") &&
            (has(run, "cookie policy") || has(run, "uses cookies") ||
             has(run, "use of cookies") || has(run, "use cookies")));
}

/* Adds the sentences of a line, and stops at the threshold. */
static void count_sentences(const struct slu_rules_run *run, const uint8_t *p, size_t n,
                            size_t *n_sentence)
{
    size_t i = 0;
    do {
        ++*n_sentence;
        if (i < n)
            i += slu_sentence(p + i, n - i);
    } while (i < n &&
             rules_below(run, SLU_RULE_C4_MIN_NUM_SENTENCES, (double)*n_sentence));
}

/* Whether a line is kept, as *p and *n then say; *failed: by what its text fails. */
static int keep(struct slu_rules_run *run, const uint8_t **p, size_t *n, bool *kept,
                enum slu_rule *failed, struct slu_err *err)
{
    size_t n_word;
    int rc = SLU_OK;
    *kept = false;
    *p = slu_text_strip(*p, n);
    if (has_long_word(run, *p, *n, &n_word))
        return SLU_OK;
    if (rules_on(run, SLU_RULE_C4_CITATIONS))
        rc = uncite(run, p, n, err);
    if (rc || (rules_on(run, SLU_RULE_C4_TERMINAL_PUNCT) && !ends_well(*p, *n)) ||
        rules_below(run, SLU_RULE_C4_MIN_WORDS_PER_LINE, (double)n_word))
        return rc;
    rc = lower(run, *p, *n, err);
    if (rc)
        return rc;
    if (rules_on(run, SLU_RULE_C4_LOREM_IPSUM) && has(run, "lorem ipsum")) {
        *failed = SLU_RULE_C4_LOREM_IPSUM;
        return SLU_OK;
    }
    if (rules_on(run, SLU_RULE_C4_JAVASCRIPT) && has(run, "javascript"))
        return SLU_OK;
    if (rules_on(run, SLU_RULE_C4_CURLY_BRACKET) && memchr(*p, '{', *n)) {
        *failed = SLU_RULE_C4_CURLY_BRACKET;
        return SLU_OK;
    }
    *kept = !rules_on(run, SLU_RULE_C4_POLICY) || !has_policy(run);
    return SLU_OK;
}

/* Puts the kept lines into run->kept. */
static int put_line(struct slu_rules_run *run, const uint8_t *p, size_t n, bool first,
                    struct slu_err *err)
{
    int rc = first ? SLU_OK : slu_buf_append(&run->kept, "\n", 1, err);
    return rc || !n ? rc : slu_buf_append(&run->kept, p, n, err);
}

/* cut NULL: decides only. */
static int walk(struct slu_rules_run *run, struct slu_c4_cut *cut,
                enum slu_rule *failed, struct slu_err *err)
{
    size_t n_sentence = 0, n_kept = 0, n_line = 0;
    int rc = SLU_OK;
    slu_buf_clear(&run->kept);
    for (size_t i = 0, skip; i < run->n && !rc && *failed == SLU_RULE_N; n_line++) {
        const uint8_t *p = run->p + i;
        size_t n = slu_text_line(p, run->n - i, &skip);
        bool kept;
        i += n + skip;
        rc = keep(run, &p, &n, &kept, failed, err);
        if (rc || !kept)
            continue;
        if (rules_below(run, SLU_RULE_C4_MIN_NUM_SENTENCES, (double)n_sentence))
            count_sentences(run, p, n, &n_sentence);
        if (cut)
            rc = put_line(run, p, n, !n_kept, err);
        n_kept++;
    }
    if (!rc && *failed == SLU_RULE_N &&
        rules_below(run, SLU_RULE_C4_MIN_NUM_SENTENCES, (double)n_sentence))
        *failed = SLU_RULE_C4_MIN_NUM_SENTENCES;
    if (cut)
        cut->n_line = n_line - n_kept;
    return rc;
}

int rules_c4(struct slu_rules_run *run, enum slu_rule *failed, struct slu_err *err)
{
    return walk(run, NULL, failed, err);
}

int rules_c4_cut(struct slu_rules_run *run, struct slu_c4_cut *cut,
                 enum slu_rule *failed, struct slu_err *err)
{
    int rc = walk(run, cut, failed, err);
    if (rc || *failed != SLU_RULE_N)
        return rc;
    size_t n = run->kept.len;
    const uint8_t *p = n ? slu_text_strip(run->kept.data, &n) : run->kept.data;
    cut->changed = n != run->n || (n && memcmp(p, run->p, n) != 0);
    cut->text = n ? (const char *)p : "";
    cut->n = n;
    return SLU_OK;
}
