/* mds_file.c - reads one MDS shard from beginning to end. */
#include <stdlib.h>
#include <string.h>

#include "formats/ids/raw_file.h"
#include "formats/mds/mds.h"
#include "lib/base/le.h"

enum { MAX_CONFIG = 1 << 20, MAX_HEAD = 1 + 1 + 63 * 8 };

struct slu_mds_file {
    struct slu_raw *raw;
    struct slu_mds_columns own; /* the columns of the shard's own configuration */
    struct slu_buf off;         /* n + 1 offsets, as stored */
    uint64_t n, at;             /* number of samples, and number reached */
    unsigned n_free;            /* number of columns without a fixed size */
    struct slu_buf sizes;       /* their sizes in the current sample */
    uint64_t id_byte;           /* size of its ids, which are read next */
    uint64_t behind;            /* size of the data after the ids */
};

/* Size of column i in the current sample. */
static uint64_t column_byte(const struct slu_mds_file *f, unsigned i)
{
    unsigned free_before = 0;
    if (f->own.size[i])
        return f->own.size[i];
    for (unsigned k = 0; k < i; k++)
        free_before += !f->own.size[k];
    return slu_le32(f->sizes.data + 4 * free_before);
}

static uint64_t offset(const struct slu_mds_file *f, uint64_t i)
{
    return slu_le32(f->off.data + 4 * i);
}

static int read_table(struct slu_mds_file *f, const struct slu_mds_file_cfg *cfg,
                      struct slu_err *err)
{
    uint8_t word[4];
    int rc = slu_raw_take(f->raw, word, 4, err);
    if (rc)
        return rc;
    f->n = slu_le32(word);
    uint64_t table = 4 * (f->n + 1);
    if (cfg->samples != UINT64_MAX && f->n != cfg->samples)
        return slu_fail(err, SLU_E_FORMAT, "has %llu samples, and its index says %llu",
                        (unsigned long long)f->n, (unsigned long long)cfg->samples);
    if (!cfg->zstd && table > slu_raw_stored(f->raw))
        return slu_fail(err, SLU_E_TRUNCATED, "ends within its table of %llu samples",
                        (unsigned long long)f->n);
    if (cfg->max_byte && table > cfg->max_byte)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_LIMIT,
                                   "%llu samples are too many for this memory",
                                   (unsigned long long)f->n));
    rc = slu_raw_append(f->raw, &f->off, table, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < f->n; i++)
        if (offset(f, i) > offset(f, i + 1))
            return slu_fail(
                err, SLU_E_FORMAT,
                "sample %llu ends before it begins: its table of samples is damaged",
                (unsigned long long)i);
    if (offset(f, 0) < 4 + table)
        return slu_fail(err, SLU_E_FORMAT,
                        "its first sample begins within its table of samples");
    if (cfg->raw_byte != UINT64_MAX && offset(f, f->n) != cfg->raw_byte)
        return slu_fail(err, SLU_E_FORMAT, "has %llu bytes, and its index says %llu",
                        (unsigned long long)offset(f, f->n),
                        (unsigned long long)cfg->raw_byte);
    if (!cfg->zstd && offset(f, f->n) != slu_raw_stored(f->raw))
        return slu_fail(err, SLU_E_TRUNCATED,
                        "has %llu bytes, and its table of samples says %llu: bytes "
                        "were cut off or added",
                        (unsigned long long)slu_raw_stored(f->raw),
                        (unsigned long long)offset(f, f->n));
    return SLU_OK;
}

/* Reads the shard's own configuration, which the index repeats. */
static int read_config(struct slu_mds_file *f, const struct slu_mds_file_cfg *cfg,
                       struct slu_err *err)
{
    const struct slu_mds_columns *known = cfg->columns;
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    uint64_t n = offset(f, 0) - slu_raw_tell(f->raw);
    int rc =
        n <= MAX_CONFIG
            ? slu_raw_append(f->raw, &text, n, err)
            : slu_fail(err, SLU_E_FORMAT,
                       "the size of its configuration, %llu bytes, is not possible",
                       (unsigned long long)n);
    if (!rc && slu_json_parse(&j, text.data, text.len, err))
        rc = slu_err_at(err, "its configuration");
    if (!rc)
        rc = slu_mds_columns_parse(
            &f->own, slu_json_root(j), known ? known->name : cfg->column,
            known && known->plain ? slu_mds_width(known->type) : 0, err);
    if (!rc && known && !slu_mds_columns_equal(&f->own, known))
        rc = slu_fail(err, SLU_E_FORMAT, "its columns differ from those in its index");
    slu_json_free(j);
    slu_buf_release(&text);
    return rc;
}

int slu_mds_file_open(struct slu_mds_file **out, const struct slu_mds_file_cfg *cfg,
                      struct slu_err *err)
{
    struct slu_mds_file *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    int rc = slu_raw_open(&f->raw, cfg->path, cfg->zstd, cfg->n_byte, err);
    if (!rc && cfg->raw_hash)
        rc = slu_raw_expect(f->raw, false, cfg->raw_hash, cfg->raw_hex, err);
    if (!rc && cfg->stored_hash)
        rc = slu_raw_expect(f->raw, true, cfg->stored_hash, cfg->stored_hex, err);
    if (!rc)
        rc = read_table(f, cfg, err);
    if (!rc)
        rc = read_config(f, cfg, err);
    for (unsigned i = 0; !rc && i < f->own.n; i++)
        f->n_free += !f->own.size[i];
    if (rc)
        slu_mds_file_free(f);
    else
        *out = f;
    return rc;
}

static int bad_sample(const struct slu_mds_file *f, struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_FORMAT,
        "sample %llu: the sizes of its columns differ from the sample's size",
        (unsigned long long)f->at);
}

/* Reads up to the bytes of the column with the ids. */
static int begin_sample(struct slu_mds_file *f, struct slu_err *err)
{
    uint64_t left = offset(f, f->at + 1) - offset(f, f->at), sum = 4 * f->n_free;
    slu_buf_clear(&f->sizes);
    if (left < sum)
        return bad_sample(f, err);
    int rc = slu_raw_append(f->raw, &f->sizes, sum, err);
    uint64_t before = 0;
    if (rc)
        return rc;
    for (unsigned i = 0; i < f->own.n; i++) {
        uint64_t n = column_byte(f, i);
        before += i < f->own.at ? n : 0;
        f->behind += i > f->own.at ? n : 0;
        sum += n;
    }
    f->id_byte = column_byte(f, f->own.at);
    return sum == left ? slu_raw_skip(f->raw, before, err) : bad_sample(f, err);
}

/* Reads the type and shape of an ndarray, as far as the sample states them. */
static int read_shape(struct slu_mds_file *f, enum slu_mds_type *type, uint64_t *n_id,
                      struct slu_err *err)
{
    uint8_t b[MAX_HEAD] = {0};
    unsigned larger = 0;
    uint64_t n = 1;
    int rc = SLU_OK;
    if (!*type) {
        if (!f->id_byte--)
            return bad_sample(f, err);
        rc = slu_raw_take(f->raw, b, 1, err);
        *type = b[0];
    }
    if (!rc && !slu_mds_width(*type))
        *type = SLU_MDS_ANY;
    if (!rc && !strcmp(slu_mds_type_name(*type), "any type"))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "sample %llu: column %s does not hold integers",
                        (unsigned long long)f->at, f->own.name);
    if (rc || *n_id)
        return rc;
    if (!f->id_byte--)
        return bad_sample(f, err);
    rc = slu_raw_take(f->raw, b, 1, err);
    unsigned n_dim = b[0] >> 2, width = 1U << (b[0] & 3);
    if (rc || f->id_byte < (uint64_t)n_dim * width)
        return rc ? rc : bad_sample(f, err);
    f->id_byte -= n_dim * width;
    rc = slu_raw_take(f->raw, b, (uint64_t)n_dim * width, err);
    for (unsigned i = 0; i < n_dim; i++) {
        uint8_t v[8] = {0};
        memcpy(v, b + i * width, width);
        larger += slu_le64(v) != 1;
        n = slu_le64(v) != 1 ? slu_le64(v) : n;
    }
    if (!rc && (!n_dim || larger > 1))
        rc = slu_fail(
            err, SLU_E_UNSUPPORTED,
            "sample %llu: column %s has %u dimensions; ids are read from arrays of one",
            (unsigned long long)f->at, f->own.name, n_dim);
    *n_id = n;
    return rc;
}

int slu_mds_file_next(struct slu_mds_file *f, enum slu_mds_type *type, uint64_t *n_id,
                      struct slu_err *err)
{
    uint64_t rest = f->id_byte + f->behind;
    f->id_byte = f->behind = 0;
    int rc = slu_raw_skip(f->raw, rest, err);
    if (!rc && f->at == f->n) {
        rc = slu_raw_end(f->raw, err);
        return rc ? rc : SLU_EOF;
    }
    *type = f->own.type;
    *n_id = f->own.n_id;
    if (!rc)
        rc = begin_sample(f, err);
    if (!rc && f->own.plain)
        *n_id = f->id_byte / slu_mds_width(*type);
    else if (!rc)
        rc = read_shape(f, type, n_id, err);
    if (rc)
        return rc;
    /* Divides instead of multiplying, so that no product overflows. */
    if (f->id_byte % slu_mds_width(*type) ||
        f->id_byte / slu_mds_width(*type) != *n_id || (!*n_id && !f->own.plain))
        return slu_fail(
            err, SLU_E_FORMAT,
            "sample %llu: column %s of %llu bytes is not a list of %llu ids of type %s",
            (unsigned long long)f->at, f->own.name, (unsigned long long)f->id_byte,
            (unsigned long long)*n_id, slu_mds_type_name(*type));
    f->at++;
    return SLU_OK;
}

int slu_mds_file_ids(struct slu_mds_file *f, struct slu_buf *out, struct slu_err *err)
{
    uint64_t n = f->id_byte;
    f->id_byte = 0;
    return slu_raw_append(f->raw, out, n, err);
}

uint64_t slu_mds_file_at(const struct slu_mds_file *f)
{
    return f->at;
}

void slu_mds_file_free(struct slu_mds_file *f)
{
    if (!f)
        return;
    slu_raw_free(f->raw);
    slu_mds_columns_release(&f->own);
    slu_buf_release(&f->off);
    slu_buf_release(&f->sizes);
    free(f);
}
