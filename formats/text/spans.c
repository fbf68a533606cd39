#include "formats/text/spans.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/align.h"
#include "lib/token/trim.h"

/* A span is two events: its first character, and its last one. An event is the number
 * of the character, times two, and 1 for the last one; so in ascending order a span
 * begins before another that has its last character there ends. */
#define NO_EVENT UINT64_MAX

struct walk {
    const struct slu_tokenizer *t;
    const char *text;
    uint32_t *id;
    const uint64_t *event, *end; /* the next one; behind the last */
    uint64_t n_char;             /* characters before the current token */
    uint64_t depth;              /* spans that have begun and not ended */
    bool trimmed, lost;
};

static bool begins(char c) /* a character */
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static uint64_t characters(const char *p, size_t n)
{
    uint64_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += begins(p[i]);
    return k;
}

/* Takes the events in the characters that begin in token i, text[begin, end), or that no
 * token has: i is SIZE_MAX. */
static void take_token(void *ctx, size_t i, size_t begin, size_t end)
{
    struct walk *w = ctx;
    const uint64_t after = w->n_char + characters(w->text + begin, end - begin);
    bool in = w->depth;
    size_t at = begin;

    for (uint64_t c = w->n_char; w->event < w->end && *w->event / 2 < after;
         w->event++) {
        for (; !begins(w->text[at]) || c < *w->event / 2; at++)
            c += begins(w->text[at]);
        if (i == SIZE_MAX)
            w->lost = true;
        else
            w->trimmed |= tok_is_trimmed(w->t, w->id[i], w->text, begin, end, at);
        in = true;
        w->depth = *w->event % 2 ? w->depth - 1 : w->depth + 1;
    }
    w->n_char = after;
    if (in && i != SIZE_MAX)
        w->id[i] |= SLU_TRAINED;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Replaces the spans by their events, in ascending order. Returns whether all spans lie
 * within n_char characters. */
static bool make_events(uint64_t *span, size_t n_span, uint64_t n_char)
{
    bool within = true, sorted = true;

    for (size_t i = 0; i < n_span; i++) {
        const uint64_t begin = span[2 * i], end = span[2 * i + 1];
        within &= end <= n_char;
        span[2 * i] = begin == end ? NO_EVENT : 2 * begin;
        span[2 * i + 1] = begin == end ? NO_EVENT : 2 * (end - 1) + 1;
    }
    for (size_t i = 1; i < 2 * n_span && sorted; i++)
        sorted = span[i - 1] <= span[i];
    if (!sorted)
        qsort(span, 2 * n_span, sizeof *span, ascending);
    return within;
}

static void unmark(uint32_t *id, size_t n_id)
{
    for (size_t i = 0; i < n_id; i++)
        id[i] &= ~SLU_TRAINED;
}

int slu_spans_mark(const struct slu_tokenizer *t, struct slu_encoder *e,
                   const char *text, size_t n_byte, uint32_t *id, size_t n_id,
                   uint64_t *span, size_t n_span, enum slu_reject *reject,
                   struct slu_err *err)
{
    const struct walk from = {
        .t = t, .text = text, .id = id, .event = span, .end = span + 2 * n_span};
    const bool within = !n_span || make_events(span, n_span, characters(text, n_byte));
    struct walk w = from;
    bool same = !n_id || tok_each_part(t, text, n_byte, id, n_id, take_token, &w);
    int rc = SLU_OK;

    if (!same) {
        unmark(id, n_id);
        w = from;
        rc = align_each_part(e, text, n_byte, id, n_id, take_token, &w, &same, err);
    }
    *reject = !same || w.lost ? SLU_REJECT_CHANGED_TEXT
              : !within       ? SLU_REJECT_BAD_SPANS
              : w.trimmed     ? SLU_REJECT_TRIMMED_SPAN
                              : SLU_REJECT_NONE;
    if (*reject)
        unmark(id, n_id);
    return rc;
}
