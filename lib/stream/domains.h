/* domains.h - documents, tokens and bytes of text for each domain of a stream. (Bytes
 * per token is a tokenizer's fertility.)
 *
 * A row's index is the domain's number in the names table; documents without a domain
 * have a row of their own. A table takes 40 bytes per domain. Lists are sorted by
 * tokens, the most first, then by name. So they do not depend on the numbers, which
 * differ from process to process.
 *
 * Thread safety: one thread at a time on a table.
 */
#ifndef SLU_DOMAINS_H
#define SLU_DOMAINS_H

#include "batch.h"
#include "stream.h"

SLU_BEGIN_DECLS

struct slu_domain_row {
    const char *name;   /* in lists only, borrowed; NULL: no domain */
    uint64_t documents; /* counted at their first tokens */
    uint64_t tokens;    /* without padding */
    /* Tokens that are not special, and the bytes that these stand for; 0: unknown. */
    uint64_t text_tok, text_byte;
};

struct slu_domains {
    struct slu_domain_row none; /* documents without a domain */
    struct slu_domain_row *row;
    size_t n, cap;
};

#define SLU_DOMAINS_INIT                                                               \
    {                                                                                  \
        {NULL, 0, 0, 0, 0}, NULL, 0, 0                                                 \
    }

void slu_domains_release(struct slu_domains *d);
/* Finds the row of a number (SLU_NO_DOMAIN: d->none); makes it if it is missing. *row
 * is valid until the next call. */
SLU_MUST_USE int slu_domains_row(struct slu_domains *d, uint32_t number,
                                 struct slu_domain_row **row, struct slu_err *err);
/* Adds the segments of a batch. v: to count the text they stand for; NULL: it is not
 * counted. */
SLU_MUST_USE int slu_domains_add_batch(struct slu_domains *d, const struct slu_batch *b,
                                       const struct slu_vocab_table *v,
                                       struct slu_err *err);
/* Adds all of b to *d. */
SLU_MUST_USE int slu_domains_add(struct slu_domains *d, const struct slu_domains *b,
                                 struct slu_err *err);

/* Lists the rows that are not empty, sorted, with names borrowed from `names`. Caller
 * frees *list with free(). */
SLU_MUST_USE int slu_domains_list(const struct slu_domains *d, struct slu_names *names,
                                  struct slu_domain_row **list, size_t *n,
                                  struct slu_err *err);
/* Returns the sum of list[from … n). */
struct slu_domain_row slu_domains_sum(const struct slu_domain_row *list, size_t from,
                                      size_t n);
/* Appends a JSON array of rows {"domain": NAME or null, "documents", "tokens",
 * "text_bytes", "text_tokens", "bytes_per_token"}, the last three only if they are
 * known. Rows after the first SLU_DOMAINS_MOST are summed in {"others": number, …}. */
#define SLU_DOMAINS_MOST 1000
SLU_MUST_USE int slu_domains_put_json(const struct slu_domain_row *list, size_t n,
                                      struct slu_buf *out, struct slu_err *err);

SLU_END_DECLS

#endif
