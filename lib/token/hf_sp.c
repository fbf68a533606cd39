/* hf_sp.c - a tokenizer.json with SentencePiece's BPE: the steps before the model, and
 * the parts of characters (sp.h). */
#include "lib/token/hf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/added.h"
#include "lib/token/unicode.h"

bool hf_has_type(struct slu_json_value v, const char *type)
{
    static const char *const IN[] = {"pretokenizers", "normalizers"};
    struct slu_json_value x = SLU_JSON_NONE;
    struct slu_json_iter it;

    if (slu_json_get(v, "type", &x) && slu_json_is(x, type))
        return true;
    for (int k = 0; k < 2; k++) {
        if (!slu_json_get(v, IN[k], &x))
            continue;
        for (slu_json_iter_init(&it, x); slu_json_next(&it);) {
            if (hf_has_type(it.value, type))
                return true;
        }
    }
    return false;
}

/* ---- before the model ---- */

/* Replaces the last step of the normalizer by its opposite if it writes U+2581 for each
 * space. */
static int fold_norm(struct hf_load *l, struct slu_err *err)
{
    struct tok_norm *was = l->t->norm, *norm;
    const struct norm_step *s = was && was->n ? &was->step[was->n - 1] : NULL;
    const uint8_t *spec = was ? was->spec.data : NULL;
    int rc;

    if (!s || s->kind != NORM_REPLACE || s->n_a != 1 || spec[s->a] != ' ' ||
        s->n_b != 3 || memcmp(spec + s->b, SP_SPACE, 3))
        return SLU_OK;
    l->fold = true;
    if ((rc = norm_new(&norm, err)))
        return rc;
    l->t->norm = norm;
    size_t n = was->n - 1;
    /* A U+2581 that is put first is put as a space: most texts are then copied once. */
    bool in_front = n && was->step[n - 1].kind == NORM_PREPEND &&
                    was->step[n - 1].n_a == 3 &&
                    !memcmp(spec + was->step[n - 1].a, SP_SPACE, 3);
    for (size_t i = 0; i < n - in_front && !rc; i++) {
        s = &was->step[i];
        rc = norm_add(norm, s->kind, spec + s->a, s->n_a, spec + s->b, s->n_b, err);
    }
    if (!rc)
        rc = norm_add(norm, NORM_REPLACE, SP_SPACE, 3, " ", 1, err);
    if (!rc && in_front)
        rc = norm_add(norm, NORM_PREPEND, " ", 1, "", 0, err);
    norm_free(was);
    return rc;
}

/* Whether the start of the text is still its start after the normalizer: for "first"
 * the reference looks at places in the original. */
static bool keeps_first(const struct tok_norm *norm)
{
    for (size_t i = 0; norm && i < norm->n; i++) {
        const struct norm_step *s = &norm->step[i];
        const uint8_t *a = norm->spec.data + s->a;
        unsigned len = 0;
        if (s->kind == NORM_REPLACE && s->n_b)
            uni_decode(a, &len);
        if (s->kind > NORM_LOWERCASE && s->kind != NORM_PREPEND && len != s->n_a)
            return false;
    }
    return true;
}

static int read_metaspace(struct hf_load *l, struct slu_json_value v,
                          struct slu_err *err)
{
    static const char *const SCHEME[] = {"never", "first", "always"};
    struct slu_json_value x = SLU_JSON_NONE;
    bool prefix = true;

    if (!slu_json_get(v, "replacement", &x) || !slu_json_is(x, SP_SPACE))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the pre-tokenizer \"Metaspace\" with another replacement than "
                        "U+2581 is not supported");
    l->sp.fold = true;
    l->sp.prepend = SP_ALWAYS;
    if (slu_json_get_set(v, "prepend_scheme", &x)) {
        uint8_t k = 0;
        while (k < 3 && !slu_json_is(x, SCHEME[k]))
            k++;
        if (k == 3)
            return slu_fail(err, SLU_E_FORMAT,
                            "the pre-tokenizer \"Metaspace\" has an unknown "
                            "\"prepend_scheme\"");
        l->sp.prepend = k;
    }
    if (slu_json_get_set(v, "add_prefix_space", &x) && slu_json_bool(x, &prefix) &&
        !prefix)
        l->sp.prepend = SP_NEVER;
    l->sp.split = !slu_json_get_set(v, "split", &x) || hf_flag(v, "split");
    if (l->sp.prepend == SP_FIRST && !keeps_first(l->t->norm))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the pre-tokenizer \"Metaspace\" with \"first\" is not "
                        "supported behind this normalizer");
    return SLU_OK;
}

static int read_pre(struct hf_load *l, struct slu_json_value v, unsigned depth,
                    struct slu_err *err)
{
    struct slu_json_value type = SLU_JSON_NONE, x = SLU_JSON_NONE, s = SLU_JSON_NONE;
    struct slu_json_iter it;
    const char *name = "?";
    size_t n = 1;
    int rc = SLU_OK;

    if (!slu_json_get(v, "type", &type) || !slu_json_string(type, &name, &n))
        return slu_fail(err, SLU_E_FORMAT, "a pre-tokenizer without type");
    if (slu_json_is(type, "Sequence") && slu_json_get(v, "pretokenizers", &x) &&
        depth < 8) {
        for (slu_json_iter_init(&it, x); !rc && slu_json_next(&it);)
            rc = read_pre(l, it.value, depth + 1, err);
        return rc;
    }
    if (slu_json_is(type, "Metaspace") && !l->sp.fold)
        return read_metaspace(l, v, err);
    /* Gemma's split at spaces, of which the normalizer leaves none. */
    if (slu_json_is(type, "Split") && l->fold && !l->sp.fold &&
        slu_json_get(v, "pattern", &x) && slu_json_get(x, "String", &s) &&
        slu_json_is(s, " ") && !hf_flag(v, "invert"))
        return SLU_OK;
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "the pre-tokenizer \"%.*s\" with byte_fallback is not supported",
                    (int)n, name);
}

int hf_read_sp(struct hf_load *l, struct slu_json_value pre, struct slu_err *err)
{
    int rc;

    l->is_sp = true;
    for (unsigned b = 0; b < 256; b++)
        l->byte_id[b] = TOK_NONE;
    if ((rc = fold_norm(l, err)))
        return rc;
    if (slu_json_type(pre) != SLU_JSON_NULL && (rc = read_pre(l, pre, 0, err)))
        return rc;
    l->fold = l->fold || l->sp.fold;
    return SLU_OK;
}

int hf_make_sp(struct hf_load *l, uint64_t n_vocab, struct slu_err *err)
{
    struct slu_tokenizer *t = l->t;

    if (l->sp.prepend == SP_FIRST && t->norm && t->added->normalized.n)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "normalized added tokens with a normalizer before the "
                        "pre-tokenizer \"Metaspace\" with \"first\" are not supported");
    return sp_new(&t->sp, &l->sp, t->model, &t->model_table, (uint32_t)n_vocab, err);
}

/* ---- parts of characters ---- */

/* Returns a token's only character, or 0 if it has more or is below U+0080. */
static uint32_t only_char(const uint8_t *p, size_t n, unsigned *len)
{
    if (n < 2 || p[0] < 0x80)
        return 0;
    uint32_t c = uni_decode(p, len);
    return *len == n ? c : 0;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Returns the first k bytes at p as a number. */
static uint32_t part_of(const uint8_t *p, unsigned k)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | (k > 2 ? p[2] : 0u);
}

static unsigned part_bytes(uint32_t part, uint8_t b[3])
{
    b[0] = (uint8_t)(part >> 16);
    b[1] = (uint8_t)(part >> 8);
    b[2] = (uint8_t)part;
    return b[2] ? 3 : 2; /* a continuation byte is never 0 */
}

int hf_add_parts(struct hf_load *l, struct slu_err *err)
{
    struct tok_vocab *v = &l->t->vocab;
    bool ascii[128] = {false};
    unsigned len = 0;
    size_t n = 0;
    int rc;

    for (size_t id = 0; id < v->n; id++) {
        const uint8_t *p = v->bytes.data + v->off[id];
        if (v->len[id] == UINT32_MAX || !(v->flag[id] & TOK_IN_MODEL))
            continue;
        if (v->len[id] == 1 && p[0] < 0x80)
            ascii[p[0]] = true;
        if (!only_char(p, v->len[id], &len))
            continue;
        if ((rc =
                 slu_grow(&l->part, &l->cap_part, l->n_part + 2, sizeof *l->part, err)))
            return rc;
        for (unsigned k = 2; k < len; k++)
            l->part[l->n_part++] = part_of(p, k);
    }
    if (l->fold && !ascii[' '])
        return slu_fail(err, SLU_E_UNSUPPORTED, "the vocabulary has no U+2581");
    for (unsigned b = 0; b < 256; b++) {
        if (l->byte_id[b] != TOK_NONE && (b >= 0x80 || !ascii[b]))
            v->flag[l->byte_id[b]] |= TOK_IN_MODEL;
    }
    if (l->n_part)
        qsort(l->part, l->n_part, sizeof *l->part, by_value);
    for (size_t i = 0; i < l->n_part; i++) {
        if (!i || l->part[i] != l->part[i - 1])
            l->part[n++] = l->part[i];
    }
    l->n_part = n;
    for (size_t i = 0; i < n; i++) {
        uint8_t b[3];
        unsigned k = part_bytes(l->part[i], b);
        if ((rc = tok_vocab_set(v, v->n, b, k, TOK_IN_MODEL, err)))
            return rc;
    }
    return SLU_OK;
}

/* Returns the id of the first k bytes of a character: a byte's or a part's. */
static uint32_t id_of(const struct hf_load *l, const uint8_t *p, unsigned k)
{
    uint32_t part = part_of(p, k);

    if (k == 1)
        return l->byte_id[p[0]];
    const uint32_t *at = bsearch(&part, l->part, l->n_part, sizeof part, by_value);
    return (uint32_t)(l->t->model_table.n - l->n_part + (size_t)(at - l->part));
}

int hf_add_part_merges(struct hf_load *l, struct slu_err *err)
{
    const struct slu_vocab_table *v = &l->t->model_table;
    unsigned len = 0;
    int rc = SLU_OK;

    for (unsigned b = 0x80; b < 0xF5; b++) {
        if (b != 0xC0 && b != 0xC1 && l->byte_id[b] == TOK_NONE)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the vocabulary has no token for byte 0x%02x", b);
    }
    for (size_t i = 0; i < l->n_part && !rc; i++) {
        uint8_t b[3];
        unsigned k = part_bytes(l->part[i], b);
        rc = hf_put_merge(l, id_of(l, b, k - 1), l->byte_id[b[k - 1]], id_of(l, b, k),
                          err);
    }
    for (uint32_t id = 0; id < v->n - l->n_part && !rc; id++) {
        const uint8_t *p = v->bytes + v->off[id];
        size_t n = (size_t)(v->off[id + 1] - v->off[id]);
        /* Of tokens with equal text, the one in the index. */
        if (l->t->in_model[id] && only_char(p, n, &len) &&
            tok_index_find(&l->index, p, n) == id)
            rc = hf_put_merge(l, id_of(l, p, len - 1), l->byte_id[p[len - 1]], id, err);
    }
    return rc;
}
