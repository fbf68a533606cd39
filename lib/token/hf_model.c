/* hf_model.c - the vocabulary and the merges of a tokenizer.json. */
#include "lib/token/hf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/unicode.h"

/* Whether a byte stands for itself in GPT-2's alphabet, as printable Latin-1 does. The
 * other bytes are U+0100 and following. */
static bool stands_for_itself(unsigned b)
{
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

void hf_make_alphabet(int16_t byte_of[0x144])
{
    unsigned next = 0x100;

    for (unsigned i = 0; i < 0x144; i++)
        byte_of[i] = -1;
    for (unsigned b = 0; b < 256; b++)
        byte_of[stands_for_itself(b) ? b : next++] = (int16_t)b;
}

/* Sets l->bytes to a token of SentencePiece, which is text. *ok is false for a token
 * with a space if every space is folded: it never matches. */
static int sp_text(struct hf_load *l, const char *p, size_t n, bool *ok,
                   struct slu_err *err)
{
    *ok = !l->fold || !memchr(p, ' ', n);
    for (size_t i = 0; i < n; i++) {
        bool space = l->fold && n - i >= 3 && !memcmp(p + i, SP_SPACE, 3);
        int rc = slu_buf_append(&l->bytes, space ? " " : p + i, 1, err);
        if (rc)
            return rc;
        i += space ? 2 : 0;
    }
    return SLU_OK;
}

int hf_text(struct hf_load *l, const char *p, size_t n, bool *ok, struct slu_err *err)
{
    int rc;

    slu_buf_clear(&l->bytes);
    if (l->is_sp)
        return sp_text(l, p, n, ok, err);
    *ok = false;
    if ((rc = slu_buf_reserve(&l->bytes, n + 1, err)))
        return rc;
    for (size_t i = 0; i < n;) {
        unsigned len;
        uint32_t c = uni_decode((const uint8_t *)p + i, &len);
        if (c >= 0x144 || l->byte_of[c] < 0)
            return SLU_OK;
        l->bytes.data[l->bytes.len++] = (uint8_t)l->byte_of[c];
        i += len;
    }
    *ok = true;
    return SLU_OK;
}

/* ---- model ---- */

/* Whether the member is absent, null, false, 0 or "". */
static bool is_unset(struct slu_json_value v, const char *key)
{
    struct slu_json_value x = SLU_JSON_NONE;
    const char *s;
    size_t len;
    double d;
    bool b;

    if (!slu_json_get_set(v, key, &x))
        return true;
    return (slu_json_bool(x, &b) && !b) || (slu_json_double(x, &d) && d == 0) ||
           (slu_json_string(x, &s, &len) && !len);
}

int hf_check_model(struct slu_json_value model, struct slu_err *err)
{
    static const char *const REFUSED[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    struct slu_json_value type = SLU_JSON_NONE;

    if (slu_json_get_set(model, "type", &type) && !slu_json_is(type, "BPE")) {
        const char *s = "?";
        size_t len = 1;
        slu_json_string(type, &s, &len);
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the model \"%.*s\" is not supported, only BPE is", (int)len,
                        s);
    }
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        if (!is_unset(model, REFUSED[i]))
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the model's \"%s\" is not supported", REFUSED[i]);
    }
    return SLU_OK;
}

/* Returns the byte of a fallback token such as "<0x0A>", or -1. */
static int byte_of_name(const char *s, size_t n)
{
    static const char HEX[] = "0123456789ABCDEF";
    const char *a, *b;

    if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>' || !(a = memchr(HEX, s[3], 16)) ||
        !(b = memchr(HEX, s[4], 16)))
        return -1;
    return (int)((a - HEX) * 16 + (b - HEX));
}

int hf_add_vocab(struct hf_load *l, struct slu_json_value vocab, struct slu_err *err)
{
    struct slu_json_iter it;
    int rc = SLU_OK;

    for (slu_json_iter_init(&it, vocab); !rc && slu_json_next(&it);) {
        uint64_t id;
        int byte;
        bool ok;
        if (!slu_json_u64(it.value, &id))
            return slu_fail(err, SLU_E_FORMAT, "the id of \"%.*s\" is not a number",
                            (int)it.key_len, it.key);
        if (id < l->t->vocab.n && l->t->vocab.len[id] != UINT32_MAX)
            return slu_fail(err, SLU_E_FORMAT, "id %llu comes twice",
                            (unsigned long long)id);
        if ((rc = hf_text(l, it.key, it.key_len, &ok, err)))
            return rc;
        if (l->is_sp && (byte = byte_of_name(it.key, it.key_len)) >= 0) {
            uint8_t b = (uint8_t)byte;
            l->byte_id[byte] = (uint32_t)id;
            rc = tok_vocab_set(&l->t->vocab, id, &b, 1, 0, err);
            continue;
        }
        rc = ok ? tok_vocab_set(&l->t->vocab, id, l->bytes.data, l->bytes.len,
                                TOK_IN_MODEL, err)
                : tok_vocab_set(&l->t->vocab, id, it.key, it.key_len, 0, err);
    }
    return rc;
}

/* Reads the two halves of a merge, written "a b" or ["a", "b"]. */
static bool halves(struct slu_json_value v, const char *s[2], size_t len[2])
{
    struct slu_json_iter it;
    const char *space;
    size_t n;

    if (slu_json_type(v) == SLU_JSON_ARRAY) {
        unsigned k = 0;
        for (slu_json_iter_init(&it, v); slu_json_next(&it); k++) {
            if (k > 1 || !slu_json_string(it.value, &s[k], &len[k]))
                return false;
        }
        return k == 2;
    }
    if (!slu_json_string(v, &s[0], &n) || !(space = memchr(s[0], ' ', n)))
        return false;
    len[0] = (size_t)(space - s[0]);
    s[1] = space + 1;
    len[1] = n - len[0] - 1;
    return !memchr(s[1], ' ', len[1]);
}

int hf_put_merge(struct hf_load *l, uint32_t left, uint32_t right, uint32_t result,
                 struct slu_err *err)
{
    int rc = slu_grow(&l->merge, &l->cap_merge, l->n_merge + 1, sizeof *l->merge, err);

    if (rc)
        return rc;
    l->merge[l->n_merge++] = (struct bpe_merge){left, right, result};
    return SLU_OK;
}

static int add_merge(struct hf_load *l, const char *const s[2], const size_t len[2],
                     struct slu_err *err)
{
    uint32_t id[3];
    uint8_t both[2 * BPE_MAX_LEN];
    size_t n = 0;
    int rc;

    for (int k = 0; k < 2; k++) {
        bool ok;
        /* Parts (sp.h) are exact only if no merge of the file takes a byte. */
        if (l->is_sp && byte_of_name(s[k], len[k]) >= 0)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "a merge of the byte \"%.*s\" is not supported",
                            (int)len[k], s[k]);
        if ((rc = hf_text(l, s[k], len[k], &ok, err)))
            return rc;
        if (!ok) /* no text can ever use this merge */
            return SLU_OK;
        if (n + l->bytes.len > sizeof both)
            return slu_fail(err, SLU_E_UNSUPPORTED, "a token of more than %d bytes",
                            BPE_MAX_LEN);
        memcpy(both + n, l->bytes.data, l->bytes.len);
        id[k] = tok_index_find(&l->index, both + n, l->bytes.len);
        n += l->bytes.len;
    }
    id[2] = tok_index_find(&l->index, both, n);
    if (id[0] == TOK_NONE || id[1] == TOK_NONE || id[2] == TOK_NONE)
        return slu_fail(err, SLU_E_FORMAT, "merge \"%.*s %.*s\": not in the vocabulary",
                        (int)len[0], s[0], (int)len[1], s[1]);
    return hf_put_merge(l, id[0], id[1], id[2], err);
}

/* Whether id is a fallback token: a byte, but not text. */
static bool is_byte(const struct hf_load *l, uint32_t id)
{
    const struct slu_vocab_table *v = &l->t->table;

    return l->is_sp && v->off[id + 1] - v->off[id] == 1 &&
           l->byte_id[v->bytes[v->off[id]]] == id;
}

int hf_add_merges(struct hf_load *l, struct slu_json_value merges, struct slu_err *err)
{
    const struct slu_vocab_table *v = &l->t->table;
    struct slu_json_iter it;
    size_t k = 0;
    int rc = tok_index_init(&l->index, v, v->n, err);

    if (rc)
        return rc;
    for (uint32_t id = 0; id < v->n; id++) {
        if (l->t->in_model[id] && !is_byte(l, id))
            tok_index_put(&l->index, id);
    }
    if (l->is_sp && (rc = hf_add_part_merges(l, err)))
        return rc;
    for (slu_json_iter_init(&it, merges); !rc && slu_json_next(&it); k++) {
        const char *s[2];
        size_t len[2];
        if (!halves(it.value, s, len))
            return slu_fail(err, SLU_E_FORMAT, "merge %zu is not a pair of strings", k);
        rc = add_merge(l, s, len, err);
    }
    return rc;
}
