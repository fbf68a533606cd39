/* expr.h - expressions over the fields of a record, which are true or false:
 *
 *   lang in ["en", "de"] and score >= 2.5 and not (len(text) < 200 or meta.spam)
 *
 * From weak to strong: `or`, `and`, `not`, then one of == != < <= > >=, `in [...]`,
 * `not in [...]`, `matches "regex"`; parentheses. Operands are names of fields (a
 * letter or _, then letters, digits, _ - and dots; any other name in `backquotes`),
 * numbers, strings, true, false, null, len(x), startswith(x, y). Strings are "JSON's",
 * with its escapes, or 'as they stand'.
 *
 * Types are strict. == and != compare values of one type, or anything with null; `in`
 * asks for == with an element of a type that its list has. < <= > >= compare two
 * numbers, or two strings by their bytes. len is the number of a string's characters.
 * matches searches by PCRE2, with UTF, and in a number of steps that has a limit
 * (lib/base/pcre.h), the same on all machines.
 * and, or, not, and the whole, take booleans. `and` and `or` stop at the first operand
 * that decides, and what is behind it is not looked at: `score != null and score > 2`
 * has no error without a score. Numbers are integers of 64 bits, or doubles.
 *
 * Nothing here knows where values come from: a callback gives them by the field's
 * number.
 */
#ifndef SLU_EXPR_H
#define SLU_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/value.h"

SLU_BEGIN_DECLS

#define SLU_EXPR_FIELDS 48         /* most fields of an expression */
#define SLU_EXPR_BYTE   (64 << 10) /* most bytes of its text */

struct slu_expr;

/* Compiles an expression. SLU_E_USAGE with the column (from 1, in characters) and the
 * reason; SLU_E_NOMEM. The text is not needed afterwards. Caller frees with
 * slu_expr_free. An expression does not change: any thread. */
SLU_MUST_USE int slu_expr_new(struct slu_expr **e, const char *text,
                              struct slu_err *err);
/* NULL is legal. */
void slu_expr_free(struct slu_expr *e);

/* The fields, each once, in the order of their first place. Names end in a NUL and are
 * borrowed from e. */
size_t slu_expr_n_field(const struct slu_expr *e);
const char *slu_expr_field(const struct slu_expr *e, size_t i);
/* Whether the expression compares field i with null (by == != in), so that a record
 * need not have it. */
bool slu_expr_expects_null(const struct slu_expr *e, size_t i);

/* Bytes of memory that a thread takes at most to evaluate the expression: that of
 * `matches`, or 0. */
uint64_t slu_expr_run_byte(const struct slu_expr *e);

/* What one thread needs to evaluate expressions that have `matches`. Borrows e. Caller
 * frees with slu_expr_run_free. */
struct slu_expr_run;
SLU_MUST_USE int slu_expr_run_new(struct slu_expr_run **r, const struct slu_expr *e,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_expr_run_free(struct slu_expr_run *r);

/* Gives the value of field i of the current record; called only for fields that are
 * looked at, perhaps more than once. */
typedef void slu_expr_get(void *ctx, size_t i, struct slu_value *out);

/* Evaluates the expression for a record; one thread at a time on a run. SLU_E_FORMAT: a
 * value's type does not fit, or `matches` took too many steps; the message has the
 * column and the reason, "column 7: \"score\" is a string, ...". SLU_E_NOMEM. */
SLU_MUST_USE int slu_expr_eval(struct slu_expr_run *r, slu_expr_get *get, void *ctx,
                               bool *yes, struct slu_err *err);

SLU_END_DECLS

#endif
