/* test_shingle.c - n-grams compared with a plain version that decodes all text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/shingle.h"

/* ---- a vocabulary ---- */

static const char *const TOKENS[] = {
    "A",
    "z",
    "Z",
    "@[`{",
    "Z z\ra\vB\fb\nA\tz",
    "\r",
    "\v",
    "\f",
    "a",
    "b",
    "B",
    " the",
    " The",
    "THE",
    " ",
    "\n",
    "\t\n ",
    "ing ",
    " x ",
    "a b",
    "  c d  e ",
    "\xC3",
    "\x89",
    "\xC3\x89",
    "\xC3\xA9",
    "e\xCC\x81",
    "\xE4\xB8",
    "\xAD",
    "\xE4\xB8\xAD\xE6\x96\x87",
    "\xE3\x80\x80",
    "\xE3\x80",
    "\x80",
    "\xC2\xA0",
    "\xC2\x85",
    "\xE2\x80",
    "\xA8",
    "\xFF",
    "\xC0\x80",
    "\xED\xA0\x80",
    "\xF0\x9F",
    "\x98\x80",
    "\xF0\x90\x90\x80",
    "\xF4\x90\x80\x80",
    "\xC4\xB0",
    "\xCE\xA3",
    "\xE1\xBA\x9E",
    "\xC3 ",
    " \xC3",
    "\xE1\x9A\x80x",
    "\xE2\x80\x8B",
    "\x1C",
    /* Words of one grapheme, and what is beside them. */
    "\xE3\x81\x8B\xE3\x82\x99",
    "\xE3\x82\xAB",
    "\xE3\x82\x9A",
    "\xE3\x83\xBC",
    "\xE0\xB8\x81",
    "\xE0\xB8\xB3",
    "\xE0\xB8\xB1",
    "\xE0\xB9\x84\xE0\xB8\x97\xE0\xB8\xA2\x20",
    "\xE3\x80\x82",
    "\xE3\x80\x8D\xE3\x80\x82",
    "\x20\xE3\x80\x8C",
    "\x21",
    "\xE0\xBB\x80",
    "\xE1\x9E\x81\xE1\x9F\x92",
    "\xE1\x9E\x98\xE1\x9F\x82\xE1\x9E\x9A",
    "\xE1\x80\x99\xE1\x80\xBC\xE1\x80\x94\xE1\x80\xBA",
    "\xE1\x80\xB9",
    "\xE1\x80\xB9\xE1\x80\x99",
    "\xE1\x9E\x81",
    "\xE1\x9F\x92",
    "\xE2\x80\x8C",
    "\xE0\xBD\x96\xE0\xBD\xBC\xE0\xBD\x91\xE0\xBC\x8B",
    "\xF0\x9F\x91\xA9\xE2\x80\x8D",
    "\xE2\x80\x8D",
    "\xEF\xB8\x8F",
    "\xE2\x9D\xA4\xEF\xB8\x8F",
    "\xE6\xBC\xA2\xF3\xA0\x84\x80",
    "\xE1\x84\x92\xE1\x85\xA1",
    "\xE1\x86\xAB",
    "\xED\x95\x9C\xEA\xB5\xAD",
    "\xE0\xA4\x95",
    "\xE0\xA4\xBF",
    "\xE0\xA5\x8D",
    "\xD8\x80",
    "\xD8\x80\xE4\xB8\xAD",
    "\xE2\x80\x8B",
    "\xF0\x9F\x89\x91",
    "\xF0\xA0\x80\x80",
    "\xF0\xA0\x80\x80\x7A",
    "\xE4\xB8\xAD\x61",
    "\x61\xE4\xB8\xAD",
    "\xEF\xBC\x91",
    "",
    "<special>",
    "antidisestablishmentarianism",
};
enum { N_ID = sizeof TOKENS / sizeof *TOKENS, SPECIAL = N_ID - 2, EMPTY = N_ID - 3 };

static uint8_t bytes[1 << 12], flags[N_ID];
static uint64_t off[N_ID + 1];
static struct slu_vocab_table vocab = {
    .n = N_ID, .off = off, .bytes = bytes, .flags = flags};
static struct slu_err err;

static void make_vocab(void)
{
    for (size_t i = 0; i < N_ID; i++) {
        size_t n = strlen(TOKENS[i]);
        memcpy(bytes + off[i], TOKENS[i], n);
        off[i + 1] = off[i] + n;
        flags[i] = i == SPECIAL ? SLU_VOCAB_SPECIAL : i == EMPTY ? SLU_VOCAB_HOLE : 0;
    }
}

static uint64_t state_of_draws = 1;
static uint32_t draw(uint32_t n)
{
    state_of_draws =
        state_of_draws * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((state_of_draws >> 33) % n);
}

static struct slu_shingler *make(enum slu_unit unit, unsigned n, unsigned tok_bytes,
                                 bool with_vocab)
{
    struct slu_shingler_cfg cfg = {.unit = unit,
                                   .n = n,
                                   .vocab = with_vocab ? &vocab : NULL,
                                   .tok_bytes = tok_bytes,
                                   .eos = SLU_NO_TOKEN,
                                   .bos = SLU_NO_TOKEN,
                                   .pad = 1000};
    struct slu_shingler *s;
    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_OK);
    return s;
}

/* ---- the plain version: the words of a text, one after another, each followed by a
 * zero byte, which no token of the vocabulary has ---- */

struct text {
    uint8_t b[1 << 14];
    size_t n;
};

static bool is_white(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* Bytes of the character at p, by the definition of UTF-8; 0: there is none. */
static size_t char_at(const uint8_t *p, size_t n, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xC0 ? 0
                 : p[0] < 0xE0 ? 2
                 : p[0] < 0xF0 ? 3
                 : p[0] < 0xF8 ? 4
                               : 0;
    if (!len || len > n)
        return 0;
    *c = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        *c = *c << 6 | (p[i] & 0x3F);
    }
    return *c < least[len] || *c > 0x10FFFF || (*c >= 0xD800 && *c < 0xE000) ? 0 : len;
}

/* The roles of the characters of TOKENS, by UAX #29 and by their scripts. */
enum { RUN, TAIL, SIGN, CONSONANT, PREPENDS, MARK, JOINS, EXTENDS, LINKS };
static int role_of(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        int role;
    } ROLE[] = {{'!', '!', MARK},           {'@', '@', MARK},
                {'[', '[', MARK},           {'{', '{', MARK},
                {0x300, 0x36F, EXTENDS},    {0x600, 0x600, PREPENDS},
                {0x915, 0x915, TAIL},       {0x93F, 0x93F, JOINS},
                {0x94D, 0x94D, LINKS},      {0xE31, 0xE31, EXTENDS},
                {0xE33, 0xE33, JOINS},      {0xE01, 0xE46, SIGN},
                {0xEC0, 0xEC0, SIGN},       {0xF7C, 0xF7C, EXTENDS},
                {0xF0B, 0xF56, SIGN},       {0x1000, 0x1027, CONSONANT},
                {0x1039, 0x1039, LINKS},    {0x103A, 0x103A, EXTENDS},
                {0x103C, 0x103C, JOINS},    {0x1780, 0x17A2, CONSONANT},
                {0x17C2, 0x17C2, JOINS},    {0x17D2, 0x17D2, LINKS},
                {0x200C, 0x200C, JOINS},    {0x200D, 0x200D, EXTENDS},
                {0x2010, 0x2027, MARK},     {0x3001, 0x3018, MARK},
                {0x3021, 0x3029, SIGN},     {0x302A, 0x302F, EXTENDS},
                {0x304B, 0x304B, SIGN},     {0x3099, 0x309A, EXTENDS},
                {0x30AB, 0x30FC, SIGN},     {0x4E00, 0x9FFF, SIGN},
                {0xFE0F, 0xFE0F, EXTENDS},  {0x20000, 0x20000, SIGN},
                {0xE0100, 0xE0100, EXTENDS}};
    for (size_t i = 0; i < sizeof ROLE / sizeof *ROLE; i++)
        if (c >= ROLE[i].first && c <= ROLE[i].last)
            return ROLE[i].role;
    return RUN;
}

/* Where words are cut: characters are put into clusters, clusters are of one kind or the
 * other, and a word ends beside each that is a word itself. */
struct cutter {
    bool chars, any; /* any: there is a character before, and no white space */
    int last;        /* its role */
    bool sign;       /* its cluster is a word */
    bool links;      /* and has a consonant behind, if one comes (GB9c) */
};

/* Whether c, not white space, begins a word behind another. */
static bool cuts_before(struct cutter *k, int role)
{
    bool same = k->any && (role >= JOINS || k->last == PREPENDS ||
                           (k->links && (role == CONSONANT || role == TAIL)));
    bool sign =
        role == SIGN || role == CONSONANT || (role == MARK && k->any && k->sign);
    bool cut = k->any && (k->chars || (!same && (sign || k->sign)));

    k->sign = same ? k->sign : sign;
    if (role != EXTENDS)
        k->links = k->sign && role == LINKS;
    k->any = true;
    k->last = role;
    return cut;
}

static void plain_words(const struct text *t, struct text *w, bool chars)
{
    struct cutter cutter = {.chars = chars};
    static const struct {
        uint32_t c;
        const char *lower;
    } LOWER[] = {{0xC9, "\xC3\xA9"},
                 {0x130, "i\xCC\x87"},
                 {0x3A3, "\xCF\x83"},
                 {0x1E9E, "\xC3\x9F"},
                 {0x10400, "\xF0\x90\x90\xA8"}};
    w->n = 0;
    for (size_t i = 0, len; i < t->n; i += len) {
        uint32_t c = 0;
        len = char_at(t->b + i, t->n - i, &c);
        if (len && is_white(c)) {
            if (w->n && w->b[w->n - 1])
                w->b[w->n++] = 0;
            cutter = (struct cutter){.chars = chars};
            continue;
        }
        if (cuts_before(&cutter, len ? role_of(c) : RUN))
            w->b[w->n++] = 0;
        const char *lower = NULL;
        for (size_t k = 0; len && k < sizeof LOWER / sizeof *LOWER; k++)
            lower = LOWER[k].c == c ? LOWER[k].lower : lower;
        if (lower) {
            memcpy(w->b + w->n, lower, strlen(lower));
            w->n += strlen(lower);
            continue;
        }
        len = len ? len : 1;
        for (size_t k = 0; k < len; k++)
            w->b[w->n++] =
                (uint8_t)(t->b[i + k] +
                          (t->b[i + k] >= 'A' && t->b[i + k] <= 'Z' ? 32 : 0));
    }
    if (w->n && w->b[w->n - 1])
        w->b[w->n++] = 0;
}

/* N-grams of all sequences, and the hashes they got. */
struct gram {
    char *words; /* hexadecimal */
    uint64_t hash;
};
static struct gram *gram;
static size_t n_gram, cap_gram;

static void note(const uint8_t *p, size_t n, uint64_t hash)
{
    assert_int_equal(slu_grow(&gram, &cap_gram, n_gram + 1, sizeof *gram, &err), 0);
    char *s = malloc(2 * n + 1);
    for (size_t i = 0; i < n; i++)
        snprintf(s + 2 * i, 3, "%02x", p[i]);
    gram[n_gram++] = (struct gram){s, hash};
}

static int by_words(const void *a, const void *b)
{
    return strcmp(((const struct gram *)a)->words, ((const struct gram *)b)->words);
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = ((const struct gram *)a)->hash, y = ((const struct gram *)b)->hash;
    return x < y ? -1 : x > y;
}

/* Equal n-grams have equal hashes and no others do. Forgets them. */
static void check_grams(void)
{
    qsort(gram, n_gram, sizeof *gram, by_words);
    for (size_t i = 1; i < n_gram; i++)
        assert_true(strcmp(gram[i].words, gram[i - 1].words) ||
                    gram[i].hash == gram[i - 1].hash);
    qsort(gram, n_gram, sizeof *gram, by_hash);
    for (size_t i = 1; i < n_gram; i++)
        assert_true(gram[i].hash != gram[i - 1].hash ||
                    !strcmp(gram[i].words, gram[i - 1].words));
    for (size_t i = 0; i < n_gram; i++)
        free(gram[i].words);
    n_gram = 0;
}

/* Checks one sequence's number of n-grams and notes them. */
static void check_words(const struct slu_shingler *s, enum slu_unit unit, unsigned n,
                        const uint32_t *id, size_t n_id, unsigned tok_bytes)
{
    static struct text t, w;
    static uint16_t narrow[4096];
    struct slu_hashes h = {0};
    static size_t start[1 << 14];
    size_t n_word = 0;

    t.n = 0;
    for (size_t i = 0; i < n_id; i++) {
        narrow[i] = (uint16_t)id[i];
        if (id[i] == 1000 || id[i] == SPECIAL)
            continue;
        memcpy(t.b + t.n, bytes + off[id[i]], off[id[i] + 1] - off[id[i]]);
        t.n += off[id[i] + 1] - off[id[i]];
    }
    plain_words(&t, &w, unit == SLU_UNIT_CHAR);
    for (size_t i = 0; i < w.n; i++) {
        if (!i || !w.b[i - 1])
            start[n_word++] = i;
    }
    start[n_word] = w.n;
    assert_int_equal(
        slu_shingle(s, tok_bytes == 2 ? (const void *)narrow : id, n_id, &h, &err),
        SLU_OK);
    assert_int_equal(h.n, !n_word ? 0 : n_word < n ? 1 : n_word - n + 1);
    for (size_t i = 0; i < h.n; i++) {
        size_t end = start[n_word < n ? n_word : i + n];
        note(w.b + start[i], end - start[i], h.hash[i]);
    }
    slu_hashes_release(&h);
}

static void words_of(enum slu_unit unit)
{
    static uint32_t id[4096];

    for (unsigned n = 1; n <= 13; n += n < 3 ? 1 : 5) {
        struct slu_shingler *s = make(unit, n, 2, true), *wide = make(unit, n, 4, true);
        check_words(s, unit, n, NULL, 0, 2);
        for (int round = 0; round < 20000; round++) {
            /* Now and then of few tokens, so that n-grams come again. */
            uint32_t few = round % 3 ? N_ID : 6, from = draw(N_ID - few + 1);
            size_t n_id = draw(round % 100 ? 12 : 400);
            for (size_t i = 0; i < n_id; i++)
                id[i] = draw(30) ? from + draw(few) : 1000;
            check_words(round % 2 ? s : wide, unit, n, id, n_id, round % 2 ? 2 : 4);
            if (n_gram > 200000)
                check_grams();
        }
        check_grams();
        slu_shingler_free(s);
        slu_shingler_free(wide);
    }
}

static void words(void **state)
{
    (void)state;
    words_of(SLU_UNIT_WORD);
}

static void chars(void **state)
{
    (void)state;
    words_of(SLU_UNIT_CHAR);
}

/* Every way of cutting a text into tokens of one or more bytes. */
static void cuts_of(const char *text, size_t n_word)
{
    enum { LEN = 17 };
    static uint64_t at[LEN * (LEN + 1) / 2 + 1];
    static uint8_t all[LEN * LEN * LEN], none[LEN * LEN];
    struct slu_vocab_table v = {.off = at, .bytes = all, .flags = none};
    uint32_t name[LEN][LEN + 1], id[LEN];
    struct slu_hashes want = {0}, h = {0};
    struct slu_shingler *s;

    assert_int_equal(strlen(text), LEN);
    v.n = at[0] = 0;
    for (size_t i = 0; i < LEN; i++) {
        for (size_t end = i + 1; end <= LEN; end++) {
            name[i][end] = (uint32_t)v.n;
            memcpy(all + at[v.n], text + i, end - i);
            at[v.n + 1] = at[v.n] + end - i;
            v.n++;
        }
    }
    struct slu_shingler_cfg cfg = {.unit = SLU_UNIT_WORD,
                                   .n = 2,
                                   .vocab = &v,
                                   .tok_bytes = 4,
                                   .eos = SLU_NO_TOKEN,
                                   .bos = SLU_NO_TOKEN,
                                   .pad = SLU_NO_TOKEN};
    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_OK);
    assert_int_equal(slu_shingle(s, &name[0][LEN], 1, &want, &err), SLU_OK);
    assert_int_equal(want.n, n_word - 1);
    for (uint32_t cut = 0; cut < UINT32_C(1) << (LEN - 1); cut++) {
        size_t n = 0, from = 0;
        for (size_t i = 1; i <= LEN; i++) {
            if (i == LEN || cut >> (i - 1) & 1) {
                id[n++] = name[from][i];
                from = i;
            }
        }
        assert_int_equal(slu_shingle(s, id, n, &h, &err), SLU_OK);
        assert_int_equal(h.n, want.n);
        assert_memory_equal(h.hash, want.hash, h.n * sizeof *h.hash);
    }
    slu_hashes_release(&h);
    slu_hashes_release(&want);
    slu_shingler_free(s);
}

static void cuts(void **state)
{
    (void)state;
    cuts_of("\xC3\x89\xE4\xB8\xAD A\xC2\x85z\xFF \xF0\x90\x90\x80 ", 5);
    /* か with a mark, a full stop, a Thai grapheme, 中, z. */
    cuts_of("\xE3\x81\x8B\xE3\x82\x99.\xE0\xB8\x81\xE0\xB8\xB3 \xE4\xB8\xAD", 4);
}

/* Words of one character can be many more than tokens. */
static void many(void **state)
{
    static const char text[] = "\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD";
    uint64_t at[] = {0, sizeof text - 1};
    uint8_t none = 0;
    struct slu_vocab_table v = {
        .n = 1, .off = at, .bytes = (const uint8_t *)text, .flags = &none};
    struct slu_shingler_cfg cfg = {.unit = SLU_UNIT_WORD,
                                   .n = 1,
                                   .max_word = 8,
                                   .vocab = &v,
                                   .tok_bytes = 2,
                                   .eos = SLU_NO_TOKEN,
                                   .bos = SLU_NO_TOKEN,
                                   .pad = SLU_NO_TOKEN};
    struct slu_hashes h = {0};
    struct slu_shingler *s;
    const uint16_t id[4] = {0};
    (void)state;

    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_OK);
    assert_int_equal(slu_shingle(s, id, 2, &h, &err), SLU_OK);
    assert_int_equal(h.n, 8);
    assert_int_equal(h.n_sign, 8);
    assert_int_equal(slu_shingle(s, id, 4, &h, &err), SLU_E_LIMIT);
    assert_int_equal(h.n, 0);
    slu_shingler_free(s);
    slu_hashes_release(&h);
}

static void ids(void **state)
{
    static const uint16_t id[] = {5, 6, SPECIAL, 7, 1000, 5, 6, 7, 6, 5};
    static const uint32_t wide[] = {70000, 5, 6, 1000, 7};
    struct slu_hashes h = {0};
    struct slu_shingler *s = make(SLU_UNIT_TOKEN, 3, 2, true);
    (void)state;

    assert_int_equal(slu_shingle(s, id, 10, &h, &err), SLU_OK);
    assert_int_equal(h.n, 6); /* 567 675 756 567 676 765 */
    assert_true(h.hash[0] == h.hash[3]);
    uint64_t first = h.hash[0];
    assert_int_equal(slu_hashes_to_set(&h, &err), SLU_OK);
    assert_int_equal(h.n, 5);
    assert_int_equal(slu_shingle(s, id, 2, &h, &err), SLU_OK);
    assert_int_equal(h.n, 1);
    assert_true(h.hash[0] != first);
    assert_int_equal(slu_shingle(s, id + 2, 1, &h, &err), SLU_OK);
    assert_int_equal(h.n, 0);
    static const uint16_t bad[] = {1, N_ID};
    assert_int_equal(slu_shingle(s, bad, 2, &h, &err), SLU_E_FORMAT);
    slu_shingler_free(s);
    s = make(SLU_UNIT_TOKEN, 3, 4, false);
    assert_int_equal(slu_shingle(s, wide, 5, &h, &err), SLU_OK);
    assert_int_equal(h.n, 2);
    assert_true(h.hash[1] == first);
    slu_shingler_free(s);
    s = make(SLU_UNIT_WORD, 3, 2, true);
    assert_int_equal(slu_shingle(s, bad, 2, &h, &err), SLU_E_FORMAT);
    assert_int_equal(h.n, 0);
    slu_shingler_free(s);
    slu_hashes_release(&h);
}

static void usage(void **state)
{
    struct slu_shingler_cfg cfg = {.unit = SLU_UNIT_WORD, .n = 5, .tok_bytes = 2};
    struct slu_shingler *s;
    (void)state;

    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_E_MISMATCH);
    cfg.vocab = &vocab;
    cfg.n = 0;
    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_E_USAGE);
    cfg.n = SLU_SHINGLE_MAX_N + 1;
    assert_int_equal(slu_shingler_new(&s, &cfg, &err), SLU_E_USAGE);
    assert_null(s);
    slu_shingler_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words), cmocka_unit_test(chars), cmocka_unit_test(cuts),
        cmocka_unit_test(many),  cmocka_unit_test(ids),   cmocka_unit_test(usage),
    };
    make_vocab();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
