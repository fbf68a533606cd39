/* ingest_job.h - the state of a run of ingest.h, and of the blocks on their way through
 * it. Private to ingest.c (memory, the serial ends) and ingest_encode.c (the parallel
 * middle).
 */
#ifndef SLU_INGEST_JOB_H
#define SLU_INGEST_JOB_H

#include <pthread.h>

#include "formats/text/ingest_private.h"
#include "formats/text/rejects.h"
#include "formats/text/spans.h"
#include "lib/token/encode_parts.h"

/* A part of a long text, encoded. */
struct slu_ingest_part {
    const struct slu_record_ref *ref; /* NULL: no such part */
    size_t from, n_tok;               /* first id and number of ids, in the job's ids */
    /* offset in the text of the first byte that is not UTF-8; or UINT64_MAX */
    uint64_t bad_off;
};

/* What c4_lines took from a text. */
struct slu_ingest_edit {
    uint64_t n_line, n_byte;
    bool changed;
};

/* A record that was repaired. */
struct slu_ingest_repaired {
    size_t record; /* in its block */
    struct slu_repaired n;
};

struct slu_ingest_job {
    struct slu_block block;
    struct slu_ids ids; /* of all documents; batch and holdout point into it */
    struct slu_batch batch, holdout;
    struct slu_buf rejects; /* JSON lines */
    struct slu_ingest_part last,
        first; /* of a text that began before; of a text that goes on */
    struct slu_outcome_row *outcome; /* one per record so far */
    size_t n_outcome, cap_outcome;
    uint64_t *seen; /* one per record; bit i: it has field i of any. NULL: no filter
                     * looks at one */
    size_t cap_seen;
    struct slu_ingest_edit *edit; /* one per record; NULL: texts are not edited */
    size_t cap_edit;
    struct slu_ingest_repaired *repaired;
    size_t n_repaired, cap_repaired;
    /* Of each record of sluice-chat: its place in `origins`, from 1; there are VERSION,
     * ARGUMENTS, FILE, each with its NUL. cfg->origins NULL: neither is used. */
    size_t *origin, cap_origin;
    struct slu_buf origins;
    int rc; /* error of the next record; the run may end before it */
    struct slu_err err;
};

/* Documents of a block whose texts wait to be encoded together. */
struct slu_ingest_wait {
    struct slu_ingest_doc {
        const struct slu_record_ref *ref;
        struct slu_record rec; /* without strings */
        enum slu_outcome outcome;
    } * doc;
    /* by text: its end in `text`, and the end of its ids in the job's */
    size_t *end, *id_end;
    size_t n, cap_doc, cap_end, cap_id_end;
    struct slu_buf text, names; /* texts; ids and domains, one after another */
    struct slu_buf spans;       /* of all texts: pairs of u64 */
};

struct slu_ingest_worker {
    struct slu_record_parser *parser;
    struct slu_expr_run *where;             /* NULL: there is no expression */
    struct slu_rules_run *rules, *c4_lines; /* NULL: there are none */
    enum slu_rule rule;                     /* by which the last text failed */
    struct slu_buf url, line;               /* of the record; for fasttext */
    struct slu_value any[SLU_RECORD_ANY];   /* of a row */
    struct slu_err why;                     /* what a record's field does not fit */
    struct slu_ingest_wait wait;
    char *domain; /* the last domain */
    size_t domain_len, domain_cap;
    uint32_t domain_number;
    struct slu_buf row_spans;  /* pairs of u64 */
    struct slu_block repaired; /* has the last record that was repaired */
    /* The last value of `needs` that was checked; tokens in it that the tokenizer
     * lacks, each with a NUL. */
    struct slu_buf needs, lacks;
    struct slu_buf meta; /* the id and the metadata of the record */
};

struct slu_ingest_run {
    const struct slu_ingest_cfg *cfg;
    struct slu_encode_workers encoders;
    struct slu_ingest_account account;
    struct slu_input *input;
    struct slu_ingest_worker *worker;
    unsigned n_worker;
    bool filters, field_filters; /* cfg->filter has one; one that needs fields */
    /* Fields of filter.where, then url_field: n_any; then those of needs.h that are
     * read; from meta_at on those of cfg->metadata: in all n_read. */
    const char *any[SLU_RECORD_ANY];
    size_t n_any, meta_at, n_read;
    unsigned tok_bytes;
    uint64_t n_tok;
    struct slu_long_text *text; /* the text whose parts are being emitted */

    /* Memory of records larger than a block: taken by produce, given back by emit.
     * produce may wait for it: emit of earlier jobs does not depend on produce. */
    pthread_mutex_t lock;
    uint64_t grown_byte, max_grown_byte, kept_byte;
    bool failed; /* a job has failed: no more memory will be given back */
    int quit_fd; /* an eventfd, readable once the run has stopped; or -1 */
};

/* Records that a job has failed, and ends all waits for memory. Any thread. */
void slu_ingest_failed(struct slu_ingest_run *g);

void slu_ingest_wait_release(struct slu_ingest_wait *w);

/* Sets any, n_any and filters of a run. */
void slu_ingest_find_filters(struct slu_ingest_run *g);
/* Makes what a worker needs to ask, which slu_ingest_close_filter frees. */
SLU_MUST_USE int slu_ingest_open_filter(const struct slu_ingest_run *g,
                                        struct slu_ingest_worker *w,
                                        struct slu_err *err);
void slu_ingest_close_filter(struct slu_ingest_worker *w);
/* Makes room to note which fields a block's records have, and how their texts are
 * edited. */
SLU_MUST_USE int slu_ingest_begin_filter(const struct slu_ingest_run *g,
                                         struct slu_ingest_job *j, struct slu_err *err);
/* Counts the fields and edits of a block's first n records. Serial. */
void slu_ingest_count_noted(struct slu_ingest_run *g, const struct slu_ingest_job *j,
                            size_t n);
/* Sets the reject of a good record that a filter leaves out or does not fit; then
 * w->why or w->rule says why. Edits its text, which is then w's until the next record.
 * SLU_E_UNSUPPORTED: the record is a text. */
SLU_MUST_USE int slu_ingest_filter(struct slu_ingest_run *g, struct slu_ingest_job *j,
                                   struct slu_ingest_worker *w,
                                   const struct slu_record_ref *ref,
                                   struct slu_record *rec, struct slu_err *err);

/* Makes w->repaired a block of the record alone, repaired. */
SLU_MUST_USE int slu_ingest_repair(const struct slu_ingest_run *g,
                                   struct slu_ingest_job *j,
                                   struct slu_ingest_worker *w,
                                   const struct slu_record_ref *ref,
                                   struct slu_err *err);
/* Counts what was repaired in the first n records. Serial. */
void slu_ingest_count_repaired(struct slu_ingest_run *g, const struct slu_ingest_job *j,
                               size_t n);

/* Makes room to note where a block's records are from. */
SLU_MUST_USE int slu_ingest_begin_needs(struct slu_ingest_job *j, struct slu_err *err);
/* Fails, naming the record's place, if it needs another encoding or another tokenizer
 * (needs.h). Notes where it is from. */
SLU_MUST_USE int
slu_ingest_check_needs(const struct slu_ingest_run *g, struct slu_ingest_job *j,
                       struct slu_ingest_worker *w, const struct slu_record_ref *ref,
                       const struct slu_record *rec, struct slu_err *err);
/* Counts where the documents of a block's first n records are from. Serial. */
SLU_MUST_USE int slu_ingest_count_origins(const struct slu_ingest_run *g,
                                          struct slu_ingest_job *j, size_t n,
                                          struct slu_err *err);

/* Makes a block's batches, rejects and outcomes: the parallel part of a run. `ctx` is
 * the run, `job` a slu_ingest_job. */
SLU_MUST_USE int slu_ingest_encode(void *ctx, unsigned worker, void *job,
                                   struct slu_err *err);

#endif
