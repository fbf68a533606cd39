/* fasttext_check.c - checks a model's file before libfasttext reads it. The layout is
 * that of FastText::saveModel, versions 11 and 12. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/filter/fasttext.h"

enum { MAGIC = 793712314, SUPERVISED = 3, MOST_DIM = 1 << 20, CENTROIDS = 256 };
#define MOST_COUNT (INT64_C(1) << 49) /* counts of a tree's leaves are below 10^15 */

struct model {
    FILE *f;
    uint64_t size;
    bool bad;
    int32_t dim, word_ngrams, loss, bucket, minn, maxn;
    int32_t n_word, n_label;
    int64_t n_pruned; /* -1: not pruned */
};

static void take(struct model *m, void *p, size_t n)
{
    if (m->bad || fread(p, 1, n, m->f) != n) {
        m->bad = true;
        memset(p, 0, n);
    }
}

static int32_t take32(struct model *m)
{
    int32_t v;
    take(m, &v, sizeof v);
    return v;
}

static int64_t take64(struct model *m)
{
    int64_t v;
    take(m, &v, sizeof v);
    return v;
}

static void must(struct model *m, bool good)
{
    m->bad |= !good;
}

/* Passes over n elements, which must be in the file. */
static void skip(struct model *m, int64_t n, int64_t size)
{
    const int64_t at = m->bad ? -1 : ftello(m->f);

    if (m->bad)
        return;
    must(m, at >= 0 && n >= 0 && (uint64_t)at <= m->size &&
                (uint64_t)n <= (m->size - (uint64_t)at) / (uint64_t)size);
    if (!m->bad)
        must(m, !fseeko(m->f, n * size, SEEK_CUR));
}

static void args(struct model *m)
{
    m->dim = take32(m);
    skip(m, 4, 4); /* ws, epoch, minCount, neg */
    m->word_ngrams = take32(m);
    m->loss = take32(m);
    must(m, take32(m) == SUPERVISED);
    m->bucket = take32(m);
    m->minn = take32(m);
    m->maxn = take32(m);
    skip(m, 12, 1); /* lrUpdateRate, t */
    must(m, m->dim > 0 && m->dim <= MOST_DIM && m->loss >= 1 && m->loss <= 4);
    must(m, m->bucket >= 0 && m->minn >= 0 && m->maxn >= 0 && m->word_ngrams >= 0);
    must(m, m->bucket || (m->word_ngrams < 2 && !m->maxn));
}

static void entry(struct model *m, bool is_label)
{
    int c;

    while (!m->bad && (c = getc(m->f)) != 0)
        must(m, c != EOF);
    const int64_t count = take64(m);
    uint8_t type;
    take(m, &type, 1);
    must(m, count >= 0 && count < MOST_COUNT && type == is_label);
}

static void dictionary(struct model *m)
{
    const int32_t n = take32(m);

    m->n_word = take32(m);
    m->n_label = take32(m);
    must(m, take64(m) >= 0);
    m->n_pruned = take64(m);
    must(m, m->n_word > 0 && m->n_label > 0 && m->n_pruned >= -1);
    must(m, (int64_t)m->n_word + m->n_label == n);
    for (int32_t i = 0; i < n && !m->bad; i++)
        entry(m, i >= m->n_word);
    for (int64_t i = 0; i < m->n_pruned && !m->bad; i++) {
        must(m, take32(m) >= 0);
        const int32_t to = take32(m);
        must(m, to >= 0 && to < m->n_pruned);
    }
}

static bool flag(struct model *m)
{
    uint8_t v;
    take(m, &v, 1);
    must(m, v <= 1);
    return v == 1;
}

static void quantizer(struct model *m, int64_t dim, int32_t *n_sub)
{
    const int32_t has = take32(m), n = take32(m), sub = take32(m), last = take32(m);

    must(m, has == dim && sub > 0 && sub <= dim);
    *n_sub = m->bad ? 0 : (int32_t)((dim + sub - 1) / sub);
    must(m, n == *n_sub && last == (m->bad || dim % sub == 0 ? sub : dim % sub));
    skip(m, dim * CENTROIDS, 4);
}

static void matrix(struct model *m, bool quantized, int64_t least, int64_t most)
{
    const bool normed = quantized && flag(m);
    const int64_t rows = take64(m), columns = take64(m);
    int32_t n_sub = 0;

    must(m, rows >= least && rows <= most && columns == m->dim);
    if (!quantized) {
        skip(m, rows, (int64_t)m->dim * 4);
        return;
    }
    const int32_t n_code = take32(m);
    skip(m, n_code, 1);
    quantizer(m, columns, &n_sub);
    must(m, n_code == rows * n_sub);
    if (normed) {
        skip(m, rows, 1);
        quantizer(m, 1, &n_sub);
    }
}

static void check(struct model *m)
{
    must(m, take32(m) == MAGIC);
    const int32_t version = take32(m);
    must(m, version == 11 || version == 12);
    args(m);
    dictionary(m);
    const bool quantized = flag(m), pruned = m->n_pruned >= 0;
    const int64_t all = (int64_t)m->n_word + (pruned ? m->n_pruned : m->bucket);
    must(m, quantized || !pruned);
    matrix(m, quantized, all, all);
    const bool output = flag(m);
    matrix(m, quantized && output, m->n_label, m->n_label);
    must(m, m->bad || getc(m->f) == EOF);
}

int slu_fasttext_check(const char *path, struct slu_err *err)
{
    struct model m = {.f = fopen(path, "rbe")};
    struct stat st;

    if (!m.f || fstat(fileno(m.f), &st)) {
        const int rc = slu_fail_errno(err, "%s", path);
        if (m.f)
            fclose(m.f);
        return rc;
    }
    m.size = (uint64_t)st.st_size;
    m.bad = !S_ISREG(st.st_mode);
    check(&m);
    fclose(m.f);
    return m.bad ? slu_fail(err, SLU_E_FORMAT,
                            "%s: is not a whole model of fastText's supervised "
                            "training, as 'fasttext supervised' writes it (.bin, .ftz)",
                            path)
                 : SLU_OK;
}
