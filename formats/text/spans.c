#include "formats/text/spans.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/token/trim.h"

enum { RUN = 64 }; /* bytes of which characters are counted at a time */

void slu_spans_release(struct slu_spans *s)
{
    free(s->end);
    free(s->to);
    free(s->count);
    *s = (struct slu_spans){0};
}

static bool begins(char c) /* a character */
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Counts the characters before each run of the text. */
static int count_characters(struct slu_spans *s, const char *text, size_t n_byte,
                            struct slu_err *err)
{
    const size_t n_run = n_byte / RUN + 1;
    uint64_t n = 0;
    int rc = slu_grow(&s->count, &s->cap_count, n_run, sizeof *s->count, err);
    if (rc)
        return rc;
    s->n_run = n_run;
    for (size_t k = 0; k < n_run; k++) {
        unsigned here = 0;
        s->count[k] = n;
        for (size_t i = k * RUN; i < (k + 1) * RUN && i < n_byte; i++)
            here += begins(text[i]);
        n += here;
    }
    return SLU_OK;
}

/* Returns the byte at which a character begins; n_byte: the text has no such one. */
static size_t byte_of(const struct slu_spans *s, const char *text, size_t n_byte,
                      uint64_t character)
{
    size_t lo = 0, hi = s->n_run; /* count[lo] <= character < count[hi] */
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->count[mid] > character)
            hi = mid;
        else
            lo = mid;
    }
    uint64_t left = character - s->count[lo];
    size_t i = lo * RUN;
    while (i < n_byte && !(begins(text[i]) && !left--))
        i++;
    return i;
}

/* Returns the index of the first token that ends after a byte of the text. */
static size_t token_at(const size_t *end, size_t n_id, size_t byte)
{
    size_t lo = 0, hi = n_id;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (end[mid] > byte)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Whether token i has the character at a byte of the text only outside its offsets. */
static bool is_trimmed(const struct slu_spans *s, const struct slu_tokenizer *t,
                       const char *text, const uint32_t *id, size_t i, size_t byte)
{
    return tok_is_trimmed(t, id[i], text, i ? s->end[i - 1] : 0, s->end[i], byte);
}

/* Sets to[k] for the first token k of each span to the end of its last one. */
static enum slu_reject place(struct slu_spans *s, const struct slu_tokenizer *t,
                             const char *text, size_t n_byte, const uint32_t *id,
                             size_t n_id, const uint64_t *span, size_t n_span)
{
    for (size_t i = 0; i < n_span; i++) {
        const uint64_t begin = span[2 * i], end = span[2 * i + 1];
        const size_t last_byte = end ? byte_of(s, text, n_byte, end - 1) : 0;
        if (end && last_byte == n_byte)
            return SLU_REJECT_BAD_SPANS;
        if (begin == end || !n_id)
            continue;
        const size_t first_byte = byte_of(s, text, n_byte, begin);
        const size_t first = token_at(s->end, n_id, first_byte);
        const size_t last = token_at(s->end, n_id, last_byte);
        if (is_trimmed(s, t, text, id, first, first_byte) ||
            is_trimmed(s, t, text, id, last, last_byte))
            return SLU_REJECT_TRIMMED_SPAN;
        if (s->to[first] <= last)
            s->to[first] = last + 1;
    }
    return SLU_REJECT_NONE;
}

int slu_spans_mark(struct slu_spans *s, const struct slu_tokenizer *t, const char *text,
                   size_t n_byte, uint32_t *id, size_t n_id, const uint64_t *span,
                   size_t n_span, enum slu_reject *reject, struct slu_err *err)
{
    int rc = slu_grow(&s->end, &s->cap_end, n_id, sizeof *s->end, err);
    *reject = SLU_REJECT_NONE;
    if (!rc)
        rc = slu_grow(&s->to, &s->cap_to, n_id, sizeof *s->to, err);
    if (!rc && n_span)
        rc = count_characters(s, text, n_byte, err);
    if (rc)
        return rc;
    if (n_id)
        memset(s->to, 0, n_id * sizeof *s->to);
    if (n_id && !tok_find_ends(t, text, n_byte, id, n_id, s->end))
        *reject = SLU_REJECT_CHANGED_TEXT;
    else
        *reject = place(s, t, text, n_byte, id, n_id, span, n_span);
    for (size_t i = 0, to = 0; i < n_id && !*reject; i++) {
        to = s->to[i] > to ? s->to[i] : to;
        if (i < to)
            id[i] |= SLU_TRAINED;
    }
    return SLU_OK;
}
