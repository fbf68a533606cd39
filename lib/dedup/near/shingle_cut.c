#include "lib/dedup/near/shingle_cut.h"

#include "lib/token/norm.h"
#include "lib/token/norm_data.h"
#include "lib/token/unicode.h"

static void push(struct slu_words *w, uint8_t byte)
{
    w->open = add_byte(w->open, byte);
    w->n_byte++;
}

/* A character without a role, for bytes that are not UTF-8. */
#define STRAY 0x80

static bool is_white(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || c - 9 < 5;
    enum uni_category k = uni_category(c);

    return k == UNI_ZS || k == UNI_ZL || k == UNI_ZP || k == UNI_CW;
}

static void add_char(struct slu_words *w, uint32_t c)
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

/* Before character c, which is not white space: ends the open word if c is not in it. */
static void cut_before(struct slu_words *w, uint32_t c)
{
    const enum uni_role role = uni_role(c);
    const bool joins = w->open && !w->chars &&
                       (role >= UNI_JOINS || w->prepends ||
                        (w->links && (role == UNI_CONSONANT || role == UNI_TAIL)));
    const bool sign = !w->chars && (role == UNI_SIGN || role == UNI_CONSONANT ||
                                    (w->sign && role == UNI_RUN && uni_is_mark(c)));

    if (!joins) {
        if (sign || w->sign || w->chars)
            slu_words_end(w);
        w->sign = sign;
        w->n_sign += sign;
    }
    w->prepends = role == UNI_PREPENDS;
    w->links = w->sign && (role == UNI_LINKS || (w->links && role == UNI_EXTENDS));
}

static inline void put_char(struct slu_words *w, uint32_t c)
{
    if (is_white(c)) {
        slu_words_end(w);
        return;
    }
    if (c >= 0x80 || w->sign || w->chars || w->prepends)
        cut_before(w, c);
    if (c < 0x80) {
        push(w, (uint8_t)(c + (c - 'A' < 26) * 32));
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

void slu_words_put_char(struct slu_words *w, uint32_t c)
{
    put_char(w, c);
}

/* Takes a byte that is not UTF-8. */
static void put_stray(struct slu_words *w, uint8_t byte)
{
    cut_before(w, STRAY);
    push(w, byte);
}

void slu_words_give_up(struct slu_words *w)
{
    for (unsigned i = 0; i < w->n_wait; i++)
        put_stray(w, w->wait[i]);
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

static void put_byte(struct slu_words *w, uint8_t b)
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
        slu_words_give_up(w);
    }
    if (b < 0x80) {
        put_char(w, b);
    } else if ((w->len_wait = char_len(b)) > 0) {
        w->wait[0] = b;
        w->n_wait = 1;
    } else {
        put_stray(w, b);
    }
}

bool slu_words_follow(const struct slu_words *w, const uint8_t *p)
{
    unsigned len;
    uint32_t c = uni_decode(p, &len);

    return w->sign && (w->links || uni_role(c) >= UNI_JOINS || uni_is_mark(c));
}

void slu_words_put(struct slu_words *w, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < 0x80 && !w->n_wait)
            put_char(w, p[i]);
        else
            put_byte(w, p[i]);
    }
}

bool slu_words_plain(const uint8_t *p, size_t n, bool *front, bool *back,
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
        const uint32_t c = uni_decode(p + pos, &len_char);
        const enum uni_role role = uni_role(c);
        if (is_white(c)) {
            *front |= from == n;
            *back |= from != n;
        } else if (*back || (role >= UNI_SIGN && role <= UNI_PREPENDS)) {
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
