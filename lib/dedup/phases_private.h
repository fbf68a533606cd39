/* phases_private.h - what the phases share. Private to lib/dedup/phase_*.c.
 */
#ifndef SLU_DEDUP_PHASES_PRIVATE_H
#define SLU_DEDUP_PHASES_PRIVATE_H

#include "lib/dedup/near_verify.h"
#include "lib/workfile.h"
#include "lib/dedup/phases.h"

/* Counts of a file's head. */
enum {
    N_DOC,
    N_TOK,
    STREAM_LO, /* slu_reader_identity */
    STREAM_HI,
    N_RANGE,
    N_DROPPED,
    N_CANDIDATE = 5,
    N_EDGE,
    N_CAPPED
};
/* And those of passages_phases.h. */
enum {
    N_PLACE = 5,
    N_REPEAT = 5,
    N_BLOCK = 6,
    N_ASKED = 6,
    N_WINDOW = 6,
    CHAIN_LO = 6,
    CHAIN_HI,
    SPECIALS = 7
};

enum { SETS, ENTRIES, RECORDS }; /* sections of a sign file */
enum { ENTRY = 6, PAIR = 2, EDGE = 6, DROP = 4 };

#define BAND_SHIFT 48 /* of band << 48 | local ordinal */
#define LOCAL_MASK ((UINT64_C(1) << BAND_SHIFT) - 1)

static inline bool slu_phase_by_prio(const struct slu_phase_cfg *c)
{
    return c->prio != NULL;
}
/* u64 of a sign record. */
static inline unsigned slu_phase_record(const struct slu_phase_cfg *c)
{
    return slu_phase_by_prio(c) ? 4 : 3;
}

/* The parameters' text of a phase's files, of which later phases' begin with that of
 * earlier ones. n_range of the sign files. Caller frees with free(). */
SLU_MUST_USE int slu_phase_param(const struct slu_phase_cfg *c, uint64_t kind,
                                 uint64_t n_range, char **text, struct slu_err *err);
/* WORK/NAME.part-of-of of a kind. Caller frees with free(). */
SLU_MUST_USE int slu_phase_path(const struct slu_phase_cfg *c, uint64_t kind,
                                uint64_t part, uint64_t of, char **path,
                                struct slu_err *err);
/* Opens a file that an earlier phase must have left: one line where it is not there, or
 * was made otherwise (fingerprint NULL: any; inputs too). */
SLU_MUST_USE int slu_phase_open(const struct slu_phase_cfg *c, uint64_t kind,
                                uint64_t part, uint64_t of, uint64_t n_range,
                                const uint8_t *fingerprint,
                                const struct slu_u128 *inputs, struct slu_workfile **f,
                                struct slu_err *err);
/* Whether a phase's own file is there and as it would be made; want->param is filled by
 * it and the caller's to free. */
SLU_MUST_USE int slu_phase_done(const struct slu_phase_cfg *c,
                                const struct slu_workfile_head *want, const char *path,
                                bool *done, struct slu_workfile_head *is,
                                struct slu_err *err);

/* What the part's stream is, once the whole of r was read, into a head's counts; and
 * whether it is the one that a head tells of. */
SLU_MUST_USE int slu_phase_note_stream(uint64_t count[SLU_WORKFILE_COUNTS],
                                       struct slu_reader *r,
                                       const struct slu_sum *total,
                                       struct slu_err *err);
SLU_MUST_USE int slu_phase_same_stream(bool *same,
                                       const uint64_t count[SLU_WORKFILE_COUNTS],
                                       struct slu_reader *r,
                                       const struct slu_sum *total,
                                       struct slu_err *err);
/* A phase's file is there: whether it is this stream's, of which the whole is read. */
SLU_MUST_USE int slu_phase_compare(const struct slu_phase_cfg *c, struct slu_reader *r,
                                   unsigned n_slots, const struct slu_workfile_head *is,
                                   const char *path, struct slu_sum *total,
                                   struct slu_err *err);

/* All sign files of a folder: what they say of themselves. */
struct slu_phase_parts {
    uint64_t of, n_range;
    uint64_t *base; /* of + 1: the ordinal, or place, that each part begins with */
    struct slu_u128 *id;
    struct slu_workfile_head *head; /* without param */
    uint8_t fingerprint[16];
    struct slu_u128 ids; /* all of them mixed */
};

/* of 0: as many as there are. */
SLU_MUST_USE int slu_phase_parts_read(struct slu_phase_parts *p,
                                      const struct slu_phase_cfg *c, uint64_t of,
                                      struct slu_err *err);
void slu_phase_parts_release(struct slu_phase_parts *p);
/* The part that an ordinal below base[of] is in. */
uint64_t slu_phase_part_of(const struct slu_phase_parts *p, uint64_t ordinal);
/* Opens sign file `part` again, and checks that it is the same. */
SLU_MUST_USE int slu_phase_parts_open(const struct slu_phase_parts *p,
                                      const struct slu_phase_cfg *c, uint64_t part,
                                      struct slu_workfile **f, struct slu_err *err);
/* Mixes in the ids of all files of a kind (merge or verify), of which there are `of`.
 */
SLU_MUST_USE int slu_phase_mix(const struct slu_phase_parts *p,
                               const struct slu_phase_cfg *c, uint64_t kind,
                               uint64_t of, const struct slu_u128 *inputs,
                               struct slu_u128 *ids, struct slu_err *err);

#endif
