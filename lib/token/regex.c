/* regex.c - splits by regular expressions without a scanner; regex_translate.c says why
 * they are exact. */
#include "lib/token/regex.h"

#include "lib/base/pcre.h"

static const struct slu_pcre_cfg cfg = {
    .multiline = true, .jit = true, .refused = SLU_E_UNSUPPORTED};

int pre_regex_new(struct slu_pcre **out, const char *pattern, size_t len,
                  struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    size_t at;
    int rc = regex_translate(pattern, len, &text, err);

    *out = NULL;
    if (!rc &&
        (rc = slu_pcre_new(out, (const char *)text.data, text.len, &cfg, &at, err)))
        rc = slu_err_at(err, "pre-tokenizer");
    slu_buf_release(&text);
    if (rc)
        return rc;
    if (!slu_pcre_matches_empty(*out))
        return SLU_OK;
    slu_pcre_free(*out);
    *out = NULL;
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "pre-tokenizer: the regular expression matches the empty text");
}

int pre_regex_next(const struct slu_pcre *r, struct slu_pcre_run *m, const uint8_t *p,
                   size_t n, size_t pos, size_t *start, size_t *end,
                   struct slu_err *err)
{
    int rc = slu_pcre_find(r, m, p, n, pos, start, end, err);

    if (rc == SLU_E_LIMIT)
        return slu_fail_at(err, SLU_E_LIMIT, pos,
                           "pre-tokenizer: byte %zu of a text of %zu: its regular "
                           "expression tries too many ways to match; leave this "
                           "document out",
                           pos, n);
    return rc < 0 ? slu_err_at(err, "pre-tokenizer") : rc;
}
