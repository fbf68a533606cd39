/* planfile.h - plans in files: made on one machine, applied later, elsewhere or in
 * parts (formats/PLAN.md; DESIGN.md, Packing).
 *
 *     new, add a domain …, write       open, plan of a domain …
 *
 * A file holds the groups {count, parent, length, repeat, capacity} of each domain; all
 * else of a plan follows from these. open trusts nothing before it has checked the
 * checksum and made every plan once. It accepts every plan that meets the demands of
 * packer.h, even one that no method would make. Memory is in proportion to the file,
 * which max_byte limits.
 *
 * To apply a plan in parts, add up the parts' histograms (slu_lengths_rows) and make
 * one plan of the sums. The ranks of a length in part k begin at the number of such
 * items in parts 0 … k-1, and slu_pack_place gives each rank its bin.
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

/* The parameters that a plan was made for. */
struct slu_plan_head {
    enum slu_pack_method method; /* not a method that cuts items */
    uint64_t capacity;           /* ids of the longest bins */
    uint64_t max_items;          /* per bin; 0: unlimited */
    bool mix_domains;
    /* For bins of several lengths: the lengths, ascending, the last == `capacity`, and
     * the ids that a bin of each may lack (slu_pack_tolerance). Others: n_bin 0. */
    size_t n_bin;
    struct slu_plan_bin {
        uint64_t tok, lack_tok;
    } bin[SLU_MAX_BUCKETS];
};

struct slu_planfile;

SLU_MUST_USE int slu_planfile_new(struct slu_planfile **f,
                                  const struct slu_plan_head *head,
                                  struct slu_err *err);
/* Adds a copy of the next domain's plan. name NULL: no domain, or all documents. */
SLU_MUST_USE int slu_planfile_add(struct slu_planfile *f, const char *name,
                                  const struct slu_pack_plan *plan,
                                  struct slu_err *err);
/* Ends the domains. Gives the file's bytes, borrowed until free. Repeatable. */
SLU_MUST_USE int slu_planfile_bytes(struct slu_planfile *f, const void **p, size_t *n,
                                    struct slu_err *err);
/* Ends the domains and writes the file to out, which stays the caller's. */
SLU_MUST_USE int slu_planfile_write(struct slu_planfile *f, struct slu_out *out,
                                    struct slu_err *err);

/* Reads a file. SLU_E_FORMAT if it is not a plan, SLU_E_TRUNCATED if it is too short,
 * SLU_E_LIMIT beyond max_byte; messages name path. */
SLU_MUST_USE int slu_planfile_open(struct slu_planfile **f, const char *path,
                                   uint64_t max_byte, struct slu_err *err);
/* Reads a copy of n bytes, as open reads a file; messages name no file. */
SLU_MUST_USE int slu_planfile_parse(struct slu_planfile **f, const void *p, size_t n,
                                    struct slu_err *err);
struct slu_plan_head slu_planfile_head(const struct slu_planfile *f);
size_t slu_planfile_domains(const struct slu_planfile *f);
/* Returns domain i's name, as given to add; borrowed until free. */
const char *slu_planfile_name(const struct slu_planfile *f, size_t i);
/* Makes domain i's plan. Caller frees with slu_pack_plan_free. */
SLU_MUST_USE int slu_planfile_plan(const struct slu_planfile *f, size_t i,
                                   struct slu_pack_plan **plan, struct slu_err *err);
/* NULL is legal. */
void slu_planfile_free(struct slu_planfile *f);

/* Checks that the plan is for items of this histogram (n rows, ascending).
 * SLU_E_MISMATCH names `what` (whose items) and the first length with other counts. */
SLU_MUST_USE int slu_plan_check(const struct slu_pack_plan *plan,
                                const struct slu_length_count *row, size_t n,
                                const char *what, struct slu_err *err);

SLU_END_DECLS

#endif
