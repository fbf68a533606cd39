/* domains.h - what each domain of a stream has: documents, tokens, and the text that
 * these stand for (whose ratio, bytes a token, is a tokenizer's fertility).
 *
 * Rows are by number in the names table, one for documents without a domain apart. A
 * table takes 40 bytes a domain. Lists are sorted, the most tokens first, ties by name,
 * so they do not depend on the numbers, which mean something in one process only.
 *
 * Thread safety: one thread at a time on a table.
 */
#ifndef SLU_DOMAINS_H
#define SLU_DOMAINS_H

#include "batch.h"
#include "stream.h"

SLU_BEGIN_DECLS

struct slu_domain_row {
    const char *name;             /* borrowed, in lists; NULL: no domain */
    uint64_t documents;           /* that begin here */
    uint64_t tokens;              /* all but padding */
    uint64_t text_tok, text_byte; /* those of them that are no special tokens, and the
                                     bytes that they stand for; 0, 0: not known */
};

struct slu_domains {
    struct slu_domain_row none; /* of no domain */
    struct slu_domain_row *row;
    size_t n, cap;
};

#define SLU_DOMAINS_INIT                                                               \
    {                                                                                  \
        {NULL, 0, 0, 0, 0}, NULL, 0, 0                                                 \
    }

void slu_domains_release(struct slu_domains *d);
/* The row of a number (SLU_NO_DOMAIN: none), made where it is missing; valid until the
 * next call. */
SLU_MUST_USE int slu_domains_row(struct slu_domains *d, uint32_t number,
                                 struct slu_domain_row **row, struct slu_err *err);
/* Adds the segments of a batch; with v also what text they stand for. */
SLU_MUST_USE int slu_domains_add_batch(struct slu_domains *d, const struct slu_batch *b,
                                       const struct slu_vocab_table *v,
                                       struct slu_err *err);
/* Adds all of b to *d. */
SLU_MUST_USE int slu_domains_add(struct slu_domains *d, const struct slu_domains *b,
                                 struct slu_err *err);

/* The rows that have anything, sorted, with names (borrowed from names); caller frees
 * *list with free(). */
SLU_MUST_USE int slu_domains_list(const struct slu_domains *d, struct slu_names *names,
                                  struct slu_domain_row **list, size_t *n,
                                  struct slu_err *err);
/* What list[from … n) adds up to. */
struct slu_domain_row slu_domains_sum(const struct slu_domain_row *list, size_t from,
                                      size_t n);
/* Appends a JSON array: {"domain": NAME or null, "documents", "tokens", "text_bytes",
 * "text_tokens", "bytes_per_token"} each, the last three where they are known; of more
 * than SLU_DOMAINS_MOST the rest is one row, {"others": how many, …}. */
#define SLU_DOMAINS_MOST 1000
SLU_MUST_USE int slu_domains_put_json(const struct slu_domain_row *list, size_t n,
                                      struct slu_buf *out, struct slu_err *err);

SLU_END_DECLS

#endif
