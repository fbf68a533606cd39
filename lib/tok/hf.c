/* hf.c - Hugging Face tokenizer.json, byte-level BPE (the `tokenizers` library's
 * format).
 *
 * Read: model BPE, normalizers (hf_norm.c), pre-tokenizers ByteLevel, Split, Digits and
 * Sequences of them (hf_pre.c), added tokens. Not looked at, as the caller decides
 * on it: post-processor, truncation, padding; the decoder has no say in ids.
 */
#include "lib/tok/hf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/tok/added.h"
#include "lib/tok/bpe.h"
#include "lib/tok/norm.h"
#include "lib/tok/pre.h"
#include "lib/tok/unicode.h"

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 on.
 */
static bool stands_for_itself(unsigned b)
{
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

static void make_alphabet(int16_t byte_of[0x144])
{
    unsigned next = 0x100;

    for (unsigned i = 0; i < 0x144; i++)
        byte_of[i] = -1;
    for (unsigned b = 0; b < 256; b++)
        byte_of[stands_for_itself(b) ? b : next++] = (int16_t)b;
}

struct load {
    struct slu_tokenizer *t;
    int16_t byte_of[0x144];
    struct slu_buf bytes; /* scratch */
    struct norm_scratch norm;
    struct tok_index index;
    struct bpe_merge *merge;
    size_t n_merge, cap_merge;
};

/* Alphabet to bytes, in l->bytes; false where a character is not of the alphabet. */
static int to_bytes(struct load *l, const char *p, size_t n, bool *ok,
                    struct slu_err *err)
{
    int rc;

    slu_buf_clear(&l->bytes);
    *ok = false;
    if ((rc = slu_buf_reserve(&l->bytes, n + 1, err)) < 0)
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

/* true where the member is absent, null, false, 0 or "". */
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

static int check_model(struct slu_json_value model, struct slu_err *err)
{
    static const char *const REFUSED[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    struct slu_json_value type = SLU_JSON_NONE;

    if (slu_json_get_set(model, "type", &type) && !slu_json_is(type, "BPE")) {
        const char *s = "?";
        size_t len = 1;
        slu_json_string(type, &s, &len);
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the model \"%.*s\" is not supported, only byte-level BPE is",
                        (int)len, s);
    }
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        if (!is_unset(model, REFUSED[i]))
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the model's \"%s\" is not supported", REFUSED[i]);
    }
    return SLU_OK;
}

static int add_vocab(struct load *l, struct slu_json_value vocab, struct slu_err *err)
{
    struct slu_json_iter it;
    int rc = SLU_OK;

    for (slu_json_iter_init(&it, vocab); rc >= 0 && slu_json_next(&it);) {
        uint64_t id;
        bool ok;
        if (!slu_json_u64(it.value, &id))
            return slu_fail(err, SLU_E_FORMAT, "the id of \"%.*s\" is no number",
                            (int)it.key_len, it.key);
        if (id < l->t->vocab.n && l->t->vocab.len[id] != UINT32_MAX)
            return slu_fail(err, SLU_E_FORMAT, "id %llu comes twice",
                            (unsigned long long)id);
        if ((rc = to_bytes(l, it.key, it.key_len, &ok, err)) < 0)
            return rc;
        rc = ok ? tok_vocab_set(&l->t->vocab, id, l->bytes.data, l->bytes.len,
                                TOK_IN_MODEL, err)
                : tok_vocab_set(&l->t->vocab, id, it.key, it.key_len, 0, err);
    }
    return rc;
}

/* The two halves of a merge, written "a b" or ["a", "b"]. */
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

static int add_merge(struct load *l, const char *const s[2], const size_t len[2],
                     struct slu_err *err)
{
    uint32_t id[3];
    uint8_t both[2 * BPE_MAX_LEN];
    size_t n = 0;
    int rc;

    for (int k = 0; k < 2; k++) {
        bool ok;
        if ((rc = to_bytes(l, s[k], len[k], &ok, err)) < 0)
            return rc;
        if (!ok) /* nothing that text becomes can ever be merged by it */
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
    if ((rc = slu_grow(&l->merge, &l->cap_merge, l->n_merge + 1, sizeof *l->merge,
                       err)) < 0)
        return rc;
    l->merge[l->n_merge++] = (struct bpe_merge){id[0], id[1], id[2]};
    return SLU_OK;
}

/* The reference does not read the ids of added tokens but counts them anew: a text that
 * the model has keeps the model's id, the others follow the largest. Where that is not
 * what the file says, nobody can know what is meant. */
static int check_added_ids(struct load *l, size_t n_vocab, struct slu_err *err)
{
    const struct tok_added *a = l->t->added;
    uint64_t next = n_vocab;
    int rc;

    for (size_t i = 0; i < a->n; i++) {
        const struct added_token *k = &a->token[i];
        const char *text = (const char *)a->text.data + k->text_off;
        uint32_t id = TOK_NONE;
        bool ok;
        if (k->normalized && l->t->norm) /* the text here is not the one in the file */
            id = k->id;
        else if ((rc = to_bytes(l, text, k->text_len, &ok, err)) < 0)
            return rc;
        else if (ok)
            id = tok_index_find(&l->index, l->bytes.data, l->bytes.len);
        if (id == TOK_NONE && k->id < n_vocab)
            id = k->id; /* in the model, spelled outside the alphabet */
        if (k->id != (id == TOK_NONE ? next : id))
            return slu_fail(
                err, SLU_E_FORMAT,
                "the added token \"%.*s\" has id %u, but would be given %llu",
                (int)k->text_len, text, k->id,
                (unsigned long long)(id == TOK_NONE ? next : id));
        if (k->id >= next)
            next = (uint64_t)k->id + 1;
    }
    return SLU_OK;
}

static int add_merges(struct load *l, struct slu_json_value merges, struct slu_err *err)
{
    const struct slu_vocab_table *v = &l->t->table;
    struct slu_json_iter it;
    size_t k = 0;
    int rc = tok_index_init(&l->index, v, v->n, err);

    if (rc < 0)
        return rc;
    for (uint32_t id = 0; id < v->n; id++) {
        if (l->t->in_model[id])
            tok_index_put(&l->index, id);
    }
    for (slu_json_iter_init(&it, merges); rc >= 0 && slu_json_next(&it); k++) {
        const char *s[2];
        size_t len[2];
        if (!halves(it.value, s, len))
            return slu_fail(err, SLU_E_FORMAT, "merge %zu is no pair of strings", k);
        rc = add_merge(l, s, len, err);
    }
    return rc;
}

/* ---- added tokens ---- */

static bool flag(struct slu_json_value v, const char *key)
{
    struct slu_json_value x = SLU_JSON_NONE;
    bool b = false;

    return slu_json_get(v, key, &x) && slu_json_bool(x, &b) && b;
}

/* Gives id the text of an added token; the model may have it under the same id. */
static int define(struct load *l, uint64_t id, const char *text, size_t len,
                  bool special, struct slu_err *err)
{
    const struct tok_vocab *v = &l->t->vocab;
    uint8_t keep = 0;

    if (id < v->n && v->len[id] != UINT32_MAX) {
        keep = v->flag[id] & TOK_IN_MODEL;
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

static int add_added(struct load *l, struct slu_json_value v, struct slu_err *err)
{
    struct slu_json_value x = SLU_JSON_NONE;
    const char *text;
    const uint8_t *normal;
    size_t len, normal_len;
    uint64_t id;
    struct added_token token = {
        .special = flag(v, "special"),
        .lstrip = flag(v, "lstrip"),
        .rstrip = flag(v, "rstrip"),
        .single_word = flag(v, "single_word"),
        .normalized = flag(v, "normalized"),
    };
    int rc;

    if (!slu_json_get(v, "id", &x) || !slu_json_u64(x, &id) ||
        !slu_json_get(v, "content", &x) || !slu_json_string(x, &text, &len))
        return slu_fail(err, SLU_E_FORMAT, "an added token without id or content");
    if ((rc = define(l, id, text, len, token.special, err)) < 0)
        return rc;
    token.id = (uint32_t)id;
    normal = (const uint8_t *)text;
    normal_len = len;
    if (token.normalized && (rc = norm_run(l->t->norm, &l->norm, normal, len, &normal,
                                           &normal_len, err)) < 0)
        return rc;
    return added_put(l->t->added, token, normal, normal_len, err);
}

/* ---- normalizer ---- */

static int read_normalizer(struct load *l, struct slu_json_value v, struct slu_err *err)
{
    struct tok_norm *norm;
    bool byte_level = false;
    int rc = norm_new(&norm, err);

    if (rc < 0)
        return rc;
    l->t->norm = norm;
    if ((rc = hf_read_norm(norm, v, &byte_level, err)) < 0)
        return rc;
    if (byte_level)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the normalizer \"ByteLevel\" is not supported");
    if (!norm->n) { /* an empty Sequence */
        norm_free(norm);
        l->t->norm = NULL;
    }
    return norm_scratch_init(&l->norm, l->t->norm, err);
}

/* ---- all of it ---- */

static int read_tokenizer(struct load *l, struct slu_json_value root,
                          struct slu_err *err)
{
    struct slu_tokenizer *t = l->t;
    struct slu_json_value model = SLU_JSON_NONE, vocab = SLU_JSON_NONE,
                          merges = SLU_JSON_NONE, x = SLU_JSON_NONE;
    struct slu_json_iter it;
    int rc;

    if (!slu_json_get_set(root, "model", &model) ||
        !slu_json_get_set(model, "vocab", &vocab))
        return slu_fail(err, SLU_E_FORMAT,
                        "not a tokenizer.json: no model with a vocabulary");
    if ((rc = check_model(model, err)) < 0)
        return rc;
    if (!slu_json_get_set(model, "merges", &merges))
        return slu_fail(err, SLU_E_FORMAT, "the model has no merges");
    if (slu_json_get_set(root, "normalizer", &x) &&
        (rc = read_normalizer(l, x, err)) < 0)
        return rc;
    if (!slu_json_get_set(root, "pre_tokenizer", &x))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "without a pre-tokenizer this is no byte-level BPE");
    if ((rc = pre_new(&t->pre, err)) < 0 || (rc = hf_read_pre(t->pre, x, err)) < 0 ||
        (rc = added_new(&t->added, err)) < 0 || (rc = add_vocab(l, vocab, err)) < 0)
        return rc;
    size_t n_vocab = slu_json_count(vocab);
    if (slu_json_get_set(root, "added_tokens", &x)) {
        for (slu_json_iter_init(&it, x); rc >= 0 && slu_json_next(&it);)
            rc = add_added(l, it.value, err);
    }
    if (rc < 0 || (rc = tok_make_table(t, err)) < 0)
        return rc;
    if ((rc = add_merges(l, merges, err)) < 0)
        return rc;
    return check_added_ids(l, n_vocab, err);
}

int tok_load_hf(struct slu_tokenizer *t, struct slu_buf *file, struct slu_err *err)
{
    struct load l = {.t = t};
    struct slu_json *json = NULL;
    struct slu_json_value model = SLU_JSON_NONE;
    bool whole_first = false;
    int rc;

    make_alphabet(l.byte_of);
    rc = slu_json_parse(&json, file->data, file->len, err);
    slu_buf_release(file);
    if (rc < 0 || (rc = read_tokenizer(&l, slu_json_root(json), err)) < 0)
        goto out;
    if (slu_json_get(slu_json_root(json), "model", &model))
        whole_first = flag(model, "ignore_merges");
    /* The tree is as big as the file: let it go before the tables are made. */
    slu_json_free(json);
    json = NULL;
    tok_index_release(&l.index);
    const struct bpe_merge none = {0, 0, 0};
    const struct bpe_cfg cfg = {.table = &t->table,
                                .in_model = t->in_model,
                                .merge = l.merge ? l.merge : &none,
                                .n_merge = l.n_merge,
                                .whole_first = whole_first};
    rc = bpe_build(&t->model, &cfg, err);
out:
    slu_json_free(json);
    slu_buf_release(&l.bytes);
    norm_scratch_release(&l.norm);
    tok_index_release(&l.index);
    free(l.merge);
    return rc;
}
