/* manifests.h - reads the counts of a shard set from its manifests, for
 * lib/schedule/schedule.h; the shards are not read.
 *
 * D_<i>/manifest.jsonl, as formats/wds/shard_wds.c writes and OpenLM reads it, has a
 * line for each shard: {"shard": name, "num_sequences": N}. If the set's format has no
 * manifests, the counts come from report.json, which also has the checksum of the
 * tokens.
 */
#ifndef SLU_MANIFESTS_H
#define SLU_MANIFESTS_H

#include "lib/base/json.h"
#include "lib/schedule/schedule.h"

/* Adds what path names: a shard set (a folder with D_<i>/manifest.jsonl or with
 * report.json), a bucket's folder D_<i> or L_<n>, or a manifest in such a folder. The
 * checksum is known only if exactly one complete set was added. Refused are a set in
 * which a bucket's manifest is missing (SLU_E_TRUNCATED), a set that differs from its
 * report.json (SLU_E_MISMATCH), and counts of more than 2^62 tokens (SLU_E_LIMIT).
 * SLU_E_FORMAT names manifest and line. */
SLU_MUST_USE int slu_manifests_add(struct slu_bucket_counts *s, const char *path,
                                   struct slu_err *err);
/* Appends, of the report of a set, its checksum and its seal, and those of the sets that
 * `forget` made it of, as a JSON array. The sequences have the same places in all of
 * these. */
SLU_MUST_USE int slu_manifests_put_places(struct slu_json_value report,
                                          struct slu_buf *out, struct slu_err *err);
#endif
