#include "against_private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/ngrams/ngrams.h"
#include "lib/flow/workfile.h"

struct slu_against {
    enum slu_unit unit;
    uint64_t n, n_gram, n_item, n_length;
    uint64_t *gram, *start, *item, *length; /* owned */
    struct row *row;                        /* owned */
    uint8_t *text;                          /* owned */
    struct slu_ngram_maker *maker;          /* owned: one for each length */
    struct slu_bloom *bloom;
    uint8_t *matched; /* owned, by gram */
    struct slu_against_count {
        /* last: number of the last document that was counted, from 1 */
        uint64_t n_matched, n_document, last;
    } * count; /* owned, by item */
    uint64_t n_counted;
};

bool slu_against_is(const struct slu_workfile *f)
{
    const struct slu_workfile_head *h = slu_workfile_head(f);

    return h->kind == SLU_WORKFILE_INDEX && h->param &&
           !strncmp(h->param, KIND " ", sizeof KIND);
}

static int bad(const struct slu_workfile *f, const char *what, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "%s: not an index of n-grams: %s",
                    slu_workfile_path(f), what);
}

/* Reads a whole section of n numbers into *v; caller frees. */
static int read_section(struct slu_workfile *f, unsigned section, uint64_t n,
                        void *array, struct slu_err *err)
{
    uint64_t *v;

    if (slu_workfile_len(f, section) != n)
        return bad(f, "the sizes of its sections differ from its counts", err);
    v = malloc((size_t)(n ? n : 1) * sizeof *v);
    *(uint64_t **)array = v;
    if (!v)
        return slu_fail_nomem(err, n * sizeof *v);
    int rc = slu_workfile_begin(f, section, err);
    if (!rc)
        rc = slu_workfile_get(f, n, v, err);
    return rc ? rc : slu_workfile_end(f, err);
}

static bool text_fits(uint64_t at, uint64_t n, uint64_t n_text)
{
    return n <= n_text && at <= n_text - n;
}

/* Checks all that later code relies on, whatever program made the file. */
static int check(const struct slu_against *c, const struct slu_workfile *f,
                 struct slu_err *err)
{
    const uint64_t *count = slu_workfile_head(f)->count;

    for (uint64_t i = 1; i < c->n_gram; i++)
        if (c->gram[i - 1] >= c->gram[i])
            return bad(f, "its n-grams are not in ascending order", err);
    if (c->start[0] != 0 || c->start[c->n_gram] != count[N_POSTING])
        return bad(f, "its lists of items are not in ascending order", err);
    for (uint64_t i = 0; i < c->n_gram; i++)
        if (c->start[i] >= c->start[i + 1])
            return bad(f, "its lists of items are not in ascending order", err);
    for (uint64_t i = 0; i < count[N_POSTING]; i++)
        if (c->item[i] >= c->n_item)
            return bad(f, "a list names an item that it does not have", err);
    for (uint64_t i = 0; i < c->n_length; i++)
        if (c->length[i] < 1 || c->length[i] > SLU_SHINGLE_MAX_N)
            return bad(f, "an item has more words than its n-grams can have", err);
    for (uint64_t i = 0; i < c->n_item; i++) {
        const struct row *r = &c->row[i];
        if (!text_fits(r->at_source, r->n_source, count[N_TEXT]) ||
            !text_fits(r->at_domain, r->n_domain, count[N_TEXT]) ||
            !text_fits(r->at_id, r->n_id, count[N_TEXT]))
            return bad(f, "an item has a name that is not in its list of names", err);
    }
    return SLU_OK;
}

static int read_all(struct slu_against *c, struct slu_workfile *f, struct slu_err *err)
{
    const uint64_t *count = slu_workfile_head(f)->count;
    uint64_t n_text = (count[N_TEXT] + 7) / 8;
    uint64_t *text = NULL;

    c->n_length = slu_workfile_len(f, LENGTHS);
    int rc = read_section(f, GRAMS, c->n_gram, &c->gram, err);
    if (!rc)
        rc = read_section(f, STARTS, c->n_gram + 1, &c->start, err);
    if (!rc)
        rc = read_section(f, ITEMS, count[N_POSTING], &c->item, err);
    if (!rc)
        rc = read_section(f, ROWS, c->n_item * ROW_WORDS, &c->row, err);
    if (!rc)
        rc = read_section(f, LENGTHS, c->n_length, &c->length, err);
    if (!rc)
        rc = read_section(f, TEXT, n_text, &text, err);
    c->text = (void *)text;
    for (uint64_t i = 0; !rc && i < n_text; i++) {
        uint64_t v = text[i];
        for (unsigned k = 0; k < 8; k++)
            c->text[8 * i + k] = (uint8_t)(v >> 8 * k);
    }
    return rc ? rc : check(c, f, err);
}

/* Makes the arrays that are not in the file. */
static int prepare(struct slu_against *c, struct slu_err *err)
{
    uint64_t n_block;
    int rc = slu_bloom_blocks(c->n_gram, 0.01, &n_block, err);

    if (!rc)
        rc = slu_bloom_new(&c->bloom, n_block, err);
    if (rc)
        return rc;
    slu_bloom_add(c->bloom, c->gram, c->n_gram);
    c->matched = calloc(c->n_gram + 1, 1);
    c->count = calloc(c->n_item + 1, sizeof *c->count);
    c->maker = calloc(c->n_length + 1, sizeof *c->maker);
    if (!c->matched || !c->count || !c->maker)
        return slu_fail_nomem(err, c->n_gram + c->n_item * sizeof *c->count);
    for (uint64_t i = 0; i < c->n_length; i++)
        c->maker[i] = slu_ngram_maker(c->length[i]);
    return SLU_OK;
}

int slu_against_open(struct slu_against **out, struct slu_workfile *f,
                     const uint8_t fingerprint[16], uint64_t budget_byte,
                     struct slu_err *err)
{
    const struct slu_workfile_head *h = slu_workfile_head(f);
    const uint64_t *count = h->count;
    struct slu_against *c;

    *out = NULL;
    if (!slu_against_is(f) || slu_workfile_n_section(f) != SECTIONS)
        return bad(f, "its checksum differs from its contents", err);
    if (count[N_GRAM] >> 40 || count[N_ITEM] >> 40 || count[N_POSTING] >> 40 ||
        count[N_TEXT] >> 40 || count[NGRAM] < 1 || count[NGRAM] > SLU_SHINGLE_MAX_N)
        return bad(f, "its counts contradict each other", err);
    uint64_t need = count[N_GRAM] * 19 + count[N_POSTING] * 8 +
                    count[N_ITEM] * (sizeof(struct row) + sizeof *c->count) +
                    count[N_TEXT];
    if (need > budget_byte)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT,
                     "%s: takes %lluM of memory, and %lluM are left for it",
                     slu_workfile_path(f), (unsigned long long)((need + 0xfffff) >> 20),
                     (unsigned long long)(budget_byte >> 20)));
    c = calloc(1, sizeof *c);
    if (!c)
        return slu_fail_nomem(err, sizeof *c);
    c->n = count[NGRAM];
    c->n_gram = count[N_GRAM];
    c->n_item = count[N_ITEM];
    int rc = slu_unit_of(h->param, slu_workfile_path(f), &c->unit, err);
    if (!rc && c->unit == SLU_UNIT_TOKEN && memcmp(h->fingerprint, fingerprint, 16))
        rc = slu_fail(
            err, SLU_E_MISMATCH,
            "%s: the index holds tokens of another tokenizer; make an index of words",
            slu_workfile_path(f));
    if (!rc)
        rc = read_all(c, f, err);
    if (!rc)
        rc = prepare(c, err);
    if (rc) {
        slu_against_free(c);
        return rc;
    }
    *out = c;
    return SLU_OK;
}

void slu_against_free(struct slu_against *c)
{
    if (!c)
        return;
    free(c->gram);
    free(c->start);
    free(c->item);
    free(c->length);
    free(c->row);
    free(c->text);
    free(c->maker);
    free(c->matched);
    free(c->count);
    slu_bloom_free(c->bloom);
    free(c);
}

enum slu_unit slu_against_unit(const struct slu_against *c)
{
    return c->unit;
}

uint64_t slu_against_n_gram(const struct slu_against *c)
{
    return c->n_gram;
}

uint64_t slu_against_n_item(const struct slu_against *c)
{
    return c->n_item;
}

void slu_against_scratch_release(struct slu_against_scratch *s)
{
    slu_buf_release(&s->gram);
    slu_buf_release(&s->hit);
}

/* The number of n-gram g, UINT64_MAX if there is none. */
static uint64_t number_of(const struct slu_against *c, uint64_t g)
{
    uint64_t low = 0, high = c->n_gram;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (c->gram[mid] < g)
            low = mid + 1;
        else
            high = mid;
    }
    return low < c->n_gram && c->gram[low] == g ? low : UINT64_MAX;
}

enum { WINDOW = 1 << 16 }; /* n-grams that are looked up at a time */

/* Finds the n-grams of the l-th length in word[from … from + n_word). */
static int find_window(const struct slu_against *c, uint64_t l, const uint64_t *word,
                       size_t from, size_t n_word, struct slu_against_scratch *s,
                       struct slu_buf *match, struct slu_err *err)
{
    slu_buf_clear(&s->gram);
    slu_buf_clear(&s->hit);
    int rc = slu_buf_reserve(&s->gram, n_word * sizeof(uint64_t), err);
    if (rc || (rc = slu_buf_reserve(&s->hit, n_word, err)))
        return rc;
    uint64_t *g = (void *)s->gram.data;
    size_t n = slu_ngrams_of(&c->maker[l], word + from, n_word, g);
    if (!slu_bloom_test(c->bloom, g, n, n, s->hit.data))
        return SLU_OK;
    for (size_t i = 0; !rc && i < n; i++) {
        struct slu_against_match m = {0, from + i, c->length[l]};
        if (!s->hit.data[i])
            continue;
        m.gram = number_of(c, g[i]);
        if (m.gram != UINT64_MAX)
            rc = slu_buf_append(match, &m, sizeof m, err);
    }
    return rc;
}

int slu_against_find(const struct slu_against *c, const uint64_t *word, size_t n_word,
                     struct slu_against_scratch *s, struct slu_buf *match,
                     struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t l = 0; !rc && l < c->n_length && c->length[l] <= n_word; l++) {
        size_t n_gram = n_word - c->length[l] + 1;
        for (size_t from = 0; !rc && from < n_gram; from += WINDOW) {
            size_t n = n_gram - from < WINDOW ? n_gram - from : WINDOW;
            rc = find_window(c, l, word, from, n + c->length[l] - 1, s, match, err);
        }
    }
    return rc;
}

void slu_against_account(struct slu_against *c, const struct slu_against_match *m,
                         size_t n)
{
    c->n_counted += n != 0;
    for (size_t i = 0; i < n; i++) {
        c->matched[m[i].gram] = 1;
        for (uint64_t k = c->start[m[i].gram]; k < c->start[m[i].gram + 1]; k++) {
            struct slu_against_count *t = &c->count[c->item[k]];
            t->n_document += t->last != c->n_counted;
            t->last = c->n_counted;
        }
    }
}

struct slu_against_item slu_against_item(const struct slu_against *c, uint64_t i)
{
    const struct row *r = &c->row[i];
    const char *text = (const char *)c->text;

    return (struct slu_against_item){
        .origin = {r->source, r->document, r->offset},
        .source = text + r->at_source,
        .domain = text + r->at_domain,
        .id = text + r->at_id,
        .n_source = r->n_source,
        .n_domain = r->n_domain,
        .n_id = r->n_id,
        .n_gram = r->n_gram,
        .n_matched = c->count[i].n_matched,
        .n_document = c->count[i].n_document,
    };
}

uint64_t slu_against_matched(struct slu_against *c, uint64_t *n_item)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < c->n_gram; i++) {
        n += c->matched[i];
        for (uint64_t k = c->start[i]; c->matched[i] && k < c->start[i + 1]; k++)
            c->count[c->item[k]].n_matched++;
    }
    *n_item = 0;
    for (uint64_t i = 0; i < c->n_item; i++)
        *n_item += c->count[i].n_document != 0;
    return n;
}
