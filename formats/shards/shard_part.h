/* shard_part.h - journals of the parts of a shard set: names, first and last lines.
 *
 * The first line is that of every journal, with the part's number and its spans, a
 * [first shard, sequences, last] for each bucket. A journal is complete when it ends
 * with the line
 *
 *   {"end":{"shards","dropped":{…},"rows":[{"bucket","bytes","xxh3_64"}…]},
 *    "xxh3_64":HASH}
 *
 * HASH: XXH3-64 of all bytes before `,"xxh3_64":HASH`. The shards of a complete journal
 * are in order.
 */
#ifndef SLU_SHARD_PART_H
#define SLU_SHARD_PART_H

#include "formats/shards/shard_private.h"

/* Contents of the last line of a complete journal. */
struct slu_shards_end {
    uint64_t n_shard;
    struct slu_sum dropped;
    struct slu_digest rows[SLU_MAX_BUCKETS]; /* n_byte 0: the part has no rows of
                                                this bucket */
};

/* Appends WORK/shards.J-of-R.SUFFIX and a NUL. */
int slu_shards_part_path(const char *work, uint64_t index, uint64_t of,
                         const char *suffix, struct slu_buf *path, struct slu_err *err);
/* Makes the folder's mark: the head that all parts share. */
int slu_shards_part_mark(const struct slu_shards *s, uint64_t of,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err);
/* Makes the first line of a part's journal. */
int slu_shards_part_head(const struct slu_shards *s, const struct slu_shards_part *part,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err);
/* Appends the last line to the other lines of a journal. */
int slu_shards_put_end(const struct slu_shards *s, const struct slu_shards_end *e,
                       struct slu_buf *t, struct slu_err *err);
/* Whether the text is a complete journal. Sets *e, and the position of the last line.
 * *damaged: the text was complete, but its bytes have changed. */
bool slu_shards_get_end(const struct slu_shards *s, const struct slu_buf *text,
                        struct slu_shards_end *e, size_t *at, bool *damaged);
/* Adds a shard's line, the next one of its bucket, to facts and sums. */
int slu_shards_adopt(struct slu_shards_bucket *b, const struct slu_shards_done *d,
                     struct slu_err *err);
/* Checks the shard's files in dir, or the part's rows: their sizes, SLU_E_TRUNCATED, and
 * if dir is a finished set, whose list is `set`, their hashes, SLU_E_MISMATCH: it may be
 * another set. The message names the file. set: NULL, or the list; a file that it lacks
 * is read. */
int slu_shards_check_files(const struct slu_shards *s, const char *dir,
                           const struct slu_filelist *set,
                           const struct slu_shards_bucket *b,
                           const struct slu_shard_facts *f, struct slu_err *err);
/* Whether all files of the folder, which has a report.json and the list l, have the
 * sizes that report.json and manifest.jsonl state. */
bool slu_shards_set_is_there(const struct slu_shards *s, const struct slu_filelist *l);
int slu_shards_check_rows(const struct slu_shards *s, const char *work, uint64_t index,
                          uint64_t of, const struct slu_shards_end *e,
                          struct slu_err *err);

#endif
