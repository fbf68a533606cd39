/* ordinary.c - whether ordinary text can become a special token. */
#include "tokenizer.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/token/tok.h"

/* A search for ids that ordinary text becomes. */
struct search {
    const struct slu_tokenizer *t;
    struct slu_encoder *e;
    uint64_t eos;   /* the only id sought; SLU_NO_TOKEN: special tokens are sought */
    uint64_t least; /* found so far, or SLU_NO_TOKEN */
};

static bool is_sought(const struct search *s, uint64_t id)
{
    return s->eos == SLU_NO_TOKEN ? (s->t->table.flags[id] & SLU_VOCAB_SPECIAL) != 0
                                  : id == s->eos;
}

/* Encodes a text, and looks for the sought ids in the result. */
static int look(struct search *s, const struct slu_buf *text, struct slu_ids *ids,
                struct slu_err *err)
{
    ids->n = 0;
    int rc = slu_encode(s->e, (const char *)text->data, text->len, ids, err);
    for (size_t i = 0; i < ids->n && !rc; i++)
        if (is_sought(s, ids->id[i]) && ids->id[i] < s->least)
            s->least = ids->id[i];
    /* The text of an EOS may be part of a character, so not valid UTF-8. */
    return rc == SLU_E_FORMAT ? SLU_OK : rc;
}

/* Encodes the texts of the sought tokens: one by one, or, which is faster, as one text
 * in which each is between two separators. */
static int look_at_all(struct search *s, const char *separator, struct slu_err *err)
{
    const struct slu_vocab_table *v = &s->t->table;
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_ids ids = {0};
    size_t n = separator ? strlen(separator) : 0;
    int rc = n ? slu_buf_append(&text, separator, n, err) : SLU_OK;

    for (uint64_t id = 0; id < v->n && !rc; id++) {
        if (!is_sought(s, id) || v->off[id + 1] == v->off[id])
            continue;
        rc = slu_buf_append(&text, v->bytes + v->off[id], v->off[id + 1] - v->off[id],
                            err);
        if (!rc && separator)
            rc = slu_buf_append(&text, separator, n, err);
        if (rc || separator)
            continue;
        rc = look(s, &text, &ids, err);
        slu_buf_clear(&text);
    }
    if (!rc && separator)
        rc = look(s, &text, &ids, err);
    slu_ids_release(&ids);
    slu_buf_release(&text);
    return rc;
}

static int search(struct search *s, struct slu_err *err)
{
    static const char *const separator[] = {NULL, "\n", " ", "a", "."};

    int rc = slu_encoder_new(&s->e, s->t, 0, err);
    for (size_t i = 0; i < sizeof separator / sizeof *separator && !rc; i++)
        rc = look_at_all(s, separator[i], err);
    slu_encoder_free(s->e);
    return rc;
}

int tok_find_leak(struct slu_tokenizer *t, struct slu_err *err)
{
    struct search s = {t, NULL, SLU_NO_TOKEN, SLU_NO_TOKEN};
    int rc = search(&s, err);

    t->leak = s.least;
    return rc;
}

int slu_tokenizer_leak(const struct slu_tokenizer *t, uint64_t *id, struct slu_err *err)
{
    struct search s = {t, NULL, t->eos, SLU_NO_TOKEN};

    *id = SLU_NO_TOKEN;
    if (t->is_bytes || t->special_parse)
        return SLU_OK;
    int rc = t->eos == SLU_NO_TOKEN || (t->table.flags[t->eos] & SLU_VOCAB_SPECIAL)
                 ? SLU_OK /* t->leak covers it */
                 : search(&s, err);
    *id = s.least < t->leak ? s.least : t->leak;
    return rc;
}
