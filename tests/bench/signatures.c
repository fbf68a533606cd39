/* signatures.c - how fast a stream's n-grams, signatures and sets are made, on one
 * core.
 *
 *   signatures [-u word|token] [-n N] [-b BANDS -r ROWS] [-l LEVEL] [-p PASSES]
 * STREAM...
 *
 * The sequences are in memory; a pass goes over all of them. Passes of different length
 * are alternated, so that their differences are the steps: n-grams; those and
 * signatures and band keys; those and the sets between; and signatures alone. Prints,
 * for each level or the one of -l, millions of tokens a second (processor time, best
 * pass) of each sum, and nanoseconds a token of each step. With -j a JSON object a
 * level: seconds of each sum.
 *
 * -S: standard input is sets of hashes, each a u32 count and u64s; standard output is
 * their signatures; the seconds that they took alone, on standard error.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/dedup/near/minhash.h"
#include "lib/dedup/near/shingle.h"
#include "lib/stream/stream.h"

static struct slu_err err;

static int die(const char *what)
{
    fprintf(stderr, "signatures: %s\n", what);
    exit(1);
}

static void check(int rc)
{
    if (rc < 0)
        die(err.msg);
}

struct corpus {
    uint8_t *tok;
    size_t cap_byte;
    size_t *end; /* of each sequence, in tokens */
    size_t n, cap, n_tok;
    unsigned tok_bytes;
};

static void add(struct corpus *c, const struct slu_batch *b, const struct slu_seq *q)
{
    const size_t w = c->tok_bytes;

    check(slu_grow(&c->tok, &c->cap_byte, (c->n_tok + q->len_tok) * w, 1, &err));
    check(slu_grow(&c->end, &c->cap, c->n + 1, sizeof *c->end, &err));
    memcpy(c->tok + c->n_tok * w, (const uint8_t *)b->tok + q->tok_off * w,
           q->len_tok * w);
    c->end[c->n++] = c->n_tok += q->len_tok;
}

struct run {
    const struct slu_shingler *s;
    const struct slu_minhash *m;
    struct slu_hashes h;
    uint32_t *sig;
    uint64_t *key, sum, n_gram, n_set;
};

enum what { GRAMS, KEYS, SETS, SIGN, N_WHAT };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double pass(struct run *r, const struct corpus *c, enum what what)
{
    double began = seconds();

    r->n_gram = r->n_set = 0;
    for (size_t i = 0, from = 0; i < c->n; from = c->end[i++]) {
        check(slu_shingle(r->s, c->tok + from * c->tok_bytes, c->end[i] - from, &r->h,
                          &err));
        r->n_gram += r->h.n;
        if (what == SETS)
            check(slu_hashes_to_set(&r->h, &err));
        r->n_set += r->h.n;
        if (what >= KEYS) {
            slu_minhash_sign(r->m, r->h.hash, r->h.n, r->sig);
            slu_minhash_band_keys(r->m, r->sig, r->key);
            r->sum += r->key[0];
        }
        if (what == SETS)
            r->sum += slu_set_hash128(r->h.hash, r->h.n).lo;
    }
    return seconds() - began;
}

/* Signatures alone, of hashes that are there already. */
static double pass_sign(struct run *r, const struct corpus *c)
{
    uint64_t *hash = NULL;
    size_t *n_gram = malloc((c->n + 1) * sizeof *n_gram), n = 0, cap = 0;

    if (!n_gram)
        die("no memory");
    for (size_t i = 0, from = 0; i < c->n; from = c->end[i++]) {
        check(slu_shingle(r->s, c->tok + from * c->tok_bytes, c->end[i] - from, &r->h,
                          &err));
        check(slu_grow(&hash, &cap, n + r->h.n + 1, sizeof *hash, &err));
        memcpy(hash + n, r->h.hash, r->h.n * sizeof *hash);
        n += n_gram[i] = r->h.n;
    }
    double began = seconds();
    for (size_t i = 0, at = 0; i < c->n; at += n_gram[i++]) {
        slu_minhash_sign(r->m, hash + at, n_gram[i], r->sig);
        r->sum += r->sig[0];
    }
    double s = seconds() - began;
    free(n_gram);
    free(hash);
    return s;
}

static void measure(struct run *r, const struct corpus *c, unsigned passes, bool json)
{
    double best[N_WHAT] = {1e9, 1e9, 1e9, 1e9}, n = (double)c->n_tok;

    for (unsigned p = 0; p < passes; p++) {
        for (int w = 0; w < N_WHAT; w++) {
            double s = w == SIGN ? pass_sign(r, c) : pass(r, c, (enum what)w);
            best[w] = s < best[w] ? s : best[w];
        }
    }
    if (json) {
        printf("{\"level\": \"%s\", \"tokens\": %zu, \"n-grams\": %llu, \"shingle_s\": "
               "%.6f, \"sign_s\": %.6f, \"set_s\": %.6f, "
               "\"only_sign_s\": %.6f}\n",
               slu_minhash_level(r->m), c->n_tok, (unsigned long long)r->n_gram,
               best[GRAMS], best[KEYS], best[SETS], best[SIGN]);
        return;
    }
    printf("%-9s n-grams %6.1f Mtok/s, + signature %6.1f, + set %6.1f | ns/token: "
           "n-grams %.2f, signature and keys %.2f, set %.2f | signature alone %.2f "
           "ns/n-gram | %.3f n-grams a token, %.3f in sets\n",
           slu_minhash_level(r->m), n / best[GRAMS] / 1e6, n / best[KEYS] / 1e6,
           n / best[SETS] / 1e6, best[GRAMS] / n * 1e9,
           (best[KEYS] - best[GRAMS]) / n * 1e9, (best[SETS] - best[KEYS]) / n * 1e9,
           best[SIGN] / (double)r->n_gram * 1e9, (double)r->n_gram / n,
           (double)r->n_set / n);
}

static void read_all(struct corpus *c, char **path, int n, struct slu_shingler **s,
                     enum slu_unit unit, unsigned n_gram, bool json)
{
    struct slu_reader_cfg cfg = {.path = (const char *const *)path,
                                 .n_path = (size_t)n};
    struct slu_reader *r;
    struct slu_batch b;
    int rc;

    check(slu_reader_open(&r, &cfg, &err));
    const struct slu_header *h = slu_reader_header(r);
    c->tok_bytes = h->tok_bytes;
    slu_batch_init(&b, h->tok_bytes);
    while ((rc = slu_reader_next(r, &b, &err)) == SLU_OK) {
        for (size_t i = 0; i < b.n_seq; i++)
            add(c, &b, &b.seq[i]);
    }
    check(rc);
    struct slu_shingler_cfg sc = {
        .unit = unit,
        .n = n_gram,
        .vocab = slu_names_vocab(slu_reader_names(r)),
        .tok_bytes = h->tok_bytes,
        .eos = h->eos,
        .bos = h->bos,
        .pad = h->pad,
    };
    struct timespec t[2];
    clock_gettime(CLOCK_MONOTONIC, &t[0]);
    check(slu_shingler_new(s, &sc, &err));
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    if (!json)
        printf("%zu sequences, %zu tokens, table made in %.1f ms\n", c->n, c->n_tok,
               (double)(t[1].tv_sec - t[0].tv_sec) * 1e3 +
                   (double)(t[1].tv_nsec - t[0].tv_nsec) / 1e6);
    slu_batch_release(&b);
    slu_reader_free(r);
}

static void sign_sets(struct slu_minhash *m, size_t n_fn)
{
    uint32_t n, *count = NULL, *sig = NULL;
    uint64_t *hash = NULL;
    size_t n_set = 0, cap_set = 0, n_hash = 0, cap_hash = 0;

    for (; fread(&n, 4, 1, stdin) == 1; n_hash += n) {
        check(slu_grow(&count, &cap_set, n_set + 1, sizeof *count, &err));
        check(slu_grow(&hash, &cap_hash, n_hash + n + 1, sizeof *hash, &err));
        if (fread(hash + n_hash, 8, n, stdin) != n)
            die("half a set");
        count[n_set++] = n;
    }
    sig = malloc((n_set * n_fn + 1) * sizeof *sig);
    if (!sig)
        die("no memory");
    memset(sig, 0, (n_set * n_fn + 1) * sizeof *sig); /* pages are there */
    double from = seconds();
    for (size_t i = 0, at = 0; i < n_set; at += count[i++])
        slu_minhash_sign(m, hash + at, count[i], sig + i * n_fn);
    fprintf(stderr, "%.6f\n", seconds() - from);
    if (fwrite(sig, sizeof *sig * n_fn, n_set, stdout) != n_set)
        die("cannot write");
    free(count);
    free(hash);
    free(sig);
}

int main(int argc, char **argv)
{
    static const char *const levels[] = {"avx512", "avx2", "neon", "portable"};
    enum slu_unit unit = SLU_UNIT_WORD;
    unsigned n = 5, bands = 14, rows = 8, passes = 7;
    const char *level = NULL;
    struct corpus c = {0};
    struct slu_shingler *s;
    struct slu_minhash *m;
    bool json = false, sets = false;
    int o;

    while ((o = getopt(argc, argv, "u:n:b:r:l:p:jS")) != -1) {
        unsigned v = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        switch (o) {
        case 'u':
            unit = strcmp(optarg, "token") ? SLU_UNIT_WORD : SLU_UNIT_TOKEN;
            break;
        case 'n':
            n = v;
            break;
        case 'b':
            bands = v;
            break;
        case 'r':
            rows = v;
            break;
        case 'l':
            level = optarg;
            break;
        case 'p':
            passes = v;
            break;
        case 'j':
            json = true;
            break;
        case 'S':
            sets = true;
            break;
        default:
            return 2;
        }
    }
    check(slu_minhash_new(&m, bands, rows, 0, &err));
    if (level && !slu_minhash_use(m, level))
        die("no such level here");
    if (sets) {
        sign_sets(m, (size_t)bands * rows);
        slu_minhash_free(m);
        return fflush(stdout) ? 1 : 0;
    }
    if (optind == argc)
        die("which streams?");
    read_all(&c, argv + optind, argc - optind, &s, unit, n, json);
    struct run r = {.s = s, .m = m};
    r.sig = malloc((size_t)bands * rows * sizeof *r.sig);
    r.key = malloc(bands * sizeof *r.key);
    if (!r.sig || !r.key)
        die("no memory");
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if ((!level || !strcmp(level, levels[i])) && slu_minhash_use(m, levels[i]))
            measure(&r, &c, passes, json);
    }
    slu_shingler_free(s);
    slu_minhash_free(m);
    slu_hashes_release(&r.h);
    free(r.sig);
    free(r.key);
    free(c.tok);
    free(c.end);
    return 0;
}
