/* rules_lines.c - the families gopher-quality and fineweb of rules.h. */
#include <math.h>
#include <string.h>

#include "lib/filter/rules_private.h"

/* ---- gopher-quality ---- */

struct words {
    size_t n, n_solid, n_solid_char, n_alpha, n_stop;
    uint64_t stops; /* a bit for each stop word that occurred */
};

static void ask_stop(const struct rules_stop *s, struct words *w,
                     const struct slu_word *word)
{
    if (word->n_byte > 63 || !(s->first[*word->p] >> word->n_byte & 1))
        return;
    for (unsigned i = 0; i < s->n; i++)
        if (s->n_byte[i] == word->n_byte && !memcmp(s->word[i], word->p, word->n_byte))
            w->stops |= UINT64_C(1) << i;
}

static struct words count_words(const struct slu_rules_run *run)
{
    const uint8_t *p = run->p, *end = p + run->n;
    struct slu_word word;
    struct words w = {.n = 0};
    while (slu_word_next(&p, end, &word)) {
        w.n++;
        w.n_alpha += (word.is & SLU_CHAR_ALPHA) != 0;
        if (word.is & SLU_CHAR_SOLID) {
            w.n_solid++;
            w.n_solid_char += word.n_char;
        }
        ask_stop(&run->rules->stop, &w, &word);
    }
    w.n_stop = (size_t)__builtin_popcountll(w.stops);
    return w;
}

/* Occurrences of a string that do not overlap. */
static size_t count_of(const struct slu_rules_run *run, const char *s)
{
    const uint8_t *p = run->p, *end = p + run->n;
    const size_t n = strlen(s);
    size_t found = 0;
    while ((p = memmem(p, (size_t)(end - p), s, n))) {
        found++;
        p += n;
    }
    return found;
}

static bool begins(const uint8_t *p, size_t n, const char *s)
{
    return n >= strlen(s) && !memcmp(p, s, strlen(s));
}

static bool ends(const uint8_t *p, size_t n, const char *s)
{
    return n >= strlen(s) && !memcmp(p + n - strlen(s), s, strlen(s));
}

struct lines {
    size_t n, n_bullet, n_ellipsis;
};

static struct lines count_lines(const struct slu_rules_run *run)
{
    struct lines l = {.n = 0};
    for (size_t i = 0, len, skip; i < run->n; i += len + skip) {
        const uint8_t *p = run->p + i;
        size_t n = len = slu_text_line(p, run->n - i, &skip);
        p = slu_text_strip(p, &n);
        l.n++;
        l.n_bullet += begins(p, n, "•") || begins(p, n, "-");
        l.n_ellipsis += ends(p, n, "...") || ends(p, n, "…");
    }
    return l;
}

static double ratio(size_t a, size_t b)
{
    return b ? (double)a / (double)b : 0;
}

int rules_gopher_quality(struct slu_rules_run *run, enum slu_rule *failed,
                         struct slu_err *err)
{
    const struct words w = count_words(run);
    /* Without such words there is no mean, and no threshold to miss. */
    const double mean = w.n_solid ? ratio(w.n_solid_char, w.n_solid) : NAN;
    (void)err;
    if (rules_below(run, SLU_RULE_MIN_DOC_WORDS, (double)w.n_solid))
        *failed = SLU_RULE_MIN_DOC_WORDS;
    else if (rules_above(run, SLU_RULE_MAX_DOC_WORDS, (double)w.n_solid))
        *failed = SLU_RULE_MAX_DOC_WORDS;
    else if (rules_below(run, SLU_RULE_MIN_AVG_WORD_LENGTH, mean))
        *failed = SLU_RULE_MIN_AVG_WORD_LENGTH;
    else if (rules_above(run, SLU_RULE_MAX_AVG_WORD_LENGTH, mean))
        *failed = SLU_RULE_MAX_AVG_WORD_LENGTH;
    else if (rules_above(run, SLU_RULE_MAX_HASH_WORD_RATIO,
                         ratio(count_of(run, "#"), w.n)))
        *failed = SLU_RULE_MAX_HASH_WORD_RATIO;
    else if (rules_above(run, SLU_RULE_MAX_ELLIPSIS_WORD_RATIO,
                         ratio(count_of(run, "...") + count_of(run, "…"), w.n)))
        *failed = SLU_RULE_MAX_ELLIPSIS_WORD_RATIO;
    if (*failed != SLU_RULE_N)
        return SLU_OK;
    const struct lines l = count_lines(run);
    if (rules_above(run, SLU_RULE_MAX_BULLET_LINES_RATIO, ratio(l.n_bullet, l.n)))
        *failed = SLU_RULE_MAX_BULLET_LINES_RATIO;
    else if (rules_above(run, SLU_RULE_MAX_ELLIPSIS_LINES_RATIO,
                         ratio(l.n_ellipsis, l.n)))
        *failed = SLU_RULE_MAX_ELLIPSIS_LINES_RATIO;
    else if (rules_below(run, SLU_RULE_MIN_ALPHA_WORDS_RATIO, ratio(w.n_alpha, w.n)))
        *failed = SLU_RULE_MIN_ALPHA_WORDS_RATIO;
    else if (rules_below(run, SLU_RULE_MIN_STOP_WORDS, (double)w.n_stop))
        *failed = SLU_RULE_MIN_STOP_WORDS;
    return SLU_OK;
}

/* ---- fineweb ---- */

static bool is_short(const struct slu_rules_run *run, const uint8_t *p, size_t n)
{
    const double most = run->rules->value[SLU_RULE_SHORT_LINE_LENGTH];
    return (double)n <= most ||
           ((double)n <= 4 * most && (double)slu_text_chars(p, n) <= most);
}

static bool is_blank(const uint8_t *p, size_t n)
{
    size_t left = n;
    if (n && (uint8_t)(*p - 0x21) < 0x5F - 1)
        return false;
    slu_text_strip(p, &left);
    return !left;
}

/* Finds the next line that is not blank; *at moves behind it. */
static bool next_line(const struct slu_rules_run *run, const uint8_t **at,
                      const uint8_t **line, size_t *n)
{
    const uint8_t *end = run->p + run->n;
    while (*at < end) {
        const uint8_t *nl = memchr(*at, '\n', (size_t)(end - *at));
        *line = *at;
        *n = (size_t)((nl ? nl : end) - *at);
        *at = nl ? nl + 1 : end;
        if (!is_blank(*line, *n))
            return true;
    }
    return false;
}

/* Sets *x to the share of characters in lines that occurred before. */
static int again(struct slu_rules_run *run, double *x, struct slu_err *err)
{
    const uint8_t *at = run->p, *line;
    struct rules_twice t;
    size_t n;
    int rc = rules_twice_begin(run, &t, run->n_newline + 1, err);
    while (!rc && next_line(run, &at, &line, &n))
        rules_twice_add(run, &t, line, n);
    *x = ratio(t.n_char, run->n_char - run->n_newline);
    return rc;
}

static size_t count_all_words(const struct slu_rules_run *run)
{
    const uint8_t *p = run->p;
    struct slu_word w;
    size_t n = 0;
    while (slu_word_next(&p, run->p + run->n, &w))
        n++;
    return n;
}

int rules_fineweb(struct slu_rules_run *run, enum slu_rule *failed, struct slu_err *err)
{
    const uint8_t *at = run->p, *line;
    size_t n, n_line = 0, n_end = 0, n_short = 0;
    double twice = 0;
    while (next_line(run, &at, &line, &n)) {
        n_line++;
        n_end += slu_char_ends(slu_text_last(line, n));
        n_short += is_short(run, line, n);
    }
    const double punct = ratio(n_end, n_line);
    /* A text of blank lines fails whatever the threshold is, as in datatrove. */
    if (!n_line || (rules_below(run, SLU_RULE_LINE_PUNCT_RATIO, punct) &&
                    !(n_end == 0 && rules_on(run, SLU_RULE_LINE_PUNCT_EXCLUDE_ZERO))))
        *failed = SLU_RULE_LINE_PUNCT_RATIO;
    else if (rules_above(run, SLU_RULE_SHORT_LINE_RATIO, ratio(n_short, n_line)))
        *failed = SLU_RULE_SHORT_LINE_RATIO;
    if (*failed != SLU_RULE_N)
        return SLU_OK;
    int rc = again(run, &twice, err);
    if (rc)
        return rc;
    if (rules_above(run, SLU_RULE_CHAR_DUPLICATES_RATIO, twice))
        *failed = SLU_RULE_CHAR_DUPLICATES_RATIO;
    else if (rules_above(run, SLU_RULE_NEW_LINE_RATIO,
                         ratio(run->n_newline, count_all_words(run))))
        *failed = SLU_RULE_NEW_LINE_RATIO;
    return SLU_OK;
}
