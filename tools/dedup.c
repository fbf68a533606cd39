/* dedup: drops sequences whose tokens came before. */
#include <stdlib.h>
#include <string.h>

#include "lib/exact.h"
#include "lib/json_write.h"
#include "tools/cli.h"

struct opts {
    bool exact;
    const char *pairs;
};

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"exact", 0, CLI_FLAG, AT(exact), NULL,
     "drop what has the same tokens as something before it; the default", NULL, false,
     NULL},
    {"pairs", 0, CLI_OUTPUT, AT(pairs), "FILE",
     "write what was dropped, and what was kept for it, as JSON lines", NULL, false,
     NULL},
    {0},
};

struct job {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_writer *writer;
    struct slu_out *pairs; /* NULL: not wanted */
    struct slu_buf text;   /* of pairs, not written yet */
    uint64_t n_pair, tok;
};

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;

    j->tok += b->n_tok;
    cli_progress(j->ctx, slu_reader_bytes(j->reader), j->tok);
    return slu_writer_put(j->writer, b, err);
}

static int flush_pairs(struct job *j, struct slu_err *err)
{
    int rc = slu_out_write(j->pairs, j->text.data, j->text.len, err);

    slu_buf_clear(&j->text);
    return rc;
}

/* A place as `inspect --records` names it. */
static int put_place(struct job *j, const char *key, const struct slu_place *p,
                     struct slu_err *err)
{
    const char *name = slu_names_source(slu_reader_names(j->reader), p->source);
    int rc = slu_buf_printf(&j->text, err, "\"%s\":{\"source\":", key);

    if (rc == SLU_OK)
        rc = slu_json_put_string(&j->text, name ? name : "", name ? strlen(name) : 0,
                                 err);
    return rc ? rc
              : slu_buf_printf(
                    &j->text, err,
                    ",\"source_number\":%llu,\"document\":%llu,\"offset\":%llu},",
                    (unsigned long long)p->source, (unsigned long long)p->document,
                    (unsigned long long)p->offset);
}

static int put_pair(void *ctx, const struct slu_exact_pair *p, struct slu_err *err)
{
    struct job *j = ctx;
    int rc = slu_buf_append(&j->text, "{", 1, err);

    if (rc == SLU_OK)
        rc = put_place(j, "dropped", &p->dropped, err);
    if (rc == SLU_OK)
        rc = put_place(j, "kept", &p->kept, err);
    if (rc == SLU_OK)
        rc = slu_buf_printf(&j->text, err, "\"similarity\":1}\n");
    j->n_pair++;
    if (rc == SLU_OK && j->text.len >= 64 << 10)
        rc = flush_pairs(j, err);
    return rc;
}

/* The ledger is checked before the end frame, the pairs get their name before the
 * stream: whoever sees the stream end well has both. */
static int finish(struct job *j, const struct slu_exact_result *r,
                  const struct slu_sum *in, struct slu_err *err)
{
    struct slu_writer *w = j->writer;
    int rc = SLU_OK;

    cli_book_in(j->ctx, in);
    if (r->dropped.sequences)
        slu_ledger_drop(&j->ctx->ledger, "exact-duplicate", r->dropped);
    j->ctx->spill_bytes = r->spilled_byte;
    cli_stat_u64(j->ctx, "waited_sequences", r->waited);
    if (j->pairs && j->n_pair != r->dropped.sequences)
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %llu sequences were dropped and %llu reported; "
            "please report it",
            (unsigned long long)r->dropped.sequences, (unsigned long long)j->n_pair);
    if (j->pairs) {
        rc = flush_pairs(j, err);
        if (rc)
            return rc;
        struct slu_out *out = j->pairs;
        j->pairs = NULL;
        rc = slu_out_close(out, err);
        if (rc)
            return rc;
    }
    j->writer = NULL;
    return cli_close_writer(j->ctx, w, err);
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx};
    struct slu_exact *x = NULL;
    struct slu_sum in = {0};
    uint64_t share =
        ctx->common.memory / 4; /* batches in flight; the rest: who was here */

    int rc = cli_open_reader(ctx, &j.reader, err);
    if (rc)
        return rc;
    const struct slu_header *h = slu_reader_header(j.reader);
    if (h->no_tokens)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream has segment rows only, and no tokens to compare");
    if (!rc)
        rc = cli_open_writer(ctx, &j.writer, h, slu_reader_names(j.reader), false, err);
    if (!rc && o->pairs)
        rc = slu_out_open(&j.pairs, o->pairs, err);
    struct slu_exact_cfg cfg = {.budget_byte = ctx->common.memory - share,
                                .tmpdir = ctx->common.tmpdir,
                                .n_threads = (unsigned)ctx->common.threads,
                                .tok_bytes = h->tok_bytes,
                                .emit = emit,
                                .pair = o->pairs ? put_pair : NULL,
                                .ctx = &j};
    if (!rc)
        rc = slu_exact_new(&x, &cfg, err);
    if (!rc)
        rc = slu_exact_run(x, j.reader, cli_slots(ctx, share), &in, err);
    if (!rc)
        rc = finish(&j, slu_exact_result(x), &in, err);
    slu_exact_free(x);
    slu_writer_abort(j.writer);
    slu_out_abort(j.pairs);
    slu_buf_release(&j.text);
    slu_reader_free(j.reader);
    return rc;
}

const struct slu_tool slu_tool = {
    .name = "dedup",
    .synopsis = "[--exact] [--pairs FILE] [-o FILE] [STREAM ...]",
    .summary = "Drops sequences with the same tokens as one before them.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .memory_floor = 32 << 20,
    .spills = true,
    .examples = "  tokenize corpus.jsonl | dedup -o unique.tks\n"
                "  dedup --pairs dropped.jsonl web.tks books.tks -o unique.tks",
    .run = run,
};
