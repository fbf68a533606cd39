/* ingest_job.h - a run of ingest.h and the blocks on their way through it. Private to
 * ingest.c (memory, the serial ends) and ingest_encode.c (the parallel middle).
 */
#ifndef SLU_INGEST_JOB_H
#define SLU_INGEST_JOB_H

#include <pthread.h>

#include "formats/text/ingest_private.h"
#include "formats/text/rejects.h"
#include "lib/token/encode_parts.h"

/* What became of a part of a long text. */
struct slu_ingest_part {
    const struct slu_record_ref *ref; /* NULL: there is none */
    size_t from, n_tok;               /* in the job's ids */
    uint64_t
        bad_off; /* of its first byte that is no UTF-8, in the text; or UINT64_MAX */
};

struct slu_ingest_job {
    struct slu_block block;
    struct slu_ids ids; /* of all documents; batch and holdout point into it */
    struct slu_batch batch, holdout;
    struct slu_buf rejects; /* JSON lines */
    struct slu_ingest_part last,
        first; /* of a text that began before, and of one that goes on */
    struct slu_fate_row *fate; /* of the records so far */
    size_t n_fate, cap_fate;
    int rc; /* of the record behind these, where the run may end before it */
    struct slu_err err;
};

/* Documents of a block whose texts wait to be encoded together. */
struct slu_ingest_wait {
    struct slu_ingest_doc {
        const struct slu_record_ref *ref;
        struct slu_record rec; /* without its strings */
        enum slu_fate fate;
    } * doc;
    size_t *end, *id_end; /* of each text, and of its ids in the job's */
    size_t n, cap_doc, cap_end, cap_id_end;
    struct slu_buf text, names; /* texts; ids and domains, one behind the other */
};

struct slu_ingest_worker {
    struct slu_record_parser *parser;
    struct slu_ingest_wait wait;
    char *domain; /* the last one, and its number */
    size_t domain_len, domain_cap;
    uint32_t domain_number;
};

struct slu_ingest_run {
    const struct slu_ingest_cfg *cfg;
    struct slu_encode_crew crew;
    struct slu_ingest_books books;
    struct slu_input *input;
    struct slu_ingest_worker *worker;
    unsigned n_worker;
    uint32_t domain; /* of all documents, or SLU_NO_DOMAIN */
    unsigned tok_bytes;
    uint64_t n_tok;
    struct slu_long_text *text; /* whose parts are being emitted */

    /* Memory of records larger than a block: taken by produce, given back by emit.
     * produce may wait for it: the jobs before it need no further produce to be
     * emitted. */
    pthread_mutex_t lock;
    uint64_t grown_byte, max_grown_byte, kept_byte;
    bool failed; /* a job has failed, so nothing more will be given back */
    int quit_fd; /* an eventfd: the run has stopped; or -1 */
};

/* A job has failed: nobody is to wait for its memory. Any thread. */
void slu_ingest_failed(struct slu_ingest_run *g);

void slu_ingest_wait_release(struct slu_ingest_wait *w);

/* The parallel part of a run: from a block to its batches, rejects and fates. `ctx` is
 * the run, `job` a slu_ingest_job. */
SLU_MUST_USE int slu_ingest_encode(void *ctx, unsigned worker, void *job,
                                   struct slu_err *err);

#endif
