#include "lib/dedup/substring/substring_match.h"

#include <stdbool.h>

static int found(struct slu_buf *out, enum slu_found_kind kind, uint64_t place,
                 uint64_t first, uint64_t count, struct slu_err *err)
{
    const struct slu_found f = {place, first, (uint32_t)count, kind};

    return slu_buf_append(out, &f, sizeof f, err);
}

/* ---- blocks ---- */

struct blocks {
    bool any;
    uint64_t group, hi, lo;
    uint64_t first;        /* place of the first block with this span */
    uint64_t n_span;       /* different spans of the group so far */
    struct slu_buf asking; /* blocks of the first span; asked if there is a second
                              span */
};

/* A block and all blocks that overlap it come before the others with its span, so
 * `asking` holds fewer than n_tok. */
static int ask(struct blocks *s, const struct slu_keyed *r, struct slu_buf *out,
               struct slu_err *err)
{
    return found(s->n_span > 1 ? out : &s->asking, SLU_FOUND_ASK, r->val >> 16, 0,
                 r->val & 0xffff, err);
}

static int feed_block(void *state, const void *n_tok, const uint64_t *row,
                      struct slu_buf *out, struct slu_err *err)
{
    const struct slu_keyed *r = (const void *)row;
    struct blocks *s = state;
    uint64_t group = r->hi >> (64 - SLU_ANCHOR_BITS), place = r->val >> 16;
    int rc = SLU_OK;

    if (!s->any || group != s->group) {
        slu_buf_clear(&s->asking);
        s->any = true;
        s->group = group;
        s->n_span = 0;
    }
    if (s->n_span && r->hi == s->hi && r->lo == s->lo)
        return place - s->first < *(const unsigned *)n_tok
                   ? ask(s, r, out, err)
                   : found(out, SLU_FOUND_REPEAT, place, s->first, r->val & 0xffff,
                           err);
    if (++s->n_span == 2)
        rc = slu_buf_append(out, s->asking.data, s->asking.len, err);
    s->hi = r->hi;
    s->lo = r->lo;
    s->first = place;
    return rc ? rc : ask(s, r, out, err);
}

static int end_block(void *state, struct slu_buf *out, struct slu_err *err)
{
    struct blocks *s = state;

    (void)out;
    (void)err;
    s->any = false;
    return SLU_OK;
}

static void release_blocks(void *state)
{
    struct blocks *s = state;

    slu_buf_release(&s->asking);
}

void slu_match_blocks(struct slu_group_ops *ops)
{
    ops->state_byte = sizeof(struct blocks);
    ops->feed = feed_block;
    ops->end = end_block;
    ops->release = release_blocks;
    ops->out_byte = sizeof(struct slu_found);
}

/* ---- windows ---- */

struct windows {
    bool any;
    uint64_t hi, lo, first;
};

static int feed_window(void *state, const void *n_tok, const uint64_t *row,
                       struct slu_buf *out, struct slu_err *err)
{
    const struct slu_keyed *r = (const void *)row;
    struct windows *s = state;
    uint64_t place = r->val >> 16;

    if (!s->any || r->hi != s->hi || r->lo != s->lo) {
        *s = (struct windows){true, r->hi, r->lo, place};
        return SLU_OK;
    }
    return found(out,
                 place - s->first < *(const unsigned *)n_tok ? SLU_FOUND_ALIAS
                                                             : SLU_FOUND_REPEAT,
                 place, s->first, 1, err);
}

static int end_window(void *state, struct slu_buf *out, struct slu_err *err)
{
    struct windows *s = state;

    (void)out;
    (void)err;
    s->any = false;
    return SLU_OK;
}

void slu_match_windows(struct slu_group_ops *ops)
{
    ops->state_byte = sizeof(struct windows);
    ops->feed = feed_window;
    ops->end = end_window;
    ops->out_byte = sizeof(struct slu_found);
}
