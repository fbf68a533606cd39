/* workfile_names.h - the header of a stream, its vocabulary, and the names of its
 * sources and domains, in files between stages.
 *
 * A stage that reads a stream writes them to a section. A stage that has no stream, but
 * writes one or compares domains, reads them there. Each process numbers domains for
 * itself: a file has its writer's numbers, and slu_workfile_get_stream returns the
 * reader's number for each.
 *
 * The section has the header (HEAD of formats/STREAM.md); the vocabulary (the frame's
 * payload, not compressed; 0 bytes: none); the number of sources, and of each its
 * ordinal and its name; the number of domains, and of each its name. Bytes are written
 * by slu_workfile_put_bytes.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_WORKFILE_NAMES_H
#define SLU_WORKFILE_NAMES_H

#include "lib/flow/workfile.h"
#include "lib/stream/stream.h"

/* Appends header and names to the current section, which must be empty. Call after the
 * last batch, because names that are not yet known are not written. vocab: also the
 * vocabulary, if the stream has one. */
SLU_MUST_USE int slu_workfile_put_stream(struct slu_workfile_out *o,
                                         const struct slu_header *h,
                                         struct slu_names *names, bool vocab,
                                         struct slu_err *err);

struct slu_workfile_stream {
    struct slu_header header;
    uint32_t *domain; /* for each of the file's domains, its number in names */
    size_t n_domain;
};
/* Reads a section; adds sources, domains and, with vocab, the vocabulary to names.
 * Release *s also after a failure. */
SLU_MUST_USE int slu_workfile_get_stream(struct slu_workfile *f, uint64_t section,
                                         struct slu_names *names, bool vocab,
                                         struct slu_workfile_stream *s,
                                         struct slu_err *err);
void slu_workfile_stream_release(struct slu_workfile_stream *s);

#endif
