#include "lib/dedup/near/shingle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/shingle_cut.h"
#include "lib/token/unicode.h"

/* ---- hashes ---- */

/* Constants without a pattern: of the golden ratio (5 mod 8, so that its powers differ
 * in their low bits), and two odd ones. */
#define WORD_SCRAMBLE UINT64_C(0xD6E8FEB86659FD93)
#define GRAM_BASE     UINT64_C(0x9E3779B97F4A7C15)
#define GRAM_SCRAMBLE UINT64_C(0xFF51AFD7ED558CCD)

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
    uint64_t factor; /* 8 * base^length; for an ODD token 0, or NO_TEXT */
};
#define SPACE_BIT   61
#define SPACE_FRONT (UINT64_C(1) << SPACE_BIT) /* the token ends the open word */
#define SPACE_BACK  (UINT64_C(1) << 62)        /* the token ends its own word */
/* The token's bytes are read: it has no text, has white space or a word of one grapheme
 * within, or is not UTF-8 by itself. */
#define ODD     (UINT64_C(1) << 63)
#define NO_TEXT UINT64_MAX

struct slu_shingler {
    unsigned n, tok_bytes;
    enum slu_unit unit;
    bool any_id; /* the stream has no vocabulary */
    uint64_t special[3];
    uint64_t n_id, max_word;
    struct entry *entry; /* for words */
    uint64_t *off;       /* for words: where each id's text begins, n_id + 1 */
    uint8_t *bytes;      /* for words: the text of all ids */
    uint8_t *skip;       /* for ids: which are special */
    uint64_t gram_power; /* GRAM_BASE^n */
};

/* ---- making it ---- */

static bool is_special(const struct slu_shingler *s, uint64_t id)
{
    return id == s->special[0] || id == s->special[1] || id == s->special[2];
}

static void make_entry(const struct slu_shingler *s, const uint8_t *p, size_t n,
                       struct entry *e)
{
    bool front, back;
    const uint8_t *text;
    size_t n_text;

    *e = (struct entry){ODD, 0};
    if (!n || s->unit == SLU_UNIT_CHAR ||
        !slu_words_plain(p, n, &front, &back, &text, &n_text))
        return;
    struct slu_words w = {.hash = NULL};
    uint64_t power = 1;
    slu_words_put(&w, text, n_text);
    for (size_t i = 0; i < w.n_byte; i++)
        power = reduce(mul_add(power, WORD_BASE << 3, 0));
    e->part = reduce(w.open) | (front ? SPACE_FRONT : 0) | (back ? SPACE_BACK : 0);
    e->factor = power << 3;
}

static int make_table(struct slu_shingler *s, const struct slu_vocab_table *v,
                      struct slu_err *err)
{
    const bool words = s->unit != SLU_UNIT_TOKEN;

    s->n_id = v->n;
    if (words) {
        s->entry = malloc((v->n + 1) * sizeof *s->entry);
        s->off = malloc((v->n + 1) * sizeof *s->off);
        s->bytes = malloc(v->off[v->n] + 1);
    } else {
        s->skip = calloc(v->n + 1, 1);
    }
    if (words ? !s->entry || !s->off || !s->bytes : !s->skip)
        return slu_fail_nomem(err, v->n * (words ? sizeof *s->entry : 1));
    for (uint64_t id = 0; id < v->n; id++) {
        bool skip = v->flags[id] & SLU_VOCAB_SPECIAL || is_special(s, id);
        if (!words)
            s->skip[id] = skip;
        else if (skip)
            s->entry[id] = (struct entry){ODD, NO_TEXT};
        else
            make_entry(s, v->bytes + v->off[id], v->off[id + 1] - v->off[id],
                       &s->entry[id]);
    }
    if (words) {
        memcpy(s->off, v->off, (v->n + 1) * sizeof *s->off);
        memcpy(s->bytes, v->bytes, v->off[v->n]);
    }
    return SLU_OK;
}

int slu_shingler_new(struct slu_shingler **out, const struct slu_shingler_cfg *cfg,
                     struct slu_err *err)
{
    *out = NULL;
    if (!cfg->n || cfg->n > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "an n-gram has 1 to %d words",
                        SLU_SHINGLE_MAX_N);
    if (cfg->unit != SLU_UNIT_TOKEN && !cfg->vocab)
        return slu_advise(
            err, SLU_ADVISE_WORDS,
            slu_fail(err, SLU_E_MISMATCH,
                     "the stream has no vocabulary, so its words are not known"));
    struct slu_shingler *s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->n = cfg->n;
    s->tok_bytes = cfg->tok_bytes;
    s->unit = cfg->unit;
    s->max_word = cfg->max_word ? cfg->max_word : UINT64_MAX;
    s->any_id = !cfg->vocab;
    s->special[0] = cfg->eos;
    s->special[1] = cfg->bos;
    s->special[2] = cfg->pad;
    s->gram_power = 1;
    for (unsigned i = 0; i < s->n; i++)
        s->gram_power *= GRAM_BASE;
    int rc = cfg->vocab ? make_table(s, cfg->vocab, err) : SLU_OK;
    if (rc) {
        slu_shingler_free(s);
        return rc;
    }
    *out = s;
    return SLU_OK;
}

static const char *const unit_param[] = {"word/2", "token", "char"};

const char *slu_unit_param(enum slu_unit unit)
{
    return unit_param[unit];
}

int slu_unit_of(const char *param, const char *path, enum slu_unit *unit,
                struct slu_err *err)
{
    const char *name = strstr(param, " unit=");
    const size_t n = name ? strcspn(name += strlen(" unit="), " ") : 0;

    for (unsigned i = 0; i < sizeof unit_param / sizeof *unit_param; i++) {
        *unit = (enum slu_unit)i;
        if (n == strlen(unit_param[i]) && !memcmp(name, unit_param[i], n))
            return SLU_OK;
    }
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s: was made with unit=%.*s, which this version of sluice does "
                    "not read; make the index again",
                    path, (int)n, n ? name : "");
}

void slu_shingler_free(struct slu_shingler *s)
{
    if (!s)
        return;
    free(s->entry);
    free(s->skip);
    free(s->off);
    free(s->bytes);
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

static int too_many(const struct slu_shingler *s, struct slu_err *err)
{
    return slu_advise(
        err, SLU_ADVISE_MEMORY,
        slu_fail(err, SLU_E_LIMIT,
                 "a sequence has more than %llu words, the most that this memory "
                 "allows",
                 (unsigned long long)s->max_word));
}

/* Handles the run of tokens from *i on that are odd, or begin with a character that
 * goes with the grapheme before. A whole character or the end follows, so afterwards no
 * bytes wait. */
static int add_odd(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                   bool wide, uint64_t *i, struct slu_hashes *out, struct slu_words *w,
                   struct slu_err *err)
{
    for (; *i < n_tok; ++*i) {
        uint32_t id = id_at(tok, *i, wide);
        if (id >= s->n_id) {
            if (!is_special(s, id))
                return unknown(id, err);
            continue;
        }
        const uint8_t *p = s->bytes + s->off[id];
        const size_t n = s->off[id + 1] - s->off[id];
        if (s->entry[id].factor == NO_TEXT)
            continue;
        if (!(s->entry[id].part & ODD) && !slu_words_follow(w, p))
            break;
        if (w->n > s->max_word && w->n - out->n > n_tok)
            return too_many(s, err);
        /* Room for the words here and, with one word each, for the tokens that
         * follow. */
        int rc = slu_grow(&out->hash, &out->cap, w->n + n + n_tok - *i + 2,
                          sizeof *out->hash, err);
        if (rc)
            return rc;
        w->hash = out->hash;
        slu_words_put(w, p, n);
    }
    slu_words_give_up(w);
    return SLU_OK;
}

/* Appends the words' hashes to those of out. */
static inline __attribute__((always_inline)) int
find_words(const struct slu_shingler *s, const void *tok, uint64_t n_tok, bool wide,
           struct slu_hashes *out, struct slu_err *err)
{
    struct slu_words w = {.hash = out->hash, .chars = s->unit == SLU_UNIT_CHAR};
    uint64_t *hash = out->hash, open = 0;
    /* Previous token, with its SPACE_BACK at the position of SPACE_FRONT. */
    uint64_t before = 0;
    size_t n = out->n;

    for (uint64_t i = 0; i < n_tok; i++) {
        uint32_t id = id_at(tok, i, wide);
        if (__builtin_expect(is_odd(s, id), 0)) {
            w.n = n;
            w.open = open;
            w.sign = w.prepends = w.links = false;
            if (before & SPACE_FRONT)
                slu_words_end(&w);
            int rc = add_odd(s, tok, n_tok, wide, &i, out, &w, err);
            if (rc)
                return rc;
            hash = w.hash;
            n = w.n;
            open = w.open;
            before = w.sign ? SPACE_FRONT : 0;
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
    slu_words_end(&w);
    out->n = w.n;
    out->n_sign += w.n_sign;
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
    const bool words = s->unit != SLU_UNIT_TOKEN;

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

int slu_shingle_marks(struct slu_hashes *out, struct slu_err *err)
{
    int rc = SLU_OK;
    for (uint32_t c = 0; c < 0x20000 && !rc; c++) { /* Unicode has none above */
        uint64_t word;
        struct slu_words w = {.hash = &word};
        if (!uni_is_mark(c))
            continue;
        rc = slu_grow(&out->hash, &out->cap, out->n + 1, sizeof *out->hash, err);
        if (rc)
            break;
        slu_words_put_char(&w, c);
        slu_words_end(&w);
        out->hash[out->n++] = scramble_gram(scramble_word(word));
    }
    return rc;
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
    if (s->unit == SLU_UNIT_TOKEN)
        rc = find_ids(s, tok, n_tok, wide, out, err);
    else if (wide)
        rc = find_words(s, tok, n_tok, true, out, err);
    else
        rc = find_words(s, tok, n_tok, false, out, err);
    out->n = rc ? had : had + find_grams(s, out->hash + had, out->n - had);
    return rc;
}

int slu_shingle(const struct slu_shingler *s, const void *tok, uint64_t n_tok,
                struct slu_hashes *out, struct slu_err *err)
{
    out->n = out->n_sign = 0;
    return slu_shingle_add(s, tok, n_tok, out, err);
}
