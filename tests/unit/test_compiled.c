/* test_compiled.c - compiled vocabularies: a vocabulary read back equals the one that
 * was built, and damage to a file or a folder gives at most a note. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/token/bpe.h"
#include "lib/token/compiled.h"
#include "lib/token/tokenizer.h"

static uint64_t draws;

static unsigned below(unsigned n)
{
    return (unsigned)slu_draw_below(slu_draw(9, 2, 3, 4, draws++), n);
}

/* Everything that a tokenizer.json can have that must come back. */
static const char MODEL[] =
    "\"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {%s"
    "\"th\": 256, \"the\": 257, \"\\u0120the\": 258, \"ab\": 259},"
    "\"merges\": [\"t h\", \"th e\", \"\\u0120 the\"]},"
    "\"added_tokens\": ["
    "{\"id\": 260, \"content\": \"<|endoftext|>\", \"special\": true},"
    "{\"id\": 261, \"content\": \"<m>\", \"lstrip\": true, \"single_word\": true},"
    "{\"id\": 262, \"content\": \"caf\\u00e9\", \"normalized\": true, \"rstrip\": "
    "true},"
    "{\"id\": 263, \"content\": \"<pad>\", \"special\": true, \"normalized\": true}]";
static const char *const PARTS[] = {
    "{%s, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}}",
    "{%s, \"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": {\"type\": "
    "\"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
    "\"[aeiou]+[0-9]?|[^aeiou]\"}, \"behavior\": \"Isolated\"}, {\"type\": \"Digits\","
    " \"individual_digits\": true}, {\"type\": \"ByteLevel\", \"add_prefix_space\": "
    "false, \"use_regex\": false}]}}",
};
#define N_CASE (1 + sizeof PARTS / sizeof *PARTS)

static char dir[] = "/tmp/test_compiled.XXXXXX";
static char json_path[sizeof dir + 32];

/* The 256 bytes in GPT-2's alphabet, as members of a JSON object. */
static size_t put_alphabet(char *out)
{
    size_t n = 0;
    unsigned next = 0x100;

    for (unsigned b = 0; b < 256; b++) {
        bool self = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        n += (size_t)sprintf(out + n, "\"\\u%04x\": %u,", self ? b : next, b);
        next += !self;
    }
    return n;
}

/* The spec of case k: the builtin, or a file that is written. */
static const char *make_case(size_t k)
{
    char *alphabet = calloc(1, 1 << 14), *model = calloc(1, 1 << 15);
    FILE *f = k ? fopen(json_path, "w") : NULL;

    put_alphabet(alphabet);
    snprintf(model, 1 << 15, MODEL, alphabet);
    if (f) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        fprintf(f, PARTS[k - 1], model);
#pragma GCC diagnostic pop
        fclose(f);
    }
    free(alphabet);
    free(model);
    return k ? json_path : "builtin";
}

static struct slu_tokenizer *load(const char *spec, const char *cache)
{
    struct slu_tokenizer_cfg cfg = {
        .spec = spec, .cache_dir = cache, .special_parse = true};
    struct slu_tokenizer *t = NULL;
    struct slu_err err = SLU_ERR_INIT;

    if (slu_tokenizer_load(&t, &cfg, &err) < 0)
        fail_msg("%s: %s", spec, err.msg);
    return t;
}

static const char *const WORDS[] = {
    "the",   " the", "The",           "ab",   "a7",         " ",
    "\n",    "12",   "<m>",           "café", "cafe\u0301", "<|endoftext|>",
    "<pad>", "日本", "e\u0301\u0301", "."};

static void same_ids(const struct slu_tokenizer *a, const struct slu_tokenizer *b)
{
    struct slu_encoder *x, *y;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids i = {0}, j = {0};

    assert_int_equal(slu_encoder_new(&x, a, 2 << 20, &err), SLU_OK);
    assert_int_equal(slu_encoder_new(&y, b, 2 << 20, &err), SLU_OK);
    for (unsigned round = 0; round < 500; round++) {
        char text[512] = "";
        for (unsigned n = below(20); n; n--)
            strcat(text, WORDS[below(sizeof WORDS / sizeof *WORDS)]);
        i.n = j.n = 0;
        assert_int_equal(slu_encode(x, text, strlen(text), &i, &err), SLU_OK);
        assert_int_equal(slu_encode(y, text, strlen(text), &j, &err), SLU_OK);
        assert_int_equal(i.n, j.n);
        if (i.n)
            assert_memory_equal(i.id, j.id, i.n * sizeof *i.id);
    }
    slu_ids_release(&i);
    slu_ids_release(&j);
    slu_encoder_free(x);
    slu_encoder_free(y);
}

static void same_tokenizer(const struct slu_tokenizer *a, const struct slu_tokenizer *b)
{
    const struct slu_vocab_table *v = slu_tokenizer_vocab(a),
                                 *w = slu_tokenizer_vocab(b);

    assert_int_equal(v->n, w->n);
    assert_memory_equal(v->off, w->off, (v->n + 1) * sizeof *v->off);
    assert_memory_equal(v->bytes, w->bytes, v->off[v->n]);
    assert_memory_equal(v->flags, w->flags, v->n);
    assert_memory_equal(slu_tokenizer_fingerprint(a), slu_tokenizer_fingerprint(b), 16);
    assert_int_equal(slu_tokenizer_eos(a), slu_tokenizer_eos(b));
    assert_int_equal(slu_tokenizer_bos(a), slu_tokenizer_bos(b));
    assert_int_equal(slu_tokenizer_pad(a), slu_tokenizer_pad(b));
    same_ids(a, b);
}

static const struct slu_u128 KEY = {1, 2};

/* t compiled, at a multiple of 64 bytes; n bytes. */
static uint8_t *compile(const struct slu_tokenizer *t, size_t *n)
{
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;

    if (compiled_encode(t, KEY, &b, &err) < 0)
        fail_msg("%s", err.msg);
    uint8_t *p = bpe_image_alloc(b.len);
    memcpy(p, b.data, b.len);
    *n = b.len;
    slu_buf_release(&b);
    return p;
}

static int decode(struct slu_tokenizer **t, const void *p, size_t n,
                  struct slu_u128 key)
{
    struct slu_err err = SLU_ERR_INIT;

    *t = calloc(1, sizeof **t);
    int rc = compiled_decode(*t, p, n, key, &err);
    if (rc == SLU_OK)
        rc = tok_find_ids(*t, NULL, &err);
    (*t)->special_parse = true;
    /* slu_tokenizer_free frees `compiled`, and arrays where there is none. */
    (*t)->compiled.p = malloc(1);
    return rc;
}

static void what_is_read_is_what_was_built(void **state)
{
    (void)state;
    char cache[sizeof dir + 32];

    snprintf(cache, sizeof cache, "%s/one/two", dir);
    for (size_t k = 0; k < N_CASE; k++) {
        const char *spec = make_case(k);
        struct slu_tokenizer *built = load(spec, NULL), *made = load(spec, cache),
                             *read = load(spec, cache);
        assert_false(slu_tokenizer_was_compiled(made));
        assert_true(slu_tokenizer_was_compiled(read));
        assert_string_equal(slu_tokenizer_note(made), "");
        assert_string_equal(slu_tokenizer_note(read), "");
        same_tokenizer(built, read);
        same_tokenizer(built, made);
        slu_tokenizer_free(built);
        slu_tokenizer_free(made);
        slu_tokenizer_free(read);
    }
}

/* The frame of the vocabulary is part of the stream: its bytes must not depend on
 * whether it was at hand. */
static void the_frame_is_the_same(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    char out[2][sizeof dir + 32];
    struct slu_buf file[2] = {SLU_BUF_INIT, SLU_BUF_INIT};

    for (int k = 0; k < 2; k++) {
        struct slu_tokenizer *t = load("builtin", NULL), *read = NULL;
        size_t n;
        uint8_t *p = compile(t, &n);
        assert_int_equal(decode(&read, p, n, KEY), SLU_OK);
        const struct slu_vocab_table *v = slu_tokenizer_vocab(k ? read : t);
        assert_int_equal(v->packed != NULL, k);
        struct slu_names *names;
        struct slu_header h;
        struct slu_writer *w;
        struct slu_out *o;
        assert_int_equal(slu_names_new(&names, &err), SLU_OK);
        slu_names_lend_vocab(names, v);
        slu_header_init(&h);
        h.vocab_size = v->n;
        h.tok_bytes = 2;
        h.eos = h.bos = h.pad = SLU_NO_TOKEN;
        snprintf(out[k], sizeof out[k], "%s/frame%d", dir, k);
        assert_int_equal(slu_out_open(&o, out[k], &err), SLU_OK);
        struct slu_writer_cfg cfg = {.names = names};
        assert_int_equal(slu_writer_open(&w, o, &h, &cfg, &err), SLU_OK);
        assert_int_equal(slu_writer_close(w, &err), SLU_OK);
        slu_header_release(&h);
        slu_names_free(names);
        slu_tokenizer_free(read);
        slu_tokenizer_free(t);
        free(p);
        assert_int_equal(slu_read_whole(&file[k], out[k], 1 << 24, &err), SLU_OK);
    }
    assert_int_equal(file[0].len, file[1].len);
    assert_memory_equal(file[0].data, file[1].data, file[0].len);
    slu_buf_release(&file[0]);
    slu_buf_release(&file[1]);
}

/* A bit anywhere, and any length but the right one. */
static void damage_is_seen(void **state)
{
    (void)state;
    struct slu_tokenizer *t = load(make_case(2), NULL), *bad;
    size_t n;
    uint8_t *p = compile(t, &n);

    for (unsigned round = 0; round < 3000; round++) {
        /* Half of them in the header and the table of sections. */
        size_t at = below(2) ? below(256) : below((unsigned)n);
        uint8_t bit = (uint8_t)(1 << below(8));
        p[at] ^= bit;
        assert_true(decode(&bad, p, n, KEY) < 0);
        slu_tokenizer_free(bad);
        p[at] ^= bit;
    }
    for (size_t cut = 0; cut < n; cut += cut < 300 ? 1 : n / 50) {
        uint8_t *q = bpe_image_alloc(cut + 1);
        memcpy(q, p, cut);
        assert_true(decode(&bad, q, cut, KEY) < 0);
        slu_tokenizer_free(bad);
        free(q);
    }
    assert_int_equal(decode(&bad, p, n, (struct slu_u128){1, 3}), SLU_E_MISMATCH);
    slu_tokenizer_free(bad);
    assert_int_equal(decode(&bad, p, n, KEY), SLU_OK);
    same_tokenizer(t, bad);
    slu_tokenizer_free(bad);
    slu_tokenizer_free(t);
    free(p);
}

/* Damage that has the right checksum: nothing is read outside of the file while it is
 * attached, and what is attached has a sound vocabulary. (The model's tables are only
 * checked for their sizes.) */
static void sizes_are_checked_too(void **state)
{
    (void)state;
    struct slu_tokenizer *t = load(make_case(1), NULL), *bad;
    size_t n, attached = 0;
    uint8_t *p = compile(t, &n), *q = bpe_image_alloc(n);

    for (unsigned round = 0; round < 6000; round++) {
        memcpy(q, p, n);
        for (unsigned k = 1 + below(3); k; k--) {
            /* The table of sections, what lies first in them, or the last of them. */
            size_t at = below(3) == 0   ? COMPILED_HEAD + below(160)
                        : below(2) == 0 ? COMPILED_HEAD + below(4096)
                                        : n - 1 - below(512);
            q[at] = below(2) ? (uint8_t)below(256) : q[at] ^ (uint8_t)(1 << below(8));
        }
        struct slu_u128 sum = slu_hash128(q + COMPILED_HEAD, n - COMPILED_HEAD);
        memcpy(q + COMPILED_HEAD - sizeof sum, &sum, sizeof sum);
        if (decode(&bad, q, n, KEY) == SLU_OK) {
            const struct slu_vocab_table *v = slu_tokenizer_vocab(bad);
            attached++;
            for (uint64_t i = 0; i < v->n; i++)
                assert_true(v->off[i] <= v->off[i + 1]);
            assert_true(v->bytes + v->off[v->n] <= q + n);
            assert_true(v->packed + v->packed_byte <= q + n);
        }
        slu_tokenizer_free(bad);
    }
    assert_in_range(attached, 100, 5900); /* both happen */
    slu_tokenizer_free(t);
    free(p);
    free(q);
}

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(json_path, sizeof json_path, "%s/tokenizer.json", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[sizeof dir + 16];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_built),
        cmocka_unit_test(the_frame_is_the_same),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(sizes_are_checked_too),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
