/* shardset.h - reads a shard directory back as a stream of sequences.
 *
 * DIR/report.json names the format; DIR/manifest.jsonl lists the files and the number
 * of sequences in each shard; DIR/D_<i>/ (or L_<n>/) have the tokens in the trainer's
 * layout, and DIR/segments/D_<i>.tks the segment rows in the same order (DESIGN.md,
 * Conservation). Buckets come in ascending order of length, shards by number, sequences
 * in order.
 *
 * A set without report.json, or with a missing file, is incomplete: SLU_E_TRUNCATED.
 * Thread safety: one thread at a time.
 */
#ifndef SLU_SHARDSET_H
#define SLU_SHARDSET_H

#include "formats/shards/shard.h"
#include "lib/base/json.h"
#include "lib/stream/stream_summary.h"

SLU_BEGIN_DECLS

struct slu_shardset;

/* The reader of a layout; one static const struct for each format
 * (formats/wds/wds_read.c). Every contradiction in a shard (indexes, counts, sizes,
 * surplus bytes) is an error that names the position in the file. If n_file is 1, the
 * caller adds the names of the file and of DIR; else the layout names the file. */
struct slu_shard_layout {
    const char *format;
    /* Opens a shard by the paths of its files, in the order of the writer. b has name,
     * length, n_id, tok_bytes, id_bytes and masks; n_seq: number of its sequences in
     * the set's manifest. */
    int (*open)(void **state, const char *const *path, const struct slu_shard_bucket *b,
                uint64_t n_seq, struct slu_err *err);
    bool
        masks; /* with b->masks, `next` gives marked ids (lib/stream/mask.h); the caller
                   compares the marks with those of the segments */
    bool no_first; /* the shards do not say whether a segment's first token is trained
                      on: the caller takes its mark from the segments */
    bool narrow;   /* `next` gives ids of b->id_bytes, or with b->masks of 4 bytes, and
                      appends: to an empty buffer with b->masks */
    /* Replaces ids (native, of 4 bytes) by those of the next sequence; SLU_EOF at the
     * end. n_id: how many it has by its bucket, or, a whole document, by its segments;
     * 0: none is left. A format that does not say so itself takes this number, and
     * checks it. */
    int (*next)(void *state, uint64_t n_id, struct slu_buf *ids, struct slu_err *err);
    void (*close)(void *state);
};

/* NULL: this build has no such layout. */
const struct slu_shard_layout *slu_shard_layout_find(const char *name);

/* Opens DIR. max_seq_tok as in struct slu_reader_cfg. */
SLU_MUST_USE int slu_shardset_open(struct slu_shardset **s, const char *dir,
                                   struct slu_err *err);
/* Header of the set: buckets, label tokens, tokenizer. Borrowed. */
const struct slu_header *slu_shardset_header(const struct slu_shardset *s);
const char *slu_shardset_format(const struct slu_shardset *s);
struct slu_step_list; /* lib/stream/steps.h */
/* Joins the steps that made the set to *steps (lib/stream/steps.h). */
SLU_MUST_USE int slu_shardset_steps(const struct slu_shardset *s,
                                    struct slu_step_list *steps, struct slu_err *err);
/* What the set in DIR says of its sequences: see slu_reader_summary. */
SLU_MUST_USE int slu_shardset_summary(const char *dir, bool close,
                                      struct slu_summary *p, struct slu_err *err);
/* Names of the current bucket, valid until the next call of slu_shardset_next. */
struct slu_names *slu_shardset_names(struct slu_shardset *s);
/* Reads the next sequences, with tokens and segments; SLU_EOF at the end. */
SLU_MUST_USE int slu_shardset_next(struct slu_shardset *s, struct slu_batch *b,
                                   struct slu_err *err);
/* Before the first call of slu_shardset_next: no file is read of the shards of which
 * `skips` returns true, and their sequences come without ids (with masks, the batch is
 * marks_only). Each batch then is of one shard. */
typedef bool slu_shardset_skips(void *ctx, unsigned bucket, uint64_t shard);
void slu_shardset_skip(struct slu_shardset *s, slu_shardset_skips *skips, void *ctx);
/* The shard of the last batch: its bucket, counted from 0, and what the manifest says of
 * it (n_tok 0). Borrowed until the next call of slu_shardset_next. */
const struct slu_shard_facts *slu_shardset_shard(const struct slu_shardset *s,
                                                 unsigned *bucket);
/* Gives the batch's domains, whose names are in `from`, their numbers in `to`. */
SLU_MUST_USE int slu_shardset_domains(struct slu_batch *b, struct slu_names *from,
                                      struct slu_names *to, struct slu_err *err);
/* report.json, borrowed. */
struct slu_json_value slu_shardset_report(const struct slu_shardset *s);
/* The buckets that have sequences. */
unsigned slu_shardset_n_bucket(const struct slu_shardset *s);
const struct slu_shard_bucket *slu_shardset_bucket(const struct slu_shardset *s,
                                                   unsigned i);
/* A hash of report.json, which is another one in each other set. */
struct slu_u128 slu_shardset_id(const struct slu_shardset *s);
/* SLU_E_MISMATCH if another set has taken its place since it was opened, SLU_E_TRUNCATED
 * while one does. */
SLU_MUST_USE int slu_shardset_same(const struct slu_shardset *s, struct slu_err *err);
/* After SLU_EOF: slu_shardset_same, and checks that `seen` equals the report's sums. */
SLU_MUST_USE int slu_shardset_finish(struct slu_shardset *s, const struct slu_sum *seen,
                                     struct slu_err *err);
/* After SLU_EOF: checks by XXH3-64 that all files of the set have the bytes that
 * manifest.jsonl states, manifest.jsonl those that report.json states, and report.json
 * those that its last line states; with n_threads threads. Checks a format's own folder
 * by the list in that folder (filelist.h). Also checks that the set has no further
 * bucket's folder and no further shard, which a trainer would read. */
SLU_MUST_USE int slu_shardset_verify_files(struct slu_shardset *s, unsigned n_threads,
                                           struct slu_err *err);
/* slu_shardset_verify_files then gives f the bytes that it has read, of those of all
 * files. One thread at a time calls f. */
void slu_shardset_progress(struct slu_shardset *s,
                           void (*f)(void *ctx, uint64_t n_byte, uint64_t of_byte),
                           void *ctx);
/* *json: [{"name": "D_8", "length": 256, "sequences": …, "tokens": …, "shards": …}, …]
 * of the buckets read so far. Caller frees with free(). */
SLU_MUST_USE int slu_shardset_buckets(struct slu_shardset *s, char **json,
                                      struct slu_err *err);
void slu_shardset_free(struct slu_shardset *s);

SLU_END_DECLS

#endif
