/* steps.c - see steps.h. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "account_json.h"

enum {
    MOST = 1000,     /* steps of a list; more that differ are summed by program */
    MOST_READ = 4096 /* in JSON */
};

/* ---- rows ---- */

static void free_step(struct slu_step *t)
{
    free(t->program);
    free(t->version);
    free(t->arguments);
}

static void free_row(struct slu_step_row *row)
{
    free_step(&row->step);
    slu_source_rows_release(&row->sources);
}

void slu_steps_release(struct slu_step_list *s)
{
    for (size_t i = 0; i < s->n; i++)
        free_row(&s->row[i]);
    free(s->row);
    for (size_t i = 0; i < s->n_reason; i++)
        free(s->reason[i]);
    free(s->reason);
    *s = (struct slu_step_list)SLU_STEPS_INIT;
}

static bool equal(const struct slu_step *a, const struct slu_step *b)
{
    return a->seed == b->seed && !strcmp(a->program, b->program) &&
           !strcmp(a->version, b->version) && !strcmp(a->arguments, b->arguments);
}

/* Finds the list's own copy of a reason; makes it if it is missing. */
static int intern(struct slu_step_list *s, const char *reason, const char **own,
                  struct slu_err *err)
{
    for (size_t i = 0; i < s->n_reason; i++)
        if (!strcmp(s->reason[i], reason)) {
            *own = s->reason[i];
            return SLU_OK;
        }
    int rc =
        slu_grow(&s->reason, &s->cap_reason, s->n_reason + 1, sizeof *s->reason, err);
    char *copy = rc ? NULL : strdup(reason);
    if (!rc && !copy)
        rc = slu_fail_nomem(err, strlen(reason) + 1);
    if (!rc)
        *own = s->reason[s->n_reason++] = copy;
    return rc;
}

/* Takes what both counts have from both. */
static void cancel(uint64_t *a, uint64_t *b)
{
    const uint64_t both = *a < *b ? *a : *b;
    *a -= both;
    *b -= both;
}

static int by_reason(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b; /* `reason` is the row's first member */
    return strcmp(*x, *y);
}

/* Adds an account to that of a row. */
static int add_account(struct slu_step_list *s, struct slu_step_row *row,
                       const struct slu_account *more, struct slu_err *err)
{
    static const struct slu_count none;
    struct slu_account *l = &row->account;
    int rc = SLU_OK;

    row->counted = true;
    l->masks |= more->masks;
    l->padding += more->padding;
    slu_replaced_add(&l->replaced, more->replaced);
    slu_count_add(&l->in, more->in);
    slu_count_add(&l->created, more->created);
    slu_count_add(&l->repeated, more->repeated);
    slu_count_add(&l->out, more->out);
    slu_count_add(&l->from_work, more->from_work);
    slu_count_add(&l->to_work, more->to_work);
    cancel(&l->from_work.tokens, &l->to_work.tokens);
    cancel(&l->from_work.sequences, &l->to_work.sequences);
    cancel(&l->from_work.documents, &l->to_work.documents);
    cancel(&l->from_work.loss_tokens, &l->to_work.loss_tokens);
    for (unsigned i = 0; i < more->n_dropped && !rc; i++) {
        const char *reason = NULL;
        if (!memcmp(&more->dropped[i].n, &none, sizeof none))
            continue;
        rc = intern(s, more->dropped[i].reason, &reason, err);
        if (!rc)
            slu_account_drop(l, reason, more->dropped[i].n);
    }
    qsort(l->dropped, l->n_dropped, sizeof *l->dropped, by_reason);
    return rc;
}

/* Inserts a step at `at`, without counts. */
static int insert(struct slu_step_list *s, size_t at, const struct slu_step *t,
                  struct slu_err *err)
{
    int rc = slu_grow(&s->row, &s->cap, s->n + 1, sizeof *s->row, err);
    if (rc)
        return rc;
    struct slu_step_row row = {.step = {strdup(t->program), strdup(t->version),
                                        strdup(t->arguments), t->seed}};
    if (!row.step.program || !row.step.version || !row.step.arguments) {
        free_step(&row.step);
        return slu_fail_nomem(err, strlen(t->arguments) + 1);
    }
    memmove(&s->row[at + 1], &s->row[at], (s->n - at) * sizeof *s->row);
    s->row[at] = row;
    s->n++;
    return SLU_OK;
}

int slu_steps_add(struct slu_step_list *s, const struct slu_step *step,
                  const struct slu_account *account, struct slu_err *err)
{
    int rc = insert(s, s->n, step, err);
    if (!rc && !account)
        s->row[s->n - 1].uncounted = true;
    return rc || !account ? rc : add_account(s, &s->row[s->n - 1], account, err);
}

int slu_steps_add_unknown(struct slu_step_list *s, struct slu_err *err)
{
    static const struct slu_step unknown = {(char *)SLU_STEP_UNKNOWN, (char *)"",
                                            (char *)"", 0};

    return slu_steps_add(s, &unknown, NULL, err);
}

int slu_steps_count(struct slu_step_list *s, const struct slu_account *more,
                    struct slu_err *err)
{
    return add_account(s, &s->row[s->n - 1], more, err);
}

int slu_steps_sources(struct slu_step_list *s, const struct slu_source_rows *more,
                      struct slu_err *err)
{
    return slu_source_rows_add(&s->row[s->n - 1].sources, more, err);
}

/* ---- joining ---- */

/* Adds what is known of an equal step. */
static int add_row(struct slu_step_list *s, size_t to, const struct slu_step_row *more,
                   struct slu_err *err)
{
    int rc = slu_source_rows_add(&s->row[to].sources, &more->sources, err);
    s->row[to].uncounted |= more->uncounted;
    return rc || !more->counted ? rc : add_account(s, &s->row[to], &more->account, err);
}

static size_t find(const struct slu_step_list *s, size_t from, const struct slu_step *t)
{
    while (from < s->n && !equal(&s->row[from].step, t))
        from++;
    return from;
}

int slu_steps_count_line(struct slu_step_list *s, const struct slu_step *step,
                         const char *file, uint64_t n_tok, struct slu_u128 hash,
                         struct slu_err *err)
{
    struct slu_step t = *step;
    size_t i = find(s, 0, &t);
    int rc = SLU_OK;

    if (i == s->n && s->n >= MOST) {
        t.arguments = (char *)"...";
        i = find(s, 0, &t);
    }
    if (i == s->n)
        rc = insert(s, i, &t, err);
    if (!rc)
        s->row[i].uncounted = true;
    return rc ? rc
              : slu_source_rows_count(&s->row[i].sources, SLU_NO_SOURCE, file, n_tok,
                                      hash, err);
}

/* Inserts a row of another list before row *at, and moves *at behind it. */
static int insert_row(struct slu_step_list *s, size_t *at,
                      const struct slu_step_row *row, struct slu_err *err)
{
    struct slu_step t = row->step;
    size_t to = *at;
    int rc = SLU_OK;

    if (s->n >= MOST) {
        t.arguments = (char *)"...";
        t.seed = 0;
        to = find(s, 0, &t);
    }
    if (s->n < MOST || to == s->n) {
        to = *at;
        rc = insert(s, to, &t, err);
        ++*at;
    }
    return rc ? rc : add_row(s, to, row, err);
}

int slu_steps_join(struct slu_step_list *s, const struct slu_step_list *more,
                   struct slu_err *err)
{
    size_t at = 0; /* rows before it are before the next one of `more` */
    int rc = SLU_OK;

    for (size_t i = 0, waiting = 0; i <= more->n && !rc; i++) {
        const bool aside = i < more->n && slu_step_is_aside(&more->row[i]);
        size_t found = i < more->n ? find(s, aside ? 0 : at, &more->row[i].step) : s->n;
        size_t to = found < at ? at : found;
        if (i < more->n && found == s->n)
            continue; /* waits for the next equal one */
        for (; waiting < i && !rc; waiting++)
            rc = insert_row(s, &to, &more->row[waiting], err);
        if (!rc && i < more->n)
            rc = add_row(s, found < at ? found : to, &more->row[i], err);
        at = found < at ? to : to + 1;
        waiting = i + 1;
    }
    return rc;
}

int slu_steps_of(struct slu_step_list *s, const struct slu_header *h,
                 const struct slu_step_list *counted, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = insert(s, s->n, &h->step[i], err);
    return rc ? rc : slu_steps_join(s, counted, err);
}

bool slu_steps_total(const struct slu_step_list *s, const struct slu_count *out,
                     struct slu_account *total)
{
    struct slu_account all = {.in = *out};
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct slu_account *l = &s->row[i].account;
        if (!s->row[i].counted)
            continue;
        any = true;
        all.masks |= l->masks;
        all.padding += l->padding;
        slu_replaced_add(&all.replaced, l->replaced);
        slu_count_add(&all.in, l->in);
        slu_count_add(&all.out, l->out); /* of all steps, until the end */
        slu_count_add(&all.created, l->created);
        slu_count_add(&all.repeated, l->repeated);
        slu_count_add(&all.from_work, l->from_work);
        slu_count_add(&all.to_work, l->to_work);
        for (unsigned k = 0; k < l->n_dropped; k++)
            slu_account_drop(&all, l->dropped[k].reason, l->dropped[k].n);
    }
    if (!any || all.in.documents < all.out.documents ||
        all.in.sequences < all.out.sequences || all.in.tokens < all.out.tokens)
        return false;
    slu_count_sub(&all.in, all.out);
    all.out = *out;
    qsort(all.dropped, all.n_dropped, sizeof *all.dropped, by_reason);
    *total = all;
    return true;
}

bool slu_steps_complete(const struct slu_step_list *s)
{
    size_t n = 0;

    while (n < s->n && slu_step_known(&s->row[n]))
        n++;
    return n && n == s->n;
}

/* ---- JSON ---- */

int slu_steps_put_json(const struct slu_step_list *s, struct slu_buf *out,
                       struct slu_err *err)
{
    int rc = slu_buf_append(out, "[", 1, err);

    for (size_t i = 0; i < s->n && !rc; i++) {
        const struct slu_step_row *row = &s->row[i];
        rc = slu_buf_printf(out, err, "%s\n  ", i ? "," : "");
        if (!rc)
            rc = slu_step_put_json(&row->step, out, err);
        if (rc || !(row->counted || row->sources.n))
            continue;
        out->len--; /* the bracket */
        if (row->counted)
            rc = slu_account_put_json(out, &row->account, err);
        if (!rc && row->uncounted)
            rc = slu_buf_printf(out, err, ",\n  \"uncounted\": true");
        if (!rc && row->sources.n)
            rc = slu_buf_printf(out, err, ",\n  \"sources\": ");
        if (!rc && row->sources.n)
            rc = slu_source_rows_put_json(&row->sources, out, err);
        if (!rc)
            rc = slu_buf_append(out, "}", 1, err);
    }
    return rc ? rc : slu_buf_append(out, "]", 1, err);
}

static int get_step(struct slu_step_list *s, struct slu_json_value v,
                    struct slu_err *err)
{
    struct slu_json_value at;
    /* They are not written through this pointer. */
    struct slu_step t = {(char *)slu_json_get_string(v, "program", ""),
                         (char *)slu_json_get_string(v, "version", ""),
                         (char *)slu_json_get_string(v, "arguments", ""), 0};
    struct slu_account account;

    if (!slu_json_get(v, "seed", &at) || !slu_json_u64(at, &t.seed))
        return slu_fail(err, SLU_E_FORMAT, "a step of the provenance has no seed");
    const bool counted = slu_json_get(v, "tokens", &at);
    int rc = counted ? slu_account_get_json(&account, v, err) : SLU_OK;
    if (!rc)
        rc = slu_steps_add(s, &t, counted ? &account : NULL, err);
    if (!rc && slu_json_get(v, "uncounted", &at) &&
        !slu_json_bool(at, &s->row[s->n - 1].uncounted))
        rc = slu_fail(err, SLU_E_FORMAT, "a step's \"uncounted\" is no boolean");
    if (!rc && slu_json_get(v, "sources", &at))
        rc = slu_source_rows_get_json(&s->row[s->n - 1].sources, at, err);
    return rc;
}

int slu_steps_get_json(struct slu_step_list *s, struct slu_json_value v,
                       struct slu_err *err)
{
    struct slu_step_list more = SLU_STEPS_INIT;
    struct slu_json_iter it;
    int rc = SLU_OK;

    if (slu_json_type(v) != SLU_JSON_ARRAY)
        return slu_fail(err, SLU_E_FORMAT, "the steps of the provenance are no list");
    for (slu_json_iter_init(&it, v); !rc && slu_json_next(&it);)
        rc = more.n < MOST_READ
                 ? get_step(&more, it.value, err)
                 : slu_fail(err, SLU_E_LIMIT, "more than %d steps of provenance",
                            MOST_READ);
    if (!rc)
        rc = slu_steps_join(s, &more, err);
    slu_steps_release(&more);
    return rc;
}
