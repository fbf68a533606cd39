/* test_pretokens.c - the finders of every SIMD level compared with the scanners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/token/pretokens.h"

static const char *const LEVELS[] = {"portable", "avx2", "avx512", "neon"};
static const char *const SPLITS[] = {"gpt2",  "digits-gpt2", "cl100k", "llama3",
                                     "qwen2", "qwen35",      "o200k",  "tekken",
                                     "kimi",  "deepseek3"};
#define N_LEVEL (sizeof LEVELS / sizeof *LEVELS)
#define N_SPLIT (sizeof SPLITS / sizeof *SPLITS)

/* Characters that the splits tell apart. */
static const char *const CHARS[] = {
    "a",
    "b",
    "s",
    "t",
    "r",
    "e",
    "l",
    "A",
    "B",
    "S",
    "L",
    "1",
    "2",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    "\r",
    "!",
    "'",
    "'",
    "/",
    "-",
    "\v",
    "\xC3\xA9",
    "\xC3\x89",
    "\xC2\xA0",
    "\xC2\xBD",
    "\xC5\xBF",
    "\xCC\x81",
    "\xD0\x9F",
    "\xD1\x80",
    "\xC7\x85",
    "\xE4\xB8\xAD",
    "\xE2\x80\x9C",
    "\xE3\x80\x80",
    "\xE0\xA4\x95",
    "\xE0\xA5\x8D",
    "\xE2\x80\x8D",
    "\xEA\xB0\x80",
    "\xF0\x9F\x98\x80",
    "\xF0\x9D\x90\x80",
    "\xF0\x9D\x90\x9A",
    "\xC2\x85",
    "\x01",
    "\x7F",
    "\xE3\x80\x87",
    "\xE3\x82\xAB",
    "\xE2\xBA\x80",
    "\xEF\xA4\x80",
    "\xC2\xAD",
    "\xCA\xB0",
};
#define N_CHAR (sizeof CHARS / sizeof *CHARS)

static uint64_t state = 1;
static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((state >> 33) % n);
}

/* In a block of its own size, so that a sanitizer sees every byte read behind it. */
static void compare(const char *level, const char *split, pre_scan_fn *scan,
                    pretokens_fn *find, const uint8_t *text, size_t n)
{
    enum { MAX = 16 };
    uint32_t end[MAX + PRETOKENS_SLACK];
    uint8_t *p = malloc(n);
    size_t pos = 0;

    assert_non_null(p);
    memcpy(p, text, n);
    while (pos < n) {
        size_t k = find(p + pos, n - pos, end, MAX, scan), from = pos;
        assert_in_range(k, 1, MAX + PRETOKENS_SLACK);
        for (size_t i = 0; i < k; i++) {
            size_t want = scan(p, n, pos);
            if (from + end[i] != want) {
                fprintf(stderr,
                        "%s %s: pretoken at %zu ends at %zu, not at %zu, of:\n%.*s\n",
                        level, split, pos, want, from + end[i], (int)n, (char *)p);
                for (size_t q = 0; q < n; q++)
                    fprintf(stderr, "%02x ", p[q]);
                fail();
            }
            pos = want;
        }
    }
    free(p);
}

static void on_all(const uint8_t *text, size_t n)
{
    static pre_scan_fn *scan[N_SPLIT];
    static pretokens_fn *find[N_LEVEL][N_SPLIT]; /* NULL: not on this processor */

    for (size_t s = 0; !scan[N_SPLIT - 1] && s < N_SPLIT; s++) {
        scan[s] = pre_scan_by_name(SPLITS[s]);
        for (size_t l = 0; l < N_LEVEL; l++)
            find[l][s] = pretokens_of_level(LEVELS[l], scan[s]);
    }
    for (size_t l = 0; l < N_LEVEL; l++) {
        for (size_t s = 0; s < N_SPLIT; s++) {
            if (find[l][s])
                compare(LEVELS[l], SPLITS[s], scan[s], find[l][s], text, n);
        }
    }
}

static void test_random_text(void **st)
{
    uint8_t text[1024];
    (void)st;

    for (unsigned round = 0; round < (getenv("CHECK_MORE") ? 20000 : 5000); round++) {
        unsigned n_char = 1 + draw(round % 10 ? 24 : 300), kinds = 2 + draw(8);
        const char *of[10];
        size_t n = 0;
        for (unsigned i = 0; i < kinds; i++)
            of[i] = CHARS[draw(N_CHAR)];
        for (unsigned i = 0; i < n_char && n < sizeof text - 4; i++) {
            const char *c = draw(4) ? of[draw(kinds)] : CHARS[draw(24)];
            memcpy(text + n, c, strlen(c));
            n += strlen(c);
        }
        on_all(text, n);
    }
}

/* One word, then runs that lie across the end of a block in every way. */
static void test_block_ends(void **st)
{
    uint8_t text[256];
    (void)st;

    for (size_t lead = 40; lead < 70; lead++) {
        for (unsigned round = 0; round < (getenv("CHECK_MORE") ? 300 : 80); round++) {
            size_t n = 0;
            while (n < lead) {
                text[n] = n % 6 == 5 ? ' ' : 'a';
                n++;
            }
            for (unsigned i = 0, k = 1 + draw(12); i < k; i++) {
                const char *c = CHARS[draw(N_CHAR)];
                for (unsigned times = draw(3) ? 1 : 1 + draw(6); times; times--) {
                    memcpy(text + n, c, strlen(c));
                    n += strlen(c);
                }
            }
            on_all(text, n);
        }
    }
}

static void test_every_character(void **st)
{
    (void)st;
    const uint32_t far = getenv("CHECK_MORE") ? 7 : 77;
    for (uint32_t c = 1; c < 0x110000; c += c < 0x3400 ? 1 : c < 0x10000 ? 7 : far) {
        uint8_t text[64], ch[4];
        size_t len, n = 0;
        if (c >= 0xD800 && c < 0xE000)
            continue;
        if (c < 0x80) {
            ch[0] = (uint8_t)c;
            len = 1;
        } else if (c < 0x800) {
            ch[0] = (uint8_t)(0xC0 | c >> 6);
            ch[1] = (uint8_t)(0x80 | (c & 63));
            len = 2;
        } else if (c < 0x10000) {
            ch[0] = (uint8_t)(0xE0 | c >> 12);
            ch[1] = (uint8_t)(0x80 | (c >> 6 & 63));
            ch[2] = (uint8_t)(0x80 | (c & 63));
            len = 3;
        } else {
            ch[0] = (uint8_t)(0xF0 | c >> 18);
            ch[1] = (uint8_t)(0x80 | (c >> 12 & 63));
            ch[2] = (uint8_t)(0x80 | (c >> 6 & 63));
            ch[3] = (uint8_t)(0x80 | (c & 63));
            len = 4;
        }
        static const char *const AROUND[] = {"a", "b ", "1", "B", "\n", " ", "!", "'"};
        for (unsigned i = 0; i < 8; i++) {
            memcpy(text + n, AROUND[i], strlen(AROUND[i]));
            n += strlen(AROUND[i]);
            memcpy(text + n, ch, len);
            n += len;
        }
        text[n++] = 's';
        on_all(text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_text),
        cmocka_unit_test(test_block_ends),
        cmocka_unit_test(test_every_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
