#include "formats/text/needs.h"

#include <stdio.h>
#include <string.h>

#include "formats/text/ingest_job.h"
#include "lib/stream/steps.h"

#define KIND    "chat1 "
#define PROGRAM "sluice-chat"

bool slu_needs_is(const char *s, size_t n)
{
    return n > strlen(KIND) && !memcmp(s, KIND, strlen(KIND));
}

/* Finds the next value of a key, given in quotes, in the record's first bytes p[0, n),
 * from *at on. NULL: none. */
static const uint8_t *next_value(const uint8_t *p, size_t n, const char *key,
                                 const uint8_t **at)
{
    const size_t n_key = strlen(key);
    const uint8_t *end = p + n;

    /* Within a string a quote has a backslash before it, so a match is a key or a whole
     * value, and only behind a key there is a colon. */
    while ((*at = memmem(*at, (size_t)(end - *at), key, n_key))) {
        const uint8_t *v = *at + n_key;
        const bool is_key = *at == p || (*at)[-1] != '\\';
        bool colon = false;
        for (; v < end && (*v == ' ' || (*v == ':' && !colon)); v++)
            colon |= *v == ':';
        *at += n_key;
        if (is_key && colon && v < end)
            return v;
    }
    return NULL;
}

/* The bytes of the first line. */
static size_t line_of(const uint8_t *p, size_t n)
{
    const uint8_t *nl = memchr(p, '\n', n);
    return nl ? (size_t)(nl - p) : n;
}

size_t slu_needs_peek(const uint8_t *p, size_t n, const char **s)
{
    const uint8_t *at = p, *v;

    n = line_of(p, n);
    while ((v = next_value(p, n, "\"" SLU_NEEDS_FIELD "\"", &at))) {
        const uint8_t *to =
            *v == '"' ? memchr(v + 1, '"', (size_t)(p + n - v - 1)) : NULL;
        if (to && slu_needs_is((const char *)v + 1, (size_t)(to - v - 1))) {
            *s = (const char *)v + 1;
            return (size_t)(to - v - 1);
        }
    }
    return 0;
}

bool slu_needs_peek_spans(const uint8_t *p, size_t n)
{
    const uint8_t *at = p, *v;

    n = line_of(p, n);
    while ((v = next_value(p, n, "\"" SLU_NEEDS_SPANS "\"", &at)))
        if (n - (size_t)(v - p) > 2 && v[0] == '[' && v[1] == '[' && v[2] >= '0' &&
            v[2] <= '9')
            return true;
    return false;
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

static int fail_token(const char *s, size_t n, const char * or, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT,
                    "field \"" SLU_NEEDS_FIELD
                    "\": the text is made for a tokenizer with the token \"%.*s\", "
                    "which the tokenizer of -t lacks; give both sluice-chat and "
                    "tokenize the same tokenizer%s",
                    (int)(n < 80 ? n : 80), s, or);
}

/* Checks that the tokenizer has the tokens of s. Those of the template that it lacks go
 * to `lacks`, each with a NUL. */
static int check_tokens(struct slu_encoder *e, const char *s, size_t n,
                        struct slu_buf *lacks, struct slu_err *err)
{
    enum { BOS = 2, TOKEN = 4 }; /* their words */
    bool has = true;
    int rc = SLU_OK;
    for (size_t from = 0, i = 0, to; from < n && !rc; from = to + 1, i++) {
        const char *space = memchr(s + from, ' ', n - from);
        to = space ? (size_t)(space - s) : n;
        const size_t len = to - from;
        if (i < BOS || !len || (len == 1 && s[from] == '-'))
            continue;
        rc = has_token(e, s + from, len, &has, err);
        if (rc || has)
            continue;
        rc = i < TOKEN ? fail_token(s + from, len, "", err)
                       : slu_buf_append(lacks, s + from, len, err);
        if (!rc)
            rc = slu_buf_append(lacks, "", 1, err);
    }
    return rc;
}

/* Fails if the text has a token that the tokenizer lacks. */
static int check_text(const struct slu_buf *lacks, const struct slu_record *rec,
                      struct slu_err *err)
{
    for (size_t at = 0, n; at < lacks->len; at += n + 1) {
        const char *token = (const char *)lacks->data + at;
        n = strlen(token);
        if (memmem(rec->text, rec->text_len, token, n))
            return fail_token(
                token, n,
                ", or --special parse --no-eos --spans-field " SLU_NEEDS_SPANS
                " if its text is meant",
                err);
    }
    return SLU_OK;
}

static int check(const struct slu_ingest_run *g, struct slu_ingest_worker *w,
                 const struct slu_record *rec, bool *is, struct slu_err *err)
{
    const struct slu_value *v = &rec->any[g->n_any];
    const struct slu_needs_cfg *needs = &g->cfg->needs;
    const bool has = *is =
        v->type == SLU_VALUE_STRING && slu_needs_is(v->string, v->len);
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
        return needs->all ? check_text(&w->lacks, rec, err) : SLU_OK;
    slu_buf_clear(&w->needs);
    slu_buf_clear(&w->lacks);
    int rc = check_tokens(g->encoders.encoder[w - g->worker], v->string, v->len,
                          &w->lacks, err);
    if (!rc)
        rc = slu_buf_append(&w->needs, v->string, v->len, err);
    return rc || !needs->all ? rc : check_text(&w->lacks, rec, err);
}

/* A value that can be a C string; else nothing. */
static struct slu_value text_of(struct slu_value v)
{
    const bool is = v.type == SLU_VALUE_STRING && v.len && !memchr(v.string, 0, v.len);
    return is ? v : (struct slu_value){.type = SLU_VALUE_STRING, .string = ""};
}

/* The word of s[*at, n), behind which *at is then; the rest if `last`. */
static struct slu_value next_word(const char *s, size_t n, size_t *at, bool last)
{
    const char *begin = s + *at, *space = last ? NULL : memchr(begin, ' ', n - *at);
    const size_t len = space ? (size_t)(space - begin) : n - *at;
    *at += len + (space != NULL);
    return (struct slu_value){.type = SLU_VALUE_STRING, .string = begin, .len = len};
}

/* The name of the file in FILE:LINE. */
static struct slu_value file_of(struct slu_value from)
{
    size_t n = from.len;
    while (n && from.string[n - 1] >= '0' && from.string[n - 1] <= '9')
        n--;
    if (n && n < from.len && from.string[n - 1] == ':')
        from.len = n - 1;
    return from;
}

/* Notes where a record is from, by the values of needs, by and from. */
static int note(struct slu_ingest_job *j, size_t record, const struct slu_value v[3],
                struct slu_err *err)
{
    const struct slu_value by = text_of(v[1]), from = file_of(text_of(v[2]));
    size_t at = 0;
    struct slu_value word[4] = {next_word(by.string, by.len, &at, false)};
    char hash[64];
    int rc = SLU_OK;

    word[1] = next_word(by.string, by.len, &at, false);
    word[2] = next_word(by.string, by.len, &at, true);
    if (word[0].len != strlen(PROGRAM) ||
        memcmp(word[0].string, PROGRAM, word[0].len)) {
        size_t template = strlen(KIND);
        word[1].len = 0;
        word[2] = next_word(v[0].string, v[0].len, &template, false);
        word[2].len = (size_t)snprintf(hash, sizeof hash, "--template=%.*s",
                                       (int)(word[2].len < 16 ? word[2].len : 16),
                                       word[2].string);
        word[2].string = hash;
    }
    word[3] = from;
    j->origin[record] = j->origins.len + 1;
    for (int i = 1; i < 4 && !rc; i++) {
        rc = slu_buf_append(&j->origins, word[i].string, word[i].len, err);
        if (!rc)
            rc = slu_buf_append(&j->origins, "", 1, err);
    }
    return rc;
}

int slu_ingest_begin_needs(struct slu_ingest_job *j, struct slu_err *err)
{
    const size_t n = j->block.n_rec;
    slu_buf_clear(&j->origins);
    int rc =
        n ? slu_grow(&j->origin, &j->cap_origin, n, sizeof *j->origin, err) : SLU_OK;
    if (!rc && n)
        memset(j->origin, 0, n * sizeof *j->origin);
    return rc;
}

int slu_ingest_count_origins(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                             size_t n, struct slu_err *err)
{
    size_t at[2] = {0}; /* the next document of each batch */
    int rc = SLU_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        const bool held = j->outcome[i].what == OUTCOME_HELD;
        if (!held && j->outcome[i].what != OUTCOME_KEPT)
            continue;
        struct slu_batch *b = held ? &j->holdout : &j->batch;
        const size_t k = at[held]++;
        if (!j->origin[i])
            continue;
        const char *version = (const char *)j->origins.data + j->origin[i] - 1,
                   *arguments = version + strlen(version) + 1,
                   *file = arguments + strlen(arguments) + 1;
        const struct slu_step step = {(char *)PROGRAM, (char *)version,
                                      (char *)arguments, 0};
        rc = slu_steps_count_line(held ? g->cfg->holdout_origins : g->cfg->origins,
                                  &step, file, b->seq[k].len_tok, slu_seq_hash(b, k),
                                  err);
    }
    return rc;
}

int slu_ingest_check_needs(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                           struct slu_ingest_worker *w,
                           const struct slu_record_ref *ref,
                           const struct slu_record *rec, struct slu_err *err)
{
    if (!g->cfg->needs.read || rec->reject || !rec->any)
        return SLU_OK;
    bool is = false;
    int rc = check(g, w, rec, &is, err);
    if (!rc)
        return is && g->cfg->origins
                   ? note(j, (size_t)(ref - j->block.rec), &rec->any[g->n_any], err)
                   : SLU_OK;
    const char *path = slu_source_at(g->cfg->sources, ref->source)->path;
    if (!strcmp(path, "-"))
        path = "standard input";
    const char *member =
        ref->member ? (const char *)j->block.members.data + ref->member - 1 : "";
    const char *colon = *member ? ": " : "";
    return ref->line ? slu_err_at(err, "%s%s%s:%llu", path, colon, member,
                                  (unsigned long long)ref->line)
                     : slu_err_at(err, "%s%s%s: document %llu", path, colon, member,
                                  (unsigned long long)ref->document);
}
