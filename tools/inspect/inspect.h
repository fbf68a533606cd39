/* inspect.h - shared by the files of inspect. */
#ifndef SLU_INSPECT_H
#define SLU_INSPECT_H

#include "lib/base/map.h"
#include "lib/stream/groups.h"
#include "lib/stream/property.h"
#include "tools/cli/cli.h"

#define NO_RECORDS (UINT64_MAX - 1)

struct inspect_opts {
    bool json, text, jsonl, histogram, verify, merge_stats, table;
    const char *groups; /* a property; NULL: not given */
    const char *svg, *title;
    struct slu_device device; /* kept here, so that the report can name it */
    uint64_t records;         /* NO_RECORDS: off, UINT64_MAX: all */
};

/* The contents of a stream or a shard set. */
struct inspect_seen {
    const char *kind;   /* "stream" or "shards" */
    const char *format; /* of shards, else NULL */
    const struct slu_header *header;
    struct slu_sum sum;
    struct slu_step_list steps; /* with the counts that are known */
    struct slu_map lengths;     /* length in tokens -> sequences */
    struct slu_domains domains; /* filled if inspect_wants_domains */
    struct slu_names *names;    /* names of the domains; borrowed */
    char
        *shards_json; /* "buckets" of a shard set: JSON, owned by the caller; or NULL */
};

/* --merge-stats: prints the sum of the reports named on the command line, as JSON or,
 * with --table, for people. Fails with the reason if they have no common sum. */
SLU_MUST_USE int inspect_merge(struct cli_ctx *ctx, struct slu_err *err);

/* Lengths in ascending order with their counts; caller frees *row with free(). */
struct inspect_row {
    uint64_t len_tok, n_seq;
};
SLU_MUST_USE int inspect_rows(const struct slu_map *lengths, struct inspect_row **row,
                              size_t *n, struct slu_err *err);

/* Whether the output shows domains: with --json and in the summary. */
bool inspect_wants_domains(const struct inspect_opts *o);
/* Replaces the domain numbers of the segments by those in `to`. */
SLU_MUST_USE int inspect_rename_domains(struct slu_batch *b, struct slu_names *from,
                                        struct slu_names *to, struct slu_err *err);
/* Appends ", "bytes_per_token": …" (if known) and ", "domains": […]". */
SLU_MUST_USE int inspect_put_domains(const struct inspect_seen *s, struct slu_buf *out,
                                     struct slu_err *err);
/* Prints a line of the summary and, if the stream has domains, a table. */
/* Appends text of the data for a terminal: each unprintable character (slu_unprintable)
 * becomes \uXXXX. */
SLU_MUST_USE int inspect_escape(struct slu_buf *b, const char *s, size_t n,
                                struct slu_err *err);
/* Replaces b by the name as a table shows it, with a NUL: escaped JSON; NULL: (none). */
SLU_MUST_USE int inspect_put_name(struct slu_buf *b, const char *name,
                                  struct slu_err *err);
SLU_MUST_USE int inspect_print_domains(const struct inspect_seen *s,
                                       struct slu_err *err);

/* Shows what was seen as the options ask: a picture, one JSON object on standard output
 * (inspect(1)), a histogram, one line of --verify, or the summary for people. */
SLU_MUST_USE int inspect_show(const struct inspect_seen *s,
                              const struct inspect_opts *o, struct slu_err *err);
SLU_MUST_USE int inspect_print_histogram(const struct inspect_seen *s,
                                         struct slu_err *err);

/* Draws the lengths as a picture, to o->svg. */
SLU_MUST_USE int inspect_svg(const struct inspect_seen *s, const struct inspect_opts *o,
                             struct slu_err *err);

/* Draws the steps of a schedule as a picture, to o->svg. */
struct slu_schedulefile;
SLU_MUST_USE int inspect_svg_schedule(struct slu_schedulefile *f,
                                      const struct inspect_opts *o,
                                      struct slu_err *err);

/* What records are printed with; borrowed. */
struct inspect_names {
    struct slu_names *names;
    const struct slu_meta_fields *meta;
    const struct slu_vocab_table *text; /* NULL: without text */
};
/* Prints sequences of a batch as JSON lines on standard output, with tokens, and with
 * text if v is not NULL. */
SLU_MUST_USE int inspect_print_record(struct slu_batch *b, const struct slu_seq *q,
                                      const struct inspect_names *names,
                                      struct slu_buf *line, struct slu_err *err);
/* Prints segments as JSON lines {"source", "document", …, "text"}, which convert tokens
 * back to text. */
SLU_MUST_USE int inspect_print_text(struct slu_batch *b, const struct slu_seq *q,
                                    const struct inspect_names *names,
                                    struct slu_buf *line, struct slu_err *err);

/* --groups: sums by the values of a property. init also after a failure of which release
 * is called. */
struct inspect_groups {
    struct slu_property by;
    struct slu_property_memo memo;
    struct slu_names *from;   /* borrowed: of the stream */
    struct slu_names *values; /* as JSON, but strings without their quotes */
    struct slu_map number;    /* of a value in these, by its slu_property_hash */
    struct slu_groups *sums;
    uint64_t room_byte; /* for values that are not there yet */
    struct slu_buf text;
};
SLU_MUST_USE int inspect_groups_init(struct inspect_groups *g, const char *name,
                                     struct slu_reader *r, struct cli_ctx *ctx,
                                     struct slu_err *err);
/* Adds a batch, whose segments' domains it replaces. */
SLU_MUST_USE int inspect_groups_add(struct inspect_groups *g, struct slu_batch *b,
                                    struct slu_err *err);
/* Shows what has been added, in a table, as JSON or as a picture. */
SLU_MUST_USE int inspect_groups_show(struct inspect_groups *g,
                                     const struct inspect_opts *o, struct slu_err *err);
void inspect_groups_release(struct inspect_groups *g);

/* inspect on a shard directory, in any mode. */
SLU_MUST_USE int inspect_shards(struct cli_ctx *ctx, const char *dir,
                                struct slu_err *err);

/* inspect on a schedule's file, in any mode; the inputs after the file name the shards
 * that the schedule must be for. */
SLU_MUST_USE int inspect_schedule(struct cli_ctx *ctx, struct slu_err *err);

#endif
