/* cut.h - where a text can be cut so that its parts have the ids of the whole.
 *
 * Kinds of places, c being the offset of the first byte on the right:
 *   CUT_SPACE  an ASCII letter before c, a space at c
 *   CUT_LINE   before c a newline, and before that no white space; at c neither white
 *              space nor a slash
 *   CUT_ANY    everywhere, except between two bytes that are neighbours in an added
 *              token
 * A place depends only on the characters next to c. So it remains one when the text is
 * cut elsewhere too, and a text can be cut at all places at once. cut.c proves that the
 * ids do not change, and says for which tokenizers.
 */
#ifndef SLU_TOK_CUT_H
#define SLU_TOK_CUT_H

#include "lib/token/tok.h"

enum { CUT_SPACE = 1, CUT_LINE = 2, CUT_ANY = 4 };

/* Returns the kinds of places at which texts can be cut for t, which is complete; 0:
 * none. */
unsigned tok_cut_kinds(const struct slu_tokenizer *t);

#endif
