/* mds_columns.c - finds the bytes of the ids in an MDS sample. */
#include <stdlib.h>
#include <string.h>

#include "formats/mds/mds.h"

enum { MAX_COLUMNS = 4096 };

static const struct {
    const char *name;
    enum slu_mds_type type;
} types[] = {{"uint8", SLU_MDS_U8},   {"int8", SLU_MDS_I8},    {"uint16", SLU_MDS_U16},
             {"int16", SLU_MDS_I16},  {"uint32", SLU_MDS_U32}, {"int32", SLU_MDS_I32},
             {"uint64", SLU_MDS_U64}, {"int64", SLU_MDS_I64}};
enum { N_TYPES = sizeof types / sizeof *types };

const char *slu_mds_type_name(enum slu_mds_type t)
{
    for (size_t i = 0; i < N_TYPES; i++)
        if (types[i].type == t)
            return types[i].name;
    return "any type";
}

/* Parses dimensions "2048" or "1,2048" to their product; at most one may differ from
 * 1. */
static bool parse_shape(const char *p, uint64_t *n_id)
{
    unsigned larger = 0;
    uint64_t n = 1;
    for (;; p++) {
        uint64_t d = 0;
        const char *digits = p;
        for (; *p >= '0' && *p <= '9' && d <= UINT32_MAX; p++)
            d = d * 10 + (uint64_t)(*p - '0');
        if (p == digits || !d || d > UINT32_MAX)
            return false;
        larger += d > 1;
        n = d > 1 ? d : n;
        if (*p != ',')
            break;
    }
    *n_id = n;
    return !*p && larger <= 1;
}

/* Parses "ndarray[:TYPE[:SHAPE]]" or "bytes". */
static int parse_encoding(struct slu_mds_columns *c, const char *text,
                          unsigned bytes_width, struct slu_err *err)
{
    static const enum slu_mds_type plain[9] = {
        [2] = SLU_MDS_U16, [4] = SLU_MDS_U32, [8] = SLU_MDS_I64};
    const char *type = text + strlen("ndarray");
    c->type = SLU_MDS_ANY;
    c->n_id = 0;
    c->plain = !strcmp(text, "bytes");
    if (c->plain && !bytes_width)
        return slu_advise(
            err, SLU_ADVISE_TOKEN_BYTES,
            slu_fail(err, SLU_E_USAGE,
                     "column %s has bytes; the width of their ids is not known",
                     c->name));
    if (c->plain) {
        c->type = plain[bytes_width <= 8 ? bytes_width : 0];
        return SLU_OK;
    }
    if (strncmp(text, "ndarray", 7) || (*type && *type != ':'))
        return slu_advise(err, SLU_ADVISE_COLUMN,
                          slu_fail(err, SLU_E_UNSUPPORTED,
                                   "column %s is %s; ids are read from ndarray columns "
                                   "of integers, or from bytes",
                                   c->name, text));
    if (!*type++)
        return SLU_OK;
    size_t n = strcspn(type, ":");
    for (size_t i = 0; i < N_TYPES; i++)
        if (strlen(types[i].name) == n && !strncmp(types[i].name, type, n))
            c->type = types[i].type;
    if (!c->type)
        return slu_fail(err, SLU_E_UNSUPPORTED, "column %s is %s; ids are integers",
                        c->name, text);
    if (type[n] && !parse_shape(type + n + 1, &c->n_id))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "column %s is %s; ids are read from arrays of one dimension",
                        c->name, text);
    return SLU_OK;
}

static bool list(struct slu_json_value v, const char *key, struct slu_json_value *out)
{
    return slu_json_get(v, key, out) && slu_json_type(*out) == SLU_JSON_ARRAY;
}

/* Element i of an array. */
static struct slu_json_value element(struct slu_json_value v, unsigned i)
{
    struct slu_json_iter it;
    slu_json_iter_init(&it, v);
    for (unsigned at = 0; slu_json_next(&it); at++)
        if (at == i)
            return it.value;
    return (struct slu_json_value)SLU_JSON_NONE;
}

/* Index of the name in the list; -1: not in the list. */
static int find(struct slu_json_value names, const char *name)
{
    struct slu_json_iter it;
    slu_json_iter_init(&it, names);
    for (int i = 0; slu_json_next(&it); i++)
        if (slu_json_is(it.value, name))
            return i;
    return -1;
}

static int parse_sizes(struct slu_mds_columns *c, struct slu_json_value sizes,
                       struct slu_err *err)
{
    struct slu_json_iter it;
    slu_json_iter_init(&it, sizes);
    for (unsigned i = 0; slu_json_next(&it); i++)
        if (slu_json_type(it.value) != SLU_JSON_NULL &&
            (!slu_json_u64(it.value, &c->size[i]) || c->size[i] > UINT32_MAX))
            return slu_fail(err, SLU_E_FORMAT,
                            "column_sizes has an entry that is neither null nor a "
                            "number below 2^32");
    return SLU_OK;
}

static int choose(struct slu_mds_columns *c, struct slu_json_value names,
                  const char *want, struct slu_err *err)
{
    int at = want ? find(names, want) : find(names, "tokens");
    if (!want && at < 0)
        at = find(names, "input_ids");
    if (at < 0)
        return slu_advise(err, SLU_ADVISE_COLUMN,
                          slu_fail(err, SLU_E_FORMAT, "has no column %s",
                                   want ? want : "tokens or input_ids"));
    const char *name = "";
    size_t n;
    (void)!slu_json_string(element(names, (unsigned)at), &name, &n);
    c->at = (unsigned)at;
    c->name = strdup(name);
    return c->name ? SLU_OK : slu_fail_nomem(err, strlen(name) + 1);
}

int slu_mds_columns_parse(struct slu_mds_columns *c, struct slu_json_value v,
                          const char *want, unsigned bytes_width, struct slu_err *err)
{
    struct slu_json_value names, encodings, sizes;
    const char *text;
    size_t n_text;
    *c = (struct slu_mds_columns){0};
    if (!list(v, "column_names", &names) || !list(v, "column_encodings", &encodings) ||
        !list(v, "column_sizes", &sizes))
        return slu_fail(err, SLU_E_FORMAT,
                        "has no column_names, column_encodings or column_sizes");
    size_t n = slu_json_count(names);
    if (!n || n > MAX_COLUMNS || slu_json_count(encodings) != n ||
        slu_json_count(sizes) != n)
        return slu_fail(
            err, SLU_E_FORMAT,
            "%llu column_names, %llu column_encodings and %llu column_sizes; "
            "expected equal numbers from 1 to %d",
            (unsigned long long)n, (unsigned long long)slu_json_count(encodings),
            (unsigned long long)slu_json_count(sizes), MAX_COLUMNS);
    c->n = (unsigned)n;
    c->size = calloc(n, sizeof *c->size);
    int rc =
        c->size ? parse_sizes(c, sizes, err) : slu_fail_nomem(err, n * sizeof *c->size);
    if (!rc)
        rc = choose(c, names, want, err);
    if (!rc && !slu_json_string(element(encodings, c->at), &text, &n_text))
        rc = slu_fail(err, SLU_E_FORMAT,
                      "the entry of column %s in column_encodings is not a string",
                      c->name);
    if (!rc)
        rc = parse_encoding(c, text, bytes_width, err);
    /* An ndarray of fixed type and shape has this size; no other column may have
     * one. */
    uint64_t must = c->plain && !rc ? c->size[c->at] : c->n_id * slu_mds_width(c->type);
    if (!rc && c->size[c->at] != must)
        rc = slu_fail(
            err, SLU_E_FORMAT,
            "column %s: its type %s takes %llu bytes, and column_sizes says %llu",
            c->name, text, (unsigned long long)must,
            (unsigned long long)c->size[c->at]);
    if (rc)
        slu_mds_columns_release(c);
    return rc;
}

bool slu_mds_columns_equal(const struct slu_mds_columns *a,
                           const struct slu_mds_columns *b)
{
    return a->n == b->n && a->at == b->at && a->plain == b->plain &&
           a->type == b->type && a->n_id == b->n_id && !strcmp(a->name, b->name) &&
           !memcmp(a->size, b->size, a->n * sizeof *a->size);
}

void slu_mds_columns_release(struct slu_mds_columns *c)
{
    free(c->size);
    free(c->name);
    *c = (struct slu_mds_columns){0};
}
