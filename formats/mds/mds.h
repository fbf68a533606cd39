/* mds.h - reads MosaicML's MDS shards (mosaicml-streaming, format version 2) sample by
 * sample; of each sample one column of integers, as it is stored.
 *
 *   u32 n, u32 off[n + 1] from the file's beginning; the shard's configuration, JSON; n
 *   samples: u32 size of each column without a fixed size, then the columns' bytes. The
 *   columns are listed in column_names, column_encodings and column_sizes.
 *
 * The bytes of an ndarray are
 *   a byte that codes the type, if the encoding names none;
 *   ndim << 2 | log2 of the bytes of a dimension, then the dimensions, if the encoding
 *   names no shape;
 *   the values.
 * All numbers are little-endian.
 *
 * All numbers in a shard or an index are checked before memory is allocated for them.
 * Messages of this module do not name the file, except for those about the index;
 * callers add the name.
 */
#ifndef SLU_MDS_H
#define SLU_MDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

/* Types of integers, with the codes of an ndarray's type byte. */
enum slu_mds_type {
    SLU_MDS_ANY = 0, /* each sample states its type */
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
    uint64_t *size; /* bytes of each column, 0: each sample states them; owned */
    unsigned at;    /* number of the column with the ids */
    char *name;     /* name of that column; owned */
    bool plain;     /* the column has type `bytes`: values only */
    enum slu_mds_type type;
    uint64_t n_id; /* ids, if the shape is fixed; 0: each sample states them */
};

/* Parses an object with column_names, column_encodings and column_sizes. `want`: name
 * of the column; NULL: tokens, or input_ids. bytes_width: width of the integers in a
 * column of type `bytes`; 0: not known. After a failure there is nothing to release. */
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
    const struct slu_mds_columns *columns; /* borrowed; NULL: use the columns that
                                              the shard states */
    const char *column; /* with columns NULL: name of the column with the ids; NULL:
                           tokens, or input_ids. Borrowed for the call */
    uint64_t samples;   /* required number of samples; UINT64_MAX: any */
    uint64_t raw_byte;  /* required uncompressed size; UINT64_MAX: any */
    uint64_t max_byte;  /* largest size of its table; 0: no limit */
    /* Hashes that the shard must have (raw_file.h); NULL: not known. Borrowed for the
     * call. */
    const char *raw_hash, *raw_hex, *stored_hash, *stored_hex;
    _Atomic uint64_t *n_byte; /* counts the bytes read from the file; or NULL */
};

/* Opens the shard and reads up to the first sample. Caller frees with
 * slu_mds_file_free. */
SLU_MUST_USE int slu_mds_file_open(struct slu_mds_file **f,
                                   const struct slu_mds_file_cfg *cfg,
                                   struct slu_err *err);
/* Goes to the next sample and returns the type and number of its ids; SLU_EOF after the
 * last, when the whole file has been checked. */
SLU_MUST_USE int slu_mds_file_next(struct slu_mds_file *f, enum slu_mds_type *type,
                                   uint64_t *n_id, struct slu_err *err);
/* Appends the ids of the current sample, unchanged. */
SLU_MUST_USE int slu_mds_file_ids(struct slu_mds_file *f, struct slu_buf *out,
                                  struct slu_err *err);
/* Number of samples reached so far. */
uint64_t slu_mds_file_at(const struct slu_mds_file *f);
void slu_mds_file_free(struct slu_mds_file *f);

/* ---- the index of a folder ---- */

struct slu_mds_shard {
    char *path; /* path in the folder; owned, like the next fields */
    bool zstd;
    char *compression; /* name of a compression other than zstd, else NULL */
    char *raw_path;    /* path of the uncompressed copy, if there are both, else NULL */
    uint64_t samples, raw_byte;
    char *raw_hash, *raw_hex, *stored_hash, *stored_hex; /* or NULL */
    struct slu_mds_columns *columns; /* shared by shards with equal columns; owned by
                                        the index */
};
struct slu_mds_index {
    struct slu_mds_shard *shard;
    size_t n_shard, cap_shard;
    struct slu_mds_columns **columns;
    size_t n_columns, cap_columns;
};

/* Whether the first 64 KiB of dir/index.json look like an MDS index. */
bool slu_mds_index_is(const char *dir);
/* Reads dir/index.json; messages name this file. Caller releases x, also after a
 * failure. */
SLU_MUST_USE int slu_mds_index_load(struct slu_mds_index *x, const char *dir,
                                    const char *want, unsigned bytes_width,
                                    struct slu_err *err);
void slu_mds_index_release(struct slu_mds_index *x);

#endif
