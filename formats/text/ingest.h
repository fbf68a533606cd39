/* ingest.h - from files to a stream of documents: what the program tokenize does.
 *
 * Raw blocks are read in order, parsed and encoded in parallel, and written in order,
 * so that the stream does not depend on the number of threads or on the size of blocks.
 * A text that is larger than a block comes in several of them, where the tokenizer says
 * where it can be cut (tok/cut.h): its size is not bounded by the memory.
 * Records that are not taken end the run or are dropped and accounted for, by reason.
 */
#ifndef SLU_INGEST_H
#define SLU_INGEST_H

#include "formats/text/input.h"
#include "lib/base/json.h"
#include "lib/stream/account.h"
#include "lib/stream/domains.h"
#include "lib/stream/stream.h"
#include "lib/token/tokenizer.h"

SLU_BEGIN_DECLS

struct slu_ingest_cfg {
    const struct slu_tokenizer *tokenizer;
    const struct slu_sources *sources;
    const struct slu_input_format *format; /* NULL: each source for itself */
    struct slu_names *names;               /* sources and domains are entered here */
    const char *text_field, *id_field, *domain_field,
        *score_field;   /* NULL: not wanted, but the text */
    const char *domain; /* of all documents, or NULL */
    bool bos, eos;
    double sample;  /* fraction of the documents that are taken at all; 1: all */
    double holdout; /* fraction of these that go to holdout_out */
    uint64_t seed;  /* of both choices, which look at the text alone: equal texts share
                     * their fate, in whatever file, order or part they come */
    uint64_t max_tok; /* the run ends before the first document of `out` that would make
                       * it more; UINT64_MAX: none does */
    bool skip_bad; /* go on behind records that are not taken, and behind sources that
                    * break off (see formats/text/input.h) */
    /* Borrowed; the caller closes them. out takes the documents in order. */
    struct slu_writer *out;
    struct slu_writer *holdout_out; /* NULL: holdout is 0 */
    struct slu_out *rejects;        /* JSON lines; or NULL */
    uint64_t memory_byte;           /* for blocks, tokens and caches; at least 32 MiB */
    const char *tmpdir;             /* for the ids of a text that is larger than that */
    unsigned n_threads;
    /* Called in order, from any thread; may be NULL. */
    void *ctx;
    void (*progress)(void *ctx, uint64_t stored_byte, uint64_t n_tok);
    void (*source_done)(void *ctx, const struct slu_source *src, bool empty);
    /* With skip_bad: at the time when a source breaks off. `why` is one line that names
     * file and place. */
    void (*source_broken)(void *ctx, uint64_t document, enum slu_reject reason,
                          const char *why);
};

struct slu_ingest_stat {
    uint64_t sources, empty_sources;
    uint64_t input_byte; /* decompressed */
    uint64_t text_byte;  /* of the documents that were encoded */
    uint64_t spill_byte; /* written to temporary files */
    uint64_t rejected;   /* records, and beginnings of records */
    uint64_t rejected_by[SLU_REJECT_N];
    uint64_t documents, scored; /* of out and holdout_out: all, those with a score */
    struct slu_domain_row held; /* what went to holdout_out */
    struct slu_domains domains; /* of out */
    /* max_tok ended the run at this document, which is in no book. */
    bool cut;
    uint64_t cut_source, cut_document;
};

/* Adds to the ledger: in = records and their text tokens, created = BOS and EOS,
 * dropped under "empty", "sample", "holdout" and the reasons of lib/base/json.h. `out` is
 * the writer's to say. A document that is not in the sample is not encoded, so it
 * counts no tokens. Behind the place where max_tok ends the run nothing is booked, and
 * no fault is one. Errors: those of the modules below; SLU_E_FORMAT names file and line
 * of a bad record. Caller releases stat->domains, also after an error. */
SLU_MUST_USE int slu_ingest(const struct slu_ingest_cfg *cfg, struct slu_ledger *ledger,
                            struct slu_ingest_stat *stat, struct slu_err *err);

SLU_END_DECLS

#endif
