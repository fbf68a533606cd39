/* token_hash.h - slu_hash_tokens() of ids that come in parts and whose number is known
 * only at the end.
 *
 * The number is the first 8 bytes that XXH3-128 hashes (xxHash specification 0.2.0).
 * XXH3 has eight accumulators. Those 8 bytes reach only the first two of them, by
 * additions. Each block of 1 KiB adds to an accumulator a value that depends on the
 * data alone, then scrambles it by itself. So the other six accumulators are computed
 * as the ids come. For the first two, the values that blocks add wait in a log, 16
 * bytes per KiB, and are added when the number is known.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_TOKEN_HASH_H
#define SLU_TOKEN_HASH_H

#include "lib/base/hash.h"

struct slu_token_hash;

/* Makes a handle. budget_byte and tmpdir are those of the log (lib/flow/bytelog.h).
 * Caller frees with slu_token_hash_free. */
SLU_MUST_USE int slu_token_hash_new(struct slu_token_hash **h, uint64_t budget_byte,
                                    const char *tmpdir, struct slu_err *err);
/* Adds n_tok ids of tok_bytes (2 or 4) bytes each. */
SLU_MUST_USE int slu_token_hash_add(struct slu_token_hash *h, const void *tok,
                                    size_t n_tok, unsigned tok_bytes,
                                    struct slu_err *err);
/* Computes the hash of all ids. Nothing can be added afterwards. */
SLU_MUST_USE int slu_token_hash_end(struct slu_token_hash *h, struct slu_u128 *hash,
                                    struct slu_err *err);
/* Returns the bytes written to a temporary file so far. */
uint64_t slu_token_hash_spilled(const struct slu_token_hash *h);
/* NULL is legal. */
void slu_token_hash_free(struct slu_token_hash *h);

#endif
