/* epoch_order.h - the order of a bucket's sequences in each epoch of a schedule of
 * version 2 (formats/SCHEDULE.md, 7). Epoch 0 has the order of the shards. Each later
 * epoch permutes blocks of `block` consecutive sequences, and the sequences within a
 * block, so a reader needs one block of the shards at a time. Both permutations are
 * Feistel networks, so any place is found without the places before it.
 *
 * The hash is a few multiplications and not slu_draw, because trainers compute the
 * order too, in numpy.
 *
 * Thread safety: pure functions.
 */
#ifndef SLU_EPOCH_ORDER_H
#define SLU_EPOCH_ORDER_H

#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

enum { SLU_EPOCH_MAX_BLOCK = 1 << 20 }; /* sequences */

struct slu_epoch_order {
    uint64_t seed, epoch, bucket;
    uint64_t n;     /* sequences of the bucket */
    uint64_t block; /* sequences of a block, 1 … SLU_EPOCH_MAX_BLOCK */
};

/* Returns the number of the sequence at `place` < n. */
uint64_t slu_epoch_sequence(const struct slu_epoch_order *o, uint64_t place);
/* Returns the block's size for sequences of `length` tokens: about 1 MiB of ids, and a
 * power of 4, which a Feistel network permutes fastest. */
uint64_t slu_epoch_block(uint64_t length);

SLU_END_DECLS

#endif
