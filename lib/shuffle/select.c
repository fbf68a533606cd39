#include "select.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/flow/bytelog.h"

typedef unsigned __int128 u128;

struct row {
    struct slu_u128 key;
    uint64_t what; /* group << TOK_BITS | tokens */
};
#define TOK_BITS  56
#define CELL_BITS 20 /* for all cuts together */
#define MAX_DIGIT 16
#define MIN_DIGIT 4

/* The search for one cut: takes `left` more tokens from the rows whose leading bits are
 * `prefix`. Rows with smaller keys are inside the cut. */
struct search {
    u128 prefix;
    uint64_t left;
    bool done;
};

struct slu_select {
    struct slu_bytelog *rows;
    uint64_t budget_byte, spilled;
    char *tmpdir;
};

int slu_select_new(struct slu_select **out, uint64_t budget_byte, const char *tmpdir,
                   struct slu_err *err)
{
    struct slu_select *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->budget_byte = budget_byte;
    s->tmpdir = strdup(tmpdir);
    int rc = s->tmpdir ? slu_bytelog_new(&s->rows, budget_byte, tmpdir, err)
                       : slu_fail_nomem(err, 1);
    if (rc) {
        slu_select_free(s);
        *out = NULL;
    }
    return rc;
}

int slu_select_add(struct slu_select *s, struct slu_u128 key, unsigned group,
                   uint64_t n_tok, struct slu_err *err)
{
    struct row r = {key, (uint64_t)group << TOK_BITS | n_tok};
    return slu_bytelog_put(s->rows, &r, sizeof r, err);
}

struct slu_u128 slu_select_turn(struct slu_u128 key, uint64_t round)
{
    uint8_t b[24];
    if (round == 0)
        return key;
    slu_put_le64(b, key.hi);
    slu_put_le64(b + 8, key.lo);
    slu_put_le64(b + 16, round);
    return slu_hash128(b, sizeof b);
}

static u128 turned(const struct row *r, uint64_t round)
{
    struct slu_u128 k = slu_select_turn(r->key, round);
    return (u128)k.hi << 64 | k.lo;
}

/* One pass over all rows that may still matter. */
struct pass {
    const struct slu_cut *cut;
    struct search *at;
    unsigned first[SLU_SELECT_GROUPS + 1]; /* by group: its first cut */
    uint64_t *cell;
    unsigned shift, bits; /* of the current digit; the bits above are known */
};

/* Adds the row to the cells of the cuts that it may decide; false: to none. */
static bool count_row(struct pass *p, const struct row *r)
{
    unsigned g = (unsigned)(r->what >> TOK_BITS);
    uint64_t tok = r->what & ((UINT64_C(1) << TOK_BITS) - 1);
    uint64_t round = 0;
    bool any = false, have = false;
    u128 key = 0;
    for (unsigned i = p->first[g]; i < p->first[g + 1]; i++) {
        if (p->at[i].done)
            continue;
        if (!have || p->cut[i].round != round)
            key = turned(r, round = p->cut[i].round);
        have = true;
        unsigned above = p->shift + p->bits;
        if (above < 128 && key >> above != p->at[i].prefix)
            continue;
        any = true;
        p->cell[((size_t)i << p->bits) +
                (size_t)(key >> p->shift & ((1u << p->bits) - 1))] += tok;
    }
    return any;
}

/* Counts the rows of s->rows, and replaces these by the rows that still matter. */
static int count(struct slu_select *s, struct pass *p, unsigned n_cut,
                 struct slu_err *err)
{
    struct slu_bytelog *left = NULL;
    const void *r;
    memset(p->cell, 0, sizeof *p->cell * n_cut << p->bits);
    int rc = slu_bytelog_rewind(s->rows, sizeof(struct row), err);
    if (!rc)
        rc = slu_bytelog_new(&left, s->budget_byte / 8, s->tmpdir, err);
    while (!rc && !(rc = slu_bytelog_get(s->rows, &r, sizeof(struct row), err)))
        if (count_row(p, r))
            rc = slu_bytelog_put(left, r, sizeof(struct row), err);
    if (rc != SLU_EOF) {
        slu_bytelog_free(left);
        return rc;
    }
    s->spilled += slu_bytelog_spilled(s->rows);
    slu_bytelog_free(s->rows);
    s->rows = left;
    return SLU_OK;
}

/* Takes the digit of a cut from its counted cells. Returns whether the cut is found. */
static bool settle(struct search *at, const uint64_t *cell, unsigned shift,
                   unsigned bits, bool *all)
{
    size_t c = 0, n = (size_t)1 << bits;
    while (c < n && cell[c] <= at->left)
        at->left -= cell[c++];
    /* only in the first digit: in later ones some row is outside the cut */
    *all = c == n;
    at->prefix = at->prefix << bits | c;
    return *all || shift == 0;
}

int slu_select_cut(struct slu_select *s, struct slu_cut *cut, unsigned n,
                   struct slu_err *err)
{
    struct pass p = {.cut = cut, .shift = 128, .bits = MAX_DIGIT};
    unsigned left = n;
    int rc = SLU_OK;
    while (p.bits > MIN_DIGIT && (uint64_t)n << p.bits > UINT64_C(1) << CELL_BITS)
        p.bits--;
    for (unsigned g = 0, i = 0; g < SLU_SELECT_GROUPS; g++) {
        p.first[g] = i;
        while (i < n && cut[i].group == g)
            i++;
        p.first[g + 1] = i;
    }
    if (p.first[SLU_SELECT_GROUPS] != n)
        return slu_fail(err, SLU_E_USAGE,
                        "the cuts are not in the order of their groups");
    p.at = calloc(n + 1, sizeof *p.at);
    p.cell = malloc((sizeof *p.cell * n << p.bits) + 1);
    if (!p.at || !p.cell)
        rc = slu_fail_nomem(err, sizeof *p.cell * n << p.bits);
    for (unsigned i = 0; !rc && i < n; i++)
        p.at[i].left = cut[i].tok;
    while (!rc && left) {
        p.bits = p.bits < p.shift ? p.bits : p.shift;
        p.shift -= p.bits;
        rc = count(s, &p, n, err);
        for (unsigned i = 0; !rc && i < n; i++) {
            struct search *at = &p.at[i];
            if (at->done)
                continue;
            at->done = settle(at, p.cell + ((size_t)i << p.bits), p.shift, p.bits,
                              &cut[i].all);
            if (!at->done)
                continue;
            left--;
            cut[i].left = at->left;
            cut[i].key =
                (struct slu_u128){(uint64_t)at->prefix, (uint64_t)(at->prefix >> 64)};
        }
    }
    free(p.at);
    free(p.cell);
    return rc;
}

uint64_t slu_select_spilled(const struct slu_select *s)
{
    return s->spilled + slu_bytelog_spilled(s->rows);
}

void slu_select_free(struct slu_select *s)
{
    if (!s)
        return;
    slu_bytelog_free(s->rows);
    free(s->tmpdir);
    free(s);
}
