/* json_flat.h - a fast parser of records that are one object of strings and little
 * else, as nearly all are. Private to lib.
 *
 * A record that it refuses may be valid: another parser of json.h decides.
 */
#ifndef SLU_JSON_FLAT_H
#define SLU_JSON_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct slu_flat_field {
    const char *name; /* wanted key; NULL: unused */
    size_t name_len;
    bool any;         /* the value may also be a number, a boolean or null */
    bool scalar;      /* out: it is, and p points to its bytes in the record */
    const uint8_t *p; /* out: the last string of that key, unescaped; NULL: none */
    size_t len;
};

/* Reads the n bytes at rec, which are valid UTF-8; SLU_JSON_PADDING more can be read.
 * Strings go to `out`, which has room for n + 64 bytes. False: the record is not JSON,
 * has something rare (objects, arrays, escapes in a key), or a wanted value is not a
 * string, or not any scalar. */
typedef bool slu_json_flat_fn(const uint8_t *rec, size_t n,
                              struct slu_flat_field *field, size_t n_field,
                              uint8_t *out);
slu_json_flat_fn slu_json_flat_avx2, slu_json_flat_avx512;

#ifdef __cplusplus
}
#endif

#endif
