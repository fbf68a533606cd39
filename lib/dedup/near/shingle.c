#include "lib/dedup/near/shingle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/token/norm.h"
#include "lib/token/norm_data.h"
#include "lib/token/unicode.h"

/* ---- hashes ---- */

#define PRIME ((UINT64_C(1) << 61) - 1)
/* Constants without a pattern: of pi, of the golden ratio (5 mod 8, so that its powers
 * differ in their low bits), and two odd ones. */
#define WORD_BASE     UINT64_C(0x043F6A8885A308D3)
#define WORD_SCRAMBLE UINT64_C(0xD6E8FEB86659FD93)
#define GRAM_BASE     UINT64_C(0x9E3779B97F4A7C15)
#define GRAM_SCRAMBLE UINT64_C(0xFF51AFD7ED558CCD)

/* a * (b8 / 8) + c mod PRIME, not fully reduced. a and the result are below 2^62, b8 is
 * a multiple of 8 below 2^64, so the upper word of the product is its quotient by 2^61,
 * and c is below 2^61. */
static inline uint64_t mul_add(uint64_t a, uint64_t b8, uint64_t c)
{
    unsigned __int128 x = (unsigned __int128)a * b8;
    uint64_t s = (uint64_t)(x >> 64) + ((uint64_t)x >> 3) + c;

    return (s & PRIME) + (s >> 61);
}

static inline uint64_t reduce(uint64_t a)
{
    return a >= PRIME ? a - PRIME : a;
}

/* Appends a byte to a word. Bytes count from 1, so that a word never has the hash of a
 * longer one that begins with zeros. */
static inline uint64_t add_byte(uint64_t word, uint8_t byte)
{
    return mul_add(word, WORD_BASE << 3, byte + UINT64_C(1));
}

static inline uint64_t scramble_word(uint64_t word)
{
    uint64_t x = reduce(word) * WORD_SCRAMBLE;

    return x ^ x >> 32;
}

static inline uint64_t scramble_id(uint32_t id)
{
    uint64_t x = (id + UINT64_C(1)) * GRAM_SCRAMBLE;

    x = (x ^ x >> 32) * WORD_SCRAMBLE;
    return x ^ x >> 32;
}

static inline uint64_t scramble_gram(uint64_t x)
{
    x = (x ^ x >> 32) * GRAM_SCRAMBLE;
    return x ^ x >> 32;
}

/* ---- the table ---- */

/* The effect of a token on the open word, and on the words after it. */
struct entry {
    uint64_t part;   /* hash of its text, and the bits below */
    uint64_t factor; /* 8 * base^length; for an ODD token its bytes, or NO_TEXT */
};
#define SPACE_BIT   61
#define SPACE_FRONT (UINT64_C(1) << SPACE_BIT) /* the token ends the open word */
#define SPACE_BACK  (UINT64_C(1) << 62)        /* the token ends its own word */
/* The token has no text, has white space within, or is not UTF-8 by itself. */
#define ODD     (UINT64_C(1) << 63)
#define NO_TEXT UINT64_MAX
/* The bytes of an ODD token: their position in `odd`, and their number. */
#define ODD_PLACE(e) ((e).factor >> 24)
#define ODD_BYTES(e) ((e).factor & 0xFFFFFF)

struct slu_shingler {
    unsigned n, tok_bytes;
    bool words, any_id; /* any_id: the stream has no vocabulary */
    uint64_t special[3];
    uint64_t n_id;
    struct entry *entry; /* for words */
    struct slu_buf odd;
    uint8_t *skip;       /* for ids: which are special */
    uint64_t gram_power; /* GRAM_BASE^n */
};

/* Finds words: takes bytes, gives hashes. */
struct words {
    uint64_t *hash;
    size_t n;
    uint64_t open;   /* hash of the word so far; 0: no open word */
    size_t n_byte;   /* bytes hashed */
    uint8_t wait[4]; /* bytes of an incomplete character */
    unsigned n_wait, len_wait;
};

static void push(struct words *w, uint8_t byte)
{
    w->open = add_byte(w->open, byte);
    w->n_byte++;
}

static void end_word(struct words *w)
{
    w->hash[w->n] = w->open;
    w->n += w->open != 0;
    w->open = 0;
}

static bool is_white(uint32_t c)
{
    enum uni_category k = uni_category(c);

    return k == UNI_ZS || k == UNI_ZL || k == UNI_ZP || k == UNI_CW;
}

static void add_char(struct words *w, uint32_t c)
{
    if (c < 0x80)
        push(w, (uint8_t)c);
    else if (c < 0x800)
        push(w, (uint8_t)(0xC0 | c >> 6));
    else if (c < 0x10000)
        push(w, (uint8_t)(0xE0 | c >> 12));
    else
        push(w, (uint8_t)(0xF0 | c >> 18));
    if (c >= 0x10000)
        push(w, (uint8_t)(0x80 | (c >> 12 & 0x3F)));
    if (c >= 0x800)
        push(w, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
    if (c >= 0x80)
        push(w, (uint8_t)(0x80 | (c & 0x3F)));
}

static void put_char(struct words *w, uint32_t c)
{
    if (c < 0x80) {
        if (c == ' ' || c - 9 < 5)
            end_word(w);
        else
            push(w, (uint8_t)(c + (c - 'A' < 26) * 32));
    } else if (is_white(c)) {
        end_word(w);
    } else if (!(norm_bits(c) & NORM_BIT_LOWER)) {
        add_char(w, c);
    } else {
        const struct norm_map *m = norm_find(norm_lower, norm_n_lower, c);
        if (m->len == 1)
            add_char(w, m->to);
        else
            for (unsigned i = 0; i < m->len; i++)
                add_char(w, norm_pool[m->to + i]);
    }
}

/* The waiting bytes are not UTF-8: each is a character. */
static void give_up(struct words *w)
{
    for (unsigned i = 0; i < w->n_wait; i++)
        push(w, w->wait[i]);
    w->n_wait = 0;
}

/* Number of bytes of a character that begins with b, from 0x80 on; 0: no character
 * begins with b. */
static unsigned char_len(uint8_t b)
{
    return b < 0xC2 || b > 0xF4 ? 0 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/* Whether b can be the second byte of a character that begins with a (Unicode, table
 * 3-7). */
static bool second_fits(uint8_t a, uint8_t b)
{
    uint8_t from = a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80;
    uint8_t to = a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;

    return b >= from && b <= to;
}

static void put_byte(struct words *w, uint8_t b)
{
    if (w->n_wait) {
        bool fits = w->n_wait == 1 ? second_fits(w->wait[0], b) : (b & 0xC0) == 0x80;
        if (fits) {
            w->wait[w->n_wait++] = b;
            if (w->n_wait == w->len_wait) {
                unsigned len;
                w->n_wait = 0;
                put_char(w, uni_decode(w->wait, &len));
            }
            return;
        }
        give_up(w);
    }
    if (b < 0x80) {
        put_char(w, b);
    } else if ((w->len_wait = char_len(b)) > 0) {
        w->wait[0] = b;
        w->n_wait = 1;
    } else {
        push(w, b);
    }
}

/* ---- making it ---- */

/* Whether p has only whole characters: white space, then text, then white space, each
 * of which may be missing. *front and *back: which white space there is; *text and
 * *n_text: the text. */
static bool is_plain(const uint8_t *p, size_t n, bool *front, bool *back,
                     const uint8_t **text, size_t *n_text)
{
    size_t from = n, to = 0; /* range of the text */

    *front = *back = false;
    for (size_t pos = 0, len; pos < n; pos += len) {
        len = p[pos] < 0x80 ? 1 : char_len(p[pos]);
        if (!len || len > n - pos || (len > 1 && !second_fits(p[pos], p[pos + 1])))
            return false;
        for (size_t i = 2; i < len; i++) {
            if ((p[pos + i] & 0xC0) != 0x80)
                return false;
        }
        unsigned len_char;
        if (is_white(uni_decode(p + pos, &len_char))) {
            *front |= from == n;
            *back |= from != n;
        } else if (*back) {
            return false;
        } else {
            from = from == n ? pos : from;
            to = pos + len;
        }
    }
    *text = p + (from < to ? from : 0);
    *n_text = from < to ? to - from : 0;
    return true;
}

static bool is_special(const struct slu_shingler *s, uint64_t id)
{
    return id == s->special[0] || id == s->special[1] || id == s->special[2];
}

static int make_entry(struct slu_shingler *s, const uint8_t *p, size_t n,
                      struct entry *e, struct slu_err *err)
{
    bool front, back;
    const uint8_t *text;
    size_t n_text;

    if (!is_plain(p, n, &front, &back, &text, &n_text)) {
        if (n > 0xFFFFFF)
            return slu_fail(err, SLU_E_LIMIT, "a token of more than 16 MiB");
        *e = (struct entry){ODD, (uint64_t)s->odd.len << 24 | n};
        return slu_buf_append(&s->odd, p, n, err);
    }
    struct words w = {.hash = NULL};
    uint64_t power = 1;
    for (size_t i = 0; i < n_text; i++)
        put_byte(&w, text[i]);
    for (size_t i = 0; i < w.n_byte; i++)
        power = reduce(mul_add(power, WORD_BASE << 3, 0));
    e->part = reduce(w.open) | (front ? SPACE_FRONT : 0) | (back ? SPACE_BACK : 0);
    e->factor = power << 3;
    return SLU_OK;
}

static int make_table(struct slu_shingler *s, const struct slu_vocab_table *v,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    s->n_id = v->n;
    if (s->words)
        s->entry = malloc((v->n + 1) * sizeof *s->entry);
    else
        s->skip = calloc(v->n + 1, 1);
    if (!s->entry && !s->skip)
        return slu_fail_nomem(err, v->n * (s->words ? sizeof *s->entry : 1));
    for (uint64_t id = 0; id < v->n && rc >= 0; id++) {
        uint64_t n = v->off[id + 1] - v->off[id];
        bool skip = v->flags[id] & SLU_VOCAB_SPECIAL || is_special(s, id);
        if (!s->words)
            s->skip[id] = skip;
        else if (skip || !n)
            s->entry[id] = (struct entry){ODD, NO_TEXT};
        else
            rc = make_entry(s, v->bytes + v->off[id], n, &s->entry[id], err);
    }
    return rc;
}

int slu_shingler_new(struct slu_shingler **out, const struct slu_shingler_cfg *cfg,
                     struct slu_err *err)
{
    *out = NULL;
    if (!cfg->n || cfg->n > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "an n-gram has 1 to %d words",
                        SLU_SHINGLE_MAX_N);
    if (cfg->unit == SLU_UNIT_WORD && !cfg->vocab)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has no vocabulary, so that its words are not "
                        "known; use --unit token");
    struct slu_shingler *s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->n = cfg->n;
    s->tok_bytes = cfg->tok_bytes;
    s->words = cfg->unit == SLU_UNIT_WORD;
    s->any_id = !cfg->vocab;
    s->special[0] = cfg->eos;
    s->special[1] = cfg->bos;
    s->special[2] = cfg->pad;
    s->gram_power = 1;
    for (unsigned i = 0; i < s->n; i++)
        s->gram_power *= GRAM_BASE;
    int rc = cfg->vocab ? make_table(s, cfg->vocab, err) : SLU_OK;
    if (rc < 0) {
        slu_shingler_free(s);
        return rc;
    }
    *out = s;
    return SLU_OK;
}

void slu_shingler_free(struct slu_shingler *s)
{
    if (!s)
        return;
    free(s->entry);
    free(s->skip);
    slu_buf_release(&s->odd);
    free(s);
}

void slu_hashes_release(struct slu_hashes *h)
{
    free(h->hash);
    free(h->spare);
    memset(h, 0, sizeof *h);
}

void slu_hashes_trim(struct slu_hashes *h)
{
    h->n = 0;
    if (h->cap + h->cap_spare > SLU_KEEP_BYTE / sizeof *h->hash)
        slu_hashes_release(h);
}

/* ---- words ---- */

static inline uint32_t id_at(const void *tok, uint64_t i, bool wide)
{
    return wide ? ((const uint32_t *)tok)[i] : ((const uint16_t *)tok)[i];
}

static int unknown(uint32_t id, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "id %u is not in the vocabulary", id);
}

static inline bool is_odd(const struct slu_shingler *s, uint32_t id)
{
    return id >= s->n_id || s->entry[id].part & ODD;
}

/* Handles the run of odd tokens from *i on. A whole character or the end follows, so
 * afterwards no bytes wait. */
static int add_odd(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                   bool wide, uint64_t *i, struct slu_hashes *out, struct words *w,
                   struct slu_err *err)
{
    for (uint32_t id; *i < n_tok && is_odd(s, id = id_at(tok, *i, wide)); ++*i) {
        if (id >= s->n_id) {
            if (!is_special(s, id))
                return unknown(id, err);
            continue;
        }
        struct entry e = s->entry[id];
        if (e.factor == NO_TEXT)
            continue;
        /* Room for the words here and, with one word each, for the tokens that
         * follow. */
        int rc = slu_grow(&out->hash, &out->cap, w->n + ODD_BYTES(e) + n_tok - *i + 2,
                          sizeof *out->hash, err);
        if (rc < 0)
            return rc;
        w->hash = out->hash;
        const uint8_t *p = s->odd.data + ODD_PLACE(e);
        for (size_t k = 0; k < ODD_BYTES(e); k++)
            put_byte(w, p[k]);
    }
    give_up(w);
    return SLU_OK;
}

/* Appends the words' hashes to those of out. */
static inline __attribute__((always_inline)) int
find_words(const struct slu_shingler *s, const void *tok, uint64_t n_tok, bool wide,
           struct slu_hashes *out, struct slu_err *err)
{
    struct words w = {.hash = out->hash};
    uint64_t *hash = out->hash, open = 0;
    uint64_t before = 0; /* previous token, with its SPACE_BACK at the position of
                            SPACE_FRONT */
    size_t n = out->n;

    for (uint64_t i = 0; i < n_tok; i++) {
        uint32_t id = id_at(tok, i, wide);
        if (__builtin_expect(is_odd(s, id), 0)) {
            w.n = n;
            w.open = open;
            if (before & SPACE_FRONT)
                end_word(&w);
            int rc = add_odd(s, tok, n_tok, wide, &i, out, &w, err);
            if (rc < 0)
                return rc;
            hash = w.hash;
            n = w.n;
            open = w.open;
            before = 0;
            i--;
            continue;
        }
        /* Without a branch on the ends of words, which would be mispredicted too
         * often. */
        const struct entry e = s->entry[id];
        uint64_t ends = (e.part | before) >> SPACE_BIT & 1;
        before = e.part >> 1;
        hash[n] = open;
        n += ends & (open != 0);
        open = mul_add(open & (ends - 1), e.factor, e.part & PRIME);
    }
    w.n = n;
    w.open = open;
    end_word(&w);
    out->n = w.n;
    return SLU_OK;
}

static int find_ids(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                    bool wide, struct slu_hashes *out, struct slu_err *err)
{
    size_t n = out->n;

    for (uint64_t i = 0; i < n_tok; i++) {
        uint32_t id = id_at(tok, i, wide);
        out->hash[n] = scramble_id(id);
        if (id >= s->n_id) {
            bool special = is_special(s, id);
            if (!special && !s->any_id)
                return unknown(id, err);
            n += !special;
        } else {
            n += !s->skip[id];
        }
    }
    out->n = n;
    return SLU_OK;
}

/* ---- n-grams ---- */

/* In place: hash i of n becomes that of the n-gram that begins there; returns their
 * number. */
static size_t find_grams(const struct slu_shingler *s, uint64_t *h, size_t n)
{
    uint64_t gram = 0;
    const size_t first = n < s->n ? n : s->n;
    const bool words = s->words;

    for (size_t i = 0; i < first; i++) {
        h[i] = words ? scramble_word(h[i]) : h[i];
        gram = gram * GRAM_BASE + h[i];
    }
    for (size_t i = s->n; i < n; i++) {
        uint64_t last = words ? scramble_word(h[i]) : h[i];
        uint64_t change = last - h[i - s->n] * s->gram_power;
        h[i] = last;
        h[i - s->n] = scramble_gram(gram);
        gram = gram * GRAM_BASE + change;
    }
    n -= first ? first - 1 : 0;
    if (n)
        h[n - 1] = scramble_gram(gram);
    return n;
}

int slu_shingle_add(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                    struct slu_hashes *out, struct slu_err *err)
{
    size_t had = out->n;
    int rc;

    if (n_tok > SIZE_MAX / 16)
        return slu_fail_nomem(err, UINT64_MAX);
    if ((rc = slu_grow(&out->hash, &out->cap, had + n_tok + 2, sizeof *out->hash,
                       err)) < 0)
        return rc;
    bool wide = s->tok_bytes == 4;
    if (!s->words)
        rc = find_ids(s, tok, n_tok, wide, out, err);
    else if (wide)
        rc = find_words(s, tok, n_tok, true, out, err);
    else
        rc = find_words(s, tok, n_tok, false, out, err);
    out->n = rc < 0 ? had : had + find_grams(s, out->hash + had, out->n - had);
    return rc;
}

int slu_shingle(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                struct slu_hashes *out, struct slu_err *err)
{
    out->n = 0;
    return slu_shingle_add(s, tok, n_tok, out, err);
}
