/* shard_parquet.h - what the shard formats that are Parquet files share. */
#ifndef SLU_SHARD_PARQUET_H
#define SLU_SHARD_PARQUET_H

#include "formats/parquet/parquet.h"
#include "formats/shards/shard.h"

/* State of a run. */
struct slu_parquet_shards {
    const struct slu_parquet *lib;
    int level; /* of zstd; 0: not compressed */
    struct slu_meta_fields meta;
};

/* column: the names of the format's n_column columns, which no field of metadata may
 * have. */
SLU_MUST_USE int slu_parquet_shards_new(void **state, const struct slu_shards_cfg *cfg,
                                        const char *const *column, unsigned n_column,
                                        struct slu_err *err);
void slu_parquet_shards_release(void *state); /* NULL is legal */
/* Sequences of a shard by default. */
uint64_t slu_parquet_shards_auto(const struct slu_shard_bucket *b);
/* Writes the shard's table, of which columns, lists and their context are set, with the
 * columns of metadata. */
SLU_MUST_USE int slu_parquet_shards_write(const struct slu_parquet_shards *p,
                                          struct slu_parquet_table *t,
                                          const struct slu_shard *s,
                                          const struct slu_batch *b,
                                          struct slu_buf *out, struct slu_err *err);
/* slu_shard_format.build_byte of n_column lists of int32, of which all but one have a
 * value for each id. */
uint64_t slu_parquet_shards_byte(const struct slu_shard_bucket *b, unsigned n_column);
/* slu_shard_format.check: lengths fit int32. */
SLU_MUST_USE int slu_parquet_shards_check(const struct slu_shard_format *f,
                                          const struct slu_shard_bucket *b,
                                          struct slu_err *err);
/* Writes the plain ids of a sequence; returns their number. */
uint64_t slu_parquet_shards_ids(const struct slu_batch *b, const struct slu_seq *q,
                                int32_t *out);
/* Finds the segment's value of the field with this key; p NULL: null. */
struct slu_meta_value slu_parquet_shards_value(const struct slu_batch *b,
                                               const struct slu_seg *seg, uint64_t key);

#endif
