/* tekken.c - Mistral's tekken.json: ranks as in a rank file, the split's expression,
 * and how many ids before the ranks are special tokens. Reference: mistral-common,
 * which makes a tiktoken encoding of it and adds that number to its ids. */
#include "lib/token/tekken.h"

#include <stdio.h>
#include <string.h>

#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/pre.h"

#define MAX_SPECIAL 100000

/* The special tokens of files that do not name them (before version 11). */
static const char *const SPECIAL[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};
#define N_SPECIAL (sizeof SPECIAL / sizeof *SPECIAL)

bool tok_is_tekken(struct slu_json_value root)
{
    struct slu_json_value config = SLU_JSON_NONE, x = SLU_JSON_NONE;

    return slu_json_get(root, "config", &config) &&
           slu_json_get(config, "default_num_special_tokens", &x);
}

/* special_tokens: [{"rank": 0, "token_str": "<unk>", ...}, ...] */
static int add_named(struct slu_tokenizer *t, struct slu_json_value list,
                     uint64_t n_special, struct slu_err *err)
{
    struct slu_json_iter it;
    int rc = SLU_OK;

    for (slu_json_iter_init(&it, list); !rc && slu_json_next(&it);) {
        struct slu_json_value x = SLU_JSON_NONE;
        const char *s;
        size_t n;
        uint64_t rank;
        char text[256];
        if (!slu_json_get(it.value, "rank", &x) || !slu_json_u64(x, &rank) ||
            rank >= n_special || !slu_json_get(it.value, "token_str", &x) ||
            !slu_json_string(x, &s, &n) || !n || n >= sizeof text || memchr(s, 0, n))
            return slu_fail(err, SLU_E_FORMAT,
                            "a special token without a rank or a text");
        memcpy(text, s, n);
        text[n] = '\0';
        rc = tok_add_special(t, rank, text, err);
    }
    return rc;
}

static int add_special(struct slu_tokenizer *t, struct slu_json_value root,
                       uint64_t n_special, struct slu_err *err)
{
    struct slu_json_value list = SLU_JSON_NONE;
    bool named = slu_json_get_set(root, "special_tokens", &list);
    int rc = named ? add_named(t, list, n_special, err) : SLU_OK;

    for (uint64_t i = 0; i < n_special && !rc; i++) {
        char text[40];
        if (i < t->vocab.n && t->vocab.len[i] != UINT32_MAX)
            continue;
        snprintf(text, sizeof text, "<SPECIAL_%llu>", (unsigned long long)i);
        rc = tok_add_special(t, i, !named && i < N_SPECIAL ? SPECIAL[i] : text, err);
    }
    return rc;
}

static int add_ranks(struct slu_tokenizer *t, struct slu_json_value vocab,
                     uint64_t n_special, uint64_t n_rank, struct slu_err *err)
{
    struct slu_json_iter it;
    uint64_t k = 0, rank;
    int rc = SLU_OK;

    for (slu_json_iter_init(&it, vocab); !rc && k < n_rank && slu_json_next(&it); k++) {
        struct slu_json_value x = SLU_JSON_NONE;
        const char *s;
        size_t n;
        uint8_t bytes[2 * BPE_MAX_LEN];
        long len;
        if (!slu_json_get(it.value, "rank", &x) || !slu_json_u64(x, &rank) ||
            rank != k || !slu_json_get(it.value, "token_bytes", &x) ||
            !slu_json_string(x, &s, &n))
            return slu_fail(err, SLU_E_FORMAT,
                            "token %llu has a rank other than its position",
                            (unsigned long long)k);
        if (n > sizeof bytes)
            return slu_fail(err, SLU_E_UNSUPPORTED, "a token of more than %d bytes",
                            BPE_MAX_LEN);
        if ((len = tok_base64((const uint8_t *)s, n, bytes)) < 1)
            return slu_fail(err, SLU_E_FORMAT, "token %llu is not base64",
                            (unsigned long long)k);
        rc = tok_vocab_set(&t->vocab, n_special + k, bytes, (size_t)len, TOK_IN_MODEL,
                           err);
    }
    if (!rc && k < n_rank)
        return slu_fail(err, SLU_E_FORMAT,
                        "%llu tokens, and its configuration says %llu",
                        (unsigned long long)k, (unsigned long long)n_rank);
    return rc;
}

int tok_load_tekken(struct slu_tokenizer *t, struct slu_json_value root,
                    struct slu_err *err)
{
    struct slu_json_value config = SLU_JSON_NONE, x = SLU_JSON_NONE,
                          vocab = SLU_JSON_NONE;
    uint64_t n_vocab, n_special;
    const char *pattern;
    size_t n;
    pre_scan_fn *scan;
    int rc;

    slu_json_get(root, "config", &config);
    if (!slu_json_get(config, "default_num_special_tokens", &x) ||
        !slu_json_u64(x, &n_special) || n_special > MAX_SPECIAL ||
        !slu_json_get(config, "default_vocab_size", &x) || !slu_json_u64(x, &n_vocab) ||
        n_vocab <= n_special || n_vocab > BPE_MAX_ID ||
        !slu_json_get(root, "vocab", &vocab))
        return slu_fail(err, SLU_E_FORMAT, "not a tekken.json: no sizes, or no tokens");
    if (!slu_json_get(config, "pattern", &x) || !slu_json_string(x, &pattern, &n))
        return slu_fail(err, SLU_E_FORMAT, "a tekken.json without pattern");
    /* The pattern is for Rust's expressions; regex.c translates Oniguruma's. */
    if (!(scan = pre_scan_by_regex(pattern, n)))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the pattern of this tekken.json is not supported");
    if ((rc = add_special(t, root, n_special, err)) ||
        (rc = add_ranks(t, vocab, n_special, n_vocab - n_special, err)) ||
        (rc = tok_make_table(t, err)) || (rc = pre_new(&t->pre, err)))
        return rc;
    return pre_add_scan(t->pre, scan, err);
}
