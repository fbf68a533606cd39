/* Fuzzes JSONL: any bytes are split into records that cover all but blank lines, and
 * each is taken or rejected for the same reason, at the same place, with the same
 * fields by simdjson and by the scalar parser. Texts that are taken are valid UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text/input.h"
#include "lib/base/json.h"
#include "lib/base/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool good)
{
    if (!good)
        abort();
}

static bool equal(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a) == 0);
}

/* Whether two values are the same; a string is valid UTF-8. */
static bool same_value(const struct slu_value *a, const struct slu_value *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == SLU_VALUE_STRING)
        return equal(a->string, a->len, b->string, b->len) &&
               slu_utf8_valid_prefix((const uint8_t *)a->string, a->len) == a->len;
    return a->type == SLU_VALUE_BOOL ? a->boolean == b->boolean
                                     : a->number == b->number;
}

static void one_record(struct slu_record_parser *quick,
                       struct slu_record_parser *scalar, const uint8_t *rec, size_t n,
                       size_t n_any)
{
    struct slu_record q, s;
    must(slu_record_parse(quick, rec, n, &q, NULL) == SLU_OK);
    must(slu_record_parse(scalar, rec, n, &s, NULL) == SLU_OK);
    must(q.reject == s.reject && q.off_byte == s.off_byte);
    must(q.reject < SLU_REJECT_N && (q.off_byte == UINT64_MAX || q.off_byte <= n));
    if (q.reject)
        return;
    must(equal(q.text, q.text_len, s.text, s.text_len));
    must(equal(q.id, q.id_len, s.id, s.id_len));
    must(equal(q.domain, q.domain_len, s.domain, s.domain_len));
    must(slu_utf8_valid_prefix((const uint8_t *)q.text, q.text_len) == q.text_len);
    must(q.lacks == s.lacks && memcmp(&q.score, &s.score, sizeof q.score) == 0);
    for (size_t i = 0; i < n_any; i++)
        must(same_value(&q.any[i], &s.any[i]));
    must(q.text_len <= n && q.id_len <= n + SLU_NUMBER_BYTE &&
         q.domain_len <= n + SLU_NUMBER_BYTE);
}

static void as_tree(const uint8_t *p, size_t n)
{
    struct slu_json *j;
    struct slu_json_iter it;
    if (slu_json_parse(&j, p, n, NULL) != SLU_OK)
        return;
    for (slu_json_iter_init(&it, slu_json_root(j)); slu_json_next(&it);)
        must(slu_json_count(it.value) <= n);
    slu_json_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { SETS = 6 };
    static const char *const flat[] = {"text", "a", "score"};
    static const char *const deep[] = {"a.b", "a.b.domain", "id", "text"};
    static const struct slu_record_cfg sets[SETS] = {
        {.name = {"text"}},
        {.name = {"text", "id", "domain", "score"}, .optional = 1U << SLU_FIELD_SCORE},
        {.name = {"text"}, .null_is_missing = true},
        {.name = {"a.text", "a.id", "a.b.domain", "score"},
         .optional = 1U << SLU_FIELD_SCORE | 1U << SLU_FIELD_DOMAIN,
         .null_is_missing = true},
        {.name = {"text"}, .any = flat, .n_any = 3},
        {.name = {"text", "id"}, .optional = 2, .any = deep, .n_any = 4},
    };
    struct slu_record_parser *quick, *scalar;
    struct slu_block b;
    struct slu_record_cfg cfg = sets[n > 0 ? data[0] % SETS : 0];

    must(slu_record_parser_new(&quick, &cfg, NULL) == SLU_OK);
    cfg.dom_byte = 1;
    must(slu_record_parser_new(&scalar, &cfg, NULL) == SLU_OK);
    slu_block_init(&b);
    must(slu_buf_append(&b.raw, data, n, NULL) == SLU_OK);
    must(slu_buf_reserve(&b.raw, SLU_JSON_PADDING, NULL) == SLU_OK);
    memset(b.raw.data + n, '"', SLU_JSON_PADDING);
    b.lines = b.json = true;
    b.line = 1;
    must(slu_block_split(&b, NULL) == SLU_OK);
    size_t end = 0;
    for (size_t i = 0; i < b.n_rec; i++) {
        const struct slu_record_ref *r = &b.rec[i];
        must(r->off >= end && r->len <= n - r->off && r->document == r->off);
        must(!memchr(b.raw.data + r->off, '\n', r->len));
        end = r->off + r->len;
        one_record(quick, scalar, b.raw.data + r->off, r->len, cfg.n_any);
    }
    as_tree(data, n);
    slu_block_release(&b);
    slu_record_parser_free(quick);
    slu_record_parser_free(scalar);
    return 0;
}
