/* shardset_private.h - shared by shardset.c (a set's sequences), shardset_manifest.c (its
 * list of files) and shardset_verify.c (the checks of those). */
#ifndef SLU_SHARDSET_PRIVATE_H
#define SLU_SHARDSET_PRIVATE_H

#include <limits.h>
#include <stdio.h>

#include "formats/shards/shard_private.h"
#include "formats/shards/shardset.h"
#include "lib/base/json.h"

struct slu_shardset_bucket {
    struct slu_shard_bucket pub; /* from the report; n_shard, n_seq: read so far */
    uint64_t n_tok;              /* read so far */
};

/* A line of a manifest.jsonl. */
struct slu_shardset_entry {
    char file[300];
    uint64_t n_byte, xxh3, n_seq, shard, part;
    bool is_shard; /* shard and part are set */
};

struct slu_shardset {
    char *dir;
    struct slu_json *report;
    struct slu_u128 id; /* of report.json */
    const struct slu_shard_layout *layout;
    bool masks, documents; /* it has masks; its sequences are whole documents */
    struct slu_header header;
    struct slu_shardset_bucket bucket[SLU_MAX_BUCKETS];
    unsigned n_bucket;

    /* The current bucket. */
    unsigned at;                 /* n_bucket: none left */
    struct slu_reader *segments; /* NULL: not yet opened */
    const struct slu_shard_format *format;
    FILE *manifest; /* DIR/manifest.jsonl */
    uint64_t n_line;
    struct slu_shardset_entry next; /* its next line */
    bool have_next;
    uint64_t listed_byte; /* of the files in the lines so far */

    /* slu_shardset_verify_files. */
    void (*progress)(void *ctx, uint64_t n_byte, uint64_t of_byte);
    void *progress_ctx;
    uint64_t verified_byte, verify_byte;
    char shard[300];           /* first file of the current shard, in DIR */
    bool open;                 /* there is a current shard */
    void *state;               /* state of the layout; NULL: its ids are not read */
    slu_shardset_skips *skips; /* NULL: all ids are read */
    void *skips_ctx;
    struct slu_shard_facts facts; /* of the current shard, as the manifest has them */
    uint64_t n_here, n_expected;
    unsigned id_bytes; /* of an id that the layout gives */
    struct slu_batch rows;
    size_t row; /* rows before this one are joined */
    struct slu_buf ids;
    void *tok; /* the current sequence's n_tok ids of id_bytes */
    size_t n_tok;
};

/* Sets and returns SLU_E_TRUNCATED: the set is incomplete; `what` says in what
 * respect. */
int slu_shardset_incomplete(const struct slu_shardset *s, const char *what,
                            struct slu_err *err);
/* The path DIR/a/bc; with a "", DIR/bc. */
int slu_shardset_path(const struct slu_shardset *s, char out[PATH_MAX],
                      struct slu_err *err, const char *a, const char *b, const char *c);
int slu_shardset_open_manifest(struct slu_shardset *s, struct slu_err *err);
/* Reads the manifest's next line to s->next; SLU_EOF after the last. */
int slu_shardset_peek(struct slu_shardset *s, struct slu_err *err);
/* Parses a line of a manifest; false if its numbers contradict each other, or if it
 * names a file outside the set. */
bool slu_shardset_get_entry(struct slu_shardset_entry *e, struct slu_json_value v);
bool slu_shardset_get_u64(struct slu_json_value v, const char *key, uint64_t *out);
/* Reads the member xxh3_64: 16 digits. */
bool slu_shardset_get_hash(struct slu_json_value v, uint64_t *out);

#endif
