/* load.c - from a name to a tokenizer. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io.h"
#include "lib/tok/added.h"
#include "lib/tok/bpe.h"
#include "lib/tok/pre.h"
#include "lib/tok/unicode.h"

static int load_bytes(struct slu_tokenizer *t, struct slu_err *err)
{
    int rc = SLU_OK;

    t->is_bytes = true;
    for (unsigned i = 0; i < 256 && rc >= 0; i++) {
        uint8_t b = (uint8_t)i;
        rc = tok_vocab_set(&t->vocab, i, &b, 1, 0, err);
    }
    if (rc < 0 || (rc = tok_add_special(t, 256, "<|endoftext|>", err)) < 0)
        return rc;
    return tok_make_table(t, err);
}

int tok_add_special(struct slu_tokenizer *t, uint64_t id, const char *text,
                    struct slu_err *err)
{
    struct added_token token = {.id = (uint32_t)id, .special = true};
    size_t n = strlen(text);
    int rc;

    if (id < t->vocab.n && t->vocab.len[id] != UINT32_MAX)
        return slu_fail(
            err, SLU_E_FORMAT,
            "id %llu is a token already and cannot be %s; is the pattern right?",
            (unsigned long long)id, text);
    if (!t->added && (rc = added_new(&t->added, err)) < 0)
        return rc;
    if ((rc = tok_vocab_set(&t->vocab, id, text, n, SLU_VOCAB_SPECIAL, err)) < 0)
        return rc;
    return added_put(t->added, token, text, n, err);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && !strcmp(s + n - k, end);
}

/* A path is a rank file by its name, or because it is said how to split. */
static int load_path(struct slu_tokenizer *t, const struct slu_tokenizer_cfg *cfg,
                     struct slu_err *err)
{
    const char *pattern = NULL;
    struct slu_buf file = SLU_BUF_INIT;
    int rc;

    if ((cfg->pattern || ends_with(cfg->spec, ".tiktoken")) &&
        (rc = tok_tiktoken_pattern(&pattern, cfg->spec, cfg->pattern, err)) < 0)
        return slu_err_at(err, "%s", cfg->spec);
    if ((rc = slu_read_whole(&file, cfg->spec, TOK_MAX_FILE, err)) < 0)
        return rc;
    rc = pattern ? tok_load_tiktoken(t, &file, pattern, err)
                 : tok_load_hf(t, &file, err);
    slu_buf_release(&file);
    return rc < 0 ? slu_err_at(err, "%s", cfg->spec) : rc;
}

int slu_tokenizer_load(struct slu_tokenizer **out, const struct slu_tokenizer_cfg *cfg,
                       struct slu_err *err)
{
    const char *spec = cfg->spec ? cfg->spec : "builtin";
    bool own = !strcmp(spec, "bytes") || !strcmp(spec, "builtin");
    struct slu_tokenizer *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->special_parse = cfg->special_parse;
    if (own && cfg->pattern)
        rc = slu_fail(err, SLU_E_USAGE, "%s: --pattern is for .tiktoken files", spec);
    else if (own)
        rc = !strcmp(spec, "bytes") ? load_bytes(t, err) : tok_load_builtin(t, err);
    else
        rc = load_path(t, cfg, err);
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
    free(t->in_model);
    bpe_free(t->model);
    pre_free(t->pre);
    added_free(t->added);
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
    return UNI_VERSION;
}

void slu_ids_release(struct slu_ids *ids)
{
    free(ids->id);
    memset(ids, 0, sizeof *ids);
}
