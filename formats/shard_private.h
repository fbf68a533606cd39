/* shard_private.h - the engine's parts: shard.c (what is refused, buckets, books),
 * shard_stream.c and shard_build.c (the two pipelines), shard_files.c (files and their
 * hashes), shard_report.c (manifest.jsonl, report.json). */
#ifndef SLU_SHARD_PRIVATE_H
#define SLU_SHARD_PRIVATE_H

#include "formats/shard.h"

/* A file of the set that is no shard's. */
struct slu_shard_extra {
    struct slu_shard_extra *next;
    struct slu_digest digest;
    uint64_t n_seq, n_tok; /* in it; 0: it has none */
    char name[];           /* in the set's folder */
};

struct slu_shards_bucket {
    struct slu_shard_bucket pub;
    struct slu_shard_facts *facts; /* pub.n_shard */
    size_t cap_facts;
    struct slu_writer *rows;
    struct slu_shard_extra *rows_file;
    struct slu_sum sum; /* of the complete shards, from the shards */
    uint64_t n_planned; /* sequences that jobs have taken */
    uint64_t n_short;   /* of the last shard, if it is short */

    /* The shard at hand: a streaming format's … */
    struct slu_out *file[SLU_SHARD_FILES]; /* being written, or NULL */
    struct slu_digest digest[SLU_SHARD_FILES];
    struct slu_buf gather[SLU_SHARD_FILES]; /* bytes that wait */
    uint64_t n_here;                        /* sequences in it */
    struct slu_sum here;                    /* and what they add up to */
    /* … rows that wait, with drop_last those of the whole shard; or all of a shard that
     * will be built. */
    struct slu_batch batch;
};

struct slu_shards {
    struct slu_shards_cfg cfg;
    char *dir;
    void *state; /* the format's */
    struct slu_header header;
    struct slu_shards_bucket bucket[SLU_MAX_BUCKETS];
    unsigned n_bucket;
    struct slu_sum sum, dropped;
    uint64_t n_packed;
    struct slu_shard_extra *extra, **extra_end;
    struct slu_buf flushed;
    bool made_dir, made, finished;
    int lock; /* of the folder, or -1 */
};

/* ---- shard_files.c ---- */

/* The bucket's folder and its segments' stream. */
int slu_shards_begin_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                            struct slu_err *err);
/* Opens file `file` of shard `number`. */
int slu_shards_open_file(struct slu_shards *s, const struct slu_shards_bucket *b,
                         uint64_t number, unsigned file, struct slu_digest *d,
                         struct slu_out **out, struct slu_err *err);
/* A file of the set's own: noted for manifest.jsonl, after slu_out_close. */
int slu_shards_open_extra(struct slu_shards *s, const char *name,
                          struct slu_shard_extra **e, struct slu_out **out,
                          struct slu_err *err);
/* A shard is whole: its facts, and what its sequences add up to. */
int slu_shards_add_shard(struct slu_shards *s, struct slu_shards_bucket *b,
                         const struct slu_shard_facts *f, const struct slu_sum *sum,
                         struct slu_err *err);
/* Puts the bucket's waiting rows and clears them. */
int slu_shards_put_rows(struct slu_shards_bucket *b, struct slu_err *err);
/* The bucket's segments, its own file and its books, once its shards are done. */
int slu_shards_end_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                          struct slu_err *err);
/* fsync of every folder, so that the renames in them last. */
int slu_shards_sync(const struct slu_shards *s, struct slu_err *err);
/* Sequences of a batch that have several segments, padding aside. */
uint64_t slu_shards_count_packed(const struct slu_batch *b);

/* ---- shard_stream.c, shard_build.c: slu_shards_write by either kind of format ---- */

int slu_shards_stream(struct slu_shards *s, slu_shards_source *source, void *ctx,
                      unsigned n_threads, unsigned n_slots, struct slu_err *err);
int slu_shards_build(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err);

/* ---- shard_report.c ---- */

int slu_shards_manifest(struct slu_shards *s, struct slu_err *err);
int slu_shards_report(const struct slu_shards *s, const char *program,
                      const struct slu_ledger *ledger, struct slu_err *err);

#endif
