/* near_private.h - shared by near.c (reading, and decisions in memory), near_flow.c
 * (the stages), near_groups.c (candidate pairs), near_verify.c and near_cluster.c
 * (decisions). Private to them and to callers that do one stage. */
#ifndef SLU_DEDUP_NEAR_PRIVATE_H
#define SLU_DEDUP_NEAR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/dedup/near/minhash.h"
#include "lib/dedup/near/near.h"
#include "lib/flow/flow.h"

/* Tables. Ordinals number documents in stream order. */
enum {
    NEAR_SET,   /* for each document the hash of its set (low, high), its rank; the
                   set */
    NEAR_BAND,  /* key, tag, with `prio` rank, band << 48 | ordinal */
    NEAR_WHERE, /* source, document, offset, by ordinal */
    NEAR_PAIR,  /* d, k: a candidate pair; equal: d came after the first of a group */
    NEAR_EQUAL, /* first, later document */
    NEAR_EDGE,  /* d, k, intersection, union; with `prio`, ranks before the ordinals */
    NEAR_COUNT, /* candidates, edges, capped documents */
    NEAR_DROP,  /* d, witness, intersection, union */
    NEAR_LOST,  /* as NEAR_DROP, by witness, d, … */
    NEAR_NAMED, /* d, witness's source, document, offset, intersection, union */
    NEAR_TABLES
};

/* Tags that no document has, for documents that memory decided; these members are in
 * order of ordinals only. */
enum { NEAR_UNLISTED, NEAR_LISTED, NEAR_TAGS };

#define NEAR_SHIFT     48 /* position of the band in band << 48 | ordinal */
#define NEAR_MASK      ((UINT64_C(1) << NEAR_SHIFT) - 1)
#define NEAR_NONE_LEFT UINT64_MAX

struct slu_near {
    struct slu_near_cfg cfg;
    struct slu_near_result result, told; /* of the flow; told: with the results of
                                            memory */
    const struct slu_header *header;     /* of the stream; borrowed, like names */
    struct slu_names *names;
    struct slu_flow *flow; /* the current stage */

    /* sign */
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
    struct near_scratch *scratch; /* one for each thread */
    struct slu_table *set, *band, *where;
    uint64_t ordinal; /* of the next document */
    /* In one process. */
    struct slu_near_mem *mem; /* NULL: memory decides no document */
    struct slu_near_audit *audit;
    bool waits, noting; /* waits: memory is full; noting: pairs wait too */
    uint64_t n_come;    /* documents read, with those of an index */
    uint64_t n_stored;  /* hand-over: ordinals whose sets were passed on */
    /* Documents with smaller ordinals are certainly kept; in one process, the others
     * are in the log. */
    uint64_t n_fixed;

    /* group */
    struct slu_table *pair, *equal;
    size_t most_member; /* members of a worker's group that are sorted in memory */
    uint64_t *k;        /* members of a group that can be a pair's k */
    size_t cap_k;
    uint64_t at_band, n_member, n_listed, n_unlisted; /* of the group whose pairs are
                                                         listed */

    /* verify, cluster */
    struct slu_table *edge;
};

/* A rank is a priority in sorting order. Fixed documents come before all others. */
static inline uint64_t slu_near_rank(bool fixed, uint64_t prio)
{
    return fixed ? 0 : prio + 1;
}

/* Number of bits of v; 1 for 0. */
static inline unsigned slu_near_bits(uint64_t v)
{
    return 64 - (unsigned)__builtin_clzll(v | 1);
}

/* A document's tag in a band: equal for equal sets, different for others. */
static inline uint64_t slu_near_tag(struct slu_u128 set_hash, uint64_t band)
{
    return set_hash.lo + band * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- near.c ---- */

/* Makes the data that sign needs for the stream; then, for each batch, the items, the
 * keys and the sets. */
SLU_MUST_USE int slu_near_begin(struct slu_near *x, struct slu_err *err);
void slu_near_end(struct slu_near *x);
SLU_MUST_USE int slu_near_items(void *x, unsigned worker, struct slu_batch *b,
                                void *side, struct slu_err *err);
void slu_near_items_release(void *side);
/* One process: allocates the memory and adds the documents of an index; then adds the
 * next batch. */
SLU_MUST_USE int slu_near_front(struct slu_near *x, struct slu_err *err);
SLU_MUST_USE int slu_near_arrive(void *x, struct slu_batch *b, void *side,
                                 struct slu_err *err);
/* Counts a sequence that is dropped, and reports its pair. */
SLU_MUST_USE int slu_near_drop(struct slu_near *x, const struct slu_batch *b,
                               const struct slu_seq *q,
                               const struct slu_near_verdict *v, struct slu_err *err);
static inline bool slu_near_details(const struct slu_near *x)
{
    return x->cfg.pair || x->cfg.audit;
}

/* ---- near_flow.c: the flow, whose ctx is a struct slu_near ---- */

/* index: with the stage index. */
const struct slu_flow_spec *slu_near_spec(bool prio, bool index);
/* For slu_flow_cfg.begin. */
SLU_MUST_USE int slu_near_see(void *x, const struct slu_header *h,
                              struct slu_names *names, struct slu_err *err);
/* Puts the rows of a document; and the rows of a group that memory passes on. */
SLU_MUST_USE int slu_near_put_doc(struct slu_near *x, const struct slu_near_item *d,
                                  uint64_t rank, struct slu_err *err);
SLU_MUST_USE int slu_near_put_group(struct slu_near *x, unsigned band, uint64_t key,
                                    uint64_t n_doc, const uint64_t *kept, size_t n_kept,
                                    struct slu_err *err);

/* ---- near_groups.c, near_cluster.c: stages ---- */

SLU_MUST_USE int slu_near_group(void *x, struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_near_cluster(void *x, struct slu_flow *f, struct slu_err *err);

#endif
