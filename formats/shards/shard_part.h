/* shard_part.h - journals of the parts of a shard set: names, first and last lines.
 *
 * The first line is that of every journal, with the part's number and its spans, as
 * [first shard, sequences, last] a bucket. A journal is whole when it ends with a line
 *
 *   {"end":{"shards","dropped":{…},"rows":[{"bucket","bytes","xxh3_64"}…]},
 *    "xxh3_64":HASH}
 *
 * HASH: XXH3-64 of all bytes before `,"xxh3_64":HASH`. Its shards are then in order.
 */
#ifndef SLU_SHARD_PART_H
#define SLU_SHARD_PART_H

#include "formats/shards/shard_private.h"

/* A whole journal's last line. */
struct slu_shards_end {
    uint64_t n_shard;
    struct slu_sum dropped;
    struct slu_digest rows[SLU_MAX_BUCKETS]; /* n_byte 0: the part has none of it */
};

/* Appends WORK/shards.J-of-R.SUFFIX and a NUL. */
int slu_shards_part_path(const char *work, uint64_t index, uint64_t of,
                         const char *suffix, struct slu_buf *path, struct slu_err *err);
/* What all parts agree upon: the folder's mark. */
int slu_shards_part_mark(const struct slu_shards *s, uint64_t of,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err);
/* A part's first line. */
int slu_shards_part_head(const struct slu_shards *s, const struct slu_shards_part *part,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err);
/* Appends the last line to a journal's other lines. */
int slu_shards_put_end(const struct slu_shards *s, const struct slu_shards_end *e,
                       struct slu_buf *t, struct slu_err *err);
/* Is the text a whole journal? Sets *e and where its last line begins. *damaged: it
 * was, but bytes have changed. */
bool slu_shards_get_end(const struct slu_shards *s, const struct slu_buf *text,
                        struct slu_shards_end *e, size_t *at, bool *damaged);
/* Adds a shard's line, the next one of its bucket, to facts and sums. */
int slu_shards_adopt(struct slu_shards_bucket *b, const struct slu_shards_done *d,
                     struct slu_err *err);
/* Have the shard's files, or the part's rows, their sizes? SLU_E_TRUNCATED names the
 * file that has not. */
int slu_shards_check_sizes(const struct slu_shards *s,
                           const struct slu_shards_bucket *b,
                           const struct slu_shard_facts *f, struct slu_err *err);
/* Has everything in the folder, which has a report.json, the size that this and
 * manifest.jsonl say? */
bool slu_shards_set_is_there(const struct slu_shards *s);
int slu_shards_check_rows(const struct slu_shards *s, const char *work, uint64_t index,
                          uint64_t of, const struct slu_shards_end *e,
                          struct slu_err *err);

#endif
