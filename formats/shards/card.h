/* card.h - the data card of a shard set: README.md, as Hugging Face's hub and people
 * read it; lengths.svg, which README.md shows; and the same facts for report.json.
 *
 * README.md is Markdown with a YAML front matter (licence, size category, tags, and for
 * Parquet a configuration for each bucket). Its text says what the set is and how to
 * read this format in Python; lists buckets, domains, sources and what each step left out;
 * and says how the set was made and how to verify it. Everything depends only on the facts,
 * not on time, host or place. Names of domains and sources, the licence and arguments
 * are escaped, and long lists are cut and counted.
 *
 * Pure functions of their arguments; safe from any thread while no thread changes the
 * facts.
 */
#ifndef SLU_CARD_H
#define SLU_CARD_H

#include "formats/shards/shard.h"
#include "lib/stream/domains.h"
#include "lib/stream/lengths.h"
#include "lib/stream/steps.h"

struct slu_card_bucket {
    const struct slu_shard_bucket *b;
    uint64_t documents; /* documents that begin in the domain */
    uint64_t n_short;   /* sequences of the last shard if it is short, else 0 */
};

/* All borrowed. */
struct slu_card {
    const struct slu_shards_cfg *cfg; /* format, licence, member, names */
    const void *state;                /* state of the format */
    const struct slu_header *header;
    const struct slu_account *account;
    const struct slu_sum *sum;
    const struct slu_step_list *steps; /* the last one wrote the set */
    uint64_t n_packed;                 /* sequences of several segments */
    const struct slu_card_bucket *bucket;
    unsigned n_bucket;
    /* Of a set of whole documents, which has one bucket: documents by length. */
    const struct slu_length_count *length;
    size_t n_length;
    const struct slu_domain_row *domain; /* from slu_domains_list */
    size_t n_domain;
    const struct slu_buf *sections; /* further ones, after that of the domains */
};

/* Appends the bytes of README.md; and of lengths.svg. */
SLU_MUST_USE int slu_card_markdown(const struct slu_card *c, struct slu_buf *out,
                                   struct slu_err *err);
SLU_MUST_USE int slu_card_svg(const struct slu_card *c, struct slu_buf *out,
                              struct slu_err *err);
/* Appends members of report.json's object, each with a comma and a line end: "license",
 * "tokenizer", "packed_sequences", "domains", "sources". */
SLU_MUST_USE int slu_card_json(const struct slu_card *c, struct slu_buf *out,
                               struct slu_err *err);

/* Appends the section of what each step read, left out and wrote, and all steps
 * (card_steps.c). */
SLU_MUST_USE int slu_card_steps(const struct slu_card *c, struct slu_buf *out,
                                struct slu_err *err);
/* Appends the table of what tokenize took from each file, of the first `most`. */
SLU_MUST_USE int slu_card_source_rows(const struct slu_source_rows *r, size_t most,
                                      struct slu_buf *out, struct slu_err *err);
/* Writes "1,234,567" to `out`; appends foreign text for a table's cell. */
const char *slu_card_grouped(uint64_t v, char out[32]);
SLU_MUST_USE int slu_card_text(struct slu_buf *out, const char *s, struct slu_err *err);
/* Appends the lines of Python that read the set's first bucket (card_read.c). */
SLU_MUST_USE int slu_card_python(const struct slu_card *c, struct slu_buf *out,
                                 struct slu_err *err);
/* Returns the readers of the format in a few words. */
const char *slu_card_reader(const struct slu_card *c);
/* Returns the name that pip has for the package that the lines of Python import; NULL:
 * they import none. */
const char *slu_card_package(const struct slu_card *c);

#endif
