#include "formats/text/spans.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/token/trim.h"

void slu_spans_release(struct slu_spans *s)
{
    free(s->end);
    *s = (struct slu_spans){0};
}

/* Finds the end of each token. False: the tokens are not the text. */
static bool find_ends(struct slu_spans *s, const struct slu_vocab_table *v,
                      const char *text, size_t n_byte, const uint32_t *id, size_t n_id)
{
    size_t at = 0;
    for (size_t i = 0; i < n_id; i++) {
        if (id[i] >= v->n)
            return false;
        const size_t n = v->off[id[i] + 1] - v->off[id[i]];
        if (n > n_byte - at || memcmp(text + at, v->bytes + v->off[id[i]], n))
            return false;
        s->end[i] = at += n;
    }
    return at == n_byte;
}

/* A place in a text. */
struct place {
    uint64_t character;
    size_t byte;
};

static bool begins(char c) /* a character */
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Moves p to a character; false: the text has no such character. */
static bool go_to(struct place *p, const char *text, size_t n_byte, uint64_t character)
{
    enum { RUN = 64 };
    if (character < p->character)
        *p = (struct place){0, 0};
    while (n_byte - p->byte >= RUN) {
        unsigned n = 0;
        for (unsigned i = 0; i < RUN; i++)
            n += begins(text[p->byte + i]);
        if (p->character + n > character)
            break;
        p->character += n;
        p->byte += RUN;
    }
    /* p->byte may be inside the character before p->character. */
    for (; p->byte < n_byte; p->byte++)
        if (begins(text[p->byte]) && p->character++ == character) {
            p->character--;
            return true;
        }
    return false;
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
                       const uint32_t *id, size_t i, size_t byte)
{
    const size_t begin = i ? s->end[i - 1] : 0;
    return tok_is_trimmed(t, id[i] & ~SLU_TRAINED, byte - begin, begin == 0);
}

int slu_spans_mark(struct slu_spans *s, const struct slu_tokenizer *t, const char *text,
                   size_t n_byte, uint32_t *id, size_t n_id, const uint64_t *span,
                   size_t n_span, enum slu_reject *reject, struct slu_err *err)
{
    struct place p = {0, 0};
    int rc = slu_grow(&s->end, &s->cap, n_id, sizeof *s->end, err);
    *reject = SLU_REJECT_NONE;
    if (rc)
        return rc;
    if (!find_ends(s, slu_tokenizer_vocab(t), text, n_byte, id, n_id))
        *reject = SLU_REJECT_CHANGED_TEXT;
    for (size_t i = 0; i < n_span && !*reject; i++) {
        const uint64_t begin = span[2 * i], end = span[2 * i + 1];
        if (!end)
            continue;
        bool there = go_to(&p, text, n_byte, end - 1);
        const size_t last = token_at(s->end, n_id, p.byte);
        if (!there) {
            *reject = SLU_REJECT_BAD_SPANS;
            break;
        }
        const bool cut = is_trimmed(s, t, id, last, p.byte);
        if (!go_to(&p, text, n_byte, begin)) /* empty, at the text's end */
            continue;
        size_t k = token_at(s->end, n_id, p.byte);
        if (cut || is_trimmed(s, t, id, k, p.byte))
            *reject = SLU_REJECT_TRIMMED_SPAN;
        for (; k <= last; k++)
            id[k] |= SLU_TRAINED;
    }
    return SLU_OK;
}
