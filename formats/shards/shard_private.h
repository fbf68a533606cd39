/* shard_private.h - shared by the parts of the engine: shard.c (checks, buckets,
 * counts), shard_stream.c and shard_build.c (the two pipelines), shard_files.c (files
 * and their hashes), shard_report.c (manifest.jsonl, report.json). */
#ifndef SLU_SHARD_PRIVATE_H
#define SLU_SHARD_PRIVATE_H

#include <pthread.h>

#include "formats/shards/card.h"
#include "formats/shards/set_out.h"
#include "formats/shards/shard.h"
#include "lib/stream/steps.h"
#include "lib/base/json.h"
#include "lib/base/thread.h"
#include "lib/stream/domains.h"

/* The stream of a set without sequences: it keeps header and vocabulary. */
#define SLU_SHARD_EMPTY        "segments/documents.tks"
#define SLU_SHARDS_MAX_JOURNAL (UINT64_C(1) << 32)
#define SLU_SHARD_NAME         300 /* of a file in the set, with its folder */

/* A complete shard in the journal. */
struct slu_shards_done {
    struct slu_shard_facts facts;
    struct slu_u128 content; /* sum of slu_shards_content over its sequences */
    struct slu_count n;      /* count of its sequences */
    struct slu_u128 checksum, mask_checksum;
    bool gone;  /* its files are missing or changed */
    bool given; /* see struct slu_shards_given: content and checksums are not known */
};

/* A file of the set that belongs to no shard. */
struct slu_shard_extra {
    struct slu_shard_extra *next;
    struct slu_digest digest;
    uint64_t n_seq, n_tok; /* in the file; 0: none */
    char name[];           /* in the set's folder */
};

/* The files of a shard that is being written. */
struct slu_shards_files {
    struct slu_out *out[SLU_SHARD_FILES];
    struct slu_digest digest[SLU_SHARD_FILES]; /* set when they are closed */
    bool has[SLU_SHARD_FILES];                 /* bytes; of files that stream */
};

struct slu_shards_bucket {
    struct slu_shard_bucket pub;
    struct slu_shard_facts *facts; /* pub.n_shard elements */
    size_t cap_facts;
    struct slu_writer *rows;
    struct slu_shard_extra *rows_file;
    struct slu_sum sum;           /* sum of the complete shards, computed from the
                                     shards */
    struct slu_domains domains;   /* of its rows */
    struct slu_shards_done *done; /* shards of a stopped run, by number */
    size_t n_done, cap_done;
    uint64_t first;                /* for a part: number of its first shard */
    struct slu_shards_done *noted; /* for a part: pub.n_shard elements, as facts */
    size_t cap_noted;
    /* Shards that slu_shards_plan has begun; the place of the next sequence that a job
     * takes (slu_shard_rule), its index in its shard, and the ids before it there. */
    uint64_t n_planned, place, plan_index, plan_tok;
    uint64_t n_short; /* in the last shard, if it is short */

    /* The current shard: of a format that streams … */
    struct slu_shards_files *files;            /* being written, or NULL */
    uint64_t n_ended;                          /* number of shards before it */
    struct slu_buf unwritten[SLU_SHARD_FILES]; /* bytes not yet written */
    uint64_t n_here;                           /* sequences in it so far */
    uint64_t n_tok_here;                       /* ids of these sequences */
    struct slu_bytelog *kept;                  /* see kept_files; NULL: not begun */
    struct slu_sum here;                       /* sum of these sequences */
    struct slu_u128 content;
    /* … rows not yet written, with drop_last those of the whole shard; or all sequences
     * of a shard that will be built. */
    struct slu_batch batch;
};

/* A complete shard that waits for the disk (shard_close.c). */
#define SLU_SHARDS_QUEUE 8
struct slu_shards_item {
    struct slu_shards_bucket *bucket;
    struct slu_shards_files *files; /* NULL: the shard was taken over */
    struct slu_shards_done done;
    struct slu_sum sum;
};
struct slu_shards_queue {
    bool on;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct slu_shards_item item[SLU_SHARDS_QUEUE]; /* items first … end - 1, by
                                                      remainder */
    unsigned first, end;
    bool over; /* no more items will come */
    int rc;    /* the first fault */
    struct slu_err err;
};

struct slu_shards {
    struct slu_shards_cfg cfg;
    char *dir;
    struct slu_set_out out;   /* where the files are written */
    struct slu_buf record;    /* see slu_shards_record */
    struct slu_buf published; /* first line of a set of this record that a killed run
                                 had written, and slu_shards_new has published */
    void *state;              /* state of the format */
    struct slu_header header; /* of the segment rows: without tokens and masks */
    bool masks;
    struct slu_shards_bucket bucket[SLU_MAX_BUCKETS];
    unsigned n_bucket;
    struct slu_sum sum, dropped;
    uint64_t n_packed;
    struct slu_shard_extra *extra, **extra_end;
    struct slu_buf flushed;
    struct slu_shards_queue queue;
    struct slu_digest manifest, report;
    struct slu_buf notes;    /* further members of report.json */
    struct slu_buf sections; /* further ones of the card */
    struct slu_step_list steps;
    bool keep;                   /* keep the files, so that a later run can continue */
    int journal;                 /* open for appending, or -1 */
    struct slu_buf journal_path; /* with a NUL behind it */
    struct slu_shards_part part; /* of 0: the set is not written in parts */
    bool skipped;
    struct slu_lengths *lengths; /* of whole documents; NULL: of buckets */
};

/* Number of files of each shard. */
static inline unsigned slu_shards_n_file(const struct slu_shards *s)
{
    return s->cfg.format->n_file + (s->masks ? s->cfg.format->n_mask_file : 0);
}

/* Bytes of an id in the set's files. */
static inline unsigned slu_shards_id_bytes(const struct slu_shards_cfg *cfg,
                                           const struct slu_header *h)
{
    return cfg->documents && cfg->format->id_bytes ? cfg->format->id_bytes(h)
                                                   : slu_header_stored(h);
}

/* The bucket of a sequence of len_tok ids; -1: none. */
static inline int slu_shards_bucket_of(const struct slu_shards *s, uint64_t len_tok)
{
    return s->cfg.documents ? 0 : slu_header_bucket_of(&s->header, len_tok);
}

/* Makes an empty batch of the set's sequences. */
static inline void slu_shards_batch(const struct slu_shards *s, struct slu_batch *b)
{
    slu_batch_init(b, s->header.tok_bytes);
    b->masks = s->masks;
}

/* ---- shard_files.c ---- */

/* Makes the bucket's folder and opens the stream of its segments. */
int slu_shards_begin_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                            struct slu_err *err);
/* Name of the segment rows of part `index` in the work folder. */
void slu_shards_rows_name(const struct slu_shards_bucket *b, uint64_t index,
                          uint64_t of, char out[128]);
/* Opens file number `file` of shard `number`. */
int slu_shards_open_file(struct slu_shards *s, const struct slu_shards_bucket *b,
                         uint64_t number, unsigned file, struct slu_digest *d,
                         struct slu_out **out, struct slu_err *err);
/* Opens a file beside the shards; it is noted for manifest.jsonl after
 * slu_out_close. */
int slu_shards_open_extra(struct slu_shards *s, const char *name,
                          struct slu_shard_extra **e, struct slu_out **out,
                          struct slu_err *err);
/* Adds a complete shard, written now or taken over: facts and content of d, and the sum
 * of its sequences. */
int slu_shards_add_shard(struct slu_shards *s, struct slu_shards_bucket *b,
                         const struct slu_shards_done *d, const struct slu_sum *sum,
                         struct slu_err *err);
/* Writes rows of complete shards of the bucket and clears them. */
int slu_shards_put_rows(struct slu_shards *s, struct slu_shards_bucket *b,
                        struct slu_batch *rows, struct slu_err *err);
/* After the bucket's shards: writes its segments, its own file and its counts; for a
 * part, only its segments. */
int slu_shards_end_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                          struct slu_err *err);
/* Writes SLU_SHARD_EMPTY, for a set without sequences. */
int slu_shards_put_empty(struct slu_shards *s, struct slu_err *err);
/* For a part: syncs the folders of its shards, so that the renames in them are
 * permanent. */
int slu_shards_sync(const struct slu_shards *s, struct slu_err *err);
/* Adds all files of the set, report.json and manifest.jsonl too. */
int slu_shards_list(const struct slu_shards *s, struct slu_filelist *l,
                    struct slu_err *err);

/* Computes the size and hash of a file; scratch belongs to the caller. */
int slu_file_digest(const char *path, struct slu_buf *scratch, struct slu_digest *d,
                    struct slu_err *err);
/* Whether DIR/NAME is a regular file of this size and hash. */
bool slu_file_is(const char *dir, const char *name, const struct slu_digest *d,
                 struct slu_buf *scratch);

/* ---- shard_close.c ---- */

/* Opens the files of a shard. The caller ends them with slu_shards_files_abort, or with
 * slu_shards_close of their item. */
int slu_shards_files_open(struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, struct slu_shards_files **files,
                          struct slu_err *err);
/* NULL is legal. */
void slu_shards_files_abort(struct slu_shards_files *f);
void slu_shards_queue_begin(struct slu_shards *s, unsigned n_threads);
/* Takes ownership of it->files; names them and calls slu_shards_add_shard later, in
 * order. From here until slu_shards_queue_end, only the queue uses facts, sums and
 * journal. */
int slu_shards_close(struct slu_shards *s, struct slu_shards_item *it,
                     struct slu_err *err);
/* Waits for all items. rc: result of the work before; if it is a fault, waiting items
 * are given up. */
int slu_shards_queue_end(struct slu_shards *s, int rc, struct slu_err *err);

/* ---- shard.c ---- */

/* The shard of a sequence, its index in it, and the ids before it there. */
struct slu_shards_place {
    uint64_t number, index, at;
    bool last; /* the next sequence begins in another shard */
};
/* Decides the place of the bucket's next sequence, of n_tok ids. */
int slu_shards_plan(struct slu_shards *s, struct slu_shards_bucket *b, uint64_t n_tok,
                    struct slu_shards_place *p, struct slu_err *err);
/* SLU_E_MISMATCH unless the sequence is a part or all of one document, or padding in the
 * place of one. */
int slu_shards_check_document(const struct slu_shards *s, const struct slu_seg *seg,
                              uint64_t n_seg, uint64_t n_id, struct slu_err *err);
/* slu_shards_write after the checks at its beginning, up to the ends of the buckets. */
int slu_shards_run(struct slu_shards *s, slu_shards_source *source, void *ctx,
                   unsigned n_threads, unsigned n_slots, struct slu_err *err);

/* ---- shard_journal.c ---- */

/* Sets s->record, the beginning of all first lines, from cfg.made. */
int slu_shards_record(struct slu_shards *s, struct slu_err *err);
/* Appends a journal's first line: {"made":{…},"input":HASH}, and `more` members, each
 * with a comma before it. */
int slu_shards_head(const struct slu_shards *s, const struct slu_sum *input,
                    const char *more, struct slu_buf *t, struct slu_err *err);
/* Whether the first line of `was` differs from the line `now`: in record or input, and,
 * with `parts`, in all else. text: the first difference, as "was made with --min=256,
 * now --min=512". */
bool slu_shards_head_differs(const struct slu_buf *was, const struct slu_buf *now,
                             bool parts, char *text, size_t cap);
/* Whether the text begins with such a line, of whatever record. */
bool slu_shards_is_head(const struct slu_buf *text);
/* Appends the line of a complete shard. */
int slu_shards_line(const struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_buf *t,
                    struct slu_err *err);
/* Whether the text is such a line. Sets *d and the number of its bucket. */
bool slu_shards_read_line(const struct slu_shards *s, const uint8_t *p, size_t n,
                          struct slu_shards_done *d, unsigned *bucket);
/* Appends loss_tokens and the checksum of masks, as further members of a line, and reads
 * them; without masks there are none. */
SLU_MUST_USE int slu_shards_put_masks(const struct slu_shards *s, uint64_t n_loss,
                                      struct slu_u128 checksum, struct slu_buf *t,
                                      struct slu_err *err);
bool slu_shards_get_masks(const struct slu_shards *s, struct slu_json_value v,
                          uint64_t *n_loss, struct slu_u128 *checksum);
/* slu_shards_u64 reads a number; slu_shards_hex n_half times 16 hexadecimal digits,
 * the first half to out[n_half - 1]. */
bool slu_shards_u64(struct slu_json_value v, const char *key, uint64_t *out);
bool slu_shards_hex(struct slu_json_value v, const char *key, uint64_t *out,
                    unsigned n_half);
/* Notes the shards of all valid lines as those of an earlier run. */
int slu_shards_read_lines(struct slu_shards *s, const uint8_t *p, const uint8_t *end,
                          struct slu_err *err);
/* Checks which of these shards still exist, byte for byte. */
int slu_shards_look(struct slu_shards *s, unsigned n_threads, struct slu_err *err);
/* Name of a file of a shard in the set. */
void slu_shards_file_name(const struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, unsigned file, char out[SLU_SHARD_NAME]);
/* Writes the journal at s->journal_path anew, with the head that t begins with and the
 * shards that are taken over, and opens it for appending. */
int slu_shards_write_journal(struct slu_shards *s, struct slu_buf *t,
                             struct slu_err *err);
/* Prepares the folder; takes over the shards of an earlier run with the same head.
 * SLU_EOF: slu_shards_new has published the set. */
int slu_shards_begin(struct slu_shards *s, const struct slu_sum *input,
                     unsigned n_threads, struct slu_err *err);
/* The shard of this number from an earlier run; NULL: it has to be written. Any
 * thread. */
const struct slu_shards_done *slu_shards_done(const struct slu_shards_bucket *b,
                                              uint64_t number);
int slu_shards_note(struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_err *err);
/* Reports that a shard that was taken over has other sequences. */
int slu_shards_differs(struct slu_shards *s, const struct slu_shards_bucket *b,
                       uint64_t number, struct slu_err *err);
/* Hash of sequence `index` of a shard, whose tokens have the hash `tokens`; the hashes
 * of a shard are added. Any thread. */
struct slu_u128 slu_shards_content(uint64_t index, struct slu_u128 tokens,
                                   const struct slu_seg *seg, uint64_t n_seg);

/* ---- shard_given.c ---- */

/* What s->cfg.given says of a bucket; NULL: nothing. */
const struct slu_shards_given_bucket *
slu_shards_given_bucket(const struct slu_shards *s, uint64_t length);
/* Puts the files of the given shards into the set's folder, and notes these shards. */
int slu_shards_take_given(struct slu_shards *s, struct slu_err *err);

/* ---- shard_stream.c, shard_build.c: slu_shards_write by either kind of format ---- */

int slu_shards_stream(struct slu_shards *s, slu_shards_source *source, void *ctx,
                      unsigned n_threads, unsigned n_slots, struct slu_err *err);
/* Sequences of a full shard if the user gives no number: the format's default, or the
 * largest power of two that a run with the least memory can build. */
uint64_t slu_shards_auto(const struct slu_shard_format *f,
                         const struct slu_shard_bucket *b);
/* SLU_E_USAGE if cfg.memory_byte is too little for a shard of some bucket. */
int slu_shards_check_memory(const struct slu_shards *s, struct slu_err *err);
int slu_shards_build(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err);

/* ---- shard_card.c ---- */

/* Facts of a finished set; borrows s and the account. End with slu_shards_card_release,
 * also after an error. */
struct slu_shards_card {
    struct slu_card card;
    struct slu_card_bucket bucket[SLU_MAX_BUCKETS];
    struct slu_domain_row *domain;
    struct slu_length_count *length;
    struct slu_step_list
        steps; /* those of the header, with the counts that are known */
};
int slu_shards_card_init(struct slu_shards_card *k, const struct slu_shards *s,
                         const struct slu_account *account, struct slu_err *err);
void slu_shards_card_release(struct slu_shards_card *k);
/* Writes lengths.svg and README.md. */
int slu_shards_card_write(struct slu_shards *s, const struct slu_shards_card *k,
                          struct slu_err *err);

/* ---- shard_report.c ---- */

/* The end of report.json: the XXH3-64 of the bytes before it (slu_seal_put). */
#define SLU_REPORT_SEAL ",\n  \"xxh3_64\": \"", "\"\n}\n"

int slu_shards_manifest(struct slu_shards *s, struct slu_err *err);
int slu_shards_report(struct slu_shards *s, const struct slu_shards_card *card,
                      const char *program, const struct slu_account *account,
                      struct slu_err *err);

#endif
