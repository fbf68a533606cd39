/* align.h - which part of a text each token of it comes from, where the text was changed
 * before it was encoded: by a normalizer, or by Metaspace's space in front.
 *
 * The rules are those of NormalizedString in Hugging Face's tokenizers. Each character of
 * the changed text belongs to a part of the text:
 *   - what a Replace puts in, to the last character of what it replaces; the others of
 *     these have no token;
 *   - what is put in front, to the text's first character;
 *   - the normal forms: characters are counted. Each of the result takes the next one of
 *     the text, and belongs to it; one that was composed takes those that it was composed
 *     of, and belongs to the first; of a decomposition only the first takes one, and the
 *     others belong to the same.
 * The part of a token is from the part of its first byte's character to that of its last
 * one's. Parts of neighbours may overlap, and characters between them may belong to none.
 * What another kind of step changes has no place.
 *
 * Thread safety: as the encoder's.
 */
#ifndef SLU_TOK_ALIGN_H
#define SLU_TOK_ALIGN_H

#include "lib/token/tok.h"
#include "lib/token/trim.h"

/* The next n bytes of a changed text. same: they are those of the text from `from` on;
 * else all belong to its bytes from `from` to `to`. */
struct align_run {
    size_t n, from, to;
    bool same;
};
/* The runs of a changed text, in a few bytes each. */
struct align_map {
    struct slu_buf code;
    struct align_run open; /* the last one, which is not coded yet */
    size_t before;         /* where the part of the run before it ends */
};
struct align_reader {
    const uint8_t *p, *end;
    size_t at, before;    /* at: byte of the changed text */
    struct align_run run; /* what is left of the current one; n is 0 at the end */
};

/* Zero before use. */
struct norm_align {
    struct align_map map, next; /* next: that of the text that the current step makes */
    struct align_reader reader; /* of map, behind what the current step has changed */
    struct align_run last;      /* the part of the last character that it replaced */
    uint32_t *taken;            /* owned; align_taken */
    size_t cap_taken;
    bool edited; /* the current step has changed something … */
    bool lost;   /* one step did not say what */
};
void align_release(struct norm_align *a);

/* The tokens of a text that an encoder made ids of, in order, as tok_each_part gives
 * them; what is left between begins and ends with whole characters, and parts do not
 * overlap: what a token has in common with the one before is the first one's. `each` also
 * gets characters that belong to no token, as token SIZE_MAX. *same: false if the tokens
 * have no place in the text; `each` may have been called. Memory is the encoder's. */
struct slu_encoder;
SLU_MUST_USE int align_each_part(struct slu_encoder *e, const char *text, size_t n_byte,
                                 const uint32_t *id, size_t n_id, tok_part_fn *each,
                                 void *ctx, bool *same, struct slu_err *err);

/* ---- for the steps of a normalizer; p: the text before the step ---- */

/* n_old bytes at `at` were replaced by n_new. */
SLU_MUST_USE int align_replace(struct norm_align *a, const uint8_t *p, size_t at,
                               size_t n_old, size_t n_new, struct slu_err *err);
/* n_new bytes were put in front of p. */
SLU_MUST_USE int align_prepend(struct norm_align *a, const uint8_t *p, size_t n_new,
                               struct slu_err *err);
/* Sets *taken to room for n numbers, until the next call. */
SLU_MUST_USE int align_taken(struct norm_align *a, size_t n, uint32_t **taken,
                             struct slu_err *err);
/* A character of n_new bytes takes `taken` characters from *at on, which moves on. */
SLU_MUST_USE int align_chars(struct norm_align *a, const uint8_t *p, size_t *at,
                             uint32_t taken, size_t n_new, struct slu_err *err);
/* A step that made q of p has ended. */
SLU_MUST_USE int align_step(struct norm_align *a, const uint8_t *p, size_t n_p,
                            const uint8_t *q, size_t n_q, struct slu_err *err);

#endif
