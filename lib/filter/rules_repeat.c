/* rules_repeat.c - the family gopher-repetition of rules.h.
 *
 * A word has a number, the place of its first occurrence, and so have n-grams: a table
 * leads from the pair of an (n-1)-gram's number and a word's to the number of the n-gram.
 * These pairs are compared, so no hash decides. Repeated n-grams of 5 to 10 words are, as
 * in datatrove, equal as strings without what is between the words: "a bc" is "ab c".
 * They are found by a polynomial over the bytes, modulo 2^61-1, of which differences of
 * prefixes give that of any n-gram, and then compared byte by byte.
 */
#include <string.h>

#include "lib/base/hash.h"
#include "lib/filter/rules_private.h"

#define PRIME  ((UINT64_C(1) << 61) - 1)
#define BASE   UINT64_C(0x043F6A8885A308D3)
#define POWERS 64

/* Arrays by word; end, chars and sum have n + 1 elements. */
struct words {
    size_t n;
    uint32_t *end, *chars; /* bytes and characters of all words before */
    uint32_t *number;      /* of the word */
    uint32_t *gram;        /* of the n-gram that begins here */
    uint64_t *sum;         /* the polynomial of all words before */
    uint64_t power[POWERS + 1];
    const uint8_t *joined;
};

/* x is below 2^123. */
static uint64_t reduce(unsigned __int128 x)
{
    uint64_t s = (uint64_t)(x & PRIME) + (uint64_t)(x >> 61);
    s = (s & PRIME) + (s >> 61);
    return s >= PRIME ? s - PRIME : s;
}

static uint64_t mul(uint64_t a, uint64_t b)
{
    return reduce((unsigned __int128)a * b);
}

static uint64_t power(const struct words *w, size_t n)
{
    uint64_t p = w->power[n % POWERS], step = w->power[POWERS];
    for (n /= POWERS; n; n /= 2, step = mul(step, step))
        if (n & 1)
            p = mul(p, step);
    return p;
}

/* ---- words ---- */

static size_t count_words(const struct slu_rules_run *run, size_t *n_byte)
{
    const uint8_t *p = run->p;
    struct slu_word word;
    size_t n = 0;
    *n_byte = 0;
    while (slu_word_next(&p, run->p + run->n, &word)) {
        n++;
        *n_byte += word.n_byte;
    }
    return n;
}

static int make_room(struct slu_rules_run *run, struct words *w, struct slu_err *err)
{
    size_t n_byte;
    w->n = count_words(run, &n_byte);
    const size_t all = w->n + 1;
    int rc = rules_room(run, &run->words, all * 24, err);
    if (!rc)
        rc = rules_room(run, &run->joined, n_byte + 1, err);
    if (rc)
        return rc;
    w->sum = (void *)run->words.data;
    w->end = (void *)(w->sum + all);
    w->chars = w->end + all;
    w->number = w->chars + all;
    w->gram = w->number + all;
    w->joined = run->joined.data;
    w->power[0] = 1;
    for (unsigned i = 0; i < POWERS; i++)
        w->power[i + 1] = mul(w->power[i], BASE);
    return SLU_OK;
}

struct word_slot {
    uint32_t hash, first; /* first: the word's place, from 1 on; 0: an empty slot */
};

static bool same(const struct words *w, size_t i, size_t k)
{
    const uint32_t n = w->end[i + 1] - w->end[i];
    return n == w->end[k + 1] - w->end[k] &&
           !memcmp(w->joined + w->end[i], w->joined + w->end[k], n);
}

/* Of the bytes of a word, eight in one step. */
static uint64_t polynomial(const struct words *w, const uint8_t *p, size_t n)
{
    uint64_t h = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < 8 ? n - i : 8;
        unsigned __int128 x = (unsigned __int128)h * w->power[k];
        for (size_t m = 0; m < k; m++)
            x += (unsigned __int128)w->power[k - 1 - m] * (p[i + m] + UINT64_C(1));
        h = reduce(x);
    }
    return h;
}

static int read_words(struct slu_rules_run *run, struct words *w, struct slu_err *err)
{
    const uint8_t *p = run->p;
    uint8_t *to = run->joined.data;
    struct slu_word word;
    size_t mask, i = 0;
    int rc = rules_table(run, w->n, sizeof(struct word_slot), &mask, err);
    if (rc)
        return rc;
    struct word_slot *slot = (void *)run->table.data;
    w->end[0] = w->chars[0] = 0;
    w->sum[0] = 0;
    for (; slu_word_next(&p, run->p + run->n, &word); i++) {
        uint64_t h = polynomial(w, word.p, word.n_byte);
        memcpy(to, word.p, word.n_byte);
        to += word.n_byte;
        w->end[i + 1] = w->end[i] + (uint32_t)word.n_byte;
        w->chars[i + 1] = w->chars[i] + (uint32_t)word.n_char;
        const uint64_t sum = mul(w->sum[i], power(w, word.n_byte)) + h;
        w->sum[i + 1] = sum >= PRIME ? sum - PRIME : sum;
        h *= UINT64_C(0x9E3779B97F4A7C15);
        const uint32_t high = (uint32_t)(h >> 32);
        size_t at = (size_t)(h >> 20) & mask;
        while (slot[at].first &&
               !(slot[at].hash == high && same(w, i, slot[at].first - 1)))
            at = (at + 1) & mask;
        if (!slot[at].first)
            slot[at] = (struct word_slot){high, (uint32_t)i + 1};
        w->number[i] = w->gram[i] = slot[at].first - 1;
    }
    return SLU_OK;
}

/* ---- the most frequent n-gram ---- */

struct gram_slot {
    uint64_t pair;
    uint32_t first, n; /* n 0: an empty slot */
};

/* Gives each n-gram its number, from those of (n-1)-grams; *chars: characters, with one
 * between words, of the most frequent one in all its places. The first of several. */
static int number_grams(struct slu_rules_run *run, struct words *w, size_t n,
                        uint64_t *chars, struct slu_err *err)
{
    size_t mask, n_best = 0, best = 0;
    int rc = rules_table(run, w->n, sizeof(struct gram_slot), &mask, err);
    if (rc)
        return rc;
    struct gram_slot *slot = (void *)run->table.data;
    for (size_t i = 0; i + n <= w->n; i++) {
        const uint64_t pair = (uint64_t)w->gram[i] << 32 | w->number[i + n - 1];
        size_t at = (size_t)((pair * UINT64_C(0x9E3779B97F4A7C15) ^ pair >> 29) *
                                 UINT64_C(0xD1B54A32D192ED03) >>
                             24) &
                    mask;
        while (slot[at].n && slot[at].pair != pair)
            at = (at + 1) & mask;
        if (!slot[at].n)
            slot[at] = (struct gram_slot){pair, (uint32_t)i, 0};
        struct gram_slot *c = &slot[at];
        c->n++;
        if (c->n > n_best || (c->n == n_best && c->first < best)) {
            n_best = c->n;
            best = c->first;
        }
        w->gram[i] = c->first;
    }
    *chars = (w->chars[best + n] - w->chars[best] + n - 1) * n_best;
    return SLU_OK;
}

/* ---- n-grams that occur again ---- */

/* Characters of n-grams that occurred before; each is followed by the next words, and
 * any other by that which begins one word later. */
static int repeated(struct slu_rules_run *run, const struct words *w, size_t n,
                    uint64_t *chars, struct slu_err *err)
{
    size_t mask;
    *chars = 0;
    int rc = rules_table(run, w->n, sizeof(struct word_slot), &mask, err);
    if (rc)
        return rc;
    struct word_slot *slot = (void *)run->table.data;
    for (size_t i = 0; i + n <= w->n;) {
        const uint32_t len = w->end[i + n] - w->end[i];
        const uint8_t *p = w->joined + w->end[i];
        uint64_t h = w->sum[i + n] + PRIME - mul(w->sum[i], power(w, len));
        h = (h >= PRIME ? h - PRIME : h) * UINT64_C(0x9E3779B97F4A7C15);
        const uint32_t high = (uint32_t)(h >> 32);
        size_t at = (size_t)(h >> 20) & mask;
        for (; slot[at].first; at = (at + 1) & mask) {
            const size_t k = slot[at].first - 1;
            if (slot[at].hash == high && w->end[k + n] - w->end[k] == len &&
                !memcmp(w->joined + w->end[k], p, len))
                break;
        }
        if (slot[at].first) {
            *chars += w->chars[i + n] - w->chars[i];
            i += n;
        } else {
            slot[at] = (struct word_slot){high, (uint32_t)i + 1};
            i++;
        }
    }
    return SLU_OK;
}

static int ask_words(struct slu_rules_run *run, enum slu_rule *failed,
                     struct slu_err *err)
{
    struct words w;
    uint64_t chars;
    int rc = make_room(run, &w, err);
    if (!rc)
        rc = read_words(run, &w, err);
    for (unsigned n = 2; n <= 10 && n <= w.n && !rc && *failed == SLU_RULE_N; n++) {
        const enum slu_rule r = (enum slu_rule)(SLU_RULE_TOP_2_GRAM + n - 2);
        rc = n < 5 ? number_grams(run, &w, n, &chars, err)
                   : repeated(run, &w, n, &chars, err);
        if (!rc && rules_above(run, r, (double)chars / (double)run->n_char))
            *failed = r;
    }
    return rc;
}

/* ---- paragraphs and lines ---- */

/* Asks about the pieces of p[0, n) between `least` and more "\n". */
static int ask_pieces(struct slu_rules_run *run, const uint8_t *p, size_t n,
                      size_t least, enum slu_rule frac, enum slu_rule char_frac,
                      enum slu_rule *failed, struct slu_err *err)
{
    const uint8_t *const end = p + n, *from = p;
    struct rules_twice t;
    size_t n_piece = 1;
    int rc = rules_twice_begin(run, &t, run->n_newline + 1, err);
    if (rc)
        return rc;
    for (const uint8_t *nl = p; (nl = memchr(nl, '\n', (size_t)(end - nl)));) {
        const uint8_t *next = nl;
        while (next < end && *next == '\n')
            next++;
        if ((size_t)(next - nl) >= least) {
            rules_twice_add(run, &t, from, (size_t)(nl - from));
            from = next;
            n_piece++;
        }
        nl = next;
    }
    rules_twice_add(run, &t, from, (size_t)(end - from));
    if (rules_above(run, frac, (double)t.n_again / (double)n_piece))
        *failed = frac;
    else if (rules_above(run, char_frac, (double)t.n_char / (double)run->n_char))
        *failed = char_frac;
    return SLU_OK;
}

int rules_gopher_repetition(struct slu_rules_run *run, enum slu_rule *failed,
                            struct slu_err *err)
{
    size_t n = run->n;
    const uint8_t *p = slu_text_strip(run->p, &n);
    int rc = ask_pieces(run, p, n, 2, SLU_RULE_DUP_PARA_FRAC,
                        SLU_RULE_DUP_PARA_CHAR_FRAC, failed, err);
    if (!rc && *failed == SLU_RULE_N)
        rc = ask_pieces(run, run->p, run->n, 1, SLU_RULE_DUP_LINE_FRAC,
                        SLU_RULE_DUP_LINE_CHAR_FRAC, failed, err);
    if (!rc && *failed == SLU_RULE_N)
        rc = ask_words(run, failed, err);
    return rc;
}
