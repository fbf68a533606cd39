/* workfile_names.h - what a stream is beside its sequences, in files between stages:
 * its header, its vocabulary, and the names of its sources and domains.
 *
 * A stage that has a stream puts them into a section of its own; one that has none (and
 * writes one, or compares domains) reads them from there. Domains are numbered in each
 * process for itself: a file has its writer's numbers, and whoever reads it is given
 * which numbers they are here.
 *
 *   the section: bytes of the header (HEAD of formats/STREAM.md), of the vocabulary
 * (the frame's payload, not compressed; 0 bytes: none), number of sources, of each its
 *   ordinal and its name, number of domains, of each its name. Bytes are as
 *   slu_workfile_put_bytes puts them.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_WORKFILE_NAMES_H
#define SLU_WORKFILE_NAMES_H

#include "lib/flow/workfile.h"
#include "lib/stream/stream.h"

/* Appends them to the section at hand, which has nothing else. What is not in names yet
 * is not put: behind the last batch, as a rule. vocab: the vocabulary too, if there is
 * one. */
SLU_MUST_USE int slu_workfile_put_stream(struct slu_workfile_out *o,
                                         const struct slu_header *h,
                                         struct slu_names *names, bool vocab,
                                         struct slu_err *err);

struct slu_workfile_stream {
    struct slu_header header;
    uint32_t *domain; /* number in names of each of the file's domains */
    size_t n_domain;
};
/* Reads a section; adds sources, domains and (vocab) the vocabulary to names. Release
 * *s also when it fails. */
SLU_MUST_USE int slu_workfile_get_stream(struct slu_workfile *f, uint64_t section,
                                         struct slu_names *names, bool vocab,
                                         struct slu_workfile_stream *s,
                                         struct slu_err *err);
void slu_workfile_stream_release(struct slu_workfile_stream *s);

#endif
