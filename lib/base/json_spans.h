/* json_spans.h - reads the value of a record's spans. Private to lib. */
#ifndef SLU_JSON_SPANS_H
#define SLU_JSON_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "buf.h"

/* Appends to out the u64 numbers of [[begin, end], …], which begins at p in JSON that
 * slu_json_scan has accepted. *good is false if the value is anything else, or a begin is
 * above its end. */
SLU_MUST_USE int slu_json_spans(struct slu_buf *out, const uint8_t *p, bool *good,
                                struct slu_err *err);

#ifdef __cplusplus
}
#endif

#endif
