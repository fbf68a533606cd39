#include "lib/token/trim.h"

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

/* Whether p[0, n) is white space alone. Tokens of the model are spelled in an alphabet
 * where only the space is taken for white space; added ones are spelled as they are. */
static bool is_white(const uint8_t *p, size_t n, bool added)
{
    for (size_t i = 0; i < n;) {
        unsigned len = 1;
        if (added) {
            enum uni_category k = uni_category(uni_decode(p + i, &len));
            if (k != UNI_ZS && k != UNI_ZL && k != UNI_ZP && k != UNI_CW)
                return false;
        } else if (p[i] != ' ') {
            return false;
        }
        i += len;
    }
    return true;
}

bool tok_is_trimmed(const struct slu_tokenizer *t, uint32_t id, size_t at, bool first)
{
    const struct slu_vocab_table *v = &t->table;
    const uint8_t *p = v->bytes + v->off[id];
    const size_t n = v->off[id + 1] - v->off[id];

    if (!(t->trims & TOK_TRIMS))
        return false;
    const bool added = is_added(t->added, id);
    unsigned len = 1;
    if (added)
        (void)uni_decode(p + at, &len);
    return is_white(p + at, n - at, added) ||
           (!(first && t->trims & TOK_KEEPS_FIRST) && is_white(p, at + len, added));
}
