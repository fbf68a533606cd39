/* source_rows.c - see source_rows.h. */
#include "source_rows.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"

void slu_source_rows_release(struct slu_source_rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->row[i].name);
    free(r->row);
    *r = (struct slu_source_rows){0};
}

/* Orders rows by number, then by name. */
static int compare(const struct slu_source_row *a, uint64_t number, const char *name)
{
    if (a->number != number)
        return a->number < number ? -1 : 1;
    return a->name && name ? strcmp(a->name, name) : 0;
}

/* Finds a source's row, or makes it; NULL, without an error: it has none. */
static int find(struct slu_source_rows *r, uint64_t number, const char *name,
                struct slu_source_row **row, struct slu_err *err)
{
    size_t lo = 0, hi = r->n;

    *row = NULL;
    if (r->last < r->n && !compare(&r->row[r->last], number, name)) {
        *row = &r->row[r->last];
        return SLU_OK;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(&r->row[mid], number, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == r->n || compare(&r->row[lo], number, name)) {
        if (lo == SLU_SOURCE_ROWS)
            return SLU_OK;
        int rc = slu_grow(&r->row, &r->cap, r->n + 1, sizeof *r->row, err);
        char *copy = !rc && name ? strdup(name) : NULL;
        if (!rc && name && !copy)
            rc = slu_fail_nomem(err, strlen(name) + 1);
        if (rc)
            return rc;
        if (r->n == SLU_SOURCE_ROWS)
            free(r->row[--r->n].name);
        memmove(&r->row[lo + 1], &r->row[lo], (r->n - lo) * sizeof *r->row);
        r->row[lo] = (struct slu_source_row){.number = number, .name = copy};
        r->n++;
    }
    r->last = lo;
    *row = &r->row[lo];
    return SLU_OK;
}

int slu_source_rows_count(struct slu_source_rows *r, uint64_t number, const char *name,
                          uint64_t n_tok, struct slu_u128 hash, struct slu_err *err)
{
    struct slu_source_row *row;
    int rc = find(r, number, name, &row, err);

    if (rc || !row)
        return rc;
    row->documents++;
    row->tokens += n_tok;
    row->checksum = slu_u128_add(row->checksum, hash);
    return SLU_OK;
}

int slu_source_rows_name(struct slu_source_rows *r, size_t i, const char *name,
                         uint64_t n_byte, struct slu_err *err)
{
    r->row[i].bytes = n_byte;
    r->row[i].name = strdup(name);
    return r->row[i].name ? SLU_OK : slu_fail_nomem(err, strlen(name) + 1);
}

int slu_source_rows_add(struct slu_source_rows *r, const struct slu_source_rows *more,
                        struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < more->n && !rc; i++) {
        const struct slu_source_row *m = &more->row[i];
        struct slu_source_row *row;
        rc = find(r, m->number, m->name ? m->name : "", &row, err);
        if (rc || !row)
            continue;
        row->bytes = m->bytes > row->bytes ? m->bytes : row->bytes;
        row->documents += m->documents;
        row->tokens += m->tokens;
        row->checksum = slu_u128_add(row->checksum, m->checksum);
    }
    return rc;
}

int slu_source_rows_put_json(const struct slu_source_rows *r, struct slu_buf *out,
                             struct slu_err *err)
{
    int rc = slu_buf_append(out, "[", 1, err);

    for (size_t i = 0; i < r->n && !rc; i++) {
        const struct slu_source_row *row = &r->row[i];
        const char *name = row->name ? row->name : "";
        char hex[33];
        slu_u128_hex(row->checksum, hex);
        rc = slu_buf_printf(out, err, "%s\n    {", i ? "," : "");
        if (!rc && row->number != SLU_NO_SOURCE)
            rc = slu_buf_printf(out, err, "\"source\": %llu, ",
                                (unsigned long long)row->number);
        if (!rc)
            rc = slu_buf_printf(out, err, "\"name\": ");
        if (!rc)
            rc = slu_json_put_string(out, name, strlen(name), err);
        if (!rc)
            rc = slu_buf_printf(out, err,
                                ", \"bytes\": %llu, \"documents\": %llu, \"tokens\": "
                                "%llu, \"stream_checksum\": \"%s\"}",
                                (unsigned long long)row->bytes,
                                (unsigned long long)row->documents,
                                (unsigned long long)row->tokens, hex);
    }
    return rc ? rc : slu_buf_append(out, "]", 1, err);
}

static bool hex(const char *s, uint64_t *v)
{
    *v = 0;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef",
                   *d = s[i] ? strchr(digits, s[i]) : NULL;
        if (!d)
            return false;
        *v = *v << 4 | (uint64_t)(d - digits);
    }
    return true;
}

static bool get(struct slu_json_value v, const char *key, uint64_t *n)
{
    struct slu_json_value at;
    return slu_json_get(v, key, &at) && slu_json_u64(at, n);
}

int slu_source_rows_get_json(struct slu_source_rows *r, struct slu_json_value v,
                             struct slu_err *err)
{
    struct slu_json_iter it;
    int rc = SLU_OK;

    for (slu_json_iter_init(&it, v); !rc && slu_json_next(&it);) {
        struct slu_source_row in = {.number = SLU_NO_SOURCE}, *row;
        struct slu_json_value at;
        const char *name = slu_json_get_string(it.value, "name", ""),
                   *sum = slu_json_get_string(it.value, "stream_checksum", "");
        if ((slu_json_get(it.value, "source", &at) && !slu_json_u64(at, &in.number)) ||
            !get(it.value, "bytes", &in.bytes) ||
            !get(it.value, "documents", &in.documents) ||
            !get(it.value, "tokens", &in.tokens) || strlen(sum) != 32 ||
            !hex(sum, &in.checksum.hi) || !hex(sum + 16, &in.checksum.lo))
            return slu_fail(err, SLU_E_FORMAT,
                            "a source of a step has no size, counts or "
                            "stream_checksum, or its number is none");
        rc = find(r, in.number, name, &row, err);
        if (rc || !row)
            continue;
        in.name = row->name;
        *row = in;
    }
    return rc;
}
