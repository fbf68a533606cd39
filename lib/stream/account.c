#include "account.h"

#include <stdio.h>
#include <string.h>

void slu_account_drop(struct slu_account *l, const char *reason, struct slu_count n)
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

/* Checks the counts of one kind, which are in the order of the equation. */
static int check(const char *what, const uint64_t in[5], const uint64_t out[3],
                 struct slu_err *err)
{
    char from[48] = "", to[48] = "";
    if (in[0] + in[1] + in[2] + in[3] + in[4] == out[0] + out[1] + out[2])
        return SLU_OK;
    if (in[1])
        snprintf(from, sizeof from, "from_work %llu + ", (unsigned long long)in[1]);
    if (out[1])
        snprintf(to, sizeof to, "to_work %llu + ", (unsigned long long)out[1]);
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "internal error: the %s do not balance: in %llu + %screated %llu + "
        "repeated %llu + padding %llu is not out %llu + %sdropped %llu; please "
        "report it",
        what, (unsigned long long)in[0], from, (unsigned long long)in[2],
        (unsigned long long)in[3], (unsigned long long)in[4],
        (unsigned long long)out[0], to, (unsigned long long)out[2]);
}

int slu_account_check(const struct slu_account *l, struct slu_err *err)
{
    struct slu_count d = {0};
    for (unsigned i = 0; i < l->n_dropped; i++)
        slu_count_add(&d, l->dropped[i].n);
    const uint64_t in[4][5] = {{l->in.tokens, l->from_work.tokens, l->created.tokens,
                                l->repeated.tokens, l->padding},
                               {l->in.sequences, l->from_work.sequences,
                                l->created.sequences, l->repeated.sequences, 0},
                               {l->in.documents, l->from_work.documents,
                                l->created.documents, l->repeated.documents, 0},
                               {l->in.loss_tokens, l->from_work.loss_tokens,
                                l->created.loss_tokens, l->repeated.loss_tokens, 0}};
    const uint64_t out[4][3] = {
        {l->out.tokens, l->to_work.tokens, d.tokens},
        {l->out.sequences, l->to_work.sequences, d.sequences},
        {l->out.documents, l->to_work.documents, d.documents},
        {l->out.loss_tokens, l->to_work.loss_tokens, d.loss_tokens}};
    int rc = check("tokens", in[0], out[0], err);
    if (!rc)
        rc = check("sequences", in[1], out[1], err);
    if (!rc)
        rc = check("documents", in[2], out[2], err);
    return rc ? rc : check("tokens that are trained on", in[3], out[3], err);
}
