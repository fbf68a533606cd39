/* pretokens.c - the choice of a finder, by the split and by the SIMD level. */
#include "lib/token/pretokens.h"

#include <string.h>

#include "lib/base/simd.h"
#include "lib/token/unicode.h"

const uint8_t pretokens_class[UNI_N] = {
    [UNI_LU] = PC_UPPER,    [UNI_LT] = PC_UPPER,    [UNI_LL] = PC_LOWER,
    [UNI_LM] = PC_CASELESS, [UNI_LO] = PC_CASELESS, [UNI_MN] = PC_MARK,
    [UNI_MC] = PC_MARK,     [UNI_ME] = PC_MARK,     [UNI_ND] = PC_NUMBER,
    [UNI_NL] = PC_NUMBER,   [UNI_NO] = PC_NUMBER,   [UNI_ZS] = PC_WHITE,
    [UNI_ZL] = PC_WHITE,    [UNI_ZP] = PC_WHITE,    [UNI_CW] = PC_WHITE,
    [UNI_CN] = PC_CONTROL,  [UNI_CC] = PC_CONTROL,  [UNI_CF] = PC_CONTROL,
    [UNI_CS] = PC_CONTROL,  [UNI_CO] = PC_CONTROL,
};

static const char *const names[PRETOKENS_N] = {
    "gpt2",   "digits-gpt2", "cl100k", "llama3", "qwen2",
    "qwen35", "o200k",       "tekken", "kimi",   "deepseek3"};

/* The best first. */
static const struct pretokens_table *const levels[] = {
#if defined(__x86_64__)
    &pretokens_avx512,
    &pretokens_avx2,
#elif defined(__aarch64__)
    &pretokens_neon,
#endif
    &pretokens_portable,
};
#define N_LEVEL (sizeof levels / sizeof *levels)

static const struct pretokens_table *level_named(const char *name)
{
    for (size_t i = 0; i < N_LEVEL; i++) {
        if (slu_has_simd(levels[i]->level) &&
            (!name || !strcmp(levels[i]->level, name)))
            return levels[i];
    }
    return NULL;
}

static const struct pretokens_table *chosen; /* by slu_tokenizer_simd */

static const struct pretokens_table *level_in_use(void)
{
    return chosen ? chosen : level_named(NULL);
}

bool slu_tokenizer_simd(const char *level)
{
    chosen = level ? level_named(level) : NULL;
    return !level || chosen;
}

const char *pretokens_level(void)
{
    return level_in_use()->level;
}

static pretokens_fn *finder(const struct pretokens_table *t, pre_scan_fn *scan)
{
    pretokens_fn *find = NULL;

    for (size_t i = 0; t && !find && i < PRETOKENS_N; i++) {
        if (pre_scan_by_name(names[i]) == scan)
            find = t->find[i];
    }
    return find;
}

pretokens_fn *pretokens_by_scan(pre_scan_fn *scan)
{
    return finder(level_in_use(), scan);
}

pretokens_fn *pretokens_of_level(const char *level, pre_scan_fn *scan)
{
    return finder(level_named(level), scan);
}
