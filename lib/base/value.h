/* value.h - the value of a field of a record, wherever the record comes from: what a
 * reader of JSON or of columns gives, and expressions (lib/filter/expr.h) take.
 */
#ifndef SLU_VALUE_H
#define SLU_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

enum slu_value_type {
    SLU_VALUE_NULL, /* also a field that the record does not have */
    SLU_VALUE_BOOL,
    SLU_VALUE_NUMBER,
    SLU_VALUE_STRING,
    SLU_VALUE_LIST, /* an array or an object: only whether it is null can be asked */
};

struct slu_value {
    enum slu_value_type type;
    bool boolean;
    int16_t rest;       /* of an integer of 64 bits: it is number + rest; else 0 */
    double number;      /* the nearest double; infinite if it is beyond all of them */
    const char *string; /* UTF-8, len bytes, without a NUL at its end; borrowed */
    size_t len;
};

/* The number magnitude, or -magnitude. */
struct slu_value slu_value_of_integer(uint64_t magnitude, bool negative);
/* The number that s is, as JSON has it; the nearest double if it is no integer of 64
 * bits. */
struct slu_value slu_value_of_number(const char *s);
/* Whether a number is an integer of at most 64 bits beside its sign; sets *magnitude. */
bool slu_value_integer(const struct slu_value *v, uint64_t *magnitude);

SLU_END_DECLS

#endif
