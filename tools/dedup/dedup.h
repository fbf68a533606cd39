/* dedup.h - what the modes of dedup share.
 *
 * tools/dedup/dedup.c has the one option table and chooses the mode; each mode is a function
 * in a file tools/dedup/MODE.c: dedup_open, one library call with dedup_emit at its
 * end, dedup_close.
 *
 * To add an option: a field in struct dedup_opts, a row in `options` and, unless every
 * mode has it, a row in `belongs`. To add a mode: an enum value, a run function, a row
 * in `modes`.
 */
#ifndef SLU_DEDUP_PRIVATE_H
#define SLU_DEDUP_PRIVATE_H

#include "lib/base/buf.h"
#include "lib/dedup/origin.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"

struct dedup_opts {
    bool exact, near;
    const char *pairs;
    /* --near */
    uint64_t ngram; /* UINT64_MAX: not given, see dedup_ngram */
    uint64_t bands, rows, band_cap;
    const char *threshold; /* reduced, in threshold_text; NULL: the default */
    char threshold_text[32];
    uint64_t threshold_num, threshold_den; /* what it means, exactly */
    int unit, keep;                        /* indices of the choices in dedup.c */
    const char *domains;                   /* names with commas between */
    bool verify;
    uint64_t audit; /* documents, 0: no audit */
    /* --ngrams */
    int ngrams;          /* enum slu_ngrams_by; -1: another mode */
    const char *overlap; /* as threshold */
    char overlap_text[32];
    uint64_t overlap_num, overlap_den;
    double fp_rate;
    uint64_t min_words; /* UINT64_MAX: as many as an n-gram has */
    const char *report;
    /* --save-index, --against */
    const char *save_index;
    const char
        *against_id; /* for the provenance: what the index holds, in against_hex */
    char against_hex[33];
    const char *against;
    bool cut;        /* and of --substring */
    uint64_t window; /* words */
    struct cli_flow_opts flow;
    /* --substring */
    uint64_t substring, min_keep;
    bool annotate; /* and not cut */
};

/* --ngram, which has a default of its own in each mode. */
static inline uint64_t dedup_ngram(const struct dedup_opts *o, uint64_t by_default)
{
    return o->ngram == UINT64_MAX ? by_default : o->ngram;
}

/* One bit each, in the order of the table in dedup.c; the first is the default. */
enum dedup_mode {
    DEDUP_EXACT = 1 << 0,
    DEDUP_NEAR = 1 << 1,
    DEDUP_NGRAMS = 1 << 2,
    DEDUP_AGAINST = 1 << 3,
    DEDUP_SUBSTRING = 1 << 4,
};

SLU_MUST_USE int dedup_exact(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_exact_stage(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_near(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_near_stage(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_ngrams(struct cli_ctx *ctx, struct slu_err *err);
/* Opens the index; what is in it decides what is done. */
SLU_MUST_USE int dedup_against(struct cli_ctx *ctx, struct slu_err *err);
/* --ngrams --save-index, and --against an index of n-grams. */
struct slu_workfile;
SLU_MUST_USE int dedup_contam_save(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_contam(struct cli_ctx *ctx, struct slu_workfile *index,
                              struct slu_err *err);

/* The ranges of --near's options. */
SLU_MUST_USE int dedup_near_check(const struct cli_ctx *ctx, const struct dedup_opts *o,
                                  struct slu_err *err);
SLU_MUST_USE int dedup_substring(struct cli_ctx *ctx, struct slu_err *err);
/* The ranges of its options. */
SLU_MUST_USE int dedup_substring_check(const struct dedup_opts *o, struct slu_err *err);
SLU_MUST_USE int dedup_substring_stage(struct cli_ctx *ctx, struct slu_err *err);

/* The decimal fraction of --threshold as integers: SLU_E_USAGE unless it is above 0, at
 * most 1, and has nine digits or less. */
SLU_MUST_USE int dedup_parse_threshold(void *opts, const char *value,
                                       struct slu_err *err);
SLU_MUST_USE int dedup_parse_overlap(void *opts, const char *value,
                                     struct slu_err *err);

/* --keep: which of two similar documents comes first. */
enum dedup_keep { DEDUP_KEEP_FIRST, DEDUP_KEEP_LONGEST, DEDUP_KEEP_DOMAIN };
/* --keep and --domains go together. */
SLU_MUST_USE int dedup_check_keep(const struct dedup_opts *o, struct slu_err *err);
/* The document's priority, see near.h; 0 for DEDUP_KEEP_FIRST. */
uint64_t dedup_prio(const struct dedup_opts *o, struct slu_names *names,
                    const struct slu_batch *b, const struct slu_seq *q);

/* ---- --pairs: what was dropped and for what, as JSON lines (dedup_pairs.c) ---- */

struct dedup_pairs {
    struct slu_out *out;     /* NULL: not wanted */
    struct slu_names *names; /* borrowed */
    struct slu_buf text;     /* not written yet */
    uint64_t n;
};

/* path NULL: nothing is wanted, and the other functions do nothing. */
SLU_MUST_USE int dedup_pairs_open(struct dedup_pairs *p, const char *path,
                                  struct slu_names *names, struct slu_err *err);
/* The pair and its similarity inter/uni (1/1 for equal tokens), rounded to six digits.
 */
SLU_MUST_USE int dedup_pairs_put(struct dedup_pairs *p,
                                 const struct slu_origin *dropped,
                                 const struct slu_origin *kept, uint64_t inter,
                                 uint64_t uni, struct slu_err *err);
/* Appends `"key":{…},`: a place as `inspect --records` names it. */
SLU_MUST_USE int dedup_put_place(struct slu_buf *text, struct slu_names *names,
                                 const char *key, const struct slu_origin *place,
                                 struct slu_err *err);
/* Gives the file its name. */
SLU_MUST_USE int dedup_pairs_close(struct dedup_pairs *p, struct slu_err *err);
/* Frees; what was not closed gets no name. */
void dedup_pairs_abort(struct dedup_pairs *p);

/* ---- a stream in, a stream out ---- */

struct slu_index_out;
struct dedup_io {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_writer *writer;
    struct dedup_pairs pairs;
    struct slu_index_out *index; /* NULL: none is saved */
    uint64_t tok;                /* left so far */
};

/* Opens all three; streams without tokens are refused. io is zeroed first, so that
 * dedup_abort is right whatever happened. */
SLU_MUST_USE int dedup_open(struct dedup_io *io, struct cli_ctx *ctx,
                            struct slu_err *err);
/* `emit` of the library's engines: writes the batch. */
SLU_MUST_USE int dedup_emit(void *io, struct slu_batch *b, struct slu_err *err);
/* Books what was read and what was dropped under `reason` (a static string), checks
 * that each dropped sequence has its pair, and closes pairs and stream, in this order:
 * whoever sees the stream end well has both. */
SLU_MUST_USE int dedup_close(struct dedup_io *io, const struct slu_sum *in,
                             const char *reason, struct slu_count dropped,
                             struct slu_err *err);
void dedup_abort(struct dedup_io *io);

#define DEDUP_FP_RATE 0.01 /* --fp-rate by default */

/* ---- --save-index and --against of --exact and --near (dedup_index.c) ---- */

struct slu_index_doc;
#define DEDUP_NEAR_NGRAM 5 /* --ngram of --near by default */

/* Before dedup_open, whose provenance names the index of --against by its contents. */
SLU_MUST_USE int dedup_index_name(struct dedup_opts *o, struct slu_err *err);
/* After it: what dedup_emit gets goes to the index too. */
SLU_MUST_USE int dedup_index_create(struct dedup_io *io, enum dedup_mode mode,
                                    struct slu_err *err);
/* Calls known for each document of the index, if there is one. */
SLU_MUST_USE int dedup_index_read(struct dedup_io *io, enum dedup_mode mode,
                                  int (*known)(void *ctx, const struct slu_index_doc *d,
                                               uint64_t number, struct slu_err *err),
                                  void *ctx, struct slu_err *err);

#endif
