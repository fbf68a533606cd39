/* radix.h - in-place radix sort of (64-bit prefix, reference) entries.
 *
 * The sorter moves these entries instead of records: 16 bytes each, so that a sort
 * touches records only where prefixes are equal. American flag sort (McIlroy, Bostic,
 * McIlroy, "Engineering Radix Sort", 1993): in place, because the memory beside the
 * entries belongs to the records; not stable, so callers break ties themselves.
 *
 * Pure functions on the caller's arrays; safe from any thread.
 */
#ifndef SLU_RADIX_H
#define SLU_RADIX_H

#include <stddef.h>
#include <stdint.h>

struct slu_entry {
    uint64_t prefix;
    uint64_t ref; /* owned by the caller; never read here */
};

#define SLU_PARTITION_MAX_BITS 12

/* Groups the n entries by the top `bits` bits of prefix (1 … SLU_PARTITION_MAX_BITS),
 * groups in ascending order; start[g] is group g's first index, start[2^bits] = n. */
void slu_entry_partition(struct slu_entry *e, size_t n, unsigned bits, uint64_t *start);

/* Sorts ascending by prefix; the order of entries with equal prefixes is
 * unspecified. */
void slu_entry_sort(struct slu_entry *e, size_t n);

/* Sorts ascending by prefix, ties by cmp(ctx, ref, ref) < 0, in n log n steps at worst
 * (heap sort). For runs that slu_entry_sort could not tell apart. */
void slu_entry_sort_by(struct slu_entry *e, size_t n,
                       int (*cmp)(void *ctx, uint64_t ref_a, uint64_t ref_b),
                       void *ctx);

#endif
