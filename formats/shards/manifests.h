/* manifests.h - the counts of a shard set from its manifests alone, for
 * lib/schedule/schedule.h.
 *
 * D_<i>/manifest.jsonl as formats/wds/shard_wds.c writes it and OpenLM reads it: a
 * line a shard,
 * {"shard": name, "num_sequences": N}. Sets in a format that has no manifests are
 * counted by their report.json, which also has the checksum of the tokens.
 */
#ifndef SLU_MANIFESTS_H
#define SLU_MANIFESTS_H

#include "lib/schedule/schedule.h"

/* Adds what path names: a shard set (a folder with D_<i>/manifest.jsonl or with
 * report.json), a bucket's folder D_<i> or L_<n>, or a manifest in such a folder. The
 * checksum is known where one whole set is all that was added. A set of which a
 * bucket's manifest is missing, or which is not as its report.json says, is refused
 * (SLU_E_TRUNCATED, SLU_E_MISMATCH), and so are counts of more than 2^62 tokens
 * (SLU_E_LIMIT). SLU_E_FORMAT names manifest and line. */
SLU_MUST_USE int slu_manifests_add(struct slu_bucket_counts *s, const char *path,
                                   struct slu_err *err);
#endif
