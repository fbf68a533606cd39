/* load.c - from a name to a tokenizer. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

static int load_bytes(struct slu_tokenizer *t, struct slu_err *err)
{
    int rc = SLU_OK;

    t->is_bytes = true;
    for (unsigned i = 0; i < 256 && rc >= 0; i++) {
        uint8_t b = (uint8_t)i;
        rc = tok_vocab_set(&t->vocab, i, &b, 1, 0, err);
    }
    if (rc < 0)
        return rc;
    return tok_vocab_set(&t->vocab, 256, "<|endoftext|>", 13, SLU_VOCAB_SPECIAL, err);
}

int slu_tokenizer_load(struct slu_tokenizer **out, const struct slu_tokenizer_cfg *cfg,
                       struct slu_err *err)
{
    const char *spec = cfg->spec ? cfg->spec : "builtin";
    struct slu_tokenizer *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->special_parse = cfg->special_parse;
    if (!strcmp(spec, "bytes"))
        rc = load_bytes(t, err);
    else
        rc = slu_fail(err, SLU_E_UNSUPPORTED, "%s: not a tokenizer that is built in",
                      spec);
    if (rc >= 0)
        rc = tok_finish(t, cfg, err);
    if (rc < 0) {
        slu_tokenizer_free(t);
        return rc;
    }
    *out = t;
    return SLU_OK;
}

void slu_tokenizer_free(struct slu_tokenizer *t)
{
    if (!t)
        return;
    tok_vocab_release(&t->vocab);
    free((void *)t->table.off);
    free((void *)t->table.bytes);
    free((void *)t->table.flags);
    free(t);
}

const struct slu_vocab_table *slu_tokenizer_vocab(const struct slu_tokenizer *t)
{
    return &t->table;
}

uint64_t slu_tokenizer_vocab_size(const struct slu_tokenizer *t)
{
    return t->table.n;
}

uint64_t slu_tokenizer_eos(const struct slu_tokenizer *t)
{
    return t->eos;
}

uint64_t slu_tokenizer_bos(const struct slu_tokenizer *t)
{
    return t->bos;
}

uint64_t slu_tokenizer_pad(const struct slu_tokenizer *t)
{
    return t->pad;
}

const uint8_t *slu_tokenizer_fingerprint(const struct slu_tokenizer *t)
{
    return t->fingerprint;
}

const char *slu_tokenizer_unicode(void)
{
    return "15.0.0";
}

void slu_ids_release(struct slu_ids *ids)
{
    free(ids->id);
    memset(ids, 0, sizeof *ids);
}
