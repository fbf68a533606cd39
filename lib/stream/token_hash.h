/* token_hash.h - slu_hash_tokens() of ids that come in parts and whose number only
 * their end tells.
 *
 * The number is the first 8 bytes of what XXH3-128 hashes (xxHash specification 0.2.0).
 * XXH3 has eight accumulators. Those 8 bytes reach only the first two of them, by
 * additions, and each block of 1 KiB adds to an accumulator what depends on the data
 * alone, then scrambles it by itself. So the other six accumulators are computed as the
 * ids come, and of the first two what each block adds: 16 bytes a KiB, which are run
 * through when the number is known. They wait in a spool.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_TOKEN_HASH_H
#define SLU_TOKEN_HASH_H

#include "lib/base/hash.h"

struct slu_token_hash;

/* budget_byte and tmpdir are those of the spool (lib/flow/spool.h). Caller frees with
 * slu_token_hash_free. */
SLU_MUST_USE int slu_token_hash_new(struct slu_token_hash **h, uint64_t budget_byte,
                                    const char *tmpdir, struct slu_err *err);
/* The next n_tok ids of tok_bytes (2 or 4) bytes each. */
SLU_MUST_USE int slu_token_hash_add(struct slu_token_hash *h, const void *tok,
                                    size_t n_tok, unsigned tok_bytes,
                                    struct slu_err *err);
/* The hash of all ids. Nothing can be added afterwards. */
SLU_MUST_USE int slu_token_hash_end(struct slu_token_hash *h, struct slu_u128 *hash,
                                    struct slu_err *err);
/* Bytes written to a temporary file so far. */
uint64_t slu_token_hash_spilled(const struct slu_token_hash *h);
/* NULL is legal. */
void slu_token_hash_free(struct slu_token_hash *h);

#endif
