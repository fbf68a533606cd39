/* norm_form.c - Unicode's normal forms (UAX #15), applied only where a text needs them.
 *
 * The text is cut before characters that a form neither changes nor joins to those
 * before them. Any other character is decomposed, sorted and composed together with the
 * text from the last such cut before it to the next one. */
#include "lib/token/norm.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/align.h"
#include "lib/token/norm_data.h"
#include "lib/token/unicode.h"

#define S_BASE 0xAC00 /* Hangul syllables, and their parts */
#define L_BASE 0x1100
#define V_BASE 0x1161
#define T_BASE 0x11A7
#define L_N    19
#define V_N    21
#define T_N    28
#define S_N    (L_N * V_N * T_N)

#define CODE(x)  ((x)&0x1FFFFF)
#define CLASS(x) ((x) >> 24)
#define MORE     0x200000u /* not the first of its character's decomposition */

size_t norm_skip_ascii(const uint8_t *p, size_t n, size_t pos)
{
    for (; n - pos >= 32; pos += 32) {
        uint64_t w[4];
        memcpy(w, p + pos, 32);
        if ((w[0] | w[1] | w[2] | w[3]) & UINT64_C(0x8080808080808080))
            break;
    }
    while (pos < n && p[pos] < 0x80)
        pos++;
    return pos;
}

int norm_put(struct slu_buf *buf, uint32_t c, struct slu_err *err)
{
    int rc = slu_buf_reserve(buf, 4, err);

    if (rc)
        return rc;
    uint8_t *q = buf->data + buf->len;
    if (c < 0x80) {
        *q++ = (uint8_t)c;
    } else if (c < 0x800) {
        *q++ = (uint8_t)(0xC0 | c >> 6);
        *q++ = (uint8_t)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *q++ = (uint8_t)(0xE0 | c >> 12);
        *q++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *q++ = (uint8_t)(0x80 | (c & 63));
    } else {
        *q++ = (uint8_t)(0xF0 | c >> 18);
        *q++ = (uint8_t)(0x80 | (c >> 12 & 63));
        *q++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *q++ = (uint8_t)(0x80 | (c & 63));
    }
    buf->len = (size_t)(q - buf->data);
    return SLU_OK;
}

const struct norm_map *norm_find(const struct norm_map *table, unsigned n, uint32_t c)
{
    unsigned lo = 0, hi = n;

    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;
        if (table[mid].from <= c)
            lo = mid;
        else
            hi = mid;
    }
    return table[lo].from == c ? &table[lo] : NULL;
}

static uint32_t class_of(uint32_t c)
{
    unsigned lo = 0, hi = norm_n_class;

    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;
        if (norm_class[mid].from <= c)
            lo = mid;
        else
            hi = mid;
    }
    return c >= norm_class[lo].from && c <= norm_class[lo].to ? norm_class[lo].ccc : 0;
}

/* Returns the decomposition of c, at most 18 code points; NULL if c stays. */
static const uint32_t *decompose(uint32_t c, bool compat, uint32_t hangul[3],
                                 unsigned *n)
{
    const struct norm_map *m = NULL;

    if (!(norm_bits(c) & (compat ? NORM_BIT_NFKD : NORM_BIT_NFD)))
        return NULL;
    if (c - S_BASE < S_N) {
        uint32_t i = c - S_BASE;
        hangul[0] = L_BASE + i / (V_N * T_N);
        hangul[1] = V_BASE + i % (V_N * T_N) / T_N;
        hangul[2] = T_BASE + i % T_N;
        *n = i % T_N ? 3 : 2;
        return hangul;
    }
    if (compat)
        m = norm_find(norm_compat, norm_n_compat, c);
    if (!m)
        m = norm_find(norm_canon, norm_n_canon, c);
    if (!m)
        return NULL;
    *n = m->len;
    return norm_pool + m->to;
}

/* Sorts marks by class, stably, in linear time even if the whole text is marks. */
static int sort_marks(struct norm_scratch *s, uint32_t *cp, size_t n,
                      struct slu_err *err)
{
    size_t start[257] = {0};
    int rc;

    if (n <= 32) {
        for (size_t i = 1; i < n; i++) {
            uint32_t x = cp[i];
            size_t j = i;
            for (; j > 0 && CLASS(cp[j - 1]) > CLASS(x); j--)
                cp[j] = cp[j - 1];
            cp[j] = x;
        }
        return SLU_OK;
    }
    if ((rc = slu_grow(&s->sorted, &s->cap_sorted, n, sizeof *s->sorted, err)))
        return rc;
    memcpy(s->sorted, cp, n * sizeof *cp);
    for (size_t i = 0; i < n; i++)
        start[CLASS(cp[i]) + 1]++;
    for (unsigned k = 1; k < 257; k++)
        start[k] += start[k - 1];
    for (size_t i = 0; i < n; i++)
        cp[start[CLASS(s->sorted[i])]++] = s->sorted[i];
    return SLU_OK;
}

/* Returns the code point that two compose to, or 0. */
static uint32_t pair(uint32_t a, uint32_t b)
{
    unsigned lo = 0, hi = norm_n_pair;

    if (!(norm_bits(b) & NORM_BIT_NFC))
        return 0;
    if (a - L_BASE < L_N && b - V_BASE < V_N)
        return S_BASE + ((a - L_BASE) * V_N + (b - V_BASE)) * T_N;
    if (a - S_BASE < S_N && (a - S_BASE) % T_N == 0 && b - T_BASE - 1 < T_N - 1)
        return a + (b - T_BASE);
    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;
        if (norm_pair[mid].first < a ||
            (norm_pair[mid].first == a && norm_pair[mid].second <= b))
            lo = mid;
        else
            hi = mid;
    }
    return norm_pair[lo].first == a && norm_pair[lo].second == b ? norm_pair[lo].both
                                                                 : 0;
}

/* Composes cp in place; returns how many are left. taken: NULL, or how many characters
 * each stands for, which are added up. */
static size_t compose(uint32_t *cp, size_t n, uint32_t *taken)
{
    size_t k = 0, starter = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        uint32_t both = 0;
        /* A mark composes across marks of lower classes only. */
        if (starter != SIZE_MAX &&
            (k - 1 == starter || CLASS(cp[k - 1]) < CLASS(cp[i])))
            both = pair(CODE(cp[starter]), CODE(cp[i]));
        if (both) {
            cp[starter] = both;
            if (taken)
                taken[starter] += taken[i];
            continue;
        }
        if (!CLASS(cp[i]))
            starter = k;
        if (taken)
            taken[k] = taken[i];
        cp[k++] = cp[i];
    }
    return k;
}

/* Writes the waiting code points, which were made of those of p from s->at on. */
static int flush(struct norm_scratch *s, bool composed, const uint8_t *p,
                 struct slu_buf *buf, struct slu_err *err)
{
    size_t n = s->n_cp;
    uint32_t *taken = NULL;
    int rc = s->align ? align_taken(s->align, n, &taken, err) : SLU_OK;

    for (size_t i = 0, j; i < n && !rc; i = j) {
        for (j = i; j < n && CLASS(s->cp[j]);)
            j++;
        if (j - i > 1)
            rc = sort_marks(s, s->cp + i, j - i, err);
        j += j == i;
    }
    for (size_t i = 0; taken && i < n; i++)
        taken[i] = !(s->cp[i] & MORE);
    if (composed)
        n = compose(s->cp, n, taken);
    for (size_t i = 0; i < n && !rc; i++) {
        const size_t was = buf->len;
        rc = norm_put(buf, CODE(s->cp[i]), err);
        if (!rc && taken)
            rc = align_chars(s->align, p, &s->at, taken[i], buf->len - was, err);
    }
    s->n_cp = 0;
    return rc;
}

struct form {
    bool compat, composed;
    uint8_t bit;
};

static int put_char(struct norm_scratch *s, const struct form *f, uint32_t c,
                    const uint8_t *p, struct slu_buf *buf, struct slu_err *err)
{
    uint32_t hangul[3];
    unsigned n = 1;
    const uint32_t *part = decompose(c, f->compat, hangul, &n);
    int rc;

    if (!part)
        part = &c;
    /* Nothing crosses a part that cannot be joined to the characters before it. */
    if (s->n_cp &&
        !(norm_bits(part[0]) & (f->composed ? NORM_BIT_NFC : NORM_BIT_NFD)) &&
        (rc = flush(s, f->composed, p, buf, err)))
        return rc;
    if ((rc = slu_grow(&s->cp, &s->cap_cp, s->n_cp + n, sizeof *s->cp, err)))
        return rc;
    for (unsigned i = 0; i < n; i++) {
        uint32_t x = part[i];
        s->cp[s->n_cp++] =
            x | (norm_bits(x) & NORM_BIT_NFD ? class_of(x) << 24 : 0) | (i ? MORE : 0);
    }
    return SLU_OK;
}

int norm_form(struct norm_scratch *s, enum norm_kind kind, const uint8_t *p, size_t n,
              struct slu_buf *buf, const uint8_t **out, size_t *n_out,
              struct slu_err *err)
{
    static const struct form FORM[] = {
        [NORM_NFC] = {false, true, NORM_BIT_NFC},
        [NORM_NFD] = {false, false, NORM_BIT_NFD},
        [NORM_NFKC] = {true, true, NORM_BIT_NFKC},
        [NORM_NFKD] = {true, false, NORM_BIT_NFKD},
    };
    const struct form *f = &FORM[kind];
    size_t done = 0, cut = 0, pos = 0;
    unsigned len;
    int rc;

    *out = p;
    *n_out = n;
    while (pos < n) {
        if (p[pos] < 0x80) {
            pos = norm_skip_ascii(p, n, pos);
            cut = pos - 1;
            continue;
        }
        if (!(norm_bits(uni_decode(p + pos, &len)) & f->bit)) {
            cut = pos;
            pos += len;
            continue;
        }
        if (done == 0)
            slu_buf_clear(buf);
        if ((rc = slu_buf_append(buf, p + done, cut - done, err)))
            return rc;
        s->at = cut;
        for (pos = cut; pos < n; pos += len) {
            uint32_t c = uni_decode(p + pos, &len);
            if (pos > cut && !(norm_bits(c) & f->bit))
                break;
            if ((rc = put_char(s, f, c, p, buf, err)))
                return rc;
        }
        if ((rc = flush(s, f->composed, p, buf, err)))
            return rc;
        done = cut = pos;
    }
    if (!done)
        return SLU_OK;
    if ((rc = slu_buf_append(buf, p + done, n - done, err)))
        return rc;
    *out = buf->data;
    *n_out = buf->len;
    return SLU_OK;
}
