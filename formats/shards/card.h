/* card.h - the data card of a shard set: README.md, as Hugging Face's hub and people
 * read it, lengths.svg, which it shows, and what report.json says of the same.
 *
 * README.md is Markdown with a YAML front matter (licence, size category, tags, and for
 * Parquet a configuration a bucket), then: what the set is, how to read it in Python in
 * this format, its buckets, domains and sources, what was left out, how it was made,
 * how to check it. Everything depends on the facts alone, so on nothing of time, host
 * or place; names of domains and sources, the licence and arguments are escaped, and
 * long lists are cut and counted.
 *
 * Pure functions of their arguments; safe from any thread on facts that nobody changes.
 */
#ifndef SLU_CARD_H
#define SLU_CARD_H

#include "formats/shards/shard.h"
#include "lib/stream/domains.h"

struct slu_card_bucket {
    const struct slu_shard_bucket *b;
    uint64_t documents; /* that begin in it */
    uint64_t n_short;   /* sequences of a last shard that is short, else 0 */
};

/* All borrowed. */
struct slu_card {
    const struct slu_shards_cfg *cfg; /* format, licence, member, names */
    const void *state;                /* the format's */
    const struct slu_header *header;
    const struct slu_ledger *ledger;
    const struct slu_sum *sum;
    uint64_t n_packed; /* sequences of several segments */
    const struct slu_card_bucket *bucket;
    unsigned n_bucket;
    const struct slu_domain_row *domain; /* as slu_domains_list gives them */
    size_t n_domain;
};

/* Appends README.md's bytes, and lengths.svg's. */
SLU_MUST_USE int slu_card_markdown(const struct slu_card *c, struct slu_buf *out,
                                   struct slu_err *err);
SLU_MUST_USE int slu_card_svg(const struct slu_card *c, struct slu_buf *out,
                              struct slu_err *err);
/* Appends members of report.json's object, each with a comma and a line end behind it:
 * "license", "tokenizer", "packed_sequences", "domains", "sources". */
SLU_MUST_USE int slu_card_json(const struct slu_card *c, struct slu_buf *out,
                               struct slu_err *err);

/* How Python reads the set's first bucket: the lines of a code block (card_read.c). */
SLU_MUST_USE int slu_card_python(const struct slu_card *c, struct slu_buf *out,
                                 struct slu_err *err);
/* What the format is for, in a few words; and the package that the code imports, as pip
 * knows it, or NULL. */
const char *slu_card_reader(const struct slu_card *c);
const char *slu_card_package(const struct slu_card *c);

#endif
