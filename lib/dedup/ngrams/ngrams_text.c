#include "ngrams_text.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

/* The meaning of an id for paragraphs. */
enum { TEXT = 0, ENDS = 1, SPECIAL = 2 };

struct slu_paras_finder {
    struct slu_shingler *words; /* 1-grams */
    uint8_t *kind;              /* by id; NULL: each sequence is one paragraph */
    uint64_t n_id;
    unsigned tok_bytes;
    bool trained;
};

void slu_paras_release(struct slu_paras *p)
{
    free(p->para);
    slu_buf_release(&p->plain);
    slu_buf_release(&p->trained);
    slu_hashes_release(&p->words);
    *p = (struct slu_paras){0};
}

void slu_paras_trim(struct slu_paras *p)
{
    slu_buf_trim(&p->plain, SLU_KEEP_BYTE);
    slu_buf_trim(&p->trained, SLU_KEEP_BYTE);
    slu_hashes_trim(&p->words);
    p->n = 0;
    if (p->cap <= SLU_KEEP_BYTE / sizeof *p->para)
        return;
    free(p->para);
    p->para = NULL;
    p->cap = 0;
}

void slu_paras_finder_free(struct slu_paras_finder *f)
{
    if (!f)
        return;
    slu_shingler_free(f->words);
    free(f->kind);
    free(f);
}

static int make_kinds(struct slu_paras_finder *f, const struct slu_shingler_cfg *cfg,
                      struct slu_err *err)
{
    const struct slu_vocab_table *v = cfg->vocab;
    const uint64_t special[] = {cfg->eos, cfg->bos, cfg->pad};

    if (!v)
        return slu_advise(
            err, SLU_ADVISE_PARAGRAPHS,
            slu_fail(err, SLU_E_MISMATCH,
                     "the stream has no vocabulary to find paragraphs with"));
    f->n_id = v->n;
    f->kind = calloc(v->n ? v->n : 1, 1);
    if (!f->kind)
        return slu_fail_nomem(err, v->n);
    for (uint64_t i = 0; i < v->n; i++) {
        if (v->flags[i] & SLU_VOCAB_SPECIAL)
            f->kind[i] = SPECIAL;
        else if (memchr(v->bytes + v->off[i], '\n', v->off[i + 1] - v->off[i]))
            f->kind[i] = ENDS;
    }
    for (unsigned i = 0; i < 3; i++)
        if (special[i] < v->n)
            f->kind[special[i]] = SPECIAL;
    return SLU_OK;
}

int slu_paras_finder_new(struct slu_paras_finder **out,
                         const struct slu_shingler_cfg *cfg, bool whole, bool trained,
                         struct slu_err *err)
{
    struct slu_shingler_cfg one = *cfg;
    struct slu_paras_finder *f = calloc(1, sizeof *f);

    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    one.n = 1;
    f->tok_bytes = cfg->tok_bytes;
    f->trained = trained;
    int rc = slu_shingler_new(&f->words, &one, err);
    if (!rc && !whole)
        rc = make_kinds(f, cfg, err);
    if (rc) {
        slu_paras_finder_free(f);
        return rc;
    }
    *out = f;
    return SLU_OK;
}

/* Adds the paragraph of tokens [from, to) of q. tok: their ids, and those before. */
static int add(const struct slu_paras_finder *f, const struct slu_batch *b,
               const struct slu_seq *q, const void *tok, uint64_t from, uint64_t to,
               struct slu_paras *p, struct slu_err *err)
{
    struct slu_hashes *w = &p->words;
    const void *ids = (const uint8_t *)tok + from * f->tok_bytes;
    uint64_t n = to - from;
    size_t had = w->n;
    int rc = SLU_OK;

    if (from == to)
        return SLU_OK;
    if (f->trained)
        rc = slu_batch_ids(b, q->tok_off + from, n, true, &p->trained, &ids, &n, err);
    if (!rc)
        rc = slu_shingle_add(f->words, ids, n, w, err);
    if (!rc)
        rc = slu_grow(&p->para, &p->cap, p->n + 1, sizeof *p->para, err);
    if (rc)
        return rc;
    p->para[p->n++] = (struct slu_para){from, to - from, had, w->n - had};
    return SLU_OK;
}

int slu_paras_find(const struct slu_paras_finder *f, const struct slu_batch *b,
                   const struct slu_seq *q, struct slu_paras *p, struct slu_err *err)
{
    const uint64_t n_tok = q->len_tok;
    const void *tok;
    uint64_t from = 0;
    int rc = slu_batch_ids(b, q->tok_off, n_tok, false, &p->plain, &tok, NULL, err);

    if (rc)
        return rc;
    p->n = p->words.n = p->words.n_sign = 0;
    if (!f->kind)
        return add(f, b, q, tok, 0, n_tok, p, err);
    for (uint64_t i = 0; i < n_tok; i++) {
        uint32_t id =
            f->tok_bytes == 2 ? ((const uint16_t *)tok)[i] : ((const uint32_t *)tok)[i];
        if (id >= f->n_id)
            return slu_fail(err, SLU_E_FORMAT, "id %u is not in the vocabulary", id);
        if (f->kind[id] == TEXT)
            continue;
        rc = add(f, b, q, tok, from, i + (f->kind[id] == ENDS), p, err);
        if (rc)
            return rc;
        from = i + 1;
    }
    return add(f, b, q, tok, from, n_tok, p, err);
}

/* ---- n-grams ---- */

/* odd; the multiplier of a full-period 64-bit LCG */
#define BASE UINT64_C(0xd1342543de82ef95)

struct slu_ngram_maker slu_ngram_maker(uint64_t n)
{
    struct slu_ngram_maker m = {n, 1};

    for (uint64_t i = 1; i < n; i++)
        m.top *= BASE;
    return m;
}

/* The finalizer of MurmurHash3. A filter takes its block from the high bits; in a
 * polynomial modulo 2^64 these depend on all words, but the low bits do not. */
static uint64_t mixed(uint64_t h, uint64_t n)
{
    h += n * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

size_t slu_ngrams_of(const struct slu_ngram_maker *m, const uint64_t *word,
                     size_t n_word, uint64_t *gram)
{
    size_t n = m->n && m->n < n_word ? m->n : n_word;
    uint64_t h = 0;

    if (n_word == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        h = h * BASE + word[i];
    gram[0] = mixed(h, n);
    for (size_t i = n; i < n_word; i++) {
        h = (h - word[i - n] * m->top) * BASE + word[i];
        gram[i - n + 1] = mixed(h, n);
    }
    return n_word - n + 1;
}
