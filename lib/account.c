#include "account.h"

#include <string.h>

void slu_ledger_drop(struct slu_ledger *l, const char *reason, struct slu_count n)
{
    for (unsigned i = 0; i < l->n_dropped; i++)
        if (!strcmp(l->dropped[i].reason, reason)) {
            slu_count_add(&l->dropped[i].n, n);
            return;
        }
    unsigned i = l->n_dropped < SLU_MAX_REASONS ? l->n_dropped++ : SLU_MAX_REASONS - 1;
    if (!l->dropped[i].reason)
        l->dropped[i].reason = reason;
    slu_count_add(&l->dropped[i].n, n);
}

static int check(const char *what, uint64_t in, uint64_t created, uint64_t repeated,
                 uint64_t padding, uint64_t out, uint64_t dropped, struct slu_err *err)
{
    if (in + created + repeated + padding == out + dropped)
        return SLU_OK;
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "internal error: the %s do not balance: in %llu + created %llu + "
        "repeated %llu + padding %llu is not out %llu + dropped %llu; please "
        "report it",
        what, (unsigned long long)in, (unsigned long long)created,
        (unsigned long long)repeated, (unsigned long long)padding,
        (unsigned long long)out, (unsigned long long)dropped);
}

int slu_ledger_check(const struct slu_ledger *l, struct slu_err *err)
{
    struct slu_count d = {0, 0, 0};
    for (unsigned i = 0; i < l->n_dropped; i++)
        slu_count_add(&d, l->dropped[i].n);
    int rc = check("tokens", l->in.tokens, l->created.tokens, l->repeated.tokens,
                   l->padding, l->out.tokens, d.tokens, err);
    if (!rc)
        rc = check("sequences", l->in.sequences, l->created.sequences,
                   l->repeated.sequences, 0, l->out.sequences, d.sequences, err);
    if (!rc)
        rc = check("documents", l->in.documents, l->created.documents,
                   l->repeated.documents, 0, l->out.documents, d.documents, err);
    return rc;
}
