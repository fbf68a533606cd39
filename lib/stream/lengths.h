/* lengths.h - a histogram of the lengths of sequences.
 *
 * Lengths below 2^20 are counted in a table that grows with the longest one seen, on
 * the chosen device; the few longer ones are in a sorted list. Counts do not depend on
 * the device or on the order of additions.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_LENGTHS_H
#define SLU_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/device.h"
#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_length_count {
    uint64_t len_tok;
    uint64_t count; /* > 0 */
};

struct slu_lengths;

/* Makes an empty histogram. device (NULL: the CPU) is borrowed until slu_lengths_free;
 * if it fails, the policy of device.h applies, and no count is lost. *left_byte is the
 * memory that is left for counts, borrowed, and shared by all handles that get it;
 * slu_lengths_add returns SLU_E_LIMIT when it is used up. NULL: no limit. */
SLU_MUST_USE int slu_lengths_new(struct slu_lengths **l, struct slu_device *device,
                                 uint64_t *left_byte, struct slu_err *err);
/* Counts n lengths (in tokens). */
SLU_MUST_USE int slu_lengths_add(struct slu_lengths *l, const uint64_t *len_tok,
                                 size_t n, struct slu_err *err);
/* Copies the histogram, by ascending length, to *row. Caller frees it with free(). */
SLU_MUST_USE int slu_lengths_rows(struct slu_lengths *l, struct slu_length_count **row,
                                  size_t *n, struct slu_err *err);
/* The same for counts of lengths 0 … n_bin-1, with room behind for `more` rows. */
SLU_MUST_USE int slu_lengths_make_rows(const uint64_t *count, size_t n_bin, size_t more,
                                       struct slu_length_count **row, size_t *n,
                                       struct slu_err *err);
void slu_lengths_free(struct slu_lengths *l);

SLU_END_DECLS

#endif
