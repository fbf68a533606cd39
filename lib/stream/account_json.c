#include "account_json.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json_write.h"

/* The kinds of counts; the last one is only in reports of streams with masks. */
enum { TOKENS, SEQUENCES, DOCUMENTS, LOSS, KINDS };
static const char *const name[KINDS] = {"tokens", "sequences", "documents",
                                        "loss_tokens"};

static uint64_t *field(struct slu_count *n, int which)
{
    return which == TOKENS      ? &n->tokens
           : which == SEQUENCES ? &n->sequences
           : which == DOCUMENTS ? &n->documents
                                : &n->loss_tokens;
}

static unsigned long long get(const struct slu_count *n, int which)
{
    struct slu_count c = *n;
    return *field(&c, which);
}

static int put_row(struct slu_buf *b, const struct slu_account *l, int which,
                   struct slu_err *err)
{
    char padding[48] = "", work[96] = "";
    if (which == TOKENS)
        snprintf(padding, sizeof padding, ", \"padding\": %llu",
                 (unsigned long long)l->padding);
    if (get(&l->from_work, which) || get(&l->to_work, which))
        snprintf(work, sizeof work, ", \"from_work\": %llu, \"to_work\": %llu",
                 get(&l->from_work, which), get(&l->to_work, which));
    int rc = slu_buf_printf(
        b, err,
        ",\n  \"%s\": {\"in\": %llu, \"created\": %llu, \"repeated\": %llu%s, "
        "\"out\": %llu%s, \"dropped\": {",
        name[which], get(&l->in, which), get(&l->created, which),
        get(&l->repeated, which), padding, get(&l->out, which), work);
    for (unsigned i = 0; !rc && i < l->n_dropped; i++) {
        const char *reason = l->dropped[i].reason; /* may be from a file */
        rc = slu_buf_append(b, ", ", i ? 2 : 0, err);
        if (!rc)
            rc = slu_json_put_string(b, reason, strlen(reason), err);
        if (!rc)
            rc = slu_buf_printf(b, err, ": %llu", get(&l->dropped[i].n, which));
    }
    return rc ? rc : slu_buf_printf(b, err, "}}");
}

int slu_account_put_json(struct slu_buf *b, const struct slu_account *l,
                         struct slu_err *err)
{
    int rc = SLU_OK;
    for (int i = 0; i < (l->masks ? KINDS : LOSS) && !rc; i++)
        rc = put_row(b, l, i, err);
    if (!rc && l->replaced.records)
        rc = slu_buf_printf(b, err,
                            ",\n  \"replaced\": {\"records\": %llu, \"invalid-utf8\": "
                            "%llu, \"lone-surrogate\": %llu}",
                            (unsigned long long)l->replaced.records,
                            (unsigned long long)l->replaced.utf8,
                            (unsigned long long)l->replaced.surrogates);
    return rc;
}

/* ---- reading ---- */

static bool number(struct slu_json_value v, const char *key, bool must, uint64_t *out)
{
    struct slu_json_value at;
    return slu_json_get(v, key, &at) ? slu_json_u64(at, out) : !must;
}

static bool get_dropped(struct slu_account *l, int which, struct slu_json_value v)
{
    struct slu_json_value dropped;
    struct slu_json_iter it;
    if (!slu_json_get(v, "dropped", &dropped) ||
        slu_json_type(dropped) != SLU_JSON_OBJECT)
        return false;
    slu_json_iter_init(&it, dropped);
    while (slu_json_next(&it)) {
        struct slu_count n = {0};
        if (!slu_json_u64(it.value, field(&n, which)))
            return false;
        slu_account_drop(l, it.key, n);
    }
    return true;
}

int slu_account_get_json(struct slu_account *l, struct slu_json_value v,
                         struct slu_err *err)
{
    struct slu_json_value at;
    *l = (struct slu_account){0};
    if (slu_json_get(v, "replaced", &at) &&
        !(number(at, "records", true, &l->replaced.records) &&
          number(at, "invalid-utf8", true, &l->replaced.utf8) &&
          number(at, "lone-surrogate", true, &l->replaced.surrogates)))
        return slu_fail(err, SLU_E_FORMAT,
                        "has no counts of replaced as reports have them");
    for (int i = 0; i < KINDS; i++) {
        struct slu_json_value row;
        if (i == LOSS && !(l->masks = slu_json_get(v, name[i], &row)))
            break;
        bool good = slu_json_get(v, name[i], &row) &&
                    number(row, "in", true, field(&l->in, i)) &&
                    number(row, "from_work", false, field(&l->from_work, i)) &&
                    number(row, "created", true, field(&l->created, i)) &&
                    number(row, "repeated", true, field(&l->repeated, i)) &&
                    (i || number(row, "padding", true, &l->padding)) &&
                    number(row, "out", true, field(&l->out, i)) &&
                    number(row, "to_work", false, field(&l->to_work, i)) &&
                    get_dropped(l, i, row);
        if (!good)
            return slu_fail(err, SLU_E_FORMAT,
                            "has no counts of %s as reports have them", name[i]);
    }
    return SLU_OK;
}
