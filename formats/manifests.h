/* manifests.h - the counts of a shard set from its manifests alone, for lib/schedule.h.
 *
 * D_<i>/manifest.jsonl as formats/shard_wds.c writes it and OpenLM reads it: a line a
 * shard,
 * {"shard": name, "num_sequences": N}.
 */
#ifndef SLU_MANIFESTS_H
#define SLU_MANIFESTS_H

#include "lib/schedule.h"

/* Adds what path names: a folder with D_<i>/manifest.jsonl, a folder D_<i>, or a
 * manifest in a folder D_<i>. SLU_E_FORMAT names manifest and line. */
SLU_MUST_USE int slu_manifests_add(struct slu_bucket_counts *s, const char *path,
                                   struct slu_err *err);
#endif
