/* dedup.h - shared by the modes of dedup.
 *
 * tools/dedup/dedup.c has the one option table and selects the mode. Each mode is a
 * function in a file tools/dedup/MODE.c that calls dedup_open, one library function
 * whose `emit` is dedup_emit, and dedup_close.
 *
 * To add an option: a field in struct dedup_opts, a row in `options` and, unless every
 * mode has the option, a row in `belongs`. To add a mode: an enumerator, a run function,
 * and rows in `options`, `modes` and `belongs`; if it has stages, a stage function, and
 * its part of `flow` and `check_stage`.
 */
#ifndef SLU_DEDUP_PRIVATE_H
#define SLU_DEDUP_PRIVATE_H

#include "lib/base/buf.h"
#include "lib/dedup/origin.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"

struct dedup_opts {
    bool exact, near;
    int trained; /* --on: only tokens that are trained on count */
    const char *pairs;
    /* --near */
    uint64_t ngram; /* UINT64_MAX: not given, see dedup_ngram */
    uint64_t bands, rows, band_cap;
    const char *threshold; /* the reduced fraction, in threshold_text; NULL: the
                              default */
    char threshold_text[32];
    uint64_t threshold_num, threshold_den; /* the exact value of threshold */
    int unit, keep;                        /* indices of the choices in dedup.c */
    const char *domains;                   /* names separated by commas */
    bool verify;
    uint64_t audit; /* documents, 0: no audit */
    /* --ngrams */
    int ngrams;          /* enum slu_ngrams_by; -1: another mode */
    const char *overlap; /* as `threshold` */
    char overlap_text[32];
    uint64_t overlap_num, overlap_den;
    double fp_rate;
    uint64_t min_words; /* UINT64_MAX: the number of words in an n-gram */
    const char *report;
    /* --save-index, --against */
    const char *save_index;
    struct cli_files against;
    bool cut;        /* --cut, also of --substring */
    uint64_t window; /* words */
    struct cli_flow_opts flow;
    /* --substring */
    uint64_t substring, min_keep;
    bool annotate; /* --annotate: leave passages in the stream */
};

/* --ngram, which has another default in each mode. */
static inline uint64_t dedup_ngram(const struct dedup_opts *o, uint64_t by_default)
{
    return o->ngram == UINT64_MAX ? by_default : o->ngram;
}

/* One bit for each mode, in the order of the table in dedup.c; the first is the
 * default. */
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
/* Opens the index, and runs the mode that the index was made for. */
SLU_MUST_USE int dedup_against(struct cli_ctx *ctx, struct slu_err *err);
/* --ngrams --save-index, and --against with an index of n-grams. */
struct slu_workfile;
SLU_MUST_USE int dedup_against_save(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int dedup_decontaminate(struct cli_ctx *ctx, struct slu_workfile *index,
                                     struct slu_err *err);

/* Checks the ranges of --near's options. */
SLU_MUST_USE int dedup_near_check(const struct cli_ctx *ctx, const struct dedup_opts *o,
                                  struct slu_err *err);
SLU_MUST_USE int dedup_substring(struct cli_ctx *ctx, struct slu_err *err);
/* Checks the ranges of --substring's options. */
SLU_MUST_USE int dedup_substring_check(const struct dedup_opts *o, struct slu_err *err);
SLU_MUST_USE int dedup_substring_stage(struct cli_ctx *ctx, struct slu_err *err);

/* Parses the decimal fraction of --threshold to integers: SLU_E_USAGE unless the value
 * is above 0, at most 1, and has at most nine digits. */
SLU_MUST_USE int dedup_parse_threshold(void *opts, const char *value,
                                       struct slu_err *err);
SLU_MUST_USE int dedup_parse_overlap(void *opts, const char *value,
                                     struct slu_err *err);

/* --keep: which of two similar documents comes first. */
enum dedup_keep { DEDUP_KEEP_FIRST, DEDUP_KEEP_LONGEST, DEDUP_KEEP_DOMAIN };
/* Checks that --keep and --domains are given together. */
SLU_MUST_USE int dedup_check_keep(const struct dedup_opts *o, struct slu_err *err);
/* The document's priority, see near.h; 0 for DEDUP_KEEP_FIRST. */
uint64_t dedup_prio(const struct dedup_opts *o, struct slu_names *names,
                    const struct slu_batch *b, const struct slu_seq *q);

/* ---- --pairs: dropped and kept sequences as JSON lines (tools/dedup/pairs.c) ---- */

struct slu_sorter;
enum { DEDUP_PAIRS_MARKS = 2 };
/* The head of a line in the temporary file. */
struct dedup_line {
    uint32_t n_byte, n_mark;
    uint32_t mark[DEDUP_PAIRS_MARKS]; /* places in the line where an id goes */
};
struct dedup_pairs {
    struct slu_out *out;     /* NULL: not wanted */
    struct slu_names *names; /* borrowed */
    struct slu_buf text;     /* lines that are not yet written */
    struct dedup_line line;  /* the head of the line that has been begun … */
    size_t at;               /* … and its place in text */
    int fd;                  /* a file without a name: lines without ids; 0, -1: none */
    /* The ids of documents, and the places in lines that wait for them, by document. */
    struct slu_sorter *ids;
    const char *tmpdir;    /* borrowed */
    uint64_t wait_byte;    /* memory for lines that wait, and that of each sorter */
    uint64_t n, n_waiting; /* all lines; those in `fd` */
    uint64_t spilled_byte;
};

/* Returns the memory that pairs need, 0 without --pairs. */
uint64_t dedup_pairs_byte(const struct cli_ctx *ctx);
/* path NULL: no file is written, and the other functions do nothing. */
SLU_MUST_USE int dedup_pairs_open(struct dedup_pairs *p, const char *path,
                                  struct slu_names *names, const struct cli_ctx *ctx,
                                  struct slu_err *err);
/* Notes the ids of a batch's documents, for the lines that name these. ctx is a
 * dedup_io, so that the modes can call it as `seen`. */
SLU_MUST_USE int dedup_pairs_seen(void *ctx, const struct slu_batch *b,
                                  struct slu_err *err);
/* Begin and end a line, which is appended to p->text in between; dedup_pairs_id says
 * that the place in the line so far gets the id of a document, if it has one. A line
 * has at most two such places. */
SLU_MUST_USE int dedup_pairs_begin(struct dedup_pairs *p, struct slu_err *err);
SLU_MUST_USE int dedup_pairs_id(struct dedup_pairs *p, const struct slu_origin *origin,
                                struct slu_err *err);
SLU_MUST_USE int dedup_pairs_end(struct dedup_pairs *p, struct slu_err *err);
/* Writes the pair with the similarity inter/uni (1/1 for equal tokens), rounded to six
 * digits.
 */
SLU_MUST_USE int dedup_pairs_put(struct dedup_pairs *p,
                                 const struct slu_origin *dropped,
                                 const struct slu_origin *kept, uint64_t inter,
                                 uint64_t uni, struct slu_err *err);
/* Appends the position of a sequence, as `inspect --records` names it, without the
 * brackets. */
SLU_MUST_USE int dedup_put_origin(struct slu_buf *text, struct slu_names *names,
                                  const struct slu_origin *origin, struct slu_err *err);
/* Finishes the file and gives it its name. */
SLU_MUST_USE int dedup_pairs_close(struct dedup_pairs *p, struct slu_err *err);
/* Frees p; a file that was not closed gets no name. */
void dedup_pairs_abort(struct dedup_pairs *p);

/* ---- a stream in, a stream out ---- */

struct slu_index_out;
struct dedup_io {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_writer *writer;
    struct dedup_pairs pairs;
    struct slu_index_out *index; /* NULL: no index is saved */
    uint64_t tok;                /* tokens kept so far */
};

/* Opens io->reader. Refuses a stream without masks with --on trained, and warns of one
 * with masks where the mode drops texts for their prompts and --on is not given. */
SLU_MUST_USE int dedup_open_reader(struct dedup_io *io, struct slu_err *err);
/* Opens reader, writer and pairs; refuses streams without tokens. io is zeroed first,
 * so that dedup_abort is valid after any failure. */
SLU_MUST_USE int dedup_open(struct dedup_io *io, struct cli_ctx *ctx,
                            struct slu_err *err);
/* `open` of the library's flows, in parts: opens the stream to write. */
SLU_MUST_USE int dedup_open_output(void *io, struct slu_err *err);
/* `emit` of the library's engines: writes the batch. */
SLU_MUST_USE int dedup_emit(void *io, struct slu_batch *b, struct slu_err *err);
/* Counts the tokens read, and those dropped under `reason` (a static string), checks
 * that each dropped sequence has its pair, and closes pairs, then the stream. So when
 * the end frame is written, both are complete. */
SLU_MUST_USE int dedup_close(struct dedup_io *io, const struct slu_sum *in,
                             const char *reason, struct slu_count dropped,
                             struct slu_err *err);
void dedup_abort(struct dedup_io *io);

#define DEDUP_FP_RATE 0.01 /* --fp-rate by default */

/* ---- --save-index and --against of --exact and --near (tools/dedup/index.c) ---- */

struct slu_index_doc;
#define DEDUP_NEAR_NGRAM 5 /* --ngram of --near by default */

/* Call before dedup_open: the provenance names the indexes of --against by their
 * contents. */
SLU_MUST_USE int dedup_index_name(struct dedup_opts *o, struct slu_err *err);
/* Call after dedup_open: all sequences given to dedup_emit then also go to the
 * index. */
SLU_MUST_USE int dedup_index_create(struct dedup_io *io, enum dedup_mode mode,
                                    struct slu_err *err);
/* Calls known for each document of the indexes of --against, numbered from 0 over all of
 * them. */
SLU_MUST_USE int dedup_index_read(struct dedup_io *io, enum dedup_mode mode,
                                  int (*known)(void *ctx, const struct slu_index_doc *d,
                                               uint64_t number, struct slu_err *err),
                                  void *ctx, struct slu_err *err);
/* Counts these documents, for a stage; h: of the stream. */
SLU_MUST_USE int dedup_index_count(struct cli_ctx *ctx, enum dedup_mode mode,
                                   const struct slu_header *h, uint64_t *n,
                                   struct slu_err *err);

#endif
