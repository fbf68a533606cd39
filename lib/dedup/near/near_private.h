/* near_private.h - what near.c (the front: what comes, and what memory decides at
 * once), near_flow.c (the stages), near_groups.c (where bands meet), near_verify.c and
 * near_cluster.c (who is dropped) share. Private to them and to who does one stage. */
#ifndef SLU_DEDUP_NEAR_PRIVATE_H
#define SLU_DEDUP_NEAR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/dedup/near/minhash.h"
#include "lib/dedup/near/near.h"
#include "lib/flow/flow.h"

/* Tables. Ordinals are of documents in the order of the stream. */
enum {
    NEAR_SET,   /* of each document hash of its set (low, high), rank; the set */
    NEAR_BAND,  /* key, tag, with `prio` rank, band << 48 | ordinal */
    NEAR_WHERE, /* source, document, offset, in the order of ordinals */
    NEAR_PAIR,  /* d, k: candidates; the same: d came behind the first of a group */
    NEAR_TWIN,  /* first, twin */
    NEAR_EDGE,  /* d, k, intersection, union; with `prio` ranks before ordinals */
    NEAR_COUNT, /* candidates, edges, capped documents */
    NEAR_DROP,  /* d, witness, intersection, union */
    NEAR_LOST,  /* the same by witness, d, … */
    NEAR_NAMED, /* d, witness's source, document, offset, intersection, union */
    NEAR_TABLES
};

/* Tags that no document has, of what memory had decided; in order of ordinals alone. */
enum { NEAR_UNLISTED, NEAR_LISTED, NEAR_TAGS };

#define NEAR_SHIFT     48 /* of band << 48 | ordinal */
#define NEAR_MASK      ((UINT64_C(1) << NEAR_SHIFT) - 1)
#define NEAR_NONE_LEFT UINT64_MAX

struct slu_near {
    struct slu_near_cfg cfg;
    struct slu_near_result result, told; /* of the flow; and of memory too */
    const struct slu_header *header;     /* of the stream; borrowed, as names are */
    struct slu_names *names;
    struct slu_flow *flow; /* the stage at hand */

    char against[33]; /* in parts: the index by its contents */

    /* sign */
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
    struct near_scratch *scratch; /* one a thread */
    struct slu_table *set, *band, *where;
    uint64_t ordinal; /* of the next document */
    /* In one process. */
    struct slu_near_mem *mem; /* NULL: decides nothing */
    struct slu_near_audit *audit;
    bool waits, noting; /* memory is full; pairs wait too */
    uint64_t n_come;    /* documents, those of an index too */
    uint64_t n_stored;  /* hand-over: ordinals whose sets went on */
    /* Ordinals below are kept for certain; in one process others are on the tape. */
    uint64_t n_fixed;

    /* group */
    struct slu_table *pair, *twin;
    size_t most_member; /* that wait in memory for their order, of a worker's group */
    uint64_t *k;        /* those of a group that may be a pair's k */
    size_t cap_k;
    uint64_t at_band, n_member, n_listed, n_unlisted; /* of the group that is told */

    /* verify, cluster */
    struct slu_table *edge;
};

/* Ranks: a priority as it is sorted by. Fixed documents come before all others. */
static inline uint64_t slu_near_rank(bool fixed, uint64_t prio)
{
    return fixed ? 0 : prio + 1;
}

/* How many bits v has; 0 has one. */
static inline unsigned slu_near_bits(uint64_t v)
{
    return 64 - (unsigned)__builtin_clzll(v | 1);
}

/* Twins in one band have one tag there, others another. */
static inline uint64_t slu_near_tag(struct slu_u128 set_hash, uint64_t band)
{
    return set_hash.lo + band * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- near.c ---- */

/* Makes what sign needs of the stream; and of its batches items, then keys, then sets.
 */
SLU_MUST_USE int slu_near_begin(struct slu_near *x, struct slu_err *err);
void slu_near_end(struct slu_near *x);
SLU_MUST_USE int slu_near_items(void *x, unsigned worker, struct slu_batch *b,
                                void *side, struct slu_err *err);
void slu_near_items_release(void *side);
/* One process: memory for it, and the documents of an index; the next batch. */
SLU_MUST_USE int slu_near_front(struct slu_near *x, struct slu_err *err);
SLU_MUST_USE int slu_near_arrive(void *x, struct slu_batch *b, void *side,
                                 struct slu_err *err);
/* Books a sequence that is dropped, and tells its pair. */
SLU_MUST_USE int slu_near_drop(struct slu_near *x, const struct slu_batch *b,
                               const struct slu_seq *q,
                               const struct slu_near_verdict *v, struct slu_err *err);
static inline bool slu_near_details(const struct slu_near *x)
{
    return x->cfg.pair || x->cfg.audit;
}

/* ---- near_flow.c: the flow, whose ctx is a struct slu_near ---- */

/* index: it has that stage. */
const struct slu_flow_spec *slu_near_spec(bool prio, bool index);
/* slu_flow_cfg.begin. */
SLU_MUST_USE int slu_near_see(void *x, const struct slu_header *h,
                              struct slu_names *names, struct slu_err *err);
/* Rows of a document; and of what memory knows of a group. */
SLU_MUST_USE int slu_near_put_doc(struct slu_near *x, const struct slu_near_item *d,
                                  uint64_t rank, struct slu_err *err);
SLU_MUST_USE int slu_near_put_group(struct slu_near *x, unsigned band, uint64_t key,
                                    uint64_t n_doc, const uint64_t *kept, size_t n_kept,
                                    struct slu_err *err);

/* ---- near_groups.c, near_cluster.c: stages ---- */

SLU_MUST_USE int slu_near_group(void *x, struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_near_cluster(void *x, struct slu_flow *f, struct slu_err *err);

#endif
