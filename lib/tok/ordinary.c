/* ordinary.c - whether text that is no special token can become one. */
#include "lib/tokenizer.h"

#include <string.h>

#include "lib/buf.h"
#include "lib/tok/tok.h"

static bool is_control(const struct slu_tokenizer *t, uint64_t id)
{
    return id == t->eos || (t->table.flags[id] & SLU_VOCAB_SPECIAL);
}

/* Encodes a text, and looks for ids that should not come of it. */
static int look(struct slu_encoder *e, const struct slu_tokenizer *t,
                const struct slu_buf *text, struct slu_ids *ids, uint64_t *least,
                struct slu_err *err)
{
    ids->n = 0;
    int rc = slu_encode(e, (const char *)text->data, text->len, ids, err);
    for (size_t i = 0; i < ids->n && !rc; i++)
        if (is_control(t, ids->id[i]) && ids->id[i] < *least)
            *least = ids->id[i];
    /* The text of an EOS may be part of a character. */
    return rc == SLU_E_FORMAT ? SLU_OK : rc;
}

/* Looks at the texts of all special tokens and of EOS: one by one, or, which is
 * quicker, as one text in which each stands between two separators. */
static int look_at_all(struct slu_encoder *e, const struct slu_tokenizer *t,
                       const char *separator, uint64_t *least, struct slu_err *err)
{
    const struct slu_vocab_table *v = &t->table;
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_ids ids = {0};
    size_t n = separator ? strlen(separator) : 0;
    int rc = n ? slu_buf_append(&text, separator, n, err) : SLU_OK;

    for (uint64_t id = 0; id < v->n && !rc; id++) {
        if (!is_control(t, id) || v->off[id + 1] == v->off[id])
            continue;
        rc = slu_buf_append(&text, v->bytes + v->off[id], v->off[id + 1] - v->off[id],
                            err);
        if (!rc && separator)
            rc = slu_buf_append(&text, separator, n, err);
        if (rc || separator)
            continue;
        rc = look(e, t, &text, &ids, least, err);
        slu_buf_clear(&text);
    }
    if (!rc && separator)
        rc = look(e, t, &text, &ids, least, err);
    slu_ids_release(&ids);
    slu_buf_release(&text);
    return rc;
}

int slu_tokenizer_leak(const struct slu_tokenizer *t, uint64_t *id, struct slu_err *err)
{
    static const char *const separator[] = {NULL, "\n", " ", "a", "."};
    struct slu_encoder *e = NULL;

    *id = SLU_NO_TOKEN;
    if (t->is_bytes || t->special_parse)
        return SLU_OK;
    int rc = slu_encoder_new(&e, t, 0, err);
    for (size_t i = 0; i < sizeof separator / sizeof *separator && !rc; i++)
        rc = look_at_all(e, t, separator[i], id, err);
    slu_encoder_free(e);
    return rc;
}
