/* expr_private.h - shared by expr_parse.c and expr.c: the tree of an expression. */
#ifndef SLU_EXPR_PRIVATE_H
#define SLU_EXPR_PRIVATE_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/pcre.h"
#include "lib/filter/expr.h"

/* Most parentheses and nots within each other, so that recursion ends. */
#define SLU_EXPR_DEPTH 100

enum slu_expr_op {
    SLU_EXPR_LITERAL,
    SLU_EXPR_FIELD,
    SLU_EXPR_OR,
    SLU_EXPR_AND,
    SLU_EXPR_NOT,
    SLU_EXPR_EQ,
    SLU_EXPR_NE,
    SLU_EXPR_LT,
    SLU_EXPR_LE,
    SLU_EXPR_GT,
    SLU_EXPR_GE,
    SLU_EXPR_IN, /* the first operand, and literals */
    SLU_EXPR_MATCHES,
    SLU_EXPR_LEN,
    SLU_EXPR_STARTSWITH,
};

/* Operands are a list: the first is `first`, the next one is its `next`. 0: none; the
 * root is no operand. */
struct slu_expr_node {
    enum slu_expr_op op;
    uint32_t at; /* its place in the source, in bytes */
    uint32_t first, next;
    uint32_t number;          /* FIELD: the field's; MATCHES: the regex's */
    struct slu_value literal; /* a string: its offset in `text` is off */
    size_t off;
};

struct slu_expr {
    struct slu_expr_node *node; /* node[0] is unused */
    size_t n_node, cap_node;
    uint32_t root;
    char *source;        /* what was compiled, for messages */
    struct slu_buf text; /* names of fields with their NULs, and literal strings */
    size_t *field;       /* offsets of the names in `text` */
    size_t n_field, cap_field;
    struct slu_pcre **regex;
    size_t n_regex, cap_regex;
};

/* Returns the column of a byte of a text, from 1, in characters. */
uint32_t slu_expr_column(const char *text, size_t at);

#endif
