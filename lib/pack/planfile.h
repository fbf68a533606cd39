/* planfile.h - plans in files: made on one machine, applied later, elsewhere or in
 * parts (formats/PLAN.md; DESIGN.md, Packing).
 *
 *   new, add a domain …, write       open, plan of a domain …
 *
 * A file holds of each domain the groups {count, parent, length, repeat, capacity};
 * what else a plan has follows from them. open believes nothing before it has seen the
 * checksum and made every plan once: what it accepts is a plan as packer.h demands, be
 * it one that no method would make. Memory is in proportion to the file, which is
 * bounded by max_byte.
 *
 * A plan is applied in parts so: each part's histograms (slu_lengths_rows) are added
 * up, one plan is made of the sums; the items of part k have in each length the ranks
 * from the number of such items in parts 0 … k-1 on, and slu_pack_place gives each rank
 * its bin.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_PLANFILE_H
#define SLU_PLANFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/pack/packer.h"
#include "lib/stream/stream.h" /* SLU_MAX_BUCKETS */

SLU_BEGIN_DECLS

/* What a plan was made for. */
struct slu_plan_head {
    enum slu_pack_method method; /* one that makes plans */
    uint64_t capacity;           /* ids of the longest bins */
    uint64_t max_items;          /* of a bin; 0: no limit */
    bool mix_domains;
    /* Bins of several lengths: those there may be, ascending, the last of `capacity`
     * ids, and how many of them each may lack (slu_pack_tolerance). Others: none. */
    size_t n_bin;
    struct slu_plan_bin {
        uint64_t tok, lack_tok;
    } bin[SLU_MAX_BUCKETS];
};

struct slu_planfile;

SLU_MUST_USE int slu_planfile_new(struct slu_planfile **f,
                                  const struct slu_plan_head *head,
                                  struct slu_err *err);
/* The next domain's plan; copies. name NULL: documents without a domain, or all. */
SLU_MUST_USE int slu_planfile_add(struct slu_planfile *f, const char *name,
                                  const struct slu_pack_plan *plan,
                                  struct slu_err *err);
/* No more domains: the whole file, borrowed until free. May be called again. */
SLU_MUST_USE int slu_planfile_bytes(struct slu_planfile *f, const void **p, size_t *n,
                                    struct slu_err *err);
/* The same to out, which stays the caller's. */
SLU_MUST_USE int slu_planfile_write(struct slu_planfile *f, struct slu_out *out,
                                    struct slu_err *err);

/* SLU_E_FORMAT where it is not a plan, SLU_E_LIMIT past max_byte; messages name path.
 */
SLU_MUST_USE int slu_planfile_open(struct slu_planfile **f, const char *path,
                                   uint64_t max_byte, struct slu_err *err);
/* The same of n bytes, which are copied; messages name nothing. */
SLU_MUST_USE int slu_planfile_parse(struct slu_planfile **f, const void *p, size_t n,
                                    struct slu_err *err);
struct slu_plan_head slu_planfile_head(const struct slu_planfile *f);
size_t slu_planfile_domains(const struct slu_planfile *f);
/* Of domain i, as given to add; borrowed until free. */
const char *slu_planfile_name(const struct slu_planfile *f, size_t i);
/* Domain i's plan. Caller frees with slu_pack_plan_free. */
SLU_MUST_USE int slu_planfile_plan(const struct slu_planfile *f, size_t i,
                                   struct slu_pack_plan **plan, struct slu_err *err);
/* NULL is legal. */
void slu_planfile_free(struct slu_planfile *f);

/* SLU_E_MISMATCH, with the first length whose numbers differ, unless the plan is one
 * for items of this histogram (n rows, ascending). what: whose items, for the message.
 */
SLU_MUST_USE int slu_plan_check(const struct slu_pack_plan *plan,
                                const struct slu_length_count *row, size_t n,
                                const char *what, struct slu_err *err);

SLU_END_DECLS

#endif
