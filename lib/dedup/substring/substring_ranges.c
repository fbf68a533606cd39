#include "lib/dedup/substring/substring_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "lib/flow/sorter.h"
#include "lib/flow/bytelog.h"

struct slu_ranges {
    uint64_t sorter_byte; /* memory of each of the three sorters in use at once */
    const char *tmpdir;
    unsigned n_threads, n_tok, spread;
    struct slu_bytelog *runs;   /* struct run, by place */
    struct slu_sorter *repeats; /* key: place; bytes: struct repeat */
    struct slu_sorter *exact;   /* key: place; bytes: first */
    struct slu_sorter *placed;  /* key: from; bytes: struct slu_range */
    uint64_t spilled_byte;

    /* The range that is being merged. */
    bool has;
    uint64_t from, to, first;
};

struct run { /* read from the log */
    uint64_t place, source, document, offset;
};

struct repeat {
    uint64_t count, first;
};

static int sorter(struct slu_ranges *r, struct slu_sorter **s, struct slu_err *err)
{
    struct slu_sorter_cfg cfg = {r->sorter_byte, r->tmpdir, r->n_threads};

    return *s ? SLU_OK : slu_sorter_new(s, &cfg, err);
}

static void end_sorter(struct slu_ranges *r, struct slu_sorter **s)
{
    if (*s)
        r->spilled_byte += slu_sorter_spilled(*s);
    slu_sorter_free(*s);
    *s = NULL;
}

int slu_ranges_new(struct slu_ranges **out, uint64_t budget_byte, const char *tmpdir,
                   unsigned n_threads, unsigned n_tok, struct slu_err *err)
{
    struct slu_ranges *r = calloc(1, sizeof *r);

    *out = r;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    const uint64_t log_byte = 1 << 20;
    *r = (struct slu_ranges){.sorter_byte = (budget_byte - log_byte) / 3,
                             .tmpdir = tmpdir,
                             .n_threads = n_threads,
                             .n_tok = n_tok};
    int rc = slu_bytelog_new(&r->runs, log_byte, tmpdir, err);
    if (rc) {
        slu_ranges_free(r);
        *out = NULL;
    }
    return rc;
}

void slu_ranges_free(struct slu_ranges *r)
{
    if (!r)
        return;
    slu_bytelog_free(r->runs);
    slu_sorter_free(r->repeats);
    slu_sorter_free(r->exact);
    slu_sorter_free(r->placed);
    free(r);
}

uint64_t slu_ranges_spilled(const struct slu_ranges *r)
{
    struct slu_sorter *const s[] = {r->repeats, r->exact, r->placed};
    uint64_t n = r->spilled_byte + slu_bytelog_spilled(r->runs);

    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        n += s[i] ? slu_sorter_spilled(s[i]) : 0;
    return n;
}

int slu_ranges_run(struct slu_ranges *r, const struct slu_run *run, uint64_t place,
                   struct slu_err *err)
{
    const struct run x = {place, run->seg.source, run->seg.document, run->seg.offset};

    return slu_bytelog_put(r->runs, &x, sizeof x, err);
}

void slu_ranges_places(struct slu_ranges *r, uint64_t n_place)
{
    r->spread = (unsigned)__builtin_clzll(n_place | 1);
}

static int add(struct slu_ranges *r, struct slu_sorter **s, uint64_t place,
               const void *p, size_t n, struct slu_err *err)
{
    const struct slu_slice piece = {p, n};
    int rc = sorter(r, s, err);

    return rc ? rc
              : slu_sorter_add(*s, (struct slu_u128){0, place << r->spread}, &piece, 1,
                               err);
}

/* Reads the next record's place, and its n bytes. */
static int next(struct slu_ranges *r, struct slu_sorter *s, uint64_t *place, void *to,
                size_t n, struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t have;
    int rc = s ? slu_sorter_next(s, &key, &p, &have, err) : SLU_EOF;

    if (rc)
        return rc;
    if (have != n)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", r->tmpdir);
    *place = key.hi >> r->spread;
    memcpy(to, p, n);
    return SLU_OK;
}

int slu_ranges_put(struct slu_ranges *r, const struct slu_found *f, bool exact,
                   struct slu_err *err)
{
    const struct repeat x = {f->count, f->first};
    int rc = SLU_OK;

    if (f->kind == SLU_FOUND_REPEAT)
        rc = add(r, &r->repeats, f->place, &x, sizeof x, err);
    if (!rc && exact)
        rc = add(r, &r->exact, f->place, &f->first, sizeof f->first, err);
    return rc;
}

/* Merges the next range into r->from, to, first. `first`: the origin of the block. */
static int merge(struct slu_ranges *r, uint64_t *from, uint64_t *to, uint64_t *first,
                 struct slu_err *err)
{
    struct repeat x = {0, 0};
    uint64_t place = 0;
    int rc;

    while ((rc = next(r, r->repeats, &place, &x, sizeof x, err)) == SLU_OK) {
        uint64_t end = place + x.count - 1 + r->n_tok;
        if (r->has && place <= r->to) {
            r->to = end > r->to ? end : r->to;
            continue;
        }
        bool had = r->has;
        *from = r->from;
        *to = r->to;
        *first = r->first;
        r->has = true;
        r->from = place;
        r->to = end;
        r->first = x.first;
        if (had)
            return SLU_OK;
    }
    if (rc == SLU_EOF && r->has) {
        r->has = false;
        *from = r->from;
        *to = r->to;
        *first = r->first;
        return SLU_OK;
    }
    return rc;
}

/* ---- first occurrences ---- */

/* Replaces the block that each range was found with by the true first occurrence. */
static int follow(struct slu_ranges *r, struct slu_sorter *in, struct slu_sorter **out,
                  struct slu_err *err)
{
    uint64_t place = 0, at = 0, first = 0, range[2];
    bool begun = false, has = true;
    int rc = slu_sorter_seal(in, err);

    while (!rc) {
        rc = next(r, in, &place, range, sizeof range, err);
        while (!rc && has && (!begun || at < place)) {
            begun = true;
            rc = next(r, r->exact, &at, &first, sizeof first, err);
            if (rc == SLU_EOF) {
                has = false;
                rc = SLU_OK;
            }
        }
        if (!rc)
            rc = add(r, out, has && at == place ? first : place, range, sizeof range,
                     err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Sorts ranges by the place of their first occurrence, finds its document, and sorts by
 * place again. */
static int locate(struct slu_ranges *r, struct slu_sorter *in, struct slu_err *err)
{
    struct run run = {0, 0, 0, 0}, ahead = {0, 0, 0, 0};
    bool has_ahead = true;
    uint64_t place = 0, range[2];
    int rc = slu_sorter_seal(in, err);

    if (!rc)
        rc = slu_bytelog_rewind(r->runs, sizeof run, err);
    while (!rc) {
        rc = next(r, in, &place, range, sizeof range, err);
        while (!rc && has_ahead && ahead.place <= place) {
            const void *p;
            run = ahead;
            rc = slu_bytelog_get(r->runs, &p, sizeof ahead, err);
            if (!rc)
                memcpy(&ahead, p, sizeof ahead);
            if (rc == SLU_EOF) {
                has_ahead = false;
                rc = SLU_OK;
            }
        }
        if (rc)
            break;
        const struct slu_range x = {
            range[0],
            range[1],
            {run.source, run.document, run.offset + (place - run.place)}};
        rc = add(r, &r->placed, x.from, &x, sizeof x, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int find_first(struct slu_ranges *r, struct slu_err *err)
{
    struct slu_sorter *by_block = NULL, *by_first = NULL;
    uint64_t range[2], first;
    int rc = r->exact ? slu_sorter_seal(r->exact, err) : SLU_OK;

    while (!rc) {
        rc = merge(r, &range[0], &range[1], &first, err);
        if (!rc)
            rc = add(r, &by_block, first, range, sizeof range, err);
    }
    end_sorter(r, &r->repeats);
    if (rc == SLU_EOF)
        rc = SLU_OK;
    if (!rc && by_block)
        rc = follow(r, by_block, &by_first, err);
    end_sorter(r, &by_block);
    end_sorter(r, &r->exact);
    if (!rc && by_first)
        rc = locate(r, by_first, err);
    end_sorter(r, &by_first);
    return !rc && r->placed ? slu_sorter_seal(r->placed, err) : rc;
}

int slu_ranges_seal(struct slu_ranges *r, struct slu_err *err)
{
    int rc = r->repeats ? slu_sorter_seal(r->repeats, err) : SLU_OK;

    return rc ? rc : find_first(r, err);
}

int slu_ranges_next(struct slu_ranges *r, struct slu_range *to, struct slu_err *err)
{
    uint64_t first;

    memset(to, 0, sizeof *to);
    return next(r, r->placed, &first, to, sizeof *to, err);
}
