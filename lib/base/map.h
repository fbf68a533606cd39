/* map.h - a small open-addressing map from u64 to u64, for tables of ordinals and
 * numbers.
 *
 * Not thread safe. init by SLU_MAP_INIT; release frees.
 */
#ifndef SLU_MAP_H
#define SLU_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct slu_map {
    struct slu_map_slot {
        uint64_t key, value;
        bool used;
    } * slot;
    size_t n, cap; /* cap is 0 or a power of two; n <= cap / 2 */
};

#define SLU_MAP_INIT                                                                   \
    {                                                                                  \
        NULL, 0, 0                                                                     \
    }

void slu_map_release(struct slu_map *m);
/* Whether key is present; sets *value if so. */
bool slu_map_get(const struct slu_map *m, uint64_t key, uint64_t *value);
/* Adds the key, or replaces its value. */
SLU_MUST_USE int slu_map_set(struct slu_map *m, uint64_t key, uint64_t value,
                             struct slu_err *err);

#endif
