/* tiktoken.c - rank files: each line is the base64 of a token's bytes, a space and its
 * rank. Ids are ranks. The split and the special tokens are those of the pattern. */
#include "lib/token/tok.h"

#include <stdio.h>
#include <string.h>

#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"

struct special {
    uint32_t id;
    const char *text;
};

/* Special tokens with fixed ids (openai/tiktoken, tiktoken_ext/openai_public.py). */
static const struct special GPT2[] = {{50256, "<|endoftext|>"}, {0, NULL}};
static const struct special CL100K[] = {
    {100257, "<|endoftext|>"},  {100258, "<|fim_prefix|>"},  {100259, "<|fim_middle|>"},
    {100260, "<|fim_suffix|>"}, {100276, "<|endofprompt|>"}, {0, NULL},
};
static const struct special O200K[] = {
    {199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}, {0, NULL}};

/* Adds special tokens that follow the last rank. */
static int add_llama3(struct slu_tokenizer *t, struct slu_err *err)
{
    static const struct special NAMED[] = {
        {0, "<|begin_of_text|>"}, {1, "<|end_of_text|>"}, {6, "<|start_header_id|>"},
        {7, "<|end_header_id|>"}, {9, "<|eot_id|>"},
    };
    uint64_t base = t->vocab.n;
    unsigned reserved = 0, k = 0;
    int rc = SLU_OK;

    for (unsigned i = 0; i < 256 && !rc; i++) {
        char text[40];
        if (k < sizeof NAMED / sizeof *NAMED && NAMED[k].id == i) {
            rc = tok_add_special(t, base + i, NAMED[k++].text, err);
            continue;
        }
        snprintf(text, sizeof text, "<|reserved_special_token_%u|>", reserved++);
        rc = tok_add_special(t, base + i, text, err);
    }
    return rc;
}

static int add_qwen2(struct slu_tokenizer *t, struct slu_err *err)
{
    static const char *const NAMED[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    uint64_t base = t->vocab.n;
    int rc = SLU_OK;

    for (unsigned i = 0; i < 208 && !rc; i++) {
        char text[40];
        if (i >= 3)
            snprintf(text, sizeof text, "<|extra_%u|>", i - 3);
        rc = tok_add_special(t, base + i, i < 3 ? NAMED[i] : text, err);
    }
    return rc;
}

static int add_qwen35(struct slu_tokenizer *t, struct slu_err *err)
{
    static const char *const NAMED[] = {"<|endoftext|>",
                                        "<|im_start|>",
                                        "<|im_end|>",
                                        "<|object_ref_start|>",
                                        "<|object_ref_end|>",
                                        "<|box_start|>",
                                        "<|box_end|>",
                                        "<|quad_start|>",
                                        "<|quad_end|>",
                                        "<|vision_start|>",
                                        "<|vision_end|>",
                                        "<|vision_pad|>",
                                        "<|image_pad|>",
                                        "<|video_pad|>",
                                        "<tool_call>",
                                        "</tool_call>",
                                        "<|fim_prefix|>",
                                        "<|fim_middle|>",
                                        "<|fim_suffix|>",
                                        "<|fim_pad|>",
                                        "<|repo_name|>",
                                        "<|file_sep|>",
                                        "<tool_response>",
                                        "</tool_response>",
                                        "<think>",
                                        "</think>",
                                        "<|audio_start|>",
                                        "<|audio_end|>",
                                        "<tts_pad>",
                                        "<tts_text_bos>",
                                        "<tts_text_eod>",
                                        "<tts_text_bos_single>",
                                        "<|audio_pad|>"};
    uint64_t base = t->vocab.n;
    int rc = SLU_OK;

    for (unsigned i = 0; i < sizeof NAMED / sizeof *NAMED && !rc; i++)
        rc = tok_add_special(t, base + i, NAMED[i], err);
    return rc;
}

/* Adds the special tokens of Kimi K2's tokenizer_config.json. */
static int add_kimi(struct slu_tokenizer *t, struct slu_err *err)
{
    static const struct special NAMED[] = {
        {0, "[BOS]"},
        {1, "[EOS]"},
        {2, "<|im_end|>"},
        {3, "<|im_user|>"},
        {4, "<|im_assistant|>"},
        {6, "<|start_header_id|>"},
        {7, "<|end_header_id|>"},
        {9, "[EOT]"},
        {10, "<|im_system|>"},
        {11, "<|tool_calls_section_begin|>"},
        {12, "<|tool_calls_section_end|>"},
        {13, "<|tool_call_begin|>"},
        {14, "<|tool_call_argument_begin|>"},
        {15, "<|tool_call_end|>"},
        {17, "<|im_middle|>"},
        {254, "[UNK]"},
        {255, "[PAD]"},
    };
    uint64_t base = t->vocab.n;
    int rc = SLU_OK;

    for (unsigned i = 0, k = 0; i < 256 && !rc; i++) {
        char text[40];
        bool named = NAMED[k].id == i;
        snprintf(text, sizeof text, "<|reserved_token_%llu|>",
                 (unsigned long long)(base + i));
        rc = tok_add_special(t, base + i, named ? NAMED[k].text : text, err);
        k += named && k + 1 < sizeof NAMED / sizeof *NAMED;
    }
    return rc;
}

static const struct pattern {
    const char *name;
    const struct special *special;
    int (*add)(struct slu_tokenizer *t, struct slu_err *err);
} PATTERNS[] = {
    {"gpt2", GPT2, NULL},       {"r50k", GPT2, NULL},
    {"p50k", GPT2, NULL},       {"cl100k", CL100K, NULL},
    {"o200k", O200K, NULL},     {"llama3", NULL, add_llama3},
    {"qwen2", NULL, add_qwen2}, {"qwen35", NULL, add_qwen35},
    {"kimi", NULL, add_kimi},
};
#define N_PATTERN (sizeof PATTERNS / sizeof *PATTERNS)

int tok_tiktoken_pattern(const char **pattern, const char *path, const char *name,
                         struct slu_err *err)
{
    const char *base = strrchr(path, '/');

    base = base ? base + 1 : path;
    for (size_t i = 0; i < N_PATTERN; i++) {
        *pattern = PATTERNS[i].name;
        if (name ? !strcmp(name, *pattern) : !!strstr(base, *pattern))
            return SLU_OK;
    }
    return slu_advise(
        err, SLU_ADVISE_PATTERN,
        slu_fail(
            err, SLU_E_USAGE,
            "%s%s%s; expected gpt2, r50k, p50k, cl100k, o200k, llama3, qwen2, qwen35 "
            "or kimi",
            name ? "unknown pattern \"" : "a rank file does not say how text is split",
            name ? name : "", name ? "\"" : ""));
}

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long tok_base64(const uint8_t *p, size_t n, uint8_t *out)
{
    uint32_t bits = 0;
    long len = 0;

    while (n && p[n - 1] == '=')
        n--;
    if (n % 4 == 1)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int v = value_of(p[i]);
        if (v < 0)
            return -1;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            out[len++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return len;
}

/* Adds one line of n bytes, without its end. */
static int add_line(struct slu_tokenizer *t, const uint8_t *p, size_t n,
                    struct slu_err *err)
{
    uint8_t bytes[2 * BPE_MAX_LEN];
    const uint8_t *space = memchr(p, ' ', n), *q = space;
    uint64_t rank = 0;

    if (!space || space == p || space + 1 == p + n)
        return slu_fail(err, SLU_E_FORMAT,
                        "not a rank file: expected base64, a space and a number");
    for (q++; q < p + n; q++) {
        if (*q < '0' || *q > '9' || rank >= BPE_MAX_ID)
            return slu_fail(err, SLU_E_FORMAT, "the rank is not a number below 2^32");
        rank = rank * 10 + (uint64_t)(*q - '0');
    }
    if ((size_t)(space - p) > sizeof bytes)
        return slu_fail(err, SLU_E_UNSUPPORTED, "a token of more than %d bytes",
                        BPE_MAX_LEN);
    long len = tok_base64(p, (size_t)(space - p), bytes);
    if (len < 1)
        return slu_fail(err, SLU_E_FORMAT, "not base64");
    if (rank < t->vocab.n && t->vocab.len[rank] != UINT32_MAX)
        return slu_fail(err, SLU_E_FORMAT, "rank %llu comes twice",
                        (unsigned long long)rank);
    return tok_vocab_set(&t->vocab, rank, bytes, (size_t)len, TOK_IN_MODEL, err);
}

static int add_ranks(struct slu_tokenizer *t, const struct slu_buf *file,
                     struct slu_err *err)
{
    const uint8_t *p = file->data, *end = p + file->len;
    size_t number = 1;

    if (!file->len)
        return slu_fail(err, SLU_E_FORMAT, "the file is empty");
    for (; p < end; number++) {
        const uint8_t *line = memchr(p, '\n', (size_t)(end - p));
        line = line ? line : end;
        size_t n = (size_t)(line - p);
        if (n && p[n - 1] == '\r')
            n--;
        if (n && add_line(t, p, n, err))
            return slu_err_at(err, "line %zu", number);
        p = line + 1;
    }
    return SLU_OK;
}

static int add_nfc(struct slu_tokenizer *t, struct slu_err *err)
{
    int rc = norm_new(&t->norm, err);

    return rc ? rc : norm_add(t->norm, NORM_NFC, NULL, 0, NULL, 0, err);
}

int tok_load_tiktoken(struct slu_tokenizer *t, const struct slu_buf *file,
                      const char *name, struct slu_err *err)
{
    const struct pattern *pattern = PATTERNS;
    int rc = add_ranks(t, file, err);

    while (strcmp(pattern->name, name))
        pattern++;
    for (const struct special *s = pattern->special; s && s->text && !rc; s++)
        rc = tok_add_special(t, s->id, s->text, err);
    if (!rc && pattern->add)
        rc = pattern->add(t, err);
    if (!rc && !strncmp(name, "qwen", 4)) /* as Qwen's own Python does */
        rc = add_nfc(t, err);
    if (rc || (rc = tok_make_table(t, err)) || (rc = pre_new(&t->pre, err)) ||
        (rc = pre_add_scan(t->pre, pre_scan_by_name(pattern->name), err)))
        return rc;
    const struct bpe_cfg cfg = {
        .table = &t->model_table, .in_model = t->in_model, .whole_first = true};
    return bpe_build(&t->model, &cfg, err);
}
