/* finish.c - the last steps of loading any tokenizer: the id -> bytes table, the ids of
 * EOS, BOS and padding, and the fingerprint (DESIGN.md, The stream). */
#include "lib/token/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/sp.h"

int tok_make_table(struct slu_tokenizer *t, struct slu_err *err)
{
    struct tok_vocab *v = &t->vocab;
    size_t n_byte = 0, n = v->n;

    for (size_t i = 0; i < n; i++)
        n_byte += v->len[i] == UINT32_MAX ? 0 : v->len[i];
    uint64_t *off = malloc((n + 1) * sizeof *off);
    uint8_t *bytes = malloc(n_byte + 1), *flags = malloc(n + 1);
    t->table =
        (struct slu_vocab_table){.n = n, .off = off, .bytes = bytes, .flags = flags};
    t->in_model = calloc(n + 1, 1);
    if (!off || !bytes || !flags || !t->in_model)
        return slu_fail_nomem(err, n_byte + n * 9);
    n_byte = 0;
    for (size_t i = 0; i < n; i++) {
        off[i] = n_byte;
        flags[i] = v->flag[i] & (uint8_t)~TOK_IN_MODEL;
        t->in_model[i] = (v->flag[i] & TOK_IN_MODEL) != 0;
        if (v->len[i] == UINT32_MAX)
            continue;
        memcpy(bytes + n_byte, v->bytes.data + v->off[i], v->len[i]);
        n_byte += v->len[i];
    }
    off[n] = n_byte;
    t->model_table = t->table;
    tok_vocab_release(v);
    return SLU_OK;
}

/* Returns the id of the token with that text, or SLU_NO_TOKEN. */
static uint64_t find_token(const struct slu_vocab_table *v, const char *name)
{
    size_t len = strlen(name);

    for (uint64_t i = 0; i < v->n; i++) {
        if (v->off[i + 1] - v->off[i] == len &&
            !memcmp(v->bytes + v->off[i], name, len))
            return i;
    }
    return SLU_NO_TOKEN;
}

/* Returns the first special token with the earliest of these names. One pass, as there
 * are far more tokens than special ones. */
static uint64_t find_first(const struct slu_vocab_table *v, const char *const *name)
{
    uint64_t id = SLU_NO_TOKEN, i;
    size_t best = SIZE_MAX;

    for (i = 0; i < v->n; i++) {
        if (!(v->flags[i] & SLU_VOCAB_SPECIAL))
            continue;
        size_t len = v->off[i + 1] - v->off[i];
        for (size_t k = 0; k < best && name[k]; k++) {
            if (strlen(name[k]) == len && !memcmp(v->bytes + v->off[i], name[k], len)) {
                best = k;
                id = i;
            }
        }
    }
    return id;
}

int tok_find_ids(struct slu_tokenizer *t, const char *eos, struct slu_err *err)
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

    const char *const own[] = {eos, NULL};

    t->eos = find_first(&t->table, eos ? own : EOS);
    if (eos && t->eos == SLU_NO_TOKEN)
        t->eos = find_token(&t->table, eos);
    t->bos = find_first(&t->table, BOS);
    t->pad = find_first(&t->table, PAD);
    if (t->pad == SLU_NO_TOKEN)
        t->pad = t->eos;
    if (eos && t->eos == SLU_NO_TOKEN)
        return slu_fail(err, SLU_E_USAGE, "the tokenizer has no token \"%s\"", eos);
    return SLU_OK;
}

static int put_str(struct slu_buf *b, const void *p, uint64_t n, struct slu_err *err)
{
    uint8_t len[8];
    int rc;

    slu_put_le64(len, n);
    if ((rc = slu_buf_append(b, len, 8, err)))
        return rc;
    return slu_buf_append(b, p, n, err);
}

/* Appends the merges that are used, in order of priority. */
static int put_merges(struct slu_buf *b, const struct tok_model *m, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint32_t k = 256; k < m->n_tok && !rc; k++) {
        const struct bpe_token *t = &m->token[k];
        uint8_t x[12];
        slu_put_le32(x, m->token[t->left].id);
        slu_put_le32(x + 4, m->token[t->right].id);
        slu_put_le32(x + 8, t->id);
        rc = slu_buf_append(b, x, sizeof x, err);
    }
    if (!m->n_whole || rc)
        return rc;
    /* Tokens that no merge makes, if a whole pretoken can still become one. */
    uint8_t *reached = calloc(m->n_id, 1);
    if (!reached)
        return slu_fail_nomem(err, m->n_id);
    for (uint32_t k = 0; k < m->n_tok; k++) {
        if (m->token[k].id != BPE_NONE)
            reached[m->token[k].id] = 1;
    }
    for (uint32_t id = 0; id < m->n_id && !rc; id++) {
        uint8_t x[4];
        slu_put_le32(x, id);
        if (!reached[id])
            rc = slu_buf_append(b, x, sizeof x, err);
    }
    free(reached);
    return rc;
}

static int put_added(struct slu_buf *b, const struct tok_added *a, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < a->n && !rc; i++) {
        const struct added_token *k = &a->token[i];
        uint8_t x[5];
        slu_put_le32(x, k->id);
        x[4] = (uint8_t)(k->special | k->lstrip << 1 | k->rstrip << 2 |
                         k->single_word << 3 | k->normalized << 4);
        if (!(rc = slu_buf_append(b, x, sizeof x, err)))
            rc = put_str(b, a->text.data + k->text_off, k->text_len, err);
    }
    return rc;
}

/* Sets the fingerprint: XXH3-128 of these parts in turn; the length of each string (u64)
 * precedes it. "sluice-tokenizer-1"; the table of ids: offsets (u64 each), flags and
 * bytes; the normalizer (u8: 0 none, 1 only NFC, 2 others, then their spec); the
 * pre-tokenizer's steps; sp_cfg's bytes; the added tokens; the merges. */
static int make_fingerprint(struct slu_tokenizer *t, struct slu_err *err)
{
    const struct slu_vocab_table *v = &t->table;
    struct slu_buf b = SLU_BUF_INIT;
    uint8_t x[8];
    int rc;

    if ((rc = put_str(&b, "sluice-tokenizer-1", 18, err)))
        goto out;
    for (uint64_t i = 0; i <= v->n; i++) {
        slu_put_le64(x, v->off[i]);
        if ((rc = slu_buf_append(&b, x, 8, err)))
            goto out;
    }
    const struct tok_norm *norm = t->norm;
    x[0] = !norm ? 0 : norm->n == 1 && norm->step[0].kind == NORM_NFC ? 1 : 2;
    if ((rc = put_str(&b, v->flags, v->n, err)) ||
        (rc = put_str(&b, v->bytes, v->off[v->n], err)) ||
        (rc = slu_buf_append(&b, x, 1, err)) ||
        (x[0] == 2 && (rc = put_str(&b, norm->spec.data, norm->spec.len, err))) ||
        (t->pre && (rc = put_str(&b, t->pre->spec.data, t->pre->spec.len, err))) ||
        (t->sp && (rc = put_str(&b, &t->sp->cfg, sizeof t->sp->cfg, err))) ||
        (t->added && (rc = put_added(&b, t->added, err))) ||
        (t->model && (rc = put_merges(&b, t->model, err))))
        goto out;
    struct slu_u128 h = slu_hash128(b.data, b.len);
    slu_put_le64(t->fingerprint, h.lo);
    slu_put_le64(t->fingerprint + 8, h.hi);
out:
    slu_buf_release(&b);
    return rc;
}

int tok_finish(struct slu_tokenizer *t, struct slu_err *err)
{
    free(t->in_model);
    t->in_model = NULL;
    return make_fingerprint(t, err);
}
