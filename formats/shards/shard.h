/* shard.h - writes shard sets: sequences of bucket lengths, or whole documents, in the
 * files that a trainer reads.
 *
 *   DIR/D_<i>/…             sequences of 2^i tokens, in the format's layout (L_<n>/ for
 *                           a length n that is not a power of two)
 *   DIR/documents/…         whole documents, each a sequence, instead of buckets
 *   DIR/segments/D_<i>.tks  the segment rows of the same sequences in the same order
 *   DIR/manifest.jsonl      a line for each file: bytes, XXH3-64, sequences, tokens
 *   DIR/report.json         written last; a set without report.json is incomplete
 *
 * A format is a static const struct slu_shard_format in a file of its own, a layout
 * that reads it back (formats/shards/shardset.h), and a line in
 * formats/shards/shard_registry.c. A format knows bytes; the engine knows buckets,
 * shards, files, hashes and counts. All sequences of a bucket have the same number of
 * ids, except whole documents. A format either streams (`encode`: shards of any size)
 * or builds (`build`: a shard from all of its sequences, in memory).
 *
 * All is written below DIR/.partial, and gets its name in DIR when the set is complete
 * (formats/shards/set_out.h): an old set stays until then. slu_shards_free removes
 * .partial unless slu_shards_finish has written all. The complete shards of a killed
 * process stay, and the next run with the same input and options takes them over
 * (formats/shards/shard_journal.c).
 *
 * Thread safety: one thread at a time on a handle. Several threads may call a format's
 * functions marked "any thread" at once; these only read the format's state.
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

#define SLU_SHARD_FILES 3 /* largest number of files in a shard */

struct slu_shards_cfg;
struct slu_bytelog;

/* Of documents whose shards are built in memory: the bytes by which a document is
 * longer than its ids, so that a shard's size limits the memory of its rows; the
 * largest size of a shard, so that offsets of 32 bits suffice; and the default. */
#define SLU_SHARD_DOCUMENT_BYTE 128
#define SLU_SHARD_BUILD_BYTE    (UINT64_C(1) << 30)
#define SLU_SHARD_BUILT_BYTE    (UINT64_C(8) << 20)

/* Which sequences a shard has. A sequence is per_seq + per_tok * its ids long, and the
 * sequences of a bucket follow one another: shard k has those that begin in
 * [k * size, (k + 1) * size). So a part knows its shards by the sums of the sequences
 * before it. All sequences of a bucket of one length: (0, 1, shard_sequences). */
struct slu_shard_rule {
    uint64_t per_tok, per_seq, size;
};

/* The place of the sequence that follows n: how long these are together. */
static inline uint64_t slu_shard_place(const struct slu_shard_rule *r,
                                       struct slu_count n)
{
    return r->per_seq * n.sequences + r->per_tok * n.tokens;
}

/* Facts about a bucket, a shard of it, and a sequence, for the format. */
struct slu_shard_bucket {
    char name[32];   /* "D_8", "L_1000", or "documents" */
    uint64_t length; /* nominal length: 2^i; 0: whole documents, of any length */
    uint64_t n_id;   /* ids of a sequence: length, or length + 1 with labels; 0: of
                        whole documents */
    uint64_t max_segments;    /* of the configuration, at most n_id; 0: any number */
    unsigned tok_bytes;       /* 2 or 4, the width in the stream */
    unsigned id_bytes;        /* 2 or 4, the width in the files */
    bool masks;               /* the stream has masks */
    bool inner_padding;       /* padding may stand between segments */
    uint64_t shard_sequences; /* sequences of a full shard; UINT64_MAX: any number */
    struct slu_shard_rule rule;
    uint64_t n_shard; /* shards that are complete */
    uint64_t n_seq;   /* sequences in these shards */
};

/* The most that a shard has which is built in memory: sequences, their ids, and the ids
 * of one. Documents that are longer than a shard are refused. */
struct slu_shard_most {
    uint64_t n_seq, n_tok, longest;
};
static inline struct slu_shard_most slu_shard_most(const struct slu_shard_bucket *b)
{
    const struct slu_shard_rule *r = &b->rule;
    struct slu_shard_most most = {b->shard_sequences, b->shard_sequences * b->n_id,
                                  b->n_id};

    if (b->length)
        return most;
    most.longest = r->size > r->per_seq ? (r->size - r->per_seq) / r->per_tok : 0;
    most.n_seq = r->size / (r->per_seq + r->per_tok) + 1;
    most.n_tok = r->size / r->per_tok + most.longest;
    return most;
}

struct slu_shard {
    const struct slu_shard_bucket *bucket;
    uint64_t number;          /* number in its bucket, from 0 */
    uint64_t n_seq;           /* sequences so far; at the end of the shard, all */
    uint64_t n_tok;           /* ids of these sequences */
    struct slu_bytelog *kept; /* at the end of the shard: see kept_files */
};
struct slu_shard_seq {
    /* n_id ids of tok_bytes each, in native byte order; with masks, marked ids
     * (lib/stream/mask.h). */
    const void *tok;
    uint64_t n_id, at;         /* its ids; the ids before it in the shard */
    const struct slu_seg *seg; /* the sequence's segments, padding included */
    uint64_t n_seg;
    const uint8_t *str; /* base of seg[].id_off */
};

/* A complete shard, for indexes. */
struct slu_shard_facts {
    uint64_t number, n_seq, n_tok;    /* n_tok: ids in the shard */
    uint64_t n_byte[SLU_SHARD_FILES]; /* size of each file, set by the engine */
    uint64_t xxh3[SLU_SHARD_FILES];   /* XXH3-64, seed 0, of the file's bytes */
    uint64_t raw_byte, raw_xxh3; /* before the format's own compression; `build` may
                                    set them; 0: not compressed */
};

/* A set whose buckets are complete, for the format's own files beside them. */
struct slu_shard_set {
    const char *dir;   /* where its files are written; their final folder is cfg.dir */
    unsigned n_bucket; /* the buckets that have sequences, by ascending length */
    const struct slu_shard_bucket *const *bucket;
    const struct slu_shard_facts *const *shard; /* shard[i] has bucket[i]->n_shard
                                                   elements */
    void *engine;                               /* for slu_shard_set_open */
};
/* Creates a file of the set, by its name in set->dir, with its folders. After the
 * caller has closed the file with slu_out_close, the engine lists it in
 * manifest.jsonl. */
SLU_MUST_USE int slu_shard_set_open(const struct slu_shard_set *set, const char *name,
                                    struct slu_out **out, struct slu_err *err);

enum slu_shard_labels { SLU_LABELS_ANY, SLU_LABELS_WANTED, SLU_LABELS_UNWANTED };

/* How trainers learn that padding between segments, as `forget` leaves it, is not
 * trained on. By the masks of a set that has them; of others: */
enum slu_shard_inner {
    SLU_INNER_NONE,   /* they do not */
    SLU_INNER_PAD,    /* by its id, which they can be told to leave out */
    SLU_INNER_MASKS,  /* they do not, and the format carries masks */
    SLU_INNER_LABELS, /* by labels; of whole documents as SLU_INNER_MASKS */
};

enum slu_shard_option {
    SLU_SHARD_COMPRESS = 1,  /* --compress */
    SLU_SHARD_MEMBER = 2,    /* --member */
    SLU_SHARD_OLMO_PATH = 4, /* --olmo-path, --olmo-tokenizer */
    SLU_SHARD_SEGMENTS = 8,  /* --max-segments */
};

struct slu_shard_format {
    const char *name;
    enum slu_shard_labels labels; /* label tokens that the trainer requires
                                     (DESIGN.md, The stream) */
    bool powers_of_two;           /* buckets of other lengths are refused */
    bool masks;                   /* carries masks: encode and build take
                                     a batch of marked ids (lib/stream/mask.h). Others
                                     refuse streams that have masks */
    bool documents;               /* takes whole documents */
    enum slu_shard_inner inner_padding;
    /* With an id behind it: what the trainer is given to leave the id out; NULL: it has
     * no such switch. */
    const char *ignore_id;
    /* Bytes of an id in the files of whole documents; NULL: as in the stream. */
    unsigned (*id_bytes)(const struct slu_header *h);
    uint64_t most_id;    /* largest number of ids in a file; 0: any */
    uint64_t shard_byte; /* default bytes of ids in a shard of whole documents */
    /* For `--shard-sequences auto`; within the limits of `check`. For a shard that is
     * built, the engine takes fewer if this number would not fit the least -M. */
    uint64_t (*shard_sequences)(const struct slu_shard_bucket *b);
    /* Checks the format's limits when b->shard_sequences is final, before anything is
     * written; reports faults by slu_shard_too_large. May be NULL. */
    int (*check)(const struct slu_shard_bucket *b, struct slu_err *err);
    /* Makes the state of a run; cfg is borrowed for the call. */
    int (*init)(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err);
    void (*release)(void *state); /* NULL is legal */

    /* Names of a shard's files in its bucket's folder, file < n_file. */
    unsigned n_file;      /* 1 … SLU_SHARD_FILES */
    unsigned n_mask_file; /* with masks, so many more files follow */
    void (*file_name)(const void *state, uint64_t number, unsigned file, char *out,
                      size_t cap);
    /* Whether this format gives this name, with any options, to a file in a bucket's
     * folder (bucket_file included). Only such files are ever removed. */
    bool (*owns)(const char *name);
    /* NULL: the format records where the segments of a sequence begin. Else one line:
     * what is lost, and what to do. */
    const char *boundaries;

    /* -- a format that streams -- */

    /* File 0 has the ids of the sequences, little-endian and of b->id_bytes bytes each;
     * with masks, file n_file has a byte for each of them, 1 if it is trained on, else 0.
     * The engine writes these two, in pieces, so that a long document takes no further
     * memory. */
    bool raw_ids;
    /* Any thread: appends sequence `index` of a shard to out[0] … out[n_file - 1],
     * except to files that the engine writes or that are written only at the end. */
    int (*encode)(const void *state, const struct slu_shard_bucket *b, uint64_t index,
                  const struct slu_shard_seq *q, struct slu_buf *out,
                  struct slu_err *err);
    /* May be NULL. One call at a time: writes in pieces what encode would append to the
     * only file, of a sequence whose bytes would take too much memory at once. */
    int (*write)(const void *state, const struct slu_shard_bucket *b, uint64_t index,
                 const struct slu_shard_seq *q, struct slu_out *out,
                 struct slu_err *err);
    /* Any thread; NULL if flush_files is 0. For a file whose bit (1 << file) is in
     * flush_files: appends to out the final form of the bytes `in`, for example a gzip
     * member. Called for runs of SLU_SHARD_RUN sequences from a shard's first, whatever
     * the threads, and for the remaining sequences at the end (begin's bytes are in the
     * first run); not for runs without bytes, unless all of a shard have none. */
    int (*flush)(const void *state, unsigned file, const struct slu_buf *in,
                 struct slu_buf *out, struct slu_err *err);
    unsigned flush_files;
    /* For a file whose bit (1 << file) is in kept_files: its encoded bytes wait instead
     * of going to the file. `end` gets them in s->kept, rewound, to read in pieces of
     * SLU_SHARD_KEPT bytes. At most one bit, and only for whole documents. */
    unsigned kept_files;
    /* One call at a time; may be NULL: appends the bytes before the first sequence to
     * each file. */
    int (*begin)(void *state, const struct slu_shard *s, struct slu_buf *out,
                 struct slu_err *err);
    /* One call at a time; may be NULL. Called once for each file, in order, after the
     * last sequence: writes the end of the file (a trailer, an index), in pieces if it
     * is large. */
    int (*end)(void *state, const struct slu_shard *s, unsigned file,
               struct slu_out *out, struct slu_err *err);

    /* -- or a format that builds a shard at once, in memory -- */

    /* Any thread, several shards at a time: makes the bytes of each file from b, which
     * has the s->n_seq sequences of the shard in order. f has number, n_seq and
     * n_tok. */
    int (*build)(const void *state, const struct slu_shard *s,
                 const struct slu_batch *b, struct slu_buf *out,
                 struct slu_shard_facts *f, struct slu_err *err);
    /* Returns the most bytes of memory that building a full shard (slu_shard_most)
     * takes: `out` counts, the batch does not. The number is compared with -M before
     * anything is written. Reserve the bytes of `out` before appending: a buffer that
     * grows takes half as much again. */
    uint64_t (*build_byte)(const struct slu_shard_bucket *b);

    /* -- files of a finished bucket and of the set; serial -- */

    /* May be NULL: of the n shards of a bucket whose folder is `dir`, sets the facts
     * that the set's manifest lacks, raw_byte and raw_xxh3. SLU_E_MISMATCH if they have
     * another shape than shards of *b. */
    int (*facts)(const void *state, const struct slu_shard_bucket *b, const char *dir,
                 struct slu_shard_facts *shard, uint64_t n, struct slu_err *err);

    const char *bucket_file; /* NULL: none */
    int (*bucket)(void *state, const struct slu_shard_bucket *b,
                  const struct slu_shard_facts *shard /* b->n_shard */,
                  struct slu_out *out, struct slu_err *err);
    /* May be NULL. set_folder: the folder in the set for the files of `set`;
     * owns_in_set says which names there (without folders) belong to the format. */
    int (*set)(void *state, const struct slu_shard_set *set, struct slu_err *err);
    /* May be NULL; called after `set`: returns one line for users, or NULL.
     * Borrowed. */
    const char *(*set_note)(const void *state);
    const char *set_folder;
    bool (*owns_in_set)(const char *name);
    /* May be NULL: appends Markdown to the card, behind the lines of Python: how to
     * configure the trainer. */
    int (*card)(const void *state, struct slu_buf *out, struct slu_err *err);

    unsigned options; /* bits of enum slu_shard_option that the format accepts;
                         others are refused */
    /* What readers do with a short last shard; NULL: they read it. */
    const char *short_shard_note;
};

#define SLU_SHARD_RUN  4096      /* sequences between two calls of flush */
#define SLU_SHARD_KEPT (1 << 16) /* bytes of a piece of s->kept */

/* The formats of formats/shards/shard_registry.c. */
extern const struct slu_shard_format slu_shard_wds, slu_shard_olmo, slu_shard_ds,
    slu_shard_megatron, slu_shard_mds, slu_shard_litdata, slu_shard_parquet,
    slu_shard_megatron_sft;

/* SLU_E_UNSUPPORTED if the table lacks a member that the engine needs. */
SLU_MUST_USE int slu_shard_format_check(const struct slu_shard_format *f,
                                        struct slu_err *err);
/* The format of this name, whose table was checked; SLU_E_UNSUPPORTED, with one line,
 * if this build does not have it. */
SLU_MUST_USE int slu_shard_format_find(const struct slu_shard_format **f,
                                       const char *name, struct slu_err *err);
/* The i-th format of this build; NULL after the last. */
const struct slu_shard_format *slu_shard_format_at(unsigned i);
/* Sets out to the names of the formats of which `has` holds: "a, b and c". */
void slu_shard_formats_with(bool (*has)(const struct slu_shard_format *f), char *out,
                            size_t cap);
/* Names of all formats, in this build or not; ends with NULL. */
extern const char *const slu_shard_format_names[];

/* For `owns`: whether the name is prefix, digits and suffix. */
bool slu_shard_name_is(const char *name, const char *prefix, const char *suffix);

/* SLU_E_USAGE for `check`: "format wds: N sequences a shard in D_8 exceed WHAT; at most
 * LARGEST fit". LARGEST 0: "format wds: one sequence of D_8 exceeds WHAT". */
int slu_shard_too_large(const struct slu_shard_format *f,
                        const struct slu_shard_bucket *b, const char *what,
                        uint64_t largest, struct slu_err *err);

/* ---- the engine ---- */

enum slu_shard_member { SLU_MEMBER_TXT, SLU_MEMBER_JSON, SLU_MEMBER_JSON_GZ };
extern const char *const slu_shard_member_names[]; /* ends with NULL */
enum { SLU_SHARD_MOST_LEVEL = 19 };
/* Reads zstd, zstd:LEVEL or none: the level, 0 for none. False: it is none of these. */
bool slu_shard_compress_level(const char *value, int *level);

/* Shards that are taken as they are from another set, of the same format, options and
 * sequences: slu_shards_write links their files, or copies them, without reading them
 * otherwise. `source` gives their sequences without ids, in batches of their own, and
 * the other shards whole. */
struct slu_shards_given {
    const char *dir;             /* the folder of that set */
    const struct slu_sum *input; /* of all its sequences, for slu_shards_write */
    struct slu_shards_given_bucket {
        uint64_t length, shard_sequences;
        const struct slu_shard_facts *facts; /* n_shard elements */
        const bool *changed;                 /* of each: it is not taken */
        uint64_t n_shard;
    } bucket[SLU_MAX_BUCKETS];
    unsigned n_bucket;
    /* Sums of the sequences that are taken; may be set until source ends. */
    struct slu_u128 checksum, mask_checksum;
};

struct slu_made; /* lib/flow/made.h */

/* Fields that are not set are 0, the default. All pointers are borrowed. */
struct slu_shards_cfg {
    const struct slu_shard_format *format;
    const char *dir;
    const struct slu_made *made;     /* the options; NULL: none; needed, as header, by
                                        slu_shards_new */
    const struct slu_header *header; /* with this program's step */
    struct slu_names *names;
    uint64_t seed;
    bool documents;           /* whole documents, each a sequence; no buckets */
    uint64_t shard_sequences; /* 0: the format's default */
    uint64_t shard_byte;      /* bytes of ids in a shard; 0: the format's default */
    const char *tmpdir;       /* for whole documents */
    uint64_t memory_byte;     /* for shards that are built, and encoded bytes; 0: no
                                 limit */
    bool by_bucket;           /* the source gives one bucket after the other */
    bool drop_last;           /* drop a short last shard */
    bool replace;         /* replace an existing set of ours when this one is complete,
                                 or the beginning of one */
    bool accept_mismatch; /* accept sequences that the trainer takes for others:
                                 the wrong kind of label tokens, documents that the
                                 format's trainer does not find */
    bool force;           /* write a part, or join a set of parts, again */
    const struct slu_shards_given *given; /* NULL: all shards are written */
    bool parts;     /* for slu_shards_write_part or slu_shards_join, which check the
                       folder; slu_shards_new then does not */
    int zstd_level; /* for the streams of segments */
    /* Identifies the input beyond its sums, which cover neither the meaning of ids nor
     * domains: shards of another input are not reused. 0: not known. */
    struct slu_u128 input_id;

    /* Options of formats. */
    bool compress_set;            /* --compress is given */
    int compress_level;           /* level of zstd; 0: not compressed */
    enum slu_shard_member member; /* for wds */
    /* For mds: elements of each sequence's array of segment lengths (fewer, if the
     * bucket's sequences are shorter). Unused elements are 0, and padding at the end of
     * a sequence has no element. 0: each array has an element for each segment of its
     * sequence. */
    uint64_t max_segments;
    const char *olmo_path;      /* NULL: dir */
    const char *olmo_tokenizer; /* for slu_olmo_tokenizer; NULL: from the header */
    const char *license;        /* NULL: not stated */
};

struct slu_shards;

/* The rule of a set of whole documents. */
struct slu_shard_rule slu_shards_documents_rule(const struct slu_shards_cfg *cfg);
/* SLU_E_USAGE if a document of n_tok ids, the longest, does not fit a shard, or could
 * bring a file beyond the format's limit. */
SLU_MUST_USE int slu_shards_check_longest(const struct slu_shards_cfg *cfg,
                                          uint64_t n_tok, struct slu_err *err);

/* Checks, before any work, header, labels, buckets and limits, and the folder
 * (slu_set_check). If a killed run was about to publish a set there, publishes it. */
SLU_MUST_USE int slu_shards_new(struct slu_shards **s, const struct slu_shards_cfg *cfg,
                                struct slu_err *err);

/* The source of sequences: clears b and fills it; SLU_EOF at the end. All sequences
 * have a bucket's length. Buckets may come in any order; one after the other is
 * fastest. pipe: for slu_pipe_take, before b takes more than SLU_PIPE_SLOT_BYTE; may be
 * NULL. */
struct slu_pipe; /* lib/base/pipe.h */
typedef int slu_shards_source(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                              struct slu_err *err);

/* Writes all sequences of source below DIR/.partial, with n_threads threads and n_slots
 * batches in flight. If a run with the same cfg and input was killed, its complete shards
 * are reused. input: sum of the source's input; NULL: not known. SLU_E_MISMATCH if
 * another run has left files and not cfg.replace, or if a file that belongs to no set
 * has a name that the set needs (shard_dir.h). SLU_EOF if this is the set that
 * slu_shards_new has published, or with cfg.given has found: nothing is left to do. */
SLU_MUST_USE int slu_shards_write(struct slu_shards *s, slu_shards_source *source,
                                  void *ctx, const struct slu_sum *input,
                                  unsigned n_threads, unsigned n_slots,
                                  struct slu_err *err);

/* ---- the same set in parts: R processes write shards, in any order and at any time;
 * then one process joins them. All files in the folder are then, byte for byte, those
 * that one slu_shards_write of all sequences makes. ----
 *
 * Before the join, the shards are in DIR/.partial, and DIR/.partial/mark keeps every
 * other shuffle out. `work` has
 *
 *   shards.J-of-R.jsonl    part J's journal: the facts that must agree, a line for each
 *                          complete shard, and a last line when all are complete
 *   rows.J-of-R.D_<i>.tks  the segment rows of the part's shards
 *
 * A part that was killed continues
 * by its journal. A part that failed also leaves its journal and complete shards. */

/* The sequences of a bucket that the source of a part gives. */
struct slu_shards_span {
    uint64_t first_shard; /* without meaning if n_seq is 0 */
    uint64_t n_seq;       /* of whole documents: shards, of which the set's last may be
                       missing. Of buckets: sequences, in the bucket's order, from the
                       first of first_shard on; a multiple of shard_sequences unless
                       `last` */
    bool last;            /* the bucket has no later sequences, so its last shard may be
                       short. In later parts, which have none of this bucket, any
                       value */
};
struct slu_shards_part {
    const char *work;                   /* an existing folder, shared by all parts */
    uint64_t index, of;                 /* J and R: index < of */
    const struct slu_shards_span *span; /* one for each bucket of the header, in
                                           order; of whole documents one */
    /* Of whole documents: the set's documents and tokens before the first that source
     * gives; read when source has returned for the first time. */
    const struct slu_count *before;
};

/* Writes one part. cfg is the same for all parts, names included, with cfg.parts set;
 * source gives exactly the sequences of the spans. input: the sum of the input of ALL
 * parts. Sources and the vocabulary, which rows omit, must be in cfg.names before the
 * join.
 *
 * A part that is complete, was made from the same arguments and input, and has files of
 * the right sizes is skipped without calling source (slu_shards_skipped), unless
 * cfg.force. Afterwards, in both cases, sums, buckets and facts are those of the part.
 * SLU_E_MISMATCH if work has this part from other arguments or another input, if
 * another process writes the part, or if the folder holds another set or another
 * shuffle writes there; cfg.replace replaces all of these except a set that is being
 * written. SLU_E_CONSERVATION if the sequences of source differ from the spans.
 *
 * Call slu_shards_free afterwards; no written file is removed. */
SLU_MUST_USE int slu_shards_write_part(struct slu_shards *s,
                                       const struct slu_shards_part *part,
                                       slu_shards_source *source, void *ctx,
                                       const struct slu_sum *input, unsigned n_threads,
                                       unsigned n_slots, struct slu_err *err);
bool slu_shards_skipped(const struct slu_shards *s);

/* Makes one set of the `of` parts in work, to be finished by slu_shards_finish. Checks
 * that all parts are complete and of this cfg and input, that their shards are 0, 1, …
 * of each bucket, and that their files have the right sizes; segment rows are streamed.
 * SLU_EOF if the set is already finished, from the same parts and with the right sizes
 * of files, and not cfg.force: there is nothing left to do. Sums, buckets and facts are
 * then set, except for those that only the segment rows have (of slu_shards_sum:
 * segments, padding, trace_checksum; and slu_shards_packed). SLU_E_MISMATCH,
 * SLU_E_FORMAT, SLU_E_TRUNCATED with one line that names the part to run again.
 *
 * cfg.names has the vocabulary, if there is one, and all sources of the input. Memory:
 * about 100 bytes for each shard. */
SLU_MUST_USE int slu_shards_join(struct slu_shards *s, const char *work, uint64_t of,
                                 const struct slu_sum *input, struct slu_err *err);

const struct slu_shard_format *slu_shards_format(const struct slu_shards *s);

/* After slu_shards_write. */
unsigned slu_shards_n_bucket(const struct slu_shards *s);
const struct slu_shard_bucket *slu_shards_bucket(const struct slu_shards *s,
                                                 unsigned i);
/* Number of sequences in the bucket's last shard if that is short, else 0. */
uint64_t slu_shards_short(const struct slu_shards *s, unsigned i);
/* Sum of all sequences in the shards: the counts as the writers of segments counted
 * them, the checksum from the shards. */
const struct slu_sum *slu_shards_sum(const struct slu_shards *s);
/* Sum of the sequences that drop_last dropped, with their checksum. */
const struct slu_sum *slu_shards_dropped(const struct slu_shards *s);
/* Appends what the trainer must be told of padding between segments, as one line without
 * its end; nothing if the set says it. */
SLU_MUST_USE int slu_shards_inner_note(const struct slu_shards *s, struct slu_buf *out,
                                       struct slu_err *err);
/* Number of sequences with several segments. */
uint64_t slu_shards_packed(const struct slu_shards *s);

/* Adds a member to report.json: `key` is a static string; `json` is valid JSON and is
 * copied. */
SLU_MUST_USE int slu_shards_report_add(struct slu_shards *s, const char *key,
                                       const char *json, struct slu_err *err);
/* Adds a section to the card, after that of the domains: Markdown, copied. */
SLU_MUST_USE int slu_shards_card_add(struct slu_shards *s, const struct slu_buf *text,
                                     struct slu_err *err);
struct slu_step_list; /* lib/stream/steps.h */
/* Sets the steps that made the set, with their counts, for report.json and the card
 * (lib/stream/steps.h); copies them. */
SLU_MUST_USE int slu_shards_set_steps(struct slu_shards *s,
                                      const struct slu_step_list *steps,
                                      struct slu_err *err);
/* Writes the set's own files, manifest.jsonl and report.json, and publishes the set.
 * `account` is reported unchanged. After a fault of the publishing, slu_shards_new of a
 * later run goes on with it. */
SLU_MUST_USE int slu_shards_finish(struct slu_shards *s, const char *program,
                                   const struct slu_account *account,
                                   struct slu_err *err);
/* After slu_shards_finish: the format's line about the set, or NULL. Borrowed. */
const char *slu_shards_remark(const struct slu_shards *s);
/* NULL is legal. */
void slu_shards_free(struct slu_shards *s);

SLU_END_DECLS

#endif
