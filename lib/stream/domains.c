#include "domains.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"

typedef unsigned long long ull; /* for printf */

void slu_domains_release(struct slu_domains *d)
{
    free(d->row);
    *d = (struct slu_domains)SLU_DOMAINS_INIT;
}

int slu_domains_row(struct slu_domains *d, uint32_t number, struct slu_domain_row **row,
                    struct slu_err *err)
{
    *row = &d->none;
    if (number == SLU_NO_DOMAIN)
        return SLU_OK;
    int rc = slu_grow(&d->row, &d->cap, (size_t)number + 1, sizeof *d->row, err);
    if (rc)
        return rc;
    while (d->n <= number)
        d->row[d->n++] = (struct slu_domain_row){0};
    *row = &d->row[number];
    return SLU_OK;
}

static void add_row(struct slu_domain_row *a, const struct slu_domain_row *b)
{
    a->documents += b->documents;
    a->tokens += b->tokens;
    a->text_tok += b->text_tok;
    a->text_byte += b->text_byte;
}

int slu_domains_add(struct slu_domains *d, const struct slu_domains *b,
                    struct slu_err *err)
{
    struct slu_domain_row *row;
    int rc = SLU_OK;
    add_row(&d->none, &b->none);
    for (size_t i = 0; i < b->n && !rc; i++) {
        rc = slu_domains_row(d, (uint32_t)i, &row, err);
        if (!rc)
            add_row(row, &b->row[i]);
    }
    return rc;
}

/* Adds the text of n ids; ids that are not in the vocabulary have none. */
static void add_text(struct slu_domain_row *row, const struct slu_batch *b, uint64_t at,
                     uint64_t n, const struct slu_vocab_table *v)
{
    uint64_t n_tok = 0, n_byte = 0;
    for (uint64_t i = at; i < at + n; i++) {
        uint32_t id = slu_batch_id(b, i);
        if (id >= v->n || (v->flags[id] & SLU_VOCAB_SPECIAL))
            continue;
        n_tok++;
        n_byte += v->off[id + 1] - v->off[id];
    }
    row->text_tok += n_tok;
    row->text_byte += n_byte;
}

int slu_domains_add_batch(struct slu_domains *d, const struct slu_batch *b,
                          const struct slu_vocab_table *v, struct slu_err *err)
{
    for (size_t i = 0; i < b->n_seq; i++) {
        uint64_t at = b->seq[i].tok_off;
        for (uint64_t k = 0; k < b->seq[i].n_seg; k++) {
            const struct slu_seg *s = &b->seg[b->seq[i].seg_off + k];
            struct slu_domain_row *row;
            if (s->source != SLU_PADDING) {
                int rc = slu_domains_row(d, s->domain, &row, err);
                if (rc)
                    return rc;
                row->documents += s->offset == 0;
                row->tokens += s->len_tok;
                if (v && slu_batch_has_ids(b))
                    add_text(row, b, at, s->len_tok, v);
            }
            at += s->len_tok;
        }
    }
    return SLU_OK;
}

static int by_tokens(const void *a, const void *b)
{
    const struct slu_domain_row *x = a, *y = b;
    if (x->tokens != y->tokens)
        return x->tokens > y->tokens ? -1 : 1;
    if (!x->name || !y->name)
        return !x->name - !y->name; /* no domain last */
    return strcmp(x->name, y->name);
}

int slu_domains_list(const struct slu_domains *d, struct slu_names *names,
                     struct slu_domain_row **list, size_t *n, struct slu_err *err)
{
    *n = 0;
    *list = malloc((d->n + 1) * sizeof **list);
    if (!*list)
        return slu_fail_nomem(err, (d->n + 1) * sizeof **list);
    for (size_t i = 0; i <= d->n; i++) {
        struct slu_domain_row r = i < d->n ? d->row[i] : d->none;
        if (!r.documents && !r.tokens)
            continue;
        r.name = i < d->n ? slu_names_domain(names, (uint32_t)i) : NULL;
        (*list)[(*n)++] = r;
    }
    qsort(*list, *n, sizeof **list, by_tokens);
    return SLU_OK;
}

struct slu_domain_row slu_domains_sum(const struct slu_domain_row *list, size_t from,
                                      size_t n)
{
    struct slu_domain_row r = {0};
    for (size_t i = from; i < n; i++)
        add_row(&r, &list[i]);
    return r;
}

static int put_row(const struct slu_domain_row *r, struct slu_buf *out,
                   struct slu_err *err)
{
    int rc = slu_buf_printf(out, err, ", \"documents\": %llu, \"tokens\": %llu",
                            (ull)r->documents, (ull)r->tokens);
    if (!rc && r->text_tok)
        rc = slu_buf_printf(out, err,
                            ", \"text_bytes\": %llu, \"text_tokens\": %llu, "
                            "\"bytes_per_token\": %.4f",
                            (ull)r->text_byte, (ull)r->text_tok,
                            (double)r->text_byte / (double)r->text_tok);
    return rc ? rc : slu_buf_printf(out, err, "}");
}

int slu_domains_put_json(const struct slu_domain_row *list, size_t n,
                         struct slu_buf *out, struct slu_err *err)
{
    size_t most = n > SLU_DOMAINS_MOST ? SLU_DOMAINS_MOST : n;
    int rc = slu_buf_printf(out, err, "[");
    for (size_t i = 0; i < most && !rc; i++) {
        const char *name = list[i].name;
        rc = slu_buf_printf(out, err, "%s{\"domain\": ", i ? ", " : "");
        if (!rc)
            rc = name ? slu_json_put_string(out, name, strlen(name), err)
                      : slu_buf_printf(out, err, "null");
        if (!rc)
            rc = put_row(&list[i], out, err);
    }
    if (!rc && n > most) {
        struct slu_domain_row rest = slu_domains_sum(list, most, n);
        rc = slu_buf_printf(out, err, ", {\"others\": %llu", (ull)(n - most));
        if (!rc)
            rc = put_row(&rest, out, err);
    }
    return rc ? rc : slu_buf_printf(out, err, "]");
}
