/* stream.h - the token stream, tokstream(5), as formats/STREAM.md specifies it.
 *
 * Reading has three steps, so that the costly one can be parallel: slu_reader_fetch
 * reads the next frames from the file (serial, I/O only), slu_batch_open checks,
 * decompresses and decodes them (any thread), slu_reader_account counts the batch
 * (serial, in fetch order). slu_reader_next does all three. slu_reader_finish compares
 * the counts with the end frames; a program may finish its own output only after it
 * succeeded.
 *
 * Writing: slu_writer_put copies a batch's sequences into frames; only the sequences
 * determine where frames are cut. slu_writer_close writes the end frame, the index and
 * the footer; slu_writer_abort leaves them out, so that the next program notices.
 */
#ifndef SLU_STREAM_H
#define SLU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/pipe.h"
#include "lib/stream/metadata.h"

SLU_BEGIN_DECLS

#define SLU_NO_TOKEN    UINT64_MAX /* eos, bos or pad that does not exist */
#define SLU_MAX_BUCKETS 64
/* Limits of a data frame: tokens, sequences, segments, bytes of records' ids. */
#define SLU_FRAME_TOKENS (UINT64_C(1) << 20)
#define SLU_FRAME_SEQS   (UINT64_C(1) << 16)
#define SLU_FRAME_SEGS   (UINT64_C(1) << 17)
#define SLU_FRAME_IDS    (UINT64_C(1) << 24)

/* A step of the provenance: a program and its arguments that affect results. */
struct slu_step {
    char *program, *version, *arguments; /* owned */
    uint64_t seed;
};

struct slu_header {
    unsigned tok_bytes;          /* 2 or 4; of ids in memory, so 4 with masks */
    bool no_tokens;              /* segment rows only (DIR/segments/D_i.tks) */
    bool masks;                  /* ids are marked (mask.h) */
    bool inner_padding;          /* padding may stand between segments */
    bool label_tokens;           /* sequences of bucket L have L + 1 ids */
    uint64_t vocab_size;         /* largest id + 1, pad included */
    bool has[SLU_N_EXTRA];       /* which optional fields its segments have */
    struct slu_meta_fields meta; /* which metadata they may have */
    uint64_t eos, bos, pad;
    /* Padding of two ids was joined; not in a stream. Padding between segments without
     * pad has several ids. */
    bool pads;
    uint8_t fingerprint[16];          /* of the tokenizer (DESIGN.md, The stream) */
    uint64_t bucket[SLU_MAX_BUCKETS]; /* nominal lengths, ascending */
    unsigned n_bucket;                /* 0: not decomposed */
    struct slu_step *step;            /* owned */
    size_t n_step;
};

void slu_header_init(struct slu_header *h);
void slu_header_release(struct slu_header *h);
SLU_MUST_USE int slu_header_copy(struct slu_header *dst, const struct slu_header *src,
                                 struct slu_err *err);
SLU_MUST_USE int slu_header_add_step(struct slu_header *h, const char *program,
                                     const char *version, const char *arguments,
                                     uint64_t seed, struct slu_err *err);
/* Appends one step as a JSON object. */
SLU_MUST_USE int slu_step_put_json(const struct slu_step *t, struct slu_buf *out,
                                   struct slu_err *err);
/* Returns the ids of a sequence of nominal bucket length L: L, or L + 1 with label
 * tokens. */
static inline uint64_t slu_header_ids(const struct slu_header *h, uint64_t L)
{
    return L + (h->label_tokens ? 1 : 0);
}
/* Returns the bytes of an id in a stream. */
static inline unsigned slu_header_stored(const struct slu_header *h)
{
    return h->masks && h->vocab_size <= 65536 ? 2 : h->tok_bytes;
}
/* Returns the index of the bucket whose sequences have len_tok ids, or -1. */
int slu_header_bucket_of(const struct slu_header *h, uint64_t len_tok);

/* Returns the tokenizer's name in the provenance: "bytes", "builtin", or "file:" and
 * the family of the tokenizer in a file. NULL: it has none. Not ended by a NUL;
 * borrowed. */
const char *slu_header_tokenizer(const struct slu_header *h, size_t *len);

/* Names of sources (by ordinal) and domains (by number), and the vocabulary. Shared by
 * a reader and a writer; safe from any thread. */
struct slu_names;
SLU_MUST_USE int slu_names_new(struct slu_names **n, struct slu_err *err);
void slu_names_free(struct slu_names *n);
SLU_MUST_USE int slu_names_set_source(struct slu_names *n, uint64_t ordinal,
                                      const char *name, struct slu_err *err);
/* Returns the name, borrowed until free; NULL if it is unknown. */
const char *slu_names_source(struct slu_names *n, uint64_t ordinal);
/* Sets *count to the number of sources, and `name` to the names of the first `most` of
 * them in order of their ordinals; borrowed until free. */
SLU_MUST_USE int slu_names_sources(struct slu_names *n, const char **name, size_t most,
                                   uint64_t *count, struct slu_err *err);
/* Calls `each` for all sources, in order of their ordinals. The first result other than
 * SLU_OK ends the calls and is returned. `each` must not call slu_names_*. */
SLU_MUST_USE int slu_names_each_source(struct slu_names *n,
                                       int (*each)(void *ctx, uint64_t ordinal,
                                                   const char *name,
                                                   struct slu_err *err),
                                       void *ctx, struct slu_err *err);
/* Finds the domain's number, or gives it one; valid only in this process. */
SLU_MUST_USE int slu_names_domain_number(struct slu_names *n, const char *name,
                                         size_t len, uint32_t *number,
                                         struct slu_err *err);
const char *slu_names_domain(struct slu_names *n, uint32_t number);
uint32_t slu_names_n_domain(struct slu_names *n);

/* The vocabulary frame: id -> bytes. */
struct slu_vocab_table {
    uint64_t n;          /* ids 0 … n-1 */
    const uint64_t *off; /* n + 1 offsets in bytes */
    const uint8_t *bytes;
    /* SLU_VOCAB_* of each id. An id that does not exist has length 0 and HOLE. */
    const uint8_t *flags;
    /* The frame's payload, compressed, for writers; NULL: they compress it. */
    const uint8_t *packed;
    uint64_t packed_byte;
};
#define SLU_VOCAB_SPECIAL 1
#define SLU_VOCAB_HOLE    2
/* Sets the vocabulary to a copy of the table. */
SLU_MUST_USE int slu_names_set_vocab(struct slu_names *n,
                                     const struct slu_vocab_table *v,
                                     struct slu_err *err);
/* Sets the vocabulary to the table, whose arrays must outlive n. */
void slu_names_lend_vocab(struct slu_names *n, const struct slu_vocab_table *v);
/* Returns the vocabulary, borrowed until free; NULL: the stream has none, or it could
 * not be decoded, which slu_reader_finish and slu_names_read_vocab say. Who calls this
 * behind slu_reader_finish calls slu_names_read_vocab first. */
const struct slu_vocab_table *slu_names_vocab(struct slu_names *n);
/* Decodes the vocabulary if that was not done yet; returns the error of the
 * decoding. */
SLU_MUST_USE int slu_names_read_vocab(struct slu_names *n, struct slu_err *err);

/* ---- reading ---- */

struct slu_reader;
struct slu_joint; /* joint.h */

struct slu_reader_cfg {
    /* Streams, read one after another; "-" is standard input. */
    const char *const *path;
    size_t n_path;        /* 0: standard input alone */
    uint64_t max_seq_tok; /* longer sequences are SLU_E_LIMIT; 0: no limit */
    /* The caller keeps masks, and padding between segments. Without these, a stream
     * that has them is SLU_E_UNSUPPORTED, so that neither can get lost. */
    bool masks, inner_padding;
    struct slu_joint *joint; /* is standard input (joint.h); or NULL */
    /* Metadata fields that slu_reader_drop is going to leave out: the streams may have
     * more with them than the limit, or different types. NULL: none. */
    const char *drop;
};

/* Opens the first stream and reads its header. The headers of the other regular files
 * are read and compared too, so that a mismatch is found before any work. If one stream
 * has masks, the others get them: all tokens but padding are trained on. The header has
 * the metadata fields of all of them. */
SLU_MUST_USE int slu_reader_open(struct slu_reader **r,
                                 const struct slu_reader_cfg *cfg, struct slu_err *err);
const struct slu_header *slu_reader_header(const struct slu_reader *r);
/* Returns the names of the frames read so far; owned by the reader. */
struct slu_names *slu_reader_names(struct slu_reader *r);
/* Decodes the vocabulary now, and so finds damage; else slu_names_vocab does it when it
 * is first called, and slu_reader_finish returns the error. */
SLU_MUST_USE int slu_reader_read_vocab(struct slu_reader *r, struct slu_err *err);
/* Two of the streams that begin with the same document: the first such pair. Streams of
 * a job's parts never do; corpora whose sources have the same names do. */
struct slu_reader_duplicates {
    char *one, *other, *source; /* NULL: none */
};
/* Looks for such a pair until the reader is freed; the caller frees the three names.
 * Call it before the first batch. */
void slu_reader_find_duplicates(struct slu_reader *r,
                                struct slu_reader_duplicates *duplicates);
/* Leaves metadata fields out of the header and of all batches; names: with commas. Call
 * it before the first batch. slu_reader_account adds the number of their values to
 * *n_value, unless it is NULL. SLU_E_USAGE: no stream has such a field. */
SLU_MUST_USE int slu_reader_drop(struct slu_reader *r, const char *names,
                                 uint64_t *n_value, struct slu_err *err);
/* Prepares for slu_reader_identity. Call it before the first batch. */
void slu_reader_track(struct slu_reader *r);
/* Lets the work make the sums of batches: slu_batch_open may leave them out (unsummed),
 * the work then takes sequences out of the batch and calls slu_batch_sum_parts. Call it
 * before the first batch; it has no effect on a reader that is tracked. */
void slu_reader_defer(struct slu_reader *r);
/* Gives the slu_hash_tokens of the next sequence that was summed `late`, in the order
 * in which batches were accounted, and of sequences in them. seg: its segment. When all
 * have come, slu_reader_finish has to be called once more. Serial, as account. */
void slu_reader_late(struct slu_reader *r, const struct slu_seg *seg,
                     struct slu_u128 hash);
/* Computes a digest of everything that a program can see of the stream: header,
 * vocabulary and sequences in their order, with tokens, segments, names and scores. The
 * digest does not depend on how frames are cut and stored. A stage that reads a stream
 * again compares digests, because a sum depends neither on the order nor on domains.
 * Call it after slu_reader_finish. */
SLU_MUST_USE int slu_reader_identity(struct slu_reader *r, struct slu_u128 *identity,
                                     struct slu_err *err);
/* Sets the memory per token of a long sequence, with all data made from it (default:
 * the token's width), and the memory of all batches in flight (see slu_pipe_take). */
void slu_reader_expect(struct slu_reader *r, uint64_t tok_byte, uint64_t room_byte);
/* Makes slu_reader_fetch, called by the pipe's produce, call slu_pipe_take before it
 * reads a long sequence. NULL: no longer. */
void slu_reader_use_pipe(struct slu_reader *r, struct slu_pipe *p);
/* Whether slu_reader_fetch and slu_batch_open run in one thread: then a frame is hashed
 * while it is read. */
void slu_reader_alone(struct slu_reader *r, bool alone);
/* Reads the next batch, still encoded: one data frame, or the frames of one long
 * sequence. Serial. SLU_EOF at the end of the last stream. */
SLU_MUST_USE int slu_reader_fetch(struct slu_reader *r, struct slu_batch *b,
                                  struct slu_err *err);
/* Decodes a fetched batch: fills seq, seg, tok and sum. Any thread, one per batch. */
SLU_MUST_USE int slu_batch_open(struct slu_reader *r, struct slu_batch *b,
                                struct slu_err *err);
/* Counts a batch as it was read, even if it was edited since. Serial, in fetch order,
 * once per batch. */
void slu_reader_account(struct slu_reader *r, struct slu_batch *b);
/* Does fetch, open and account, for serial use. */
SLU_MUST_USE int slu_reader_next(struct slu_reader *r, struct slu_batch *b,
                                 struct slu_err *err);
/* Compares the counted batches with every end frame, after SLU_EOF. SLU_E_TRUNCATED,
 * SLU_E_CHECKSUM, SLU_E_FORMAT (the index). total: NULL, or gets the sum of all. While
 * hashes have not come (slu_reader_late), checksums are not compared, and the total
 * lacks them. */
SLU_MUST_USE int slu_reader_finish(struct slu_reader *r, struct slu_sum *total,
                                   struct slu_err *err);
/* Returns the bytes read so far, for progress. Any thread. */
uint64_t slu_reader_bytes(const struct slu_reader *r);
void slu_reader_free(struct slu_reader *r);

/* ---- a reader of files that are not streams ---- */

/* Reads documents from files of another kind by the same calls, so that every program
 * accepts them (formats/ids/tokens.h). The reader computes the sums and numbers the
 * batches. */
struct slu_input_ops {
    /* Fills the empty batch's seq and seg with whole documents, in input order, and
     * stores in it the data that open needs. Serial. SLU_EOF after the last batch. */
    int (*fetch)(void *input, struct slu_batch *b, struct slu_err *err);
    /* Makes b->tok from the data that fetch stored; every id must be below the header's
     * vocab_size. Any thread. */
    int (*open)(const void *input, struct slu_batch *b, struct slu_err *err);
    /* After SLU_EOF: compares `seen`, the sum of all batches, with the documents that
     * fetch has returned. */
    int (*finish)(void *input, const struct slu_sum *seen, struct slu_err *err);
    uint64_t (*bytes)(const void *input); /* bytes read so far; any thread */
    void (*free)(void *input);
};
/* Makes a reader over `input`, which it then owns, also after a failure. ops must
 * outlive the reader; h is copied. The caller puts the names of sources into
 * slu_reader_names. */
SLU_MUST_USE int slu_reader_over(struct slu_reader **r, const struct slu_input_ops *ops,
                                 void *input, const struct slu_header *h,
                                 struct slu_err *err);

/* ---- writing ---- */

struct slu_writer;

struct slu_source_rows; /* source_rows.h */
struct slu_writer_cfg {
    int zstd_level;          /* 0: frames are not compressed */
    bool no_vocab;           /* leave the vocabulary frame out */
    struct slu_names *names; /* borrowed; sources and domains are looked up here */
    bool steps;              /* slu_writer_steps (steps.h) will be called */
    struct slu_source_rows *sources; /* counts what it writes of each; NULL: nothing */
    struct slu_joint *joint;         /* takes the stream, instead of a file (joint.h) */
};

/* Writes the header and, if cfg->names has one, the vocabulary. Takes ownership of out,
 * also when it fails (NULL with cfg->joint); copies h. */
SLU_MUST_USE int slu_writer_open(struct slu_writer **writer, struct slu_out *out,
                                 const struct slu_header *h,
                                 const struct slu_writer_cfg *cfg, struct slu_err *err);
/* Appends the batch's sequences in order. Uses b->sum if sum_valid, else computes it.
 * Serial. */
SLU_MUST_USE int slu_writer_put(struct slu_writer *w, struct slu_batch *b,
                                struct slu_err *err);
/* As slu_writer_put; but may take the memory of the batch's tokens, instead of copying
 * them, and give it other memory. The tokens cannot be read afterwards. */
SLU_MUST_USE int slu_writer_pass(struct slu_writer *w, struct slu_batch *b,
                                 struct slu_err *err);
/* Write a document whose length is not known at its first token: begin, parts, end,
 * with no other put between them. The stream has the bytes that slu_writer_put of the
 * whole document would give, but at most a frame of it is in memory. seg: source,
 * document, domain, score, id_len and meta_len are used. id: the record's own id, id_len
 * bytes, and its metadata, meta_len bytes.
 * tok: n_tok ids of the stream's width. hash: slu_hash_tokens of the whole document.
 * Only for streams with tokens. */
SLU_MUST_USE int slu_writer_begin(struct slu_writer *w, const struct slu_seg *seg,
                                  const void *id, struct slu_err *err);
SLU_MUST_USE int slu_writer_part(struct slu_writer *w, const void *tok, uint64_t n_tok,
                                 struct slu_err *err);
SLU_MUST_USE int slu_writer_end(struct slu_writer *w, struct slu_u128 hash,
                                struct slu_err *err);
/* Returns the sum of all sequences put so far. */
const struct slu_sum *slu_writer_sum(const struct slu_writer *w);
/* Ends the stream; frees the handle even when it fails. */
SLU_MUST_USE int slu_writer_close(struct slu_writer *w, struct slu_err *err);
/* Frees the handle without writing an end frame. NULL is legal. */
void slu_writer_abort(struct slu_writer *w);

/* ---- both: reader -> workers -> ordered writer ---- */

struct slu_stream_ops {
    /* Any thread: edits the batch in place (may be NULL). */
    int (*work)(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err);
    /* Serial, in order: usually ends in slu_writer_put. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
};

/* Runs the whole input through ops with n_threads threads and n_slots batches in
 * flight, and slu_reader_finish at the end. The total of the input goes to *total.
 * Batches are summed after work, in parallel, so that slu_writer_put need not. */
SLU_MUST_USE int slu_stream_run(struct slu_reader *r, const struct slu_stream_ops *ops,
                                void *ctx, unsigned n_threads, unsigned n_slots,
                                struct slu_sum *total, struct slu_err *err);

/* As slu_stream_run, with data of the caller beside each of the n_slots batches:
 * side_byte bytes, zero at first, which stay with the slot. */
struct slu_side_ops {
    size_t side_byte;
    /* Any thread: edits the batch in place. */
    int (*work)(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                struct slu_err *err);
    /* Serial, in order. */
    int (*emit)(void *ctx, struct slu_batch *b, void *side, struct slu_err *err);
    void (*release)(void *side); /* NULL: the data owns nothing */
};
SLU_MUST_USE int slu_stream_run_side(struct slu_reader *r,
                                     const struct slu_side_ops *ops, void *ctx,
                                     unsigned n_threads, unsigned n_slots,
                                     struct slu_sum *total, struct slu_err *err);

SLU_END_DECLS

#endif
