/* against_make.c - makes an index of items. */
#include "against_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/ngrams/ngrams.h"
#include "lib/flow/radix.h"
#include "lib/flow/workfile.h"

struct slu_against_out {
    struct slu_against_cfg cfg;
    struct slu_ngram_maker maker;
    struct slu_buf pair; /* struct slu_entry: gram, item */
    struct slu_buf row, text;
    struct slu_hashes set;
    struct slu_buf spare;
    struct slu_hashes marks; /* the set of words that are punctuation; once needed */
    bool length[SLU_SHINGLE_MAX_N + 1];
    uint64_t n_item, with_ngrams;
    /* The names of the last item, because most items share them. */
    bool any; /* item */
    uint64_t last_source, last_domain;
    struct row last;
};

int slu_against_create(struct slu_against_out **out, const struct slu_against_cfg *cfg,
                       struct slu_err *err)
{
    *out = NULL;
    if (cfg->n < 1 || cfg->n > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "an index takes n-grams of 1 to %d",
                        SLU_SHINGLE_MAX_N);
    struct slu_against_out *o = calloc(1, sizeof *o);
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    o->cfg = *cfg;
    o->maker = slu_ngram_maker(cfg->n);
    *out = o;
    return SLU_OK;
}

void slu_against_abort(struct slu_against_out *o)
{
    if (!o)
        return;
    slu_buf_release(&o->pair);
    slu_buf_release(&o->row);
    slu_buf_release(&o->text);
    slu_buf_release(&o->spare);
    slu_hashes_release(&o->set);
    slu_hashes_release(&o->marks);
    free(o);
}

static int put_text(struct slu_against_out *o, const char *s, size_t n, uint64_t *at,
                    uint64_t *len, struct slu_err *err)
{
    *at = o->text.len;
    *len = n;
    return n ? slu_buf_append(&o->text, s, n, err) : SLU_OK;
}

static int put_row(struct slu_against_out *o, const struct slu_batch *b,
                   const struct slu_seg *s, uint64_t n_gram, struct slu_names *names,
                   struct slu_err *err)
{
    struct row r = o->last;
    int rc = SLU_OK;

    r.source = s->source;
    r.document = s->document;
    r.offset = s->offset;
    r.n_gram = n_gram;
    if (!o->any || s->source != o->last_source) {
        const char *name = slu_names_source(names, s->source);
        rc = put_text(o, name, name ? strlen(name) : 0, &r.at_source, &r.n_source, err);
        o->last_source = s->source;
    }
    if (!rc && (!o->any || s->domain != o->last_domain)) {
        const char *name =
            s->domain == SLU_NO_DOMAIN ? NULL : slu_names_domain(names, s->domain);
        rc = put_text(o, name, name ? strlen(name) : 0, &r.at_domain, &r.n_domain, err);
        o->last_domain = s->domain;
    }
    if (!rc)
        rc = put_text(o, (const char *)b->str.data + s->id_off, s->id_len, &r.at_id,
                      &r.n_id, err);
    o->last = r;
    o->any = true;
    return rc ? rc : slu_buf_append(&o->row, &r, sizeof r, err);
}

/* The n-grams of an item: as many words as `first` to `last` begin. */
struct grams {
    size_t n, first, last;
};

static bool is_mark(const struct slu_against_out *o, uint64_t word)
{
    return slu_sets_intersect(&word, 1, o->marks.hash, o->marks.n, 1) != 0;
}

/* Where the punctuation at an item's ends leaves less than an n-gram: the n-grams are
 * what it leaves, or `least` words that have it within. */
static int trim(struct slu_against_out *o, const struct slu_against_text *t,
                uint64_t least, struct grams *g, struct slu_err *err)
{
    size_t a = 0, b = t->n_word;
    int rc = o->marks.n ? SLU_OK : slu_shingle_marks(&o->marks, err);
    if (!rc)
        rc = slu_hashes_to_set(&o->marks, err);
    if (rc)
        return rc;
    while (b && is_mark(o, t->word[b - 1]))
        b--;
    while (a < b && is_mark(o, t->word[a]))
        a++;
    const size_t n = b - a > least ? b - a : (size_t)least;
    if (a < b && n < g->n) {
        g->n = n;
        g->first = b > n ? b - n : 0;
        g->last = a < t->n_word - n ? a : t->n_word - n;
    }
    return SLU_OK;
}

/* Makes o->set the item's distinct n-grams. */
static int make_set(struct slu_against_out *o, const struct slu_against_text *t,
                    struct slu_err *err)
{
    struct slu_hashes *s = &o->set;
    const size_t n_word = t->n_word;
    const bool signs = t->n_sign > n_word / 2;
    const uint64_t least = o->cfg.min_words - (signs ? o->cfg.min_words / 13 : 0);
    struct grams g = {.n = n_word < o->cfg.n ? n_word : o->cfg.n};

    s->n = 0;
    if (!n_word || n_word < least)
        return SLU_OK;
    g.last = n_word - g.n;
    int rc = signs ? trim(o, t, least, &g, err) : SLU_OK;
    if (!rc)
        rc = slu_grow(&s->hash, &s->cap, n_word, sizeof *s->hash, err);
    slu_buf_clear(&o->spare);
    if (!rc)
        rc = slu_buf_reserve(&o->spare, n_word * sizeof *s->hash, err);
    if (rc)
        return rc;
    if (g.n == o->cfg.n)
        s->n = slu_ngrams_of(&o->maker, t->word, n_word, s->hash);
    for (size_t i = g.first; g.n < o->cfg.n && i <= g.last; i++)
        s->n += slu_ngrams_of(&o->maker, t->word + i, g.n, s->hash + s->n);
    s->n = slu_set_make(s->hash, s->n, (void *)o->spare.data);
    o->length[g.n] = true;
    return SLU_OK;
}

int slu_against_add(struct slu_against_out *o, const struct slu_batch *b,
                    const struct slu_seq *q, const struct slu_against_text *t,
                    struct slu_names *names, struct slu_err *err)
{
    int rc = make_set(o, t, err);
    size_t n = o->set.n;
    if (!rc)
        rc = put_row(o, b, &b->seg[q->seg_off], n, names, err);
    /* While the array moves to a larger place, it takes its memory twice. */
    if (!rc &&
        2 * (o->pair.len + n * sizeof(struct slu_entry)) + o->row.len + o->text.len >
            o->cfg.budget_byte)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "the n-grams of %llu items do not fit in memory; "
                                   "several indexes of fewer items would",
                                   (unsigned long long)o->n_item));
    if (!rc)
        rc = slu_buf_reserve(&o->pair, n * sizeof(struct slu_entry), err);
    if (rc)
        return rc;
    struct slu_entry *e = (void *)(o->pair.data + o->pair.len);
    for (size_t i = 0; i < n; i++)
        e[i] = (struct slu_entry){o->set.hash[i], o->n_item};
    o->pair.len += n * sizeof *e;
    o->n_item++;
    o->with_ngrams += n != 0;
    return SLU_OK;
}

uint64_t slu_against_items(const struct slu_against_out *o, uint64_t *with_ngrams)
{
    *with_ngrams = o->with_ngrams;
    return o->n_item;
}

static int by_item(void *ctx, uint64_t a, uint64_t b)
{
    (void)ctx;
    return a < b ? -1 : a > b;
}

/* Writes sections GRAMS, STARTS and ITEMS from sorted pairs, each in one pass. */
static int write_grams(struct slu_against_out *o, struct slu_workfile_out *f,
                       uint64_t *n_gram, struct slu_err *err)
{
    struct slu_entry *e = (void *)o->pair.data;
    size_t n = o->pair.len / sizeof *e, i, k;
    int rc = slu_workfile_section(f, GRAMS, err);

    *n_gram = 0;
    slu_entry_sort(e, n);
    for (i = 0; !rc && i < n; i = k) {
        for (k = i + 1; k < n && e[k].prefix == e[i].prefix; k++)
            ;
        slu_entry_sort_by(e + i, k - i, by_item, NULL);
        rc = slu_workfile_put(f, &e[i].prefix, 1, err);
        ++*n_gram;
    }
    if (!rc)
        rc = slu_workfile_section(f, STARTS, err);
    for (i = 0; !rc && i <= n; i++)
        if (i == 0 || i == n || e[i].prefix != e[i - 1].prefix) {
            uint64_t at = i;
            rc = slu_workfile_put(f, &at, 1, err);
            if (n == 0)
                break;
        }
    if (!rc)
        rc = slu_workfile_section(f, ITEMS, err);
    for (i = 0; !rc && i < n; i++)
        rc = slu_workfile_put(f, &e[i].ref, 1, err);
    return rc;
}

static int write_rest(struct slu_against_out *o, struct slu_workfile_out *f,
                      struct slu_err *err)
{
    int rc = slu_workfile_section(f, ROWS, err);

    if (!rc)
        rc = slu_workfile_put(f, (const void *)o->row.data, o->row.len / 8, err);
    if (!rc)
        rc = slu_workfile_section(f, LENGTHS, err);
    for (uint64_t i = 1; !rc && i <= SLU_SHINGLE_MAX_N; i++)
        if (o->length[i])
            rc = slu_workfile_put(f, &i, 1, err);
    if (!rc)
        rc = slu_workfile_section(f, TEXT, err);
    return rc || !o->text.len ? rc
                              : slu_workfile_put_raw(f, o->text.data, o->text.len, err);
}

int slu_against_close(struct slu_against_out *o, const char *path,
                      const uint8_t fingerprint[16], struct slu_err *err)
{
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_INDEX, .of = 1};
    struct slu_workfile_out *f;
    char param[128];
    uint64_t n_gram = 0;

    int rc = slu_workfile_create(&f, path, SLU_WORKFILE_INDEX, err);
    rc = rc ? rc : write_grams(o, f, &n_gram, err);
    rc = rc ? rc : write_rest(o, f, err);
    snprintf(param, sizeof param, KIND " unit=%s ngram=%llu min-words=%llu",
             slu_unit_param(o->cfg.unit), (unsigned long long)o->cfg.n,
             (unsigned long long)o->cfg.min_words);
    head.param = param;
    memcpy(head.fingerprint, fingerprint, 16);
    head.count[N_GRAM] = n_gram;
    head.count[N_ITEM] = o->n_item;
    head.count[N_POSTING] = o->pair.len / sizeof(struct slu_entry);
    head.count[N_TEXT] = o->text.len;
    head.count[NGRAM] = o->cfg.n;
    if (!rc)
        rc = slu_workfile_close(f, &head, SECTIONS, err);
    else
        slu_workfile_abort(f);
    slu_against_abort(o);
    return rc;
}
