#include "formats/text/needs.h"

#include <string.h>

#include "formats/text/ingest_job.h"

#define KIND "chat1 "

bool slu_needs_is(const char *s, size_t n)
{
    return n > strlen(KIND) && !memcmp(s, KIND, strlen(KIND));
}

size_t slu_needs_peek(const uint8_t *p, size_t n, const char **s)
{
    static const char key[] = "\"" SLU_NEEDS_FIELD "\"";
    const size_t n_key = sizeof key - 1;
    const uint8_t *nl = memchr(p, '\n', n), *end = nl ? nl : p + n, *at = p;

    /* Within a string a quote has a backslash before it, so a match is a key or a whole
     * value, and only behind a key there is a colon. */
    for (; (at = memmem(at, (size_t)(end - at), key, n_key)); at += n_key) {
        const uint8_t *v = at + n_key;
        while (v < end && (*v == ' ' || *v == ':'))
            v++;
        if ((at > p && at[-1] == '\\') || v == end || *v++ != '"')
            continue;
        const uint8_t *to = memchr(v, '"', (size_t)(end - v));
        if (to && slu_needs_is((const char *)v, (size_t)(to - v))) {
            *s = (const char *)v;
            return (size_t)(to - v);
        }
    }
    return 0;
}

/* Whether the encoder makes one id of the token's text. */
static int has_token(struct slu_encoder *e, const char *s, size_t n, bool *has,
                     struct slu_err *err)
{
    struct slu_ids ids = {0};
    int rc = slu_encode(e, s, n, &ids, err);
    *has = ids.n == 1;
    slu_ids_release(&ids);
    return rc;
}

/* Checks that the tokenizer has the tokens of s. */
static int check_tokens(struct slu_encoder *e, const char *s, size_t n,
                        struct slu_err *err)
{
    bool has = true;
    int rc = SLU_OK;
    for (size_t from = 0, i = 0, to; from < n && !rc; from = to + 1, i++) {
        const char *space = memchr(s + from, ' ', n - from);
        to = space ? (size_t)(space - s) : n;
        const size_t len = to - from;
        if (i < 2 || !len || (len == 1 && s[from] == '-'))
            continue;
        rc = has_token(e, s + from, len, &has, err);
        if (!rc && !has)
            rc = slu_fail(err, SLU_E_FORMAT,
                          "field \"" SLU_NEEDS_FIELD
                          "\": the text is made for a tokenizer with the token "
                          "\"%.*s\", which the tokenizer of -t lacks; give both "
                          "sluice-chat and tokenize the same tokenizer",
                          (int)(len < 80 ? len : 80), s + from);
    }
    return rc;
}

static int check(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                 const struct slu_value *v, struct slu_err *err)
{
    const struct slu_needs_cfg *needs = &g->cfg->needs;
    const bool has = v->type == SLU_VALUE_STRING && slu_needs_is(v->string, v->len);
    if (!has && needs->all)
        return slu_fail(err, SLU_E_FORMAT,
                        "has no field \"" SLU_NEEDS_FIELD
                        "\" of sluice-chat, as the first record has; tokenize both "
                        "kinds apart, or say with --special parse --no-eos "
                        "--spans-field " SLU_NEEDS_SPANS " that all are alike");
    if (!has)
        return SLU_OK;
    if (!needs->met)
        return slu_fail(err, SLU_E_FORMAT,
                        "field \"" SLU_NEEDS_FIELD "\" of sluice-chat is \"%.*s\"; "
                        "give --special parse --no-eos --spans-field " SLU_NEEDS_SPANS
                        ", and tokenize apart what is not of sluice-chat",
                        (int)(v->len < 80 ? v->len : 80), v->string);
    if (w->needs.len == v->len && !memcmp(w->needs.data, v->string, v->len))
        return SLU_OK;
    int rc = check_tokens(g->encoders.encoder[w - g->worker], v->string, v->len, err);
    slu_buf_clear(&w->needs);
    return rc ? rc : slu_buf_append(&w->needs, v->string, v->len, err);
}

int slu_ingest_check_needs(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                           const struct slu_record_ref *ref,
                           const struct slu_record *rec, struct slu_err *err)
{
    if (!g->cfg->needs.read || rec->reject || !rec->any)
        return SLU_OK;
    int rc = check(g, w, &rec->any[g->n_any], err);
    if (!rc)
        return SLU_OK;
    const char *path = slu_source_at(g->cfg->sources, ref->source)->path;
    if (!strcmp(path, "-"))
        path = "standard input";
    return ref->line ? slu_err_at(err, "%s:%llu", path, (unsigned long long)ref->line)
                     : slu_err_at(err, "%s: document %llu", path,
                                  (unsigned long long)ref->document);
}
