/* encode.c - our side of tests/bench/tokenize: lib/token/tokenizer.h alone, without JSON and
 * without the stream, as the peers are measured from within their processes.
 *
 *   encode TOKENIZER PATTERN FILE.docs PASSES [-i IDS] [-l LENGTHS] [-c CACHE_DIR]
 *          [-m CACHE_MIB]
 *
 * FILE.docs: documents, each a u32 little-endian length and its bytes. Prints one JSON
 * object: seconds to load the tokenizer, seconds of each pass over all documents (the
 * first is cold: what it makes use of was not there before), ids, bytes of text; every
 * time as [processor, wall]. A pass leaves all ids in memory that it touches first, and
 * the memory is given back before the next one: so do the peers. -i and -l: writes the
 * ids, and how many each document has, as u32. The word cache may grow to what
 * `tokenize` gives each thread, or CACHE_MIB.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/token/tokenizer.h"

struct when {
    double cpu, wall;
};

static double clock_s(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct when now(void)
{
    return (struct when){clock_s(CLOCK_PROCESS_CPUTIME_ID), clock_s(CLOCK_MONOTONIC)};
}

static void print_since(struct when from)
{
    struct when t = now();
    printf("[%.6f, %.6f]", t.cpu - from.cpu, t.wall - from.wall);
}

static int die(const char *what)
{
    fprintf(stderr, "encode: %s\n", what);
    return 1;
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    long size;

    if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        goto out;
    *n = (size_t)size;
    p = malloc(*n + 1);
    if (p && fread(p, 1, *n, f) != *n) {
        free(p);
        p = NULL;
    }
out:
    if (f)
        fclose(f);
    return p;
}

/* Every document's ids behind one another in *ids; n_id[i] of the i-th, if not NULL. */
static int encode_all(struct slu_encoder *e, const char *in, size_t n,
                      struct slu_ids *ids, uint32_t *n_id, struct slu_err *err)
{
    size_t at = 0, i = 0;
    while (at + 4 <= n) {
        uint32_t len;
        size_t before = ids->n;
        memcpy(&len, in + at, 4);
        at += 4;
        if (len > n - at)
            return slu_fail(err, SLU_E_FORMAT, "the file breaks off");
        if (slu_encode(e, in + at, len, ids, err) < 0)
            return -1;
        at += len;
        if (n_id)
            n_id[i++] = (uint32_t)(ids->n - before);
    }
    return 0;
}

/* Memory for an id a byte, in huge pages, as a consumer of many ids would take it; what
 * is not used of it is not touched. */
static int reserve(struct slu_ids *ids, size_t n)
{
    const size_t page = (size_t)2 << 20, n_byte = (4 * n + page - 1) / page * page;

    *ids = (struct slu_ids){aligned_alloc(page, n_byte), 0, n};
    if (ids->id)
        madvise(ids->id, n_byte, MADV_HUGEPAGE);
    return ids->id ? 0 : -1;
}

static size_t count(const char *in, size_t n)
{
    size_t n_doc = 0;
    for (size_t at = 0; at + 4 <= n; n_doc++) {
        uint32_t len;
        memcpy(&len, in + at, 4);
        at += 4 + (size_t)len;
    }
    return n_doc;
}

static int put(const char *path, const uint32_t *x, size_t n)
{
    FILE *f = path ? fopen(path, "wb") : NULL;
    int bad = path && (!f || fwrite(x, 4, n, f) != n);
    if (f && fclose(f))
        bad = 1;
    return bad;
}

int main(int argc, char **argv)
{
    struct slu_tokenizer_cfg cfg = {0};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_tokenizer *t = NULL;
    struct slu_encoder *e = NULL;
    struct slu_ids ids = {NULL, 0, 0};
    unsigned long cache_mib = 160;
    const char *ids_path = NULL, *lengths_path = NULL;
    uint32_t *n_id = NULL;
    size_t n = 0, n_doc;
    char *in;
    int rc = 1;

    if (argc < 5)
        return die("usage: encode TOKENIZER PATTERN FILE.docs PASSES "
                   "[-i IDS] [-l LENGTHS] [-c CACHE_DIR] [-m CACHE_MIB]");
    for (int i = 5; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-i"))
            ids_path = argv[i + 1];
        else if (!strcmp(argv[i], "-l"))
            lengths_path = argv[i + 1];
        else if (!strcmp(argv[i], "-c"))
            cfg.cache_dir = argv[i + 1];
        else if (!strcmp(argv[i], "-m"))
            cache_mib = strtoul(argv[i + 1], NULL, 10);
        else
            return die("unknown option");
    }
    cfg.spec = argv[1];
    cfg.pattern = *argv[2] ? argv[2] : NULL;
    if (!(in = slurp(argv[3], &n)))
        return die(strerror(errno));
    n_doc = count(in, n);
    if (lengths_path && !(n_id = calloc(n_doc + 1, 4)))
        goto out;

    struct when from = now();
    if (!slu_tokenizer_simd(getenv("SLUICE_SIMD")))
        return die("SLUICE_SIMD names no level of this processor");
    if (slu_tokenizer_load(&t, &cfg, &err) < 0) {
        fprintf(stderr, "encode: %s\n", err.msg);
        goto out;
    }
    printf("{\"load\": ");
    print_since(from);
    printf(", \"compiled\": %s, \"passes\": [",
           slu_tokenizer_was_compiled(t) ? "true" : "false");
    for (long i = 0, n_pass = strtol(argv[4], NULL, 10); i < n_pass; i++) {
        slu_ids_release(&ids);
        from = now();
        if (reserve(&ids, n) < 0)
            goto out;
        /* The first pass includes the making of the encoder. */
        if ((!e && slu_encoder_new(&e, t, (uint64_t)cache_mib << 20, &err) < 0) ||
            encode_all(e, in, n, &ids, n_id, &err) < 0) {
            fprintf(stderr, "encode: %s\n", err.msg);
            goto out;
        }
        printf("%s", i ? ", " : "");
        print_since(from);
    }
    printf("], \"ids\": %zu, \"bytes\": %zu, \"documents\": %zu}\n", ids.n,
           n - 4 * n_doc, n_doc);
    rc = put(ids_path, ids.id, ids.n) || put(lengths_path, n_id, n_doc);
    if (rc)
        die(strerror(errno));
out:
    slu_ids_release(&ids);
    slu_encoder_free(e);
    slu_tokenizer_free(t);
    free(n_id);
    free(in);
    return rc;
}
