/* shardset.h - reads a shard directory back as a stream of sequences.
 *
 * DIR/report.json says the format, DIR/manifest.jsonl which files there are and how
 * many sequences each shard has; DIR/D_<i>/ (or L_<n>/) hold the tokens in the
 * trainer's layout, DIR/segments/D_<i>.tks the segment rows in the same order
 * (DESIGN.md, Conservation). Buckets come in ascending order of length, shards in order
 * of number, sequences in order.
 *
 * A set without report.json, or with a file missing, is incomplete: SLU_E_TRUNCATED.
 * Thread safety: one thread at a time.
 */
#ifndef SLU_SHARDSET_H
#define SLU_SHARDSET_H

#include "formats/shards/shard.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_shardset;

/* What a layout's reader does; one static const struct a format
 * (formats/wds/wds_read.c). Whatever does not add up - indexes, counts, sizes, bytes
 * too many - is an error that says the place in the file; which file, and DIR, the
 * caller puts before it where n_file is 1; else the layout names the file. */
struct slu_shard_layout {
    const char *format;
    /* Opens a shard by the paths of its n_file files, in the writer's order. b: name,
     * length, n_id, tok_bytes; n_seq: sequences it has by the set's manifest. */
    int (*open)(void **state, const char *const *path, const struct slu_shard_bucket *b,
                uint64_t n_seq, struct slu_err *err);
    /* Replaces ids (u32 native) by those of the next sequence; SLU_EOF at the end. */
    int (*next)(void *state, struct slu_buf *ids, struct slu_err *err);
    void (*close)(void *state);
};

/* NULL: none is built. */
const struct slu_shard_layout *slu_shard_layout_find(const char *name);

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
/* All files of the set have the bytes that manifest.jsonl says, and it those that
 * report.json says, and it those that its last line says, by XXH3-64; with n_threads
 * threads. So have those of a format's own folder by the list in it (filelist.h). There
 * is no bucket's folder more, nor a shard in one, which a trainer would read. After
 * SLU_EOF. */
SLU_MUST_USE int slu_shardset_verify_files(struct slu_shardset *s, unsigned n_threads,
                                           struct slu_err *err);
/* [{"name": "D_8", "length": 256, "sequences": …, "tokens": …, "shards": …}, …] of the
 * buckets read so far. Caller frees with free(). */
SLU_MUST_USE int slu_shardset_buckets(struct slu_shardset *s, char **json,
                                      struct slu_err *err);
void slu_shardset_free(struct slu_shardset *s);

SLU_END_DECLS

#endif
