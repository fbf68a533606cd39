/* long_doc.h - a document that comes in parts, whose text never is in memory as a
 * whole.
 *
 * Its ids go to the writer as they come, unless cfg->hold says that the document may
 * yet be given up: then they are kept until it ends, in memory up to the budget and
 * past that in a temporary file. Where rejects are written its text is kept too, as the
 * reject's line begins with what only its end tells.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_LONG_DOC_H
#define SLU_LONG_DOC_H

#include "formats/text/rejects.h"
#include "lib/base/io.h"
#include "lib/stream/stream.h"

struct slu_long_doc_cfg {
    bool hold;
    struct slu_out *rejects; /* borrowed; NULL: texts are not kept */
    uint64_t budget_byte;    /* of memory, for ids, text and the hash together; at least
                                3 MiB is taken */
    const char *tmpdir;      /* borrowed */
    unsigned tok_bytes;
};

struct slu_long_doc;

/* Caller frees with slu_long_doc_free; cfg is copied. */
SLU_MUST_USE int slu_long_doc_new(struct slu_long_doc **d,
                                  const struct slu_long_doc_cfg *cfg,
                                  struct slu_err *err);
/* A document for w (borrowed until its end; with hold NULL will do, and _choose says it
 * before the end). seg: source, document and domain. */
SLU_MUST_USE int slu_long_doc_begin(struct slu_long_doc *d, struct slu_writer *w,
                                    const struct slu_seg *seg, struct slu_err *err);
/* Its next ids, in the stream's width, and its next bytes of text. */
SLU_MUST_USE int slu_long_doc_ids(struct slu_long_doc *d, const void *tok,
                                  uint64_t n_tok, struct slu_err *err);
SLU_MUST_USE int slu_long_doc_text(struct slu_long_doc *d, const void *p, size_t n,
                                   struct slu_err *err);
/* With hold: the writer that the document is for after all. */
void slu_long_doc_choose(struct slu_long_doc *d, struct slu_writer *w);
/* How a document ends: written; or, with hold or without ids, not: then r (whose raw is
 * not looked at) gets a line among the rejects, if there are any. NULL: no line. */
SLU_MUST_USE int slu_long_doc_end(struct slu_long_doc *d, struct slu_err *err);
SLU_MUST_USE int slu_long_doc_drop(struct slu_long_doc *d, const struct slu_rejected *r,
                                   struct slu_err *err);
/* Bytes written to temporary files so far. */
uint64_t slu_long_doc_spilled(const struct slu_long_doc *d);
/* NULL is legal. */
void slu_long_doc_free(struct slu_long_doc *d);

#endif
