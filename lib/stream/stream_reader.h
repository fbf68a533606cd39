/* stream_reader.h - struct slu_reader. Private to lib/stream. */
#ifndef SLU_STREAM_READER_H
#define SLU_STREAM_READER_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/base/xxh3.h"
#include "steps.h"
#include "stream_private.h"
#include "stream_summary.h"

#define SLU_MAX_NAME   65536 /* bytes of a name (STREAM.md section 10) */
#define SLU_ENDS_BYTES 128
#define SLU_LONG_SEQS  16 /* a batch of at most so many calls slu_reader_take */

/* The reader's position in a member. */
enum slu_reader_state { BETWEEN, BODY, ENDED, INDEXED };

/* Numbers in a member -> numbers in this process. */
struct slu_numbers {
    uint32_t *is;
    size_t n, cap;
};

/* One of the concatenated streams. */
struct slu_member {
    const char *name; /* of its file, borrowed from the reader */
    struct slu_sum seen, declared;
    uint64_t n_frame, declared_frames;
    /* Hashes of the frames' token counts, in order. */
    uint64_t tok_rows, declared_tok_rows;
    uint64_t n_late;                  /* sequences whose hashes have not come yet */
    bool ended, masks, inner_padding; /* its header has the flags */
    struct slu_map source; /* ordinals that moved: in the stream -> in this process */
    struct slu_numbers domain, value; /* in names, and in values */
    struct slu_meta_fields *meta;     /* owned; NULL: it has none */
};

struct slu_reader {
    /* NULL: streams. Otherwise the fields from path on are unused, except header, names
     * and n_batch. */
    const struct slu_input_ops *ops;
    void *input;
    slu_summary_fn *summary; /* or NULL */
    struct slu_sum over_seen;
    struct slu_pipe *pipe;        /* slu_reader_use_pipe */
    bool alone;                   /* slu_reader_alone */
    uint64_t tok_byte, room_byte; /* slu_reader_expect */
    bool tracked;                 /* slu_reader_track */
    bool defers;                  /* slu_reader_defer */
    bool finished;                /* ops->finish was called */
    uint64_t n_late;              /* of all members, or of ops */
    size_t late_member;           /* members before it have all their hashes */
    struct slu_reader_duplicates *duplicates; /* slu_reader_find_duplicates; or NULL */
    struct slu_map begun; /* hash of the first segment -> its member; with duplicates */
    struct slu_u128 order_seen, names_seen;
    struct slu_step_list steps, *collect; /* slu_reader_collect; or NULL */
    struct slu_step_list uncounted;       /* of the member, until acct is read */

    struct slu_joint *joint; /* which "-" is; or NULL */
    bool passes;             /* the current path is the joint */
    struct slu_frame passed; /* taken from it, and not yet read */
    char **path;
    size_t n_path, at_path;
    const char *name; /* of the current file, for messages */
    int fd;
    uint64_t max_seq_tok;
    bool masks, inner_padding;      /* which the caller keeps (slu_reader_cfg) */
    const char *drop;               /* slu_reader_cfg */
    struct slu_meta_fields dropped; /* slu_reader_drop, and what is found of `drop` */
    uint64_t *n_dropped;            /* values of these; NULL: no field */
    struct slu_names *values;       /* metadata of type name, as its domains; or NULL */
    uint64_t values_byte;
    _Atomic uint64_t n_byte; /* read so far of all files; any thread may load it */

    struct slu_header header; /* of the first member */
    bool have_header;
    struct slu_names *names;

    enum slu_reader_state state;
    uint64_t members_in_path;
    uint64_t number, off_byte; /* of the next frame in the member */
    uint64_t n_seq_begun, first_index, n_batch;
    bool continues; /* the last data frame's last sequence has more frames */
    XXH3_state_t index_want, index_got;
    struct slu_frame meta; /* the current frame; its buffers are not for data frames */
    struct slu_frame peek;
    bool peeked;

    pthread_mutex_t mu; /* guards the fields below: fetch writes, open reads them */
    struct slu_member *member;
    size_t n_member, cap_member;
    size_t vocab_member; /* the member that the vocabulary is from */
    struct slu_moved {   /* a source whose ordinal another source had already */
        uint64_t was, is;
        char *name;
    } * moved;
    size_t n_moved, cap_moved;
    struct slu_map moved_at; /* hash of number and name -> index in moved */
    uint64_t max_source;     /* largest ordinal in use */
};

SLU_MUST_USE int slu_reader_add_source(struct slu_reader *r, uint64_t ordinal,
                                       const char *name, struct slu_err *err);
/* Adds the next domain, or the next name of metadata. */
SLU_MUST_USE int slu_reader_add_name(struct slu_reader *r, bool value, uint64_t number,
                                     const char *name, size_t len, struct slu_err *err);

/* Adds a token count to a hash that depends on their order. Token counts are known only
 * when frames are decoded, later than the rest of the index. */
static inline uint64_t slu_add_row(uint64_t rows, uint64_t n_tok)
{
    return (rows ^ n_tok) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* Check that the caller of the reader keeps what the header announces; add the fields of
 * metadata of a header to the reader's, which with any false has them already; take a
 * frame that is not data, with its payload p[0, n) (stream_meta.c). */
SLU_MUST_USE int slu_meta_check(const struct slu_reader *r, const struct slu_header *h,
                                struct slu_err *err);
SLU_MUST_USE int slu_meta_join(struct slu_reader *r, const struct slu_header *h,
                               bool any, struct slu_err *err);
SLU_MUST_USE int slu_meta_take(struct slu_reader *r, const struct slu_frame *f,
                               const uint8_t *p, size_t n, struct slu_err *err);

/* Takes the steps of a member's header; the payload of an acct frame, which has them
 * with their counts; the member's end, before which there may have been none
 * (stream_steps.c). */
SLU_MUST_USE int slu_meta_uncounted(struct slu_reader *r, const struct slu_header *h,
                                    struct slu_err *err);
SLU_MUST_USE int slu_meta_no_steps(struct slu_reader *r, struct slu_err *err);
SLU_MUST_USE int slu_meta_steps(struct slu_reader *r, struct slu_frame *f,
                                struct slu_err *err);

/* Compute an opened batch's digests, and add them, in order (slu_reader_identity). */
void slu_identity_open(struct slu_reader *r, struct slu_batch *b);
void slu_identity_account(struct slu_reader *r, const struct slu_batch *b);

/* Whether the batch's sums may wait for slu_batch_sum_parts. */
bool slu_reader_may_wait(struct slu_reader *r, const struct slu_batch *b);

/* The columns of one payload (STREAM.md section 6). */
struct slu_columns {
    uint64_t n_seq, n_seg, n_tok, n_id;
    const uint8_t *seq_segs, *source, *document, *offset, *length, *domain, *id_bytes,
        *extra[SLU_N_EXTRA],              /* NULL: the stream does not have it */
        *ids, *mask;                      /* NULL: the stream has none */
    const struct slu_meta_fields *fields; /* NULL: none */
    const uint8_t *meta[SLU_META_FIELDS], *text[SLU_META_FIELDS];
    uint64_t n_text[SLU_META_FIELDS]; /* bytes of text */
    const uint8_t *tok;
};
/* Finds them in p[0, n). masks: the frame's member has masks; fields: its metadata;
 * NULL: it has none. */
SLU_MUST_USE int slu_columns_split(const struct slu_frame *f, const uint8_t *p,
                                   size_t n, const struct slu_header *h, bool masks,
                                   const struct slu_meta_fields *fields,
                                   struct slu_columns *k, struct slu_err *err);
/* Whether all ids are below vocab_size. */
bool slu_ids_in_range(const void *tok, uint64_t n, unsigned tok_bytes,
                      uint64_t vocab_size);

/* Reads n bytes of f's stored payload, piece by piece; hashes them, and if `sequences`
 * its sequences, while they are in the cache (stream_early.c). *got < n: the file
 * ends. */
SLU_MUST_USE int slu_early_read(struct slu_reader *r, struct slu_frame *f, size_t n,
                                bool sequences, size_t *got, struct slu_err *err);

/* Reserves the memory of n_tok tokens with the pipe, if there is one. */
void slu_reader_take(struct slu_reader *r, uint64_t n_tok);

/* Takes the dropped fields out of an opened batch (stream_meta.c). */
void slu_drop_meta(const struct slu_reader *r, struct slu_batch *b);
/* slu_reader_fetch and slu_batch_open if ops is not NULL (stream_over.c). */
SLU_MUST_USE int slu_over_fetch(struct slu_reader *r, struct slu_batch *b,
                                struct slu_err *err);
SLU_MUST_USE int slu_over_open(struct slu_reader *r, struct slu_batch *b,
                               struct slu_err *err);

#endif
