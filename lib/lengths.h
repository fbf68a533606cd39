/* lengths.h - the length histogram that plans are made from: how many of each length.
 *
 * Short lengths are counted in a table that grows with the longest one seen, on the
 * device that was chosen; the few lengths past LONG are kept in a sorted list. Counts
 * do not depend on the device, nor on the order of additions.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_LENGTHS_H
#define SLU_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "err.h"

struct slu_length_count {
    uint64_t len_tok;
    uint64_t count; /* > 0 */
};

struct slu_lengths;

/* *device (NULL: the CPU) is borrowed until slu_lengths_free; when it fails, its policy
 * (device.h) decides, and nothing counted is lost. *left_byte (NULL: no limit) is what
 * the counts may still take, borrowed, and shared by all handles that are given it:
 * past it slu_lengths_add is SLU_E_LIMIT. */
SLU_MUST_USE int slu_lengths_new(struct slu_lengths **l, struct slu_device *device,
                                 uint64_t *left_byte, struct slu_err *err);
/* Counts n lengths (in tokens). */
SLU_MUST_USE int slu_lengths_add(struct slu_lengths *l, const uint64_t *len_tok,
                                 size_t n, struct slu_err *err);
/* The histogram so far, ascending: a malloc'd array that the caller frees with free().
 */
SLU_MUST_USE int slu_lengths_rows(struct slu_lengths *l, struct slu_length_count **row,
                                  size_t *n, struct slu_err *err);
void slu_lengths_free(struct slu_lengths *l);

#endif
