#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/base/le.h"
#include "stream_private.h"

enum {
    FIXED = 128,
    MAX_STEPS = 4096,
    FLAG_LABELS = 1,
    FLAG_NO_TOKENS = 2,
    FLAG_MASKS = 8,
    FLAG_INNER_PADDING = 16,
    FLAG_METADATA = 32,
    FLAGS_1_1 = FLAG_MASKS | FLAG_INNER_PADDING, /* of minor version 1 */
    FLAGS_1_2 = FLAG_METADATA,
    META_ROW = 8, /* bytes before a metadata field's name */
};

static const uint32_t extra_flag[SLU_N_EXTRA] = {[SLU_SCORE] = 4};

void slu_header_init(struct slu_header *h)
{
    memset(h, 0, sizeof *h);
    h->tok_bytes = 2;
    h->eos = h->bos = h->pad = SLU_NO_TOKEN;
}

void slu_header_release(struct slu_header *h)
{
    for (size_t i = 0; i < h->n_step; i++) {
        free(h->step[i].program);
        free(h->step[i].version);
        free(h->step[i].arguments);
    }
    free(h->step);
    slu_header_init(h);
}

static int add_step(struct slu_header *h, const char *s[3], const size_t n[3],
                    uint64_t seed, struct slu_err *err)
{
    struct slu_step *list = realloc(h->step, (h->n_step + 1) * sizeof *list);
    if (!list)
        return slu_fail_nomem(err, (h->n_step + 1) * sizeof *list);
    h->step = list;
    struct slu_step t = {strndup(s[0], n[0]), strndup(s[1], n[1]), strndup(s[2], n[2]),
                         seed};
    if (!t.program || !t.version || !t.arguments) {
        free(t.program);
        free(t.version);
        free(t.arguments);
        return slu_fail_nomem(err, n[0] + n[1] + n[2]);
    }
    h->step[h->n_step++] = t;
    return SLU_OK;
}

int slu_header_add_step(struct slu_header *h, const char *program, const char *version,
                        const char *arguments, uint64_t seed, struct slu_err *err)
{
    const char *s[3] = {program, version, arguments};
    const size_t n[3] = {strlen(program), strlen(version), strlen(arguments)};
    if (h->n_step >= MAX_STEPS)
        return slu_fail(err, SLU_E_LIMIT, "more than %d steps of provenance",
                        MAX_STEPS);
    return add_step(h, s, n, seed, err);
}

int slu_step_put_json(const struct slu_step *t, struct slu_buf *out,
                      struct slu_err *err)
{
    static const char *const key[3] = {
        "{\"program\": ", ", \"version\": ", ", \"arguments\": "};
    const char *const text[3] = {t->program, t->version, t->arguments};
    int rc = SLU_OK;
    for (int k = 0; !rc && k < 3; k++) {
        rc = slu_buf_append(out, key[k], strlen(key[k]), err);
        if (!rc)
            rc = slu_json_put_string(out, text[k], strlen(text[k]), err);
    }
    return rc ? rc
              : slu_buf_printf(out, err, ", \"seed\": %llu}",
                               (unsigned long long)t->seed);
}

int slu_header_copy(struct slu_header *dst, const struct slu_header *src,
                    struct slu_err *err)
{
    *dst = *src;
    dst->step = NULL;
    dst->n_step = 0;
    for (size_t i = 0; i < src->n_step; i++) {
        const struct slu_step *t = &src->step[i];
        int rc = slu_header_add_step(dst, t->program, t->version, t->arguments, t->seed,
                                     err);
        if (rc) {
            slu_header_release(dst);
            return rc;
        }
    }
    return SLU_OK;
}

int slu_header_bucket_of(const struct slu_header *h, uint64_t len_tok)
{
    for (unsigned i = 0; i < h->n_bucket; i++)
        if (slu_header_ids(h, h->bucket[i]) == len_tok)
            return (int)i;
    return -1;
}

const char *slu_header_tokenizer(const struct slu_header *h, size_t *len)
{
    static const char option[] = "--tokenizer=";
    for (size_t i = 0; i < h->n_step; i++) {
        const char *a = h->step[i].arguments;
        if (strcmp(h->step[i].program, "tokenize") ||
            strncmp(a, option, sizeof option - 1))
            continue; /* the option is the first of all */
        a += sizeof option - 1;
        *len = strcspn(a, " ");
        return a;
    }
    return NULL;
}

static uint32_t flags_of(const struct slu_header *h)
{
    uint32_t flags = (h->label_tokens ? FLAG_LABELS : 0) |
                     (h->no_tokens ? FLAG_NO_TOKENS : 0) | (h->masks ? FLAG_MASKS : 0) |
                     (h->inner_padding ? FLAG_INNER_PADDING : 0) |
                     (h->meta.n ? FLAG_METADATA : 0);
    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        flags |= h->has[k] ? extra_flag[k] : 0;
    return flags;
}

static unsigned minor_of(uint32_t flags)
{
    return flags & FLAGS_1_2 ? 2 : flags & FLAGS_1_1 ? 1 : 0;
}

static int encode_meta(const struct slu_meta_field *f, struct slu_buf *out,
                       struct slu_err *err)
{
    const size_t n = strlen(f->name);
    uint8_t row[META_ROW] = {(uint8_t)f->type};

    slu_put_le32(row + 4, (uint32_t)n);
    int rc = slu_buf_append(out, row, sizeof row, err);
    if (!rc)
        rc = slu_buf_append(out, f->name, n, err);
    return rc ? rc : slu_buf_align(out, 8, err);
}

int slu_header_encode(const struct slu_header *h, struct slu_buf *out,
                      struct slu_err *err)
{
    uint8_t f[FIXED] = {0};
    slu_put_le32(f, 1);
    slu_put_le32(f + 4, minor_of(flags_of(h)));
    slu_put_le32(f + 8, slu_header_stored(h));
    slu_put_le32(f + 12, flags_of(h));
    slu_put_le64(f + 16, h->vocab_size);
    slu_put_le64(f + 24, h->eos);
    slu_put_le64(f + 32, h->bos);
    slu_put_le64(f + 40, h->pad);
    memcpy(f + 48, h->fingerprint, 16);
    slu_put_le64(f + 64, h->n_bucket);
    slu_put_le64(f + 72, h->n_step);
    slu_put_le64(f + 80, h->meta.n);
    slu_buf_clear(out);
    int rc = slu_buf_append(out, f, sizeof f, err);
    for (unsigned i = 0; !rc && i < h->n_bucket; i++) {
        slu_put_le64(f, h->bucket[i]);
        rc = slu_buf_append(out, f, 8, err);
    }
    for (size_t i = 0; !rc && i < h->n_step; i++) {
        const struct slu_step *t = &h->step[i];
        const char *s[3] = {t->program, t->version, t->arguments};
        slu_put_le64(f, t->seed);
        for (int k = 0; k < 3; k++)
            slu_put_le32(f + 8 + 4 * k, (uint32_t)strlen(s[k]));
        slu_put_le32(f + 20, 0);
        rc = slu_buf_append(out, f, 24, err);
        for (int k = 0; !rc && k < 3; k++)
            rc = slu_buf_append(out, s[k], strlen(s[k]), err);
        if (!rc)
            rc = slu_buf_align(out, 8, err);
    }
    for (unsigned i = 0; !rc && i < h->meta.n; i++)
        rc = encode_meta(&h->meta.field[i], out, err);
    return rc;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static int decode_steps(struct slu_header *h, struct slu_cursor *c, uint64_t n_step,
                        struct slu_err *err)
{
    for (uint64_t i = 0; i < n_step; i++) {
        const uint8_t *f = slu_cursor_take(c, 24);
        const char *s[3];
        size_t n[3];
        for (int k = 0; k < 3; k++) {
            n[k] = f ? slu_le32(f + 8 + 4 * k) : 0;
            s[k] = f ? (const char *)slu_cursor_take(c, n[k]) : NULL;
            if (!s[k] || memchr(s[k], 0, n[k]))
                return slu_fail(
                    err, SLU_E_FORMAT,
                    "the header's provenance: step %llu is cut short, or has a "
                    "NUL in its text",
                    (unsigned long long)i);
        }
        size_t pad = (8 - c->at % 8) % 8;
        const uint8_t *z = slu_cursor_take(c, pad);
        if (!z || !all_zero(z, pad) || slu_le32(f + 20))
            return slu_fail(
                err, SLU_E_FORMAT,
                "the header's provenance: step %llu has padding that is not 0",
                (unsigned long long)i);
        int rc = add_step(h, s, n, slu_le64(f), err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

static int decode_meta(struct slu_header *h, struct slu_cursor *c, uint64_t n_field,
                       struct slu_err *err)
{
    for (uint64_t i = 0; i < n_field; i++) {
        const uint8_t *row = slu_cursor_take(c, META_ROW);
        const size_t n = row ? slu_le32(row + 4) : 0;
        const char *name = row ? (const char *)slu_cursor_take(c, n) : NULL;
        const size_t pad = (8 - c->at % 8) % 8;
        const uint8_t *z = name ? slu_cursor_take(c, pad) : NULL;
        if (row && row[1])
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the header: metadata field %llu belongs to tokens; this "
                            "version reads those of segments",
                            (unsigned long long)i);
        if (!z || !all_zero(z, pad) || !all_zero(row + 2, 2) || !row[0] ||
            row[0] >= SLU_META_N_TYPE)
            return slu_fail(err, SLU_E_FORMAT,
                            "the header: metadata field %llu is cut short, has the "
                            "type %u, which does not exist, or padding that is not 0",
                            (unsigned long long)i, row ? row[0] : 0);
        int rc = slu_meta_add(&h->meta, name, n, row[0], err);
        if (rc)
            return slu_err_at(err, "the header");
        if (h->meta.n != i + 1 || strncmp(h->meta.field[i].name, name, n))
            return slu_fail(err, SLU_E_FORMAT,
                            "the header: metadata field %llu is not behind the one "
                            "before in the order of names",
                            (unsigned long long)i);
    }
    return SLU_OK;
}

static int decode_fixed(struct slu_header *h, const uint8_t *f, struct slu_err *err)
{
    uint32_t flags = slu_le32(f + 12);
    h->tok_bytes = slu_le32(f + 8);
    h->label_tokens = flags & FLAG_LABELS;
    h->no_tokens = flags & FLAG_NO_TOKENS;
    h->masks = flags & FLAG_MASKS;
    h->inner_padding = flags & FLAG_INNER_PADDING;
    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        h->has[k] = flags & extra_flag[k];
    h->vocab_size = slu_le64(f + 16);
    h->eos = slu_le64(f + 24);
    h->bos = slu_le64(f + 32);
    h->pad = slu_le64(f + 40);
    memcpy(h->fingerprint, f + 48, 16);
    h->n_bucket = (unsigned)slu_le64(f + 64);
    if (slu_le32(f) != 1)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "token stream of version %u; this program reads version 1",
                        slu_le32(f));
    const uint64_t n_field = slu_le64(f + 80);
    if (flags != (flags_of(h) | (n_field ? FLAG_METADATA : 0)) ||
        slu_le32(f + 4) < minor_of(flags))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the header has flags that this version does not know");
    if (h->tok_bytes != (h->vocab_size <= 65536 ? 2u : 4u) ||
        h->vocab_size > UINT64_C(1) << 32 || !all_zero(f + 88, 40) ||
        n_field > SLU_META_FIELDS || slu_le64(f + 64) > SLU_MAX_BUCKETS ||
        slu_le64(f + 72) > MAX_STEPS)
        return slu_fail(err, SLU_E_FORMAT,
                        "the header: vocabulary of %llu ids of %u bytes, %llu buckets, "
                        "%llu steps, or reserved bytes that are not 0; not possible",
                        (unsigned long long)h->vocab_size, h->tok_bytes,
                        (unsigned long long)slu_le64(f + 64),
                        (unsigned long long)slu_le64(f + 72));
    if (h->masks && h->vocab_size > SLU_TRAINED)
        return slu_fail(err, SLU_E_FORMAT,
                        "the header: masks with a vocabulary of %llu ids; expected at "
                        "most 2^31",
                        (unsigned long long)h->vocab_size);
    h->tok_bytes = h->masks ? 4 : h->tok_bytes;
    const uint64_t id[3] = {h->eos, h->bos, h->pad};
    for (int i = 0; i < 3; i++)
        if (id[i] != SLU_NO_TOKEN && id[i] >= h->vocab_size)
            return slu_fail(
                err, SLU_E_FORMAT,
                "the header: %s id %llu is not below the vocabulary size %llu",
                i == 0   ? "EOS"
                : i == 1 ? "BOS"
                         : "padding",
                (unsigned long long)id[i], (unsigned long long)h->vocab_size);
    return SLU_OK;
}

int slu_header_decode(struct slu_header *h, const uint8_t *p, size_t n,
                      struct slu_err *err)
{
    struct slu_cursor c = {p, n, 0};
    slu_header_init(h);
    const uint8_t *f = slu_cursor_take(&c, FIXED);
    if (!f)
        return slu_fail(err, SLU_E_FORMAT,
                        "the header is shorter than its fixed fields");
    int rc = decode_fixed(h, f, err);
    const uint8_t *b = rc ? NULL : slu_cursor_take(&c, 8 * (uint64_t)h->n_bucket);
    for (unsigned i = 0; !rc && i < h->n_bucket; i++) {
        h->bucket[i] = b ? slu_le64(b + 8 * i) : 0;
        if (!b || h->bucket[i] <= (i ? h->bucket[i - 1] : 0) ||
            h->bucket[i] >= UINT64_MAX)
            rc = slu_fail(err, SLU_E_FORMAT,
                          "the header: bucket length %u is %llu; expected more than "
                          "the one before",
                          i, (unsigned long long)h->bucket[i]);
    }
    if (!rc)
        rc = decode_steps(h, &c, slu_le64(f + 72), err);
    if (!rc)
        rc = decode_meta(h, &c, slu_le64(f + 80), err);
    if (!rc && c.at != n)
        rc = slu_fail(err, SLU_E_FORMAT, "the header is longer than its fields");
    if (rc)
        slu_header_release(h);
    return rc;
}

int slu_header_compatible(const struct slu_header *a, const struct slu_header *b,
                          struct slu_err *err)
{
    if (memcmp(a->fingerprint, b->fingerprint, 16) != 0)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "made with another tokenizer than the streams before it "
            "(fingerprint %016llx, before %016llx); streams of different "
            "tokenizers cannot be joined",
            (unsigned long long)__builtin_bswap64(slu_le64(b->fingerprint)),
            (unsigned long long)__builtin_bswap64(slu_le64(a->fingerprint)));
    const struct {
        const char *what;
        uint64_t was, is;
    } id[] = {{"vocabulary size", a->vocab_size, b->vocab_size},
              {"EOS", a->eos, b->eos},
              {"BOS", a->bos, b->bos}};
    for (int i = 0; i < 3; i++)
        if (id[i].was != id[i].is)
            return slu_fail(err, SLU_E_MISMATCH,
                            "has another %s (%lld) than the streams before it (%lld), "
                            "of one tokenizer; such streams cannot be joined",
                            id[i].what, (long long)id[i].is, (long long)id[i].was);
    if (a->no_tokens != b->no_tokens)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "a stream with tokens and one of segment rows alone cannot be joined");
    for (unsigned k = 0; k < SLU_N_EXTRA; k++)
        if (a->has[k] != b->has[k])
            return slu_fail(err, SLU_E_MISMATCH,
                            "a stream with %s and one without cannot be joined; "
                            "tokenize all with %s, or none",
                            slu_extra_kind[k].plural, slu_extra_kind[k].plural);
    if (a->label_tokens != b->label_tokens || a->n_bucket != b->n_bucket ||
        memcmp(a->bucket, b->bucket, a->n_bucket * sizeof *a->bucket))
        return slu_fail(err, SLU_E_MISMATCH,
                        "decomposed with other bucket lengths or label tokens than the "
                        "streams before it; decompose them alike");
    return SLU_OK;
}

/* Whether padding can be told by its id. */
static bool pad_tells(const struct slu_header *h)
{
    return h->pad != SLU_NO_TOKEN && h->pad != h->eos && h->pad != h->bos;
}

void slu_header_join(struct slu_header *a, const struct slu_header *b)
{
    const bool several = a->pad != b->pad && ((a->inner_padding && !pad_tells(a)) ||
                                              (b->inner_padding && !pad_tells(b)));

    a->masks |= b->masks;
    a->tok_bytes = a->masks ? sizeof(uint32_t) : a->tok_bytes;
    a->inner_padding |= b->inner_padding;
    a->pads |= b->pads || (pad_tells(a) && pad_tells(b) && a->pad != b->pad);
    if (!pad_tells(a) && (pad_tells(b) || a->pad == SLU_NO_TOKEN))
        a->pad = b->pad;
    if (several || (a->pads && a->inner_padding))
        a->pad = SLU_NO_TOKEN;
}
