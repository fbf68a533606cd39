/* sp.c - the steps of SentencePiece's BPE around the model; see sp.h. */
#include "lib/token/sp.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/bpe.h"

static void join(struct tok_sp *sp, uint8_t a, uint8_t b)
{
    sp->joined[a][b / 64] |= UINT64_C(1) << (b % 64);
}

/* Returns a hash of two characters of two bytes or more that meet at p: of the last two
 * bytes of the first and the first three of the second. */
static inline uint32_t pair_at(const uint8_t *p)
{
    uint64_t key = (uint64_t)p[-2] << 32 | (uint64_t)p[-1] << 24 |
                   (uint64_t)p[0] << 16 | (uint64_t)p[1] << 8;

    if (p[0] >= 0xE0)
        key |= p[2];
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 44);
}
_Static_assert(SP_PAIRS == 1 << (64 - 44), "the hash's bits");

int sp_new(struct tok_sp **out, const struct sp_cfg *cfg, const struct tok_model *model,
           const struct slu_vocab_table *table, uint32_t n_vocab, struct slu_err *err)
{
    struct tok_sp *sp = calloc(1, sizeof *sp);

    *out = sp;
    if (!sp)
        return slu_fail_nomem(err, sizeof *sp);
    sp->cfg = *cfg;
    sp->n_vocab = n_vocab;
    /* Neighbours in a token are neighbours in one of its halves, or at its seam. */
    for (uint32_t k = 256; k < model->n_tok; k++) {
        const struct bpe_token *t = &model->token[k];
        const uint8_t *seam =
            table->bytes + table->off[t->id] + model->token[t->left].len;
        join(sp, seam[-1], seam[0]);
        if (seam[-1] >= 0x80 && seam[0] >= 0xC0)
            sp->pair[pair_at(seam) / 64] |= UINT64_C(1) << (pair_at(seam) % 64);
    }
    for (unsigned a = 0; a < 256 && cfg->split; a++)
        sp->joined[a][' ' / 64] &= ~(UINT64_C(1) << ' ');
    return SLU_OK;
}

int sp_prepare(const struct tok_sp *sp, struct slu_buf *buf, bool first,
               const uint8_t **p, size_t *n, struct slu_err *err)
{
    const uint8_t *from = *p, *end = *p + *n, *at;
    bool in_front = sp->cfg.prepend == SP_ALWAYS || (sp->cfg.prepend && first);
    int rc;

    at = sp->cfg.fold ? memmem(from, *n, SP_SPACE, 3) : NULL;
    in_front = in_front && *n && *from != ' ' && !(at == from && at);
    if (!at && !in_front)
        return SLU_OK;
    slu_buf_clear(buf);
    if ((rc = slu_buf_reserve(buf, *n + 1, err)))
        return rc;
    uint8_t *q = buf->data;
    if (in_front)
        *q++ = ' ';
    for (; at; from = at + 3, at = memmem(from, (size_t)(end - from), SP_SPACE, 3)) {
        memcpy(q, from, (size_t)(at - from));
        q += at - from;
        *q++ = ' ';
    }
    memcpy(q, from, (size_t)(end - from));
    q += end - from;
    buf->len = (size_t)(q - buf->data);
    *p = buf->data;
    *n = buf->len;
    return SLU_OK;
}

/* Whether there is no cut at p, which is inside valid UTF-8. */
static inline bool is_joined(const struct tok_sp *sp, const uint8_t *p)
{
    bool joined = sp->joined[p[-1]][p[0] / 64] >> (p[0] % 64) & 1;

    if (p[0] < 0xC0 || p[-1] < 0x80 || !joined)
        return joined;
    return sp->pair[pair_at(p) / 64] >> (pair_at(p) % 64) & 1;
}

size_t sp_pretoken(const struct tok_sp *sp, const uint8_t *p, size_t n)
{
    size_t i = 1;

    while (i < n && is_joined(sp, p + i))
        i++;
    return i;
}

size_t sp_pretokens(const struct tok_sp *sp, const uint8_t *p, size_t n, uint32_t *end,
                    size_t max)
{
    size_t k = 0, pos = 1, limit = n < (1u << 31) ? n : 1u << 31;

    /* Every place is written; the next one overwrites it if it is not a cut. */
    for (; pos < limit && k < max; pos++) {
        end[k] = (uint32_t)pos;
        k += !is_joined(sp, p + pos);
    }
    if (k < max && pos == n)
        end[k++] = (uint32_t)n;
    return k;
}

/* Writes the ids of a part's bytes to out, unless that is NULL; returns how many. */
static size_t put_part(const struct slu_tokenizer *t, uint32_t id, uint32_t *out)
{
    const struct slu_vocab_table *v = &t->model_table;
    size_t n = (size_t)(v->off[id + 1] - v->off[id]);

    for (size_t i = 0; i < n && out; i++)
        out[i] = t->model->token[v->bytes[v->off[id] + i]].id;
    return n;
}

int sp_expand(const struct tok_sp *sp, const struct slu_tokenizer *t,
              struct slu_ids *ids, size_t first, struct slu_err *err)
{
    size_t more = 0, n = ids->n;
    uint32_t top = 0;
    int rc;

    for (size_t i = first; i < n; i++)
        top = ids->id[i] > top ? ids->id[i] : top;
    if (n == first || top < sp->n_vocab)
        return SLU_OK;
    for (size_t i = first; i < n; i++)
        more += ids->id[i] < sp->n_vocab ? 0 : put_part(t, ids->id[i], NULL) - 1;
    if ((rc = slu_grow(&ids->id, &ids->cap, n + more, sizeof *ids->id, err)))
        return rc;
    uint32_t *q = ids->id + n + more;
    for (size_t i = n; i > first; i--) {
        uint32_t id = ids->id[i - 1];
        if (id < sp->n_vocab) {
            *--q = id;
        } else {
            q -= put_part(t, id, NULL);
            put_part(t, id, q);
        }
    }
    ids->n = n + more;
    return SLU_OK;
}
