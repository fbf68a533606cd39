/* shard.h - writes shard sets: sequences of bucket lengths, in the files that a trainer
 * reads.
 *
 *   DIR/D_<i>/…             sequences of 2^i tokens, in the format's layout (L_<n>/ for
 * a length n that is no power of two) DIR/segments/D_<i>.tks  the segment rows of the
 * same sequences in the same order DIR/report.json         last; a set without it is
 * incomplete (semantics.md 9)
 *
 * A format is a static const struct slu_shard_format in a file of its own and a line in
 * the registry (formats/shard.c). It knows bytes; the engine knows buckets, shards,
 * files and books. As all sequences of a bucket have the same length, a format can make
 * an index of a shard (offsets, lengths, document ends) from the shard's counts alone,
 * at its end, in a file beside it; formats whose shards begin with an index say
 * `counts_first`.
 *
 * Every file is written under no name and renamed when it is whole. slu_shards_free
 * before slu_shards_finish has succeeded takes away what was written.
 *
 * Thread safety: one thread at a time on a handle; encode is called from several
 * threads.
 */
#ifndef SLU_SHARD_H
#define SLU_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/account.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/io.h"
#include "lib/stream.h"

/* What a format is told about a bucket and about a shard of it. */
struct slu_shard_bucket {
    char name[32];            /* "D_8" or "L_1000" */
    uint64_t length;          /* nominal: 2^i */
    uint64_t n_id;            /* ids of a sequence: length, or length + 1 with labels */
    unsigned tok_bytes;       /* 2 or 4, of the stream */
    uint64_t shard_sequences; /* of a full shard */
    uint64_t n_shard;         /* complete so far */
    uint64_t n_seq;           /* in them */
};
struct slu_shard {
    const struct slu_shard_bucket *bucket;
    uint64_t number; /* in its bucket, from 0 */
    uint64_t n_seq;  /* in it: so far; at its end, all */
};

enum slu_shard_labels { SLU_LABELS_ANY, SLU_LABELS_WANTED, SLU_LABELS_UNWANTED };

struct slu_shard_format {
    const char *name;
    enum slu_shard_labels labels; /* what the trainer wants (semantics.md 12) */
    bool powers_of_two;           /* other buckets are refused */
    bool counts_first; /* `begin` must know n_seq: shards are gathered first */
    /* For `--shard-sequences auto`. */
    uint64_t (*shard_sequences)(uint64_t length);
    /* State for all threads, read only but for new, free and the serial calls below. */
    int (*init)(void **state, struct slu_err *err);
    void (*release)(void *state);
    /* Name of a shard's file in its bucket's folder. */
    void (*file_name)(uint64_t number, char *out, size_t cap);
    /* Any thread: appends sequence `index` of a shard. `tok`: n_id ids of tok_bytes. */
    int (*encode)(const void *state, const struct slu_shard_bucket *b, uint64_t index,
                  const void *tok, struct slu_buf *out, struct slu_err *err);
    /* Serial; each may be NULL: what comes before and behind a shard's sequences. */
    int (*begin)(void *state, const struct slu_shard *s, struct slu_buf *out,
                 struct slu_err *err);
    int (*end)(void *state, const struct slu_shard *s, struct slu_buf *out,
               struct slu_err *err);
    /* Serial; may be NULL: the file beside a shard (an index), and its name. */
    const char *beside_suffix;
    int (*beside)(void *state, const struct slu_shard *s, struct slu_out *out,
                  struct slu_err *err);
    /* Serial; may be NULL: the file of a finished bucket (a manifest), and its name. */
    const char *bucket_file;
    int (*bucket)(void *state, const struct slu_shard_bucket *b, struct slu_out *out,
                  struct slu_err *err);
    /* What readers do with a last shard that is short; NULL: they take it. */
    const char *short_shard_note;
};

extern const struct slu_shard_format slu_shard_wds;

/* The format of that name; SLU_E_UNSUPPORTED in one line where it is not built. */
SLU_MUST_USE int slu_shard_format_find(const struct slu_shard_format **f,
                                       const char *name, struct slu_err *err);
/* Names of all formats, built or not; ends with NULL. */
extern const char *const slu_shard_format_names[];

/* ---- the engine ---- */

struct slu_shards_cfg {
    const struct slu_shard_format *format;
    const char *dir;                 /* borrowed */
    const struct slu_header *header; /* with this program's step; borrowed for new */
    struct slu_names *names;         /* borrowed */
    uint64_t shard_sequences;        /* 0: the format's */
    bool drop_last;                  /* drop a last shard that is short */
    bool force;     /* replace a set that is there; take the wrong kind of labels */
    int zstd_level; /* of the segments' streams */
};

struct slu_shards;

/* Says no before any work: header, labels, buckets, a folder that is not empty. Touches
 * nothing. */
SLU_MUST_USE int slu_shards_new(struct slu_shards **s, const struct slu_shards_cfg *cfg,
                                struct slu_err *err);

/* Where sequences come from: clears b and fills it; SLU_EOF at the end. All have a
 * bucket's length. */
typedef int slu_shards_source(void *ctx, struct slu_batch *b, struct slu_err *err);

/* Makes the folders (removing an old set's files if cfg.force) and writes all that
 * source gives, with n_threads threads. */
SLU_MUST_USE int slu_shards_write(struct slu_shards *s, slu_shards_source *source,
                                  void *ctx, unsigned n_threads, unsigned n_slots,
                                  struct slu_err *err);

/* After slu_shards_write. */
unsigned slu_shards_n_bucket(const struct slu_shards *s);
const struct slu_shard_bucket *slu_shards_bucket(const struct slu_shards *s,
                                                 unsigned i);
/* Sequences of the bucket's last shard if that is short, else 0. */
uint64_t slu_shards_short(const struct slu_shards *s, unsigned i);
/* What is in the shards, from the writers of segments (checksum: from the shards). */
const struct slu_sum *slu_shards_sum(const struct slu_shards *s);
/* What drop_last dropped, and its checksum. */
const struct slu_sum *slu_shards_dropped(const struct slu_shards *s);

/* Writes report.json and syncs. `ledger` is reported as it is. */
SLU_MUST_USE int slu_shards_finish(struct slu_shards *s, const char *program,
                                   const struct slu_ledger *ledger,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_shards_free(struct slu_shards *s);

#endif
