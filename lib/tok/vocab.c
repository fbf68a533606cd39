/* vocab.c - the vocabulary builder. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ID (UINT64_C(1) << 24) /* more ids than that is a damaged file */

int tok_vocab_set(struct tok_vocab *v, uint64_t id, const void *p, size_t n,
                  uint8_t flag, struct slu_err *err)
{
    int rc;

    if (id >= MAX_ID)
        return slu_fail(err, SLU_E_LIMIT, "token id %llu is above the limit of %llu",
                        (unsigned long long)id, (unsigned long long)MAX_ID);
    if (n >= UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT, "token %llu is longer than 4 GiB",
                        (unsigned long long)id);
    if (id >= v->n) {
        size_t need = (size_t)id + 1;
        if ((rc = slu_grow(&v->off, &v->cap_off, need, sizeof *v->off, err)) < 0 ||
            (rc = slu_grow(&v->len, &v->cap_len, need, sizeof *v->len, err)) < 0 ||
            (rc = slu_grow(&v->flag, &v->cap_flag, need, 1, err)) < 0)
            return rc;
        for (size_t i = v->n; i < need; i++) {
            v->off[i] = 0;
            v->len[i] = UINT32_MAX;
            v->flag[i] = SLU_VOCAB_HOLE;
        }
        v->n = need;
    }
    v->off[id] = v->bytes.len;
    v->len[id] = (uint32_t)n;
    v->flag[id] = flag;
    return slu_buf_append(&v->bytes, p, n, err);
}

void tok_vocab_release(struct tok_vocab *v)
{
    slu_buf_release(&v->bytes);
    free(v->off);
    free(v->len);
    free(v->flag);
    memset(v, 0, sizeof *v);
}
