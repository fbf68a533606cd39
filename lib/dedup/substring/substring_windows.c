#include "lib/dedup/substring/substring_windows.h"

#define MERSENNE61 ((UINT64_C(1) << 61) - 1)

static inline uint64_t mod61(unsigned __int128 v)
{
    uint64_t x = (uint64_t)(v & MERSENNE61) + (uint64_t)(v >> 61);

    x = (x & MERSENNE61) + (x >> 61);
    return x == MERSENNE61 ? 0 : x;
}

/* Two polynomials of the ids of a window, in base[] mod 2^61 - 1 (Karp and Rabin). */
static const uint64_t base[2] = {0x0d9aa1f2ca3a3d39, 0x171f6a6cbb1eae15};

/* Bijective, so that different hashes stay different (David Stafford's variant 13). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Moves to the window at id `at` of b, from an earlier window if that takes fewer
 * steps. */
static void roll_to(struct slu_windows *w, const struct slu_batch *b, uint64_t at)
{
    unsigned n_tok = w->n_tok;

    if (!w->rolling || at - w->at >= n_tok || at < w->at) {
        w->h[0] = w->h[1] = 0;
        for (uint64_t i = at; i < at + n_tok; i++) {
            uint64_t in = slu_batch_id(b, i) + UINT64_C(1);
            for (unsigned k = 0; k < 2; k++)
                w->h[k] = mod61((unsigned __int128)w->h[k] * base[k] + in);
        }
        w->at = at;
        w->rolling = true;
        return;
    }
    for (; w->at < at; w->at++) {
        uint64_t in = slu_batch_id(b, w->at + n_tok) + UINT64_C(1);
        uint64_t gone = slu_batch_id(b, w->at) + UINT64_C(1);
        for (unsigned k = 0; k < 2; k++)
            w->h[k] = mod61((unsigned __int128)w->h[k] * base[k] + in +
                            (unsigned __int128)gone * w->out[k]);
    }
}

static int next_asked(struct slu_windows *w, struct slu_err *err)
{
    struct slu_row r;
    int rc = slu_table_next(w->asked, &r, err);

    w->has = !rc;
    if (!rc) {
        w->place = *(const uint64_t *)r.p >> 16;
        w->count = *(const uint64_t *)r.p & 0xffff;
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_windows_begin(struct slu_windows *w, struct slu_err *err)
{
    for (unsigned k = 0; k < 2; k++) {
        uint64_t p = 1;
        for (unsigned i = 0; i < w->n_tok; i++)
            p = mod61((unsigned __int128)p * base[k]);
        w->out[k] = MERSENNE61 - p;
    }
    return next_asked(w, err);
}

/* Puts the windows asked for; the first is at id `at` of b. */
static int put_windows(struct slu_windows *w, const struct slu_batch *b, uint64_t at,
                       struct slu_err *err)
{
    enum { SOME = 64 };
    uint64_t row[3 * SOME];
    int rc = SLU_OK;

    for (uint64_t i = 0, n; i < w->count && !rc; i += n) {
        n = w->count - i < SOME ? w->count - i : SOME;
        for (uint64_t k = 0; k < n; k++) {
            roll_to(w, b, at + i + k);
            row[3 * k] = mix(w->h[0]);
            row[3 * k + 1] = mix(w->h[1]);
            row[3 * k + 2] = (w->place + i + k) << 16 | 1;
        }
        rc = slu_table_put_rows(w->to, row, n, err);
    }
    w->n += w->count;
    return rc;
}

int slu_windows_seq(struct slu_windows *w, const struct slu_batch *b,
                    const struct slu_seq *q, uint64_t place, struct slu_err *err)
{
    struct slu_walk walk;
    int rc = SLU_OK;

    if (!w->has || w->place >= place + slu_seq_places(q->len_tok, q->n_seg))
        return SLU_OK;
    w->rolling = false;
    slu_walk_init(&walk, b, q, w->special, place);
    while (!rc && w->has && slu_walk_run(&walk)) {
        uint64_t end = walk.run_place + walk.run.seg.len_tok;
        while (!rc && w->has && w->place < end) {
            if (w->place < walk.run_place || end - w->place < w->n_tok ||
                w->count > end - w->place - w->n_tok + 1)
                return SLU_E_CONSERVATION;
            rc = put_windows(w, b, walk.run.tok_off + (w->place - walk.run_place), err);
            if (!rc)
                rc = next_asked(w, err);
        }
    }
    return rc;
}
