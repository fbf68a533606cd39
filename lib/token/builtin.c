/* builtin.c - the project's own vocabulary, part of the program
 * (lib/token/builtin/README.md). */
#include "lib/token/tok.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "lib/base/le.h"
#include "lib/token/bpe.h"
#include "lib/token/pre.h"

extern const uint8_t slu_builtin_merges[], slu_builtin_merges_end[];

#define N_MERGE 32510
#define MAX_LEN 32 /* bytes of a token, at most */

/* Defines the tokens in order; a merge refers only to earlier tokens. */
static int add_tokens(struct slu_tokenizer *t, const uint8_t *pairs,
                      struct bpe_merge *merge, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; i < 256 && !rc; i++) {
        uint8_t b = (uint8_t)i;
        rc = tok_vocab_set(&t->vocab, i, &b, 1, TOK_IN_MODEL, err);
    }
    for (uint32_t k = 0; k < N_MERGE && !rc; k++) {
        uint32_t l = slu_le16(pairs + 4 * k), r = slu_le16(pairs + 4 * k + 2);
        uint8_t bytes[2 * MAX_LEN];
        const struct tok_vocab *v = &t->vocab;
        if (l >= 256 + k || r >= 256 + k || v->len[l] > MAX_LEN || v->len[r] > MAX_LEN)
            return slu_fail(err, SLU_E_FORMAT, "the built-in vocabulary is damaged");
        memcpy(bytes, v->bytes.data + v->off[l], v->len[l]);
        memcpy(bytes + v->len[l], v->bytes.data + v->off[r], v->len[r]);
        merge[k] = (struct bpe_merge){l, r, 256 + k};
        rc = tok_vocab_set(&t->vocab, 256 + k, bytes, v->len[l] + v->len[r],
                           TOK_IN_MODEL, err);
    }
    return rc;
}

const uint8_t *tok_builtin_bytes(size_t *n)
{
    /* Two ends of one object, which the linker names. */
    // cppcheck-suppress comparePointers
    *n = (size_t)(slu_builtin_merges_end - slu_builtin_merges);
    return slu_builtin_merges;
}

int tok_load_builtin(struct slu_tokenizer *t, struct slu_err *err)
{
    size_t n_zst;
    const uint8_t *zst = tok_builtin_bytes(&n_zst);
    uint8_t *pairs = malloc(N_MERGE * 4);
    struct bpe_merge *merge = malloc(N_MERGE * sizeof *merge);
    int rc;

    if (!pairs || !merge) {
        rc = slu_fail_nomem(err, N_MERGE * (4 + sizeof *merge));
        goto out;
    }
    if (ZSTD_decompress(pairs, N_MERGE * 4, zst, n_zst) != N_MERGE * 4) {
        rc = slu_fail(err, SLU_E_FORMAT, "the built-in vocabulary is damaged");
        goto out;
    }
    if ((rc = add_tokens(t, pairs, merge, err)) ||
        (rc = tok_add_special(t, 256 + N_MERGE, "<|pad|>", err)) ||
        (rc = tok_add_special(t, 256 + N_MERGE + 1, "<|endoftext|>", err)) ||
        (rc = tok_make_table(t, err)) || (rc = pre_new(&t->pre, err)) ||
        (rc = pre_add_scan(t->pre, pre_scan_by_name("builtin"), err)))
        goto out;
    const struct bpe_cfg cfg = {.table = &t->model_table,
                                .in_model = t->in_model,
                                .merge = merge,
                                .n_merge = N_MERGE};
    rc = bpe_build(&t->model, &cfg, err);
out:
    free(pairs);
    free(merge);
    return rc;
}
