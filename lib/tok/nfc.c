/* nfc.c - normal form C of the stretches of a text that need it. */
#include "lib/tok/nfc.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/tok/unicode.h"

struct range {
    uint32_t from, to;
};

static bool is_in(uint32_t c, const struct range *r, size_t n)
{
    size_t lo = 0, hi = n;

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (r[mid].from <= c)
            lo = mid;
        else
            hi = mid;
    }
    return c >= r[lo].from && c <= r[lo].to;
}

/* Characters that are in normal form by themselves, begin a new sequence (combining
 * class 0) and never compose with what is before them: the text can be cut in front of
 * each. Only the common blocks; what is missing here is merely slower. */
static bool is_starter(uint32_t c)
{
    static const struct range SAFE[] = {
        {0x0000, 0x02FF}, {0x038E, 0x03CE}, {0x0400, 0x0482}, {0x048A, 0x0530},
        {0x05D0, 0x05EA}, {0x0620, 0x064A}, {0x0905, 0x0928}, {0x0E01, 0x0E30},
        {0x10A0, 0x10FF}, {0x1E00, 0x1EFF}, {0x2010, 0x205E}, {0x2070, 0x20CF},
        {0x2190, 0x22FF}, {0x2330, 0x23FF}, {0x2500, 0x27BF}, {0x3003, 0x3029},
        {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x30FC, 0x30FC}, {0x4E00, 0x9FFF},
        {0xAC00, 0xD7A3}, {0xFF01, 0xFF9D},
    };

    return c < 0x300 || is_in(c, SAFE, sizeof SAFE / sizeof *SAFE);
}

/* Characters that came after Unicode 9.0 and that a later version reorders or composes;
 * to the reference they are starters that nothing happens to. */
static bool is_newer(uint32_t c)
{
    static const struct range NEWER[] = {
        {0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
        {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},
        {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
        {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
        {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x113CE, 0x113D0},
        {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E},
        {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
        {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
        {0x11F41, 0x11F42}, {0x1612F, 0x1612F}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
        {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
        {0x1E5EE, 0x1E5EF},
    };

    return c >= NEWER[0].from && is_in(c, NEWER, sizeof NEWER / sizeof *NEWER);
}

static unsigned class_of(int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

/* Stable, by class; tmp has room for n. */
static void sort_marks(int32_t *c, size_t n, int32_t *tmp)
{
    size_t start[257] = {0};

    memcpy(tmp, c, n * sizeof *c);
    for (size_t i = 0; i < n; i++)
        start[class_of(c[i]) + 1]++;
    for (unsigned k = 1; k < 257; k++)
        start[k] += start[k - 1];
    for (size_t i = 0; i < n; i++)
        c[start[class_of(tmp[i])]++] = tmp[i];
}

/* The canonical order of marks. utf8proc's own takes quadratic time: a text of a few
 * hundred kilobytes of marks would hold everything up for minutes. */
static int order(int32_t *c, size_t n, struct slu_err *err)
{
    int32_t *tmp = NULL;

    for (size_t i = 0, j; i < n; i = j) {
        bool sorted = true;
        unsigned last = class_of(c[i]), k;
        for (j = i + 1; last && j < n && (k = class_of(c[j])); j++, last = k)
            sorted = sorted && k >= last;
        if (sorted)
            continue;
        if (!tmp && !(tmp = malloc(n * sizeof *tmp)))
            return slu_fail_nomem(err, n * sizeof *tmp);
        sort_marks(c + i, j - i, tmp);
    }
    free(tmp);
    return SLU_OK;
}

#define OPTIONS     (UTF8PROC_STABLE | UTF8PROC_COMPOSE)
#define MOST_OF_ONE 18 /* code points that one decomposes to; UAX #15 says 4 */

static int append_normal(struct slu_buf *buf, const uint8_t *p, size_t n,
                         struct slu_err *err)
{
    int32_t *c = NULL;
    size_t n_c = 0, cap = 0;
    utf8proc_ssize_t got = 0;
    int rc = SLU_OK, bound = 0;

    for (size_t pos = 0; pos < n && !rc && got >= 0;) {
        unsigned len;
        int32_t one = (int32_t)uni_decode(p + pos, &len);
        pos += len;
        rc = slu_grow(&c, &cap, n_c + MOST_OF_ONE + 1, sizeof *c, err);
        if (rc)
            break;
        got = utf8proc_decompose_char(one, c + n_c, MOST_OF_ONE, OPTIONS, &bound);
        n_c += got > 0 ? (size_t)got : 0;
    }
    if (!rc && got >= 0)
        rc = order(c, n_c, err);
    if (!rc && got >= 0)
        got = utf8proc_reencode(c, (utf8proc_ssize_t)n_c, OPTIONS);
    if (!rc && got < 0)
        rc = slu_fail(err, SLU_E_FORMAT, "normal form C: %s", utf8proc_errmsg(got));
    if (!rc)
        rc = slu_buf_append(buf, c, (size_t)got, err);
    free(c);
    return rc;
}

int tok_nfc(const uint8_t *p, size_t n, struct slu_buf *buf, const uint8_t **out,
            size_t *out_len, struct slu_err *err)
{
    size_t done = 0, starter = 0, pos = 0;
    int rc;

    *out = p;
    *out_len = n;
    slu_buf_clear(buf);
    while (pos < n) {
        unsigned len;
        if (p[pos] < 0x80) {
            starter = pos++;
            continue;
        }
        uint32_t c = uni_decode(p + pos, &len);
        if (is_starter(c)) {
            starter = pos;
            pos += len;
            continue;
        }
        if (is_newer(c)) {
            pos += len;
            starter = pos; /* and not before it: nothing composes with this one */
            continue;
        }
        /* From the starter before it to the next one. */
        while (pos < n) {
            c = uni_decode(p + pos, &len);
            if (is_starter(c) || is_newer(c))
                break;
            pos += len;
        }
        if ((rc = slu_buf_append(buf, p + done, starter - done, err)) < 0 ||
            (rc = append_normal(buf, p + starter, pos - starter, err)) < 0)
            return rc;
        done = starter = pos;
    }
    if (!done)
        return SLU_OK;
    if ((rc = slu_buf_append(buf, p + done, n - done, err)) < 0)
        return rc;
    *out = buf->data;
    *out_len = buf->len;
    return SLU_OK;
}
