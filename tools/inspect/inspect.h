/* inspect.h - what the files of inspect share. */
#ifndef SLU_INSPECT_H
#define SLU_INSPECT_H

#include "lib/base/map.h"
#include "lib/stream/domains.h"
#include "tools/cli/cli.h"

#define NO_RECORDS (UINT64_MAX - 1)

struct inspect_opts {
    bool json, text, jsonl, histogram, verify, merge_stats;
    const char *svg, *title;
    struct slu_device device; /* here, so that the report can name it */
    uint64_t records;         /* NO_RECORDS: off, UINT64_MAX: all */
};

/* What has been seen of a stream or a shard set. */
struct inspect_seen {
    const char *kind;   /* "stream" or "shards" */
    const char *format; /* of shards, else NULL */
    const struct slu_header *header;
    struct slu_sum sum;
    struct slu_map lengths;     /* length in tokens -> sequences */
    struct slu_domains domains; /* where inspect_wants_domains says so */
    struct slu_names *names;    /* of their numbers; borrowed */
    char
        *shards_json; /* "buckets" of a shard set: JSON, owned by the caller; or NULL */
};

/* --merge-stats: prints the sum of the reports named on the command line, or says why
 * there is none. */
SLU_MUST_USE int inspect_merge(struct cli_ctx *ctx, struct slu_err *err);

/* Lengths in ascending order with their counts; caller frees *row with free(). */
struct inspect_row {
    uint64_t len_tok, n_seq;
};
SLU_MUST_USE int inspect_rows(const struct slu_map *lengths, struct inspect_row **row,
                              size_t *n, struct slu_err *err);

/* --json or the summary: what each domain has is shown. */
bool inspect_wants_domains(const struct inspect_opts *o);
/* Gives the segments the numbers that their domains have in `to`. */
SLU_MUST_USE int inspect_rename_domains(struct slu_batch *b, struct slu_names *from,
                                        struct slu_names *to, struct slu_err *err);
/* Appends ", "bytes_per_token": …" (where it is known) and ", "domains": […]". */
SLU_MUST_USE int inspect_put_domains(const struct inspect_seen *s, struct slu_buf *out,
                                     struct slu_err *err);
/* For people: a line of the summary, and a table where there are domains. */
SLU_MUST_USE int inspect_print_domains(const struct inspect_seen *s,
                                       struct slu_err *err);

/* One JSON object on standard output (inspect(1)). */
SLU_MUST_USE int inspect_print_json(const struct inspect_seen *s, struct slu_err *err);
/* For people. */
SLU_MUST_USE int inspect_print_summary(const struct inspect_seen *s,
                                       struct slu_err *err);
SLU_MUST_USE int inspect_print_histogram(const struct inspect_seen *s,
                                         struct slu_err *err);

/* The lengths as a picture, to o->svg. */
SLU_MUST_USE int inspect_svg(const struct inspect_seen *s, const struct inspect_opts *o,
                             struct slu_err *err);

/* The steps of a schedule as a picture, to o->svg. */
struct slu_schedulefile;
SLU_MUST_USE int inspect_svg_schedule(struct slu_schedulefile *f,
                                      const struct inspect_opts *o,
                                      struct slu_err *err);

/* Sequences of a batch as JSON lines on standard output: with tokens, and with text
 * where v is not NULL. */
SLU_MUST_USE int inspect_print_record(struct slu_batch *b, const struct slu_seq *q,
                                      struct slu_names *names,
                                      const struct slu_vocab_table *text,
                                      struct slu_buf *line, struct slu_err *err);
/* Segments as JSON lines {"source", "document", …, "text"}: text back. */
SLU_MUST_USE int inspect_print_text(struct slu_batch *b, const struct slu_seq *q,
                                    struct slu_names *names,
                                    const struct slu_vocab_table *v,
                                    struct slu_buf *line, struct slu_err *err);

/* A shard directory, in any mode. */
SLU_MUST_USE int inspect_shards(struct cli_ctx *ctx, const char *dir,
                                struct slu_err *err);

/* A schedule's file, in any mode; inputs behind it are the shards it must be for. */
SLU_MUST_USE int inspect_schedule(struct cli_ctx *ctx, struct slu_err *err);

#endif
