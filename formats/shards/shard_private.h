/* shard_private.h - the engine's parts: shard.c (what is refused, buckets, books),
 * shard_stream.c and shard_build.c (the two pipelines), shard_files.c (files and their
 * hashes), shard_report.c (manifest.jsonl, report.json). */
#ifndef SLU_SHARD_PRIVATE_H
#define SLU_SHARD_PRIVATE_H

#include <pthread.h>

#include "formats/shards/card.h"
#include "formats/shards/shard.h"
#include "lib/base/json.h"
#include "lib/stream/domains.h"

#define SLU_SHARD_JOURNAL ".journal.jsonl"
#define SLU_SHARD_PARTS   ".parts.jsonl"
/* The journal's line from which on there are files beside the buckets. */
#define SLU_SHARD_ENDING       "{\"ending\":true}\n"
#define SLU_SHARDS_MAX_JOURNAL (UINT64_C(1) << 32)

/* A whole shard, as the journal keeps it. */
struct slu_shards_done {
    struct slu_shard_facts facts;
    struct slu_u128 content; /* sum of slu_shards_content of its sequences */
    struct slu_count n;      /* what they add up to */
    struct slu_u128 checksum;
    bool gone; /* but its files are not there as they were */
};

/* A file of the set that is no shard's. */
struct slu_shard_extra {
    struct slu_shard_extra *next;
    struct slu_digest digest;
    uint64_t n_seq, n_tok; /* in it; 0: it has none */
    char name[];           /* in the set's folder */
};

/* The files of a shard that is being written. */
struct slu_shards_files {
    struct slu_out *out[SLU_SHARD_FILES];
    struct slu_digest digest[SLU_SHARD_FILES]; /* once they are closed */
};

struct slu_shards_bucket {
    struct slu_shard_bucket pub;
    struct slu_shard_facts *facts; /* pub.n_shard */
    size_t cap_facts;
    struct slu_writer *rows;
    struct slu_shard_extra *rows_file;
    struct slu_sum sum;           /* of the complete shards, from the shards */
    struct slu_domains domains;   /* of its rows */
    struct slu_shards_done *done; /* by a run that was stopped, by number */
    size_t n_done, cap_done;
    uint64_t first;                /* of a part: the first of its shards */
    struct slu_shards_done *noted; /* of a part: pub.n_shard, as facts */
    size_t cap_noted;
    uint64_t n_planned; /* sequences that jobs have taken, or shards to build */
    uint64_t n_short;   /* of the last shard, if it is short */

    /* The shard at hand: a streaming format's … */
    struct slu_shards_files *files;         /* being written, or NULL */
    uint64_t n_ended;                       /* shards before it */
    struct slu_buf gather[SLU_SHARD_FILES]; /* bytes that wait */
    uint64_t n_here;                        /* sequences in it */
    struct slu_sum here;                    /* and what they add up to */
    struct slu_u128 content;
    /* … rows that wait, with drop_last those of the whole shard; or all of a shard that
     * will be built. */
    struct slu_batch batch;
};

/* Shards that wait for the disk (shard_close.c). */
#define SLU_SHARDS_QUEUE 8
struct slu_shards_item {
    struct slu_shards_bucket *bucket;
    struct slu_shards_files *files; /* NULL: taken over */
    struct slu_shards_done done;
    struct slu_sum sum;
};
struct slu_shards_queue {
    bool on;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct slu_shards_item item[SLU_SHARDS_QUEUE]; /* first … end - 1, by remainder */
    unsigned first, end;
    bool over; /* nothing more will come */
    int rc;    /* what went wrong */
    struct slu_err err;
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
    struct slu_shards_queue queue;
    struct slu_digest manifest;
    struct slu_buf notes; /* members of report.json */
    bool made_dir, made, finished;
    bool keep;                   /* what is there, for a run to go on with */
    int lock;                    /* of the folder, or -1 */
    int journal;                 /* to append to, or -1 */
    struct slu_buf journal_path; /* with a NUL behind it */
    struct slu_shards_part part; /* of = 0: the set is written at once */
    int part_lock;               /* or -1 */
    bool skipped;
};

/* ---- shard_files.c ---- */

/* The bucket's folder and its segments' stream. */
int slu_shards_begin_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                            struct slu_err *err);
/* Name of the segment rows of part `index` in the folder of all parts' work. */
void slu_shards_rows_name(const struct slu_shards_bucket *b, uint64_t index,
                          uint64_t of, char out[128]);
/* Opens file `file` of shard `number`. */
int slu_shards_open_file(struct slu_shards *s, const struct slu_shards_bucket *b,
                         uint64_t number, unsigned file, struct slu_digest *d,
                         struct slu_out **out, struct slu_err *err);
/* A file of the set's own: noted for manifest.jsonl, after slu_out_close. */
int slu_shards_open_extra(struct slu_shards *s, const char *name,
                          struct slu_shard_extra **e, struct slu_out **out,
                          struct slu_err *err);
/* A shard is whole, written now or by a run before: d's facts and content, and what its
 * sequences add up to. */
int slu_shards_add_shard(struct slu_shards *s, struct slu_shards_bucket *b,
                         const struct slu_shards_done *d, const struct slu_sum *sum,
                         struct slu_err *err);
/* Puts rows of whole shards of the bucket's and clears them. */
int slu_shards_put_rows(struct slu_shards *s, struct slu_shards_bucket *b,
                        struct slu_batch *rows, struct slu_err *err);
/* The bucket's segments, its own file and its books, once its shards are done; of a
 * part, its segments. */
int slu_shards_end_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                          struct slu_err *err);
/* fsync of every folder, so that the renames in them last. */
int slu_shards_sync(const struct slu_shards *s, struct slu_err *err);

/* What the bytes of a file add up to; scratch is the caller's. */
int slu_file_digest(const char *path, struct slu_buf *scratch, struct slu_digest *d,
                    struct slu_err *err);

/* ---- shard_close.c ---- */

/* Opens the files of a shard. Caller ends them with slu_shards_close or _abort. */
int slu_shards_files_open(struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, struct slu_shards_files **files,
                          struct slu_err *err);
/* NULL is legal. */
void slu_shards_files_abort(struct slu_shards_files *f);
void slu_shards_queue_begin(struct slu_shards *s, unsigned n_threads);
/* Takes ownership of it->files: their names, and slu_shards_add_shard, soon. Serial;
 * from here until slu_shards_queue_end facts, sums and journal are the queue's. */
int slu_shards_close(struct slu_shards *s, struct slu_shards_item *it,
                     struct slu_err *err);
/* Waits for all; rc: of what came before; what waits is given up if that is a fault. */
int slu_shards_queue_end(struct slu_shards *s, int rc, struct slu_err *err);

/* ---- shard.c ---- */

/* slu_shards_write between its beginning and the ends of the buckets. */
int slu_shards_run(struct slu_shards *s, slu_shards_source *source, void *ctx,
                   unsigned n_threads, unsigned n_slots, struct slu_err *err);

/* ---- shard_journal.c ---- */

/* Appends a journal's first line: what must agree, and `more` members, each with a
 * comma before it. */
int slu_shards_head(const struct slu_shards *s, const struct slu_sum *input,
                    const char *more, struct slu_buf *t, struct slu_err *err);
/* What of the heads differs: "arguments", "input", else "parts"; or "". */
const char *slu_shards_head_differs(const struct slu_buf *head,
                                    const struct slu_buf *text);
/* Appends the line of a whole shard. */
int slu_shards_line(const struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_buf *t,
                    struct slu_err *err);
/* Is that such a line? Sets *d and the number of its bucket. */
bool slu_shards_read_line(const struct slu_shards *s, const uint8_t *p, size_t n,
                          struct slu_shards_done *d, unsigned *bucket);
/* A member that is such a number, or n_half times 16 hexadecimal digits, the first half
 * in out[n_half - 1]. */
bool slu_shards_u64(struct slu_json_value v, const char *key, uint64_t *out);
bool slu_shards_hex(struct slu_json_value v, const char *key, uint64_t *out,
                    unsigned n_half);
/* Notes the shards of all sound lines, as those of a run before. */
int slu_shards_read_lines(struct slu_shards *s, const uint8_t *p, const uint8_t *end,
                          struct slu_err *err);
/* Finds out which of them are there, byte for byte. */
int slu_shards_look(struct slu_shards *s, unsigned n_threads, struct slu_err *err);
/* Path of a file of a shard. false: too long. */
bool slu_shards_file_path(const struct slu_shards *s, const struct slu_shards_bucket *b,
                          uint64_t number, unsigned file, char out[4096]);
/* Writes the journal anew, at s->journal_path: the head that t begins with and the
 * shards that are taken over; and opens it to append to. */
int slu_shards_write_journal(struct slu_shards *s, struct slu_buf *t,
                             struct slu_err *err);
/* Makes the folder ready, taking over what a run like this one left. */
int slu_shards_begin(struct slu_shards *s, const struct slu_sum *input,
                     unsigned n_threads, struct slu_err *err);
/* The shard of that number that a run before left; NULL: it has to be written. Any
 * thread. */
const struct slu_shards_done *slu_shards_done(const struct slu_shards_bucket *b,
                                              uint64_t number);
/* The files beside the buckets are next: nobody else's have their names. */
int slu_shards_begin_end(struct slu_shards *s, struct slu_err *err);
int slu_shards_note(struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_err *err);
/* The fault that a shard taken over is of other sequences. */
int slu_shards_differs(struct slu_shards *s, const struct slu_shards_bucket *b,
                       uint64_t number, struct slu_err *err);
/* Of sequence `index` of a shard whose tokens' hash is `tokens`; they add up. Any
 * thread. */
struct slu_u128 slu_shards_content(uint64_t index, struct slu_u128 tokens,
                                   const struct slu_seg *seg, uint64_t n_seg);
/* Is that file of a shard taken over? For slu_shard_dir_prepare. */
bool slu_shards_keeps(const void *s, const char *folder, const char *name);

/* ---- shard_stream.c, shard_build.c: slu_shards_write by either kind of format ---- */

int slu_shards_stream(struct slu_shards *s, slu_shards_source *source, void *ctx,
                      unsigned n_threads, unsigned n_slots, struct slu_err *err);
/* Sequences of a full shard where nobody says how many: the format's, or the largest
 * power of two that a run with the least memory can build. */
uint64_t slu_shards_auto(const struct slu_shard_format *f,
                         const struct slu_shard_bucket *b);
/* SLU_E_USAGE where cfg.memory_byte is not enough for a shard of some bucket. */
int slu_shards_check_memory(const struct slu_shards *s, struct slu_err *err);
int slu_shards_build(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     unsigned n_threads, unsigned n_slots, struct slu_err *err);

/* ---- shard_card.c ---- */

/* A finished set's facts; borrows s and the ledger. Ends with _release, also after an
 * error. */
struct slu_shards_card {
    struct slu_card card;
    struct slu_card_bucket bucket[SLU_MAX_BUCKETS];
    struct slu_domain_row *domain;
};
int slu_shards_card_init(struct slu_shards_card *k, const struct slu_shards *s,
                         const struct slu_ledger *ledger, struct slu_err *err);
void slu_shards_card_release(struct slu_shards_card *k);
/* lengths.svg and README.md. */
int slu_shards_card_write(struct slu_shards *s, const struct slu_shards_card *k,
                          struct slu_err *err);

/* ---- shard_report.c ---- */

/* How report.json ends: XXH3-64 of what is before (slu_seal_put). */
#define SLU_REPORT_SEAL ",\n  \"xxh3_64\": \"", "\"\n}\n"

int slu_shards_manifest(struct slu_shards *s, struct slu_err *err);
int slu_shards_report(const struct slu_shards *s, const struct slu_shards_card *card,
                      const char *program, const struct slu_ledger *ledger,
                      struct slu_err *err);

#endif
