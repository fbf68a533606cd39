/* mds.h - MosaicML's MDS shards (mosaicml-streaming, format version 2), read sample by
 * sample: one column of integers of each, as it is stored.
 *
 *   u32 n, u32 off[n + 1] from the file's begin; the shard's configuration, JSON; n
 *   samples: u32 size of each column of no fixed size, then the columns' bytes. Columns
 *   are those that column_names, column_encodings and column_sizes list.
 *
 * An ndarray's bytes are [a byte that codes its type, where the encoding names none]
 * [ndim << 2 | log2 of the bytes of a dimension, then the dimensions, where the
 * encoding names no shape] values. Everything is little-endian.
 *
 * Whatever a shard or an index says is checked before memory is taken for it. Messages
 * of this module do not name the file, but for the index; callers do.
 */
#ifndef SLU_MDS_H
#define SLU_MDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

/* Types of integers, as an ndarray's type byte has them. */
enum slu_mds_type {
    SLU_MDS_ANY = 0, /* each sample says its own */
    SLU_MDS_U8 = 8,
    SLU_MDS_I8 = 9,
    SLU_MDS_U16 = 16,
    SLU_MDS_I16 = 17,
    SLU_MDS_U32 = 32,
    SLU_MDS_I32 = 33,
    SLU_MDS_U64 = 64,
    SLU_MDS_I64 = 65,
};
static inline unsigned slu_mds_width(enum slu_mds_type t)
{
    return (unsigned)t / 8;
}
/* "uint16", … */
const char *slu_mds_type_name(enum slu_mds_type t);

/* ---- columns ---- */

struct slu_mds_columns {
    unsigned n;
    uint64_t *size; /* bytes of each column, 0: a sample says; owned */
    unsigned at;    /* the column that is wanted */
    char *name;     /* its name; owned */
    bool plain;     /* it is of type `bytes`: values alone */
    enum slu_mds_type type;
    uint64_t n_id; /* by its fixed shape, 0: a sample says */
};

/* From an object with column_names, column_encodings and column_sizes. `want`: the
 * column's name, NULL: tokens, or input_ids. bytes_width: of the integers in a column
 * of type `bytes`, 0: not known. Where it fails there is nothing to release. */
SLU_MUST_USE int slu_mds_columns_parse(struct slu_mds_columns *c,
                                       struct slu_json_value v, const char *want,
                                       unsigned bytes_width, struct slu_err *err);
bool slu_mds_columns_equal(const struct slu_mds_columns *a,
                           const struct slu_mds_columns *b);
void slu_mds_columns_release(struct slu_mds_columns *c);

/* ---- one shard ---- */

struct slu_mds_file;

struct slu_mds_file_cfg {
    const char *path; /* borrowed for the call */
    bool zstd;
    const struct slu_mds_columns *columns; /* borrowed; NULL: what the shard says */
    uint64_t samples;  /* that it must have; UINT64_MAX: any number */
    uint64_t raw_byte; /* that it must come to; UINT64_MAX: any number */
    uint64_t max_byte; /* of its table; 0: no limit */
    /* Hashes that it must have (raw_file.h); NULL: not known. Borrowed for the call. */
    const char *raw_hash, *raw_hex, *stored_hash, *stored_hex;
    _Atomic uint64_t *n_byte; /* counts bytes of the file as they are read; or NULL */
};

/* Reads as far as the first sample. Caller frees with slu_mds_file_free. */
SLU_MUST_USE int slu_mds_file_open(struct slu_mds_file **f,
                                   const struct slu_mds_file_cfg *cfg,
                                   struct slu_err *err);
/* Looks at the next sample: the type of its ids and their number; SLU_EOF behind the
 * last, when the whole file has been checked. */
SLU_MUST_USE int slu_mds_file_next(struct slu_mds_file *f, enum slu_mds_type *type,
                                   uint64_t *n_id, struct slu_err *err);
/* Appends the ids of the sample that was looked at, as they are. */
SLU_MUST_USE int slu_mds_file_ids(struct slu_mds_file *f, struct slu_buf *out,
                                  struct slu_err *err);
/* Samples looked at so far. */
uint64_t slu_mds_file_at(const struct slu_mds_file *f);
void slu_mds_file_free(struct slu_mds_file *f);

/* ---- the index of a folder ---- */

struct slu_mds_shard {
    char *path; /* in the folder; owned, as what follows */
    bool zstd;
    char *compression; /* its name where it is another than zstd, else NULL */
    char *raw_path;    /* of its uncompressed copy, where it has both, else NULL */
    uint64_t samples, raw_byte;
    char *raw_hash, *raw_hex, *stored_hash, *stored_hex; /* or NULL */
    struct slu_mds_columns *columns; /* the same for equal ones; owned by the index */
};
struct slu_mds_index {
    struct slu_mds_shard *shard;
    size_t n_shard, cap_shard;
    struct slu_mds_columns **columns;
    size_t n_columns, cap_columns;
};

/* Whether dir/index.json looks like one of MDS: by its first 64 KiB. */
bool slu_mds_index_is(const char *dir);
/* dir/index.json; messages name it. Caller releases, also when it fails. */
SLU_MUST_USE int slu_mds_index_load(struct slu_mds_index *x, const char *dir,
                                    const char *want, unsigned bytes_width,
                                    struct slu_err *err);
void slu_mds_index_release(struct slu_mds_index *x);

#endif
