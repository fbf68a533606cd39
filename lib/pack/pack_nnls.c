#include "lib/pack/pack_nnls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FREE, PASSIVE, REFUSED };

struct column {
    uint32_t len[3];
    size_t id;
    double x, next; /* now; solution of the passive set alone */
};

struct solver {
    uint32_t capacity;
    unsigned depth;
    const double *wanted;
    double *w2;       /* squares of the weights; w2[0] = 0 */
    double *y;        /* w2 * (wanted - A x), by length; y[0] = 0 */
    size_t *row;      /* number of the first strategy with smallest length c */
    uint8_t *state;   /* by number of a strategy */
    struct column *p; /* the passive set, in the order of the factor's columns */
    size_t n;
    /* the factor R of the passive set, R'R = A'WWA; column j is at r + j * capacity */
    double *r;
    double *q; /* R^-T A'WW wanted */
    double *u; /* capacity + 1 of scratch */
};

/* ---- arithmetic: the order of additions is part of the result ---- */

static double dot(const double *a, const double *b, size_t n)
{
    double s[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            s[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        s[i % 8] += a[i] * b[i];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Returns a'WWb for two columns: equal lengths contribute. */
static double inner(const struct solver *s, const uint32_t *a, const uint32_t *b)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            sum += a[i] == b[k] ? s->w2[a[i]] : 0;
    return sum;
}

static double square_root(double x)
{
    return __builtin_sqrt(x);
}

/* ---- the factor ---- */

/* Appends a column. False if it is a combination of the others. */
static bool add_column(struct solver *s, const struct column *c)
{
    double *col = s->r + s->n * s->capacity;
    if (s->n == s->capacity)
        return false;
    for (size_t i = 0; i < s->n; i++)
        col[i] = inner(s, s->p[i].len, c->len);
    for (size_t i = 0; i < s->n; i++) { /* R'u = A'a */
        const double *ri = s->r + i * s->capacity;
        col[i] = (col[i] - dot(ri, col, i)) / ri[i];
    }
    double all = inner(s, c->len, c->len), rest = all - dot(col, col, s->n), wanted = 0;
    if (!(rest > 1e-9 * all))
        return false;
    for (int i = 0; i < 3; i++)
        wanted += s->w2[c->len[i]] * s->wanted[c->len[i]];
    col[s->n] = square_root(rest);
    s->q[s->n] = (wanted - dot(col, s->q, s->n)) / col[s->n];
    s->p[s->n++] = *c;
    s->state[c->id] = PASSIVE;
    return true;
}

/* Removes column k: later columns move up, and rotations make them triangular again. */
static void drop_column(struct solver *s, size_t k)
{
    double *cos = s->u, *sin = s->y; /* y is recomputed before it is read */
    s->state[s->p[k].id] = FREE;
    memmove(&s->p[k], &s->p[k + 1], (--s->n - k) * sizeof *s->p);
    for (size_t j = k; j < s->n; j++) {
        double *col = s->r + j * s->capacity;
        memcpy(col, col + s->capacity, (j + 2) * sizeof *col);
        for (size_t i = k; i < j; i++) {
            double a = col[i], b = col[i + 1];
            col[i] = cos[i] * a + sin[i] * b;
            col[i + 1] = cos[i] * b - sin[i] * a;
        }
        double a = col[j], b = col[j + 1], h = square_root(a * a + b * b);
        cos[j] = a / h;
        sin[j] = b / h;
        col[j] = h;
        a = s->q[j], b = s->q[j + 1];
        s->q[j] = cos[j] * a + sin[j] * b;
        s->q[j + 1] = cos[j] * b - sin[j] * a;
    }
}

/* Solves for the passive set alone: R next = q. */
static void solve_passive(struct solver *s)
{
    memcpy(s->u, s->q, s->n * sizeof *s->u);
    for (size_t j = s->n; j-- > 0;) {
        const double *col = s->r + j * s->capacity;
        double x = s->u[j] / col[j];
        s->p[j].next = x;
        for (size_t i = 0; i < j; i++)
            s->u[i] -= x * col[i];
    }
}

/* ---- the active set ---- */

static void residual(struct solver *s)
{
    memcpy(s->y, s->wanted, (s->capacity + 1) * sizeof *s->y);
    for (size_t j = 0; j < s->n; j++)
        for (int i = 0; i < 3; i++)
            s->y[s->p[j].len[i]] -= s->p[j].x;
    for (size_t l = 0; l <= s->capacity; l++)
        s->y[l] *= s->w2[l];
}

/* Finds the strategy with the largest gradient above `least`; ties: the first. */
static bool steepest(const struct solver *s, double least, struct column *best)
{
    bool found = false;
    const double *y = s->y;
    uint32_t L = s->capacity, last_c = s->depth < 3 ? 0 : L / 3;
    for (uint32_t c = 0; c <= last_c; c++) {
        const uint8_t *state = s->state + s->row[c] - c;
        uint32_t last_b = s->depth < 2 ? 0 : (L - c) / 2;
        for (uint32_t b = c; b <= last_b; b++) {
            double g = y[c] + y[b] + y[L - c - b];
            if (g > least && state[b] == FREE) {
                *best = (struct column){{c, b, L - c - b}, s->row[c] + b - c, 0, 0};
                least = g;
                found = true;
            }
        }
    }
    return found;
}

/* Moves x to the passive set's own solution; drops strategies that would become
 * negative on the way. */
static void settle(struct solver *s)
{
    for (;;) {
        double part = 2;
        size_t first = 0; /* the first to become negative */
        solve_passive(s);
        for (size_t j = 0; j < s->n; j++) {
            const struct column *c = &s->p[j];
            double at = c->next > 0 ? 2 : c->x > 0 ? c->x / (c->x - c->next) : 0;
            if (at < part) {
                part = at;
                first = j;
            }
        }
        if (part == 2)
            break;
        for (size_t j = s->n; j-- > 0;) {
            struct column *c = &s->p[j];
            c->x += part * (c->next - c->x);
            if (j == first || c->x <= 0)
                drop_column(s, j);
        }
    }
    for (size_t j = 0; j < s->n; j++)
        s->p[j].x = s->p[j].next;
}

static void solve(struct solver *s)
{
    struct column c;
    double least = 0;
    residual(s);
    for (size_t l = 1; l <= s->capacity; l++)
        least = s->y[l] > least ? s->y[l] : least;
    least *= 1e-9;
    /* Each round changes the passive set by one strategy, and no set returns. The limit
     * is for rounding errors that would repeat one. */
    for (size_t round = 0; round < 20 * (size_t)s->capacity; round++) {
        bool refused = false, added = false;
        while (!added && steepest(s, least, &c)) {
            added = add_column(s, &c);
            if (added) {
                solve_passive(s);
                if (s->p[s->n - 1].next <= 0) { /* the gradient was a rounding error */
                    drop_column(s, s->n - 1);
                    added = false;
                }
            }
            if (!added) {
                s->state[c.id] = REFUSED;
                refused = true;
                residual(s); /* drop_column has overwritten y */
            }
        }
        if (!added)
            return;
        settle(s);
        residual(s);
        for (size_t i = 0; refused && i < s->row[s->capacity / 3 + 1]; i++)
            s->state[i] = s->state[i] == REFUSED ? FREE : s->state[i];
    }
}

/* ---- the result ---- */

static int by_lengths(const void *a, const void *b)
{
    const struct slu_pack_strategy *x = a, *y = b;
    for (int i = 0; i < 3; i++)
        if (x->len[i] != y->len[i])
            return x->len[i] < y->len[i] ? -1 : 1;
    return 0;
}

static int give(const struct solver *s, struct slu_pack_strategy **strategy, size_t *n,
                struct slu_err *err)
{
    *strategy = malloc((s->n ? s->n : 1) * sizeof **strategy);
    if (!*strategy)
        return slu_fail_nomem(err, s->n * sizeof **strategy);
    for (size_t j = 0; j < s->n; j++) {
        const uint32_t *len = s->p[j].len;
        (*strategy)[j] =
            (struct slu_pack_strategy){{len[0], len[1], len[2]}, s->p[j].x};
    }
    *n = s->n;
    qsort(*strategy, *n, sizeof **strategy, by_lengths);
    return SLU_OK;
}

int slu_pack_nnls(struct slu_pack_strategy **strategy, size_t *n, uint32_t capacity,
                  unsigned depth, const double *wanted, const double *weight,
                  struct slu_err *err)
{
    struct solver s = {.capacity = capacity, .depth = depth, .wanted = wanted};
    size_t L = capacity, rows = L / 3 + 2;
    int rc = SLU_OK;
    *strategy = NULL;
    *n = 0;
    s.w2 = calloc(L + 1, sizeof *s.w2);
    s.y = calloc(L + 1, sizeof *s.y);
    s.u = calloc(L + 1, sizeof *s.u);
    s.q = calloc(L + 1, sizeof *s.q);
    s.p = calloc(L + 1, sizeof *s.p);
    s.r = calloc((L + 1) * L, sizeof *s.r);
    s.row = calloc(rows, sizeof *s.row);
    for (size_t c = 0; s.row && c + 1 < rows; c++)
        s.row[c + 1] = s.row[c] + (L - c) / 2 + 1 - c;
    if (s.row)
        s.state = calloc(s.row[rows - 1], 1);
    if (!s.w2 || !s.y || !s.u || !s.q || !s.p || !s.r || !s.state) {
        rc = slu_fail_nomem(err, (L + 1) * L * sizeof *s.r);
        goto out;
    }
    for (size_t l = 1; l <= L; l++)
        s.w2[l] = weight[l] * weight[l];
    solve(&s);
    rc = give(&s, strategy, n, err);
out:
    free(s.w2);
    free(s.y);
    free(s.u);
    free(s.q);
    free(s.p);
    free(s.r);
    free(s.row);
    free(s.state);
    return rc;
}
