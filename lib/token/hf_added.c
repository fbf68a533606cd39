/* hf_added.c - the added tokens of a tokenizer.json. */
#include "lib/token/hf.h"

#include <string.h>

#include "lib/token/added.h"

/* Gives id the text of an added token; the model may have it under the same id. */
static int define(struct hf_load *l, uint64_t id, const char *text, size_t len,
                  bool special, struct slu_err *err)
{
    const struct tok_vocab *v = &l->t->vocab;
    uint8_t keep = 0;
    bool ok;
    int rc;

    if (id < v->n && v->len[id] != UINT32_MAX) {
        keep = v->flag[id] & TOK_IN_MODEL;
        if (l->is_sp && keep) { /* compare with the model's spelling */
            if ((rc = hf_text(l, text, len, &ok, err)))
                return rc;
            text = (const char *)l->bytes.data;
            len = l->bytes.len;
        }
        if (v->len[id] != len || memcmp(v->bytes.data + v->off[id], text, len))
            return slu_fail(
                err, SLU_E_FORMAT,
                "id %llu is one token in the model and another, \"%.*s\", among "
                "the added ones",
                (unsigned long long)id, (int)len, text);
    }
    return tok_vocab_set(&l->t->vocab, id, text, len,
                         (uint8_t)(keep | (special ? SLU_VOCAB_SPECIAL : 0)), err);
}

int hf_add_added(struct hf_load *l, struct slu_json_value v, struct slu_err *err)
{
    struct slu_json_value x = SLU_JSON_NONE;
    const char *text;
    const uint8_t *normal;
    size_t len, normal_len;
    uint64_t id;
    struct added_token token = {
        .special = hf_flag(v, "special"),
        .lstrip = hf_flag(v, "lstrip"),
        .rstrip = hf_flag(v, "rstrip"),
        .single_word = hf_flag(v, "single_word"),
        .normalized = hf_flag(v, "normalized"),
    };
    int rc;

    if (!slu_json_get(v, "id", &x) || !slu_json_u64(x, &id) ||
        !slu_json_get(v, "content", &x) || !slu_json_string(x, &text, &len))
        return slu_fail(err, SLU_E_FORMAT, "an added token without id or content");
    if ((rc = define(l, id, text, len, token.special, err)))
        return rc;
    /* Where spaces are folded, these would strip folded spaces as white space. */
    if (token.normalized && (token.lstrip || token.rstrip) && (l->fold || l->byte_norm))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the added token \"%.*s\", both normalized and stripping, is "
                        "not supported behind this normalizer",
                        (int)len, text);
    if (token.normalized && token.single_word && l->byte_norm)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the added token \"%.*s\", a normalized single word, is not "
                        "supported behind the normalizer ByteLevel",
                        (int)len, text);
    token.id = (uint32_t)id;
    normal = (const uint8_t *)text;
    normal_len = len;
    if (token.normalized &&
        (rc = norm_run(l->t->norm, &l->norm, normal, len, &normal, &normal_len, err)))
        return rc;
    return added_put(l->t->added, token, normal, normal_len, err);
}

/* Checks the ids of added tokens. The reference ignores them and assigns new ones: a
 * text of the model keeps the model's id, the others follow the largest. SLU_E_FORMAT
 * if the file has other ids, as its meaning is then unclear. */
int hf_check_added_ids(struct hf_load *l, size_t n_vocab, struct slu_err *err)
{
    const struct tok_added *a = l->t->added;
    const struct slu_vocab_table *v = &l->t->table;
    uint64_t next = n_vocab;
    int rc;

    for (size_t i = 0; i < a->n; i++) {
        const struct added_token *k = &a->token[i];
        /* The vocabulary has the text of the file, `a` the one that is searched for. */
        const bool other = k->normalized && l->t->norm;
        const char *text = other ? (const char *)v->bytes + v->off[k->id]
                                 : (const char *)a->text.data + k->text_off;
        const size_t len = other ? v->off[k->id + 1] - v->off[k->id] : k->text_len;
        uint32_t id = TOK_NONE;
        bool ok;
        if (other && l->t->in_model[k->id])
            id = k->id; /* compared when it was defined */
        else if ((rc = hf_text(l, text, len, &ok, err)))
            return rc;
        else if (ok)
            id = tok_index_find(&l->index, l->bytes.data, l->bytes.len);
        if (id == TOK_NONE && k->id < n_vocab)
            id = k->id; /* in the model, spelled outside the alphabet */
        if (k->id != (id == TOK_NONE ? next : id))
            return slu_fail(
                err, SLU_E_FORMAT,
                "the added token \"%.*s\" has id %u, but would be given %llu by the "
                "reference; save the file again from there",
                (int)len, text, k->id,
                (unsigned long long)(id == TOK_NONE ? next : id));
        if (k->id >= next)
            next = (uint64_t)k->id + 1;
    }
    return SLU_OK;
}
