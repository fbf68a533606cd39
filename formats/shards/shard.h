/* shard.h - writes shard sets: sequences of bucket lengths, in the files that a trainer
 * reads.
 *
 *   DIR/D_<i>/…             sequences of 2^i tokens, in the format's layout (L_<n>/ for
 *                           a length n that is no power of two)
 *   DIR/segments/D_<i>.tks  the segment rows of the same sequences in the same order
 *   DIR/manifest.jsonl      a line a file: bytes, XXH3-64, sequences, tokens
 *   DIR/report.json         last; a set without it is incomplete
 *
 * A format is a static const struct slu_shard_format in a file of its own, a layout
 * that reads it back (formats/shards/shardset.h), and a line in
 * formats/shards/shard_registry.c. It knows bytes; the engine knows buckets, shards,
 * files, hashes and books. All sequences of a bucket have the same number of ids. A
 * format either streams (`encode`: shards of any size) or builds (`build`: a shard from
 * all of its sequences, in memory).
 *
 * Every file is written under no name and renamed when it is whole. slu_shards_free
 * before slu_shards_finish has succeeded takes away what was written; what a process
 * left that was killed, the same run takes over (formats/shards/shard_journal.c).
 *
 * Thread safety: one thread at a time on a handle; of a format's functions those said
 * to be of any thread are called from several at once, and only read its state.
 */
#ifndef SLU_SHARD_H
#define SLU_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/stream/account.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

#define SLU_SHARD_FILES 3 /* most files of a shard */

struct slu_shards_cfg;

/* What a format is told about a bucket, a shard of it, and a sequence. */
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
struct slu_shard_seq {
    const void *tok; /* the bucket's n_id ids of tok_bytes each, native order */
    const struct slu_seg *seg; /* its segments, padding included */
    uint64_t n_seg;
    const uint8_t *str; /* what seg[].id_off refer to */
};

/* A whole shard, for indexes. */
struct slu_shard_facts {
    uint64_t number, n_seq, n_tok;    /* n_tok: ids in it */
    uint64_t n_byte[SLU_SHARD_FILES]; /* of each file; the engine fills these in */
    uint64_t xxh3[SLU_SHARD_FILES];   /* XXH3-64, seed 0, of its bytes */
    uint64_t raw_byte, raw_xxh3; /* before the format's own compression: `build` may
                                  * set them; 0: there was none */
};

/* A set whose buckets are done, for files of the format's own beside them. */
struct slu_shard_set {
    const char *dir;
    unsigned n_bucket; /* those with sequences, in ascending order of length */
    const struct slu_shard_bucket *const *bucket;
    const struct slu_shard_facts *const *shard; /* shard[i]: bucket[i]->n_shard */
    void *engine;                               /* for slu_shard_set_open */
};
/* A new file of the set, by its name in set->dir; folders are made. It gets into
 * manifest.jsonl when the caller has closed it with slu_out_close. */
SLU_MUST_USE int slu_shard_set_open(const struct slu_shard_set *set, const char *name,
                                    struct slu_out **out, struct slu_err *err);

enum slu_shard_labels { SLU_LABELS_ANY, SLU_LABELS_WANTED, SLU_LABELS_UNWANTED };

enum slu_shard_option {
    SLU_SHARD_COMPRESS = 1,  /* --compress */
    SLU_SHARD_MEMBER = 2,    /* --member */
    SLU_SHARD_OLMO_PATH = 4, /* --olmo-path, --olmo-tokenizer */
};

struct slu_shard_format {
    const char *name;
    enum slu_shard_labels labels; /* what the trainer wants (DESIGN.md, The stream) */
    bool powers_of_two;           /* other buckets are refused */
    /* For `--shard-sequences auto`; never more than `check` lets through. The engine
     * takes fewer where a shard is built and so many would not fit into the least -M.
     */
    uint64_t (*shard_sequences)(const struct slu_shard_bucket *b);
    /* The format's limits, once b->shard_sequences is final and before anything is
     * written; what is said by slu_shard_too_large. May be NULL. */
    int (*check)(const struct slu_shard_bucket *b, struct slu_err *err);
    /* State of a run; cfg is borrowed for the call. */
    int (*init)(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err);
    void (*release)(void *state); /* NULL is legal */

    /* Names of a shard's files in its bucket's folder, file < n_file. */
    unsigned n_file; /* 1 … SLU_SHARD_FILES */
    void (*file_name)(const void *state, uint64_t number, unsigned file, char *out,
                      size_t cap);
    /* Is that a name which this format, under whatever options, gives to a file in a
     * bucket's folder (bucket_file included)? Only such files are ever removed. */
    bool (*owns)(const char *name);
    /* NULL: the format says where the segments of a sequence begin. Else one line: what
     * it cannot say, and what to do about it. */
    const char *boundaries;

    /* -- a format that streams -- */

    /* Any thread: appends sequence `index` of a shard to out[0] … out[n_file - 1] (to
     * those that are not made at the end alone). */
    int (*encode)(const void *state, const struct slu_shard_bucket *b, uint64_t index,
                  const struct slu_shard_seq *q, struct slu_buf *out,
                  struct slu_err *err);
    /* Any thread; NULL where flush_files is 0: appends to out what is written for the
     * bytes `in` of a file whose bit (1 << file) is in flush_files, e.g. a gzip member.
     * Called for runs of SLU_SHARD_RUN sequences from a shard's first, whatever the
     * threads, and for what is left at its end (begin's bytes are in the first). */
    int (*flush)(const void *state, unsigned file, const struct slu_buf *in,
                 struct slu_buf *out, struct slu_err *err);
    unsigned flush_files;
    /* Serial; may be NULL: appends what comes before the first sequence to each file.
     */
    int (*begin)(void *state, const struct slu_shard *s, struct slu_buf *out,
                 struct slu_err *err);
    /* Serial; may be NULL; once a file, in order, behind its last sequence: writes
     * what follows (a trailer; an index), in pieces where it is much. */
    int (*end)(void *state, const struct slu_shard *s, unsigned file,
               struct slu_out *out, struct slu_err *err);

    /* -- or a format that builds a shard at once, in memory -- */

    /* Any thread, several shards at a time: makes the bytes of each file from b, whose
     * s->n_seq sequences are the shard's in order. f comes with number, n_seq, n_tok.
     */
    int (*build)(const void *state, const struct slu_shard *s,
                 const struct slu_batch *b, struct slu_buf *out,
                 struct slu_shard_facts *f, struct slu_err *err);
    /* Bytes of memory that building a full shard takes at most, out included, the batch
     * excluded; held against -M before anything is written. Reserve out's bytes before
     * they are appended: a buffer that grows takes half as much again. */
    uint64_t (*build_byte)(const struct slu_shard_bucket *b);

    /* -- files of a finished bucket and of the set; serial -- */

    const char *bucket_file; /* NULL: none */
    int (*bucket)(void *state, const struct slu_shard_bucket *b,
                  const struct slu_shard_facts *shard /* b->n_shard */,
                  struct slu_out *out, struct slu_err *err);
    /* May be NULL; set_folder: the folder in the set's that its files go to, and
     * owns_in_set says which names (without folders) there are the format's. */
    int (*set)(void *state, const struct slu_shard_set *set, struct slu_err *err);
    /* May be NULL; after set: one line that users should hear, or NULL. Borrowed. */
    const char *(*set_note)(const void *state);
    const char *set_folder;
    bool (*owns_in_set)(const char *name);

    unsigned options; /* enum slu_shard_option: which it takes; others are refused */
    /* What readers do with a last shard that is short; NULL: they take it. */
    const char *short_shard_note;
};

#define SLU_SHARD_RUN 4096 /* sequences between two calls of flush */

/* Those of formats/shards/shard_registry.c. */
extern const struct slu_shard_format slu_shard_wds, slu_shard_olmo, slu_shard_ds,
    slu_shard_megatron, slu_shard_mds, slu_shard_litdata, slu_shard_parquet;

/* The format of that name; SLU_E_UNSUPPORTED in one line where it is not built. */
SLU_MUST_USE int slu_shard_format_find(const struct slu_shard_format **f,
                                       const char *name, struct slu_err *err);
/* The i-th format that is built; NULL behind the last. */
const struct slu_shard_format *slu_shard_format_at(unsigned i);
/* Names of all formats, built or not; ends with NULL. */
extern const char *const slu_shard_format_names[];

/* For `owns`: prefix, digits, suffix, and nothing else. */
bool slu_shard_name_is(const char *name, const char *prefix, const char *suffix);

/* SLU_E_USAGE for `check`: "--format wds: N sequences a shard in D_8 pass WHAT;
 * --shard-sequences LARGEST or less". */
int slu_shard_too_large(const struct slu_shard_format *f,
                        const struct slu_shard_bucket *b, const char *what,
                        uint64_t largest, struct slu_err *err);

/* ---- the engine ---- */

enum slu_shard_member { SLU_MEMBER_TXT, SLU_MEMBER_JSON, SLU_MEMBER_JSON_GZ };

/* Unset fields are 0, which is the default. All pointers are borrowed. */
struct slu_shards_cfg {
    const struct slu_shard_format *format;
    const char *dir;
    const struct slu_header *header; /* with this program's step; for new */
    struct slu_names *names;
    uint64_t seed;
    uint64_t shard_sequences; /* 0: the format's */
    uint64_t memory_byte;     /* for shards that are built; 0: no bound */
    bool by_bucket;           /* the source gives one bucket after another */
    bool drop_last;           /* drop a last shard that is short */
    bool replace;             /* a set of ours that is there, or was begun */
    bool accept_mismatch;     /* the wrong kind of labels */
    bool force;               /* make a part, or the set of parts, again */
    bool parts;     /* for slu_shards_write_part or slu_shards_join: these look at the
                     * folder, slu_shards_new does not */
    int zstd_level; /* of the segments' streams */
    /* What input is beside its sums, which tell neither of ids nor of domains: of
     * another one nothing is taken over. 0: nobody knows. */
    struct slu_u128 input_id;

    /* Options of formats. */
    bool compress_set;            /* --compress was given: */
    int compress_level;           /* zstd's, 0: none */
    enum slu_shard_member member; /* wds */
    const char *olmo_path;        /* NULL: dir */
    const char *olmo_tokenizer;   /* slu_olmo_tokenizer's; NULL: the header's */
    const char *license;          /* NULL: not said */
};

struct slu_shards;

/* Says no before any work: header, labels, buckets, limits, a folder that is not empty.
 * Touches nothing. */
SLU_MUST_USE int slu_shards_new(struct slu_shards **s, const struct slu_shards_cfg *cfg,
                                struct slu_err *err);

/* Where sequences come from: clears b and fills it; SLU_EOF at the end. All have a
 * bucket's length. Any order of buckets is right; one after another is fast. */
typedef int slu_shards_source(void *ctx, struct slu_batch *b, struct slu_err *err);

/* Makes the folders (removing an old set's files if cfg.replace) and writes all that
 * source gives, with n_threads threads and n_slots batches in flight. What a run with
 * the same cfg and the same input left that was killed is taken over, shard by shard;
 * input: what the source's input adds up to, NULL: nobody knows. Left by another run it
 * is SLU_E_MISMATCH, if not cfg.replace; and so is what has a name that the set needs
 * and is nobody's set (shard_dir.h). */
SLU_MUST_USE int slu_shards_write(struct slu_shards *s, slu_shards_source *source,
                                  void *ctx, const struct slu_sum *input,
                                  unsigned n_threads, unsigned n_slots,
                                  struct slu_err *err);

/* ---- the same set in parts: R processes write shards, in any order and at any time;
 * one joins them. Everything in the folder is then, byte for byte, what one
 * slu_shards_write of all sequences makes. ----
 *
 * Between the two there are, beside the shards under their final names, in `work`
 *
 *   shards.J-of-R.jsonl    part J's journal: what must agree, a line a whole shard, and
 *                          a last line once all are there
 *   rows.J-of-R.D_<i>.tks  the segment rows of its shards
 *   shards.J-of-R.lock     locked by who writes the part
 *   shards.lock            locked by who makes DIR ready for it
 *
 * and DIR/.parts.jsonl, which keeps every other shuffle out. A part that is killed goes
 * on by its journal; one that failed leaves whole shards and its journal, too. */

/* What a part's source gives of a bucket. */
struct slu_shards_span {
    uint64_t first_shard; /* no matter where n_seq is 0 */
    uint64_t n_seq; /* sequences, in the bucket's order, from the first of first_shard
                     * on; a multiple of shard_sequences if not last */
    bool last;      /* none comes behind them: the last shard may be short. In later
                     * parts, which have none of this bucket, it is set or not */
};
struct slu_shards_part {
    const char *work;   /* a folder that is there, shared by all parts */
    uint64_t index, of; /* J and R: index < of */
    const struct slu_shards_span *span; /* one a bucket of the header, in order */
};

/* Writes one part, with cfg.parts and otherwise the cfg of all, names included; what
 * source gives is the spans' sequences and nothing else. input: what the input of ALL
 * parts adds up to. Sources and the vocabulary (which rows leave out) are in cfg.names
 * by the time of the join at the latest.
 *
 * A part that is whole, made from the same and with its files' sizes, is skipped:
 * source is not called (slu_shards_skipped), not with cfg.force. Then, and after a part
 * was written, sums, buckets and facts are the part's. SLU_E_MISMATCH where work has
 * this part from other arguments or another input, where another process is at it, and
 * where the folder holds, or another shuffle is writing, another set; cfg.replace
 * replaces all but what is being written now. SLU_E_CONSERVATION where source does not
 * give what the spans say.
 *
 * After it slu_shards_free; nothing written is taken away. */
SLU_MUST_USE int slu_shards_write_part(struct slu_shards *s,
                                       const struct slu_shards_part *part,
                                       slu_shards_source *source, void *ctx,
                                       const struct slu_sum *input, unsigned n_threads,
                                       unsigned n_slots, struct slu_err *err);
bool slu_shards_skipped(const struct slu_shards *s);

/* Makes one set of the `of` parts in work, for slu_shards_finish: checks that all are
 * there, whole, of this cfg and input, that their shards are 0, 1, … of each bucket and
 * their files have their sizes; segment rows are streamed. SLU_EOF where the set is
 * finished already, of the same parts and with its files' sizes, and not cfg.force:
 * nothing is left to do; sums, buckets and facts are then there as well, but for what
 * the segments' rows alone say (of slu_shards_sum: segments, padding, trace_checksum;
 * and slu_shards_packed). SLU_E_MISMATCH, SLU_E_FORMAT, SLU_E_TRUNCATED in one line
 * that names the part to run again.
 *
 * cfg.names has the vocabulary, if there is one, and every source of the input. Memory:
 * some 100 bytes a shard. */
SLU_MUST_USE int slu_shards_join(struct slu_shards *s, const char *work, uint64_t of,
                                 const struct slu_sum *input, struct slu_err *err);

const struct slu_shard_format *slu_shards_format(const struct slu_shards *s);

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
/* Sequences of several segments in them. */
uint64_t slu_shards_packed(const struct slu_shards *s);

/* Adds a member to report.json: `key` a static string, `json` valid JSON, copied. */
SLU_MUST_USE int slu_shards_report_add(struct slu_shards *s, const char *key,
                                       const char *json, struct slu_err *err);
/* Writes the set's own files, manifest.jsonl and report.json, and syncs. `ledger` is
 * reported as it is. */
SLU_MUST_USE int slu_shards_finish(struct slu_shards *s, const char *program,
                                   const struct slu_ledger *ledger,
                                   struct slu_err *err);
/* After slu_shards_finish: what the format says of the set, or NULL. Borrowed. */
const char *slu_shards_remark(const struct slu_shards *s);
/* NULL is legal. */
void slu_shards_free(struct slu_shards *s);

SLU_END_DECLS

#endif
