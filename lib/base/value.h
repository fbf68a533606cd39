/* value.h - the value of a field of a record, wherever the record comes from: what a
 * reader of JSON or of columns gives, and expressions (lib/filter/expr.h) take.
 */
#ifndef SLU_VALUE_H
#define SLU_VALUE_H

#include <stdbool.h>
#include <stddef.h>

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
    double number;      /* the nearest double; infinite if it is beyond all of them */
    const char *string; /* UTF-8, len bytes, without a NUL at its end; borrowed */
    size_t len;
};

SLU_END_DECLS

#endif
