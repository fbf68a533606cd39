/* fasttext.h - whether a model of fastText gives a text's label a probability.
 *
 * fasttext_shim.cc alone uses libfasttext. It becomes libsluice-fasttext.so, which is
 * loaded when it is needed (lib/base/module.h). The library trusts a model's numbers,
 * so the model's file is checked first: each size and index in it, and its length.
 *
 * A text is one line, as of `fasttext predict-prob`: line feeds become spaces, and one
 * ends it. A label that the model does not give the text has probability 0.
 *
 * Thread safety: any thread may ask.
 */
#ifndef SLU_FILTER_FASTTEXT_H
#define SLU_FILTER_FASTTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

SLU_BEGIN_DECLS

/* What the object has, under the name slu_fasttext_lib. Text of errors is at most
 * n_why bytes with its NUL. */
#define SLU_FASTTEXT_ABI "1"
struct slu_fasttext_lib {
    char abi[8];
    /* Loads a model; NULL: why. */
    void *(*open)(const char *path, char *why, size_t n_why);
    /* The number of the label, with or without the model's prefix; -1: none. */
    int (*label)(const void *model, const char *name);
    /* The probability of the label of this number for a line that ends in LF; 0, or -1:
     * why. */
    int (*ask)(const void *model, const char *line, size_t n, int label, float *p,
               char *why, size_t n_why);
    void (*free)(void *model);
};

struct slu_fasttext;
/* Loads the model, for texts whose label has at least this probability. SLU_E_FORMAT:
 * it is no supervised model, is damaged, or has no such label; SLU_E_UNSUPPORTED: this
 * build has no fastText. Caller frees with slu_fasttext_free. */
SLU_MUST_USE int slu_fasttext_open(struct slu_fasttext **m, const char *path,
                                   const char *label, double least,
                                   struct slu_err *err);
/* SLU_E_FORMAT: the model has values that are no numbers. `line` is the calling
 * thread's. */
SLU_MUST_USE int slu_fasttext_ask(const struct slu_fasttext *m, const char *text,
                                  size_t n, struct slu_buf *line, bool *yes,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_fasttext_free(struct slu_fasttext *m);

/* Checks a model's file, as above. */
SLU_MUST_USE int slu_fasttext_check(const char *path, struct slu_err *err);

SLU_END_DECLS

#endif
