/* encode.c - the encoder: text in, ids out. */
#include "lib/tok/tok.h"

#include <stdlib.h>

struct slu_encoder {
    const struct slu_tokenizer *t;
};

int slu_encoder_new(struct slu_encoder **out, const struct slu_tokenizer *t,
                    uint64_t cache_byte, struct slu_err *err)
{
    struct slu_encoder *e = calloc(1, sizeof *e);

    (void)cache_byte;
    *out = e;
    if (!e)
        return slu_fail_nomem(err, sizeof *e);
    e->t = t;
    return SLU_OK;
}

void slu_encoder_free(struct slu_encoder *e)
{
    free(e);
}

static int encode_bytes(const char *text, size_t n_byte, struct slu_ids *ids,
                        struct slu_err *err)
{
    size_t need;
    int rc;

    if (slu_add_overflow(ids->n, n_byte, &need))
        return slu_fail_nomem(err, SIZE_MAX);
    if ((rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)) < 0)
        return rc;
    for (size_t i = 0; i < n_byte; i++)
        ids->id[ids->n + i] = (uint8_t)text[i];
    ids->n = need;
    return SLU_OK;
}

int slu_encode(struct slu_encoder *e, const char *utf8, size_t n_byte,
               struct slu_ids *ids, struct slu_err *err)
{
    if (e->t->is_bytes)
        return encode_bytes(utf8, n_byte, ids, err);
    return slu_fail(err, SLU_E_UNSUPPORTED, "this tokenizer cannot encode yet");
}
