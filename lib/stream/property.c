#include "property.h"

#include <string.h>

#include "lib/base/le.h"

const struct slu_property slu_property_own[SLU_N_PROPERTY] = {
    [SLU_PROPERTY_META] = {SLU_PROPERTY_META, 0, 0, ""},
    [SLU_PROPERTY_DOMAIN] = {SLU_PROPERTY_DOMAIN, SLU_META_IS_TEXT, 0, "domain"},
    [SLU_PROPERTY_SOURCE] = {SLU_PROPERTY_SOURCE, SLU_META_IS_TEXT, 0, "source"},
    [SLU_PROPERTY_ID] = {SLU_PROPERTY_ID, SLU_META_IS_TEXT, 0, "id"},
    [SLU_PROPERTY_LENGTH] = {SLU_PROPERTY_LENGTH, SLU_META_IS_U64, 0, "length"},
    [SLU_PROPERTY_SCORE] = {SLU_PROPERTY_SCORE, SLU_META_IS_F64, 0, "score"},
};

int slu_property_find(struct slu_property *p, const char *name,
                      const struct slu_header *h, struct slu_err *err)
{
    for (unsigned k = SLU_PROPERTY_DOMAIN; k < SLU_N_PROPERTY; k++)
        if (!strcmp(name, slu_property_own[k].name)) {
            *p = slu_property_own[k];
            return SLU_OK;
        }
    const int i = slu_meta_find(&h->meta, name, strlen(name));
    if (i < 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "no input has the metadata field '%s'; 'inspect' lists those "
                        "that it has, beside domain, source, id, length and score",
                        name);
    const struct slu_meta_field *f = &h->meta.field[i];
    *p = (struct slu_property){SLU_PROPERTY_META, f->type, f->key, name};
    return SLU_OK;
}

/* ---- the documents of a sequence ---- */

bool slu_seg_meta(const struct slu_batch *b, const struct slu_seg *s, uint64_t key,
                  struct slu_meta_value *v)
{
    return s->meta_len &&
           slu_meta_get(b->str.data + s->id_off + s->id_len, s->meta_len, key, v);
}

/* Whether two documents surely have the same value. Those of one source can have other
 * ids. */
static bool agree(const struct slu_property *p, const struct slu_batch *b,
                  const struct slu_seg *x, const struct slu_seg *y)
{
    struct slu_meta_value v, w;

    switch (p->at) {
    case SLU_PROPERTY_DOMAIN:
        return x->domain == y->domain;
    case SLU_PROPERTY_ID:
        return x->source == y->source && x->document == y->document;
    case SLU_PROPERTY_SOURCE:
        return x->source == y->source;
    case SLU_PROPERTY_META:
        if (!slu_seg_meta(b, x, p->key, &v))
            return !slu_seg_meta(b, y, p->key, &w);
        return slu_seg_meta(b, y, p->key, &w) && v.n == w.n && !memcmp(v.p, w.p, v.n);
    default:
        return true;
    }
}

int slu_property_agree(const struct slu_property *p, const struct slu_batch *b,
                       const struct slu_seq *q, struct slu_err *err)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    const struct slu_seg *first = slu_seq_first(b, q);

    for (uint64_t i = 0; first && i < q->n_seg; i++)
        if (s[i].source != SLU_PADDING && &s[i] != first && !agree(p, b, first, &s[i]))
            return slu_fail(err, SLU_E_MISMATCH,
                            "source %llu, document %llu: stands in one sequence with a "
                            "document of another %s; read documents or pieces, before "
                            "they are packed",
                            (unsigned long long)s[i].source,
                            (unsigned long long)s[i].document, p->name);
    return SLU_OK;
}

/* ---- values ---- */

static bool text(struct slu_meta_value *v, const char *name)
{
    *v = (struct slu_meta_value){.p = (const uint8_t *)name,
                                 .n = name ? (uint32_t)strlen(name) : 0};
    return name;
}

bool slu_property_get(const struct slu_property *p, struct slu_names *names,
                      const struct slu_batch *b, const struct slu_seq *q,
                      const struct slu_seg *s, uint8_t number[8],
                      struct slu_meta_value *v)
{
    double score;
    uint64_t bits = q->len_tok;

    switch (p->at) {
    case SLU_PROPERTY_META:
        return slu_seg_meta(b, s, p->key, v);
    case SLU_PROPERTY_DOMAIN:
        return text(v, s->domain == SLU_NO_DOMAIN ? NULL
                                                  : slu_names_domain(names, s->domain));
    case SLU_PROPERTY_SOURCE:
        return text(v, slu_names_source(names, s->source));
    case SLU_PROPERTY_ID:
        *v = (struct slu_meta_value){.p = b->str.data + s->id_off, .n = s->id_len};
        return s->id_len;
    case SLU_PROPERTY_SCORE:
        score = slu_seq_score(b, q);
        if (score != score)
            return false;
        memcpy(&bits, &score, sizeof bits);
        break;
    default:
        break;
    }
    slu_put_le64(number, bits);
    *v = (struct slu_meta_value){.p = number, .n = sizeof bits};
    return true;
}

int slu_property_hash(const struct slu_property *p, struct slu_names *names,
                      const struct slu_batch *b, const struct slu_seq *q,
                      struct slu_property_memo *memo, uint64_t *hash,
                      struct slu_err *err)
{
    const struct slu_seg *s = slu_seq_first(b, q);
    int rc = slu_property_same(p, b, q, err);

    *hash = 0;
    if (rc || !s)
        return rc;
    const uint64_t n = p->at == SLU_PROPERTY_DOMAIN   ? s->domain
                       : p->at == SLU_PROPERTY_SOURCE ? s->source
                                                      : SLU_PADDING;
    const size_t at = n % (sizeof memo->of / sizeof *memo->of);
    struct slu_meta_value v;
    uint8_t number[8];
    if (memo->of[at].number == n && n != SLU_PADDING)
        *hash = memo->of[at].hash;
    if (!*hash && slu_property_get(p, names, b, q, s, number, &v))
        *hash = slu_hash64(v.p, v.n) | 1;
    memo->of[at].number = n;
    memo->of[at].hash = *hash;
    return SLU_OK;
}
