/* workfile_names.h - the header of a stream, the names of its sources and domains, and
 * its vocabulary, in files between stages.
 *
 * A stage that reads a stream writes them to a section. A stage that has no stream, but
 * writes one or compares domains, reads them there. Each process numbers domains for
 * itself: a file has its writer's numbers, and slu_workfile_get_stream returns the
 * reader's number for each.
 *
 * A section has the header (HEAD of formats/STREAM.md); the number of sources, and of
 * each its ordinal and its name; the number of domains, and of each its name. Bytes are
 * written by slu_workfile_put_bytes. The vocabulary, the payload of its frame without
 * compression, is a section of its own: a job that reads the names of all parts needs
 * the vocabulary of one.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_WORKFILE_NAMES_H
#define SLU_WORKFILE_NAMES_H

#include "lib/flow/workfile.h"
#include "lib/stream/stream.h"

/* Appends header and names to the current section, which must be empty. Call after the
 * last batch, because names that are not yet known are not written. */
SLU_MUST_USE int slu_workfile_put_stream(struct slu_workfile_out *o,
                                         const struct slu_header *h,
                                         struct slu_names *names, struct slu_err *err);
/* Appends the vocabulary, if the stream has one. */
SLU_MUST_USE int slu_workfile_put_vocab(struct slu_workfile_out *o,
                                        struct slu_names *names, struct slu_err *err);

struct slu_workfile_stream {
    struct slu_header header;
    uint32_t *domain; /* for each of the file's domains, its number in names */
    size_t n_domain;
};
/* Reads a section; adds sources and domains to names. Release *s also after a
 * failure. */
SLU_MUST_USE int slu_workfile_get_stream(struct slu_workfile *f, uint64_t section,
                                         struct slu_names *names,
                                         struct slu_workfile_stream *s,
                                         struct slu_err *err);
/* Reads the vocabulary of a stream with vocab_size ids into names; an empty section has
 * none. */
SLU_MUST_USE int slu_workfile_get_vocab(struct slu_workfile *f, uint64_t section,
                                        uint64_t vocab_size, struct slu_names *names,
                                        struct slu_err *err);
void slu_workfile_stream_release(struct slu_workfile_stream *s);

#endif
