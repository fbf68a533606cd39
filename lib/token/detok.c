#include "detok.h"

int slu_detok(const struct slu_vocab_table *v, const void *tok, uint64_t n,
              unsigned tok_bytes, bool special, struct slu_buf *out,
              struct slu_err *err)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t id =
            tok_bytes == 2 ? ((const uint16_t *)tok)[i] : ((const uint32_t *)tok)[i];
        if (id >= v->n)
            return slu_fail(err, SLU_E_FORMAT, "id %u is not in the vocabulary", id);
        if ((v->flags[id] & SLU_VOCAB_SPECIAL) && !special)
            continue;
        int rc = slu_buf_append(out, v->bytes + v->off[id], v->off[id + 1] - v->off[id],
                                err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}
