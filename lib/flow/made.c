#include "lib/flow/made.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"

typedef struct slu_json_value value;
typedef unsigned long long ull; /* for printf */

static const char *const lists[SLU_MADE_KINDS] = {"arguments", "contents", "lenient",
                                                  "facts"};

int slu_made_add(struct slu_made *m, enum slu_made_kind kind, unsigned from,
                 const char *word, struct slu_err *err)
{
    const struct slu_made_word w = {m->text.len, (uint8_t)kind, (uint8_t)from};
    int rc = slu_grow(&m->word, &m->cap, m->n + 1, sizeof w, err);

    if (!rc)
        rc = slu_buf_append(&m->text, word, strlen(word) + 1, err);
    if (!rc)
        m->word[m->n++] = w;
    return rc;
}

int slu_made_fact(struct slu_made *m, struct slu_err *err, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return slu_fail_nomem(err, 1);
    int rc = slu_made_add(m, SLU_MADE_FACT, 0, text, err);
    free(text);
    return rc;
}

int slu_made_copy(struct slu_made *to, const struct slu_made *m, struct slu_err *err)
{
    int rc = SLU_OK;

    *to = (struct slu_made){.program = m->program, .seed = m->seed};
    for (size_t i = 0; i < m->n && !rc; i++)
        rc = slu_made_add(to, m->word[i].kind, m->word[i].from,
                          (const char *)m->text.data + m->word[i].at, err);
    return rc;
}

void slu_made_release(struct slu_made *m)
{
    slu_buf_release(&m->text);
    free(m->word);
    *m = (struct slu_made){.n = 0};
}

/* ---- as JSON ---- */

static int put_list(const struct slu_made *m, unsigned kind, unsigned upto,
                    struct slu_buf *t, struct slu_err *err)
{
    bool any = kind == SLU_MADE_OPTION;
    int rc = any ? slu_buf_printf(t, err, ", \"%s\": [", lists[kind]) : SLU_OK;
    const char *before = "";

    for (size_t i = 0; i < m->n && !rc; i++) {
        const char *word = (const char *)m->text.data + m->word[i].at;
        if (m->word[i].kind != kind || m->word[i].from > upto)
            continue;
        if (!any)
            rc = slu_buf_printf(t, err, ", \"%s\": [", lists[kind]);
        if (!rc)
            rc = slu_buf_printf(t, err, "%s", before);
        if (!rc)
            rc = slu_json_put_string(t, word, strlen(word), err);
        any = true;
        before = ", ";
    }
    return rc || !any ? rc : slu_buf_append(t, "]", 1, err);
}

int slu_made_put(const struct slu_made *m, unsigned upto, struct slu_buf *t,
                 struct slu_err *err)
{
    int rc = slu_buf_printf(t, err, "\"program\": \"%s\", \"bytes\": %d", m->program,
                            SLU_BYTES);

    if (!rc && m->stage)
        rc = slu_buf_printf(t, err, ", \"stage\": \"%s\"", m->stage);
    if (!rc && m->of)
        rc = slu_buf_printf(t, err, ", \"part\": [%llu, %llu]", (ull)m->part,
                            (ull)m->of);
    for (unsigned kind = 0; kind < SLU_MADE_KINDS && !rc; kind++)
        rc = put_list(m, kind, upto, t, err);
    return rc ? rc : slu_buf_printf(t, err, ", \"seed\": %llu", (ull)m->seed);
}

/* ---- differences ---- */

static uint64_t number_of(value v, const char *key)
{
    value at;
    uint64_t n = UINT64_MAX;

    if (slu_json_get(v, key, &at))
        (void)slu_json_u64(at, &n);
    return n;
}

static void part_of(value v, char text[64])
{
    struct slu_json_iter it;
    uint64_t n[2] = {0, 0};
    value part;

    snprintf(text, 64, "the whole");
    if (!slu_json_get(v, "part", &part))
        return;
    slu_json_iter_init(&it, part);
    for (int i = 0; i < 2 && slu_json_next(&it); i++)
        (void)slu_json_u64(it.value, &n[i]);
    snprintf(text, 64, "part %llu/%llu", (ull)n[0], (ull)n[1]);
}

/* Program, version, stage, part. */
static bool run_differs(value was, value now, char *text, size_t cap)
{
    const char *a = slu_json_get_string(was, "program", "?"),
               *b = slu_json_get_string(now, "program", "?");
    const char *stage = slu_json_get_string(was, "stage", "none"),
               *is = slu_json_get_string(now, "stage", "none");
    const char *version = slu_json_get_string(was, "version", "");
    char part[64], as[64];

    part_of(was, part);
    part_of(now, as);
    if (strcmp(a, b))
        snprintf(text, cap, "was made by %s, not %s", a, b);
    else if (number_of(was, "bytes") != number_of(now, "bytes"))
        snprintf(text, cap,
                 "was made by %sversion%s%s, which writes other bytes than this one, "
                 "%s",
                 *version ? "" : "another ", *version ? " " : "", version, SLU_VERSION);
    else if (strcmp(stage, is))
        snprintf(text, cap, "was made by --stage %s, now %s", stage, is);
    else if (strcmp(part, as))
        snprintf(text, cap, "was made as %s, now %s", part, as);
    else
        return false;
    return true;
}

static size_t name_len(const char *word)
{
    return strcspn(word, "=");
}

/* The word of the same name in a record, contents or not, after `skip` such words; NULL:
 * none. */
static const char *find(value v, const char *word, bool contents, unsigned skip)
{
    const size_t n = name_len(word);
    struct slu_json_iter it;
    value list;
    const char *s;
    size_t len;

    for (unsigned kind = 0; kind < SLU_MADE_KINDS; kind++) {
        if ((kind == SLU_MADE_CONTENTS) != contents ||
            !slu_json_get(v, lists[kind], &list))
            continue;
        slu_json_iter_init(&it, list);
        while (slu_json_next(&it))
            if (slu_json_string(it.value, &s, &len) && name_len(s) == n &&
                !memcmp(s, word, n) && !skip--)
                return s;
    }
    return NULL;
}

/* Whether word a, of the record `from`, lacks its equal in `in`. back: `from` is the
 * record of this run, not the earlier one. nth: words of this name before it. */
static bool word_differs(const char *a, unsigned kind, value in, bool back,
                         unsigned nth, uint64_t rejected, char *text, size_t cap)
{
    const int n = (int)name_len(a);
    const char *b = find(in, a, kind == SLU_MADE_CONTENTS, nth);

    if (back ? b || kind == SLU_MADE_LENIENT
             : (b ? !strcmp(a, b) : kind == SLU_MADE_LENIENT && !rejected))
        return false;
    if (b && kind == SLU_MADE_CONTENTS)
        snprintf(text, cap, "was made with other contents of %s%.*s",
                 *a == '-' ? "the file of " : "", n, a);
    else if (!b && nth)
        snprintf(text, cap, "was made with %s files of %.*s", back ? "fewer" : "more",
                 n, a);
    else if (b)
        snprintf(text, cap, "was made with %s, now %s", a, b);
    else if (kind == SLU_MADE_CONTENTS)
        snprintf(text, cap,
                 back ? "was made without %.*s" : "was made with %.*s, now without", n,
                 a);
    else if (back)
        snprintf(text, cap, "was made without %.*s, now %s", n, a, a);
    else
        snprintf(text, cap, "was made with %s, now without", a);
    return true;
}

/* Whether a word of this kind, of the record `from`, lacks its equal in `in`. */
static bool words_differ(value from, value in, unsigned kind, bool back, char *text,
                         size_t cap)
{
    struct slu_json_iter it;
    value list;
    const char *s, *before = "";
    unsigned nth = 0;
    size_t len;

    if (!slu_json_get(from, lists[kind], &list))
        return false;
    slu_json_iter_init(&it, list);
    while (slu_json_next(&it)) {
        if (!slu_json_string(it.value, &s, &len))
            continue;
        const size_t n = name_len(s);
        nth = n == name_len(before) && !memcmp(s, before, n) ? nth + 1 : 0;
        before = s;
        if (word_differs(s, kind, in, back, nth, number_of(from, "rejected"), text,
                         cap))
            return true;
    }
    return false;
}

bool slu_made_differs(value was, value now, char *text, size_t cap)
{
    if (run_differs(was, now, text, cap))
        return true;
    for (unsigned kind = 0; kind < SLU_MADE_KINDS; kind++)
        if (words_differ(was, now, kind, false, text, cap) ||
            words_differ(now, was, kind, true, text, cap))
            return true;
    const uint64_t a = number_of(was, "seed"), b = number_of(now, "seed");
    if (a != b)
        snprintf(text, cap, "was made with --seed=%llu, now --seed=%llu", (ull)a,
                 (ull)b);
    return a != b;
}

bool slu_made_now(const char *text)
{
    struct slu_json *j = NULL;
    struct slu_err err = SLU_ERR_INIT;
    const bool now = *text == '{' && !slu_json_parse(&j, text, strlen(text), &err) &&
                     number_of(slu_json_root(j), "bytes") == SLU_BYTES;

    slu_json_free(j);
    return now;
}

int slu_made_compare(const char *was, const char *now, char *text, size_t cap,
                     bool *differs, struct slu_err *err)
{
    struct slu_json *a = NULL, *b = NULL;
    int rc = slu_json_parse(&b, now, strlen(now), err);

    *differs = true;
    snprintf(text, cap, "was made by an earlier version of sluice");
    /* Until 0.2.0 it was "key=value …". */
    if (!rc && *was == '{')
        rc = slu_json_parse(&a, was, strlen(was), err);
    if (!rc && a)
        *differs = slu_made_differs(slu_json_root(a), slu_json_root(b), text, cap);
    slu_json_free(a);
    slu_json_free(b);
    return rc;
}
