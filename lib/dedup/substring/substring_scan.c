#include "lib/dedup/substring/substring_scan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/simd.h"

/* ---- levels ---- */

struct level {
    const char *name;
    slu_scan_fn *fn;
};

/* The best level comes first. */
static const struct level levels[] = {
#if defined(__x86_64__)
    {"avx512", slu_scan_avx512},
    {"avx2", slu_scan_avx2},
#endif
    {"portable", slu_scan_portable},
};
#define N_LEVEL (sizeof levels / sizeof *levels)

static const struct level *level_named(const char *name)
{
    for (size_t i = 0; i < N_LEVEL; i++)
        if (slu_has_simd(levels[i].name) && (!name || !strcmp(levels[i].name, name)))
            return &levels[i];
    return NULL;
}

static const struct level *chosen; /* by slu_scan_simd */

bool slu_scan_simd(const char *level)
{
    chosen = level ? level_named(level) : NULL;
    return !level || chosen;
}

/* ---- blocks ---- */

int slu_scan_init(struct slu_scan *s, unsigned n_tok, struct slu_err *err)
{
    memset(s, 0, sizeof *s);
    s->n_tok = n_tok;
    s->k = (n_tok + 1) / 2;
    s->w = n_tok - s->k + 1;
    s->place_bits = 12;
    while (UINT32_C(1) << s->place_bits < 4 * s->n_tok)
        s->place_bits++;
    s->max_start = (size_t)(UINT32_C(1) << s->place_bits) - s->n_tok;
    size_t n = ((s->max_start + n_tok - 1) | 15) + 1;
    s->mem = malloc(2 * n * sizeof *s->mem);
    if (!s->mem)
        return slu_fail_nomem(err, 2 * n * sizeof *s->mem);
    s->hash = s->mem;
    s->begin = s->hash + n;
    return SLU_OK;
}

void slu_scan_release(struct slu_scan *s)
{
    free(s->mem);
    slu_buf_release(&s->plain);
    memset(s, 0, sizeof *s);
}

/* The block of the windows [from, to) of the ids at `tok`, and its anchor. */
static struct slu_keyed block(const struct slu_scan *s, const uint8_t *tok,
                              unsigned tok_bytes, size_t from, size_t to, size_t anchor,
                              uint64_t place)
{
    const uint64_t high = ~UINT64_C(0) << (64 - SLU_ANCHOR_BITS);
    uint64_t a = slu_hash64(tok + anchor * tok_bytes, (size_t)s->k * tok_bytes);
    struct slu_u128 b =
        slu_hash128(tok + from * tok_bytes, (to - from + s->n_tok - 1) * tok_bytes);

    return (struct slu_keyed){(a & high) | (b.hi & ~high), b.lo,
                              (place + from) << 16 | (to - from)};
}

/* Collects blocks. If neighbouring blocks have one key (a text with a short period),
 * those that begin at least n_tok ids after the first become one record: they are
 * repeats of the first in any case. So a run of one id takes a record only for each of
 * its first n_tok ids. */
struct sink {
    struct slu_keyed *to, *last; /* NULL: no block yet */
    uint64_t first;              /* place of the first of the neighbours */
    uint64_t count;              /* number of windows in each */
};

static void push(struct sink *k, struct slu_keyed r, unsigned n_tok)
{
    uint64_t place = r.val >> 16, count = r.val & 0xffff;

    if (!k->last || k->last->hi != r.hi || k->last->lo != r.lo || k->count != count) {
        k->first = place;
        k->count = count;
    } else if ((k->last->val >> 16) - k->first >= n_tok &&
               (k->last->val & 0xffff) + count <= 0xffff) {
        k->last->val += count;
        return;
    }
    k->last = k->to++;
    *k->last = r;
}

int slu_scan_blocks(struct slu_scan *s, const void *tok, size_t len_tok,
                    unsigned tok_bytes, uint64_t place, struct slu_buf *out,
                    struct slu_err *err)
{
    const struct level *l = chosen ? chosen : level_named(NULL);
    uint32_t low = (UINT32_C(1) << s->place_bits) - 1;
    size_t anchor = 0, from = 0, last = SIZE_MAX;
    struct sink k = {NULL, NULL, 0, 0};

    if (len_tok < s->n_tok)
        return SLU_OK;
    size_t n_win = len_tok - s->n_tok + 1;
    for (size_t at = 0; at < n_win; at += s->max_start) {
        size_t n = n_win - at < s->max_start ? n_win - at : s->max_start;
        size_t n_begin = l->fn(s, (const uint8_t *)tok + at * tok_bytes, tok_bytes, n,
                               s->hash, s->begin);
        int rc = slu_buf_reserve(out, (n_begin + 1) * sizeof(struct slu_keyed), err);
        if (rc)
            return rc;
        k.to = (void *)(out->data + out->len);
        k.last = last == SIZE_MAX ? NULL : (void *)(out->data + last);
        for (size_t i = 0; i < n_begin; i++) {
            size_t next = at + (s->hash[s->begin[i]] & low), start = at + s->begin[i];
            if (start > from && next != anchor) {
                push(&k, block(s, tok, tok_bytes, from, start, anchor, place),
                     s->n_tok);
                from = start;
            }
            anchor = next;
        }
        if (at + n == n_win)
            push(&k, block(s, tok, tok_bytes, from, n_win, anchor, place), s->n_tok);
        out->len = (size_t)((uint8_t *)k.to - out->data);
        if (k.last)
            last = (size_t)((uint8_t *)k.last - out->data);
    }
    return SLU_OK;
}
