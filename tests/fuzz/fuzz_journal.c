/* Fuzzes the journals of shard sets (formats/shards/shard_journal.c,
 * formats/shards/shard_part.c, formats/shards/shard_join.c): a set goes on after any
 * bytes as its journal, or those of its two parts, and no shard is taken over that is
 * not there. First lines and checksums are ours (unless the first byte is odd), or the
 * fuzzer would never get behind them.
 *
 * Input: a byte of options, then the journals (folder.h). */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "formats/shards/shard.h"
#include "formats/shards/shard_part.h"
#include "lib/base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { N_BUCKET = 2, SHARD = 3 };
static const uint64_t lengths[N_BUCKET] = {4, 8};
static const struct slu_shards_span spans[2][N_BUCKET] = {{{0, 6, false}, {0, 2, true}},
                                                          {{2, 2, true}, {0, 0, true}}};

static void faulty(const struct slu_err *err)
{
    must(err->msg[0] && !strchr(err->msg, '\n'));
}

static struct slu_shards *begin(const char *dir, bool parts, bool build,
                                struct slu_names **names)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_shards *s;
    struct slu_header h;
    slu_header_init(&h);
    h.tok_bytes = 2;
    h.vocab_size = 1000;
    h.n_bucket = N_BUCKET;
    memcpy(h.bucket, lengths, sizeof lengths);
    must(slu_names_new(names, &err) == SLU_OK &&
         slu_names_set_source(*names, 0, "x", &err) == SLU_OK);
    struct slu_shards_cfg cfg = {.dir = dir,
                                 .header = &h,
                                 .names = *names,
                                 .shard_sequences = SHARD,
                                 .by_bucket = true,
                                 .parts = parts};
    must(slu_shard_format_find(&cfg.format, build ? "mds" : "megatron", &err) ==
         SLU_OK);
    must(slu_shards_new(&s, &cfg, &err) == SLU_OK);
    slu_header_release(&h);
    return s;
}

/* 2, 3 … sequences of each bucket's span. */
struct source {
    const struct slu_shards_span *span;
    unsigned bucket;
    uint64_t at;
};

static int give(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                struct slu_err *err)
{
    struct source *s = ctx;
    (void)pipe;
    slu_batch_clear(b);
    while (b->n_seq < 2 && s->bucket < N_BUCKET) {
        const struct slu_shards_span *n = &s->span[s->bucket];
        if (s->at == n->n_seq) {
            s->bucket++;
            s->at = 0;
            continue;
        }
        uint64_t len = lengths[s->bucket];
        uint16_t tok[8];
        for (uint64_t i = 0; i < len; i++)
            tok[i] = (uint16_t)(n->first_shard * SHARD + s->at + i);
        const struct slu_seg g = {.document = n->first_shard * SHARD + s->at,
                                  .len_tok = len,
                                  .domain = SLU_NO_DOMAIN};
        must(slu_batch_add(b, tok, len, &g, 1, (const uint8_t *)"", err) == SLU_OK);
        s->at++;
    }
    return b->n_seq ? SLU_OK : SLU_EOF;
}

static void checksum(struct slu_buf *t)
{
    struct slu_err err = SLU_ERR_INIT;
    must(slu_buf_printf(t, &err, ",\"xxh3_64\":\"%016llx\"}\n",
                        (unsigned long long)slu_hash64(t->data, t->len)) == SLU_OK);
}

static void whole(const uint8_t *p, size_t n, unsigned options)
{
    static const struct slu_shards_span all[N_BUCKET] = {{0, 8, true}, {0, 2, true}};
    struct slu_err err = SLU_ERR_INIT;
    struct source src = {.span = all};
    struct slu_account account = {0};
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_names *names;
    const char *dir = in_folder("set");
    struct slu_shards *s = begin(dir, false, options & 4, &names);
    if (!(options & 1))
        must(slu_shards_head(s, NULL, "", &t, &err) == SLU_OK);
    must(slu_buf_append(&t, p, n, &err) == SLU_OK);
    mkdir(dir, 0700);
    mkdir(in_folder("set/.partial"), 0700);
    put_file("set/.partial/journal", t.data, t.len);
    slu_buf_release(&t);
    int rc = slu_shards_write(s, give, &src, NULL, 1, 2, &err);
    if (!rc) {
        must(slu_shards_sum(s)->n.sequences == 10);
        rc = slu_shards_finish(s, "fuzz", &account, &err);
    }
    if (rc)
        faulty(&err);
    must(n || !rc || options & 1); /* nothing told against it */
    slu_shards_free(s);
    slu_names_free(names);
}

static void part(unsigned i, const uint8_t *p, size_t n, unsigned options)
{
    struct slu_shards_part part = {in_folder("work"), i, 2, spans[i]};
    struct slu_err err = SLU_ERR_INIT;
    struct source src = {.span = spans[i]};
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_names *names;
    char name[64];
    struct slu_shards *s = begin(in_folder("parts"), true, options & 4, &names);
    if (!(options & 1))
        must(slu_shards_part_head(s, &part, NULL, &t, &err) == SLU_OK);
    must(slu_buf_append(&t, p, n, &err) == SLU_OK);
    if (options & 8)
        checksum(&t);
    snprintf(name, sizeof name, "work/shards.%u-of-2.jsonl", i);
    put_file(name, t.data, t.len);
    slu_buf_release(&t);
    if (options & 16) {
        int rc = slu_shards_write_part(s, &part, give, &src, NULL, 1, 2, &err);
        if (rc)
            faulty(&err);
        must(n || !rc || options & 9);
    }
    slu_shards_free(s);
    slu_names_free(names);
}

static void join(unsigned options)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_account account = {0};
    struct slu_names *names;
    struct slu_shards *s = begin(in_folder("parts"), true, options & 4, &names);
    int rc = slu_shards_join(s, in_folder("work"), 2, NULL, &err);
    if (!rc)
        rc = slu_shards_finish(s, "fuzz", &account, &err);
    if (rc && rc != SLU_EOF)
        faulty(&err);
    slu_shards_free(s);
    slu_names_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *p;
    if (!n)
        return 0;
    unsigned options = data[0];
    data++;
    n--;
    clear_folder();
    if (options & 2) {
        whole(data, n, options);
        return 0;
    }
    mkdir(in_folder("work"), 0700);
    for (unsigned i = 0; i < 2; i++) {
        size_t len = next_file(&p, &data, &n, i == 1);
        part(i, p, len, options);
    }
    join(options);
    return 0;
}
