#include "lib/token/trim.h"

#include <string.h>

#include "lib/token/added.h"
#include "lib/token/hf.h"
#include "lib/token/unicode.h"

uint8_t tok_trims_of(struct slu_json_value post)
{
    struct slu_json_value list = SLU_JSON_NONE;
    struct slu_json_iter it;
    uint8_t bits = 0;

    if (hf_flag(post, "trim_offsets"))
        return TOK_TRIMS | (hf_flag(post, "add_prefix_space") ? TOK_KEEPS_FIRST : 0);
    if (slu_json_get_set(post, "processors", &list))
        for (slu_json_iter_init(&it, list); slu_json_next(&it);)
            bits |= tok_trims_of(it.value);
    return bits;
}

static bool is_added(const struct tok_added *a, uint32_t id)
{
    for (size_t i = 0; a && i < a->n; i++)
        if (a->token[i].id == id)
            return true;
    return false;
}

/* Returns how many of the n bytes at p, whole characters, are white at their beginning.
 * Tokens of the model are spelled in an alphabet where only the space is taken for white
 * space; added ones are spelled as the text is. */
static size_t white_front(const uint8_t *p, size_t n, bool added)
{
    unsigned len = 1;
    size_t i = 0;

    for (; i < n; i += len) {
        if (!added && p[i] != ' ')
            break;
        enum uni_category k = added ? uni_category(uni_decode(p + i, &len)) : UNI_ZS;
        if (k != UNI_ZS && k != UNI_ZL && k != UNI_ZP && k != UNI_CW)
            break;
    }
    return i;
}

bool tok_is_trimmed(const struct slu_tokenizer *t, uint32_t id, const char *text,
                    size_t begin, size_t end, size_t at)
{
    const uint8_t *p = (const uint8_t *)text;

    if (!(t->trims & TOK_TRIMS))
        return false;
    const bool added = is_added(t->added, id);
    const size_t front = white_front(p + begin, end - begin, added);
    unsigned len = 1;
    if (front && added)
        (void)uni_decode(p + begin, &len);
    /* A single space before the text, which add_prefix_space may have put there. */
    const bool keeps = begin == 0 && front == len && t->trims & TOK_KEEPS_FIRST;
    return (at < begin + front && !keeps) ||
           white_front(p + at, end - at, added) == end - at;
}

/* ---- parts ---- */

struct parts {
    const struct slu_tokenizer *t;
    const uint8_t *text;
    const uint32_t *id;
    size_t n_id, n; /* n: tokens that are found */
    tok_part_fn *each;
    void *ctx;
};

/* Finds the tokens of text[from, to). */
static bool take_text(struct parts *e, size_t from, size_t to)
{
    const struct slu_vocab_table *v = &e->t->table;

    while (from < to) {
        if (e->n == e->n_id || e->id[e->n] >= v->n)
            return false;
        const uint32_t id = e->id[e->n];
        const size_t n = v->off[id + 1] - v->off[id];
        if (n > to - from || memcmp(e->text + from, v->bytes + v->off[id], n))
            return false;
        e->each(e->ctx, e->n++, from, from + n);
        from += n;
    }
    return true;
}

/* Finds the tokens of text[from, to), where added tokens may be. */
static bool take_parts(struct parts *e, bool normalized, size_t from, size_t to)
{
    struct added_iter it;
    struct added_part part;
    bool good = true;

    added_iter_init(&it, e->t->added, normalized, e->t->special_parse, e->text + from,
                    to - from);
    while (good && added_next(&it, &part)) {
        const size_t begin = from + part.off, end = begin + part.len;
        if (part.id == TOK_NONE) {
            good =
                normalized ? take_text(e, begin, end) : take_parts(e, true, begin, end);
        } else {
            good = e->n < e->n_id && e->id[e->n] == part.id;
            if (good)
                e->each(e->ctx, e->n++, begin, end);
        }
    }
    return good;
}

/* Whether a token that takes white space in can match. */
static bool strips(const struct slu_tokenizer *t)
{
    const struct tok_added *a = t->added;

    for (size_t i = 0; a && i < a->n; i++)
        if ((a->token[i].lstrip || a->token[i].rstrip) &&
            (t->special_parse || !a->token[i].special))
            return true;
    return false;
}

bool tok_each_part(const struct slu_tokenizer *t, const char *text, size_t n_byte,
                   const uint32_t *id, size_t n_id, tok_part_fn *each, void *ctx)
{
    struct parts e = {t, (const uint8_t *)text, id, n_id, 0, each, ctx};
    const bool good =
        strips(t) ? take_parts(&e, false, 0, n_byte) : take_text(&e, 0, n_byte);

    return good && e.n == n_id;
}
