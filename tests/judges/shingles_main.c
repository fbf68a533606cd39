/* shingles_main.c - the judges' view of lib/dedup/near/shingle.h: sequences in, n-grams out.
 *
 *   shingles STREAM [-n N] [-i]
 *
 * Standard output: for each sequence of the stream, a u32 count and the hashes of its
 * n-grams as u64, in text order. With -i the stream gives the vocabulary only and the
 * sequences are on standard input, each a u32 count and ids as u32.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near/shingle.h"
#include "lib/stream/stream.h"

static struct slu_err err;

static void check(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "shingles: %s\n", err.msg);
    exit(1);
}

static void put(const struct slu_shingler *s, const void *tok, uint64_t n)
{
    static struct slu_hashes h;

    check(slu_shingle(s, tok, n, &h, &err));
    uint32_t count = (uint32_t)h.n;
    if (fwrite(&count, 4, 1, stdout) != 1 || fwrite(h.hash, 8, h.n, stdout) != h.n)
        exit(1);
}

static void from_input(const struct slu_shingler *s)
{
    uint32_t n, *id = NULL;
    size_t cap = 0;

    while (fread(&n, 4, 1, stdin) == 1) {
        check(slu_grow(&id, &cap, n + UINT64_C(1), sizeof *id, &err));
        if (fread(id, 4, n, stdin) != n)
            exit(1);
        put(s, id, n);
    }
    free(id);
}

int main(int argc, char **argv)
{
    struct slu_shingler_cfg sc = {.unit = SLU_UNIT_WORD, .n = 5};
    struct slu_reader_cfg cfg = {.path = (const char *const *)argv + 1, .n_path = 1};
    struct slu_shingler *s = NULL;
    struct slu_reader *r;
    struct slu_batch b;
    bool input = false;
    int rc;

    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "-i"))
            input = true;
        else if (!strcmp(argv[i], "-n") && i + 1 < argc)
            sc.n = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            return 2;
    }
    if (argc < 2)
        return 2;
    check(slu_reader_open(&r, &cfg, &err));
    const struct slu_header *h = slu_reader_header(r);
    sc.tok_bytes = input ? 4 : h->tok_bytes;
    sc.eos = h->eos;
    sc.bos = h->bos;
    sc.pad = h->pad;
    slu_batch_init(&b, h->tok_bytes);
    while ((rc = slu_reader_next(r, &b, &err)) == SLU_OK) {
        if (!s) {
            sc.vocab = slu_names_vocab(slu_reader_names(r));
            check(slu_shingler_new(&s, &sc, &err));
        }
        for (size_t i = 0; i < b.n_seq && !input; i++)
            put(s, (const uint8_t *)b.tok + b.seq[i].tok_off * b.tok_bytes,
                b.seq[i].len_tok);
    }
    check(rc);
    if (input && s)
        from_input(s);
    slu_shingler_free(s);
    slu_batch_release(&b);
    slu_reader_free(r);
    return fflush(stdout) ? 1 : 0;
}
