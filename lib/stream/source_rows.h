/* source_rows.h - what a stream has of each of its sources: sizes of files, and the
 * counts and the checksum of what was taken from them. Of many sources the first
 * SLU_SOURCE_ROWS by number, so the rows of parts, joined, are those of one run.
 *
 * The checksum is that of a stream with this source alone (DESIGN.md, Conservation): it
 * depends neither on the file's compression nor on the number of parts.
 */
#ifndef SLU_SOURCE_ROWS_H
#define SLU_SOURCE_ROWS_H

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/json.h"

#define SLU_SOURCE_ROWS 1000
#define SLU_NO_SOURCE   UINT64_MAX

struct slu_source_rows {
    struct slu_source_row {
        uint64_t number; /* SLU_NO_SOURCE: of a file that no stream has a number of */
        uint64_t bytes;  /* of the file, as stored; 0: not known */
        uint64_t documents, tokens;
        struct slu_u128 checksum;
        char *name; /* owned; NULL: not set yet */
    } * row;        /* in ascending order of `number` */
    size_t n, cap, last;
};

void slu_source_rows_release(struct slu_source_rows *r);
/* Adds a document of a source; of the first row with that number if name is NULL. */
SLU_MUST_USE int slu_source_rows_count(struct slu_source_rows *r, uint64_t number,
                                       const char *name, uint64_t n_tok,
                                       struct slu_u128 hash, struct slu_err *err);
/* Sets name and size of row i; copies the name. */
SLU_MUST_USE int slu_source_rows_name(struct slu_source_rows *r, size_t i,
                                      const char *name, uint64_t n_byte,
                                      struct slu_err *err);
/* Adds the rows of other parts. Sources are equal if their numbers and names are. */
SLU_MUST_USE int slu_source_rows_add(struct slu_source_rows *r,
                                     const struct slu_source_rows *more,
                                     struct slu_err *err);
/* Appends a JSON array; reads one. */
SLU_MUST_USE int slu_source_rows_put_json(const struct slu_source_rows *r,
                                          struct slu_buf *out, struct slu_err *err);
SLU_MUST_USE int slu_source_rows_get_json(struct slu_source_rows *r,
                                          struct slu_json_value v, struct slu_err *err);

#endif
