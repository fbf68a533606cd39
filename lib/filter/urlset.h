/* urlset.h - a set of hosts and URLs from a file, one a line.
 *
 * A line without a scheme and without a slash is a host: the set has each URL of this
 * host and of the hosts below it (example.org: also www.example.org); ".example.org" and
 * "*.example.org" are the same. Any other line is a URL. Scheme, user, port and fragment
 * do not count, nor the case of a host or a dot at its end; the path, and the query, are
 * compared byte by byte, and an empty path is "/". Lines that begin with "#" and empty
 * lines are left out, white space at both ends too.
 *
 * The set keeps hashes, as idset.h says.
 */
#ifndef SLU_FILTER_URLSET_H
#define SLU_FILTER_URLSET_H

#include "lib/base/buf.h"
#include "lib/filter/idset.h"

SLU_BEGIN_DECLS

/* As slu_idset_read. SLU_E_FORMAT: a line has no host. */
SLU_MUST_USE int slu_urlset_read(struct slu_idset **s, const char *path,
                                 uint64_t most_byte, struct slu_err *err);
/* Sets *has to whether the set has a URL, or a host alone; false if there is no host in
 * it. `scratch` is the calling thread's. */
SLU_MUST_USE int slu_urlset_has(const struct slu_idset *s, const char *url, size_t n,
                                struct slu_buf *scratch, bool *has,
                                struct slu_err *err);

SLU_END_DECLS

#endif
