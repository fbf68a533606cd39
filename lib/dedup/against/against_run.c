/* against_run.c - whole streams: adds them to an index of n-grams, or compares them
 * with one. */
#include <stdlib.h>
#include <string.h>

#include "against.h"
#include "lib/dedup/ngrams/ngrams_cut.h"
#include "lib/dedup/ngrams/ngrams_text.h"

struct worker {
    struct slu_paras paras;
    struct slu_against_scratch scratch;
    struct slu_buf step; /* int64_t for each paragraph */
};

static struct worker *new_workers(unsigned n, struct slu_err *err)
{
    struct worker *w = calloc(n, sizeof *w);

    if (!w)
        (void)slu_fail_nomem(err, n * sizeof *w);
    return w;
}

static void free_workers(struct worker *w, unsigned n)
{
    for (unsigned i = 0; w && i < n; i++) {
        slu_paras_release(&w[i].paras);
        slu_against_scratch_release(&w[i].scratch);
        slu_buf_release(&w[i].step);
    }
    free(w);
}

/* ---- into an index ---- */

struct build {
    struct slu_against_out *o;
    struct slu_paras_finder *finder;
    struct worker *worker;
    struct slu_names *names;
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *ctx;
};

/* words: for each sequence its n_word and n_sign, then the words. */
static int build_work(void *ctx, unsigned worker, struct slu_batch *b, void *words,
                      struct slu_err *err)
{
    struct build *t = ctx;
    struct slu_paras *p = &t->worker[worker].paras;
    int rc = SLU_OK;

    slu_buf_clear(words);
    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        rc = slu_paras_find(t->finder, b, &b->seq[i], p, err);
        const uint64_t n[] = {p->words.n, p->words.n_sign};
        if (!rc)
            rc = slu_buf_append(words, n, sizeof n, err);
        if (!rc && n[0])
            rc =
                slu_buf_append(words, p->words.hash, n[0] * sizeof *p->words.hash, err);
    }
    slu_paras_trim(p);
    return rc;
}

static int build_emit(void *ctx, struct slu_batch *b, void *words, struct slu_err *err)
{
    struct build *t = ctx;
    const uint64_t *w = (const void *)((struct slu_buf *)words)->data;
    int rc = SLU_OK;

    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        const struct slu_against_text text = {w + 2, w[0], w[1]};
        rc = slu_against_add(t->o, b, &b->seq[i], &text, t->names, err);
        w += 2 + text.n_word;
    }
    if (rc)
        return rc;
    slu_buf_trim(words, SLU_KEEP_BATCH_BYTE);
    return t->emit(t->ctx, b, err);
}

static void release_words(void *words)
{
    slu_buf_release(words);
}

int slu_against_build(struct slu_against_out *o, struct slu_reader *r,
                      const struct slu_shingler_cfg *text, unsigned n_threads,
                      unsigned n_slots,
                      int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err),
                      void *ctx, struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct slu_buf), build_work,
                                            build_emit, release_words};
    struct build t = {.o = o, .names = slu_reader_names(r), .emit = emit, .ctx = ctx};

    int rc = slu_paras_finder_new(&t.finder, text, true, false, err);
    t.worker = rc ? NULL : new_workers(n_threads, err);
    if (!rc && !t.worker)
        rc = SLU_E_NOMEM;
    if (!rc)
        rc = slu_stream_run_side(r, &ops, &t, n_threads, n_slots, total, err);
    free_workers(t.worker, n_threads);
    slu_paras_finder_free(t.finder);
    return rc;
}

/* ---- past an index ---- */

/* A worker's result for each sequence: its matches, one for each n-gram, and the
 * paragraphs to drop from documents that are cut. */
struct doc {
    uint64_t n_match, n_drop;
    bool left; /* a remaining paragraph has a word */
};

struct filter {
    struct slu_against *c;
    struct slu_against_run *run;
    struct slu_paras_finder *finder;
    struct worker *worker;
    struct slu_gram_cut cut;
};

/* The results for a batch: struct doc of each sequence; the matches and the struct
 * slu_gram_run of all. */
struct side {
    struct slu_buf docs, matches, drops;
};

static void release_side(void *side)
{
    struct side *s = side;

    slu_buf_release(&s->docs);
    slu_buf_release(&s->matches);
    slu_buf_release(&s->drops);
}

/* The first paragraph that begins at or after word w or, with `ends`, that ends after
 * w; p->n if there is none. */
static size_t first_para(const struct slu_paras *p, uint64_t w, bool ends)
{
    size_t low = 0, high = p->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct slu_para *a = &p->para[mid];
        if (ends ? a->word + a->n_word > w : a->word >= w)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Appends the paragraphs that the matches remove. Each match removes a range of
 * paragraphs; the sums of begins and ends tell which paragraphs are in a range. */
static int choose(const struct slu_against_run *run, struct worker *w,
                  const struct slu_against_match *m, struct doc *d,
                  struct slu_buf *drops, struct slu_err *err)
{
    const struct slu_paras *p = &w->paras;
    int64_t *step, open = 0;

    slu_buf_clear(&w->step);
    int rc = slu_buf_reserve(&w->step, (p->n + 1) * sizeof *step, err);
    if (rc)
        return rc;
    step = (void *)w->step.data;
    memset(step, 0, (p->n + 1) * sizeof *step);
    for (uint64_t k = 0; k < d->n_match; k++) {
        uint64_t low = m[k].word > run->window ? m[k].word - run->window : 0;
        step[first_para(p, low, true)]++;
        step[first_para(p, m[k].word + m[k].n_word + run->window, false)]--;
    }
    for (size_t i = 0; !rc && i < p->n; i++) {
        const struct slu_para *a = &p->para[i];
        struct slu_gram_run r = {a->tok, a->n_tok};
        open += step[i];
        if (!a->n_word)
            continue;
        if (!open) {
            d->left = true;
            continue;
        }
        rc = slu_buf_append(drops, &r, sizeof r, err);
        d->n_drop++;
    }
    return rc;
}

static int by_gram(const void *a, const void *b)
{
    uint64_t x = ((const struct slu_against_match *)a)->gram;
    uint64_t y = ((const struct slu_against_match *)b)->gram;

    return x < y ? -1 : x > y;
}

/* Reduces the n matches of a document to one for each n-gram; returns their number.
 * Items count documents, so a second match of an n-gram would only cost a visit of all
 * its items. */
static uint64_t each_once(struct slu_against_match *m, uint64_t n)
{
    uint64_t to = 0;

    if (n > 1)
        qsort(m, n, sizeof *m, by_gram);
    for (uint64_t i = 0; i < n; i++)
        if (to == 0 || m[i].gram != m[to - 1].gram)
            m[to++] = m[i];
    return to;
}

static int filter_work(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                       struct slu_err *err)
{
    struct filter *t = ctx;
    struct worker *w = &t->worker[worker];
    struct slu_paras *p = &w->paras;
    struct side *s = side;
    struct slu_buf *matches = &s->matches;
    int rc = SLU_OK;

    slu_buf_clear(&s->docs);
    slu_buf_clear(matches);
    slu_buf_clear(&s->drops);
    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        size_t had = matches->len;
        struct doc d = {0, 0, false};
        rc = slu_paras_find(t->finder, b, &b->seq[i], p, err);
        if (!rc)
            rc = slu_against_find(t->c, p->words.hash, p->words.n, &w->scratch, matches,
                                  err);
        d.n_match = (matches->len - had) / sizeof(struct slu_against_match);
        if (!rc && t->run->cut && d.n_match)
            rc = choose(t->run, w, (const void *)(matches->data + had), &d, &s->drops,
                        err);
        d.n_match = each_once((void *)(matches->data + had), d.n_match);
        matches->len = had + d.n_match * sizeof(struct slu_against_match);
        if (!rc)
            rc = slu_buf_append(&s->docs, &d, sizeof d, err);
    }
    slu_paras_trim(p);
    slu_buf_trim(&w->step, SLU_KEEP_BYTE);
    return rc;
}

static int keep(struct filter *t, struct slu_batch *b, const struct slu_seq *q,
                const struct slu_gram_run *drop, size_t n_drop, struct slu_err *err)
{
    struct slu_count gone;
    int rc = slu_gram_cut_keep(&t->cut, b, q, drop, n_drop, &gone, err);

    if (rc)
        return rc;
    slu_count_add(&t->run->paragraphs, gone);
    t->run->n_paragraph += n_drop;
    return SLU_OK;
}

static int filter_emit(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct filter *t = ctx;
    struct side *s = side;
    const struct doc *d = (const void *)s->docs.data;
    const struct slu_against_match *m = (const void *)s->matches.data;
    const struct slu_gram_run *drop = (const void *)s->drops.data;
    int rc = SLU_OK;

    for (size_t i = 0; !rc && i < b->n_seq; i++, d++) {
        struct slu_seq q = b->seq[i];
        slu_against_account(t->c, m, d->n_match);
        t->run->n_match += d->n_match != 0;
        m += d->n_match;
        if (d->n_match && !d->left)
            slu_count_add(&t->run->documents, slu_seq_count(b, &q));
        else
            rc = keep(t, b, &q, drop, d->n_drop, err);
        drop += d->n_drop;
    }
    if (rc)
        return rc;
    slu_buf_trim(&s->docs, SLU_KEEP_BATCH_BYTE);
    slu_buf_trim(&s->matches, SLU_KEEP_BATCH_BYTE);
    slu_buf_trim(&s->drops, SLU_KEEP_BATCH_BYTE);
    return slu_gram_cut_end(&t->cut, b, t->run->emit, t->run->ctx, err);
}

int slu_against_filter(struct slu_against *c, struct slu_reader *r,
                       struct slu_against_run *run, struct slu_sum *total,
                       struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct side), filter_work,
                                            filter_emit, release_side};
    struct filter t = {.c = c, .run = run};

    slu_gram_cut_init(&t.cut, run->text.tok_bytes);
    int rc = slu_paras_finder_new(&t.finder, &run->text, !run->cut, false, err);
    t.worker = rc ? NULL : new_workers(run->n_threads, err);
    if (!rc && !t.worker)
        rc = SLU_E_NOMEM;
    if (!rc)
        rc = slu_stream_run_side(r, &ops, &t, run->n_threads, run->n_slots, total, err);
    free_workers(t.worker, run->n_threads);
    slu_paras_finder_free(t.finder);
    slu_gram_cut_release(&t.cut);
    return rc;
}
