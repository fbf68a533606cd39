/* cut.h - where a text can be cut so that its parts have the ids of the whole.
 *
 * Kinds of places, c being the offset of the first byte on the right:
 *   CUT_SPACE  an ASCII letter before c, a space at c
 *   CUT_LINE   before c a newline, and before that no white space; at c neither white
 *              space nor a slash
 *   CUT_ANY    everywhere but between two bytes that an added token has in it
 * All look at the characters next to c only, so that a place stays one when the text
 * is cut elsewhere too, and a text can be cut at all of them at once. cut.c says why
 * nothing in a tokenizer sees such a cut, and which tokenizers they are.
 */
#ifndef SLU_TOK_CUT_H
#define SLU_TOK_CUT_H

#include "lib/token/tok.h"

enum { CUT_SPACE = 1, CUT_LINE = 2, CUT_ANY = 4 };

/* The kinds of places at which t, whose parts are all there, can be cut; 0: none. */
unsigned tok_cut_kinds(const struct slu_tokenizer *t);

#endif
