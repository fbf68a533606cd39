/* long_doc.h - a document that comes in parts and whose text is never in memory as a
 * whole.
 *
 * Its ids go to the writer as they come, unless cfg->hold says that the document may
 * still be dropped. Then they are kept until its end, in memory up to the budget and
 * beyond that in a temporary file. If rejects are written, the text is kept too,
 * because the reject's line begins with facts that are known only at the end.
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
    /* memory for ids, text and the hash together; at least 3 MiB are used */
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
    unsigned tok_bytes;
};

struct slu_long_doc;

/* Caller frees with slu_long_doc_free; cfg is copied. */
SLU_MUST_USE int slu_long_doc_new(struct slu_long_doc **d,
                                  const struct slu_long_doc_cfg *cfg,
                                  struct slu_err *err);
/* Begins a document for w, which is borrowed until the document's end. With hold w may
 * be NULL, and slu_long_doc_choose sets it later. seg: source, document and domain. */
SLU_MUST_USE int slu_long_doc_begin(struct slu_long_doc *d, struct slu_writer *w,
                                    const struct slu_seg *seg, struct slu_err *err);
/* Add the document's next ids, in the stream's width, and next bytes of text. */
SLU_MUST_USE int slu_long_doc_ids(struct slu_long_doc *d, const void *tok,
                                  uint64_t n_tok, struct slu_err *err);
SLU_MUST_USE int slu_long_doc_text(struct slu_long_doc *d, const void *p, size_t n,
                                   struct slu_err *err);
/* With hold: sets the document's writer. */
void slu_long_doc_choose(struct slu_long_doc *d, struct slu_writer *w);
/* End a document: _end writes it; _drop (only with hold or without ids) drops it and
 * adds a line for r, whose raw is not read, to the rejects, if any. r NULL: no line. */
SLU_MUST_USE int slu_long_doc_end(struct slu_long_doc *d, struct slu_err *err);
SLU_MUST_USE int slu_long_doc_drop(struct slu_long_doc *d, const struct slu_rejected *r,
                                   struct slu_err *err);
/* Bytes written to temporary files so far. */
uint64_t slu_long_doc_spilled(const struct slu_long_doc *d);
/* NULL is legal. */
void slu_long_doc_free(struct slu_long_doc *d);

#endif
