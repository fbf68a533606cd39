/* Converts ids of all widths to those of a stream, and reads columns of a table. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/le.h"
#include "tokens_docs.h"

enum { BLOCK_BYTES = 1 << 16 /* a multiple of every element's size */ };

static const struct {
    unsigned bytes;
    uint64_t below; /* exclusive upper bound of ids */
} types[] = {
    [SLU_ID_U8] = {1, 1u << 8},
    [SLU_ID_I8] = {1, 1u << 7},
    [SLU_ID_U16] = {2, 1u << 16},
    [SLU_ID_I16] = {2, 1u << 15},
    [SLU_ID_U32] = {4, UINT64_C(1) << 32},
    [SLU_ID_I32] = {4, UINT64_C(1) << 31},
    [SLU_ID_I64] = {8, UINT64_C(1) << 32}, /* limit of ids, not of the type */
};

unsigned slu_id_bytes(enum slu_id_type type)
{
    return types[type].bytes;
}

uint64_t slu_id_below(enum slu_id_type type)
{
    return types[type].below;
}

static uint64_t load(const uint8_t *p, unsigned bytes)
{
    return bytes == 1   ? p[0]
           : bytes == 2 ? slu_le16(p)
           : bytes == 4 ? slu_le32(p)
                        : slu_le64(p);
}

/* Returns the largest of n unsigned integers at p, which may be unaligned: of each
 * quarter, so that a maximum does not wait for the one before it. */
#define LARGEST(NAME, T)                                                               \
    static uint64_t NAME(const uint8_t *p, uint64_t n)                                 \
    {                                                                                  \
        const uint64_t part = n / 4;                                                   \
        T a = 0, b = 0, c = 0, d = 0, v[4];                                            \
        for (uint64_t i = 0; i < part; i++) {                                          \
            memcpy(&v[0], p + i * sizeof *v, sizeof *v);                               \
            memcpy(&v[1], p + (part + i) * sizeof *v, sizeof *v);                      \
            memcpy(&v[2], p + (2 * part + i) * sizeof *v, sizeof *v);                  \
            memcpy(&v[3], p + (3 * part + i) * sizeof *v, sizeof *v);                  \
            a = v[0] > a ? v[0] : a;                                                   \
            b = v[1] > b ? v[1] : b;                                                   \
            c = v[2] > c ? v[2] : c;                                                   \
            d = v[3] > d ? v[3] : d;                                                   \
        }                                                                              \
        for (uint64_t i = 4 * part; i < n; i++) {                                      \
            memcpy(v, p + i * sizeof *v, sizeof *v);                                   \
            a = v[0] > a ? v[0] : a;                                                   \
        }                                                                              \
        a = b > a ? b : a;                                                             \
        c = d > c ? d : c;                                                             \
        return c > a ? c : a;                                                          \
    }
LARGEST(largest_8, uint8_t)
LARGEST(largest_16, uint16_t)
LARGEST(largest_32, uint32_t)
LARGEST(largest_64, uint64_t)

uint64_t slu_ids_largest(const void *p, uint64_t n, unsigned width)
{
    return width == 1   ? largest_8(p, n)
           : width == 2 ? largest_16(p, n)
           : width == 4 ? largest_32(p, n)
                        : largest_64(p, n);
}

/* Converts in place: forwards if ids shrink, backwards if they grow. */
#define CONVERT(NAME, FROM, TO)                                                        \
    static void NAME(uint8_t *p, uint64_t n)                                           \
    {                                                                                  \
        for (uint64_t k = 0; k < n; k++) {                                             \
            uint64_t i = sizeof(TO) > sizeof(FROM) ? n - 1 - k : k;                    \
            FROM v;                                                                    \
            memcpy(&v, p + i * sizeof v, sizeof v);                                    \
            TO id = (TO)v;                                                             \
            memcpy(p + i * sizeof id, &id, sizeof id);                                 \
        }                                                                              \
    }
CONVERT(from_8_to_16, uint8_t, uint16_t)
CONVERT(from_8_to_32, uint8_t, uint32_t)
CONVERT(from_16_to_32, uint16_t, uint32_t)
CONVERT(from_32_to_16, uint32_t, uint16_t)
CONVERT(from_64_to_16, uint64_t, uint16_t)
CONVERT(from_64_to_32, uint64_t, uint32_t)

void slu_ids_convert(void *p, uint64_t n, unsigned from, unsigned to)
{
    if (from == 1 && to == 2)
        from_8_to_16(p, n);
    else if (from == 1)
        from_8_to_32(p, n);
    else if (from == 2 && to == 4)
        from_16_to_32(p, n);
    else if (from == 4 && to == 2)
        from_32_to_16(p, n);
    else if (from == 8 && to == 2)
        from_64_to_16(p, n);
    else if (from == 8)
        from_64_to_32(p, n);
}

static int bad_id(const uint8_t *p, size_t n, enum slu_id_type type, uint64_t below,
                  const char *path, uint64_t first, struct slu_err *err)
{
    unsigned bytes = types[type].bytes;
    size_t i = 0;
    while (i + 1 < n && load(p + i * bytes, bytes) < below)
        i++;
    uint64_t v = load(p + i * bytes, bytes);
    bool negative = (type == SLU_ID_I8 || type == SLU_ID_I16 || type == SLU_ID_I32 ||
                     type == SLU_ID_I64) &&
                    v >> (8 * bytes - 1);
    if (negative)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: id %lld at position %llu is negative; ids are 0 or more",
                        path,
                        (long long)(v | (bytes == 8 ? 0 : ~UINT64_C(0) << (8 * bytes))),
                        (unsigned long long)(first + i));
    return slu_advise(
        err, SLU_ADVISE_VOCAB_SIZE,
        slu_fail(err, SLU_E_FORMAT,
                 "%s: id %llu at position %llu is not below the vocabulary size %llu",
                 path, (unsigned long long)v, (unsigned long long)(first + i),
                 (unsigned long long)below));
}

int slu_ids_take(void *buf, size_t n, enum slu_id_type type, unsigned want_bytes,
                 uint64_t vocab_size, const char *path, uint64_t first,
                 struct slu_err *err)
{
    unsigned bytes = types[type].bytes;
    uint64_t below = types[type].below < vocab_size ? types[type].below : vocab_size;
    bool every = bytes < 8 && below >> (8 * bytes); /* all values are valid */
    if (n && !every && slu_ids_largest(buf, n, bytes) >= below)
        return bad_id(buf, n, type, below, path, first, err);
    slu_ids_convert(buf, n, bytes, want_bytes);
    return SLU_OK;
}

/* ---- columns ---- */

void slu_column_init(struct slu_column *c, int fd, const char *name, uint64_t off_byte,
                     uint64_t n, unsigned bytes)
{
    *c = (struct slu_column){
        .fd = fd, .name = name, .off_byte = off_byte, .n = n, .bytes = bytes};
}

void slu_column_release(struct slu_column *c)
{
    free(c->block);
    c->block = NULL;
}

static int read_block(struct slu_column *c, struct slu_err *err)
{
    uint64_t left = c->n * c->bytes;
    size_t n = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
    if (!c->block)
        c->block = malloc(BLOCK_BYTES);
    if (!c->block)
        return slu_fail_nomem(err, BLOCK_BYTES);
    int rc = slu_pread_full(c->fd, c->block, n, c->off_byte, err);
    if (rc)
        return slu_err_at(err, "%s", c->name);
    c->off_byte += n;
    c->at = 0;
    c->end = n;
    return SLU_OK;
}

int slu_column_next(struct slu_column *c, const uint8_t **p, struct slu_err *err)
{
    int rc = c->at == c->end ? read_block(c, err) : SLU_OK;
    if (rc)
        return rc;
    *p = c->block + c->at;
    c->at += c->bytes;
    c->n--;
    return SLU_OK;
}

/* ---- files ---- */

int slu_docs_open_file(int *fd, uint64_t *n_byte, const char *path, struct slu_err *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &st)) {
        int rc = slu_fail_errno(err, "%s: cannot be opened", path);
        if (*fd >= 0)
            close(*fd);
        return rc;
    }
    if (!S_ISREG(st.st_mode)) {
        close(*fd);
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: is not a regular file; ids with an index must be in one",
                        path);
    }
    *n_byte = (uint64_t)st.st_size;
    return SLU_OK;
}

int slu_docs_check_width(const struct slu_tokens_cfg *cfg, const char *path,
                         unsigned bytes, struct slu_err *err)
{
    if (!cfg->tok_bytes || cfg->tok_bytes == bytes)
        return SLU_OK;
    return slu_advise(err, SLU_ADVISE_WIDTH_IN_HEADER,
                      slu_fail(err, SLU_E_USAGE,
                               "%s: ids of %u byte%s by its index, not of %u", path,
                               bytes, slu_plural(bytes), cfg->tok_bytes));
}
