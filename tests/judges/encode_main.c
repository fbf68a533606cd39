/* encode_main.c - the judges' view of lib/token/tokenizer.h: documents in, ids out.
 *
 *   encode TOKENIZER [--pattern NAME] [--parse] [--pieces] [--cuts] [--cache BYTES]
 *          [--compiled DIR] [--time N]
 *
 * Standard input: documents, each a u32 little-endian length and its bytes. Standard
 * output: for each, a u32 count and the ids as u32; with --pieces the lengths of what
 * the pre-tokenizer makes of it, without the normalizer; with --cuts each document is
 * encoded in parts, cut wherever slu_tokenizer_cut allows. The vocabulary is built, or
 * with --compiled taken from DIR where it is kept. --time N encodes everything N times
 * instead and prints MB/s on standard error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/token/pre.h"
#include "lib/token/tok.h"
#include "lib/token/tokenizer.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int die(const char *what)
{
    fprintf(stderr, "encode: %s\n", what);
    return 1;
}

/* The whole of standard input. */
static char *slurp(size_t *n)
{
    size_t cap = 1 << 24;
    char *p = malloc(cap);

    for (*n = 0; p;) {
        size_t got = fread(p + *n, 1, cap - *n, stdin);
        if (!got)
            break;
        if ((*n += got) == cap)
            p = realloc(p, cap *= 2);
    }
    return p;
}

/* One document, whole or, with `t`, cut at all places where it may be. */
static int encode_one(struct slu_encoder *e, const struct slu_tokenizer *t,
                      const char *p, size_t n, struct slu_ids *ids, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t at = 0, end; at < n && rc >= 0; at = end) {
        end = t ? slu_tokenizer_cut(t, p, n, at + 1, n) : SIZE_MAX;
        end = end == SIZE_MAX ? n : end;
        rc = slu_encode(e, p + at, end - at, ids, err);
    }
    return rc;
}

static int encode_all(struct slu_encoder *e, const struct slu_tokenizer *t,
                      const char *in, size_t n, struct slu_ids *ids, FILE *out,
                      struct slu_err *err)
{
    for (size_t pos = 0; pos + 4 <= n;) {
        uint32_t len, count;
        memcpy(&len, in + pos, 4);
        ids->n = 0;
        if (encode_one(e, t, in + pos + 4, len, ids, err) < 0)
            return -1;
        count = (uint32_t)ids->n;
        if (out) {
            fwrite(&count, 4, 1, out);
            fwrite(ids->id, 4, ids->n, out);
        }
        pos += 4 + len;
    }
    return 0;
}

static int put_piece(void *out, const uint8_t *p, size_t n, struct slu_err *err)
{
    uint32_t len = (uint32_t)n;

    (void)p;
    return slu_buf_append(out, &len, sizeof len, err);
}

static int cut_all(const struct slu_tokenizer *t, const char *in, size_t n,
                   struct slu_err *err)
{
    struct slu_buf out = SLU_BUF_INIT;
    struct pre_scratch s;
    int rc = pre_scratch_init(&s, t->pre, err);

    for (size_t pos = 0; pos + 4 <= n && rc >= 0;) {
        uint32_t len, count;
        memcpy(&len, in + pos, 4);
        slu_buf_clear(&out);
        if (len)
            rc = pre_run(t->pre, &s, (const uint8_t *)in + pos + 4, len, put_piece,
                         &out, err);
        count = (uint32_t)(out.len / 4);
        fwrite(&count, 4, 1, stdout);
        if (count)
            fwrite(out.data, 4, count, stdout);
        pos += 4 + len;
    }
    slu_buf_release(&out);
    pre_scratch_release(&s);
    return rc;
}

int main(int argc, char **argv)
{
    struct slu_tokenizer_cfg cfg = {.spec = argc > 1 ? argv[1] : NULL};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t;
    struct slu_encoder *e;
    struct slu_ids ids = {NULL, 0, 0};
    unsigned long cache = 160 << 20, rounds = 0;
    bool pieces = false, cuts = false;
    size_t n;

    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--parse"))
            cfg.special_parse = true;
        else if (!strcmp(argv[i], "--pieces"))
            pieces = true;
        else if (!strcmp(argv[i], "--cuts"))
            cuts = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--pattern"))
            cfg.pattern = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--cache"))
            cache = strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && !strcmp(argv[i], "--compiled"))
            cfg.cache_dir = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--time"))
            rounds = strtoul(argv[++i], NULL, 10);
        else
            return die("unknown option");
    }
    double start = now();
    if (!slu_tokenizer_simd(getenv("SLUICE_SIMD")))
        return die("SLUICE_SIMD names no level of this processor");
    if (slu_tokenizer_load(&t, &cfg, &err) < 0 ||
        slu_encoder_new(&e, t, cache, &err) < 0)
        return die(err.msg);
    if (rounds)
        fprintf(stderr, "load %.3f s\n", now() - start);
    char *in = slurp(&n);
    if (pieces && (cut_all(t, in, n, &err) < 0 || fflush(stdout)))
        return die(err.msg);
    if (!rounds && !pieces &&
        (encode_all(e, cuts ? t : NULL, in, n, &ids, stdout, &err) < 0 ||
         fflush(stdout)))
        return die(err.msg);
    for (unsigned long i = 0; i < rounds; i++) {
        start = now();
        if (encode_all(e, cuts ? t : NULL, in, n, &ids, NULL, &err) < 0)
            return die(err.msg);
        fprintf(stderr, "%.1f MB/s\n", (double)n / 1e6 / (now() - start));
    }
    slu_ids_release(&ids);
    slu_encoder_free(e);
    slu_tokenizer_free(t);
    free(in);
    return 0;
}
