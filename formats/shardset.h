/* shardset.h - reads a shard directory back as a stream of sequences.
 *
 * DIR/report.json says the format; DIR/D_<i>/ (or L_<n>/) hold the tokens in the
 * trainer's layout, DIR/segments/D_<i>.tks the segment rows in the same order
 * (semantics.md 9). Buckets come in ascending order of length, shards in order of
 * number, sequences in order.
 *
 * A set without report.json, or with a file missing, is incomplete: SLU_E_TRUNCATED.
 * Thread safety: one thread at a time.
 */
#ifndef SLU_SHARDSET_H
#define SLU_SHARDSET_H

#include "lib/stream.h"

struct slu_shardset;

/* What a layout's reader does; one static const struct a format (formats/wds_read.c).
 */
struct slu_shard_layout {
    const char *format;
    /* Opens shard file `path`; *n_expected: sequences it should have, from its
     * manifest. */
    int (*open)(void **state, const char *path, struct slu_err *err);
    /* Replaces ids (u32 native) by those of the next sequence; SLU_EOF at the end. */
    int (*next)(void *state, struct slu_buf *ids, struct slu_err *err);
    void (*close)(void *state);
    const char *suffix; /* of shard files */
};

extern const struct slu_shard_layout slu_shard_layout_wds;

/* Opens DIR. max_seq_tok as in struct slu_reader_cfg. */
SLU_MUST_USE int slu_shardset_open(struct slu_shardset **s, const char *dir,
                                   struct slu_err *err);
/* Of the set: buckets, label tokens, tokenizer. Borrowed. */
const struct slu_header *slu_shardset_header(const struct slu_shardset *s);
const char *slu_shardset_format(const struct slu_shardset *s);
/* Of the bucket at hand, valid until the next call of slu_shardset_next. */
struct slu_names *slu_shardset_names(struct slu_shardset *s);
/* The next sequences with tokens and segments; SLU_EOF at the end. */
SLU_MUST_USE int slu_shardset_next(struct slu_shardset *s, struct slu_batch *b,
                                   struct slu_err *err);
/* After SLU_EOF: `seen` is what the report promised. */
SLU_MUST_USE int slu_shardset_finish(struct slu_shardset *s, const struct slu_sum *seen,
                                     struct slu_err *err);
/* [{"name": "D_8", "length": 256, "sequences": …, "tokens": …, "shards": …}, …] of the
 * buckets read so far. Caller frees with free(). */
SLU_MUST_USE int slu_shardset_buckets(struct slu_shardset *s, char **json,
                                      struct slu_err *err);
void slu_shardset_free(struct slu_shardset *s);

#endif
