/* finish.c - what every tokenizer gets once its parts are known: the id -> bytes table,
 * the ids of EOS, BOS and padding, and the fingerprint (semantics.md 11). */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/le.h"

static int make_table(struct slu_tokenizer *t, struct slu_err *err)
{
    struct tok_vocab *v = &t->vocab;
    size_t n_byte = 0, n = v->n;

    for (size_t i = 0; i < n; i++)
        n_byte += v->len[i] == UINT32_MAX ? 0 : v->len[i];
    uint64_t *off = malloc((n + 1) * sizeof *off);
    uint8_t *bytes = malloc(n_byte + 1), *flags = malloc(n + 1);
    t->table = (struct slu_vocab_table){n, off, bytes, flags};
    if (!off || !bytes || !flags)
        return slu_fail_nomem(err, n_byte + n * 9);
    n_byte = 0;
    for (size_t i = 0; i < n; i++) {
        off[i] = n_byte;
        flags[i] = v->flag[i];
        if (v->len[i] == UINT32_MAX)
            continue;
        memcpy(bytes + n_byte, v->bytes.data + v->off[i], v->len[i]);
        n_byte += v->len[i];
    }
    off[n] = n_byte;
    tok_vocab_release(v);
    return SLU_OK;
}

/* The id of the special token with that text, or SLU_NO_TOKEN. */
static uint64_t find_special(const struct slu_vocab_table *v, const char *name)
{
    size_t len = strlen(name);

    for (uint64_t i = 0; i < v->n; i++) {
        if ((v->flags[i] & SLU_VOCAB_SPECIAL) && v->off[i + 1] - v->off[i] == len &&
            !memcmp(v->bytes + v->off[i], name, len))
            return i;
    }
    return SLU_NO_TOKEN;
}

static uint64_t find_first(const struct slu_vocab_table *v, const char *const *name)
{
    uint64_t id = SLU_NO_TOKEN;

    for (; *name && id == SLU_NO_TOKEN; name++)
        id = find_special(v, *name);
    return id;
}

static int find_ids(struct slu_tokenizer *t, const char *eos, struct slu_err *err)
{
    static const char *const EOS[] = {
        "<|endoftext|>",
        "<|end_of_text|>",
        "</s>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "<eos>",
        "[EOS]",
        "<|eos|>",
        "<|im_end|>",
        NULL,
    };
    static const char *const BOS[] = {
        "<|begin_of_text|>",
        "<s>",
        "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
        "<bos>",
        "[BOS]",
        "<|startoftext|>",
        NULL,
    };
    static const char *const PAD[] = {
        "<|pad|>", "<pad>", "[PAD]", "<|padding|>", "<|finetune_right_pad_id|>", NULL,
    };

    t->eos = eos ? find_special(&t->table, eos) : find_first(&t->table, EOS);
    t->bos = find_first(&t->table, BOS);
    t->pad = find_first(&t->table, PAD);
    if (t->pad == SLU_NO_TOKEN)
        t->pad = t->eos;
    if (eos && t->eos == SLU_NO_TOKEN)
        return slu_fail(err, SLU_E_USAGE, "the tokenizer has no special token \"%s\"",
                        eos);
    return SLU_OK;
}

static int put_str(struct slu_buf *b, const void *p, uint64_t n, struct slu_err *err)
{
    uint8_t len[8];
    int rc;

    slu_put_le64(len, n);
    if ((rc = slu_buf_append(b, len, 8, err)) < 0)
        return rc;
    return slu_buf_append(b, p, n, err);
}

/* XXH3-128 of: "sluice-tokenizer-1", then each part as a length (u64) and its bytes:
 * the id -> bytes table (offsets u64, flags, bytes) and what the parts say of
 * themselves. */
static int make_fingerprint(struct slu_tokenizer *t, struct slu_err *err)
{
    const struct slu_vocab_table *v = &t->table;
    struct slu_buf b = SLU_BUF_INIT;
    uint8_t x[8];
    int rc;

    if ((rc = put_str(&b, "sluice-tokenizer-1", 18, err)) < 0)
        goto out;
    for (uint64_t i = 0; i <= v->n; i++) {
        slu_put_le64(x, v->off[i]);
        if ((rc = slu_buf_append(&b, x, 8, err)) < 0)
            goto out;
    }
    if ((rc = put_str(&b, v->flags, v->n, err)) < 0 ||
        (rc = put_str(&b, v->bytes, v->off[v->n], err)) < 0)
        goto out;
    x[0] = t->special_parse;
    x[1] = t->nfc;
    if ((rc = put_str(&b, x, 2, err)) < 0)
        goto out;
    struct slu_u128 h = slu_hash128(b.data, b.len);
    slu_put_le64(t->fingerprint, h.lo);
    slu_put_le64(t->fingerprint + 8, h.hi);
out:
    slu_buf_release(&b);
    return rc;
}

int tok_finish(struct slu_tokenizer *t, const struct slu_tokenizer_cfg *cfg,
               struct slu_err *err)
{
    int rc;

    if ((rc = make_table(t, err)) < 0 || (rc = find_ids(t, cfg->eos, err)) < 0)
        return rc;
    return make_fingerprint(t, err);
}
